"""What the verdict is made of: facts of the broker, rows of the tables, and a line for each thing that is compared.

The rules are in `verdict` (groups with generations) and `epochs` (groups with epochs). Pure functions over values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from demo import server_log
from demo.request_log import Commit
from demo.scheduling_delay import Stall, kept_waiting_ms
from demo.server_log import Fact
from demo.tables import Record

WITHIN_MS = 10
"""Both logs have whole milliseconds, and a timer may fire a few late."""


@dataclass(frozen=True)
class Tolerance:
    """How far an instant may be from the broker's log. A starved machine, whose timers fire late, may need more."""

    instant_ms: int = WITHIN_MS
    """What is allowed at any time; where the machine was seen to keep a program waiting, as much more
    (`scheduling_delay.kept_waiting_ms`): whoever logs an instant waits as well."""

    @property
    def median_ms(self) -> float:
        """For the median of all instants."""
        return self.instant_ms / 5

    @property
    def late_ms(self) -> int:
        """For a prediction to be readable after its timeout struck: not at all, unless more than usual is tolerated."""
        return max(0, self.instant_ms - WITHIN_MS)

    @property
    def first_group_ms(self) -> int:
        """For the first group that a broker ever had: it loads its classes then, between deciding, answering and
        logging."""
        return self.instant_ms * 10


DONE = {
    server_log.MEMBER_FAILED: "was silent for its session timeout",
    server_log.MEMBER_LEFT: "left the group",
    server_log.STATIC_REPLACED: "came back under its static id",
    server_log.MEMBER_ADDED: "joined the group",
    server_log.NOT_JOINED: "did not join again in time",
    server_log.NOT_SYNCED: "did not fetch its assignment in time",
    server_log.NOT_MOVED_ON: "did not give up its partitions in time",
    server_log.GROUP_EMPTY: "became empty",
    server_log.UPGRADED: "became a consumer group",
    server_log.DOWNGRADED: "became a classic group",
}
"""Fact -> what was done, after the name of who did it."""


@dataclass(frozen=True)
class Line:
    """One line of the verdict. `error_ms` is Kardia's instant minus the broker's; `lead_ms` before it happened."""

    at_ms: int
    group_id: str
    who: str
    done: str
    said: str
    lead_ms: int | None
    error_ms: int | None
    fault: str
    """What is wrong, empty if nothing is."""
    routine: bool = False
    """Of a group's first forming, the broker's first group, or a commit in a short rebalance: counted, not listed."""
    excused_by_ms: int = 0
    """For how long the machine kept a program waiting around its instant, where the error is larger than what is
    allowed at any time; 0 where it is not."""


@dataclass(frozen=True)
class Witness:
    """A client that says itself that it missed its poll interval; said when it polls again, after it has left."""

    client_id: str
    at_ms: int


@dataclass(frozen=True)
class GivenUp:
    """A client that says itself that it gave up partitions: it was called back, which waits for a poll."""

    client_id: str
    at_ms: int


@dataclass(frozen=True)
class Evidence:
    """Everything the verdict is made of, up to one instant."""

    facts: Sequence[Fact]
    members: Sequence[Record]
    rebalances: Sequence[Record]
    transitions: Sequence[Record]
    predictions: Sequence[Record]
    commits: Sequence[Commit] = ()
    """What the broker's request log says of commits."""
    witnesses: Sequence[Witness] | None = None
    """None where the clients' own words are not known."""
    tolerance: Tolerance = Tolerance()
    first_group_id: str = ""
    """The first group that the broker ever had, if the facts reach back to it."""
    stalls: Sequence[Stall] = ()
    """When the machine kept a program waiting, and for how long."""
    given_up: Sequence[GivenUp] = ()
    from_ms: int = 0
    """When the groups of the story were up: what a group with epochs did before was its forming."""
    seen_at_ms: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """(group, member, kind) to the wall-clock instant at which an open prediction was first readable in the tables."""


def is_forming(evidence: Evidence, fact: Fact) -> bool:
    """Whether a fact is from before its group was first stable."""
    first = [f.at_ms for f in evidence.facts if f.what == server_log.ASSIGNED and f.group_id == fact.group_id]
    if not first and has_epochs(evidence, fact.group_id):
        return fact.at_ms < evidence.from_ms
    return not first or fact.at_ms <= min(first)


def has_epochs(evidence: Evidence, group_id: str) -> bool:
    """Whether a group ever had epochs."""
    return any(fact.what == server_log.EPOCH_BEGAN and fact.group_id == group_id for fact in evidence.facts)


def always_ms(evidence: Evidence, group_id: str) -> int:
    """How far instants of a group may be off on an idle machine."""
    tolerance = evidence.tolerance
    return tolerance.first_group_ms if group_id == evidence.first_group_id else tolerance.instant_ms


def allowed_ms(evidence: Evidence, group_id: str, at_ms: int) -> int:
    """How far an instant of a group may be off."""
    return always_ms(evidence, group_id) + kept_waiting_ms(evidence.stalls, at_ms)


def facts_of(evidence: Evidence, what: str) -> list[Fact]:
    return [fact for fact in evidence.facts if fact.what == what]


def nearest(rows: Iterable[Record], column: str, value: str, at_ms: int) -> Record | None:
    return min((r for r in rows if r[column] == value), key=lambda r: abs(int(r["at_ms"]) - at_ms), default=None)


def line_of(
    evidence: Evidence,
    fact: Fact,
    who: str,
    said: str,
    instant: int | None,
    lead_ms: int | None = None,
    fault: str = "",
    forming: bool = False,
    done: str = "",
) -> Line:
    error = None if instant is None else instant - fact.at_ms
    if error is None:
        fault = fault or "not in the tables"
    elif abs(error) > allowed_ms(evidence, fact.group_id, fact.at_ms):
        fault = fault or f"{error:+d} ms off"
    routine = forming or fact.group_id == evidence.first_group_id
    excused = error is not None and abs(error) > always_ms(evidence, fact.group_id)
    by_ms = kept_waiting_ms(evidence.stalls, fact.at_ms) if excused else 0
    return Line(fact.at_ms, fact.group_id, who, done or DONE[fact.what], said, lead_ms, error, fault, routine, by_ms)


def invented(at_ms: int, group_id: str, who: str, said: str) -> Line:
    return Line(at_ms, group_id, who, "nothing, says the broker", said, None, None, "invented")
