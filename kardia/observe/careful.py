"""The second try after the observer raised: finds the event that raised, leaves it out, and says so in `rejected`.

An observer that raised in the middle of a step has changed half of what it wanted to change: its state is thrown away.
Whoever runs it restores the state before the step here and steps again. What raises is named by a `CulpritError`; then
the state is restored once more and the culprit left out: a row of `rejected` says so, and of its group nothing is known
from there until it is heard again, because what was left out may have been the heartbeat that kept a member alive. The
ordinary observer pays nothing for this. No event should ever get here: each is a defect, and to be reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kardia.events import ALL_SHARDS, Event, Kind
from kardia.observe.facts import forgetting
from kardia.observe.intake.each_once import Source
from kardia.observe.intake.held import Held
from kardia.observe.observer import Observer
from kardia.observe.state.group import Group
from kardia.observe.state.settings import ObserverSettings
from kardia.observe.timers import expiry
from kardia.stretches import START, WIDTH, Stretch
from kardia.tables import Row

REASON = "not_applied"
"""Reason of the row in `rejected`."""

MAX_OF_GROUP = 16
"""Culprits of one group in one step; then all its events of the step are left out: each costs a whole step again."""

Rows = dict[str, list[Row]]
Key = tuple[Any, ...]
T = TypeVar("T")


class CulpritError(Exception):
    """Something could not be applied. `key` names it for the next attempt."""

    def __init__(self, key: Key, group_id: str, error: Exception) -> None:
        """`error` is what was raised."""
        super().__init__(f"{key}: {type(error).__name__}: {error}")
        self.key = key
        self.group_id = group_id
        self.why = f"{type(error).__name__}: {error}"


class _Single(Held):
    """Holds nothing, so that every request goes its way alone and can be named."""

    def add(self, broker: str, stretch: Stretch) -> bool:  # noqa: ARG002
        return False


def step_with_care(restored: Callable[[], Careful], run: Callable[[Careful], Rows]) -> tuple[Careful, Rows]:
    """Run a step that an ordinary observer failed in, without what cannot be applied.

    `restored` gives the state before the step, each time anew. Raises what was raised if nobody can be named for it.
    """
    left_out: dict[Key, str] = {}
    of_group: dict[str, int] = {}
    while True:
        careful = restored()
        careful.left_out = left_out
        careful.groups_out = {group_id for group_id, count in of_group.items() if count >= MAX_OF_GROUP}
        try:
            return careful, run(careful)
        except CulpritError as culprit:
            if culprit.key in left_out:
                raise
            left_out[culprit.key] = culprit.why
            if culprit.group_id:
                of_group[culprit.group_id] = of_group.get(culprit.group_id, 0) + 1


class Careful(Observer):
    """See the head of the file."""

    def __init__(self, settings: ObserverSettings, lane: int = 0) -> None:
        super().__init__(settings, lane)
        self.held = _Single()
        self.left_out: dict[Key, str] = {}
        """What is left out, and why."""
        self.groups_out: set[str] = set()
        """Groups of which every event of this step is left out."""

    # --- taking in

    def _accept_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._accept(event)

    def _accept(self, event: Event) -> None:
        key = ("accept", *_position(event))
        why = self.left_out.get(key)
        if why is None:
            self._trying(key, event.group_id, lambda: super(Careful, self)._accept(event))
            return
        source = self.sources.get(event.source) or self.new_source(event.source)
        if event.kind not in (Kind.TICK, Kind.GAP):
            source.end = max(source.end, event.end)
            source.since_tick += 1  # it has come: nothing is lost that a tick would miss
        self._tell(event, why)

    def _accept_stretch(self, stretch: Stretch) -> tuple[Source, int]:
        head = next(stretch.events())
        key = ("stretch", *_position(head))
        why = self.left_out.get(key)
        if why is None:
            return self._trying(key, head.group_id, lambda: super(Careful, self)._accept_stretch(stretch))
        source = self.sources.get(head.source) or self.new_source(head.source)
        source.folded.append((stretch.numbers[START - WIDTH], len(stretch)))
        self._tell(head, why)
        return source, source.end

    # --- applying

    def _note_alive(self, alive: dict[str, float], event: Event, at: float) -> None:
        if self._why_not(event, at) is None:
            self._trying(
                _applied(event, at), event.group_id, lambda: super(Careful, self)._note_alive(alive, event, at)
            )

    def _at_once(self, event: Event, at: float) -> bool:  # noqa: ARG002
        return False  # so that each event goes its way, and can be named

    def _deferred(self, event: Event, at: float) -> bool:
        if self._why_not(event, at) is not None:
            return False
        return self._trying(_applied(event, at), event.group_id, lambda: super(Careful, self)._deferred(event, at))

    def _handle(self, event: Event, at: float) -> None:
        why = self._why_not(event, at)
        if why is None:
            self._trying(_applied(event, at), event.group_id, lambda: super(Careful, self)._handle(event, at))
            return
        group = self.groups.get(event.group_id)
        if group is not None:
            self._unknown_from(group, at)
        self._tell(event, why)

    def _handle_deferred(self, group: Group) -> None:
        key = ("burst", group.group_id)
        why = self.left_out.get(key)
        if why is None:
            self._trying(key, group.group_id, lambda: super(Careful, self)._handle_deferred(group))
            return
        group.deferred = []
        self._tell_group(group, "burst", why, self.known)
        self._unknown_from(group, self.known)

    def _fire_one(self, group: Group, kind: str, key: str, due: float) -> None:
        name = ("timer", group.group_id, kind, key, due)
        why = self.left_out.get(name)
        if why is None:
            self._trying(name, group.group_id, lambda: super(Careful, self)._fire_one(group, kind, key, due))
            return
        self._tell_group(group, kind, why, due)
        self._unknown_from(group, due)

    def _sample_group(self, group: Group, looked_at: dict[str, bool], clock: float) -> None:
        key = ("sample", group.group_id)
        why = self.left_out.get(key)
        if why is None:
            self._trying(key, group.group_id, lambda: super(Careful, self)._sample_group(group, looked_at, clock))
            return
        self._tell_group(group, "sample", why, clock)
        forgetting.forget(self, group.group_id)

    # --- naming and telling

    def _why_not(self, event: Event, at: float) -> str | None:
        if event.group_id and event.group_id in self.groups_out:
            return f"{MAX_OF_GROUP} or more events of this group could not be applied"
        return self.left_out.get(_applied(event, at))

    @staticmethod
    def _trying(key: Key, group_id: str, do: Callable[[], T]) -> T:
        try:
            return do()
        except CulpritError:
            raise
        except Exception as error:
            raise CulpritError(key, group_id, error) from error

    def _unknown_from(self, group: Group, at: float) -> None:
        """Of this group alone nothing is known from an instant on, as after a gap."""
        groups, blind_to = self.groups, dict(self.blind_to)
        broker, self.broker = self.broker, group.broker
        detail = {"from_ms": at, "to_ms": at, "reason": REASON}
        gap = Event(int(Kind.GAP), ALL_SHARDS, f"{group.broker}/request/", 0, 0, at, at, at, at, detail=detail)
        self.groups = {group.group_id: group}
        try:
            expiry.on_gap(self, gap, at)
        finally:
            self.groups, self.blind_to, self.broker = groups, blind_to, broker

    def _tell(self, event: Event, why: str) -> None:
        """A row of `rejected` about an event."""
        at = event.logged_at_ms if 0 <= event.logged_at_ms < float("inf") else 0.0
        named = " ".join(repr(text) for text in (event.group_id, event.member_id) if text)
        name = Kind(event.kind).name.lower()
        self._reject(event.source, event.start, event.end, at, f"{name} {named}".strip(), why)
        stream = self.sources[event.source].stream if event.source in self.sources else None
        if stream is not None:
            stream.rejected += 1
            stream.touched = True

    def _tell_group(self, group: Group, what: str, why: str, at: float) -> None:
        """A row about what is no event: a timer, the end of a burst, a sample of health."""
        at = max(at, 0.0)
        self._reject(f"{group.broker}/observer/{what}", int(at), int(at), at, repr(group.group_id), why)

    def _reject(self, source: str, start: int, end: int, at: float, excerpt: str, why: str) -> None:
        expected = f"what the observer can apply; a defect of Kardia, please report it: {why}"
        detail = {"reason": REASON, "excerpt": excerpt, "expected": expected[:400]}
        self._on_rejected(Event(int(Kind.REJECTED), ALL_SHARDS, source, start, end, at, at, at, at, detail=detail))


def _position(event: Event) -> Key:
    return event.source, event.start, event.end, event.shard, event.kind


def _applied(event: Event, at: float) -> Key:
    """A gap is applied twice, at its begin and at its end."""
    return ("apply", *_position(event), at if event.kind == Kind.GAP else 0.0)


def run_of(events: list[Event], stretches: Iterable[Stretch], *, finish: bool) -> Callable[[Careful], Rows]:
    """A step as `step_with_care` wants it; `finish`: no more input comes after it."""
    folded = list(stretches)

    def run(careful: Careful) -> Rows:
        rows = careful.step(events, folded)
        if finish:
            for name, last in careful.finish().items():
                rows.setdefault(name, []).extend(last)
        return rows

    return run
