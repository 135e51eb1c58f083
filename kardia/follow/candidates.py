"""Candidates: the few things that the log does not show and that may be behind an answer that is not as the model says.

A fixed order, the smallest assumption first. Each gives a plan; the window is replayed with it, and a candidate stands
where every answer of the window is then the log's. A further kind is a function here and a row of `CANDIDATES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer
from kardia.coordinator.timers import Timer, TimerKind
from kardia.follow.clues import Clue
from kardia.follow.course import Act, Contradiction, Course, Item
from kardia.follow.model import Model, Seat
from kardia.follow.plan import Plan
from kardia.follow.tolerances import INSTANT_MS, LATE_MS, ORDER_MS
from kardia.kafka.states import ErrorCode, GroupState

CANDIDATES: dict[str, str] = {
    "assumption dropped": "the group had lived before the log, and was in a higher generation",
    "died": "an Empty group was removed, with its offsets or by an administrator, and began anew in generation 1",
    "order": "two requests of one instant took effect the other way round",
    "instant": "a line came late: what is computed from its stamp is later than it was",
    "timer late": "a timer fired later than it was due",
    "setting": "the broker is configured otherwise than was assumed",
    "rebalance begun unseen": "a JoinGroup that is not in the log began a rebalance",
    "gone unseen": "a member went, and no request in the log says so",
    "joined unseen": "a JoinGroup of a member is not in the log",
    "heard unseen": "a request of a member that renewed its session is not in the log",
    "loaded": "the coordinator has loaded the group anew, and all sessions began again",
}
"""Name -> meaning: the closed list."""

UNSEEN = frozenset({"rebalance begun unseen", "gone unseen", "joined unseen", "heard unseen", "loaded"})
"""Those by which something happened that the log does not show; the others are about instants, and what was assumed. A
load is not among them where the log shows that there was one."""


class Candidate(NamedTuple):
    """One thing to try."""

    name: str
    member_id: str
    plan: Plan
    at_wake: bool = False
    """It is about timers that are taken to have waited for the end of a silence."""


@dataclass
class Evidence:
    """What a group's follower knows beside the window."""

    following: Sequence[Item] = ()
    """Items that come next, as far as they are known."""
    stood_ms: int = 0
    """For so long the broker's log was silent shortly before: a timer may be so much later."""
    assumed: bool = False
    """The window begins with an Empty group whose generation was assumed."""
    seats: dict[str, Seat] = field(default_factory=dict)
    """What members asked for when they were seen to join last."""
    connections: dict[str, str] = field(default_factory=dict)
    """Member -> the connection of its request before."""
    loads: Sequence[tuple[int, int]] = ()
    """When the coordinator may have loaded the group: from, to."""
    has_loaded: bool = False
    """That it has is shown; otherwise the log was silent, and no more."""
    refuted_delays: frozenset[int] = frozenset()
    """Values of the initial delay that answers have shown to be untrue."""
    settings_open: bool = True
    """No answer has shown yet what the broker's initial delay is."""


class Case(NamedTuple):
    """A contradiction, and all that may lie behind it."""

    plan: Plan
    course: Course
    """As it stands at the contradiction."""
    found: Contradiction
    evidence: Evidence


def is_guess(one: Candidate, evidence: Evidence) -> bool:
    """Whether a candidate needs something that the log does not show."""
    return one.at_wake or (one.name in UNSEEN and not (one.name == "loaded" and evidence.has_loaded))


def candidates(case: Case) -> Iterator[Candidate]:
    """What may be behind a contradiction, in the order in which it is tried."""
    shown, guessed = ((_loaded,), ()) if case.evidence.has_loaded else ((), (_loaded,))
    kinds = (
        _assumption,
        _died,
        _order,
        _timer_late,
        _held_less,
        _setting,
        *shown,
        _phase,
        _handed_out,
        _unseen,
        _heard,
        *guessed,
    )
    return chain.from_iterable(kind(case) for kind in kinds)


def _assumption(case: Case) -> Iterator[Candidate]:
    if (
        case.evidence.assumed
        and case.found.what == "generation"
        and case.found.predicted is not None
        and isinstance(case.found.clue, Clue)
    ):
        shift = case.plan.shift + case.found.clue.generation_id - case.found.predicted.generation_id
        if shift > 0:
            yield Candidate("assumption dropped", "", replace(case.plan, shift=shift))


