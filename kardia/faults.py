"""Who broke a membership that was taken away: the words of `members.fault`, and of the numbers that were seen of it.

Written by the observer (`kardia.observe.members.who_broke`), told by the story, rendered in the reference.
"""

from __future__ import annotations

FAULTS = {
    "client_silent": "no request of the client came any more, of whatever kind, or it gave no sign of life in a phase",
    "host_silent": "nor of any other member at its address, all from the same moment on",
    "heartbeats_stopped": "its fetches went on, its heartbeats did not",
    "connection_lost": "the same, and it came back over another connection",
    "application": "it did not poll or rejoin in time, and its heartbeats went on",
    "broker_slow": "the broker had a request of it in time, or kept requests, or muted its connection, longer than the "
    "session leaves room for",
    "coordinator_moved": "its fetches went on, and it sent the new coordinator nothing",
    "unknown": "it cannot be told: two explanations are left, or none",
}
"""Who broke a membership that was taken away, and what that means."""

FAULT_SIGNS = {
    "heard_at_ms": "last renewal of its session, or the load that began it anew",
    "loaded_at_ms": "a coordinator loaded the group and began its session anew",
    "fetched_at_ms": "last FETCH of its client",
    "fetches_of_others": "members with the same client.id and address: whose FETCH is whose cannot be told",
    "host_silent": "other members at its address that fell silent with it",
    "host_heard": "other members at its address that were heard later",
    "elsewhere_heard": "members at other addresses that were heard later",
    "log_silent_ms": "longest time in which the broker logged nothing at all",
    "broker_ms": "longest time that the broker took for a request, where that is long: the sum of the next three",
    "broker_queue_ms": "of it in the request queue",
    "broker_local_ms": "of it in a handler thread",
    "broker_remote_ms": "of it waiting, where no request has to wait by design: for replication, or the coordinator",
    "throttle_ms": "for that long a quota muted its connection after its last heartbeat",
    "arrived_at_ms": "a request of it had reached the broker then, in time",
    "handled_at_ms": "that request was answered then, too late",
    "polled_at_ms": "last sign of a poll",
    "back_at_ms": "it came back under its old member id then, and was refused",
    "back_on_same_connection": "1 if over the connection of its last heartbeat, 0 if over another one",
}
"""Keys of `members.fault_signs` and what their numbers mean."""
