"""The coordinator of consumer groups that speak the consumer protocol (KIP-848), as an executable model.

Requests, acts of the cluster and the passing of time go in; answers, views and happenings come out, as with the classic
coordinator beside it. `coordinator.ConsumerCoordinator` is the entrance; what differs between releases is the table in
`behaviour`. Reads no clock. What is not modelled is refused with `NotModelledError`, never guessed.
"""
