"""Who went, as it may be said: what all courses that stand share, and between which instants.

A timer never fires before it is due, and may fire late: so an end by a timer is said from the instant at which it was
due, as early as the stamps of what renewed it allow, to the last one at which all answers would still be the log's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kardia.coordinator.classic.shard import join_key, session_key, sync_key
from kardia.coordinator.happenings import Happening
from kardia.coordinator.timers import Key
from kardia.follow.broker import Broker
from kardia.follow.clues import Clue, Moved
from kardia.follow.course import Contradiction
from kardia.follow.loading import Load, load_of, reach_ms
from kardia.follow.plan import replayed
from kardia.follow.standing import Standing, renewed, without
from kardia.follow.tolerances import INSTANT_MS, LATE_MS, SPAN_REPLAYS_MAX


class End(NamedTuple):
    """A member went. The first five are as in `Happening`; `at_ms` is the instant that is the likeliest."""

    at_ms: int
    group_id: str
    kind: str
    member_id: str
    detail: str
    from_ms: int
    to_ms: int


class Ends(NamedTuple):
    """Of a window."""

    sure: list[End]
    """In all courses that stand."""
    possible: list[End]
    """In some of them only."""


def ends_of(standing: Sequence[Standing], broker: Broker) -> tuple[Ends, int]:
    """What is said of a window that is over, and how many replays that took."""
    if not any(one.course.model.ends for one in standing):
        return Ends([], []), 0
    spans, ends = _Spans(broker), Ends([], [])
    told: dict[tuple[str, str], list[End]] = {}
    for one in standing:
        own: dict[tuple[str, str], list[End]] = {}
        for happened in one.course.model.ends:
            own.setdefault((happened.member_id, happened.kind), []).append(spans.of(one, happened))
        for key, again in own.items():  # a load may bring back who had gone: which of its ends it was nothing shows
            told.setdefault(key, []).append(_spanning(again[-1], again))
    for several in told.values():
        is_sure = len(several) == len(standing)
        (ends.sure if is_sure else ends.possible).append(_spanning(several[0], several))
    return ends, spans.replays


def _spanning(end: End, several: Sequence[End]) -> End:
    return end._replace(from_ms=min(one.from_ms for one in several), to_ms=max(one.to_ms for one in several))


class _Spans:
    """Between which instants an end was. Beyond a bound an answer contradicts, or a timer is later than any."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.replays = 0

    def of(self, standing: Standing, end: Happening) -> End:
        """An end with the instants between which it was."""
        key = _timer_of(end)
        if key is None:
            return End(*end, end.at_ms, end.at_ms)
        load, last_ms = load_of(standing, end), self._last_ms(standing, end, key)
        if load is None:
            return End(*end, self._first_ms(standing, end, key), last_ms)
        return End(
            *end, self._first_of_loaded_ms(standing, end, load), self._last_of_loaded_ms(standing, end, load, last_ms)
        )

    def _first_ms(self, standing: Standing, end: Happening, key: Key) -> int:
        """When it was due. Where it was held, not before what showed that it had not fired; that a phase ended later
        shows nothing, as its answer may have taken so long."""
        plan, slack_ms = standing.plan, self._slack_ms(standing, end)
        due_ms = plan.origin_ms(key, end.at_ms)
        if due_ms < end.at_ms:
            self.replays += 1
            _, found, _ = replayed(standing.base, without(plan, key))
            if found is not None and found.what != "early" and due_ms < _shown_ms(found) <= end.at_ms:
                return _shown_ms(found)
        return self._asleep_since_ms(standing, end, due_ms) - slack_ms

    def _first_of_loaded_ms(self, standing: Standing, end: Happening, load: Load) -> int:
        """As much earlier as the load may have been."""
        far_ms, replays = reach_ms(standing, load, load.first_ms)
        self.replays += replays
        return end.at_ms - max(load.at_ms - far_ms, INSTANT_MS)

    def _last_of_loaded_ms(self, standing: Standing, end: Happening, load: Load, last_ms: int) -> int:
        """As much later as the load may have been. `last_ms`: by the load as it is."""
        far_ms, replays = reach_ms(standing, load, load.last_ms)
        self.replays += replays
        late_ms = LATE_MS if far_ms == load.last_ms > load.at_ms else 0
        later_ms = end.at_ms + far_ms - load.at_ms + late_ms
        return max(last_ms, _by_its_phase_ms(standing, end, later_ms))

    def _slack_ms(self, standing: Standing, end: Happening) -> int:
        """How much earlier than its stamp says that may have been from which a timer counts."""
        if standing.plan.acts or end.kind != "session_expired":
            return INSTANT_MS
        heard = renewed(standing.plan.items, end.member_id, end.at_ms)
        return INSTANT_MS if heard is None else heard[1] - heard[0]

    def _asleep_since_ms(self, standing: Standing, end: Happening, at_ms: int) -> int:
        """A timer that is taken to have waited for the end of a silence may have fired in it, since it was due."""
        if not standing.course.model.wakes_at(at_ms):
            return at_ms
        begin_ms = max(int(begin) for begin, until in self.broker.silences if until - 1 <= at_ms)
        return max(begin_ms, min(_due_ms(standing, end), at_ms))

    def _last_ms(self, standing: Standing, end: Happening, key: Key) -> int:
        """Hold the timer for as long as one may be late, and less where that contradicts."""
        at_ms = end.at_ms
        last_ms = at_ms + LATE_MS
        for begin, until in self.broker.silences:
            if at_ms < until and begin < last_ms:
                last_ms = max(last_ms, int(until) + LATE_MS)
        last_ms = _by_its_phase_ms(standing, end, max(last_ms, _moved_by_ms(standing, at_ms)))
        for _ in range(SPAN_REPLAYS_MAX):
            if last_ms <= at_ms:
                return at_ms
            self.replays += 1
            _, found, _ = replayed(standing.base, standing.plan.held(key, at_ms, last_ms))
            if found is None or _shown_ms(found) >= last_ms:
                break
            last_ms = _shown_ms(found)
        return max(last_ms, at_ms)


