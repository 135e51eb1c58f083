"""The past of a group, read from the tables in pages: state history, rebalances, lives and evictions.

Every question is a typed Arrow filter and a place in an order; pages are cut behind the standing rule, so a superseded
row is never shown beside the one that corrected it. A question that would read more rows than `rows_read_max` is
refused instead of filling the memory; transitions need no such bound, because their page is kept small while reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from api.access.ids import sort_key
from api.errors import RangeTooWide
from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past.cursor import Place
from api.present.standing import Standing
from kardia.tables import BATCH, TABLES


def up_to(batch_id: int) -> Bound:
    """Rows of batches up to one; it also says to a reader of more than files which of that counts (`live.view`)."""
    return Bound(BATCH.name, "<=", batch_id)


class Knowledge(NamedTuple):
    """Which rows count: those of batches up to one, and with `known_at_ms` only those settled by that instant."""

    batch_id: int
    known_at_ms: int | None = None

    def of(self, cluster_id: str, group_id: str) -> tuple[ds.Expression, list[Bound]]:
        """Rows of a group that count; and the same of files."""
        where = (
            (ds.field("cluster_id") == cluster_id)
            & (ds.field("group_id") == group_id)
            & (ds.field("batch_id") <= self.batch_id)
        )
        files = [Bound("group_id", "=", group_id), up_to(self.batch_id)]
        if self.known_at_ms is None:
            return where, files
        files.append(Bound("known_at_ms", "<=", self.known_at_ms))
        return where & (ds.field("known_at_ms") <= self.known_at_ms), files


class HistoryPart(NamedTuple):
    """Which part of a history: from (inclusive) to (exclusive), how many rows, in which order, from where on."""

    from_ms: int | None
    to_ms: int | None
    limit: int
    newest_first: bool
    place: Place
    """`batch_id` bounds what is seen; `after` is empty for the first page."""
    known_at_ms: int | None = None
    """Only rows settled by then count; None: all do."""


class Page(NamedTuple):
    """Rows of one page, and the place behind them if there are more."""

    rows: list[Any]
    place: Place | None


def transitions(
    reader: TableReader,
    cluster_id: str,
    group_id: str,
    part: HistoryPart,
    entity: str | None,
    member_id: str | None = None,
) -> Page:
    """State history of a group by `seq`, optionally of the group or of its members alone, or of one member."""
    where, files = _within(cluster_id, group_id, part, "at_ms", "at_ms")
    if entity is not None:
        where &= ds.field("entity") == entity
    if member_id is not None:
        where &= ds.field("member_id") == member_id
    if part.place.after:
        seq = part.place.after[0]
        where &= ds.field("seq") < seq if part.newest_first else ds.field("seq") > seq

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        return first_of(reader, chunks, ("seq",), part)

    return cut(reader.scan(where, files, take), part, lambda row: (row.seq,))


def rebalances(reader: TableReader, cluster_id: str, group_id: str, part: HistoryPart, max_rows: int) -> Page:
    """Rebalances of a group by the instant they began."""
    where, files = _within(cluster_id, group_id, part, "started_at_ms", "started_at_ms")
    rows = standing_rows(reader, where, files, max_rows)
    return _page(rows, part, lambda row: (row.started_at_ms, row.generation_before))


def evictions(
    reader: TableReader, cluster_id: str, group_id: str, part: HistoryPart, causes: frozenset[str], max_rows: int
) -> Page:
    """Memberships of a group that ended for one of `causes`, by the instant they ended.

    A row that says so is known no earlier than the end, and a life that ended in the range began before its end: both
    are bounds on the rows to read, and neither separates a row from the one that corrects it.
    """
    where, files = _within(cluster_id, group_id, part, "known_at_ms", "joined_at_ms")
    rows = [
        row
        for row in standing_rows(reader, where, files, max_rows)
        if row.end_cause in causes
        and row.ended_at_ms is not None
        and (part.from_ms is None or row.ended_at_ms >= part.from_ms)
        and (part.to_ms is None or row.ended_at_ms < part.to_ms)
    ]
    return _page(rows, part, lambda row: (row.ended_at_ms, sort_key(row.member_id), row.joined_at_ms))


def predictions(
    reader: TableReader, cluster_id: str, group_id: str, part: HistoryPart, max_rows: int, member_id: str | None = None
) -> Page:
    """Predictions about members of a group, or about one, by the instant they were first said, with what became of
    them."""
    where, files = _within(cluster_id, group_id, part, "predicted_at_ms", "predicted_at_ms")
    if member_id is not None:
        where &= ds.field("member_id") == member_id
    rows = standing_rows(reader, where, files, max_rows)
    return _page(rows, part, lambda row: (row.predicted_at_ms, sort_key(row.member_id), row.kind))


def health_at(
    reader: TableReader,
    cluster_id: str,
    group_id: str,
    knowledge: Knowledge,
    at_ms: int,
    lookback_ms: int,
    max_rows: int,
) -> list[Any]:
    """Of each member its latest health row at or before an instant, and not older than `lookback_ms`."""
    where, files = knowledge.of(cluster_id, group_id)
    where &= (ds.field("at_ms") <= at_ms) & (ds.field("at_ms") >= at_ms - lookback_ms)
    files += [Bound("at_ms", "<=", at_ms), Bound("at_ms", ">=", at_ms - lookback_ms)]

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        latest: dict[str, Any] = {}
        seen = 0
        for chunk in chunks:
            seen += chunk.num_rows
            bounded(seen, max_rows, reader.name)
            for row in reader.rows(chunk):
                before = latest.get(row.member_id)
                if before is None or (before.at_ms, before.batch_id) <= (row.at_ms, row.batch_id):
                    latest[row.member_id] = row
        return list(latest.values())

    return reader.scan(where, files, take)


def health_between(
    reader: TableReader,
    cluster_id: str,
    group_id: str,
    knowledge: Knowledge,
    times: tuple[int, int],
    max_rows: int,
) -> list[Any]:
    """All health rows of a group from an instant to before another."""
    where, files = knowledge.of(cluster_id, group_id)
    where &= (ds.field("at_ms") >= times[0]) & (ds.field("at_ms") < times[1])
    files += [Bound("at_ms", ">=", times[0]), Bound("at_ms", "<", times[1])]

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        found: list[Any] = []
        for chunk in chunks:
            bounded(len(found) + chunk.num_rows, max_rows, reader.name)
            found += reader.rows(chunk)
        return found

    return reader.scan(where, files, take)


def events_at(
    reader: TableReader, cluster_id: str, group_id: str, positions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], Any]:
    """Archived events by position, (source, first byte); positions that the archive does not hold are absent."""
    wanted = set(positions)
    if not wanted:
        return {}
    where = (
        (ds.field("cluster_id") == cluster_id)
        & (ds.field("group_id") == group_id)
        & ds.field("source").isin(sorted({source for source, _ in wanted}))
        & ds.field("start").isin(sorted({start for _, start in wanted}))
    )

    def take(chunks: Iterator[pa.Table]) -> dict[tuple[str, int], Any]:
        rows = (row for chunk in chunks for row in reader.rows(chunk))
        return {(row.source, row.start): row for row in rows if (row.source, row.start) in wanted}

    return reader.scan(where, [Bound("group_id", "=", group_id)], take)


def lives(
    reader: TableReader, cluster_id: str, group_id: str, member_id: str, batch_id: int, max_rows: int
) -> list[Any]:
    """All lives of one member id, the latest first."""
    where = (
        (ds.field("cluster_id") == cluster_id)
        & (ds.field("group_id") == group_id)
        & (ds.field("member_id") == member_id)
        & (ds.field("batch_id") <= batch_id)
    )
    files = [Bound("group_id", "=", group_id), up_to(batch_id)]
    return sorted(standing_rows(reader, where, files, max_rows), key=lambda row: row.joined_at_ms, reverse=True)


def lives_until(
    reader: TableReader, cluster_id: str, group_id: str, knowledge: Knowledge, at_ms: int, max_rows: int
) -> list[Any]:
    """Standing rows of all lives of a group that began at or before an instant."""
    where, files = knowledge.of(cluster_id, group_id)
    where &= ds.field("joined_at_ms") <= at_ms
    return standing_rows(reader, where, [*files, Bound("joined_at_ms", "<=", at_ms)], max_rows)


def first_of(reader: TableReader, chunks: Iterable[pa.Table], names: Sequence[str], part: HistoryPart) -> list[Any]:
    """Rows of a page in the order of some columns, and one more; never keeps more than that while reading."""
    order = [(name, "descending" if part.newest_first else "ascending") for name in names]
    kept: pa.Table | None = None
    for chunk in chunks:
        both = chunk if kept is None else pa.concat_tables([kept, chunk])
        kept = both.take(pc.select_k_unstable(both, min(part.limit + 1, both.num_rows), sort_keys=order))
    return [] if kept is None else list(reader.rows(kept))


def behind(names: Sequence[str], place: Sequence[Any], *, newest_first: bool) -> ds.Expression:
    """Rows that come after a place in the order of some columns."""
    column, value = ds.field(names[0]), place[0]
    further = column < value if newest_first else column > value
    if len(names) == 1:
        return further
    return further | ((column == value) & behind(names[1:], place[1:], newest_first=newest_first))


def _within(
    cluster_id: str, group_id: str, part: HistoryPart, lower: str, upper: str
) -> tuple[ds.Expression, list[Bound]]:
    """Rows of a group whose column `lower` is not before the range and whose `upper` is before its end; and the same
    of files."""
    where, files = Knowledge(part.place.batch_id, part.known_at_ms).of(cluster_id, group_id)
    if part.from_ms is not None:
        where &= ds.field(lower) >= part.from_ms
        files.append(Bound(lower, ">=", part.from_ms))
    if part.to_ms is not None:
        where &= ds.field(upper) < part.to_ms
        files.append(Bound(upper, "<", part.to_ms))
    return where, files


def standing_rows(reader: TableReader, where: ds.Expression, files: list[Bound], max_rows: int) -> list[Any]:
    """Standing rows among those that a question reads, at most `max_rows` of them."""

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        standing, seen = Standing(TABLES[reader.name]), 0
        for chunk in chunks:
            seen += chunk.num_rows
            bounded(seen, max_rows, reader.name)
            for row in reader.rows(chunk):
                standing.fold(row)
        return list(standing.rows())

    return reader.scan(where, files, take)


def bounded(seen: int, max_rows: int, table: str) -> None:
    """Raise RangeTooWide when more rows of a group were read than one request may."""
    if seen > max_rows:
        raise RangeTooWide(
            f"from, to: expected a range with at most {max_rows} rows of this group in the table; narrow it.",
            table=table,
            limit="rows_read_max",
        )


def _page(rows: list[Any], part: HistoryPart, sort_key: Callable[[Any], tuple[Any, ...]]) -> Page:
    rows.sort(key=sort_key, reverse=part.newest_first)
    if part.place.after:
        after = part.place.after
        rows = [row for row in rows if (sort_key(row) < after if part.newest_first else sort_key(row) > after)]
    return cut(rows, part, sort_key)


def cut(rows: list[Any], part: HistoryPart, sort_key: Callable[[Any], tuple[Any, ...]]) -> Page:
    """The page of some rows in order, and the place behind it if there are more."""
    shown = rows[: part.limit]
    more = len(rows) > part.limit
    return Page(shown, Place(part.place.batch_id, sort_key(shown[-1])) if more else None)