def _died(case: Case) -> Iterator[Candidate]:
    """An Empty group was removed since: by its retention, or by a DeleteGroups."""
    clue, group = case.found.clue, case.course.model.group
    if case.found.what == "generation" and isinstance(clue, Clue) and clue.generation_id == 1 and group is not None:
        first = min(_burst(case.plan, case.evidence, clue), key=lambda one: one.at_ms)
        yield Candidate("died", "", case.plan.acting_before(first.number, _begin_anew))


def _begin_anew(model: Model, _: int) -> list[Answer]:
    group = model.group
    if group is not None and group.state is GroupState.EMPTY:
        group.generation_id = 0
    return []


def _order(case: Case) -> Iterator[Candidate]:
    """The last request took effect before one that seems to be earlier, or one that seems to be later did before it;
    each between its arrival and its answer."""
    if not case.plan.items or not isinstance(case.plan.items[-1], Clue):
        return
    last = case.plan.items[-1]
    by_ms = (
        last.at_ms
        if case.found.what != "late" or not isinstance(case.found.clue, Clue)
        else case.found.clue.answered_at_ms
    )
    if by_ms < last.at_ms and last.arrived_at_ms <= by_ms + ORDER_MS:
        yield Candidate("order", last.member_id, replace(case.plan, items=_moved(case.plan.items[:-1], last, by_ms)))
    for back in range(2, min(len(case.plan.items), 4) + 1):
        other = case.plan.items[-back]
        if not isinstance(other, Clue) or last.arrived_at_ms > other.at_ms + ORDER_MS:
            break
        if other.connection != last.connection:
            moved = last._replace(at_ms=min(last.at_ms, other.at_ms))
            items = (*case.plan.items[:-back], moved, *case.plan.items[-back:-1])
            yield Candidate("order", last.member_id, replace(case.plan, items=items))
    yield from _timers_first(case, last)
    waits = isinstance(last.operation, ops.Join | ops.Sync)
    for back in range(2, min(len(case.plan.items), 4) + 1):
        other = case.plan.items[-back]
        parks = isinstance(other, Clue) and isinstance(other.operation, ops.Join | ops.Sync)
        if isinstance(other, Clue) and not parks and other.connection != last.connection:
            if other.answered_at_ms + ORDER_MS < last.at_ms:
                continue
            moved = other._replace(at_ms=last.at_ms)
            items = (*case.plan.items[:-back], *case.plan.items[len(case.plan.items) - back + 1 :], moved)
            yield Candidate("order", other.member_id, replace(case.plan, items=items))
    busy = {one.connection for one in case.course.open.values()} | {last.connection}  # each asks one thing at a time
    near = [
        one
        for one in case.evidence.following
        if isinstance(one, Clue) and one.arrived_at_ms <= by_ms + ORDER_MS and one.connection not in busy
    ]
    for other in near[: 4 if waits else 2]:
        yield Candidate("order", other.member_id, replace(case.plan, items=_moved(case.plan.items, other, by_ms)))


def _timers_first(case: Case, last: Clue) -> Iterator[Candidate]:
    """What is due in the same instant was before: all of it, or one session."""
    model = case.course.model
    by_ms, at_wake, plan = last.at_ms + ORDER_MS, model.wakes_at(last.at_ms), case.plan
    if model.next_deadline_at_ms() <= by_ms or case.found.what == "late":
        yield Candidate("order", "", plan.acting_before(last.number, _let_pass), at_wake)
    group = model.group
    ids = [] if group is None else group.ids
    for member_id in [one for one in ids if 0 <= model.session_deadline_at_ms(one) <= by_ms][:3]:
        yield Candidate("order", member_id, plan.acting_before(last.number, _ending(member_id)), at_wake)


def _let_pass(model: Model, at_ms: int) -> list[Answer]:
    return model.advance(at_ms + ORDER_MS)


def _ending(member_id: str) -> Act:
    return lambda model, at_ms: model.end_session(member_id, at_ms)


def _moved(items: tuple[Item, ...], clue: Clue, to_ms: int) -> tuple[Item, ...]:
    """With a clue that took effect at an instant, before what took effect then."""
    place = len(items)
    while place and items[place - 1].at_ms >= to_ms:
        place -= 1
    return (*items[:place], clue._replace(at_ms=to_ms), *items[place:])


