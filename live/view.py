"""The tables and what is ahead of them, as the API sees both: the store of `kardia serve`, fed from memory.

It begins over the tables, as that does; from there on each step of the lanes is folded at once, and a question about
the past reads the files up to the first batch that is not written, and the rows from there on here. So an answer never
tells a row twice, nor one that the tables will not have. Belongs to the event loop, as `api.store` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from api.access.personal import hidden
from api.access.tokens import EVERYTHING, Scope
from api.files.data_files import Bound
from api.files.reader import Found, TableReader
from api.present.current import ClusterView, Current, GroupView
from api.present.folding import by_group
from api.present.freshness import Freshness
from api.settings import ApiSettings
from api.store import FOLLOWED, Change, Store
from kardia.tables import BATCH, TABLES
from live.ahead import Ahead, Told
from live.rows import as_read
from spark_jobs.schemas import to_tables
from stores.locations import Folder


class Waiting(Protocol):
    """Rows that are not in the tables."""

    wake: Callable[[], object]

    @property
    def unseen(self) -> int:
        """How many rows were told since the view took the last ones."""

    def of(self, name: str, up_to: int | None) -> tuple[int, list[Told]] | None:
        """(First batch of which nothing is read from a table, what was told in the place of it and of those after it);
        None: all is in the table. `up_to`: the batch that a question rests on, if it does on one."""


class AheadReader(TableReader):
    """A table, and its rows that are not written yet."""

    def __init__(self, root: Folder, name: str, hides: frozenset[str], ahead: Waiting) -> None:
        """Read both."""
        super().__init__(root, name, hides)
        self._hides = [column for column in TABLES[name].names if column in hides]
        self._ahead = ahead

    def scan(
        self, where: ds.Expression | None, files: list[Bound], take: Callable[[Iterator[pa.Table]], Found]
    ) -> Found:
        """Give `take` the matching rows in chunks, those of the files first."""
        bounds = (int(one.value) for one in files if one[:2] == (BATCH.name, "<="))
        found = self._ahead.of(self.name, min(bounds, default=None))
        if found is None:
            return super().scan(where, files, take)
        first, waiting = found
        before = ds.field(BATCH.name) < first
        more = list(self._matching(where, waiting))
        return super().scan(
            before if where is None else where & before,
            [*files, Bound(BATCH.name, "<", first)],
            lambda chunks: take(chain(chunks, more)),
        )

    def _matching(self, where: ds.Expression | None, waiting: Iterable[Told]) -> Iterator[pa.Table]:
        for told in waiting:
            tables = to_tables({self.name: told.rows[self.name]}, told.batch_id)
            if self.name in tables:
                rows = tables[self.name]
                matching = rows if where is None else rows.filter(where)
                if matching.num_rows:
                    yield matching.drop_columns(self._hides)


FEW_ROWS = 100
"""So many rows are made what a reader gets within half a millisecond."""

REST_S = 1.0
"""Longest time without a look, for what nobody wakes the view for."""


class AheadStore(Store):
    """A store that is woken by what is told ahead of the tables."""

    def __init__(self, settings: ApiSettings, now_ms: Callable[[], int], waiting: Waiting) -> None:
        """Read the tables and what waits."""
        self._waiting = waiting
        super().__init__(settings, now_ms)
        self._hides = {name: hidden(name, hide_personal=settings.hide_personal) for name in FOLLOWED}
        self._news = asyncio.Event()

    def _reader(self, name: str) -> AheadReader:
        hides = hidden(name, hide_personal=self.settings.hide_personal)
        return AheadReader(self.settings.tables, name, hides, self._waiting)

    async def rest(self, at_least_ms: int) -> None:  # noqa: ARG002  what is told in between comes together
        """Wait until the lanes have told something."""
        await self._woken(REST_S)

    async def _woken(self, within_s: float) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody looks any more
                loop.call_soon_threadsafe(self._news.set)

        self._waiting.wake = wake
        if not self.is_behind():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), within_s)
        self._news.clear()

    async def looked(self) -> Change:
        """What a look finds. What the lanes told is in memory: a few rows take less than to wake a thread."""
        if self._is_in_memory() and self._waiting.unseen < FEW_ROWS:
            return self.look()
        return await super().looked()

    def _is_in_memory(self) -> bool:
        """Whether a look reads no file."""
        raise NotImplementedError

    def _folded_in(self, told: Iterable[tuple[int, Any]], trusted: int, *, is_moved: bool = False) -> Change:
        """A change by what was told, each with its batch; `is_moved`: the view is of another batch even so."""
        rows: dict[str, list[Any]] = {}
        for batch_id, some in told:
            for name in self._hides.keys() & some.keys():
                rows.setdefault(name, []).extend(as_read(name, some[name], batch_id, self._hides[name]))
        shown = self._shown(rows)
        is_news = is_moved or any(shown.values())
        samples = by_group(shown.pop("health", ()))
        return Change(shown, samples, trusted, None, {}, {}, self._identities, is_news)


class LiveStore(AheadStore):
    """The store of `kardia live`."""

    def __init__(self, settings: ApiSettings, now_ms: Callable[[], int], ahead: Ahead) -> None:
        """Wait until `ahead` is ready, then begin over the tables."""
        self._ahead = ahead
        super().__init__(settings, now_ms, ahead)
        self._has_begun = False
        self._base = -1
        """The batch up to which the view was read from the tables."""
        self._number = 0
        """The last step that the view has beside it."""

    def is_behind(self) -> bool:
        """Whether a look may find something."""
        return self._ahead.is_ready and (not self._has_begun or self._is_torn or self._ahead.number > self._number)

    def _is_in_memory(self) -> bool:
        return self._has_begun and not self._is_torn

    def look(self) -> Change:
        """Begin over the tables; after that, what the lanes have told since."""
        if not self._has_begun or self._is_torn:
            begun = self._begun()
            self._has_begun = begun.view is not None
            self._base, self._number = begun.trusted, 0
            return begun
        self._number, told = self._ahead.after(self._number, self._base)
        trusted = max([self.current.batch_id, *(one.batch_id for one in told)])
        return self._folded_in(((one.batch_id, one.rows) for one in told), trusted)

    def freshness(
        self, cluster: ClusterView | None = None, among: Scope = EVERYTHING, *, group: GroupView | None = None
    ) -> Freshness:
        """The same, and whether what it rests on is in the tables."""
        found = super().freshness(cluster, among, group=group)
        return found._replace(in_tables=found.batch_id <= self._ahead.written)

    def _show(self, change: Change, view: Current) -> None:
        super()._show(change, view)
        self._ahead.seen(self._number)
