"""Timers of the observer as data: of each kind what it waits for, whose silence it means, and what happens then.

They are ours and not the broker's: each is due a moment after something that the coordinator does, or that a late line
may still show. `Facts.schedule` makes one; `observer` fires them in the order of their instants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kardia.observe.evidence import records
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import conversions, operations, removed, silence
from kardia.observe.rebalance import begin_and_settle
from kardia.observe.state.group import Group
from kardia.observe.timers import expiry, timeouts
from kardia.tolerances import GRACE_MS

Handler = Callable[[Facts, Group, str, float], None]
"""(observer, group, key of the timer, due). The key tells timers of one kind and group apart."""


class TimerKind(NamedTuple):
    """What a kind of timer is."""

    waits_for: str
    handler: Handler
    of_silence: bool = False
    """It says something because nothing came, and a broker that may be dead says nothing."""


def _on_member(facts: Facts, group: Group, member_id: str, due: float) -> None:
    member = group.members.get(member_id)
    if member is None or member.timer_at_ms != due:
        return  # it was set anew meanwhile
    if group.modern is not None:
        silence.on_member_timer(facts, group, member, due)
    else:
        expiry.on_member_timer(facts, group, member, due)


def _on_settled(facts: Facts, group: Group, _: str, __: float) -> None:
    current = group.rebalance
    if current is not None and not current.settled and current.joined_at_ms >= 0:
        begin_and_settle.settle(facts, group, current)


def _on_silent(facts: Facts, group: Group, _: str, due: float) -> None:
    timeouts.conclude_silent(facts, group, due - facts.settings.burst_ms)


def _on_gone(facts: Facts, group: Group, member_id: str, due: float) -> None:
    timeouts.conclude_gone(facts, group, member_id, due - facts.settings.settle_ms)


def _on_empty(facts: Facts, group: Group, generation: str, _: float) -> None:
    records.conclude_empty(facts, group, int(generation))


def _on_pending(facts: Facts, group: Group, member_id: str, due: float) -> None:
    handed_out = group.pending.get(member_id)
    if handed_out is not None and handed_out.until_at_ms <= due - GRACE_MS:  # else another one was handed out since
        expiry.on_pending_timer(facts, group, member_id, due - GRACE_MS)


TIMER_KINDS = {
    "member": TimerKind("a session or poll deadline of a member, or the instant to foretell one", _on_member),
    "pending": TimerKind("the end of an id that was handed out and not used", _on_pending),
    "settle": TimerKind("answers of a join phase that are logged late", _on_settled),
    "silent": TimerKind("the rest of those who are sent back in one instant", _on_silent),
    "gone": TimerKind("what may show why a member is unknown to the coordinator", _on_gone),
    "empty": TimerKind("requests of the last members, before the record of an empty group counts", _on_empty),
    "drop": TimerKind("the end of the time to rejoin", timeouts.on_join_timer, of_silence=True),
    "unsynced": TimerKind("the end of the time for SyncGroup", timeouts.on_sync_timer, of_silence=True),
    "overdue": TimerKind("the answer of a JoinGroup that may wait unseen", timeouts.on_overdue, of_silence=True),
    "operation": TimerKind("the other records of an operation of the coordinator", operations.on_timer),
    "removed": TimerKind("a leave that would say why a member is gone", removed.conclude_removed),
    "epoch": TimerKind("the members that have yet to come to a new group epoch", conversions.on_epoch_timer),
    "phase": TimerKind("the end of the time to give up partitions", silence.on_phase_timer, of_silence=True),
    "deserted": TimerKind("answers after the last deadline of a group", timeouts.conclude_deserted, of_silence=True),
}
"""Kind -> what it is. `burst` is the observer's own: events that wait for the rest of a join burst."""

OF_SILENCE = frozenset(kind for kind, what in TIMER_KINDS.items() if what.of_silence)