def _timer_late(case: Case) -> Iterator[Candidate]:
    """One of the last timers, or the last two, fire after what contradicts."""
    at_ms = case.plan.items[-1].at_ms
    to_ms = at_ms + 1
    if isinstance(case.found.clue, Clue) and case.found.what == "early":
        to_ms = case.found.clue.answered_at_ms
    bound_ms = LATE_MS + case.evidence.stood_ms
    late = [
        timer
        for timer in reversed(case.course.model.fired)
        if timer.deadline_at_ms <= at_ms
        and 0 < to_ms - case.plan.origin_ms(timer.key, timer.deadline_at_ms) <= bound_ms
        and to_ms > timer.deadline_at_ms
    ][:4]
    for timer in late:
        yield Candidate("timer late", timer.key[2], case.plan.held(timer.key, timer.deadline_at_ms, to_ms))
    just = [
        one for one in case.course.model.fired if at_ms - one.deadline_at_ms <= ORDER_MS and to_ms > one.deadline_at_ms
    ]
    together = case.plan
    for timer in {*late, *just}:
        together = together.held(timer.key, timer.deadline_at_ms, to_ms)
    if len({*late, *just}) > 1:
        yield Candidate("timer late", "", together)


def _held_less(case: Case) -> Iterator[Candidate]:
    """A timer that is held fires before what contradicts."""
    at_ms = case.plan.items[-1].at_ms
    for (key, deadline_ms), to_ms in case.plan.holds.items():
        if deadline_ms < at_ms - 1 <= to_ms:
            yield Candidate("timer late", key[2], case.plan.held(key, deadline_ms, at_ms - 1))


def _setting(case: Case) -> Iterator[Candidate]:
    clue, settings = case.found.clue, case.plan.settings or case.course.model.shard.settings
    if not isinstance(clue, Clue) or not isinstance(clue.operation, ops.Join):
        return
    session_ms = clue.operation.session_timeout_ms
    group = case.course.model.group
    if case.found.what == "error" and clue.error_code == ErrorCode.INVALID_SESSION_TIMEOUT:
        if session_ms < 60_000:
            yield Candidate(
                "setting",
                "",
                replace(case.plan, settings=settings._replace(group_min_session_timeout_ms=session_ms + 1)),
            )
        yield Candidate(
            "setting", "", replace(case.plan, settings=settings._replace(group_max_session_timeout_ms=session_ms - 1))
        )
    predicted = case.found.predicted
    if predicted is not None and predicted.error_code == ErrorCode.INVALID_SESSION_TIMEOUT:
        wider = settings._replace(
            group_min_session_timeout_ms=min(session_ms, settings.group_min_session_timeout_ms),
            group_max_session_timeout_ms=max(session_ms, settings.group_max_session_timeout_ms),
        )
        yield Candidate("setting", "", replace(case.plan, settings=wider))
    if group is not None and case.found.what == "error" and clue.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED:
        for size in sorted({len(group.members), group.joined, len(group.members) - 1} - {0, -1}, reverse=True):
            yield Candidate("setting", "", replace(case.plan, settings=settings._replace(group_max_size=size)))
    if predicted is not None and predicted.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED:
        yield Candidate(
            "setting", "", replace(case.plan, settings=settings._replace(group_max_size=settings.group_max_size + 1))
        )
    if case.evidence.settings_open and case.found.what in ("early", "late") and group is not None and group.from_empty:
        for delay_ms in _delays(
            _burst(case.plan, case.evidence, clue), settings.initial_rebalance_delay_ms, case.evidence
        ):
            changed = settings._replace(initial_rebalance_delay_ms=delay_ms)
            yield Candidate("setting", "", replace(case.plan, settings=changed))


