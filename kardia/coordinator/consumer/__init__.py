"""The coordinator of consumer groups that speak the consumer protocol (KIP-848), as an executable model.

A new rule goes into `heartbeats` (who may ask what, and the answer), `progress` (epochs and targets), `reconcile` (one
step of a member), `leaves` (leaving, fencing, timers that run out), `classics` (members of the classic protocol),
`offsets`, `expressions` or `topics_and_loading`; what differs between releases is a row of `behaviour`.

Requests, acts of the cluster and the passing of time go in; answers, views and happenings come out, as with the classic
coordinator beside it. `coordinator.ConsumerCoordinator` is the entrance. Reads no
clock. What is not modelled is refused with `NotModelledError`, never guessed.
"""
