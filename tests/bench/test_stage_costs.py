"""The stages that ask the API and the notifier, at the smallest size: they run through and report what they promise.
The numbers depend on the machine and are not checked."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from bench import population
from bench.crowd import Crowd, moved
from bench.lanes import alone, told
from bench.population import HOT_SHARD, Batch, Population, Shape
from bench.run import STAGES
from cli.verbs.bench import bench
from ingest.wire.batches import FORMAT, batches
from kardia.events import DEFAULT_LANES, lane_of
from kardia.observe import ObserverSettings
from kardia.tables import TABLES, Row
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.schemas import to_tables

pytestmark = pytest.mark.slow


def test_a_crowd_is_the_same_again_and_its_rows_fit_the_tables() -> None:
    crowds = [Crowd(30, 2, hours=1), Crowd(30, 2, hours=1)]
    assert crowds[0].size == sum(map(len, crowds[1].members.values())) == 300
    at_ms = 1_790_000_000_000
    said = [[*crowd.hours(at_ms), crowd.present(at_ms), crowd.second(at_ms + 1_000, 0)] for crowd in crowds]
    assert said[0] == said[1]
    assert set(said[0][0]) == {"transitions", "rebalances", "members", "health", "progress"}
    for number, rows in enumerate(said[0]):
        to_tables(rows, number)  # refuses what does not fit
    names = TABLES["members"].names
    present = {row[names.index("member_id")] for rows in said[0] for row in rows.get("members", ())}
    gone = {
        row[names.index("member_id")]
        for rows in said[0]
        for row in rows.get("members", ())
        if row[names.index("ended_at_ms")] is not None
    }
    assert present - gone == {member for members in crowds[0].members.values() for member in members}


def test_samples_of_five_seconds_hold_everybody_and_are_moved_in_time() -> None:
    crowd = Crowd(30, 1, hours=1)
    samples = crowd.samples(1_000_000)
    assert len({member for sample in samples for member in sample["member_id"].to_pylist()}) == crowd.size
    later = moved(samples[0], 5_000, 7)
    assert set(later["batch_id"].to_pylist()) == {7}
    for name in ("at_ms", "session_deadline_at_ms"):
        assert [value + 5_000 for value in samples[0][name].to_pylist()] == later[name].to_pylist()
    assert later["session_timeout_ms"] == samples[0]["session_timeout_ms"]


def test_a_population_lives_well_and_is_rolled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members are held, nobody is evicted, and groups rebalance; lanes alone are measured with it."""
    monkeypatch.setattr(population, "ROLLED_OUT_EVERY_S", 40.0)
    people = Population(20, 2_000.0)
    lanes = [
        Lane(ObserverFactory(ObserverSettings("t")), "t", number, DEFAULT_LANES) for number in range(DEFAULT_LANES)
    ]
    said: dict[str, list[Row]] = {}

    def take(batch: Batch) -> None:
        for number, events in batch.items():
            lane = lanes[number]
            values = [value for value, _ in batches(events)]
            first = max(0, lane.next_offset)
            for name, rows in lane.step(
                [Record(first + at, 0, FORMAT.encode(), value) for at, value in enumerate(values)]
            ).items():
                said.setdefault(name, []).extend(rows)

    start_ms = 1_790_000_000_000.0
    for formed in people.forming(start_ms):
        take(formed)
    for half in range(40):
        take(people.stretch(start_ms + half * 500, start_ms + (half + 1) * 500, [people.probe(half, start_ms)])[0])
    members = [dict(zip(TABLES["members"].names, row, strict=True)) for row in said["members"]]
    assert {row["member_id"] for row in members} >= {entry[2] for group in people.groups for entry in group}
    assert not [row for row in members if row["ended_at_ms"] is not None]
    assert sum(row["group_id"].startswith("probe-") for row in members) == 40
    assert len(said["rebalances"]) > len(people.groups)
    assert not said["rejected"]
    assert sum(row[TABLES["progress"].names.index("gaps")] for row in said["progress"]) == 0


