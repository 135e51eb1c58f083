"""Rolling restarts: which rebalances of a group are the steps of one, found once, for the story and for the alerts.

What it looks like from outside: members of before leave by themselves, one after another, and others come in their
place, who stay. So a roll-out is a run of rebalances in which (1) each began because a member left by itself, because
one joined or came back under its static id, or because a cooperative assignor took its second step; (2) nobody who
came during the run went again: that is a crash loop; (3) two or more of before went, and as many came, to one; (4) who
came speaks what those of before spoke, else the group moves between the protocols. Who comes long before the first
goes, or after the last has his heir, has come for another reason. Names play no part: pods of a deployment share a
client.id, and their hosts change. Pure; reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

STEP_MAX_MS = 300_000
"""Longest pause between two steps: a pod that takes longer to start holds its deployment up, which is another story."""

GONE_MIN = 2
"""One member that leaves and comes back is a restart."""

UNEVEN_MAX = 1
"""Who went and who came may differ by so many: one is on its way."""

EDGE_MAX = 20
"""Steps before the first in which somebody goes, and after the last, that are looked at: one heir needs one or two."""

WENT = ("left", "static_replaced")
"""How a member of before goes in a roll-out: by itself, or because its successor has its static id."""

STEPS = ("member_left", "member_joined", "static_replaced", "leader_rejoined", "metadata_changed")
"""Triggers of its rebalances; the last two are second steps of a cooperative assignor."""


class Life(NamedTuple):
    """A membership."""

    member_id: str
    joined_at_ms: int
    ended_at_ms: int | None
    end_cause: str | None
    protocol: str | None = None
    """What it spoke; None where that is not asked for."""


class Step(NamedTuple):
    """A rebalance."""

    started_at_ms: int
    completed_at_ms: int
    """Of one that runs: up to when it is known."""

    trigger: str
    member_id: str | None
    """Who began it."""


class RollOut(NamedTuple):
    """A rolling restart, as far as it is known."""

    steps: tuple[Step, ...]
    gone: tuple[str, ...]
    """Member ids of before, in the order in which they went."""

    came: tuple[str, ...]
    """Member ids of those who came, in their order."""

    @property
    def from_ms(self) -> int:
        """When its first rebalance began."""
        return self.steps[0].started_at_ms

    @property
    def to_ms(self) -> int:
        """When its last rebalance was over."""
        return self.steps[-1].completed_at_ms


def rollouts(steps: Sequence[Step], lives: Iterable[Life]) -> list[RollOut]:
    """The roll-outs among rebalances, which are in order of time; `lives` of everybody who came or went meanwhile."""
    known = sorted(lives, key=lambda life: life.joined_at_ms)
    found = (_judged(run, known) for run in _runs(steps, known))
    return [one for one in found if one is not None]


def _runs(steps: Sequence[Step], lives: Sequence[Life]) -> Iterator[list[Step]]:
    """Rebalances that may belong together, as long as they can be."""
    run: list[Step] = []
    for step in steps:
        if run and (step.started_at_ms - run[-1].completed_at_ms > STEP_MAX_MS or _breaks(run, step, lives)):
            yield run
            run = []
        if step.trigger in STEPS:
            run.append(step)
    if run:
        yield run


def _breaks(run: Sequence[Step], step: Step, lives: Sequence[Life]) -> bool:
    """Whether somebody went in this step in a way in which nobody goes in a roll-out."""
    if step.trigger not in STEPS:
        return True
    first_ms, after_ms = run[0].started_at_ms, run[-1].completed_at_ms
    return any(
        life.ended_at_ms is not None
        and after_ms < life.ended_at_ms <= step.completed_at_ms
        and (life.end_cause not in WENT or life.joined_at_ms >= first_ms)
        for life in lives
    )


def _judged(run: Sequence[Step], lives: Sequence[Life]) -> RollOut | None:
    found = [one for part in _parts(run, lives) if (one := _whole(part, lives)) is not None]
    return min(found, key=lambda one: (abs(len(one.gone) - len(one.came)), one.to_ms - one.from_ms), default=None)


def _parts(run: Sequence[Step], lives: Sequence[Life]) -> Iterator[Sequence[Step]]:
    """What may be the roll-out in a run: it, without some steps before the first in which somebody goes, or after the
    last one. With a surge the first heir comes before anybody goes, but no longer before than all the rest takes."""
    went_at_ms = [life.ended_at_ms for life in lives if life.ended_at_ms is not None]
    goes = [any(step.started_at_ms <= at <= step.completed_at_ms for at in went_at_ms) for step in run]
    if True not in goes:
        return
    first, last = goes.index(True), len(run) - 1 - goes[::-1].index(True)
    for begin in range(first, max(-1, first - EDGE_MAX), -1):
        rest_ms = run[last].completed_at_ms - run[begin + 1].started_at_ms if begin < first else 0
        if begin < first and run[begin + 1].started_at_ms - run[begin].completed_at_ms > rest_ms:
            return
        for end in range(last, min(len(run), last + EDGE_MAX)):
            yield run[begin : end + 1]


def _whole(run: Sequence[Step], lives: Sequence[Life]) -> RollOut | None:
    """The roll-out whose steps these are."""
    from_ms, to_ms = run[0].started_at_ms, run[-1].completed_at_ms
    ended = [life for life in lives if life.ended_at_ms is not None and from_ms <= life.ended_at_ms <= to_ms]
    came = [life for life in lives if from_ms <= life.joined_at_ms <= to_ms]
    if any(life.end_cause not in WENT or life.joined_at_ms >= from_ms for life in ended):
        return None
    if len(ended) < GONE_MIN or abs(len(ended) - len(came)) > UNEVEN_MAX:
        return None
    if {life.protocol for life in ended} != {life.protocol for life in came}:
        return None
    gone = sorted(ended, key=lambda life: life.ended_at_ms or 0)
    return RollOut(tuple(run), tuple(life.member_id for life in gone), tuple(life.member_id for life in came))
