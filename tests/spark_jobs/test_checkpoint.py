"""A checkpoint and its tables: every combination that could lose or double rows is refused with what to do."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from ingest.wire.batches import FORMAT
from kardia.tables import LIVE_TABLES
from spark_jobs.archive import archive_query
from spark_jobs.checkpoint import state_codec
from spark_jobs.checkpoint.checkpoint_directory import Agreement, Checkpoint, open_checkpoint
from spark_jobs.errors import CheckpointError, StateError
from spark_jobs.processor import INPUT_COLUMNS
from spark_jobs.schemas import to_tables
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import create_or_open
from tests.spark_jobs.support import story_messages
from tests.spark_jobs.writing import batch

AGREEMENT = Agreement("live", "demo", "kardia.events", 6)


def begin(tmp_path: Path, **changes: object) -> Checkpoint:
    return open_checkpoint(tmp_path / "checkpoint", tmp_path / "tables", AGREEMENT, LIVE_TABLES, **changes)  # type: ignore[arg-type]


def commit(checkpoint: Checkpoint, tables: Path, spark_batches: int) -> None:
    """Do what a query does: write batches, then Spark's own files."""
    writer = DeltaRsWriter(tables, checkpoint.generation.app_id)
    writer.prepare()
    for number in range(spark_batches):
        batch_id = checkpoint.generation.first_batch + number
        writer.write(batch_id, to_tables(batch(batch_id), batch_id))
        for kind, text in (("offsets", f'v1\n{{}}\n{{"kardia.events":{{"0":{number + 1}}}}}'), ("commits", "v1\n{}")):
            folder = Path(str(checkpoint.spark_directory / kind))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(number)).write_text(text)
    writer.close()


def test_a_checkpoint_is_found_again(tmp_path: Path) -> None:
    first = begin(tmp_path)
    assert (first.committed(), first.read_offsets()) == (None, {})
    commit(first, tmp_path / "tables", 3)
    again = begin(tmp_path)
    assert again.generation == first.generation
    assert (again.committed(), again.read_offsets()) == (2, {0: 3})


def test_a_deleted_checkpoint_is_refused_because_its_writes_would_be_lost_in_silence(tmp_path: Path) -> None:
    commit(begin(tmp_path), tmp_path / "tables", 3)
    (tmp_path / "checkpoint" / "generation.json").unlink()
    with pytest.raises(CheckpointError, match=r"hold batches up to 2.*--new-generation"):
        begin(tmp_path)


def test_a_new_generation_goes_on_counting_and_has_a_name_of_its_own(tmp_path: Path) -> None:
    first = begin(tmp_path)
    commit(first, tmp_path / "tables", 3)
    second = begin(tmp_path, new_generation=True)
    assert second.generation.first_batch == 3
    assert second.generation.app_id != first.generation.app_id
    assert second.spark_directory != first.spark_directory
    commit(second, tmp_path / "tables", 2)
    assert begin(tmp_path).generation == second.generation


def test_tables_that_were_taken_away_are_refused(tmp_path: Path) -> None:
    commit(begin(tmp_path), tmp_path / "tables", 2)
    (tmp_path / "tables").rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=r"has committed batch 1.*no batch of this checkpoint"):
        begin(tmp_path)


@pytest.mark.parametrize(
    ("agreement", "words"),
    [
        (Agreement("live", "other", "kardia.events", 6), "cluster is 'other', was 'demo'"),
        (Agreement("live", "demo", "kardia.events", 8), "lanes is 8, was 6"),
        (Agreement("live", "demo", "events", 6), "topic is 'events'"),
    ],
)
def test_another_deployment_is_refused(tmp_path: Path, agreement: Agreement, words: str) -> None:
    begin(tmp_path)
    with pytest.raises(CheckpointError, match=words):
        open_checkpoint(tmp_path / "checkpoint", tmp_path / "tables", agreement, LIVE_TABLES)


