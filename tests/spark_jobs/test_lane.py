"""A lane between two batches: foreign records, repeats, losses in the topic, and state that survives."""

from __future__ import annotations

import itertools
from functools import cache

import msgspec
import pytest

from ingest.wire.batches import encode_batch
from kardia.events import ALL_SHARDS, Event, Kind
from kardia.observe import ObserverSettings
from kardia.tables import REJECTED, SELF_TEST, SURPRISE_CLASSES, TRANSITIONS
from spark_jobs.archive.deduplication import Nothing, Once
from spark_jobs.archive.rows import rows_of
from spark_jobs.checkpoint import state_codec
from spark_jobs.errors import StateError
from spark_jobs.lane import FINISH, Lane, Record
from spark_jobs.lane_model import ObserverFactory, Rows
from tests.spark_jobs.support import CLUSTER, story_messages

FACTORY = ObserverFactory(ObserverSettings(cluster_id=CLUSTER))
OF_BEFORE = msgspec.msgpack.encode({"events": [], "heads": [], "counts": [], "columns": []})
"""A folded batch as it was once."""

GOOD = b"msgpack/1"
LANES = 6


def records_of(lane: int) -> list[Record]:
    """The recorded story as this lane's records."""
    values = [value for partition, value, _ in story_messages() if partition == lane]
    return [Record(offset, 0, GOOD, value) for offset, value in enumerate(values)]


@cache
def busiest() -> int:
    """The lane with most bytes."""
    sizes = [sum(len(record.value or b"") for record in records_of(lane)) for lane in range(LANES)]
    return sizes.index(max(sizes))


def new_lane(*, finishing: bool = False) -> Lane:
    return Lane(FACTORY, "kardia.events", busiest(), LANES, finishing=finishing)


def told(steps: list[Rows]) -> dict[str, list[object]]:
    """Rows of several steps, without those that depend on how the input was split."""
    tables = ("transitions", "rebalances", "members", "predictions", "rejected", "disagreements")
    return {name: [row for rows in steps for row in rows.get(name, ())] for name in tables}


def rejected(rows: Rows) -> list[dict[str, object]]:
    return [dict(zip(REJECTED.names, row, strict=True)) for row in rows["rejected"]]


def test_the_story_says_something_in_this_lane() -> None:
    assert told([new_lane().step(records_of(busiest()))])["transitions"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record(0, 5, GOOD, None), "not_an_event"),
        (Record(0, 5, None, None), "not_an_event"),
        (Record(0, 5, None, b"x"), "not_an_event"),
        (Record(0, 5, b"json/1", b"{}"), "not_an_event"),
        (Record(0, 5, GOOD, b""), "not_an_event"),
        (Record(0, 5, GOOD, b"\x00\xff" * 400), "not_an_event"),
        (Record(0, 5, GOOD, msgspec.msgpack.encode([[1, 2]])), "not_an_event"),
        (Record(0, 5, GOOD, b"\xdd\xff\xff\xff\xff"), "not_an_event"),
        (Record(0, 5, b"msgpack/2", OF_BEFORE), "not_an_event"),
        (Record(0, 5, b"msgpack/4", b"\x90"), "unsupported_version"),
        (Record(0, 5, b"msgpack/99999999999999999999", b"\x90"), "unsupported_version"),
        (Record(0, 5, b"msgpack/-1", b"\x90"), "not_an_event"),
        (Record(0, 5, FINISH, b""), "not_an_event"),
    ],
)
def test_a_record_that_is_no_batch_is_rejected_and_the_lane_goes_on(record: Record, reason: str) -> None:
    lane = new_lane()
    (row,) = rejected(lane.step([record]))
    assert (row["reason"], row["start"], row["end"]) == (reason, 0, 1)
    assert row["source"] == f"kardia.events/topic/{busiest()}"
    assert len(str(row["excerpt"] or "")) <= 200
    after = lane.step([item._replace(offset=item.offset + 1) for item in records_of(busiest())])
    assert told([after])["transitions"] == told([new_lane().step(records_of(busiest()))])["transitions"]


def test_events_of_an_unknown_kind_or_another_lane_are_rejected() -> None:
    zero = (0, 1, 1.0, 1.0, 1.0, 1.0)
    strange = Event(77, busiest(), "b/request/x", *zero)
    elsewhere = Event(int(Kind.HEARTBEAT), busiest() + 1, "b/request/x", *zero)
    rows = rejected(
        new_lane().step([Record(0, 0, GOOD, encode_batch([strange])), Record(1, 0, GOOD, encode_batch([elsewhere]))])
    )
    assert [row["reason"] for row in rows] == ["unsupported_version", "not_an_event"]
    assert "77" in str(rows[0]["expected"])


def test_any_split_into_batches_and_any_order_inside_one_says_the_same() -> None:
    records = records_of(busiest())
    whole = told([new_lane().step(records)])
    for size in (1, 3, 7):
        lane = new_lane()
        steps = [lane.step(records[start : start + size][::-1]) for start in range(0, len(records), size)]
        assert told(steps) == whole


def test_a_lane_that_is_saved_and_loaded_after_every_batch_says_the_same() -> None:
    records = records_of(busiest())
    whole = told([new_lane().step(records)])
    kept = new_lane()
    unbroken = [kept.step([record]) for record in records]
    lane, steps = new_lane(), []
    for record in records:
        steps.append(lane.step([record]))
        blob = lane.save()
        lane = new_lane()
        lane.load(blob)
        assert lane.save() == blob
    assert told(steps) == whole
    assert steps == unbroken  # progress and health as well: no count is lost with the process


def test_records_that_are_read_twice_count_once() -> None:
    records = records_of(busiest())
    lane = new_lane()
    first = lane.step(records[:10])
    second = lane.step(records[5:])
    assert told([first, second]) == told([new_lane().step(records)])


