"""Between which instants a group was loaded, of which a course knows only that one of them stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kardia.coordinator.happenings import Happening
from kardia.follow.candidates import give_up, load_anew
from kardia.follow.clues import Clue, Moved
from kardia.follow.plan import Plan, replayed
from kardia.follow.standing import Standing, renewed
from kardia.follow.tolerances import INSTANT_MS, LOAD_REPLAYS_MAX


class Load(NamedTuple):
    """A load in a course. It was not before the group had been given up, nor after the first request that was answered
    out of it."""

    at_ms: int
    first_ms: int
    last_ms: int


def load_of(standing: Standing, end: Happening) -> Load | None:
    """The load by which a session began that ended; None where there was none, or where it was renewed since."""
    loads = [one for one in _loads(standing.plan) if one.at_ms <= end.at_ms]
    if not loads or end.kind != "session_expired":
        return None
    last, heard = max(loads), renewed(standing.plan.items, end.member_id, end.at_ms)
    return last if heard is None or heard[1] <= last.at_ms else None


def _loads(plan: Plan) -> Iterator[Load]:
    given_up_ms = max((at_ms + 1 for at_ms, act in plan.acts if act is give_up), default=-1)
    acted = [at_ms for at_ms, act in plan.acts if act is load_anew]
    for at_ms in acted:
        later = (one.at_ms - 1 for one in plan.items if isinstance(one, Clue) and one.at_ms > at_ms)
        yield Load(at_ms, given_up_ms if given_up_ms >= 0 else at_ms, next(later, at_ms))
    for item, after in pairwise(plan.items):
        loads = isinstance(item, Moved) and isinstance(after, Clue)
        if loads and not any(item.at_ms <= at_ms < after.at_ms for at_ms in acted):
            yield Load(after.at_ms - 1, item.at_ms, after.at_ms - 1)


def reach_ms(standing: Standing, load: Load, far_ms: int) -> tuple[int, int]:
    """How far towards an instant the load may have been: to the far end if that stands, else to the nearest one that
    was found not to; and the replays that took."""
    plan, replays = standing.plan, 0
    rest = tuple(one for one in plan.acts if one != (load.at_ms, load_anew))
    stands_ms, fails_ms, tried_ms = load.at_ms, far_ms, far_ms
    while replays < LOAD_REPLAYS_MAX and abs(stands_ms - tried_ms) > INSTANT_MS:
        replays += 1
        _, found, _ = replayed(standing.base, replace(plan, acts=(*rest, (tried_ms, load_anew))))
        if found is None:
            stands_ms = tried_ms
        else:
            fails_ms = tried_ms
        tried_ms = (fails_ms + stands_ms) // 2
    return fails_ms, replays
