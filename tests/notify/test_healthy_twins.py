"""Each alert in its healthy twin: what looks like the fault and is none, played second by second, and nobody is told.

Goal: an alert that fires on an idle topic, on a paused partition, at a start-up or in a roll-out is one that people
learn to ignore. Method: a table of scenes, each the twin of some alerts; the rows that the observer makes of them live
are folded into the view, and no finding of any kind may come up. `tests/dashboards/test_twins.py` plays them to the
rules of Prometheus, with those that are about Kardia itself; `test_rules` has the same alerts in their faults.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from api.notify.conditions import KINDS, LAG_STUCK, Finding, Found, find
from api.notify.lifecycle import Lifecycle
from api.present.folding import by_group
from api.settings import ApiSettings
from api.store import Change, Store
from kardia.events import Event, Kind
from kardia.lag.book import LagBook
from kardia.observe import Observer, ObserverSettings
from kardia.tables import TABLES, Row
from tests.lag.test_book import commit, look
from tests.support.scene import START, Scene
from tests.support.served import story_batches
from tests.support.stories import Story

SECOND = 1_000
LIBRDKAFKA = "librdkafka/2.5.0"
_SHAPES: dict[str, Any] = {name: namedtuple(name, [*table.names, "batch_id"]) for name, table in TABLES.items()}


class Told:
    """What the notifier finds, batch after batch, without files."""

    def __init__(self, root: Path) -> None:
        self._now_ms = 0
        self._batch_id = -1
        self.store = Store(ApiSettings(tables=root), lambda: self._now_ms)

    def take(self, now_ms: int, rows: Mapping[str, Sequence[Row]]) -> tuple[Finding, ...]:
        """Findings after a batch; without rows nothing was written, and time has passed."""
        self._now_ms = now_ms
        if any(rows.values()):
            self._batch_id += 1
            shaped = {name: [_SHAPES[name](*row, self._batch_id) for row in some] for name, some in rows.items()}
            samples = by_group(shaped.pop("health", ()))
            for _ in self.store.take_in(Change(shaped, samples, self._batch_id, None, {}, {}, {}, is_news=True)):
                pass
        return find(self.store).findings


def by_the_second(scene: Scene) -> Iterator[tuple[int, Mapping[str, Sequence[Row]]]]:
    """(Instant, rows that are written then): a batch after each tick."""
    observer, waiting, position = Observer(ObserverSettings("test")), list[Event](), 0
    # A scene may have been written member by member: a log is in the order of its stamps.
    for event in sorted(scene.events, key=lambda event: (event.logged_at_ms, event.kind == Kind.TICK)):
        begin, position = position, position + 100 * (event.kind != Kind.TICK)
        waiting.append(event._replace(start=begin, end=position))
        if event.kind == Kind.TICK:
            yield int(event.logged_at_ms) + 50, observer.step(waiting)
            waiting = []


def played(scene: Scene, told: Told) -> Iterator[tuple[int, Finding]]:
    """(Second, finding) of everything that is found, with one look after each tick."""
    for now_ms, rows in by_the_second(scene):
        for finding in told.take(now_ms, rows):
            yield int(now_ms - START) // SECOND, finding


# --- scenes, all of a log that is read every second


def ticking(scene: Scene, end: int) -> Scene:
    """The log has been read up to each second, and something was written meanwhile."""
    for at in range(SECOND, end + 1, SECOND):
        scene.tick(at, last_line=at - 1, first_line=at - SECOND + 1)
    return scene


def stable(scene: Scene, *members: str, poll_ms: int = 60_000) -> Scene:
    """The members have joined by 1 s, each with a partition."""
    scene.joined(900, 1, dict.fromkeys(members, 800.0), rebalance_ms=poll_ms)
    scene.synced(1_000, *members, partitions=dict.fromkeys(members, 1))
    return scene


def idle(software: str) -> Scene:
    """Its topic gets records for 20 s, and then none: a client that polls goes on, and has nothing to commit."""
    scene, end = stable(Scene(software=software), "a", "b", "c", poll_ms=13_500), 80_000
    for first, member in enumerate(("a", "b", "c"), 3):
        scene.heartbeats(first * SECOND, end, member)
        for at in range(1_500, end, 500):
            scene.fetch(at, member, data=500 if at < 20_000 else 0)
        for at in range(6_000, 26_000 if software == LIBRDKAFKA else end, 5_000):
            scene.commit(at + 7, member, min(at, 20_000))
    return ticking(scene, end)


def paused(others_fetch: bool) -> Scene:
    """All its partitions are paused from 20 s to 70 s, or all but one: it polls, and fetches nothing, or less. It
    commits by itself."""
    scene, end = stable(Scene(), "a", poll_ms=30_000), 90_000
    scene.heartbeats(3_000, end, "a")
    for at in range(1_500, end, 500):
        if others_fetch or not 20_000 <= at < 70_000:
            scene.fetch(at, "a", data=500)
    for at in range(6_000, end, 5_000):
        scene.commit(at + 7, "a", min(at, 20_000))
    return ticking(scene, end)


def long_polls() -> Scene:
    """A topic on which little comes, and a fetch.max.wait.ms of 5 s: a FETCH is logged when it is answered."""
    scene, end = stable(Scene(), "a", poll_ms=30_000), 80_000
    scene.heartbeats(3_000, end, "a")
    for at in range(6_500, end, 5_000):
        scene._event(Kind.FETCH, at, since=at - 4_990, group_id="", client_id="a", detail={"bytes": 0})
    return ticking(scene, end)


def long_batches() -> Scene:
    """Each batch takes 12 s of a poll interval of 30 s."""
    scene, end = stable(Scene(), "a", poll_ms=30_000), 80_000
    scene.heartbeats(3_000, end, "a")
    for at in range(2_000, end, 12_000):
        scene.fetch(at, "a", data=500)
        scene.commit(at + 5, "a", at)
    return ticking(scene, end)


def busy_broker() -> Scene:
    """Heartbeats come up to 4.4 s late, of a session of 10 s, for some time."""
    scene, end = stable(Scene(), "a", "b"), 60_000
    for member in ("a", "b"):
        at = 3_000.0
        while at < end:
            scene.heartbeat(at, member)
            at += 4_400 if 20_000 <= at < 40_000 else 3_000
        for at in range(1_500, end, 500):
            scene.fetch(at, member)
    return ticking(scene, end)


def joining(scene: Scene, at: float, generation: int, members: dict[str, float], new: tuple[str, ...]) -> None:
    """A rebalance of half a second in which some are new, after each was handed out its id, and all of it."""
    for member in new:
        scene.member_id_required(at, member)
    scene.joined(at + 400, generation, dict.fromkeys(members, at + 100), first=())
    scene.synced(at + 500, *members, partitions=dict.fromkeys(members, 1))


def start_ups(restarts: int, pods: int = 3) -> Scene:
    """An application is started, and then restarted: its pods come one after another, and go one after another."""
    scene, at, generation = Scene(), 1_000.0, 0
    for run in range(restarts + 1):
        names = [f"pod-{run}-{number}" for number in range(pods)]
        for number, name in enumerate(names):
            generation += 1
            joining(scene, at, generation, dict.fromkeys(names[: number + 1], at), (name,))
            scene.heartbeats(at + 600, at + 1_900, *names[: number + 1], every=600)
            at += 2_000
        for _ in range(8):
            scene.heartbeats(at, at + 2_900, *names, every=3_000)
            at += 3_000
        if run == restarts:
            break
        while names:
            scene.leave(at, names.pop(0))
            generation += 1
            if names:
                at += 500
                scene.heartbeats(at, at + 1, *names, error=27)
                scene.joined(at + 400, generation, dict.fromkeys(names, at + 100.0))
                scene.synced(at + 500, *names, partitions=dict.fromkeys(names, 1))
            at += 1_000
        at += 5_000
    return ticking(scene, int(at))


def grown(pods: int = 6) -> Scene:
    """Two pods are scaled to six, of which each joins for itself."""
    scene, names = stable(Scene(), "pod-0", "pod-1"), ["pod-0", "pod-1"]
    scene.heartbeats(3_000, 12_000, *names)
    at = 12_000.0
    for number in range(2, pods):
        names.append(f"pod-{number}")
        scene.member_id_required(at, names[-1])
        scene.heartbeats(at + 200, at + 201, *names[:-1], error=27)
        scene.joined(at + 700, number, dict.fromkeys(names, at + 300.0) | {names[-1]: at + 10})
        scene.synced(at + 800, *names, partitions=dict.fromkeys(names, 1))
        at += 3_000
    scene.heartbeats(at, at + 30_000, *names)
    return ticking(scene, int(at) + 30_000)


def rolled_out() -> Scene:
    """Three pods are replaced one after another."""
    scene, names = stable(Scene(), "old-0", "old-1", "old-2"), ["old-0", "old-1", "old-2"]
    scene.heartbeats(3_000, 12_000, *names)
    at, generation = 12_000.0, 1
    for number in range(3):
        scene.leave(at, names.pop(0))
        for joins in ((), (f"new-{number}",)):
            generation += 1
            for name in joins:
                scene.member_id_required(at, name)
            scene.heartbeats(at + 200, at + 201, *names, error=27)
            scene.joined(at + 700, generation, dict.fromkeys(names, at + 300.0) | dict.fromkeys(joins, at + 10))
            names += joins
            scene.synced(at + 800, *names, partitions=dict.fromkeys(names, 1))
            scene.heartbeats(at + 2_000, at + 4_000, *names, every=2_500)
            at += 4_000
    scene.heartbeats(at, at + 20_000, *names)
    return ticking(scene, int(at) + 20_000)


def slow_rebalance() -> Scene:
    """One that waits for a batch of 15 s, of an interval of a minute."""
    scene = stable(Scene(), "a", "b")
    scene.heartbeats(3_000, 10_000, "a", "b")
    scene.member_id_required(10_000, "c")
    scene.heartbeats(12_000, 25_000, "b", error=27)
    scene.joined(25_500, 2, {"a": 12_000.0, "b": 25_400.0, "c": 10_010.0})
    scene.synced(25_600, "a", "b", "c", partitions={"a": 1, "b": 1, "c": 1})
    scene.heartbeats(27_000, 60_000, "a", "b", "c")
    return ticking(scene, 60_000)


def static_restart() -> Scene:
    """A process with a group.instance.id is restarted within its session."""
    scene = Scene()
    scene.joined(900, 1, {"a-1": 800.0, "b-1": 800.0}, instances={"a-1": "a", "b-1": "b"}, session_ms=20_000)
    scene.synced(1_000, "a-1", "b-1", partitions={"a-1": 1, "b-1": 1})
    scene.heartbeats(3_000, 12_000, "a-1", "b-1")
    scene.replaced(17_000, "a-2", "a", session_ms=20_000)
    scene.synced(17_100, "a-2")
    scene.heartbeats(12_000, 40_000, "b-1")
    scene.heartbeats(20_000, 40_000, "a-2")
    return ticking(scene, 40_000)


def nobody() -> Scene:
    """All members have left; the log goes on with other things."""
    scene = stable(Scene(), "a")
    scene.heartbeats(3_000, 10_000, "a")
    scene.leave(10_000, "a")
    return ticking(scene, 60_000)


class Twin(NamedTuple):
    """A history in which nothing is wrong."""

    of: tuple[str, ...]
    """The alerts whose fault it looks like, without "KafkaGroup" in front."""
    scene: Callable[[], Scene]


TWINS: dict[str, Twin] = {
    "idle topic": Twin(("ZombieMember", "PollTimeoutImminent"), lambda: idle("apache-kafka-java/4.1.1")),
    "idle topic, librdkafka": Twin(("ZombieMember", "PollTimeoutImminent"), lambda: idle(LIBRDKAFKA)),
    "one partition paused": Twin(("PollTimeoutImminent",), lambda: paused(True)),
    "all partitions paused": Twin(("PollTimeoutImminent", "ZombieMember"), lambda: paused(False)),
    "long polls": Twin(("PollTimeoutImminent",), long_polls),
    "long batches": Twin(("PollTimeoutImminent", "ZombieMember"), long_batches),
    "busy broker": Twin(("SessionTimeoutImminent",), busy_broker),
    "start-up": Twin(("RebalanceStorm", "PendingMemberBlocks", "SessionTimeoutImminent"), lambda: start_ups(0, 6)),
    "start-up, restarted twice": Twin(("RebalanceStorm", "Evictions"), lambda: start_ups(2)),
    "scaled out": Twin(("RebalanceStorm", "PendingMemberBlocks"), grown),
    "roll-out": Twin(("RebalanceStorm", "Evictions", "SessionTimeoutImminent"), rolled_out),
    "slow rebalance": Twin(("RebalanceStuck", "ZombieMember", "SessionTimeoutImminent"), slow_rebalance),
    "static member restarted": Twin(("StaticMemberFenced", "Evictions", "SessionTimeoutImminent"), static_restart),
    "nobody there": Twin(("Evictions", "RebalanceStuck"), nobody),
}
OF_THE_FEED = frozenset({"KardiaSourceStalled", "KardiaLogGap", "KardiaFeedStale"})
"""All of these histories are their twins: every log is read."""


@pytest.mark.parametrize("name", TWINS)
def test_of_what_is_well_nobody_is_told(name: str, tmp_path: Path) -> None:
    assert [(second, one.alert, one.description) for second, one in played(TWINS[name].scene(), Told(tmp_path))] == []


PAUSED = "e10_paused-4.4.0"
"""Java's consumer, which pauses all its partitions for 20 s of a poll interval of 12 s, and that twice: `resting`
commits by itself, `byhand` and `newer` (the consumer protocol) do not commit at all, so that nothing but heartbeats is
left of them."""


def test_a_client_that_pauses_everything_and_shows_nothing_is_told_of_once_and_as_no_zombie(tmp_path: Path) -> None:
    """It is not to be told from one that is stuck until its interval is over; then it is known to poll where nothing
    shows it, and its second pause is nothing that anybody is told of."""
    told, found = Told(tmp_path), dict[tuple[str, str], list[int]]()
    for now_ms, rows in story_batches(PAUSED):
        for finding in told.take(now_ms + 50, rows):
            found.setdefault((finding.alert, finding.group), []).append(now_ms)
    assert found.keys() == {("KafkaGroupPollTimeoutImminent", group) for group in ("byhand", "newer")}
    said = map(json.loads, (Story(PAUSED).folder / "truth.jsonl").read_text().splitlines())
    rests = [line["t"] for line in said if line.get("what") == "rests"]
    for instants in found.values():
        assert min(rests) < min(instants)
        assert max(instants) < min(rests) + 12_000 + 5_000, "its interval, and two heartbeats"


def test_every_alert_has_a_twin() -> None:
    played_alerts = {f"KafkaGroup{alert}" for twin in TWINS.values() for alert in twin.of}
    assert KINDS.keys() == played_alerts | OF_THE_FEED | {LAG_STUCK}


def test_a_group_that_has_read_an_idle_topic_is_not_stuck(tmp_path: Path) -> None:
    """It reads everything, then nothing comes for ten minutes; another one works an hour of lag off."""
    told, book, end, lifecycle = Told(tmp_path), LagBook("test", 0, 20.0), 100, Lifecycle()
    for number in range(120):
        at_ms = int(START) + number * 5_000
        end += 5 if number < 20 else 0
        rows: list[Any] = list(book.commit(commit(2 * number, at_ms - 500, end))) if number <= 20 else []
        rows += book.commit(commit(2 * number + 1, at_ms - 400, 100 + 40 * number, partition=1))
        rows += book.look(look(number, at_ms, {0: end, 1: 100_000}))
        progress = {"cluster_id": "test", "shard": -1, "at_ms": at_ms, "known_at_ms": at_ms, "certainty": "exact"}
        progress |= {"lane": 0, "source": "b/request/1", "complete_to_ms": at_ms}
        progress |= dict.fromkeys(("events", "duplicates", "late", "lines", "ignored", "rejected", "gaps"), 0)
        row = tuple(progress.get(column) for column in TABLES["progress"].names)
        findings = told.take(at_ms + 50, {"lag": rows, "progress": [row]})
        assert lifecycle.step(at_ms + 50, Found(findings, {})) == []
