"""A whole job of a release before, upgraded: its tables and its checkpoint, Spark's own state in it, and its topic.

Goal: `kardia stream` of this version, started on what that release has left, reads the rest of the topic, and says of
it what a lane says that has read all; each event is in the archive once.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from demo.broker import Broker
from ingest.wire.batches import decode_batch
from kardia.events import event_id
from kardia.observe import ObserverSettings
from spark_jobs.archive.rows import is_archived
from spark_jobs.checkpoint import checkpoint_directory, state_codec
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.schemas import to_tables
from tests.spark_jobs.support import CLUSTER, HEADERS, LANES, produce, rows, run_stream, stream_command
from tests.upgrade.keep import KEPT, TOPIC, KeptTopic
from tests.upgrade.test_tables import RELEASES, Row, job_of

NAMES = ("transitions", "rebalances", "members", "predictions", "rejected", "disagreements")


def said_of_the_rest(topic: KeptTopic) -> dict[str, list[Row]]:
    """Rows of lanes that have read all of the topic, of what came after the job was stopped."""
    factory = ObserverFactory(ObserverSettings(cluster_id=CLUSTER))
    found: dict[str, list[Row]] = {name: [] for name in NAMES}
    for number in range(LANES):
        lane = Lane(factory, TOPIC, number, LANES)
        before = sum(partition == number for partition, _, _ in topic.messages[: topic.read])
        values = [value for partition, value, _ in topic.messages if partition == number]
        records = [Record(offset, 0, HEADERS[0][1], value) for offset, value in enumerate(values)]
        lane.step(records[:before])
        for name, table in to_tables(lane.step(records[before:]), 0).items():
            if name in NAMES:
                found[name] += table.to_pylist()
    return found


def counted(found: list[Row]) -> Counter[str]:
    return Counter(repr({column: value for column, value in row.items() if column != "batch_id"}) for row in found)


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_a_job_of_a_release_before_goes_on(kafka: Broker, release: str, tmp_path: Path) -> None:
    home = job_of(release, tmp_path)
    topic = msgspec.msgpack.decode(gzip.decompress((KEPT / release / "topic.msgpack.gz").read_bytes()), type=KeptTopic)
    last = max(row["batch_id"] for row in rows(home / "tables", "progress"))
    kafka.create_topic(TOPIC, LANES)
    produce(kafka.bootstrap, TOPIC, topic.messages)
    done = run_stream(stream_command(kafka.bootstrap, TOPIC, home, "--once"))
    assert done.returncode == 0, done.stderr[-3_000:]
    expected = said_of_the_rest(topic)
    assert expected["members"]
    for name in NAMES:
        new = [row for row in rows(home / "tables", name) if row["batch_id"] > last]
        assert counted(new) == counted(expected[name])
    sent = [(lane, event) for lane, value, _ in topic.messages for event in decode_batch(value)]
    archived = Counter(row["event_id"] for row in rows(home / "tables", "events"))
    assert archived == Counter({event_id(event) for lane, event in sent if is_archived(event, lane)})
    generation = checkpoint_directory.load(home / "checkpoint" / "live")
    assert generation is not None
    assert generation.state == state_codec.VERSION
