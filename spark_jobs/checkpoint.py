"""A checkpoint directory and the tables that belong to it: the agreement between them, checked before anything starts.

    CHECKPOINT/.kardia.lock         lease of the run that uses it
    CHECKPOINT/generation.json      what this checkpoint is: generation, first batch, cluster, topic, lanes, state
    CHECKPOINT/GENERATION/          Spark's own files (offsets, commits, state)

A generation is one unbroken line of batches. Spark counts the batches of a fresh checkpoint from 0; `batch_id` in the
tables is `first_batch + Spark's number`, so it grows over generations, and the transactions of each generation carry an
app_id of their own. Without that, Delta would silently skip every write of a fresh checkpoint.

A new generation is written durably (`spark_jobs.checkpoint_files`); only then the query starts. It reads no clock; the
generation's name is drawn at random.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from kardia.locations import Folder, Store
from spark_jobs import checkpoint_files, state_codec
from spark_jobs.errors import CheckpointError
from spark_jobs.writers.tables import highest_batch, last_version

FILE = "generation.json"
VERSION = 1


class Agreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be equal between all runs on one checkpoint."""

    query: str
    cluster: str
    topic: str
    lanes: int


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One unbroken line of batches."""

    version: int
    name: str
    first_batch: int
    agreement: Agreement
    state: int = 7
    """Version of the saved state below it (`state_codec.VERSION`); checkpoints of before 8 do not say it."""

    @property
    def app_id(self) -> str:
        """Transaction id of this generation in the logs of the tables."""
        return f"kardia-{self.agreement.query}/{self.name}"


class Checkpoint:
    """A checkpoint directory that has been checked against its tables."""

    def __init__(self, directory: Folder, generation: Generation) -> None:
        """Keep both; made by `open_checkpoint`."""
        self.directory = directory
        self.generation = generation

    @property
    def spark_directory(self) -> Folder:
        """Spark's checkpointLocation."""
        return self.directory / self.generation.name

    @property
    def spark_location(self) -> str:
        """The same, as Spark takes it."""
        place = self.spark_directory
        return place.hadoop if isinstance(place, Store) else str(place)

    def committed(self) -> int | None:
        """Spark's number of the last committed batch, None before the first."""
        found = checkpoint_files.names(self.spark_directory / "commits")
        return max((int(name) for name in found if name.isdigit()), default=None)

    def read_offsets(self) -> dict[int, int]:
        """Offset of the next unread record per partition: where the last committed batch ended; empty before it."""
        committed = self.committed()
        if committed is None:
            return {}
        lines = checkpoint_files.read(self.spark_directory / "offsets", str(committed)).decode().splitlines()
        topics: dict[str, dict[str, int]] = msgspec.json.decode(lines[-1])
        return {int(partition): offset for partition, offset in topics.get(self.generation.agreement.topic, {}).items()}


def open_checkpoint(
    directory: Folder,
    tables: Folder,
    agreement: Agreement,
    names: tuple[str, ...],
    *,
    new_generation: bool = False,
    state: int = 0,
) -> Checkpoint:
    """Open a checkpoint for tables, begin it if both are new, refuse every combination that could lose or double rows.

    `names` are the tables the query writes; the last one is written last and tells how far they are. `state` is the
    version of the state that the query saves; 0: it saves none.
    """
    if new_generation or FILE not in checkpoint_files.names(directory):
        highest = highest_batch(tables, names)
        if highest is not None and not new_generation:
            raise CheckpointError(
                f"the checkpoint is missing or empty, but the tables in {tables} hold batches up to {highest}",
                str(directory),
                "the checkpoint that wrote these tables",
                "restore it; or move the tables away to rebuild them; or pass --new-generation to read the topic from "
                "its beginning and add to them (later rows supersede earlier ones, health samples appear twice)",
            )
        generation = Generation(VERSION, secrets.token_hex(4), 0 if highest is None else highest + 1, agreement, state)
        checkpoint_files.write(directory, FILE, msgspec.json.format(msgspec.json.encode(generation)))
        return Checkpoint(directory, generation)
    checkpoint = Checkpoint(directory, _load(directory))
    _check_agreement(checkpoint, agreement)
    if state:
        state_codec.check_version(checkpoint.generation.state, str(directory))
    _check_tables(checkpoint, tables, names)
    return checkpoint


def _check_agreement(checkpoint: Checkpoint, wanted: Agreement) -> None:
    found = checkpoint.generation.agreement
    differences = [
        f"{field} is {getattr(wanted, field)!r}, was {getattr(found, field)!r}"
        for field in Agreement.__struct_fields__
        if getattr(wanted, field) != getattr(found, field)
    ]
    if differences:
        raise CheckpointError(
            f"the checkpoint belongs to another deployment: {'; '.join(differences)}",
            str(checkpoint.directory),
            "the cluster, topic and number of partitions it was begun with, because saved state depends on them",
            "correct the setting, or drain the topic and start with a new checkpoint and --new-generation",
        )


def _check_tables(checkpoint: Checkpoint, tables: Folder, names: tuple[str, ...]) -> None:
    committed = checkpoint.committed()
    if committed is None:
        return
    wanted = checkpoint.generation.first_batch + committed
    found = last_version(tables, names[-1], checkpoint.generation.app_id)
    if found is None or found < wanted:
        raise CheckpointError(
            f"the checkpoint has committed batch {wanted}, the tables in {tables} end at "
            f"{'no batch of this checkpoint' if found is None else found}",
            str(checkpoint.directory),
            "the tables this checkpoint has written",
            "restore the tables; or pass --new-generation to read the topic from its beginning into these",
        )


def _load(directory: Folder) -> Generation:
    path = directory / FILE
    try:
        generation = msgspec.json.decode(checkpoint_files.read(directory, FILE), type=Generation)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointError(
            f"{FILE} cannot be read: {error}",
            str(path),
            f"the file version {VERSION} writes",
            "restore it from a copy, or begin a new checkpoint with --new-generation",
        ) from error
    if generation.version != VERSION:
        raise CheckpointError(
            f"{FILE} has version {generation.version}",
            str(path),
            f"version {VERSION}",
            "run the version of Kardia that wrote it, or begin a new checkpoint with --new-generation",
        )
    return generation


def describe(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a start line says about a checkpoint."""
    committed = checkpoint.committed()
    return {
        "generation": checkpoint.generation.name,
        "next_batch": checkpoint.generation.first_batch + (0 if committed is None else committed + 1),
    }
