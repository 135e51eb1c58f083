"""`kardia stream --lanes-from`: a real topic left for another with more and with fewer lanes, through real Spark state.

Goal: the rows that the observer gives of the same history in six lanes, and each event in the archive once, whatever
dies in between. Method: a recorded story, its first part in six lanes, the next in a topic of four, the last in one of
twelve; refused while the first topic is not read to its end; killed before and after the step that counts; then a
job and a collector that still mean the topic before.
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from demo.broker import Broker
from ingest.wire.batches import decode_batch
from kardia.events import event_id
from kardia.observe import ObserverSettings
from kardia.tables import TABLES
from spark_jobs.archive.rows import is_archived
from spark_jobs.checkpoint import checkpoint_directory
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.writers.faults import VARIABLE
from tests.spark_jobs.support import (
    CLUSTER,
    HEADERS,
    LANES,
    SLICES,
    produce,
    rows,
    run_stream,
    story_messages,
    stream_command,
)

pytestmark = [pytest.mark.slow, pytest.mark.long]

KEYS = {
    "transitions": ("group_id", "seq", "at_ms", "known_at_ms", "certainty", "member_id", "to_state", "cause"),
    "rebalances": ("group_id", "known_at_ms", "started_at_ms", "joined_at_ms", "completed_at_ms", "trigger"),
    "members": ("group_id", "member_id", "known_at_ms", "certainty", "ended_at_ms", "end_cause"),
    "predictions": ("group_id", "member_id", "kind", "predicted_at_ms", "known_at_ms", "outcome"),
}
"""What of a row is compared."""

CUT = SLICES // 2


def _topic(kafka: Broker, name: str, lanes: int, begin: int, end: int | None) -> str:
    kafka.create_topic(name, lanes)
    produce(kafka.bootstrap, name, story_messages(lanes=lanes, begin=begin, end=end))
    return name


def _expected() -> dict[str, Counter[tuple[object, ...]]]:
    """What six lanes say that nothing has disturbed."""
    factory, messages = ObserverFactory(ObserverSettings(cluster_id=CLUSTER)), story_messages()
    found: dict[str, Counter[tuple[object, ...]]] = {name: Counter() for name in KEYS}
    for number in range(LANES):
        lane = Lane(factory, "any", number, LANES)
        values = [value for partition, value, _ in messages if partition == number]
        given = lane.step([Record(offset, 0, HEADERS[0][1], value) for offset, value in enumerate(values)])
        for name, columns in KEYS.items():
            places = [TABLES[name].names.index(column) for column in columns]
            found[name].update(tuple(row[place] for place in places) for row in given.get(name, ()))
    return found


def _told(home: Path) -> dict[str, Counter[tuple[object, ...]]]:
    return {
        name: Counter(tuple(row[column] for column in columns) for row in rows(home / "tables", name))
        for name, columns in KEYS.items()
    }


def test_lanes_are_changed_and_changed_again(kafka: Broker, tmp_path: Path) -> None:
    first = _topic(kafka, "six", 6, 0, CUT)
    command = stream_command(kafka.bootstrap, first, tmp_path, "--once")
    assert run_stream(command).returncode == 0
    second = _topic(kafka, "four", 4, CUT, CUT + 7)
    over = stream_command(kafka.bootstrap, second, tmp_path, "--once", "--lanes-from", first)

    again = story_messages(begin=CUT - 1, end=CUT)[:1]
    produce(kafka.bootstrap, first, again)
    refused = run_stream(over)
    assert refused.returncode == 2
    assert "1 records of six are not read yet" in refused.stderr
    assert run_stream(command).returncode == 0, "a repeat, which changes no row"

    live = checkpoint_directory.load(tmp_path / "checkpoint" / "live")
    assert live is not None
    batch = _last_batch(tmp_path)
    killed = run_stream(over, {VARIABLE: f"lanes:before@{batch}"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3_000:]
    assert checkpoint_directory.load(tmp_path / "checkpoint" / "live") == live, "it is the old one"
    killed = run_stream(over, {VARIABLE: f"lanes:written@{batch}"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3_000:]
    late = run_stream(command)
    assert late.returncode == 2
    assert "they are 4 now, in the topic four" in late.stderr

    produce(kafka.bootstrap, first, again)
    done = run_stream(over)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "took over" not in done.stderr, "it had been done before the kill"
    assert "1 records were written to six after its lanes were taken over" in done.stderr
    third = _topic(kafka, "twelve", 12, CUT + 7, None)
    done = run_stream(stream_command(kafka.bootstrap, third, tmp_path, "--once", "--lanes-from", second))
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "took over the 4 lanes of four, as 12 of twelve" in done.stderr

    expected = _expected()
    assert expected["transitions"]
    assert _told(tmp_path) == expected
    sent = [(lane, event) for lane, value, _ in story_messages() for event in decode_batch(value or b"")]
    archived = Counter(row["event_id"] for row in rows(tmp_path / "tables", "events"))
    assert archived == Counter({event_id(event) for lane, event in sent if is_archived(event, lane)})


def _last_batch(home: Path) -> int:
    """Number, in the tables, of the last batch of the live checkpoint."""
    directory = home / "checkpoint" / "live"
    generation = checkpoint_directory.load(directory)
    assert generation is not None
    return generation.first_batch + (checkpoint_directory.Checkpoint(directory, generation).committed() or 0)


def test_what_cannot_be_taken_over_is_refused_in_words(kafka: Broker, tmp_path: Path) -> None:
    topic = _topic(kafka, "refusing", 6, 0, 1)
    for more, said in (
        (("--lanes-from", "refusing"), "--lanes-from names the topic that is to be read"),
        (("--lanes-from", "other", "--new-generation"), "--lanes-from does not go with --new-generation"),
        (("--lanes-from", "other"), "there is no checkpoint whose lanes could be taken over"),
    ):
        done = run_stream(stream_command(kafka.bootstrap, topic, tmp_path, "--once", *more))
        assert done.returncode == 2
        assert said in done.stderr
