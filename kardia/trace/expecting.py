"""What was seen between two lines of a trace, in sentences, and how each kind of expectation is held against it.

A state that a group only passes through within one instant is not seen: Kafka's own classes do not show it either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer, Operation, View
from kardia.kafka.states import ErrorCode
from kardia.trace.language import EVICTIONS, Expectation
from kardia.trace.reading import instant_ms

NOBODY = View("Dead", -1, None, None, None, (), (), (), -1, -1)
"""Stands for a group that the coordinator does not know."""


class Gone(NamedTuple):
    """A member that went. `cause` is empty where the coordinator does not say."""

    at_ms: int
    name: str
    cause: str


class Answered(NamedTuple):
    """An answer to somebody."""

    name: str
    operation: Operation
    answer: Answer


class Seen:
    """What has been seen since the line before."""

    def __init__(self, view: View | None, name_of: Mapping[str, str]) -> None:
        """Start from a view; `name_of` gives the name behind a member id."""
        self.view = view or NOBODY
        self.before = self.view.state
        self._name_of = name_of
        self.forget()

    def forget(self) -> None:
        """A new line begins."""
        self.before = self.view.state
        self.prepared = False
        self.gone: list[Gone] = []
        self.dropped: list[tuple[int, str]] = []
        self.answers: list[Answered] = []
        self.changes: list[tuple[int, str]] = []

    def answered(self, name: str, operation: Operation, answer: Answer) -> None:
        """Take note of an answer."""
        self.answers.append(Answered(name, operation, answer))

    def look(self, at_ms: int, view: View | None, causes: Mapping[str, str] | None) -> None:
        """Take note of how the group is now."""
        old, new = self.view, view or NOBODY
        there = {member.member_id for member in new.members}
        for member in old.members:
            if member.member_id not in there:
                cause = "" if causes is None else causes.get(member.member_id, "forgotten")
                self.gone.append(Gone(at_ms, self.name(member.member_id), cause))
        still = {one for one, _ in new.pending} | there
        self.dropped += [(at_ms, self.name(one)) for one, _ in old.pending if one not in still]
        if new.state != old.state:
            self.changes.append((at_ms, new.state))
        self.prepared |= new.generation_id > old.generation_id or (
            new.state == "PreparingRebalance" and old.state != new.state
        )
        self.view = new

    def name(self, member_id: str) -> str:
        """Who is behind a member id."""
        return self._name_of.get(member_id, member_id)

    @property
    def members(self) -> set[str]:
        """Names of the members now."""
        return {self.name(member.member_id) for member in self.view.members}

    def told_by_instant(self) -> list[tuple[int, tuple[str, ...]]]:
        """Everything that was seen, in the words of a trace."""
        told = []
        for at_ms, name, cause in self.gone:
            told.append((at_ms, f"{name} {'evicted' if cause in EVICTIONS else 'gone'}: {cause or 'not said why'}"))
        told += [(one.answer.at_ms, f"{one.name} {_outcome(one)}") for one in self.answers]
        told += [(at_ms, f"{name} dropped") for at_ms, name in self.dropped]
        told += [(at_ms, f"group {state}") for at_ms, state in self.changes]
        instants = sorted({at_ms for at_ms, _ in told})
        return [(instant, tuple(text for at_ms, text in told if at_ms == instant)) for instant in instants]


def _outcome(one: Answered) -> str:
    answer = one.answer
    if answer.error_code != ErrorCode.NONE:
        return f"answered {answer.error_code} {ErrorCode(answer.error_code).name}"
    if isinstance(one.operation, ops.Join):
        leads = " as leader" if answer.leader == answer.member_id else ""
        return f"joined generation {answer.generation_id}{leads}"
    return "synced" if isinstance(one.operation, ops.Sync) else "answered 0"


# --- one function per kind of expectation: what is found instead, None if all is well


def _of_answers(expected: Expectation, seen: Seen, _: set[str]) -> str | None:
    wanted = expected.text[expected.text.index(" ", len(" and ".join(expected.names))) :].strip()
    if expected.kind == "answered":
        wanted = f"answered {expected.value}"
    for name in expected.names:
        outcomes = [_outcome(one) for one in seen.answers if one.name == name]
        if not any(one == wanted or (expected.kind == "answered" and one.startswith(wanted)) for one in outcomes):
            return f"{name} {' and '.join(outcomes) or 'has no answer'}"
    return None


def _waits(expected: Expectation, _: Seen, waiting: set[str]) -> str | None:
    return next((f"{name} has been answered" for name in expected.names if name not in waiting), None)


def _gone(expected: Expectation, seen: Seen, _: set[str]) -> str | None:
    cause = "left" if expected.value == "poll_timeout" else expected.value
    for name in expected.names:
        if not any(one.name == name and one.cause in ("", cause) for one in seen.gone):
            return next((f"{name} went by {one.cause}" for one in seen.gone if one.name == name), f"{name} did not go")
    return None


def _dropped(expected: Expectation, seen: Seen, _: set[str]) -> str | None:
    dropped = {name for _, name in seen.dropped}
    return next((f"{name} is not" for name in expected.names if name not in dropped), None)


def _names(expected: Expectation, found: set[str]) -> str | None:
    return None if set(expected.names) == found else f"there are {' and '.join(sorted(found)) or 'none'}"


def _leader(expected: Expectation, seen: Seen, _: set[str]) -> str | None:
    return _names(expected, {seen.name(seen.view.leader)} if seen.view.leader else set())


def _session(expected: Expectation, seen: Seen, _: set[str]) -> str | None:
    name = expected.names[0]
    found = next((one for one in seen.view.members if seen.name(one.member_id) == name), None)
    if found is None:
        return f"{name} is no member"
    wanted_ms = -1 if expected.value == "never" else instant_ms(expected.value.removeprefix("at "))
    return _instant(wanted_ms, found.session_deadline_at_ms)


def _instant(wanted_ms: int, found_ms: int) -> str | None:
    if wanted_ms == found_ms:
        return None
    return "there is no such timer" if found_ms < 0 else f"it is at +{found_ms // 1000}.{found_ms % 1000:03}"


def _value(found: object, wanted: str) -> str | None:
    return None if str(found) == wanted else f"it is {found}"


CHECKS: dict[str, Callable[[Expectation, Seen, set[str]], str | None]] = {
    "joined": _of_answers,
    "synced": _of_answers,
    "answered": _of_answers,
    "waits": _waits,
    "evicted": _gone,
    "gone": _gone,
    "dropped": _dropped,
    "state": lambda one, seen, _: _value(seen.view.state, one.value),
    "generation": lambda one, seen, _: _value(seen.view.generation_id, one.value),
    "leader": _leader,
    "members": lambda one, seen, _: _names(one, seen.members),
    "pending": lambda one, seen, _: _names(one, {seen.name(member_id) for member_id, _ in seen.view.pending}),
    "session": _session,
    "join_phase": lambda one, seen, _: _instant(instant_ms(one.value), seen.view.join_deadline_at_ms),
    "sync_phase": lambda one, seen, _: _instant(instant_ms(one.value), seen.view.sync_deadline_at_ms),
    "rebalance": lambda _, seen, __: None if seen.prepared else "none begins",
    "nothing": lambda *_: None,
}


def check(expected: Expectation, seen: Seen, waiting: set[str]) -> str | None:
    """What is found instead of what is expected; None if it is found."""
    return CHECKS[expected.kind](expected, seen, waiting)


def unexpected(expected: Sequence[Expectation], seen: Seen) -> Iterator[str]:
    """What was seen and should have been said: answers but for a plain 0, members that went, another state."""
    said = {(one.kind, name) for one in expected for name in one.names}
    for one in seen.answers:
        plain = one.answer.error_code == 0 and not isinstance(one.operation, ops.Join | ops.Sync)
        retried = one.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        kinds = ("joined", "synced", "answered")
        if not plain and not retried and not _any(said, kinds, one.name):
            yield f"{one.name} {_outcome(one)}"
    for gone in seen.gone:
        if not _any(said, ("evicted", "gone"), gone.name):
            yield f"{gone.name} went: {gone.cause or 'not said why'}"
    for _, name in seen.dropped:
        if ("dropped", name) not in said:
            yield f"{name} dropped"
    if seen.view.state != seen.before and not any(one.kind == "state" for one in expected):
        yield f"group {seen.view.state}"


def _any(said: set[tuple[str, str]], kinds: Iterable[str], name: str) -> bool:
    return any((kind, name) in said for kind in kinds)
