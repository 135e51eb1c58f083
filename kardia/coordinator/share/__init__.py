"""The coordinator of share groups (KIP-932), as an executable model: who is in the group, in which epoch, with what.

A new rule goes into `heartbeats` (who may ask what, epochs, the answer, leaving and fencing), `initialization` (which
partitions have a state at the share coordinator; only those are given out) or `topics_and_loading`; what differs
between releases is a row of `behaviour`. `coordinator.ShareCoordinator` is the entrance: requests, acts of the cluster
and the passing of time go in; answers, views and happenings come out, as with the coordinators beside it. Reads no
clock.

Fetching and acknowledging records, and how long records stay locked, is the work of the partitions' leaders: no matter
of membership, and not here.
"""
