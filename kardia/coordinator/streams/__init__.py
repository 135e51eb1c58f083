"""The coordinator of streams groups (KIP-1071), as an executable model: members, epochs, the topology, and which tasks
a member has, must give up and waits for.

A new rule goes into `requests` (what is refused before any group is looked at), `membership` (who sends it, in which
epoch, static members), `heartbeats` (what calls for a new epoch, the answer), `progress` (epoch, target, the delay
before the first one), `topology` (topics that are missing or do not fit, how many tasks there are), `reconcile` (one
step of a member towards its target), `endpoints` (where state can be asked for), `leaves` or `topics_and_loading`; what
differs between releases is a row of `behaviour`. `coordinator.StreamsCoordinator` is the entrance: requests, acts of
the cluster and the passing of time go in; answers, views and happenings come out, as with the coordinators beside it.
Reads no clock.

A topic of the application that is missing is asked for by the broker in front of the coordinator: no matter of
membership, and not here; the answer says which ones are missing.
"""
