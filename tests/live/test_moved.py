"""`kardia move` with a real broker and real Spark, there and back, killed with SIGKILL at steps of both moves.

The story is written at a virtual clock, to a real topic while the job has the tables; job and moves are processes. The
tables are those of one process that told all of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from demo.broker import Broker
from ingest.ports import Topic
from ingest.tail.positions import Store
from ingest.wire.producer import KafkaTopic
from live.files import BatchFiles
from spark_jobs import stream
from spark_jobs.checkpoint import checkpoint_directory
from spark_jobs.leases import table_owner
from spark_jobs.writers.faults import VARIABLE
from tests.live.living import CLUSTER
from tests.live.other_engine import Outgrown
from tests.live.test_moves import STORY, begun, same
from tests.live.test_same_rows import FACTORY, by_the_job, facts_in, lived
from tests.live.test_topic import Reading, as_sent, ends_of, gaps_in, sent
from tests.spark_jobs.support import LANES, ROOT, produce, rows

pytestmark = pytest.mark.slow

TOPIC = "kardia.moved"

ENVIRONMENT = {"KARDIA_STREAM_MAX_RECORDS": "200", "KARDIA_STREAM_JOURNAL_BYTES": "4000"}
"""Several batches, bases and journals."""


def ran(
    kafka: Broker, topic: str, tables: Path, checkpoint: Path, words: Sequence[str], fault: str = ""
) -> subprocess.CompletedProcess[str]:
    """A verb on some tables, to its end."""
    places = ("--tables", str(tables), "--checkpoint", str(checkpoint), "--cluster", CLUSTER)
    command = (*words, "--bootstrap-server", kafka.bootstrap, "--topic", topic, *places)
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE} | ENVIRONMENT
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *command],
        cwd=ROOT,
        env=environment | ({VARIABLE: fault} if fault else {}),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


class InEarnest(Outgrown):
    """Verbs of the command line in the place of what stands for them."""

    kafka: Broker

    @property
    def topic(self) -> Topic:
        return KafkaTopic(self.kafka.bootstrap, TOPIC, CLUSTER)

    def job(self) -> None:
        """It is a process of its own."""

    def ran(self, *words: str, fault: str = "") -> subprocess.CompletedProcess[str]:
        """A verb on these tables, to its end."""
        return ran(self.kafka, TOPIC, self.settings.tables, self.checkpoint, words, fault)

    def done(self, *words: str) -> str:
        ended = self.ran(*words)
        assert ended.returncode == 0, ended.stderr[-3_000:]
        return ended.stderr

    def killed(self, *words: str, fault: str) -> None:
        ended = self.ran(*words, fault=fault)
        assert ended.returncode == -signal.SIGKILL, ended.stderr[-3_000:]

    def move(self, to: str) -> tuple[str, ...]:
        return ("move", "--to", to, "--positions", str(self.home / "positions"))

    @property
    def last_batch(self) -> int:
        """Of the job."""
        directory = self.checkpoint / stream.NAME
        found = checkpoint_directory.load(directory)
        assert found is not None
        return found.first_batch + (checkpoint_directory.Checkpoint(directory, found).committed() or 0)

    @property
    def last_file(self) -> int:
        """Number of the last batch of `kardia live`."""
        found = checkpoint_directory.load(self.settings.folder)
        assert found is not None
        return BatchFiles(self.settings.folder / found.name).numbers()[-1]


@pytest.mark.long
def test_a_story_is_told_by_both(kafka: Broker, tmp_path: Path) -> None:
    undisturbed = lived(tmp_path / "undisturbed", STORY)
    told = InEarnest(begun(tmp_path / "told", 300).living, FACTORY)
    told.kafka = kafka

    told.killed(*told.move("spark"), fault=f"lanes:written@{told.last_file}")
    refused = told.ran("stream", "--once")
    assert refused.returncode == 2
    assert "belong to `kardia live`" in refused.stderr
    told.killed(*told.move("spark"), fault=f"owner:before@{told.last_file}")
    assert "belong to `kardia stream` from batch" in told.done(*told.move("spark"))
    assert "already; nothing is moved" in told.done(*told.move("spark"))
    assert table_owner.engine_of(told.settings.tables) == table_owner.SPARK

    told.collect(150)
    told.done("stream", "--once")
    told.collect(100, killed=True)
    told.killed(*told.move("local"), fault=f"progress:before@{told.last_batch + 1}")
    assert table_owner.engine_of(told.settings.tables) == table_owner.SPARK
    told.done("stream", "--once")
    told.killed(*told.move("local"), fault=f"lanes:written@{told.last_batch}")
    assert table_owner.engine_of(told.settings.tables) == table_owner.SPARK
    told.collect(60)
    assert "belong to `kardia live` from batch" in told.done(*told.move("local"))
    refused = told.ran("stream", "--once", "--new-generation")
    assert refused.returncode == 2
    assert "belong to `kardia live`" in refused.stderr

    with told.living.alive() as running:
        told.living.to_the_end(running)
    same(told, undisturbed, killed=True)
    assert rows(told.settings.tables, "events"), "what the job archived is still there"


def test_who_reads_a_topic_reads_on_and_collectors_go_on(kafka: Broker, tmp_path: Path) -> None:
    """Records that nobody had read at a move are read after it, and a collector holds its positions all the while."""
    topic = "live.moved"
    first, second, third, last = (sent(begin, end) for begin, end in ((0, 8), (8, 15), (15, 22), (22, None)))
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, first)
    reading = Reading(kafka, tmp_path, topic)
    tables, checkpoint = reading.settings.tables, tmp_path / "checkpoint"
    reading.read(ends_of(first))
    positions = Store(tmp_path / "positions")

    def done(*words: str) -> None:
        ended = ran(kafka, topic, tables, checkpoint, words)
        assert ended.returncode == 0, ended.stderr[-3_000:]

    produce(kafka.bootstrap, topic, second)
    there = ("move", "--to", "spark", "--positions", str(positions.directory))
    other = ran(kafka, "live.another", tables, checkpoint, there)
    assert other.returncode == 2
    assert "the lanes have read live.moved, not live.another" in other.stderr
    done(*there)
    done("stream", "--once")
    produce(kafka.bootstrap, topic, third)
    done("move", "--to", "local", "--from-topic", "--positions", str(positions.directory))
    produce(kafka.bootstrap, topic, last)
    everything = [*first, *second, *third, *last]
    reading.read(ends_of(everything))
    positions.close()
    assert not list(positions.directory.glob("positions*")), "those of a collector are its own"
    assert facts_in(tables) == by_the_job(as_sent(everything), 7)
    assert gaps_in(tables) == {}
    assert reading.said == []
