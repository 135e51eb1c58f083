"""What it costs to follow a request, beside what the observer takes for it: CPU time of this process, best of three."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kardia.events import DEFAULT_LANES, Event, Kind, lane_of
from kardia.follow import Following
from kardia.follow.clues import FOLLOWED
from kardia.observe import Observer, ObserverSettings
from tests.truth.fleet.run import play
from tests.truth.follow.measured import HEALTHY, events_of, meta_of, once, scenario_of

TIMES = 3


def costs() -> list[dict[str, Any]]:
    """Rows for healthy stories and a run with faults, full of rebalances, and for half an hour, which is not."""
    stories = [(meta_of(name)["broker_version"], once(name)) for name in HEALTHY]
    run = play("3.9.2", 1, 100, scenario_of("long"))
    rebalances = [(run.version, events_of(play("3.9.2", 1, 40, scenario_of("requests"))))]
    return [
        _row("healthy stories", stories),
        _row("40 simulated groups with faults every few seconds", rebalances),
        _row("5 simulated groups for half an hour", [("3.9.2", events_of(run))]),
    ]


def _row(name: str, given: Sequence[tuple[str, Sequence[Event]]]) -> dict[str, Any]:
    kept = [
        (version, [one for one in events if one.kind in FOLLOWED or one.kind == Kind.TICK]) for version, events in given
    ]
    requests = sum(one.kind in FOLLOWED for _, events in kept for one in events)

    def follow(*, keeps_ends: bool = False) -> None:
        for version, events in kept:
            following = Following(version, keeps_ends=keeps_ends)
            following.take(events)
            following.finish()

    def observe() -> None:
        for version, events in kept:
            lanes: list[list[Event]] = [[] for _ in range(DEFAULT_LANES)]
            for event in events:
                for lane in range(DEFAULT_LANES) if event.kind == Kind.TICK else [lane_of(event.shard)]:
                    lanes[lane].append(event)
            for lane, some in enumerate(lanes):
                observer = Observer(ObserverSettings("cpu", version), lane)
                observer.step(some)
                observer.finish()

    return {
        "name": name,
        "requests": requests,
        "follower_us": round(1e6 * _best(follow) / requests, 1),
        "with_ends_us": round(1e6 * _best(lambda: follow(keeps_ends=True)) / requests, 1),
        "observer_us": round(1e6 * _best(observe) / requests, 1),
        "quiet_us": round(1e6 * _quiet_s(), 2),
    }


def _quiet_s() -> float:
    """Seconds for one heartbeat of a Stable group that only renews."""
    version, events = "3.9.2", once("c04_mpi-3.9.2")
    ordered = sorted(
        (one for one in events if one.kind in FOLLOWED and one.group_id == "g04"), key=lambda one: one.handled_at_ms
    )
    stable = next(place for place, one in enumerate(ordered) if one.kind == Kind.HEARTBEAT and one.error_code == 0)
    following = Following(version)
    following.take(ordered[: stable + 1])
    following.advance(float("inf"))
    follower, beat = following.followers["g04"], ordered[stable]
    at_ms, times = beat.handled_at_ms, 20_000
    many = [beat._replace(handled_at_ms=at_ms + 500 + number / 100) for number in range(times)]
    follower.take(_clue(many[0]))
    began_s = time.process_time()
    for one in many:
        follower.hear(one, one.handled_at_ms)
    return (time.process_time() - began_s) / times


def _clue(event: Event) -> Any:
    from kardia.follow.clues import clue_of

    return clue_of(event, 1_000_000)


def _best(act: Callable[[], None]) -> float:
    best = float("inf")
    for _ in range(TIMES):
        began_s = time.process_time()
        act()
        best = min(best, time.process_time() - began_s)
    return best
