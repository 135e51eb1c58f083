"""Draws random histories of share groups: members come, heartbeat, change what they want, leave or fall silent, while
topics come and go; and anything else, with ids and epochs that are right, stale, another's or made up.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share.operations import ConfigureShare, ShareBeat, ShareMemberView, ShareView
from kardia.coordinator.share.settings import ShareSettings
from tests.truth.draw_cluster import SUBSCRIPTIONS, ClusterArtist
from tests.truth.lockstep import Move

STARTED_AT_MS = 1_000_000

_SMALL = ShareSettings(
    group_share_session_timeout_ms=6_000,
    group_share_heartbeat_interval_ms=1_000,
    group_share_initialize_retry_interval_ms=9_000,
    offsets_commit_timeout_ms=2_000,
    offsets_retention_check_interval_ms=20_000,
    started_at_ms=STARTED_AT_MS,
)
SETTINGS = (
    _SMALL,
    _SMALL._replace(group_share_assignment_interval_ms=0),
    _SMALL._replace(group_share_assignment_interval_ms=5_000),
    _SMALL._replace(group_share_max_size=2),
    _SMALL._replace(group_share_session_timeout_ms=45_000, offsets_retention_check_interval_ms=600_000),
    _SMALL._replace(group_share_session_timeout_ms=20_000, group_share_assignment_interval_ms=0),
)
"""What brokers are configured with; a history has one of them."""


class ShareArtist(ClusterArtist):
    """See `ClusterArtist`."""

    soon_share = 0.35
    _settings: ShareSettings

    def __init__(self, rng: random.Random, settings: ShareSettings) -> None:
        """`rng` decides everything."""
        super().__init__(rng, settings)
        self.groups = ["g", "h"] if rng.random() < 0.2 else ["g"]
        self._most = rng.choice((1, 2, 3, 5))
        self._cooperation = rng.choice((0.6, 0.8, 0.92))
        self._subscriptions = [rng.choice(SUBSCRIPTIONS) for _ in range(rng.choice((1, 1, 2, 3)))]
        self._unrest = rng.choice((0.0, 0.02, 0.06))
        """How often the topics of the cluster change."""
        self._configures = rng.random() < 0.2

    def move(self, now_ms: int, look: Callable[[str], ShareView | None], loaded: bool) -> Move:
        """The next move. `look` shows a group as it is before time passes."""
        rng = self._rng
        if not self._topics:
            return Move(now_ms, True, self._first_topics())
        if loaded and rng.random() < 0.02:
            return Move(now_ms, False, Unload(self._next()))
        if not loaded and rng.random() < 0.4:
            return Move(now_ms + rng.choice((0, 1, 50, 7_000)), rng.random() < 0.5, Load(self._next()))
        group_id = rng.choice(self.groups)
        view = look(group_id)
        at_ms, timers_first = self._instant(now_ms, view)
        if rng.random() < 0.05:
            return Move(at_ms, True, None)
        # Between the loss of a shard and its load Kafka tells nobody about topics that changed.
        if loaded and rng.random() < self._unrest:
            return Move(at_ms, timers_first, self._change_topics())
        if self._configures and rng.random() < 0.03:
            return Move(at_ms, timers_first, self._configure(group_id))
        sensible = rng.random() < self._cooperation
        return Move(at_ms, timers_first, self._sensible(group_id, view) if sensible else self._anything(group_id, view))

    def _deadlines(self, view: ShareView) -> list[int]:
        interval_ms = self._settings.group_share_assignment_interval_ms
        return [*(one.session_deadline_at_ms for one in view.members), *[view.assigned_at_ms + interval_ms] * 2]

    def _configure(self, group_id: str) -> ConfigureShare:
        rng = self._rng
        return ConfigureShare(self._next(), group_id, rng.choice((4_000, 9_000, 60_000)), 2_000)

    # -- heartbeats -----------------------------------------------------------------------------------------------

    def _sensible(self, group_id: str, view: ShareView | None) -> ShareBeat:
        """What a client that follows the protocol does next."""
        rng = self._rng
        members = view.members if view is not None else ()
        if not members or (len(members) < self._most and rng.random() < 0.3):
            return self._join(group_id, self._new_id())
        member = rng.choice(members)
        if len(members) >= self._most and rng.random() < 0.08:
            return self._beat(group_id, member.member_id, -1)
        late = [one for one in members if view is not None and one.epoch != view.group_epoch]
        return self._follow(group_id, rng.choice(late) if late and rng.random() < 0.5 else member)

    def _follow(self, group_id: str, member: ShareMemberView) -> ShareBeat:
        rng = self._rng
        beat = self._beat(group_id, member.member_id, member.epoch)
        beat = beat._replace(client_id=member.client_id, client_host=member.client_host)
        if rng.random() < 0.08:
            beat = beat._replace(names=self._subscription())
        if rng.random() < 0.05:
            beat = beat._replace(client_host=f"/10.0.0.{rng.randrange(1, 4)}")
        if rng.random() < 0.03:
            beat = beat._replace(rack_id=rng.choice(("r1", "r2")))
        return beat

    def _subscription(self) -> tuple[str, ...]:
        rng = self._rng
        return rng.choice(self._subscriptions) if rng.random() < 0.85 else rng.choice(SUBSCRIPTIONS)

    def _join(self, group_id: str, member_id: str) -> ShareBeat:
        return self._beat(group_id, member_id, 0)._replace(
            names=self._subscription(), rack_id=self._rng.choice((None, None, "r1"))
        )

    def _beat(self, group_id: str, member_id: str, epoch: int) -> ShareBeat:
        client, host = f"c{self._rng.randrange(1, 3)}", f"/10.0.0.{self._rng.randrange(1, 3)}"
        return ShareBeat(self._next(), group_id, member_id, epoch, None, None, client, host)

    def _anything(self, group_id: str, view: ShareView | None) -> ShareBeat:
        rng = self._rng
        members = view.members if view is not None else ()
        member = rng.choice(members) if members else None
        member_id = member.member_id if member is not None and rng.random() < 0.8 else rng.choice(self._seen[-8:])
        chance = rng.random()
        if chance < 0.3:
            return self._join(group_id, member_id)
        if chance < 0.45:
            return self._beat(group_id, member_id, rng.choice((-1, -1, -1, -2)))
        epoch, previous = (member.epoch, member.previous_epoch) if member is not None else (1, 0)
        epoch = rng.choice((epoch, epoch + 1, epoch - 1, previous, previous, 1))
        beat = self._beat(group_id, member_id, max(epoch, 0))
        if rng.random() < 0.3:
            beat = beat._replace(names=rng.choice((self._subscription(), ())))
        if rng.random() < 0.06:
            beat = rng.choice((beat._replace(member_id=""), beat._replace(member_id=" "), beat._replace(rack_id="")))
        return beat
