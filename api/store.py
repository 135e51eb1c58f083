"""The tables as the API sees them: one background reader, a current view in memory, and the files behind it.

One pass, in this order: (1) `progress` is followed to its last commit; its highest batch is the one to trust. (2) The
other tables that have moved are followed, once a second all of them; as `progress` is written last, each of them holds
the trusted batch whole. (3) Of what they brought, rows of batches above the last folded and not above the trusted one
are taken; the rest waits in its follower, and what was taken too, until it is shown. (4) They are folded into a copy
on write of the view, with requests in between. (5) The copy takes the place of the view, between two requests.

A compaction says that it adds no rows, and a follower that must begin anew passes over batches that were folded:
nothing is counted twice, whatever files come and go. A table that was made anew under the old name starts a new view.

Never writes a table. The clock is an argument.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any, NamedTuple

from api.access.personal import hidden
from api.access.tokens import EVERYTHING, Scope
from api.beginning import Rows, begun, oldest_ms
from api.errors import ApiError, NotFound, TablesMissing, TablesNotRead, TableUnreadable, no_cluster
from api.files.follower import Follower
from api.files.reader import TableReader
from api.present.current import ClusterView, Current, GroupView
from api.present.folding import Fold, by_group
from api.present.freshness import Freshness
from api.present.summed import added_up
from api.settings import ApiSettings

log = logging.getLogger("kardia.api.store")

VIEWED = ("transitions", "rebalances", "members", "health", "predictions", "lag")
"""Tables folded into the current view, beside `progress`."""

OPTIONAL = frozenset({"lag"})
"""Of them those that tables of an older version lack: what needs them says so, and all else is answered."""

FOLLOWED = ("progress", *VIEWED)
"""Tables that are followed, in the order of looking."""

END = 1 << 62
"""Above every batch."""

FULL_LOOK_MS = 1_000
"""Longest time between two looks at all tables."""

AFAR_MS = 250
"""Shortest pause between two looks at tables in a store: each is a request that is paid for. A job that writes to one
commits every few seconds."""

FULL_LOOK_AFAR_MS = 10_000
"""The same for tables in a store, where it takes five requests for each of them."""


class Change(NamedTuple):
    """What one look at the tables found: new rows for the view, or a view that takes its place."""

    rows: dict[str, list[Any]]
    samples: dict[tuple[str, str], list[Any]]
    """Rows of health by (cluster, group); nearly all there are."""
    trusted: int
    view: Current | None
    troubles: dict[str, ApiError]
    folded: dict[str, int]
    identities: dict[str, str]
    is_news: bool
    """Whether the view will not be what it was."""


class Store:
    """Reads `settings.tables`. `look` may run in a thread of its own; everything else belongs to the event loop."""

    def __init__(self, settings: ApiSettings, now_ms: Callable[[], int]) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self.events = self._reader("events")
        """The archive of events; opened when it is asked for, as it may not exist."""
        self.readers = {name: self._reader(name) for name in (*VIEWED, "disagreements", "surprises")} | {
            "events": self.events
        }
        """For questions about the past, in any thread."""
        self._followers = {"progress": Follower(self._reader("progress"), added_up)} | {
            name: Follower(self._reader(name)) for name in VIEWED
        }
        self.rejected = self._reader("rejected")
        """Lines that could not be understood; the view only has their number."""
        self.current = Current(settings)
        self.looked_at_ms: int | None = None
        self.epoch = token_hex(12)
        """Which view this is: another process has another one, and counts its own revisions."""
        self.revision = 0
        """How often the view has changed."""
        self._folded: dict[str, int] = {}
        self._identities: dict[str, str] = {}
        self._troubles: dict[str, ApiError] = {name: TablesNotRead([name]) for name in FOLLOWED}
        self._is_torn = False
        """Since a fold began; still so if it failed."""
        self.is_near = self.rejected.is_near
        """Whether a look costs nothing to speak of. In a store it costs requests, which are made side by side."""
        self._threads = None if self.is_near else ThreadPoolExecutor(len(VIEWED), thread_name_prefix="look")

    def _reader(self, name: str) -> TableReader:
        return TableReader(self.settings.tables, name, hidden(name, hide_personal=self.settings.hide_personal))

    # --- looking ----------------------------------------------------------------------------------------------------

    async def rest(self, at_least_ms: int) -> None:
        """Wait until it is time for another look."""
        await asyncio.sleep(max(at_least_ms, 0 if self.is_near else AFAR_MS) / 1_000)

    def is_behind(self) -> bool:
        """Whether a look may find something: `progress` is written last in every batch. A full look comes every
        `FULL_LOOK_MS` all the same, for what this cannot see (a log that was cleaned while nobody looked)."""
        return self._is_overdue() or bool(self.troubles()) or self._followers["progress"].has_moved()

    def _is_overdue(self) -> bool:
        every_ms = FULL_LOOK_MS if self.is_near else FULL_LOOK_AFAR_MS
        return self.looked_at_ms is None or self.now_ms() - self.looked_at_ms >= every_ms

    async def looked(self) -> Change:
        """What a look finds. Files are read in a thread: requests go on meanwhile."""
        return await asyncio.to_thread(self.look)

    def look(self) -> Change:
        """Steps 1 to 3; touches nothing that a request reads."""
        if self.current.batch_id < 0:
            return self._begun()
        folded, trusted, overdue = dict(self._folded), self.current.batch_id, self._is_overdue()
        troubles = self._follow(folded, lambda follower: overdue or follower.has_moved())
        identities = self._found(troubles)
        anew = any(self._identities.get(name, identity) != identity for name, identity in identities.items())
        if anew or self._is_torn:
            log.warning("store.view.restarted why=%s", "a table was made anew" if anew else "a fold was not finished")
            return self._begun()
        if "progress" in troubles:
            return self._unread(troubles)
        rows = {"progress": self._followers["progress"].rows(folded.get("progress", -1), END)}
        trusted = max((row.batch_id for row in rows["progress"]), default=trusted)
        folded["progress"] = trusted
        for name in VIEWED:
            if name not in troubles and folded.get(name, -1) < trusted:
                rows[name] = self._followers[name].rows(folded.get(name, -1), trusted)
                folded[name] = trusted
        shown = self._shown(rows)
        is_news = any(shown.values())
        samples = by_group(shown.pop("health", ()))
        return Change(shown, samples, trusted, None, troubles, folded, self._identities | identities, is_news)

    def _begun(self) -> Change:
        """A view in place of the one that is shown, of all that is there."""
        found = begun(self._each, VIEWED, self.settings, self._shown)
        if found.view is None:
            return self._unread(found.troubles)
        identities = self._identities | self._found(found.troubles)
        folded = dict.fromkeys(found.names, found.trusted)
        return Change({}, {}, found.trusted, found.view, found.troubles, folded, identities, is_news=True)

    def _unread(self, troubles: dict[str, ApiError]) -> Change:
        """No news, as it is not known up to where the tables can be trusted."""
        return Change({}, {}, -1, None, troubles, dict(self._folded), dict(self._identities), is_news=False)

    def _follow(self, folded: Mapping[str, int], wanted: Callable[[Follower], bool]) -> dict[str, ApiError]:
        """Follow the tables that are wanted, `progress` first; what is wrong with which."""

        def follow(name: str, follower: Follower) -> None:
            above = folded.get(name, -1)
            follower.forget(above)
            if name in self._troubles or wanted(follower):
                ledger = self._followers["progress"].waiting
                follower.look(above, oldest_ms(self.settings, name, ledger) if above < 0 else None)

        return self._each(("progress",), follow) | self._each(VIEWED, follow)

    def _each(self, names: Sequence[str], do: Callable[[str, Follower], object]) -> dict[str, ApiError]:
        """Do something with followers, side by side where tables are in a store; what is wrong with which table."""

        def attempt(name: str) -> ApiError | None:
            try:
                do(name, self._followers[name])
            except (TablesMissing, TableUnreadable) as error:
                return error
            return None

        found = map(attempt, names) if self._threads is None else self._threads.map(attempt, names)
        return {name: error for name, error in zip(names, found, strict=True) if error is not None}

    def _found(self, troubles: Mapping[str, ApiError]) -> dict[str, str]:
        """Identities of the tables that can be read."""
        return {name: found.reader.identity for name, found in self._followers.items() if name not in troubles}

    def take_in(self, change: Change) -> Iterator[None]:
        """Steps 4 and 5, in pieces. What step 5 replaces is freed in pieces as well: all at once takes as long as ten
        answers."""
        view, replaced = change.view or self.current, []
        if change.view is None and change.is_news:
            self._is_torn = True
            fold = Fold(self.current, change.rows, change.samples, change.trusted)
            yield from fold.pieces()
            view, replaced = fold.view, fold.replaced
        self._show(change, view)
        while replaced:
            del replaced[-1]
            yield

    def _show(self, change: Change, view: Current) -> None:
        self.revision += change.is_news
        self._is_torn &= view is self.current
        self.current = view
        self._folded = change.folded
        self._identities = change.identities
        self._troubles = change.troubles
        self.looked_at_ms = self.now_ms()

    def refresh(self) -> None:
        """Look and take in at once, for callers without an event loop."""
        for _ in self.take_in(self.look()):
            pass

    def _shown(self, rows: Rows) -> Rows:
        only = self.settings.cluster
        if only is None:
            return rows
        return {name: [row for row in found if row.cluster_id == only] for name, found in rows.items()}

    @property
    def identity(self) -> str:
        """Which tables the view was folded from; another one after they were made anew under their old names."""
        return self._identities.get("progress", "")

    # --- asking -----------------------------------------------------------------------------------------------------

    def troubles(self, *names: str) -> list[ApiError]:
        """What is wrong with these tables, or with any that must be there."""
        if names:
            return [self._troubles[name] for name in names if name in self._troubles]
        found = ((name, self._troubles[name]) for name in FOLLOWED if name in self._troubles)
        return [error for name, error in found if not (name in OPTIONAL and isinstance(error, TablesMissing))]

    def require(self, *names: str) -> None:
        """Raise TablesNotRead, TablesMissing or TableUnreadable, naming all that are wanted and not to be had."""
        wanted = ("progress", *names)
        for kind in (TablesNotRead, TablesMissing, TableUnreadable):
            found = [name for name in wanted if isinstance(self._troubles.get(name), kind)]
            if found:
                raise kind(found)

    def cluster(self, cluster_id: str) -> ClusterView:
        """A cluster by name."""
        view = self.current.clusters.get(cluster_id)
        if view is None:
            raise no_cluster()
        return view

    def group(self, cluster_id: str, group_id: str) -> GroupView:
        """A group by cluster and name."""
        view = self.cluster(cluster_id).groups.get(group_id)
        if view is None:
            raise NotFound("group", "No group of this name was seen in this cluster; its /groups lists them.")
        return view

    def freshness(
        self, cluster: ClusterView | None = None, among: Scope = EVERYTHING, *, group: GroupView | None = None
    ) -> Freshness:
        """Freshness of one group of a cluster, of a cluster, or of the one that is furthest behind of those the caller
        may ask about."""
        if cluster is not None and group is not None:
            complete_ms = cluster.complete_of(group)
        elif cluster is not None:
            complete_ms = cluster.reach.complete_as_of_ms
        else:
            reached = [
                view.reach.complete_as_of_ms for name, view in self.current.clusters.items() if among.allows(name)
            ]
            complete_ms = min((at for at in reached if at is not None), default=None)
        return Freshness(complete_ms, self.now_ms(), self.settings.stale_after_ms, self.current.batch_id)
