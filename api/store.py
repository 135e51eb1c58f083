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

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any, NamedTuple

from api.access.personal import hidden
from api.access.tokens import EVERYTHING, Scope
from api.errors import ApiError, NotFound, TablesMissing, TablesNotRead, TableUnreadable, no_cluster
from api.files.follower import Follower
from api.files.reader import TableReader
from api.present.current import ClusterView, Current, GroupView
from api.present.folding import Fold, after, by_group
from api.present.freshness import Freshness
from api.settings import ApiSettings
from kardia.lag.book import REPEAT_MS

log = logging.getLogger("kardia.api.store")

VIEWED = ("transitions", "rebalances", "members", "health", "predictions", "lag")
"""Tables folded into the current view, beside `progress`."""

OPTIONAL = frozenset({"lag"})
"""Of them those that tables of an older version lack: what needs them says so, and all else is answered."""

FOLLOWED = ("progress", *VIEWED)
"""Tables that are followed, in the order of looking."""

END = 1 << 62
"""Above every batch."""

LAG_LOOKBACK_MS = REPEAT_MS + 900_000
"""A partition whose lag does not change is written once an hour, and a little later where many wait."""

FULL_LOOK_MS = 1_000
"""Longest time between two looks at all tables."""

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
        self.readers = {name: self._reader(name) for name in (*VIEWED, "disagreements")} | {"events": self.events}
        """For questions about the past, in any thread."""
        self._followers = {name: Follower(self._reader(name)) for name in FOLLOWED}
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

    def is_behind(self) -> bool:
        """Whether a look may find something: `progress` is written last in every batch. A full look comes every
        `FULL_LOOK_MS` all the same, for what this cannot see (a log that was cleaned while nobody looked)."""
        return self._is_overdue() or bool(self.troubles()) or self._followers["progress"].has_moved()

    def _is_overdue(self) -> bool:
        every_ms = FULL_LOOK_MS if self.is_near else FULL_LOOK_AFAR_MS
        return self.looked_at_ms is None or self.now_ms() - self.looked_at_ms >= every_ms

    def look(self) -> Change:
        """Steps 1 to 3; touches nothing that a request reads."""
        folded, trusted, overdue = dict(self._folded), self.current.batch_id, self._is_overdue()
        troubles = self._follow(folded, lambda follower: overdue or follower.has_moved())
        identities = self._found(troubles)
        anew = any(self._identities.get(name, identity) != identity for name, identity in identities.items())
        if whole := anew or self._is_torn:
            log.warning("store.view.restarted why=%s", "a table was made anew" if anew else "a fold was not finished")
            folded, trusted = {}, -1
            for follower in self._followers.values():
                follower.restart()
            troubles = self._follow(folded, lambda _follower: True)
            identities = self._found(troubles)
        if "progress" in troubles:
            return Change({}, {}, -1, None, troubles, dict(self._folded), dict(self._identities), is_news=False)
        rows = {"progress": self._followers["progress"].rows(folded.get("progress", -1), END)}
        trusted = max((row.batch_id for row in rows["progress"]), default=trusted)
        folded["progress"] = trusted
        for name in VIEWED:
            if name not in troubles and folded.get(name, -1) < trusted:
                rows[name] = self._followers[name].rows(folded.get(name, -1), trusted)
                folded[name] = trusted
        shown = self._shown(rows)
        view = None
        if whole or self.current.batch_id < 0:
            # The first fold may be large; it is done here, off the event loop, on a view that nobody sees yet.
            view, shown = after(Current(self.settings), shown, trusted), {}
        is_news = view is not None or any(shown.values())
        samples = by_group(shown.pop("health", ()))
        return Change(shown, samples, trusted, view, troubles, folded, self._identities | identities, is_news)

    def _follow(self, folded: Mapping[str, int], wanted: Callable[[Follower], bool]) -> dict[str, ApiError]:
        """Follow the tables that are wanted, `progress` first; what is wrong with which."""

        def follow(name: str) -> ApiError | None:
            follower, above = self._followers[name], folded.get(name, -1)
            follower.forget(above)
            if name not in self._troubles and not wanted(follower):
                return None
            try:
                follower.look(above, self._oldest_ms(name) if above < 0 else None)
            except (TablesMissing, TableUnreadable) as error:
                return error
            return None

        found = {"progress": follow("progress")}
        others = map(follow, VIEWED) if self._threads is None else self._threads.map(follow, VIEWED)
        found |= zip(VIEWED, others, strict=True)
        return {name: error for name, error in found.items() if error is not None}

    def _found(self, troubles: Mapping[str, ApiError]) -> dict[str, str]:
        """Identities of the tables that can be read."""
        return {name: found.reader.identity for name, found in self._followers.items() if name not in troubles}

    def _oldest_ms(self, name: str) -> dict[str, int] | None:
        """By cluster: older rows of health and of lag are history, whoever is present has been written since. Counted
        from the source of the cluster that is furthest behind: its members were sampled last when it was read last."""
        back_ms = {"health": self.settings.health_lookback_ms, "lag": LAG_LOOKBACK_MS}.get(name)
        if back_ms is None:
            return None
        reached: dict[str, dict[tuple[int, str], int]] = {}
        for row in self._followers["progress"].waiting:
            sources = reached.setdefault(row.cluster_id, {})
            place = (row.lane, row.source)
            sources[place] = max(row.complete_to_ms, sources.get(place, 0))
        oldest: dict[str, int] = {}
        for cluster_id, sources in reached.items():
            live_ms = max(sources.values()) - self.settings.source_retired_ms
            behind_ms = min(at_ms for at_ms in sources.values() if at_ms >= live_ms)
            oldest[cluster_id] = behind_ms - back_ms
        return oldest

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

    def _shown(self, rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
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

    def freshness(self, cluster: ClusterView | None = None, among: Scope = EVERYTHING) -> Freshness:
        """Freshness of one cluster, or of the one that is furthest behind of those the caller may ask about."""
        if cluster is not None:
            complete_ms = cluster.reach.complete_as_of_ms
        else:
            reached = [
                view.reach.complete_as_of_ms for name, view in self.current.clusters.items() if among.allows(name)
            ]
            complete_ms = min((at for at in reached if at is not None), default=None)
        return Freshness(complete_ms, self.now_ms(), self.settings.stale_after_ms, self.current.batch_id)
