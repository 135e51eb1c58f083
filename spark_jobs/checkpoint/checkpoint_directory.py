"""A checkpoint directory and the tables that belong to it: the agreement between them, checked before anything starts.

    CHECKPOINT/.kardia.lock         lease of the run that uses it
    CHECKPOINT/generation.json      what this checkpoint is: generation, first batch, cluster, topic, lanes, state
    CHECKPOINT/GENERATION/          Spark's own files (offsets, commits, state)
    CHECKPOINT/GENERATION-lanes/    what its lanes began with, where their number was changed (`change_lane_count`),
                                    their topic was made again (`recreated_topic`), one was damaged (`damaged_lanes`),
                                    or they came from the other engine (`live.moves`)

A generation is one unbroken line of batches. Spark counts the batches of a fresh checkpoint from 0; `batch_id` in the
tables is `first_batch + Spark's number`, so it grows over generations, and the transactions of each generation carry an
app_id of their own. Without that, Delta would silently skip every write of a fresh checkpoint.

A new generation is written durably (`spark_jobs.checkpoint.kardia_files`); only then the query starts. It reads no
clock; the generation's name is drawn at random.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from spark_jobs.checkpoint import kardia_files, state_codec
from spark_jobs.errors import CheckpointError
from spark_jobs.leases import table_owner
from spark_jobs.writers.tables import highest_batch, last_version
from stores.locations import Folder, Store

FILE = table_owner.GENERATION
VERSION = 1

_BEFORE_OFFSETS = 2
"""Lines in Spark's file of offsets before those of the sources, one for each: its version, and its settings."""


class Agreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be equal between all runs on one checkpoint."""

    query: str
    cluster: str
    topic: str
    lanes: int


class Before(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The generation whose lanes a generation has taken over: in another number
    (`spark_jobs.checkpoint.change_lane_count`), from a topic of the same name that is no more (`recreated_topic`),
    because some of them were damaged (`damaged_lanes`), or of the other engine (`live.moves`), which has read no topic:
    then this is of the topic that is read from there on."""

    name: str
    topic: str
    lanes: int
    offsets: dict[int, int]
    """Where its topic ended when it was left, or how far it was read, by partition."""


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One unbroken line of batches."""

    version: int
    name: str
    first_batch: int
    agreement: Agreement
    state: int = 7
    """Version of the saved state below it (`state_codec.VERSION`); checkpoints of before 8 do not say it."""
    parts: int = 0
    """Parts in which the lanes are read and stepped, for the life of it (`stream.start_query`); 0: not chosen yet."""
    before: Before | None = None
    """Whose lanes it has taken over; None: it began with none."""
    topic_id: str = ""
    """Id of the topic that it reads; empty where brokers give none, and in checkpoints that do not know it yet."""
    damaged: bool = False
    """Whether a lane could not be read back: the next start builds it again (`spark_jobs.checkpoint.damaged_lanes`)."""
    begins_at: dict[int, int] = {}
    """Offset that its first batch begins with, by partition; empty: with what the topic has."""

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

    @property
    def seeds(self) -> Folder | None:
        """Where the lanes are that this generation began with; None: it began with none."""
        return None if self.generation.before is None else seeds_of(self.directory, self.generation.name)

    def committed(self) -> int | None:
        """Spark's number of the last committed batch, None before the first."""
        return self._last("commits")

    def planned(self) -> int | None:
        """Spark's number of the last batch that was begun, None before the first."""
        return self._last("offsets")

    def _last(self, log: str) -> int | None:
        found = kardia_files.names(self.spark_directory / log)
        return max((int(name) for name in found if name.isdigit()), default=None)

    def parts(self, wanted: int) -> int:
        """Parts of this generation: those that were wanted when it was first asked."""
        if not self.generation.parts:
            self.generation = msgspec.structs.replace(self.generation, parts=wanted)
            save(self.directory, self.generation)
        return self.generation.parts

    def read_offsets(self) -> dict[int, int]:
        """Offset of the next unread record per partition: where the last committed batch ended; empty before it."""
        committed = self.committed()
        return {} if committed is None else self.ends_of(committed)

    def ends_of(self, number: int) -> dict[int, int]:
        """The same of any batch that was begun, by Spark's number; those of long ago are gone."""
        folder = self.spark_directory / "offsets"
        found: dict[int, int] = {}
        try:
            for line in kardia_files.read(folder, str(number)).decode().splitlines()[_BEFORE_OFFSETS:]:
                topics: dict[str, dict[str, int]] = msgspec.json.decode(line, type=dict[str, dict[str, int]])
                of_topic = topics.get(self.generation.agreement.topic, {})
                found |= {int(number): offset for number, offset in of_topic.items()}
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"where batch {number} ended cannot be read: {error}",
                str(folder / str(number)),
                "the file of offsets that Spark has written before the batch",
                "restore the checkpoint from the copy that belongs to these tables, or begin a new one with "
                "--new-generation, which reads the topic from its beginning",
            ) from error
        return found

    def forget_torn_commit(self) -> int | None:
        """Take away the last commit if it cannot be read, and give its number: what is not known to be done is done
        again, as after a death before it. The tables skip what they have of it."""
        folder, last = self.spark_directory / "commits", self.committed()
        if last is None or _is_commit(kardia_files.read(folder, str(last))):
            return None
        for name in (f".{last}.crc", str(last)):
            kardia_files.remove(folder, name)
        return last


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
    if new_generation or FILE not in kardia_files.names(directory):
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
        save(directory, generation)
        return Checkpoint(directory, generation)
    checkpoint = Checkpoint(directory, _load(directory))
    _check_agreement(checkpoint, agreement)
    checkpoint.forget_torn_commit()
    if state:
        state_codec.check_version(checkpoint.generation.state, str(directory))
    _check_tables(checkpoint, tables, names)
    if state > checkpoint.generation.state:
        # From its next batch on no earlier release can read it; each lane says its own version until it is written.
        checkpoint.generation = msgspec.structs.replace(checkpoint.generation, state=state)
        save(directory, checkpoint.generation)
    return checkpoint


