"""Groups of the newer protocols: consumer (KIP-848), share (KIP-932) and streams (KIP-1071). They have epochs.

Every heartbeat is answered at once, with the epoch of its member and what it may read; nobody waits for all. A
*rebalance* is here: from a new group epoch to the moment at which every member has come to it. Reading order:
`partitions` and `owners` (who has what), `epochs` (rebalances and their rows), `states` (of the group), `ends` (why a
member is one no more), `heartbeats` (what an answer shows), `operations` (what the records of one operation show),
`classics` (members of the classic protocol in a consumer group), `conversions` (a group changes its protocol),
`silence` (timers). Answers say what was so when they were made; records have the very instant of the operation.
"""
