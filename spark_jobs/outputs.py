"""Rows on their way from a lane to the sink: one (lane, table, blob) per table that has rows; blob is msgpack.

One blob instead of N columns of N tables: the way through Spark has one fixed schema, and costs one copy. What a lane
counts and no table holds goes the same way, under a name that is no table's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from spark_jobs.stage_times import Spent, add, rows_of

OUTPUT_DDL = "lane int, table string, blob binary"
"""Columns of the stateful operator's output."""

FILES_FORGOTTEN = "files_forgotten"
"""Name of the count of files whose positions a lane has forgotten (`kardia.observe.intake.each_once.MAX_SOURCES`)."""

LANES_READ = "lanes_read"
"""Name of the count of lanes that were read back from the store, because their worker did not hold them."""

EVENTS_TAKEN = "events_taken"
"""Name of the count of events that were decoded, repeats included."""

COUNTS = (FILES_FORGOTTEN, LANES_READ, EVENTS_TAKEN)

SPENT = "spent"
"""Name of what the stages of a lane took (`spark_jobs.stage_times`)."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[list[Any]])


def encode_rows(rows: Sequence[Sequence[Any]]) -> bytes:
    """Bytes of the rows of one table."""
    try:
        return _encoder.encode(rows)
    except UnicodeEncodeError:
        return _encoder.encode(_visible(rows))


def encode_step(rows: Mapping[str, Sequence[Sequence[Any]]], counts: Mapping[str, int]) -> list[tuple[str, bytes]]:
    """What one step of a lane gives: (table, blob) of each table that has rows, and what was counted, if anything."""
    counted = {name: [(count,)] for name, count in counts.items() if count}
    return [(name, encode_rows(lines)) for name, lines in {**rows, **counted}.items() if lines]


def encode_spent(spent: Spent) -> tuple[str, bytes]:
    """What the stages of a step took, as one more output of it."""
    return SPENT, encode_rows(rows_of(spent))


def take_counts(rows: dict[str, list[list[Any]]]) -> dict[str, int]:
    """Take the counts out of what `merge` gives; what is left are rows of tables."""
    return {name: sum(count for (count,) in rows.pop(name, ())) for name in COUNTS}


def take_spent(rows: dict[str, list[list[Any]]]) -> Spent:
    """Take what the stages of all lanes took out of what `merge` gives."""
    spent: Spent = {}
    add(spent, rows.pop(SPENT, ()))
    return spent


def decode_rows(blob: bytes) -> list[list[Any]]:
    """Rows of one blob."""
    return _decoder.decode(blob)


def merge(outputs: Iterable[tuple[int, str, bytes]]) -> dict[str, list[list[Any]]]:
    """Rows per table of all lanes, in the order of the lanes: a repeat gives the same order."""
    rows: dict[str, list[list[Any]]] = defaultdict(list)
    for _lane, table, blob in sorted(outputs, key=lambda output: output[:2]):
        rows[table].extend(decode_rows(blob))
    return rows


def _visible(value: Any) -> Any:
    """Half of a surrogate pair, which msgpack refuses, as visible text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {key: _visible(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(inner) for inner in value]
    return value