def look_at(
    directory: Folder, tables: Folder, topic: str, cluster: str | None, names: tuple[str, ...]
) -> Checkpoint | None:
    """The checkpoint of a job that may be running, checked as `open_checkpoint` does it and left as it is; None if
    there is none yet. The number of lanes is its own, and so is the cluster where none is named."""
    generation = load(directory)
    if generation is None:
        return None
    found, checkpoint = generation.agreement, Checkpoint(directory, generation)
    _check_agreement(
        checkpoint, msgspec.structs.replace(found, topic=topic, cluster=found.cluster if cluster is None else cluster)
    )
    state_codec.check_version(generation.state, str(directory))
    _check_tables(checkpoint, tables, names)
    return checkpoint


def _is_commit(content: bytes) -> bool:
    """Whether these are the lines of a commit of Spark: a version, and an object."""
    version, _, rest = content.partition(b"\n")
    try:
        return version.startswith(b"v") and isinstance(msgspec.json.decode(rest), dict)
    except ValueError:
        return False


def seeds_of(directory: Folder, name: str) -> Folder:
    """Where the lanes are that a generation began with."""
    return directory / f"{name}-lanes"


def load(directory: Folder) -> Generation | None:
    """The generation of a checkpoint; None if there is no checkpoint."""
    return _load(directory) if FILE in kardia_files.names(directory) else None


def save(directory: Folder, generation: Generation) -> None:
    """Put a generation in the place of the one that a checkpoint has: from here on it is the only one."""
    kardia_files.write(directory, FILE, msgspec.json.format(msgspec.json.encode(generation)))


def _check_agreement(checkpoint: Checkpoint, wanted: Agreement) -> None:
    found = checkpoint.generation.agreement
    differences = [
        f"{field} is {getattr(wanted, field)!r}, was {getattr(found, field)!r}"
        for field in Agreement.__struct_fields__
        if getattr(wanted, field) != getattr(found, field)
    ]
    before = checkpoint.generation.before
    if differences and before is not None and (wanted.topic, wanted.lanes) == (before.topic, before.lanes):
        raise CheckpointError(
            f"the lanes of this checkpoint were changed: they are {found.lanes} now, in the topic {found.topic}",
            str(checkpoint.directory),
            f"--topic {found.topic}",
            "name it here; a collector that still writes to the topic before is to be started anew on this one",
        )
    if differences:
        raise CheckpointError(
            f"the checkpoint belongs to another deployment: {'; '.join(differences)}",
            str(checkpoint.directory),
            "the cluster, topic and number of partitions it was begun with, because saved state depends on them",
            "correct the setting; --lanes-from takes the lanes over to another topic, where that is what is wanted",
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
        generation = msgspec.json.decode(kardia_files.read(directory, FILE), type=Generation)
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
