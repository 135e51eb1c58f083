"""What is said of an answer that no candidate explains, and the honest rules by which its class is told.

1. `evidence_missing`: something shows that the log does not have all: a gap, a coordinator that moved or a broker that
   was silent or restarted in the window, a member in a leader's list that nobody saw join, a generation that was
   jumped over, or a log that ends while somebody waits.
2. `settings_unknown`: the answer turns on a setting of the broker that the log does not say, and no one value of it
   explains all answers so far.
3. `broker_not_as_release`: what rests on the same step of the group was answered against the release `REPEATED` times,
   and more often than as the release does. One such answer may be ours; the same one again and again is not.
4. `own_mistake`: the rest. It may be the broker all the same, but nothing shows it yet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from kardia.follow.tolerances import REPEATED


class SurpriseClass(StrEnum):
    """Why an answer was not as predicted; a closed set."""

    EVIDENCE_MISSING = "evidence_missing"
    SETTINGS_UNKNOWN = "settings_unknown"
    BROKER_NOT_AS_RELEASE = "broker_not_as_release"
    OWN_MISTAKE = "own_mistake"


Rule = tuple[str, str]
"""On what an answer rests (how the member went, or why the group changed its state), and what the release answers."""


@dataclass(frozen=True)
class Surprise:
    """An answer, or its instant, that the model predicts otherwise."""

    group_id: str
    member_id: str
    at_ms: int
    request: str
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup or OffsetCommit."""
    predicted: str
    seen: str
    tried: tuple[str, ...]
    """Names of the candidates, in order."""
    surprise_class: SurpriseClass
    because: str
    """Why it is of this class."""
    trace: str = ""
    """A trace that replays it; empty where the window is too long for one."""
    source: str = ""
    start: int = -1
    """Where the line of the answer stands."""


@dataclass
class Rules:
    """How often each rule was broken, of one broker; how often it was kept since it was broken first."""

    broken: Counter[Rule] = field(default_factory=Counter)
    kept: Counter[Rule] = field(default_factory=Counter)

    def breaks(self, rule: Rule) -> bool:
        """Take note of a broken rule; whether it is the broker that is named."""
        self.broken[rule] += 1
        return self.broken[rule] >= REPEATED and self.broken[rule] > self.kept[rule]

    def keeps(self, rule: Rule) -> None:
        """Take note of a rule that was kept; counted only of those that were broken before."""
        if rule in self.broken:
            self.kept[rule] += 1


@dataclass
class Counts:
    """What became of the answers of a group, or of many."""

    answers: int = 0
    """All that were taken."""
    surprising: Counter[str] = field(default_factory=Counter)
    """By class: answers that were surprises."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Why the group was unknown when they were given -> answers that were not predicted at all."""
    windows: int = 0
    unexplained: int = 0
    """Windows with a surprise."""
    explained: Counter[str] = field(default_factory=Counter)
    """Candidate -> how often it stood."""
    replays: int = 0

    def add(self, other: Counts) -> None:
        """Add those of another group."""
        self.answers += other.answers
        self.surprising.update(other.surprising)
        self.unknown.update(other.unknown)
        self.windows += other.windows
        self.unexplained += other.unexplained
        self.explained.update(other.explained)
        self.replays += other.replays

    @property
    def predicted(self) -> int:
        """Answers that were as the model says, at once or with a candidate."""
        return self.answers - self.surprising.total() - self.unknown.total()
