"""What the state of one process is of, and whether it belongs to the tables beside it: checked before anything starts.

The generation is that of a checkpoint of Spark (`spark_jobs.checkpoint.checkpoint_directory`): a name under which the
tables know the batches, the first number, and what must be equal between all runs. It reads no clock.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from kardia.tables import LIVE_TABLES
from live.files import BatchFiles
from live.settings import LiveSettings
from spark_jobs.checkpoint import checkpoint_directory, state_codec
from spark_jobs.checkpoint.checkpoint_directory import Agreement, Generation
from spark_jobs.errors import CheckpointError
from spark_jobs.leases import table_owner
from spark_jobs.writers.tables import highest_batch, last_version
from stores.locations import Folder

QUERY = "local"
"""Name of what reads, part of the app_id of its transactions, as `live` is that of Spark's query."""


def with_lanes(settings: LiveSettings) -> LiveSettings:
    """The settings with as many lanes as the state has, where no number is given: tables that came from the job have
    those of its topic."""
    found = checkpoint_directory.load(settings.folder)
    if found is None or "lanes" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"lanes": found.agreement.lanes})


def opened(folder: Path, tables: Folder, cluster: str, topic: str, lanes: int) -> Generation:
    """The generation that this state is of, begun if tables and state are new; refuses what could lose or double rows.

    `topic`: the one that is read, empty for what a collector in this process reads.
    """
    table_owner.check(tables, table_owner.LOCAL)
    wanted = Agreement(QUERY, cluster, topic, lanes)
    found = checkpoint_directory.load(folder)
    if found is None:
        highest = highest_batch(tables, LIVE_TABLES)
        if highest is not None:
            raise CheckpointError(
                f"there is no state of `kardia live`, but the tables in {tables} hold batches up to {highest}",
                str(folder),
                "the state that wrote these tables, or tables that nobody has written",
                "restore it; or, if `kardia stream` has written them, take them over with `kardia move --to local`; or "
                "give another --tables; or move the tables away to read the logs from their beginning",
            )
        made = Generation(checkpoint_directory.VERSION, secrets.token_hex(4), 0, wanted, state_codec.VERSION)
        checkpoint_directory.save(folder, made)
        return made
    differences = [
        f"{name} is {getattr(wanted, name)!r}, was {getattr(found.agreement, name)!r}"
        for name in Agreement.__struct_fields__
        if getattr(wanted, name) != getattr(found.agreement, name)
    ]
    if differences:
        raise CheckpointError(
            f"the state belongs to another deployment: {'; '.join(differences)}",
            str(folder),
            "the cluster, topic and number of lanes it was begun with",
            "correct the setting, or give another --tables",
        )
    state_codec.check_version(found.state, str(folder))
    return found


def check_tables(files: BatchFiles, generation: Generation, tables: Folder) -> None:
    """Refuse tables and state that are not of one moment: one of them was restored without the other."""
    numbers = files.numbers()
    written = last_version(tables, LIVE_TABLES[-1], generation.app_id)
    if not numbers:
        if written is not None:
            raise _apart(f"the tables hold batches up to {written}, the state none", files, tables)
        return
    last = files.read(numbers[-1])
    if last.told_before >= 0 and (written is None or written < last.told_before):
        held = "none of its batches" if written is None else f"batches up to {written}"
        raise _apart(f"the state is at batch {last.number}, the tables hold {held}", files, tables)
    if written is not None and written > last.number:
        raise _apart(f"the tables hold batches up to {written}, the state ends at {last.number}", files, tables)


def _apart(what: str, files: BatchFiles, tables: Folder) -> CheckpointError:
    return CheckpointError(
        what,
        f"{files.folder}, {tables}",
        "tables and state of one moment",
        "restore both from one copy; or move both away and begin anew: the logs are read from their beginning",
    )
