"""What holds of a group between two events: who may be held in which state, with which fields. Decides nothing.

A sentence for each that is broken, which is a defect of the observer and of nothing that it read. Tests ask for all
after every step of every observer (`tests/conftest.py`); always those are asked for that cost no look at members, when
a group has changed its state: what they find is a row of `surprises`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kardia.doubts import SURE
from kardia.kafka.states import GroupState
from kardia.observe.state.group import Ended, Group, Rebalance
from kardia.tolerances import EARLY_MS, TIMERS_NEAR_MS, TWO_STAMPS_MS


def broken(group: Group) -> Iterator[str]:
    """What does not hold of a group, a sentence each."""
    yield from _of_members(group)
    for over in group.ended.values():
        yield from _of_end(group, over)
    yield from broken_in_state(group)


def broken_in_state(group: Group) -> Iterator[str]:
    """What does not hold of its state and of its rebalance."""
    if _is_asked_for(group):
        yield from _of_state(group)
        if group.rebalance is not None:
            yield from _of_rebalance(group.rebalance)


def _is_asked_for(group: Group) -> bool:
    """Whether its requests alone tell of it: records, sentences and samples tell of parts, each with its own stamp."""
    told = group.told
    return group.modern is None and (told is None or max(told.shown_at_ms, told.sampled_at_ms) < 0)


def _of_members(group: Group) -> Iterator[str]:
    for member_id, member in group.members.items():
        if member.member_id != member_id:
            yield f"{member.member_id!r} is held as {member_id!r}"
        if member.imminent and member.session_prediction_at_ms < 0:
            yield f"the end of {member_id!r} is imminent, and nothing is foretold of it"
    for instance_id, member_id in group.instances.items():
        if member_id not in group.members:
            yield f"the seat {instance_id!r} is that of {member_id!r}, who is no member"


def _of_state(group: Group) -> Iterator[str]:
    current = group.rebalance
    if group.state == GroupState.PREPARING and (current is None or current.joined_at_ms >= 0):
        yield "it prepares, and no join phase is open"
    if group.state == GroupState.COMPLETING and (current is None or current.joined_at_ms < 0):
        yield "it waits for an assignment, and no join phase has ended"


def _of_end(group: Group, over: Ended) -> Iterator[str]:
    member = over.member
    if over.ended_at_ms < member.joined_at_ms:
        yield f"{member.member_id!r} ended before it joined"
    if over.by is not None and 0 <= over.by < over.ended_at_ms - TWO_STAMPS_MS:
        yield f"{member.member_id!r} ended later than the latest that it can have"
    expired = over.cause == "session_expired" and over.doubts == SURE and not over.told
    if expired and group.is_session_known(member) and over.ended_at_ms < member.deadline_from - EARLY_MS:
        yield f"the session of {member.member_id!r} ended, surely, before it was over"


def _of_rebalance(current: Rebalance) -> Iterator[str]:
    if 0 <= current.joined_at_ms < current.started_at_ms - TIMERS_NEAR_MS:  # a line of server.log may have begun it
        yield "its join phase ended before it began"
    if 0 <= current.assigned_at_ms < current.joined_at_ms:
        yield "its assignment came before its join phase ended"
    if current.generation_after >= 0 and current.generation_after <= current.generation_before:
        yield f"generation {current.generation_after} follows {current.generation_before}"
