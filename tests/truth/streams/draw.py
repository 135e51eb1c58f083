"""Draws random histories of streams groups: threads of a few processes come, heartbeat, give tasks up or keep them,
leave or fall silent, while topics come and go; and anything else, with ids, epochs and tasks that are right, stale,
another's or made up.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.streams.operations import (
    ConfigureStreams,
    StreamsBeat,
    StreamsMemberView,
    StreamsView,
    Task,
)
from kardia.coordinator.streams.settings import StreamsSettings
from tests.truth.draw_cluster import ClusterArtist
from tests.truth.lockstep import Move
from tests.truth.streams.topologies import APPLICATIONS, REFUSED, next_epoch

STARTED_AT_MS = 1_000_000

_SMALL = StreamsSettings(
    group_streams_session_timeout_ms=6_000,
    group_streams_heartbeat_interval_ms=1_000,
    group_streams_initial_rebalance_delay_ms=2_000,
    group_streams_num_standby_replicas=1,
    offsets_retention_check_interval_ms=20_000,
    started_at_ms=STARTED_AT_MS,
)
SETTINGS = (
    _SMALL,
    _SMALL._replace(group_streams_assignment_interval_ms=0, group_streams_initial_rebalance_delay_ms=0),
    _SMALL._replace(group_streams_assignment_interval_ms=5_000, group_streams_num_standby_replicas=0),
    _SMALL._replace(group_streams_max_size=2, group_streams_initial_rebalance_delay_ms=0),
    _SMALL._replace(group_streams_session_timeout_ms=45_000, offsets_retention_check_interval_ms=600_000),
    _SMALL._replace(
        group_streams_session_timeout_ms=20_000,
        group_streams_assignment_interval_ms=0,
        group_streams_initial_rebalance_delay_ms=500,
        group_streams_num_standby_replicas=2,
        group_streams_rack_aware_assignment_tags=("zone",),
    ),
)
"""What brokers are configured with; a history has one of them."""

_NO_TASKS: tuple[Task, ...] = ()
_NOWHERE: tuple[Task, ...] = (("0", 0), ("0", 99), ("7", 0))
"""Tasks, two of which no application has."""


class StreamsArtist(ClusterArtist):
    """See `ClusterArtist`."""

    soon_share = 0.35
    _settings: StreamsSettings

    def __init__(self, rng: random.Random, settings: StreamsSettings, version: str) -> None:
        """`rng` decides everything."""
        super().__init__(rng, settings)
        self.groups = ["g", "h"] if rng.random() < 0.2 else ["g"]
        self._application = rng.choice(APPLICATIONS)
        self._most = rng.choice((1, 2, 3, 5))
        self._processes = [f"p{number}" for number in range(rng.choice((1, 2, 3)))]
        self._cooperation = rng.choice((0.6, 0.8, 0.92))
        self._promptness = rng.choice((0.2, 0.6, 0.95))
        """How often a member gives up at once what it has to."""
        self._unrest = rng.choice((0.0, 0.02, 0.06))
        """How often the topics of the cluster change."""
        self._creation = rng.choice((0.3, 0.9))
        """How soon the broker creates the topics that an application lacks."""
        self._configures = rng.random() < 0.25
        statics = rng.choice((0.0, 0.0, 0.5)) if version >= "4.4" else rng.choice((0.0, 0.0, 0.02))
        self._statics = statics
        self._endpoints = rng.random() < 0.5
        if version < "4.2" and self._endpoints:
            # Topics that go where endpoints are told are what 4.1 is not modelled for.
            self._unrest = 0.0
        self._instances = ["i1", "i2", "i3"]

    def move(self, now_ms: int, look: Callable[[str], StreamsView | None], loaded: bool) -> Move:
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
        if loaded and view is not None and view.missing and rng.random() < self._creation:
            return Move(at_ms, timers_first, self._create(view))
        if loaded and rng.random() < self._unrest:
            return Move(at_ms, timers_first, self._change_topics())
        if self._configures and rng.random() < 0.03:
            return Move(at_ms, timers_first, self._configure(group_id))
        sensible = rng.random() < self._cooperation
        return Move(at_ms, timers_first, self._sensible(group_id, view) if sensible else self._anything(group_id, view))

    def _deadlines(self, view: StreamsView) -> list[int]:
        interval_ms = self._settings.group_streams_assignment_interval_ms
        members = [one.session_deadline_at_ms for one in view.members]
        revoking = [one.rebalance_deadline_at_ms for one in view.members] * 2
        return [*members, *revoking, *[view.assigned_at_ms + interval_ms] * 2, *[view.initial_deadline_at_ms] * 2]

    def _create(self, view: StreamsView) -> Topics:
        """The broker creates what is missing, now and then with a mistake."""
        rng = self._rng
        topics = {topic.name: topic for topic in self._topics}
        for name, partitions in view.missing:
            topics[name] = self._topic(name, partitions if rng.random() < 0.95 else partitions + 1)
        self._topics = tuple(topics.values())
        return Topics(self._next(), self._topics)

    def _configure(self, group_id: str) -> ConfigureStreams:
        rng = self._rng
        return ConfigureStreams(
            self._next(),
            group_id,
            rng.choice((4_000, 9_000, 60_000)),
            2_000,
            rng.choice((0, 1, 2)),
            rng.choice((0, 700, 3_000)),
            rng.choice((0, 1_000, 4_000)),
        )

    # -- heartbeats -----------------------------------------------------------------------------------------------

    def _sensible(self, group_id: str, view: StreamsView | None) -> StreamsBeat:
        """What a client that follows the protocol does next."""
        rng = self._rng
        members = [one for one in view.members if one.epoch >= 0] if view is not None else []
        away = [one for one in view.members if one.epoch < 0] if view is not None else []
        if away and rng.random() < 0.3:
            return self._come_back(group_id, rng.choice(away))
        if not members or (len(members) < self._most and rng.random() < 0.3):
            return self._join(group_id, self._new_id())
        member = rng.choice(members)
        if len(members) >= self._most and rng.random() < 0.08:
            return self._leave(group_id, member)
        late = [one for one in members if view is not None and one.epoch != view.group_epoch]
        late += [one for one in members if one.state != "STABLE"]
        return self._follow(group_id, rng.choice(late) if late and rng.random() < 0.6 else member)

    def _follow(self, group_id: str, member: StreamsMemberView) -> StreamsBeat:
        rng = self._rng
        beat = self._beat(group_id, member.member_id, member.epoch)
        beat = beat._replace(client_id=member.client_id, client_host=member.client_host, instance_id=member.instance_id)
        chance = rng.random()
        if member.state == "UNREVOKED_TASKS" and chance < self._promptness:
            beat = self._owns(beat, member, False)
        elif chance < 0.3:
            beat = self._owns(beat, member, rng.random() < 0.7)
        if rng.random() < 0.06:
            beat = self._tells_more(beat)
        if rng.random() < 0.3:
            beat = beat._replace(endpoint_epoch=rng.choice((0, 1, 2, 3, -1)))
        return beat

    def _tells_more(self, beat: StreamsBeat) -> StreamsBeat:
        rng = self._rng
        return rng.choice(
            (
                beat._replace(client_host=f"/10.0.0.{rng.randrange(1, 4)}"),
                beat._replace(rack_id=rng.choice(("r1", "r2"))),
                beat._replace(tags=rng.choice(((), (("zone", "a"),), (("zone", "b"), ("cluster", "c"))))),
                beat._replace(process_id=rng.choice(self._processes)),
                beat._replace(rebalance_timeout_ms=rng.choice((2_500, 8_000))),
                beat._replace(endpoint=("there", rng.randrange(8_000, 8_003)) if self._endpoints else None),
                beat._replace(shutdown=True),
                beat._replace(offsets=rng.choice(((), ((("0", 0), 7),), ((("0", 0), 7), (("0", 0), 8))))),
            )
        )

    def _owns(self, beat: StreamsBeat, member: StreamsMemberView, pending_too: bool) -> StreamsBeat:
        """With what it has, and perhaps what it has to give up."""
        active = [task for task, _ in member.active]
        standby, warmup = [*member.standby], [*member.warmup]
        if pending_too:
            active += [task for task, _ in member.pending_active]
            standby += member.pending_standby
            warmup += member.pending_warmup
        return beat._replace(active=tuple(active), standby=tuple(standby), warmup=tuple(warmup))

    def _leave(self, group_id: str, member: StreamsMemberView) -> StreamsBeat:
        epoch = self._rng.choice((-1, -2, -2)) if member.instance_id is not None else -1
        beat = self._beat(group_id, member.member_id, epoch)
        return beat._replace(instance_id=member.instance_id, shutdown=self._rng.random() < 0.1)

    def _come_back(self, group_id: str, member: StreamsMemberView) -> StreamsBeat:
        """A static member, under its own id or another one."""
        rng = self._rng
        member_id = member.member_id if rng.random() < 0.3 else self._new_id()
        beat = self._join(group_id, member_id)._replace(instance_id=member.instance_id)
        if rng.random() < 0.6:
            beat = beat._replace(process_id=member.process_id, rack_id=member.rack_id, tags=member.tags)
        return beat

    def _join(self, group_id: str, member_id: str) -> StreamsBeat:
        rng = self._rng
        topology = self._application
        chance = rng.random()
        if chance < 0.04:
            topology = next_epoch(topology)
        elif chance < 0.07:
            topology = rng.choice(APPLICATIONS)
        beat = self._beat(group_id, member_id, 0)._replace(
            topology=topology,
            rebalance_timeout_ms=rng.choice((1_500, 3_000, 9_000)),
            active=_NO_TASKS,
            standby=_NO_TASKS,
            warmup=_NO_TASKS,
            process_id=rng.choice(self._processes),
            rack_id=rng.choice((None, None, "r1")),
            tags=rng.choice((None, (("zone", "a"),), (("cluster", "c"),))),
        )
        if self._endpoints and rng.random() < 0.8:
            beat = beat._replace(endpoint=("here", rng.randrange(8_000, 8_003)))
        if rng.random() < self._statics:
            beat = beat._replace(instance_id=rng.choice(self._instances))
        return beat

    def _beat(self, group_id: str, member_id: str, epoch: int) -> StreamsBeat:
        rng = self._rng
        client, host = f"c{rng.randrange(1, 3)}", f"/10.0.0.{rng.randrange(1, 3)}"
        return StreamsBeat(
            self._next(), rng.choice((0, 1, 1)), group_id, member_id, epoch,
            None, None, -1, None, None, None, None, None, None, None, None, False, 0, client, host,
        )  # fmt: skip

    # -- anything -------------------------------------------------------------------------------------------------

    def _anything(self, group_id: str, view: StreamsView | None) -> StreamsBeat:
        rng = self._rng
        members = view.members if view is not None else ()
        member = rng.choice(members) if members else None
        member_id = member.member_id if member is not None and rng.random() < 0.8 else rng.choice(self._seen[-8:])
        chance = rng.random()
        if chance < 0.25:
            return self._odd_join(self._join(group_id, member_id))
        if chance < 0.4:
            beat = self._beat(group_id, member_id, rng.choice((-1, -1, -1, -2, -3)))
            beat = beat._replace(shutdown=rng.random() < 0.2)
            return self._odd_instance(beat, member)
        epoch, previous = (member.epoch, member.previous_epoch) if member is not None else (1, 0)
        epoch = rng.choice((epoch, epoch, epoch + 1, epoch - 1, previous, previous, 1))
        beat = self._beat(group_id, member_id, max(epoch, 1))
        if member is not None and rng.random() < 0.6:
            beat = self._owns(beat, member, rng.random() < 0.3)
        if rng.random() < 0.08:
            beat = beat._replace(active=rng.choice((_NOWHERE[:1], _NOWHERE[1:2], _NOWHERE[2:])), standby=(), warmup=())
        if rng.random() < 0.05:
            beat = self._invalid(beat)
        return self._odd_instance(beat, member)

    def _odd_instance(self, beat: StreamsBeat, member: StreamsMemberView | None) -> StreamsBeat:
        """With the instance id of the member, or another one."""
        rng = self._rng
        if member is not None and member.instance_id is not None and rng.random() < 0.7:
            return beat._replace(instance_id=member.instance_id)
        return beat._replace(instance_id=rng.choice(self._instances)) if rng.random() < self._statics / 2 else beat

    def _odd_join(self, beat: StreamsBeat) -> StreamsBeat:
        rng = self._rng
        chance = rng.random()
        if chance < 0.15:
            return beat._replace(topology=rng.choice(REFUSED))
        if chance < 0.25:
            return beat._replace(topology=next_epoch(beat.topology) if beat.topology is not None else None)
        if chance < 0.35:
            return rng.choice(
                (
                    beat._replace(topology=None),
                    beat._replace(rebalance_timeout_ms=-1),
                    beat._replace(active=(("0", 0),)),
                    beat._replace(standby=None),
                )
            )
        return beat

    def _invalid(self, beat: StreamsBeat) -> StreamsBeat:
        return self._rng.choice(
            (
                beat._replace(member_id=""),
                beat._replace(member_id=" "),
                beat._replace(rack_id=""),
                beat._replace(instance_id=""),
                beat._replace(topology=self._application),
                beat._replace(active=None, standby=()),
                beat._replace(active=(), standby=(), warmup=(("0", 0),)),
            )
        )