def test_a_jump_in_the_offsets_is_a_gap_of_the_brokers_heard_of() -> None:
    records = records_of(busiest())
    half = len(records) // 2
    lane = new_lane()
    lane.step(records[:half])
    rows = lane.step([record._replace(offset=record.offset + 5) for record in records[half:]])
    gaps = sum(row[15] for row in rows["progress"])
    assert gaps == len(lane.sources) == 2  # the broker, and the offsets topic, whose records come from no broker's log
    untouched = new_lane()
    untouched.step(records[:half])
    assert sum(row[15] for row in untouched.step(records[half:])["progress"]) == 0


def test_a_topic_that_begins_late_is_no_gap() -> None:
    rows = new_lane().step([record._replace(offset=record.offset + 100) for record in records_of(busiest())])
    assert sum(row[15] for row in rows["progress"]) == 0


def test_the_end_of_a_replay_gives_what_was_held() -> None:
    lane = new_lane(finishing=True)
    records = records_of(busiest())
    before = lane.step(records)
    after = lane.step([Record(len(records), 0, FINISH, None)])
    straight = new_lane()
    straight.step(records)
    expected = straight.model.finish()
    assert told([after]) == told([expected])
    assert told([before])["transitions"]


@pytest.mark.parametrize("damage", [b"", b"\x03", b"\x02", b"\x02\x93", b"\x01\x93", b"\x00abc"])
def test_state_of_another_version_or_damaged_state_is_refused(damage: bytes) -> None:
    with pytest.raises(StateError, match="lane 3"):
        state_codec.decode(damage, "lane 3")


def test_a_snapshot_the_observer_does_not_know_is_refused() -> None:
    lane = new_lane()
    lane.step(records_of(busiest()))
    state = state_codec.decode(lane.save(), "lane")
    for strange in ({}, {**state.observer, "groups": [[["too", "short"], []]]}):
        with pytest.raises(StateError, match=r"does not fit this version.*--new-generation"):
            new_lane().load(state_codec.encode(state._replace(observer=strange)))


def test_every_cut_of_saved_state_is_refused_or_whole() -> None:
    lane = new_lane()
    lane.step(records_of(busiest())[:6])
    blob = lane.save()
    for length in itertools.chain(range(min(len(blob), 400)), range(400, len(blob), 997)):
        with pytest.raises(StateError):
            state_codec.decode(blob[:length], "lane 0")
    assert state_codec.decode(blob, "lane 0").next_offset == 6


def test_columns_used_here_are_where_they_are_thought_to_be() -> None:
    from kardia.tables import PROGRESS

    assert PROGRESS.names[15] == "gaps"
    assert TRANSITIONS.names[6] == "seq"
    assert ALL_SHARDS == -1


def test_records_of_another_cluster_are_refused_and_change_nothing() -> None:
    """Two clusters in one topic with groups of the same names: each job takes its own."""
    mine = [record._replace(cluster=CLUSTER.encode()) for record in records_of(busiest())]
    mixed = [
        record._replace(offset=2 * at + foreign, cluster=b"other\x1b" if foreign else record.cluster)
        for at, record in enumerate(mine)
        for foreign in (0, 1)
    ]
    lane = Lane(FACTORY, "kardia.events", busiest(), LANES, cluster=CLUSTER)
    rows = lane.step(mixed)
    alone = Lane(FACTORY, "kardia.events", busiest(), LANES, cluster=CLUSTER).step(mine)
    refused = rejected(rows)
    assert {(row["reason"], row["excerpt"]) for row in refused} == {("foreign_cluster", r"b'other\x1b'")}
    assert [row["start"] for row in refused] == [2 * at + 1 for at in range(len(mine))]
    assert {name: told([rows])[name] for name in ("transitions", "members", "rebalances")} == {
        name: told([alone])[name] for name in ("transitions", "members", "rebalances")
    }
    once = Once({}, Nothing())
    assert len(list(rows_of(CLUSTER, busiest(), once, mixed))) == len(
        list(rows_of(CLUSTER, busiest(), Once({}, Nothing()), mine))
    )


def test_a_record_without_a_cluster_is_taken() -> None:
    """Archived files have no header; the lane of a replay asks for none."""
    assert told([new_lane().step(records_of(busiest()))]) == told(
        [Lane(FACTORY, "kardia.events", busiest(), LANES, cluster=CLUSTER).step(records_of(busiest()))]
    )


def test_a_lane_that_tests_itself_tells_the_same_and_how_much_was_predicted() -> None:
    """In steps, and after a restart between any two of them; the self-test begins anew then."""
    tested = ObserverFactory(ObserverSettings(cluster_id=CLUSTER), tests_itself=True)
    records, size = records_of(busiest()), 7
    lane, plain, steps, without = Lane(tested, "kardia.events", busiest(), LANES), new_lane(), [], []
    for at in range(0, len(records), size):
        steps.append(lane.step(records[at : at + size]))
        without.append(plain.step(records[at : at + size]))
    assert told(steps) == told(without)
    assert [row for rows in steps for row in rows.get("surprises", ())] == []
    counts = [row[-len(SELF_TEST) :] for rows in steps for row in rows.get("progress", ())]
    answers, predicted, *surprising = (sum(row[place] or 0 for row in counts) for place in range(len(SELF_TEST)))
    assert answers > predicted > answers / 2
    assert surprising == [0] * len(SURPRISE_CLASSES)
    half = len(records) // 2
    before = Lane(tested, "kardia.events", busiest(), LANES)
    first = before.step(records[:half])
    after = Lane(tested, "kardia.events", busiest(), LANES)
    after.load(before.save())
    assert told([first, after.step(records[half:])]) == told(without)