def _due_ms(standing: Standing, end: Happening) -> int:
    """When a session was due, by what the member sent last; 0 where that is not in the window."""
    heard = renewed(standing.plan.items, end.member_id, end.at_ms)
    group = standing.base.model.group
    member = None if group is None else group.members.get(end.member_id)
    return 0 if heard is None or member is None else heard[0] + member.session_timeout_ms


def _by_its_phase_ms(standing: Standing, end: Happening, at_ms: int) -> int:
    """An instant, or when the join phase was answered in which somebody went, if that was before."""
    model = standing.course.model
    group = model.group
    phase_ms = model.chosen.ends.get(-1 if group is None else group.generation_id, at_ms)
    return min(at_ms, phase_ms) if end.at_ms <= phase_ms else at_ms


def _moved_by_ms(standing: Standing, at_ms: int) -> int:
    """When it was first seen that the coordinator had moved, if nothing was heard of the old one since an end: by then
    the new one may have ended it; -1 where it had not."""
    later = next((one for one in standing.plan.items if one.at_ms > at_ms), None)
    return later.at_ms if isinstance(later, Moved) else -1


def _timer_of(end: Happening) -> Key | None:
    if end.kind in ("session_expired", "join_timeout"):
        return session_key(end.group_id, end.member_id)
    if end.kind == "rebalance_timeout":
        return join_key(end.group_id)
    return sync_key(end.group_id) if end.kind == "sync_timeout" else None


def _shown_ms(found: Contradiction) -> int:
    """By when the log shows what the model says otherwise."""
    clue = found.clue
    return clue.answered_at_ms if isinstance(clue, Clue) else found.at_ms
