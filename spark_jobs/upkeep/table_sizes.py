"""What tables take on disk and how fast they grow, by what their logs say of their files; opens no data file.

Said by the job when it starts, beside how long it keeps what. It judges nothing and reads no clock.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import pyarrow as pa

from kardia.retention_setting import DAY_MS, FOREVER_MS, KINDS, Keep, shown
from spark_jobs.writers.tables import is_there, open_table
from stores.locations import Folder
from stores.read_again import surviving

LEAST_MS = 600_000
"""A time in which so little was written says nothing about a day."""

SAMPLES_A_DAY = DAY_MS // 5_000
BYTES_A_SAMPLE = 28
"""Of a row of `health` in files that upkeep has put together (`python -m bench.month` prints it)."""


class Size(NamedTuple):
    """Bytes of the files of some tables, and the time that they tell of."""

    bytes: int
    from_ms: int | None
    to_ms: int | None

    @property
    def a_day(self) -> float | None:
        """Bytes a day; None where they tell of too little."""
        if self.from_ms is None or self.to_ms is None or self.to_ms - self.from_ms < LEAST_MS:
            return None
        return self.bytes / (self.to_ms - self.from_ms) * DAY_MS


def size_of(tables: Folder, names: tuple[str, ...]) -> Size:
    """Of several tables together."""
    found = [surviving(partial(_size, tables, name)) for name in names if is_there(tables, name)]
    since = [one.from_ms for one in found if one.from_ms is not None]
    until = [one.to_ms for one in found if one.to_ms is not None]
    return Size(sum(one.bytes for one in found), min(since, default=None), max(until, default=None))


def _size(tables: Folder, name: str) -> Size:
    listed = pa.table(open_table(tables, name).get_add_actions(flatten=True))

    def all_of(column: str) -> list[int]:
        values = listed[column].to_pylist() if column in listed.column_names else []
        return [int(value) for value in values if value is not None]

    since, until = all_of("min.known_at_ms"), all_of("max.known_at_ms")
    return Size(sum(all_of("size_bytes")), min(since, default=None), max(until, default=None))


def told(tables: Folder, keep: Keep) -> str:
    """What is kept how long, what it takes, and what it will."""
    parts = []
    for name, kind in KINDS.items():
        size, age_ms = size_of(tables, kind.tables), keep.of(kind.tables[0])
        text = f"{name} {shown(age_ms)} ({_mb(size.bytes)}"
        if size.a_day is not None:
            text += f", {_mb(size.a_day)} a day"
            text += "" if age_ms >= FOREVER_MS else f", {_mb(size.a_day * age_ms / DAY_MS)} in the end"
        parts.append(f"{text})")
    member_mb = SAMPLES_A_DAY * BYTES_A_SAMPLE
    return (
        f"keeps {'; '.join(parts)}. A member that is well takes about {_mb(member_mb)} of health a day; "
        "--keep says how long"
    )


def _mb(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
