"""Files of a lane's state that are damaged, with a real broker and real Spark state: the lane is there again, and no
row is there twice.

Method: a recorded story in two parts. Between them files of Spark's state are damaged; what the tables hold in the end
is compared with a run that nothing befell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from demo.broker import Broker
from kardia.observe import ObserverSettings
from kardia.tables import LIVE_TABLES
from spark_jobs import stream
from spark_jobs.checkpoint import change_lane_count, checkpoint_directory, damaged_lanes, state_codec
from spark_jobs.checkpoint.journal import InMemory, Mark
from spark_jobs.errors import DamagedError
from spark_jobs.lane_model import ObserverFactory
from tests.spark_jobs.support import LANES, SLICES, produce, run_stream, story_messages, stream_command, told_rows

FIRST = SLICES // 2

TOLD = [name for name in LIVE_TABLES if name != "lag"]
"""Of lag it follows from how the batches are cut which commits have a row."""


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _damage(home: Path, kind: Callable[[Path], None]) -> int:
    """Of one partition of the state of one part; the number of files."""
    found = checkpoint_directory.load(home / "checkpoint" / "live")
    assert found is not None
    state = home / "checkpoint" / "live" / found.name / "state" / "0"
    partition = max(
        (one for one in state.iterdir() if one.name.isdigit()), key=lambda one: sum(1 for _ in one.rglob("*"))
    )
    files = [one for one in partition.rglob("*") if one.suffix in (".zip", ".changelog")]
    for path in files:
        kind(path)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return len(files)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(_torn, marks=pytest.mark.long), Path.unlink], ids=["torn", "gone"])
def test_a_lane_whose_files_are_damaged_is_built_again(
    kafka: Broker, tmp_path: Path, kind: Callable[[Path], None], request: pytest.FixtureRequest
) -> None:
    topic = f"rebuilt.{request.node.callspec.id}"
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, story_messages(end=FIRST))
    whole, broken = (stream_command(kafka.bootstrap, topic, tmp_path / name, "--once", "--no-archive") for name in "ab")
    for command in (whole, broken):
        assert run_stream(command).returncode == 0
    produce(kafka.bootstrap, topic, story_messages(begin=FIRST))
    assert run_stream(whole).returncode == 0

    assert _damage(tmp_path / "b", kind) > 0
    refused = run_stream(broken)
    assert refused.returncode != 0
    assert "the lane is built again" in refused.stderr, refused.stderr[-3_000:]
    done = run_stream(broken)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "built again from all that it ever read" in done.stderr
    assert told_rows(tmp_path / "b" / "tables", TOLD) == told_rows(tmp_path / "a" / "tables", TOLD)


def test_of_lanes_that_spark_can_read_the_damaged_ones_alone_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement = checkpoint_directory.Agreement("live", "demo", "kardia.events", 3)
    generation = checkpoint_directory.Generation(
        checkpoint_directory.VERSION, "g", 0, agreement, state_codec.VERSION, parts=1
    )
    torn = InMemory()
    torn.put_base([b"these are no pieces"])
    torn.put_mark(Mark(state_codec.VERSION, b"", 1, 0))
    monkeypatch.setattr(change_lane_count, "stores_of", lambda *_: {1: torn, 2: InMemory()})
    monkeypatch.setattr(checkpoint_directory.Checkpoint, "committed", lambda _: 7)
    found = checkpoint_directory.Checkpoint(tmp_path, generation)
    kept, lost = damaged_lanes._read(None, found, ObserverFactory(ObserverSettings("demo")))  # type: ignore[arg-type]
    assert (sorted(kept), lost) == ([0, 2], [1])


@pytest.mark.parametrize(
    ("why", "is_damaged"),
    [
        ("UNCATEGORIZED", True),
        ("CANNOT_READ_STREAMING_STATE_FILE", True),
        ("ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY", False),
        ("UNRELEASED_THREAD_ERROR", False),
    ],
)
def test_what_spark_cannot_load_is_told_in_a_sentence_and_where_it_had_no_memory_nothing_is_damaged(
    why: str, is_damaged: bool
) -> None:
    error = ValueError(f"[CANNOT_LOAD_STATE_STORE.{why}] An error occurred during loading state.")
    assert isinstance(stream.explain(None, error, "query live"), DamagedError) == is_damaged
