"""Draws histories for the coordinators of 2.3 to 2.7: as `draw`, without what their brokers cannot be asked.

They do not keep who has not synced yet, so it is told from who waits; 2.3 has no LeaveGroup of several members and no
OffsetDelete.
"""

from __future__ import annotations

import random

from kardia.coordinator.classic.operations import Leave, Leaving, Operation, View
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.kafka.releases import version_of
from tests.truth.draw import Artist


def takes_several(kafka_version: str) -> bool:
    """Whether a release has LeaveGroup of several members (version 3), and OffsetDelete: 2.4 brought both."""
    return version_of(kafka_version) >= (2, 4, 0)


class OldArtist(Artist):
    """Draws the moves of one history of one of these releases."""

    def __init__(self, rng: random.Random, settings: CoordinatorSettings, kafka_version: str) -> None:
        """As `Artist`."""
        super().__init__(rng, settings)
        self._several = takes_several(kafka_version)

    def _sensible(self, group_id: str, view: View | None) -> Operation:
        if view is not None and view.state == "CompletingRebalance":
            missing = tuple(one.member_id for one in view.members if not one.waits_for_sync)
            view = view._replace(pending_sync=missing)
        return super()._sensible(group_id, view)

    def _leave(self, group_id: str, view: View | None) -> Leave:
        if self._several:
            return super()._leave(group_id, view)
        rng = self._rng
        member_id = rng.choice(view.pending)[0] if view is not None and view.pending and rng.random() < 0.3 else ""
        return Leave(self._next(), rng.randrange(3), group_id, (Leaving(member_id or self._id(view), None, None),))

    def _offset_delete(self, group_id: str) -> Operation:  # type: ignore[override]
        return super()._offset_delete(group_id) if self._several else self._delete_groups(group_id)
