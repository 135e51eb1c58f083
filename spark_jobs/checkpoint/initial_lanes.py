"""What the lanes of a generation begin with, where it has taken over those of another: a file for each lane.

Written whole before the generation is begun, and never again; read by the workers, on a disk or in a store, whenever a
lane is read back whose base is not written yet. Pure but for the files.
"""

from __future__ import annotations

from spark_jobs.checkpoint import kardia_files, state_codec
from spark_jobs.errors import StateError
from stores.locations import Folder


def write(folder: Folder, lane: int, state: bytes) -> None:
    """Keep the bytes of `Lane.save`."""
    kardia_files.write(folder, _name(lane), state_codec.pack(state))


def read(folder: Folder, lane: int) -> bytes:
    """The bytes that were kept. Without them the lane is not begun: it would forget its groups."""
    try:
        found = kardia_files.read(folder, _name(lane))
    except FileNotFoundError:
        raise StateError(
            "what the lane began with is missing",
            f"lane {lane}, {folder / _name(lane)}",
            "the file that was written when the number of lanes was changed",
            "restore it from a copy of the checkpoint, or begin a new one with --new-generation",
        ) from None
    return state_codec.unpack(found, f"lane {lane}")


def _name(lane: int) -> str:
    return f"{lane}.state"
