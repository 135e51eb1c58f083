"""One table followed from commit to commit: every row once, without opening the table again.

To bring a `DeltaTable` up to date and to list its files costs time for each file it has, in six tables, for every
batch. What a commit added stands in its own log entry, one JSON action per line (Delta's protocol, "Delta Log
Entries"), so the follower reads the next entry and the files it names. Where that is not possible (entries cleaned
away, a file compacted and vacuumed, another table under the old name, a change of shape, too many entries at once) it
begins anew: the table is opened, and all rows after a batch are read.

Whoever has a history before it takes it in pieces (`spans`, `past`), and follows from where it has come to.

Used by one thread, with a reader of its own. Writes nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds

from api.errors import TableUnreadable
from api.files.data_files import Bound
from api.files.folders import Mark
from api.files.pieces import Span
from api.files.reader import TableReader
from kardia.tables import BATCH

log = logging.getLogger("kardia.api.follower")

ENTRIES_MAX = 50
"""Entries read one by one in a look; whoever is further behind opens the table, which costs less."""


class Follower:
    """What commits have brought to one table."""

    def __init__(
        self, reader: TableReader, condensed: Callable[[Iterable[pa.Table]], Iterable[pa.Table]] = iter
    ) -> None:
        """Follow the table of `reader`, from its beginning; `condensed` makes fewer rows of those that it begins with,
        which say the same."""
        self.reader = reader
        self._condensed = condensed
        self.waiting: list[Any] = []
        """Rows that were read and are not yet `forgotten`, of batches that may not be trusted yet."""
        self._version: int | None = None
        self._mark: Mark | None = None

    def has_moved(self) -> bool:
        """Whether there may be a commit that was not read. Looks at names and at the number of the last checkpoint."""
        version = self._version
        try:
            if version is None or self.reader.has_entry(version + 1):
                return True
            if not self.reader.is_near:
                return False  # the rest is seen by the next full look: in a store it would be four requests more
            return self._mark != self.reader.mark_of(version) or self.reader.has_checkpoint_after(version)
        except TableUnreadable:
            return True  # the look will say so

    def look(self, above: int, oldest_at_ms: Mapping[str, int] | None = None) -> None:
        """Put into `waiting` what has come; all rows of batches after `above` if it must begin anew, and of those only
        rows since `oldest_at_ms` of their cluster. TablesMissing or TableUnreadable if the table cannot be read;
        nothing is lost then.
        """
        if not self._follow():
            self._begin(above, oldest_at_ms)

    def spans(self, oldest_at_ms: Mapping[str, int] | None = None) -> list[Span]:
        """What the files of the table have, for whoever takes it in pieces; errors as of `look`."""
        return self.reader.spans(_wanted(-1, None, oldest_at_ms)[1])

    def past(self, above: int, up_to: int, oldest_at_ms: Mapping[str, int] | None = None) -> list[Any]:
        """Rows of the batches after `above`, up to `up_to`, and since `oldest_at_ms` of their cluster, whatever was
        read before: a piece of what was there before the first look. Errors as of `look`."""
        return self._read(*_wanted(above, up_to, oldest_at_ms))

    def rows(self, above: int, up_to: int) -> list[Any]:
        """Rows of the batches after `above`, up to `up_to`."""
        return [row for row in self.waiting if above < row.batch_id <= up_to]

    def forget(self, up_to: int) -> None:
        """Let rows go that have been taken for good."""
        if self.waiting:
            self.waiting = [row for row in self.waiting if row.batch_id > up_to]

    def restart(self) -> None:
        """Begin anew at the next look."""
        self._version, self._mark, self.waiting = None, None, []

    def _follow(self) -> bool:
        """Read the entries after the last one that was read; whether that was possible."""
        version, mark = self._version, self._mark
        if version is None or mark is None or mark != self.reader.mark_of(version):
            return False
        if self.reader.is_near and self.reader.has_entry(version + ENTRIES_MAX + 1):
            return False
        found: list[Any] = []
        read = 0
        while (entry := self.reader.entry(version + 1)) is not None:
            if read == ENTRIES_MAX:
                return False
            try:
                names = appended(entry.content)
                if names is None:
                    return False
                for name in names:
                    found += self.reader.file_rows(name)
            except (FileNotFoundError, ValueError, LookupError, TypeError) as error:
                log.info("table.follow.restarted table=%s error=%s", self.reader.name, type(error).__name__)
                return False
            version, mark, read = version + 1, entry.mark, read + 1
        if self.reader.has_checkpoint_after(version):
            return False  # entries between here and there were cleaned away: what they added was not read
        self.waiting += found
        self._version, self._mark = version, mark
        return True

    def _begin(self, above: int, oldest_at_ms: Mapping[str, int] | None) -> None:
        """Open the table and read all rows after a batch, unless it is found where it was left."""
        identity = self.reader.identity
        if self.reader.refresh() == self._version and self.reader.identity == identity:
            self._mark = self.reader.mark_of(self._version)
            return
        self.waiting = self._read(*_wanted(above, None, oldest_at_ms))
        self.reader.forget_footers()
        self._version = self.reader.version
        self._mark = None if self._version is None else self.reader.mark_of(self._version)

    def _read(self, where: ds.Expression, files: list[Bound]) -> list[Any]:
        return self.reader.scan(
            where, files, lambda chunks: [row for chunk in self._condensed(chunks) for row in self.reader.rows(chunk)]
        )


def _wanted(above: int, up_to: int | None, oldest_at_ms: Mapping[str, int] | None) -> tuple[ds.Expression, list[Bound]]:
    """The rows after a batch, up to another one if it is given, and the files and row groups that may hold them."""
    where = ds.field(BATCH.name) > above
    files = [Bound(BATCH.name, ">", above)]
    if up_to is not None:
        where &= ds.field(BATCH.name) <= up_to
        files.append(Bound(BATCH.name, "<=", up_to))
    if oldest_at_ms:
        since = ((ds.field("cluster_id") == name) & (ds.field("at_ms") >= at) for name, at in oldest_at_ms.items())
        where &= reduce(or_, since)
        files.append(Bound("at_ms", ">=", min(oldest_at_ms.values())))
    return where, files


def appended(entry: bytes) -> list[str] | None:
    """Names of the files whose rows a log entry added; None if it does more than that. ValueError if it is torn."""
    names: list[str] = []
    for line in entry.splitlines():
        action = json.loads(line)
        if "metaData" in action or "protocol" in action:
            return None
        add = action.get("add")
        if add is not None and add["dataChange"]:
            if add.get("deletionVector") is not None or "://" in add["path"] or add["path"].startswith("/"):
                return None
            names.append(unquote(add["path"]))
        elif "remove" in action and action["remove"]["dataChange"]:
            return None
    return names
