"""The store of `kardia serve --follow-topic`: ahead of the tables while that is possible, else over
them alone.

The view goes on from the tables as `api.store` has it at a batch of the job: it takes what a follower has told of the
records behind that batch (`live.followed`), and no row of the tables any more, so that none is folded twice. When the
follower stops, a view is begun over the tables in place of the one that is shown. Belongs to the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from api.access.tokens import EVERYTHING, Scope
from api.present.current import ClusterView, Current, GroupView
from api.present.freshness import Freshness
from api.settings import ApiSettings
from api.store import VIEWED, Change
from live.followed import Followed
from live.view import REST_S, AheadStore

log = logging.getLogger("kardia.live.followed_store")


class FollowedStore(AheadStore):
    """The tables, and what is ahead of them while somebody follows the topic."""

    def __init__(self, settings: ApiSettings, now_ms: Callable[[], int], followed: Followed) -> None:
        """Begin over the tables."""
        self._followed = followed
        super().__init__(settings, now_ms, followed)
        self._run: int | None = None
        """The run of the follower that the view is ahead by; None: it is of the tables alone."""
        self._must_begin = False
        """Whether what is shown is of a run that is over: nothing of the tables can be folded into it."""
        self._number = 0
        """The last piece that the view has."""

    @property
    def is_ahead(self) -> bool:
        """Whether answers rest on more than the tables."""
        return self._run is not None

    def is_behind(self) -> bool:
        """Whether a look may find something."""
        if self._run is None:
            return self._must_begin or self._can_go_ahead() or super().is_behind()
        followed = self._followed
        return (
            self._is_torn
            or followed.run != self._run
            or followed.number > self._number
            or followed.label(self._number) > self.current.batch_id
        )

    async def rest(self, at_least_ms: int) -> None:
        """Wait until it is time for another look, or until the follower has told something."""
        if self._run is not None:
            await self._woken(REST_S)
        else:
            await super(AheadStore, self).rest(at_least_ms)

    def _is_in_memory(self) -> bool:
        return self._run is not None and self._run == self._followed.run and not self._is_torn

    def _can_go_ahead(self) -> bool:
        """Whether the view is at a batch behind which everything was told, whole in all tables."""
        at = self.current.batch_id
        return (
            self._followed.is_ready
            and at >= 0
            and not self._is_torn
            and not self._troubles
            and all(self._folded.get(name) == at for name in ("progress", *VIEWED))
            and self._followed.knows(at)
        )

    def look(self) -> Change:
        """What the tables have, or what was told ahead of them."""
        if self._run is not None and not self._is_in_memory():
            log.warning("store.view.restarted why=%s", "nothing is ahead of the tables any more")
            self._run, self._must_begin = None, True
        if self._must_begin:
            begun = self._begun()
            self._must_begin = begun.view is None
            return begun
        if self._run is not None:
            return self._told(None)
        if self._can_go_ahead():
            self._run, self._number = self._followed.run, 0
            return self._told(self.current.batch_id)
        return super().look()

    def _told(self, behind: int | None) -> Change:
        self._number, pieces = self._followed.after(self._number, behind)
        label = max(self._followed.label(self._number), self.current.batch_id)
        told = ((label, piece.rows) for piece in pieces)
        return self._folded_in(told, label, is_moved=label > self.current.batch_id)

    def freshness(
        self, cluster: ClusterView | None = None, among: Scope = EVERYTHING, *, group: GroupView | None = None
    ) -> Freshness:
        """The same, and whether what it rests on is in the tables."""
        found = super().freshness(cluster, among, group=group)
        is_over = self._run is not None and self._run != self._followed.run
        is_waiting = is_over or (self._run is not None and self._followed.waits(self._number))
        return found._replace(in_tables=not (is_waiting or self._must_begin))

    def _show(self, change: Change, view: Current) -> None:
        super()._show(change, view)
        if self._run is not None and self._run == self._followed.run:
            self._followed.seen(self._number)
