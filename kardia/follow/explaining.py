"""Explains a contradiction: which candidates stand, of all courses that stood until then.

All of the fewest edits are kept, up to a bound. But what needs something of which the log has no sign is not put beside
what needs none, unless lines of the log are lost: that a timer was late is no doubt of who was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kardia.follow.candidates import Candidate, Case, Evidence, candidates, is_guess
from kardia.follow.course import Contradiction, Course
from kardia.follow.plan import Plan, replayed
from kardia.follow.standing import Standing, apart
from kardia.follow.tolerances import CANDIDATES_MAX, STANDING_MAX


@dataclass
class Found:
    """What stands, and what was tried."""

    lacking: bool
    """Lines of the log are lost."""
    tried: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of the candidates that stand, in order."""
    standing: list[Standing] = field(default_factory=list)
    guess: bool = False
    """Those that stand need something that the log does not show."""

    def is_full(self) -> bool:
        """Whether nothing more is tried."""
        return len(self.tried) >= CANDIDATES_MAX or len(self.standing) >= STANDING_MAX

    def may_join(self, one: Candidate, *, guess: bool) -> bool:
        """Whether a candidate may stand beside those that do. Of settings the broker has one value."""
        if not self.names:
            return True
        if one.name == "gone unseen" and any(one.member_id in _gone(there) for there in self.standing):
            return False  # what ends it in a course that stands is why it has gone
        same = one.plan.settings == self.standing[0].plan.settings
        return same and (self.lacking or self.guess or not guess)

    def join(self, one: Candidate, standing: Standing, *, guess: bool) -> None:
        """It stands; what needs something unseen goes for the first that does not."""
        if self.guess and not guess and not self.lacking:
            self.names.clear()
            self.standing.clear()
        self.guess = guess if not self.names else self.guess
        if len(apart([*self.standing, standing], at_anchor=False)) > len(self.standing):
            self.names.append(one.name)
            self.standing.append(standing)


def _gone(there: Standing) -> set[str]:
    return {one.member_id for one in there.course.model.ends}


_Step = tuple[Standing, Plan, Course, Contradiction]


def explained(last: Sequence[Standing], evidence: Evidence, waiting: Iterable[object], *, lacking: bool) -> Found:
    """Try the candidates; then candidates upon those that came as far as the contradiction. `last`: courses that have
    all parted from the log."""
    found, waiting = Found(lacking), tuple(waiting)
    level: list[_Step] = [(one, one.plan, one.course, one.found) for one in last if one.found is not None]
    while level and not found.standing:
        level = _tried(found, level, evidence, waiting)
    return found


def _tried(found: Found, level: Iterable[_Step], evidence: Evidence, waiting: tuple[object, ...]) -> list[_Step]:
    """Each candidate with one more edit; those that came as far as the contradiction and no further."""
    deeper: list[_Step] = []
    for (standing, _, _, contradiction), one in _in_turn(level, evidence, waiting):
        guess = is_guess(one, evidence)
        if found.is_full():
            return []
        if not found.may_join(one, guess=guess):
            continue
        found.tried.append(one.name)
        after, again, place = replayed(standing.base, one.plan)
        if again is None:
            found.join(one, standing.gone_on(after, one.plan, waiting), guess=guess)
        elif place >= len(one.plan.items) - 1 and again != contradiction:
            deeper.append((standing, one.plan, after, again))
    return deeper


def _in_turn(
    level: Iterable[_Step], evidence: Evidence, waiting: tuple[object, ...]
) -> Iterator[tuple[_Step, Candidate]]:
    """The first candidate of each course, then the second of each, and so on: no course uses up what may be tried."""
    ways = []
    for step in level:
        standing, plan, there, contradiction = step
        known = replace(evidence, following=standing.following(waiting))
        ways.append((step, candidates(Case(plan, there, contradiction, known))))
    while ways:
        for way in tuple(ways):
            one = next(way[1], None)
            if one is None:
                ways.remove(way)
            else:
                yield way[0], one
