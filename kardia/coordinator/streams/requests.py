"""What is wrong with a StreamsGroupHeartbeat whoever sends it: refused before any group is looked at, also by a broker
that is not the coordinator.

Follows `throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures`, `throwIfStreamsGroupHeartbeatRequestIsInvalid`
and `throwIfInvalidTopology`, in their order.
"""

from __future__ import annotations

from kardia.coordinator.streams.behaviour import StreamsBehaviour
from kardia.coordinator.streams.operations import StreamsBeat
from kardia.kafka.states import ErrorCode

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2


def refusal(beat: StreamsBeat, behaviour: StreamsBehaviour) -> ErrorCode:
    """The error that answers such a request; `NONE` if nothing is wrong with it."""
    if _uses_what_is_not_there(beat, behaviour) or _has_empty_words(beat):
        return ErrorCode.INVALID_REQUEST
    if beat.member_epoch == JOIN:
        code = _refusal_of_join(beat)
        if code:
            return code
    elif beat.member_epoch == LEAVE_FOR_A_WHILE:
        if beat.instance_id is None:
            return ErrorCode.INVALID_REQUEST
    elif beat.member_epoch < LEAVE_FOR_A_WHILE:
        return ErrorCode.INVALID_REQUEST
    owned = (beat.active, beat.standby, beat.warmup)
    if any(part is None for part in owned) and any(part is not None for part in owned):
        return ErrorCode.INVALID_REQUEST
    if beat.member_epoch != JOIN and beat.topology is not None:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _uses_what_is_not_there(beat: StreamsBeat, behaviour: StreamsBehaviour) -> bool:
    if not behaviour.takes_static_members and beat.instance_id is not None:
        return True
    if not behaviour.takes_offsets and (beat.offsets is not None or beat.warmup):
        return True
    return beat.topology is not None and any(one.patterns for one in beat.topology.subtopologies)


def _has_empty_words(beat: StreamsBeat) -> bool:
    words = (beat.member_id, beat.group_id, beat.instance_id, beat.rack_id)
    return any(word is not None and not word.strip() for word in words)


def _refusal_of_join(beat: StreamsBeat) -> ErrorCode:
    # An owned list must be there, and empty.
    if beat.rebalance_timeout_ms == -1 or any(
        part is None or part for part in (beat.active, beat.standby, beat.warmup)
    ):
        return ErrorCode.INVALID_REQUEST
    if beat.topology is None:
        return ErrorCode.INVALID_REQUEST
    if any(topic.partitions for one in beat.topology.subtopologies for topic in one.changelogs):
        return ErrorCode.STREAMS_INVALID_TOPOLOGY
    return ErrorCode.NONE
