"""What a `kardia live` that was stopped, or killed, has left: its lanes, its positions, and tables with all its rows.

It reads the files as a start does, and gives the tables the rows of the last batch, which a kill may have kept from
them; they take each batch once. It changes nothing else, reads no log and asks nobody.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ingest.offsets.committed import SavedCommitted
from ingest.router import Directory
from ingest.tail.positions import Positions, Store
from live import state
from live.files import Batch, BatchFiles, LaneStore, unpacked
from spark_jobs.checkpoint import checkpoint_directory, journal, state_codec
from spark_jobs.checkpoint.checkpoint_directory import Generation
from spark_jobs.errors import CheckpointError
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ModelFactory
from spark_jobs.writers import Reached
from spark_jobs.writers.delta_rs import DeltaRsWriter
from stores.locations import Folder


class Kept(NamedTuple):
    """What a collector goes on from, beside the lanes."""

    positions: Positions
    clients: list[tuple[str, str, list[int]]]
    """Who speaks for which shards (`ingest.router`)."""
    committed: SavedCommitted | None
    """Partitions that groups have commits for; None where nobody has asked."""


class Left(NamedTuple):
    """All of it, of either engine."""

    generation: Generation
    batch: int
    """Number of the last batch."""
    lanes: list[Lane]
    kept: Kept


def read(folder: Path, beside: Store, tables: Path, cluster: str, factory: ModelFactory, reached: Reached) -> Left:
    """What is in `folder`, of tables that have every row of it then."""
    generation = checkpoint_directory.load(folder)
    if generation is None:
        raise CheckpointError(
            "there is no state of `kardia live`",
            str(folder),
            "the folder that it keeps its state in",
            "name it with --state, if it is not below the tables",
        )
    agreement = generation.agreement
    check_cluster(agreement.cluster, cluster, folder)
    state_codec.check_version(generation.state, str(folder))
    files = BatchFiles(folder / generation.name)
    state.check_tables(files, generation, tables)
    stores = [LaneStore() for _ in range(agreement.lanes)]
    directory = Directory()
    directory.merge(beside.load_directory().entries)
    last: Batch | None = None
    for last in files.read_all():
        for lane, puts in last.lanes.items():
            stores[lane].load(puts, last.number)
        directory.merge(last.clients)
    if last is not None:
        writer = DeltaRsWriter(tables, generation.app_id, reached)
        writer.prepare()
        writer.write(last.number, unpacked(last.tables))
        writer.close()

    def begin(number: int) -> Lane:
        return Lane(factory, generation.app_id, number, agreement.lanes, cluster=agreement.cluster)

    lanes = [
        journal.read(store, lambda number=number: begin(number)).lane  # type: ignore[misc]
        for number, store in enumerate(stores)
    ]
    kept = Kept(Positions() if last is None else last.positions, list(directory.entries()), beside.load_committed())
    return Left(generation, generation.first_batch - 1 if last is None else last.number, lanes, kept)


def check_cluster(found: str, wanted: str, where: Folder) -> None:
    """Refuse the state of another cluster."""
    if found != wanted:
        raise CheckpointError(
            f"the state is of the cluster {found!r}",
            str(where),
            f"that of {wanted!r}",
            "correct --cluster, or name the folders of this cluster",
        )
