"""The smallest part of a window that shows a surprise, as a trace that `kardia trace` replays.

The group is brought to the state of the anchor by a prelude; then come the requests of the window. What the release
does is written down as expected, as the model plays it, but for the answer that is the surprise: there the trace
expects what was seen, so that playing it says where the two differ. Requests without which the model says the same are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.group import Group
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.follow.clues import Clue, Heard
from kardia.follow.course import Contradiction, Item
from kardia.kafka.states import ErrorCode, GroupState
from kardia.trace import TraceError, play, read
from kardia.trace.playing import Played

ITEMS_MAX = 100
"""Requests of the longest window of which a trace is made."""

TRIES_MAX = 60
"""How often a trace is played to find what can be left out."""

NAMES = "abcdefghijklmnopqrstuvwxyz"

_MEMBER_OPTIONS = "session={}ms rebalance={}ms version={}"


class Seen(NamedTuple):
    """What a surprise is about."""

    kafka_version: str
    settings: CoordinatorSettings
    base: Group | None
    """The group at the anchor."""
    base_at_ms: int
    items: tuple[Item, ...]
    found: Contradiction
    clue: Clue


class Act(NamedTuple):
    """One line of the trace."""

    at_ms: int
    text: str
    number: int


def trace_of(seen: Seen) -> str:
    """The trace; empty where none shows it."""
    writer = _Writer(seen)
    try:
        acts = list(writer.acts())
        wanted = writer.outcome(acts)
    except (TraceError, ValueError, KeyError):
        return ""
    if all(one.number != seen.clue.number for one in acts):
        return ""
    if not wanted or len(acts) > ITEMS_MAX or not writer.is_predicted(wanted):
        return ""
    return writer.told(_smallest(writer, acts, wanted))


def _smallest(writer: _Writer, acts: list[Act], wanted: str) -> list[Act]:
    """Without whatever can be left out: first by halves, then one by one, the oldest last."""
    tries = 0
    size = max(len(acts) // 2, 1)
    while size >= 1:
        place = 0
        while place < len(acts) and tries < TRIES_MAX:
            fewer = [one for at, one in enumerate(acts) if not place <= at < place + size or one.number < 0]
            fewer = [one for one in fewer if one.number != writer.seen.clue.number] + [
                one for one in acts if one.number == writer.seen.clue.number
            ]
            tries += 1
            if len(fewer) < len(acts) and writer.outcome(fewer) == wanted:
                acts = sorted(fewer, key=lambda one: one.at_ms)
            else:
                place += size
        size //= 2
    return acts


Expected = dict[int, list[tuple[str, tuple[str, ...]]]]
"""Instant -> the act of each of its lines, empty where time passes only, and what is expected of it."""


class _Writer:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.names: dict[str, str] = {}
        self.declared: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.heard: dict[str, tuple[int, int]] = {}
        """Member -> when it was heard last, and its session timeout."""
        base = seen.base
        lived = base is not None and bool(base.members)
        self.delay_ms = seen.settings.initial_rebalance_delay_ms
        self.shift = base.generation_id - 1 if base is not None and lived else 0
        self.zero_ms = seen.base_at_ms - (self.delay_ms if lived else 0)

    def acts(self) -> Iterator[Act]:
        """Everything that is done, in order."""
        yield from self._prelude()
        clue = self.seen.clue
        for item in self.seen.items:
            if item.at_ms > max(clue.at_ms, clue.answered_at_ms):
                return
            if isinstance(item, Clue):
                yield from self._asked(item)
            elif isinstance(item, Heard):
                for member_id, at_ms, _ in sorted(item.heard, key=lambda one: one[1]):
                    yield from self._heartbeats(member_id, at_ms)

    def _heartbeats(self, member_id: str, to_ms: int) -> Iterator[Act]:
        """Of requests that only renewed a session the last is known; as many before it as keep the member."""
        from_ms, session_ms = self.heard.get(member_id, (to_ms, 0))
        at_ms = from_ms + session_ms // 2
        while session_ms > 0 and at_ms < to_ms:
            yield Act(at_ms, f"{self._name(member_id)} heartbeats", 0)
            at_ms += session_ms // 2
        yield Act(to_ms, f"{self._name(member_id)} heartbeats", 0)
        self.heard[member_id] = to_ms, session_ms

    def _prelude(self) -> Iterator[Act]:
        base = self.seen.base
        if base is None or not base.members:
            return
        leader_first = sorted(base.members.values(), key=lambda one: one.member_id != base.leader)
        for member in leader_first:
            version = 3 if member.group_instance_id is None else 5
            options = _MEMBER_OPTIONS.format(member.session_timeout_ms, member.rebalance_timeout_ms, version)
            self._name(member.member_id, options, member.group_instance_id)
            self.generations[member.member_id] = base.generation_id
            self.heard[member.member_id] = self.seen.base_at_ms, member.session_timeout_ms
        named = " and ".join(self._name(one.member_id) for one in leader_first)
        several = len(leader_first) > 1
        yield Act(self.zero_ms, f"{named} join{'' if several else 's'}", -1)
        if base.state is GroupState.STABLE:
            yield Act(self.seen.base_at_ms, f"{named} sync{'' if several else 's'}", -1)

    def _name(self, member_id: str, options: str = "", instance_id: str | None = None) -> str:
        name = self.names.get(member_id)
        if name is None:
            number = len(self.names)
            name = NAMES[number % 26] + (str(number // 26) if number >= 26 else "")
            self.names[member_id] = name
        if options:
            instance = f" instance=i-{abs(hash_of(instance_id)) % 1000}" if instance_id else ""
            self.declared.setdefault(name, options + instance)
        return name

    def _asked(self, clue: Clue) -> Iterator[Act]:
        operation, at_ms = clue.operation, clue.at_ms
        member_id = clue.member_id
        if isinstance(operation, ops.Join):
            options = _MEMBER_OPTIONS.format(
                operation.session_timeout_ms, operation.rebalance_timeout_ms, operation.version
            )
            name = self._name(member_id or operation.new_id, options, operation.group_instance_id)
            if clue.error_code == 0:
                self.generations[member_id] = clue.generation_id
                self.heard[member_id] = clue.answered_at_ms, operation.session_timeout_ms
            asks = clue.error_code == ErrorCode.MEMBER_ID_REQUIRED
            yield Act(
                at_ms, f"{name} asks for a member id" if asks else f"{name} joins{self._protocols(clue)}", clue.number
            )
        elif isinstance(operation, ops.Leave):
            for entry in operation.members:
                if entry.member_id:
                    yield Act(at_ms, f"{self._name(entry.member_id)} leaves", clue.number)
        else:
            verb = {ops.Sync: "syncs", ops.Heartbeat: "heartbeats", ops.Commit: "commits"}[type(operation)]
            generation_id = getattr(operation, "generation_id", -1)
            known = self.generations.get(member_id)
            told = "" if known in (None, generation_id) else f" generation={generation_id - self.shift}"
            yield Act(at_ms, f"{self._name(member_id)} {verb}{told}", clue.number)

    def _protocols(self, clue: Clue) -> str:
        """Another topic for other bytes."""
        operation = clue.operation
        if not isinstance(operation, ops.Join) or not operation.protocols:
            return ""
        return f" subscribes=t{abs(hash_of(operation.protocols[0][1].hex())) % 1000}"

    def text(self, acts: Iterable[Act], expected: Expected) -> str:
        """The trace with what is expected of each line."""
        given = sorted(acts, key=lambda one: one.at_ms)
        used = {word for one in given for word in one.text.split()}
        lines = [
            "A surprise: the last answer is what the log says; the release does otherwise.",
            "",
            f"Kafka {self.seen.kafka_version}",
            f"Broker {_properties(self.seen.settings)}",
        ]
        lines += [
            f"Member {name}: {self.declared.get(name, 'session=10s')}" for name in self.names.values() if name in used
        ]
        lines.append("")
        for at_ms in sorted({*(one.at_ms for one in given), *expected}):
            told = list(expected.get(at_ms, ()))
            for text in [one.text for one in given if one.at_ms == at_ms]:
                own = next((one for one in told if one[0] == text), None)
                if own is not None:
                    told.remove(own)
                lines.append(_line(at_ms - self.zero_ms, text, own[1] if own is not None else ()))
            for _, clauses in told:
                lines.append(_line(at_ms - self.zero_ms, "", clauses))
        return "\n".join(lines) + "\n"

    def played(self, acts: Sequence[Act]) -> Played:
        """What the model does."""
        end_ms = max(self.seen.found.at_ms, self.seen.clue.answered_at_ms, max(one.at_ms for one in acts))
        trace = read(self.text(acts, {end_ms: [("", ())]}))
        return play(trace, self.seen.kafka_version)

    def outcome(self, acts: Sequence[Act]) -> str:
        """What the model says to the one whose answer is the surprise, with the instant."""
        if not acts:
            return ""
        clue, name = self.seen.clue, self.names.get(self.seen.clue.member_id, "")
        at_ms, told = clue.at_ms - self.zero_ms, ""
        for moment in self.played(acts).told:
            for one in moment.told:
                if one.startswith(f"{name} ") and moment.at_ms >= at_ms and not told:
                    told = f"{moment.at_ms} {one}"
        return told or "no answer"

    def is_predicted(self, outcome: str) -> bool:
        """Whether that is what the follower's model said as well."""
        predicted = self.seen.found.predicted
        if predicted is None:
            return True
        if predicted.error_code:
            return f"answered {predicted.error_code} " in outcome
        return "answered" not in outcome or "answered 0" in outcome

    def told(self, acts: Sequence[Act]) -> str:
        """The trace with all that is expected."""
        seen, clue = self.seen, self.seen.clue
        name = self.names.get(clue.member_id, "")
        end_ms = max(seen.found.at_ms, clue.answered_at_ms)
        expected: Expected = {}
        for moment in self.played(acts).told:
            at_ms = moment.at_ms + self.zero_ms
            said = [one for one in moment.told if not one.endswith(("answered 0", "not said why"))]
            if at_ms >= clue.at_ms:
                said = [one for one in said if not one.startswith(f"{name} ")]
            if said and at_ms <= end_ms:
                expected.setdefault(at_ms, []).append((moment.text, tuple(said)))
        own = next(one for one in acts if one.number == clue.number)
        waits = isinstance(clue.operation, ops.Join | ops.Sync) and clue.answered_at_ms > clue.at_ms
        at_ms, text = (clue.answered_at_ms, "") if waits else (clue.at_ms, own.text)
        there = expected.setdefault(at_ms, [])
        before = next((one for one in there if one[0] == text), None)
        if before is not None:
            there.remove(before)
        there.append((text, (*(before[1] if before else ()), self._clause(name))))
        return self.text(acts, expected)

    def _clause(self, name: str) -> str:
        clue = self.seen.clue
        error = next((one for one in clue.entries if one), clue.error_code)
        if error:
            return f"{name} answered {error}"
        if isinstance(clue.operation, ops.Join):
            leads = " as leader" if clue.leader == clue.member_id else ""
            return f"{name} joined generation {clue.generation_id - self.shift}{leads}"
        return f"{name} synced" if isinstance(clue.operation, ops.Sync) else f"{name} answered 0"


def hash_of(text: str | None) -> int:
    """A number of a text that is the same in every process."""
    number = 0
    for letter in text or "":
        number = (number * 31 + ord(letter)) % 1_000_003
    return number


def _line(at_ms: int, text: str, clauses: Sequence[str]) -> str:
    arrow = f" => {', '.join(clauses)}" if clauses else ""
    return f"{_instant(at_ms)} {text}".rstrip() + arrow


def _instant(at_ms: int) -> str:
    return f"+{max(at_ms, 0) // 1000}.{max(at_ms, 0) % 1000:03}"


def _properties(settings: CoordinatorSettings) -> str:
    told = [f"group.initial.rebalance.delay.ms={settings.initial_rebalance_delay_ms}"]
    usual = CoordinatorSettings()
    if settings.group_max_size != usual.group_max_size:
        told.append(f"group.max.size={settings.group_max_size}")
    if settings.group_min_session_timeout_ms != usual.group_min_session_timeout_ms:
        told.append(f"group.min.session.timeout.ms={settings.group_min_session_timeout_ms}")
    return " ".join(told)
