"""The faults of a night, drawn by seed: the same seed and length always give the same steps. Starts and stops nothing.

Five things go on at once, each with its own chance: consumers come and go, the broker dies or stands still, Kardia's
own roles do, logs are copied and emptied, and the topic of events is made again. A night ends with a quiet time, in
which everything has to become well again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from demo.scenario import MemberPlan

QUIET_BEGIN_S = 25.0
"""Until the first fault: the groups have formed by then."""

QUIET_END_S = 60.0
"""After the last fault: longest session and poll interval are over by then, and a broker that died is well again."""

SPARK, LOCAL = "spark", "local"
ROLES_OF = {SPARK: ("collect", "stream", "serve", "notify"), LOCAL: ("live",)}
"""Engine -> the roles that `kardia up` starts with it."""

ROLES = (*ROLES_OF[SPARK], *ROLES_OF[LOCAL])

BROKER, REQUEST_LOG, SERVER_LOG, EVENTS_TOPIC = "broker", "request log", "server.log", "kardia.events"
LOGS = (REQUEST_LOG, SERVER_LOG)
"""What else a fault befalls than consumers and roles."""

SESSION_MS, POLL_MS, LONG_POLL_MS = 8_000, 12_000, 60_000

MEMBERS: tuple[MemberPlan, ...] = (
    *(MemberPlan(f"fast-{n}", "fast", "", SESSION_MS, POLL_MS) for n in (1, 2, 3)),
    *(MemberPlan(f"slow-{n}", "slow", "", SESSION_MS, LONG_POLL_MS) for n in (1, 2, 3)),
    *(MemberPlan(f"seat-{n}", "seats", f"chair-{n}", SESSION_MS, POLL_MS) for n in (1, 2, 3)),
    MemberPlan("alone-1", "alone", "", 6_000, POLL_MS),
    *(MemberPlan(f"wide-{n}", "wide", "", 20_000, LONG_POLL_MS) for n in (1, 2)),
)
"""Groups of one to three members: short and long poll intervals, static seats, one member alone, a long session."""

TWIN = "-twin"
"""End of the name of a second process with the static id of the first."""


@dataclass(frozen=True, order=True)
class Step:
    """At `at_s` after the groups are up: do `what` to `whom` (a client id, a role, or one of the words above)."""

    at_s: float
    what: str
    whom: str
    seconds: float = 0.0
    """Of a stall: how long. Of a log that is copied and emptied: how long after the copy was made."""


def plan_of(client_id: str) -> MemberPlan:
    """The settings of a consumer; a twin has those of the first under its own name."""
    name = client_id.removesuffix(TWIN)
    plan = next(plan for plan in MEMBERS if plan.client_id == name)
    return replace(plan, client_id=client_id)


def draw(seed: int, length_s: float, engine: str = SPARK) -> list[Step]:
    """All steps of a night in their order. `length_s` is counted from when the groups are up to the end."""
    until_s = length_s - QUIET_END_S
    steps: list[Step] = []
    kinds: list[Callable[[Random, float], Iterator[Step]]] = [
        _consumers,
        _broker,
        lambda chance, until_s: _roles(chance, until_s, ROLES_OF[engine]),
        _logs,
    ]
    if engine == SPARK:  # the other one has no topic
        kinds.append(_topic)
    for place, tell in enumerate(kinds):
        # A chance of its own each: another kind of fault more does not change those that there are.
        steps += tell(Random(seed * 1_000 + place), until_s)
    return sorted(step for step in steps if step.at_s <= length_s - QUIET_END_S / 2)


def _consumers(chance: Random, until_s: float) -> Iterator[Step]:
    """One thing after the other, some seconds apart; each makes good again what it did."""
    at_s = QUIET_BEGIN_S
    while at_s < until_s:
        plan = chance.choice(MEMBERS)
        name, session_s = plan.client_id, plan.session_timeout_ms / 1_000
        what = chance.choice(("kill", "kill", "leave", "stall", "freeze", "roll", "twin", "bounce"))
        if what == "kill":
            yield Step(at_s, "kill", name)
            yield Step(at_s + chance.uniform(0.2, 2.0) * session_s, "start", name)
        elif what == "leave":
            yield Step(at_s, "leave", name)
            yield Step(at_s + chance.uniform(1.0, 20.0), "start", name)
        elif what == "bounce":
            yield Step(at_s, "leave", name)
            yield Step(at_s + chance.uniform(0.2, 1.0), "start", name)
        elif what == "stall":
            # Shorter and longer than the poll interval of most.
            yield Step(at_s, "stall", name, round(chance.uniform(6.0, 22.0), 1))
        elif what == "freeze":
            yield Step(at_s, "freeze", name)
            yield Step(at_s + chance.uniform(0.5, 1.6) * session_s, "thaw", name)
        elif what == "roll":
            pace_s = chance.uniform(1.5, 6.0)
            mates = [mate.client_id for mate in MEMBERS if mate.group_id == plan.group_id]
            for place, mate in enumerate(mates):
                yield Step(at_s + place * pace_s, "leave", mate)
                yield Step(at_s + place * pace_s + min(1.0, pace_s / 2), "start", mate)
        else:
            seat = chance.choice([one for one in MEMBERS if one.instance_id]).client_id
            yield Step(at_s, "start", seat + TWIN)
            yield Step(at_s + chance.uniform(3.0, 12.0), "leave", seat + TWIN)
            yield Step(at_s + chance.uniform(13.0, 16.0), "again", seat)
        at_s += chance.uniform(3.0, 18.0)


def _broker(chance: Random, until_s: float) -> Iterator[Step]:
    """Every minute or three: a kill, an orderly restart, or a stop; short ones, and longer than every session."""
    at_s = QUIET_BEGIN_S + chance.uniform(10.0, 60.0)
    while at_s < until_s:
        away_s = chance.choice((chance.uniform(0.0, 3.0), chance.uniform(3.0, 12.0), chance.uniform(12.0, 30.0)))
        what = chance.choice(("kill", "kill", "freeze", "freeze", "stop"))
        yield Step(at_s, what, BROKER)
        yield Step(at_s + away_s, "thaw" if what == "freeze" else "start", BROKER)
        at_s += away_s + chance.uniform(45.0, 150.0)


def _roles(chance: Random, until_s: float, roles: Sequence[str]) -> Iterator[Step]:
    """Every minute or three one of Kardia's roles is killed, or stopped for a while. Seldom enough for a supervisor
    that gives up at the sixth fall in five minutes."""
    at_s = QUIET_BEGIN_S + chance.uniform(0.0, 60.0)
    while at_s < until_s:
        role = chance.choice(roles)
        if chance.random() < 0.7:
            yield Step(at_s, "kill", role)
        else:
            yield Step(at_s, "freeze", role)
            yield Step(at_s + chance.uniform(2.0, 20.0), "thaw", role)
        at_s += chance.uniform(50.0, 170.0) * (1.0 if len(roles) > 1 else 1.5)


def _logs(chance: Random, until_s: float) -> Iterator[Step]:
    """Every minute a log is rotated as logrotate's `copytruncate` does it: copied, and then emptied. What the broker
    writes in between is lost; of most copies that is nothing."""
    at_s = QUIET_BEGIN_S + chance.uniform(0.0, 20.0)
    while at_s < until_s:
        between_s = chance.choice((0.0, chance.uniform(0.0, 0.02), chance.uniform(0.02, 0.5)))
        yield Step(at_s, "copytruncate", chance.choice(LOGS), round(between_s, 3))
        at_s += chance.uniform(20.0, 100.0)


def _topic(chance: Random, until_s: float) -> Iterator[Step]:
    """Every five to ten minutes: job and collector begin anew with it, which takes them a minute."""
    at_s = QUIET_BEGIN_S + chance.uniform(20.0, 120.0)
    while at_s < until_s:
        yield Step(at_s, "make again", EVENTS_TOPIC)
        at_s += chance.uniform(300.0, 600.0)