def _delays(burst: Sequence[Clue], known_ms: int, evidence: Evidence) -> list[int]:
    """Initial delays that fit: once, or as often as it was extended, from the first JoinGroup to the answers. Round
    values first; the exact one where none of them fits."""
    first = min(burst, key=lambda one: one.at_ms)
    end_ms = min(one.answered_at_ms for one in burst)
    least_ms, most_ms = end_ms - first.at_ms - INSTANT_MS, end_ms - first.arrived_at_ms + ORDER_MS
    fitting = [
        delay_ms
        for times in (1, 2, 3, 4)
        for delay_ms in ROUND_MS
        if least_ms <= times * delay_ms <= most_ms and (times == 1 or len(burst) >= times)
    ]
    exact_ms = end_ms - first.at_ms
    tried = dict.fromkeys((*fitting, round(exact_ms / 100) * 100, exact_ms))
    return [one for one in tried if one >= 0 and one != known_ms and one not in evidence.refuted_delays][:5]


ROUND_MS = (
    0,
    100,
    200,
    250,
    500,
    1_000,
    1_500,
    2_000,
    2_500,
    3_000,
    4_000,
    5_000,
    6_000,
    10_000,
    15_000,
    20_000,
    30_000,
    60_000,
)
"""What people configure as a delay."""


def _burst(plan: Plan, evidence: Evidence, clue: Clue) -> list[Clue]:
    """The JoinGroups that were answered together with one."""
    return [
        one
        for one in (*plan.items, *evidence.following)
        if isinstance(one, Clue)
        and isinstance(one.operation, ops.Join)
        and one.error_code == 0
        and one.generation_id == clue.generation_id
    ] or [clue]


def _phase(case: Case) -> Iterator[Candidate]:
    """A join phase ended when the log says, by what it does not show: who has not joined joined unseen where the
    leader's list has it, and is gone where not."""
    clue, model = case.found.clue, case.course.model
    if not isinstance(clue, Clue) or not isinstance(clue.operation, ops.Join) or clue.error_code != 0:
        return
    burst = _burst(case.plan, case.evidence, clue)
    leader = next((one for one in burst if one.members), None)
    end_ms = min(one.answered_at_ms for one in burst)
    first = min(burst, key=lambda one: one.at_ms)
    group = model.group
    if case.found.what == "late" and group is not None and group.state is GroupState.PREPARING:
        ahead_ms = model.join_deadline_at_ms() - end_ms
        if 0 < ahead_ms <= LATE_MS and group.all_joined():
            yield Candidate("instant", "", case.plan.acting(end_ms, lambda model, at: model.finish_phase(at)))
        yield Candidate("gone unseen", "", case.plan.acting(end_ms, _end_phase(leader, case.evidence)))
    if case.found.what in ("early", "members", "leader", "error", "generation"):
        waiting = case.plan.acting_before(first.number, _expecting(first.number))
        yield Candidate("joined unseen", "", waiting.acting(end_ms, _end_phase(leader, case.evidence)))


def _expecting(number: int) -> Act:
    def act(model: Model, at_ms: int) -> list[Answer]:
        model.expect(f"unseen-{number}", at_ms, 3_600_000)
        return []

    return act


def _end_phase(leader: Clue | None, evidence: Evidence) -> Act:
    def act(model: Model, at_ms: int) -> list[Answer]:
        group = model.group
        if group is None or group.state is not GroupState.PREPARING:
            return []
        answers: list[Answer] = []
        if leader is not None:
            known = list(group.members.values())
            for place, (member_id, instance_id) in enumerate(leader.instances):
                member = group.members.get(member_id)
                if member is not None and (member.waiting_join is not None or instance_id):
                    continue
                like = known[0] if known else None
                guessed = Seat(
                    member_id,
                    instance_id,
                    like.session_timeout_ms if like else 10_000,
                    like.rebalance_timeout_ms if like else 60_000,
                    like.protocols if like else (),
                )
                model.seat(evidence.seats.get(member_id, guessed), at_ms, -100 - place)
            for member_id in [one for one in group.members if one not in leader.members]:
                model.shard.forget_one(group, member_id)
        return [*answers, *model.finish_phase(at_ms)]

    return act