def test_what_stands_out_of_a_population_does() -> None:
    at_ms = 1_790_000_000_000.0
    hot = Population(50, 2_000.0, shape=Shape(hot_share=0.9))
    list(hot.forming(at_ms))
    sent = [event for events in hot.stretch(at_ms, at_ms + 5_000)[0].values() for event in events if event.shard >= 0]
    assert 0.85 < sum(event.shard == HOT_SHARD for event in sent) / len(sent) < 0.95
    restless = Population(20, 2_000.0, shape=Shape(large=300, restless_every_s=1.0))
    list(restless.forming(at_ms))
    for second in range(8):
        restless.stretch(at_ms + second * 1_000, at_ms + (second + 1) * 1_000)
    assert (restless.members, len(restless.groups[0]), restless.generations[0] > 4) == (490, 300, True)
    assert len({member_id for _, _, member_id, *_ in restless.groups[0]}) == 300
    assert set(restless.generations[1:]) == {1}
    assert [Shape().trouble_lane(), Shape(hot_share=0.9).trouble_lane()] == [None, lane_of(HOT_SHARD)]
    assert Shape(large=300).trouble_lane() == lane_of(restless.groups[0][0][0])


def test_lanes_alone_are_measured() -> None:
    one = alone(30, 3_000.0)
    assert (one.members, one.bases >= 0, one.rows_s > 0) == (300, True, True)
    assert one.step_bytes < 175 < one.base_bytes
    assert told(one).value == one.batch_ms > 0


def test_the_api_stage_asks_everything_and_is_answered(tmp_path: Path) -> None:
    results = {result.what: result for result in STAGES["api"](tmp_path, 0.01)}
    for what in (
        "the present at half of that rate",
        "at an instant of the day before",
        "at a moment ago",
        "a day of history",
    ):
        first = results[f"{what}, p50"]
        assert first.more["answers"] >= 15, first.more  # of 20: on a busy machine some may be given up
        times = [results[f"{what}, {at}"].value for at in ("p50", "p95", "p99", "longest")]
        assert times == sorted(times)
        assert all(results[f"{what}, {at}"].baseline is not None for at in ("p50", "p99"))
    assert {"group, p99", "members, p99", "member, p99", "list, p99"} <= results.keys()
    answer, row = results["CPU of an answer"], results["CPU of a row folded in"]
    assert answer.value > 0
    assert row.value > 0
    assert answer.more["kB each"] > 1
    assert 0 < results["at an instant of the day before, read at most"].more["MB each"] < 2
    assert results["api, after the load"].value > 0


def test_the_notify_stage_is_told_what_was_foretold(tmp_path: Path) -> None:
    results = {result.what: result for result in STAGES["notify"](tmp_path, 0.01)}
    for way in ("Alertmanager", "webhook"):
        first = results[f"evidence to {way}, p50"]
        assert first.more["alerts"] >= 3
        assert first.baseline is not None
        assert results[f"evidence to {way}, longest"].value >= first.value


def test_one_process_reads_a_log_to_its_end(tmp_path: Path) -> None:
    results = {result.what: result for result in STAGES["sustained"](tmp_path, 0.02)}
    for members in ("200", "2,000"):
        sustained = results[f"lines that one core sustains, {members} members"]
        assert sustained.more["lines"] > 1_000
        assert 0 < sustained.value < (sustained.baseline or 0)
        assert results[f"CPU of a line until {members} members have joined"].value > 0


@pytest.mark.long
def test_the_verbs_stage_asks_as_a_user_does(tmp_path: Path) -> None:
    results = STAGES["verbs"](tmp_path, 0.05)
    assert [result.what.split()[1] for result in results] == ["groups", "group", "explain"]
    assert all(result.value > (result.baseline or 0) > 0 for result in results)
    assert results[0].target is not None


def test_the_help_of_the_benchmark_names_every_stage() -> None:
    help_text = get_type_hints(bench, include_extras=True)["only"].__metadata__[0].help
    named = help_text.removeprefix("Stage: ").partition(";")[0].split(", ")
    assert named == list(STAGES)
