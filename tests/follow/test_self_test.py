"""The self-test of a lane, fed as a lane is: by a process that follows logs, folded, sent twice, for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ingest.wire.batches import decode_folded
from kardia.events import Event, Kind
from kardia.follow import Counts, Follower, Following, following, self_test
from kardia.follow.clues import FOLLOWED
from kardia.follow.self_test import SelfTest
from kardia.follow.tolerances import COMPARED_EVERY_MS
from kardia.story.surprises import text
from kardia.stretches import Stretch
from kardia.tables import SELF_TEST, SURPRISE_CLASSES, SURPRISES
from tests.follow.test_candidates import Broker, alone, commit, heartbeat, join, sync
from tests.follow.test_planted import _no_generation_counts, simulated
from tests.follow.traffic import START_MS, Traffic
from tests.live.living import Living
from tests.truth.follow.measured import events_of, meta_of, once

Step = tuple[list[Event], list[Stretch]]

HEALTHY = ("c04_mpi-4.1.2", "o04_mpi-2.3.1")
DISTURBED = ("d01_kill_long-4.4.0", "d02_kill_short-4.4.0", "d03_coordkill_classic-3.9.2", "d03_stand_still-3.9.2")


def steps_of(name: str, directory: Path) -> list[list[Step]]:
    """What each lane of one process took of a story, step by step."""
    living = Living(directory, name)
    with living.alive() as running:
        living.to_the_end(running)
    found = []
    for steps in living.steps.values():
        batches = [[decode_folded(value) for value in step] for step in steps]
        found.append(
            [
                ([event for one in step for event in one.events], [part for one in step for part in one.stretches])
                for step in batches
            ]
        )
    return found


def fed(steps: Iterable[Step], version: str, times: int = 1) -> tuple[Counter[str], list[dict[str, Any]]]:
    """(What is counted of one lane, rows of `surprises`); each step is taken so many times."""
    test, rows = SelfTest("c", version), []
    for events, stretches in steps:
        for _ in range(times):
            rows += test.step(events, stretches)
    rows += test.finish()
    return Counter(test.take_counts()), [dict(zip(SURPRISES.names, row, strict=True)) for row in rows]


def offline(name: str) -> Counts:
    """What comes of the whole log at once, of groups that begin in the middle."""
    whole = Following(meta_of(name)["broker_version"], begins=False)
    whole.take(once(name))
    whole.finish()
    return whole.counts()


@pytest.mark.parametrize("name", [*HEALTHY, *DISTURBED])
def test_line_by_line_it_counts_what_the_whole_log_does(name: str, tmp_path: Path) -> None:
    counted, surprises = Counter[str](), []
    for lane in steps_of(name, tmp_path):
        once_each, rows = fed(lane, meta_of(name)["broker_version"])
        assert fed(lane, meta_of(name)["broker_version"], times=2) == (once_each, rows)
        counted.update(once_each)
        surprises += rows
    counts = offline(name)
    assert surprises == []
    assert counted["answers"] == counts.answers > 100
    assert counted["predicted"] == counts.predicted


def in_steps(events: Sequence[Event], step_ms: float = 700.0) -> list[Step]:
    """Requests as they are written, one a line, with a tick behind each step."""
    written = sorted(events, key=lambda one: one.logged_at_ms)
    ordered = [one._replace(start=place, end=place + 1) for place, one in enumerate(written)]
    steps: list[Step] = [([], [])]
    for event in ordered:
        step = steps[-1][0]
        if step and event.logged_at_ms - step[0].logged_at_ms > step_ms:
            step.append(_tick(event.source, event.logged_at_ms))
            steps.append(([event], []))
        else:
            step.append(event)
    steps[-1][0].append(_tick(ordered[-1].source, ordered[-1].logged_at_ms + 3_600_000))
    return steps


def _tick(source: str, at_ms: float) -> Event:
    return Event(int(Kind.TICK), -1, source, 0, 0, at_ms, at_ms, at_ms, at_ms)


def test_surprises_come_as_rows_with_their_class_and_are_counted_by_it() -> None:
    counted, rows = fed(in_steps(events_of(simulated(_no_generation_counts))), "3.9.2")
    assert len(rows) > 20
    assert {row["surprise_class"] for row in rows} >= {"broker_not_as_release"}
    by_class = Counter(row["surprise_class"] for row in rows)
    assert {name: counted[name] for name in SURPRISE_CLASSES} == {name: by_class[name] for name in SURPRISE_CLASSES}
    assert counted["answers"] > counted["predicted"] > 0
    assert all(row["kafka_version"] == "3.9.2" and row["source"] and row["known_at_ms"] >= row["at_ms"] for row in rows)
    assert any(row["trace"] for row in rows)
    assert tuple(counted) == SELF_TEST


def test_the_release_is_recognised_and_nothing_is_said_before() -> None:
    events = [one._replace(connection="") for one in Traffic("3.9.2", 1).events]
    assert fed(in_steps(events), "")[0].total() == 0
    java = [one._replace(connection=f"10.0.0.1:9092-10.0.0.9:4000{one.client_id[-1:]}-0-3") for one in events]
    counted, rows = fed(in_steps(java), "")
    assert counted["answers"] == len([one for one in java if one.kind in FOLLOWED])
    assert {row["kafka_version"] for row in rows} <= {"4.4.0"}


def test_a_group_that_cannot_be_followed_is_left_out_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    others = Traffic("3.9.2", 2).events
    bad = [one._replace(group_id="bad", source=f"{one.source}b", connection=f"b{one.connection}") for one in others]
    events = [*Traffic("3.9.2", 1).events, *bad]
    take = Follower.take

    def failing(self: Follower, item: Any) -> None:
        if self.group_id == "bad":
            raise ZeroDivisionError("a defect")
        take(self, item)

    monkeypatch.setattr(Follower, "take", failing)
    counted, rows = fed(in_steps(events), "3.9.2")
    assert [(row["group_id"], row["surprise_class"], row["seen"]) for row in rows] == [
        ("bad", "own_mistake", "ZeroDivisionError: a defect")
    ]
    assert counted["predicted"] == fed(in_steps(Traffic("3.9.2", 1).events), "3.9.2")[0]["predicted"]
    once_more = Following("3.9.2")
    once_more.take(events)
    with pytest.raises(ZeroDivisionError):
        once_more.finish()


def test_groups_and_requests_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "GROUPS_MAX", 5)
    monkeypatch.setattr(following, "HELD_MAX", 40)
    events = [
        one._replace(
            group_id=f"g{number}", source=f"10.0.0.1:9092/request/{number}", connection=f"{number}{one.connection}"
        )
        for number in range(12)
        for one in Traffic("3.9.2", number).events
    ]
    test = SelfTest("c", "3.9.2")
    for step in in_steps(events):
        test.step(*step)
        (whole,) = test._followings.values()
        assert len(whole.followers) <= 5
        assert whole.held <= 40 + len(step[0])
    assert whole.left_out


def test_a_group_of_many_surprises_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SURPRISES_MAX", 3)
    rows = fed(in_steps(events_of(simulated(_no_generation_counts))), "3.9.2")[1]
    assert max(Counter(row["group_id"] for row in rows).values()) == 3


def test_a_step_costs_a_comparison_each_half_second_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(Following, "follow", lambda _, read_to: compared.append(dict(read_to)))
    test, source = SelfTest("c", "3.9.2"), "10.0.0.1:9092/request/one"
    test.step(Traffic("3.9.2", 1).events[:1])
    before = len(compared)
    for number in range(100):
        test.step([_tick(source, 2e12 + 10 * number)])
    assert len(compared) - before == 2
    assert COMPARED_EVERY_MS == 500


def test_a_commit_keeps_its_place_before_what_its_connection_sends_a_moment_later() -> None:
    broker = Broker()
    alone(broker, START_MS + 1_000)
    broker.ask(START_MS + 8_000, join(11, "b"))
    at_ms = START_MS + 10_000
    broker.ask(at_ms, commit(12, "a-1", 1))
    broker.ask(at_ms + 1, join(13, "a", "a-1"))
    broker.ask(at_ms + 2, sync(14, "a-1", 2, "a-1", "b-11"))
    broker.ask(at_ms + 3, sync(15, "b-11", 2))
    for number, later_ms in enumerate((500, 1_500, 4_000, 6_000)):
        broker.ask(at_ms + later_ms, heartbeat(20 + number, "a-1", 2))
    counted, rows = fed(in_steps(broker.events, step_ms=30.0), "3.9.2")
    assert rows == []
    assert counted["answers"] == len(broker.events)


def test_whatever_goes_wrong_the_lane_goes_on_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Traffic("3.9.2", 1).events
    test = SelfTest("c", "3.9.2")
    steps = in_steps(events)
    half = len(steps) // 2
    for step in steps[:half]:
        test.step(*step)
    with monkeypatch.context() as patch:
        patch.setattr(Following, "follow", lambda *_: 1 / 0)
        rows = [row for step in steps[half : half + 3] for row in test.step(*step)]
    said = [dict(zip(SURPRISES.names, row, strict=True)) for row in rows]
    assert {(one["group_id"], one["because"]) for one in said} == {("", "the self-test begins anew")}
    assert text(said[0]) == "Kardia's self-test began anew: ZeroDivisionError: division by zero."
    for step in steps[half + 3 :]:
        assert test.step(*step) == []
    test.finish()
    assert test.take_counts()["answers"] > 0


def test_renewals_that_cannot_be_taken_leave_their_group_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "hear", lambda *_: 1 / 0)
    rows = fed(in_steps(Traffic("3.9.2", 1).events), "3.9.2")[1]
    assert [(row["group_id"], row["because"]) for row in rows] == [("g", "the follower failed")]


def test_words_about_groups_that_nobody_follows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "KNOWN_MAX", 20)
    monkeypatch.setattr(following, "GROUPS_MAX", 5)
    monkeypatch.setattr(self_test, "KNOWN_MAX", 20)
    test = SelfTest("c", "3.9.2")
    for number in range(60):
        for step, _ in in_steps(Traffic("3.9.2", number).events):
            test.step([_later(one, number) for one in step])
    (whole,) = test._followings.values()
    sizes = [len(whole.left_out), len(whole._synced), len(whole._nobody_waits), len(test._ends)]
    assert max(*sizes, len(test._followed_by), len(test._shards)) <= 20 + 5


def _later(event: Event, number: int) -> Event:
    """The same of another group, hours after it."""
    by_ms = number * 7_200_000
    instants: dict[str, Any] = {name: getattr(event, name) + by_ms for name in INSTANTS}
    named: dict[str, Any] = {
        "group_id": f"g{number}",
        "source": f"10.0.0.1:9092/request/{number}",
        "connection": f"{number}",
    }
    return event._replace(**named, **instants)


INSTANTS = ("logged_at_ms", "arrived_at_ms", "handled_at_ms", "decided_at_ms")