def _unseen(case: Case) -> Iterator[Candidate]:
    """Somebody came or went whom no line shows."""
    last, clue = case.plan.items[-1], case.found.clue
    if not isinstance(last, Clue) or not isinstance(clue, Clue):
        return
    group = case.course.model.group
    if group is None:
        return
    told = {last.error_code, clue.error_code}
    if ErrorCode.REBALANCE_IN_PROGRESS in told:
        yield Candidate(
            "rebalance begun unseen", "", case.plan.acting_before(last.number, lambda model, at: model.begin(at))
        )
        silent = sorted(group.members, key=case.course.model.session_deadline_at_ms)
        for member_id in [one for one in silent if one != last.member_id][:2]:
            yield Candidate("gone unseen", member_id, case.plan.acting_before(last.number, _removing(member_id)))
    if ErrorCode.UNKNOWN_MEMBER_ID in told and clue.member_id in group.members:
        yield Candidate("gone unseen", clue.member_id, case.plan.acting_before(last.number, _removing(clue.member_id)))


def _handed_out(case: Case) -> Iterator[Candidate]:
    """A member joins with an id of which nobody saw that it was handed out."""
    clue = case.found.clue
    if not isinstance(clue, Clue) or not isinstance(clue.operation, ops.Join) or case.found.predicted is None:
        return
    if (
        case.found.predicted.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        and clue.error_code == 0
        and clue.operation.member_id
    ):
        session_ms = clue.operation.session_timeout_ms
        yield Candidate(
            "joined unseen",
            clue.member_id,
            case.plan.acting_before(clue.number, _handing(clue.operation.member_id, session_ms)),
        )


def _handing(member_id: str, session_ms: int) -> Act:
    def act(model: Model, at_ms: int) -> list[Answer]:
        model.expect(member_id, at_ms, session_ms)
        return []

    return act


def _removing(member_id: str) -> Act:
    return lambda model, at_ms: model.remove(member_id, at_ms)


def _heard(case: Case) -> Iterator[Candidate]:
    """A member whose session ended was heard once more, by a request that was never answered: so its connection is
    another one since."""
    clue = case.found.clue
    for timer in _sessions_ended(case.course):
        member_id = timer.key[2]
        if isinstance(clue, Clue) and clue.member_id == member_id:
            before = case.evidence.connections.get(member_id, "")
            if not before or before == clue.connection:
                continue
            at_ms = timer.deadline_at_ms - 1
            yield Candidate("heard unseen", member_id, case.plan.acting(at_ms, _renewing(member_id)))


def _sessions_ended(course: Course) -> list[Timer]:
    return [timer for timer in reversed(course.model.fired) if timer.key[0] == TimerKind.SESSION][:3]


def _renewing(member_id: str) -> Act:
    def act(model: Model, at_ms: int) -> list[Answer]:
        model.renew(member_id, at_ms)
        return []

    return act


def _loaded(case: Case) -> Iterator[Candidate]:
    """Where something shows that a coordinator has loaded the group: just so late that a session, which ended before
    what contradicts, would end after it; or at the end of the stretch, or before."""
    if not case.evidence.loads:
        return
    from_ms, to_ms = case.evidence.loads[-1]
    seats = case.evidence.seats
    late = []
    for timer in _sessions_ended(case.course):
        lasts_ms = seats[timer.key[2]].session_timeout_ms if timer.key[2] in seats else 10_000
        late.append(case.plan.items[-1].at_ms + 1 - lasts_ms)
    late += _loads_that_end_it(case)
    for at_ms in dict.fromkeys((*late, to_ms, (from_ms + to_ms) // 2)):
        if at_ms > from_ms:
            yield Candidate("loaded", "", case.plan.acting(from_ms + 1, give_up).acting(at_ms, load_anew))


def give_up(model: Model, at_ms: int) -> list[Answer]:
    """The coordinator is no longer there, or no longer this one."""
    return model.unload(at_ms)


def load_anew(model: Model, at_ms: int) -> list[Answer]:
    """A coordinator has the group, as its records say."""
    return model.load(at_ms)


def _loads_that_end_it(case: Case) -> list[int]:
    """A join phase that ended for nothing that the log shows: at these loads the sessions of those it waited for began
    that ended then."""
    clue, group = case.found.clue, case.course.model.group
    if group is None or case.found.what != "late":
        return []
    if not isinstance(clue, Clue) or not isinstance(clue.operation, ops.Join):
        return []
    end_ms = min(one.answered_at_ms for one in _burst(case.plan, case.evidence, clue))
    absent = {one.session_timeout_ms for one in group.members.values() if one.waiting_join is None}
    return [end_ms - lasts_ms for lasts_ms in sorted(absent, reverse=True)[:2]]