@pytest.mark.parametrize(
    "text", ["", "{", '{"version":1}', '{"version":2,"name":"a","first_batch":0,"agreement":{"query":"live"}}']
)
def test_a_generation_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    begin(tmp_path)
    (tmp_path / "checkpoint" / "generation.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"generation.json"):
        begin(tmp_path)


def test_a_checkpoint_whose_state_has_another_version_is_refused(tmp_path: Path) -> None:
    """Spark itself would say that a schema does not fit; checkpoints of before 8 do not say a version."""
    first = begin(tmp_path, state=state_codec.VERSION)
    commit(first, tmp_path / "tables", 1)
    assert begin(tmp_path, state=state_codec.VERSION).generation == first.generation
    path = tmp_path / "checkpoint" / "generation.json"
    said = msgspec.json.decode(path.read_bytes())
    for version in (state_codec.VERSION + 1, 6):
        path.write_bytes(msgspec.json.encode(said | {"state": version}))
        with pytest.raises(StateError, match=rf"has version {version}\b.*to {state_codec.VERSION}.*generation"):
            begin(tmp_path, state=state_codec.VERSION)
    del said["state"]
    path.write_bytes(msgspec.json.encode(said))
    with pytest.raises(StateError, match="has version 7 "):
        begin(tmp_path, state=state_codec.VERSION)
    assert begin(tmp_path).generation.name == first.generation.name  # a query without state is not concerned
    assert begin(tmp_path, state=state_codec.VERSION, new_generation=True).generation.state == state_codec.VERSION


def test_a_checkpoint_whose_state_a_release_before_has_saved_is_of_this_one_from_here_on(tmp_path: Path) -> None:
    """So that the release before refuses it in words, and does not take what it cannot read for damage."""
    before = begin(tmp_path, state=state_codec.OLDEST)
    commit(before, tmp_path / "tables", 1)
    assert begin(tmp_path, state=state_codec.VERSION).generation.state == state_codec.VERSION
    saved = msgspec.json.decode((tmp_path / "checkpoint" / "generation.json").read_bytes())
    assert saved["state"] == state_codec.VERSION


@pytest.mark.parametrize("damage", [b"", b"v1", b"v1\n{", b"\x00" * 29])
def test_a_commit_that_cannot_be_read_is_done_again(tmp_path: Path, damage: bytes) -> None:
    """As after a death before it: the tables have the batch, and skip it."""
    checkpoint = begin(tmp_path)
    commit(checkpoint, tmp_path / "tables", 3)
    commits = Path(str(checkpoint.spark_directory / "commits"))
    (commits / "2").write_bytes(damage)
    (commits / ".2.crc").write_bytes(b"crc")
    again = begin(tmp_path)
    assert (again.committed(), again.planned(), again.read_offsets()) == (1, 2, {0: 2})
    assert sorted(path.name for path in commits.iterdir()) == ["0", "1"]


@pytest.mark.parametrize("damage", [None, b"v1\n{}\nnothing", b"v1\n{}\n[3]", b"\xff"])
def test_offsets_that_cannot_be_read_are_a_sentence_with_a_remedy(tmp_path: Path, damage: bytes | None) -> None:
    checkpoint = begin(tmp_path)
    commit(checkpoint, tmp_path / "tables", 2)
    path = Path(str(checkpoint.spark_directory / "offsets" / "1"))
    path.unlink() if damage is None else path.write_bytes(damage)
    if damage == b"\xff":
        path.write_bytes(b"\xff\n\n\xff")
    with pytest.raises(CheckpointError, match=r"where batch 1 ended cannot be read.*restore the checkpoint.*--new-gen"):
        begin(tmp_path).read_offsets()


def test_how_far_the_archive_is_behind_is_read_from_both_checkpoints(tmp_path: Path) -> None:
    live = begin(tmp_path)
    agreement = Agreement("archive", "demo", "kardia.events", 6)
    beside = open_checkpoint(tmp_path / "beside", tmp_path / "tables", agreement, ("events",))
    assert archive_query.behind(live, beside) == 0
    commit(live, tmp_path / "tables", 5)
    assert archive_query.behind(live, beside) == 5
    for kind, text in (("offsets", 'v1\n{}\n{"kardia.events":{"0":3}}'), ("commits", "v1\n{}")):
        folder = Path(str(beside.spark_directory / kind))
        folder.mkdir(parents=True)
        (folder / "0").write_text(text)
    assert archive_query.behind(live, beside) == 2
    (Path(str(beside.spark_directory / "offsets")) / "1").write_text('v1\n{}\n{"kardia.events":{"0":5}}')
    assert archive_query.behind(live, beside) == 2, "a batch that was planned and not done"


def test_what_is_behind_does_not_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    monkeypatch.setattr(archive_query, "ROWS_PER_BLOCK", 1)
    names: dict[str, object] = dict.fromkeys(INPUT_COLUMNS, 0) | {"format": FORMAT.encode(), "cluster": b"demo"}
    for rest in (0.0, archive_query.REST):
        naps.clear()
        block = pa.RecordBatch.from_pylist(
            [names | {"lane": lane, "value": value} for lane, value, _ in story_messages(end=3)]
        )
        create_or_open(tmp_path / "tables", "events")
        list(archive_query.decoder("demo", {}, tmp_path / "tables", 0, rest)(iter([block])))
        assert naps
        assert (max(naps) > 0) == (rest > 0)
