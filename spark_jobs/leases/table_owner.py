"""Which engine the tables belong to, `kardia live` or `kardia stream`: one file beside them, replaced as a whole.

    TABLES/_engine.json     written by a move from one engine to the other (`live.moves`), its last step

Each engine keeps its own state, and after a move both are there. The file says whose state counts: the other engine
refuses to start, with what leads back. Tables that were never moved have no file; they belong to whoever has state for
them. Tables in an object store are Spark's alone. It reads no clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from spark_jobs.errors import CheckpointError
from stores.durable import replace_file
from stores.locations import Folder

FILE = "_engine.json"
VERSION = 1

STATE = "_live"
"""Folder below the tables in which `kardia live` keeps its state."""

GENERATION = "generation.json"
"""File that every state begins with (`spark_jobs.checkpoint.checkpoint_directory`)."""

Engine = Literal["spark", "local"]
SPARK: Final = "spark"
LOCAL: Final = "local"

VERBS: dict[Engine, str] = {SPARK: "kardia stream", LOCAL: "kardia live"}


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says."""

    version: int
    engine: Engine
    batch: int
    """Number of the first batch since it is so, or of one before."""


def load(tables: Folder) -> Owner | None:
    """What the file beside the tables says; None if there is none."""
    if not isinstance(tables, Path):
        return None
    path = tables / FILE
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Owner)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointError(
            f"which engine the tables belong to cannot be read: {error}",
            str(path),
            f"the file version {VERSION} writes",
            "restore it from the copy that belongs to these tables",
        ) from error
    if found.version != VERSION:
        raise CheckpointError(
            f"{FILE} has version {found.version}",
            str(path),
            f"version {VERSION}",
            "run the version of Kardia that wrote it",
        )
    return found


def save(tables: Path, owner: Owner) -> None:
    """From here on the tables belong to this engine."""
    replace_file(tables / FILE, msgspec.json.format(msgspec.json.encode(owner)))


def engine_of(tables: Folder, state: Path | None = None, checkpoint: Folder | None = None) -> Engine | None:
    """The engine that the tables belong to: as the file says, else whose state is there. None: nobody's yet."""
    found = load(tables)
    if found is not None:
        return found.engine
    state = state or (tables / STATE if isinstance(tables, Path) else None)
    if state is not None and (state / GENERATION).is_file():
        return LOCAL
    live = None if checkpoint is None else checkpoint / "live" / GENERATION
    return SPARK if isinstance(live, Path) and live.is_file() else None


def check(tables: Folder, engine: Engine) -> None:
    """Refuse tables that belong to the other engine."""
    owner = engine_of(tables)
    if owner is None or owner == engine:
        return
    raise CheckpointError(
        f"the tables belong to `{VERBS[owner]}`, which has their state",
        str(tables),
        f"tables of `{VERBS[engine]}`, or new ones",
        f"stop it, and `kardia move --to {engine}` takes state and positions over (`kardia up` does it, where "
        f"kardia.yaml says `engine: {engine}`); or give other tables",
    )
