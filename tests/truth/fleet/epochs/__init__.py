"""The fleet's groups that have epochs: of the consumer and the share protocol, and those that change their protocol.

World, brokers, logs, late timers, upheavals and the scoring frame are those of the classic fleet. Here is what differs:
`cluster` (the coordinators of the newer protocols behind the same brokers), `records` (what they write to
`__consumer_offsets`), `clients` and `migrants` (who speaks the protocols), `stories` (what befalls a group), `truth`
(what the coordinator did, in the words by which classic groups are scored).
"""
