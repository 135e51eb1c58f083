"""Draws random histories of consumer groups that reach the corners: each next move is drawn from what the group is now.

Most moves are what a client that follows the protocol does next (it heartbeats, reports what it owns, gives up, comes
back); the others are anything, with ids, epochs and partitions that are right, stale, another's or made up. Instants
are drawn around the deadlines of the group: 1 ms before, at (timer or request first), 1 ms after.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from kardia.coordinator.classic.operations import Commit, DeleteGroups, View
from kardia.coordinator.consumer.operations import (
    Beat,
    Configure,
    ConsumerMemberView,
    ConsumerOperation,
    ConsumerView,
    Fetch,
    Partition,
    Resolve,
)
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.operations import Load, Unload
from tests.truth.consumer.draw_classic import ClassicArtist, made_up
from tests.truth.consumer.draw_group import GroupArtist
from tests.truth.draw_cluster import SUBSCRIPTIONS, ClusterArtist
from tests.truth.lockstep import Move

STARTED_AT_MS = 1_000_000

_SMALL = ConsumerSettings(
    group_consumer_session_timeout_ms=6_000,
    group_consumer_heartbeat_interval_ms=1_000,
    group_consumer_regex_refresh_interval_ms=30_000,
    group_initial_rebalance_delay_ms=500,
    offsets_retention_ms=60_000,
    offsets_retention_check_interval_ms=20_000,
    started_at_ms=STARTED_AT_MS,
)
SETTINGS = (
    _SMALL,
    _SMALL._replace(group_consumer_assignors=("range", "uniform")),
    _SMALL._replace(group_consumer_assignment_interval_ms=0),
    _SMALL._replace(group_consumer_assignment_interval_ms=5_000, group_consumer_assignors=("range",)),
    _SMALL._replace(group_consumer_max_size=2),
    _SMALL._replace(group_consumer_max_size=3, group_consumer_assignment_interval_ms=0),
    _SMALL._replace(group_consumer_session_timeout_ms=45_000, offsets_retention_check_interval_ms=600_000),
    _SMALL._replace(group_consumer_session_timeout_ms=20_000, group_consumer_assignment_interval_ms=0),
    _SMALL._replace(group_consumer_assignment_interval_ms=0, group_initial_rebalance_delay_ms=0),
    _SMALL._replace(group_consumer_assignors=("range",), group_initial_rebalance_delay_ms=3_000),
    _SMALL._replace(group_consumer_max_size=3, group_max_size=2, group_initial_rebalance_delay_ms=0),
    _SMALL._replace(group_consumer_migration_policy="downgrade", group_initial_rebalance_delay_ms=0),
    # With these a group never becomes a classic one.
    _SMALL._replace(group_consumer_migration_policy="upgrade", group_initial_rebalance_delay_ms=0),
    _SMALL._replace(group_consumer_migration_policy="upgrade", group_consumer_assignors=("range", "uniform")),
    _SMALL._replace(group_consumer_migration_policy="upgrade", group_consumer_assignment_interval_ms=0),
    _SMALL._replace(group_consumer_migration_policy="upgrade", group_consumer_max_size=3),
    _SMALL._replace(group_consumer_migration_policy="upgrade", group_consumer_session_timeout_ms=45_000),
    _SMALL._replace(group_consumer_migration_policy="disabled"),
)
"""What brokers are configured with; a history has one of them."""

_REBALANCES_MS = (1, 500, 3_000, 3_000, 10_000, 60_000)
_SUBSCRIPTIONS = (*SUBSCRIPTIONS, ())
_REGEXES = ("orders|refunds", "[or].*", "par.*", "nothing.*", ".*")
_BAD_REGEX = "(orders"


def _seats(view: ConsumerView | View | None) -> dict[str, str | None]:
    """Instance ids of the members of a group, by their ids."""
    if isinstance(view, View):
        return {one.member_id: one.group_instance_id for one in view.members}
    return {} if view is None else {one.member_id: one.instance_id for one in view.members}


class ConsumerArtist(ClusterArtist):
    """See `ClusterArtist`."""

    soon_share = 0.3
    _settings: ConsumerSettings

    def __init__(self, rng: random.Random, settings: ConsumerSettings) -> None:
        """`rng` decides everything."""
        super().__init__(rng, settings)
        self.groups = ["g", "h"] if rng.random() < 0.15 else ["g"]
        self._statics = rng.choice((0.0, 0.3, 0.7))
        self._instances = [f"i{number}" for number in range(1, rng.choice((2, 3, 4)))]
        self._most = rng.choice((1, 2, 3, 4, 6))
        self._cooperation = rng.choice((0.6, 0.8, 0.92))
        self._regexes = rng.choice((0.0, 0.0, 0.3, 0.7))
        self._assignors = rng.choice((0.0, 0.3))
        self._subscriptions = [rng.choice(_SUBSCRIPTIONS) for _ in range(rng.choice((1, 1, 2, 3)))]
        self._unrest = rng.choice((0.0, 0.01, 0.03))
        """How often the topics of the cluster change."""
        self._configures = rng.random() < 0.2
        self._had: set[tuple[str, str | None]] = set()
        """Groups and instance ids that somebody has or had: Kafka may find a member by one that has another one now."""
        stays = not settings.downgrades()
        self._mixed = rng.choice((0.2, 0.4) if stays else (0.0, 0.1, 0.2, 0.4))
        """How often a consumer group hears of members of the classic protocol."""
        self._begins_classic = rng.choice((0.0, 0.3, 0.8))
        """How often a group without members does."""
        self._upgrades = rng.choice((0.03, 0.1, 0.25))
        self._classics = ClassicArtist(rng, self._next, self._new_id)
        self._of_groups = GroupArtist(rng, settings, self._next, self._seen)

    def move(self, now_ms: int, look: Callable[[str], ConsumerView | View | None], loaded: bool) -> Move:
        """The next move. `look` shows a group as it is before time passes."""
        rng = self._rng
        if not self._topics:
            return Move(now_ms, True, self._first_topics())
        if loaded and rng.random() < 0.015:
            return Move(now_ms, False, Unload(self._next()))
        if not loaded and rng.random() < 0.4:
            return Move(now_ms + rng.choice((0, 1, 50, 7_000)), True, Load(self._next()))
        group_id = rng.choice(self.groups)
        view = look(group_id)
        classic = view if isinstance(view, View) else None
        seats = _seats(view)
        self._had |= {(group_id, seat) for seat in seats.values() if seat is not None}
        if isinstance(view, View):
            at_ms, timers_first = self._of_groups.when(now_ms, view)
            view = None
        else:
            at_ms, timers_first = self._instant(now_ms, view)
        if rng.random() < 0.05:
            return Move(at_ms, True, None)
        beside = self._beside_members(group_id, loaded)
        if beside is not None:
            return Move(at_ms, timers_first, beside)
        sensible = rng.random() < self._cooperation
        operation: ConsumerOperation
        if self._is_for_classic(classic, view):
            operation = self._of_groups.draw(group_id, classic, self._topics, sensible)
        else:
            operation = self._sensible(group_id, view) if sensible else self._anything(group_id, view)
        if isinstance(operation, Beat) and self._takes_another_place(operation, seats):
            operation = operation._replace(instance_id=None)
        if view is not None and view.members and rng.random() < self._mixed:
            operation = self._classics.draw(group_id, view, self._topics, sensible)
        return Move(at_ms, timers_first, operation)

    def _beside_members(self, group_id: str, loaded: bool) -> ConsumerOperation | None:
        """What nobody of a group asks for: a change of topics or of settings, or an expression that is resolved."""
        rng = self._rng
        # Between the loss of a shard and its load Kafka tells nobody about topics that changed.
        if loaded and rng.random() < self._unrest:
            return self._change_topics()
        if self._configures and rng.random() < 0.02:
            return self._configure(group_id)
        if self._regexes and rng.random() < 0.12:
            return Resolve(self._next())
        return None

    def _takes_another_place(self, beat: Beat, seats: dict[str, str | None]) -> bool:
        """Whether a member may come as a static member that is another one: the model refuses that. `seats`: instance
        ids of the members, by their ids."""
        member_id = beat.member_id or beat.new_id
        is_another = member_id in seats and seats[member_id] != beat.instance_id
        return beat.member_epoch == 0 and is_another and (beat.group_id, beat.instance_id) in self._had

    def _is_for_classic(self, classic: View | None, view: ConsumerView | None) -> bool:
        """Whether a group that is a classic one, or has no members, hears of the classic protocol now."""
        if classic is None:
            return (view is None or not view.members) and self._rng.random() < self._begins_classic
        return self._rng.random() >= self._upgrades

    def _deadlines(self, view: ConsumerView) -> list[int]:
        interval_ms = self._settings.group_consumer_assignment_interval_ms
        deadlines = [one.session_deadline_at_ms for one in view.members]
        deadlines += [one.rebalance_deadline_at_ms for one in view.members] * 3
        deadlines += [one.join_deadline_at_ms for one in view.members]
        deadlines += [one.sync_deadline_at_ms for one in view.members]
        return deadlines + [view.assigned_at_ms + interval_ms] * 2

    def _configure(self, group_id: str) -> Configure:
        rng = self._rng
        if rng.random() < 0.3:
            return Configure(self._next(), group_id, -1, -1, -1)
        return Configure(self._next(), group_id, rng.choice((4_000, 9_000, 60_000)), 2_000, rng.choice((0, 500, 4_000)))

    def _partition(self) -> Partition:
        topic = self._rng.choice(self._topics)
        return topic.topic_id, self._rng.randrange(topic.partitions)

    # -- operations -----------------------------------------------------------------------------------------------

    def _sensible(self, group_id: str, view: ConsumerView | None) -> ConsumerOperation:
        """What a client that follows the protocol does next."""
        rng = self._rng
        members = view.members if view is not None else ()
        away = [one for one in members if one.epoch == -2]
        if away and rng.random() < 0.3:
            one = rng.choice(away)
            same = rng.random() < 0.5
            return self._join(group_id, one.member_id if same else self._new_id(), one.instance_id)
        if not members or (len(members) < self._most and rng.random() < 0.35):
            return self._join(group_id, self._new_id(), None)
        if len(members) >= self._most and rng.random() < 0.06:
            return self._leave(group_id, rng.choice(members))
        if rng.random() < 0.08:
            return self._commit(group_id, view)
        late = [one for one in members if one.state != "STABLE" or view is None or one.epoch != view.group_epoch]
        member = rng.choice(late) if late and rng.random() < 0.5 else rng.choice(members)
        if member.epoch == -2:
            return self._join(group_id, member.member_id, member.instance_id)
        if member.instance_id is not None and member.pending and rng.random() < 0.15:
            return self._plain(group_id, member.member_id, -2, member.instance_id)
        return self._follow(group_id, member)

    def _follow(self, group_id: str, member: ConsumerMemberView) -> Beat:
        """The next heartbeat of a member."""
        rng = self._rng
        names = regex = assignor = None
        owned: tuple[Partition, ...] | None = None
        chance = rng.random()
        assigned = tuple(one for one, _ in member.assigned)
        pending = tuple(one for one, _ in member.pending)
        if chance < 0.35:
            owned = assigned
        elif chance < 0.45:
            owned = assigned + pending
        elif chance < 0.5:
            owned = tuple(one for one in assigned + pending if rng.random() < 0.5)
        elif chance < 0.52:
            owned = (*assigned, self._partition())
        if rng.random() < 0.06:
            names, regex = self._subscription()
        if rng.random() < 0.05 and self._assignors:
            assignor = self._assignor()
        rebalance_ms = rng.choice(_REBALANCES_MS) if rng.random() < 0.08 else -1
        if rng.random() < 0.03:
            names, owned, rebalance_ms = member.names, assigned, member.rebalance_timeout_ms
        host = f"/10.0.0.{rng.randrange(1, 3)}" if rng.random() < 0.05 else member.client_host
        rack = rng.choice(("r1", "r2")) if rng.random() < 0.03 else None
        return Beat(
            self._next(),
            1,
            group_id,
            member.member_id,
            member.epoch,
            member.instance_id,
            rack,
            rebalance_ms,
            names,
            regex,
            assignor,
            owned,
            member.client_id,
            host,
            "",
        )

    def _subscription(self) -> tuple[tuple[str, ...] | None, str | None]:
        rng = self._rng
        if rng.random() < self._regexes:
            regex = rng.choice((*_REGEXES[:2], *_REGEXES, ""))
            if rng.random() < 0.04:
                regex = _BAD_REGEX
            return rng.choice((None, None, (), self._subscriptions[0])), regex
        names = rng.choice(self._subscriptions) if rng.random() < 0.85 else rng.choice(_SUBSCRIPTIONS)
        return names, rng.choice((None, None, ""))

    def _assignor(self) -> str | None:
        rng = self._rng
        if rng.random() < 0.03:
            return "mine"
        return rng.choice(self._settings.group_consumer_assignors)

    def _join(self, group_id: str, member_id: str, instance_id: str | None) -> Beat:
        rng = self._rng
        if instance_id is None and rng.random() < self._statics:
            instance_id = rng.choice(self._instances)
        names, regex = self._subscription()
        assignor = self._assignor() if rng.random() < self._assignors else None
        version = 0 if rng.random() < 0.1 else 1
        new_id = ""
        if version == 0 and rng.random() < 0.5 and member_id == self._seen[-1] and len(member_id) == 36:
            made = made_up(member_id)
            if made:
                self._seen[-1] = made
                member_id, new_id = "", made
        client, host = f"c{rng.randrange(1, 4)}", f"/10.0.0.{rng.randrange(1, 4)}"
        rack = rng.choice((None, None, "r1"))
        rebalance_ms = rng.choice(_REBALANCES_MS)
        return Beat(
            self._next(),
            version,
            group_id,
            member_id,
            0,
            instance_id,
            rack,
            rebalance_ms,
            names,
            regex,
            assignor,
            (),
            client,
            host,
            new_id,
        )

    def _leave(self, group_id: str, member: ConsumerMemberView) -> Beat:
        rng = self._rng
        for_a_while = member.instance_id is not None and rng.random() < 0.7
        return self._plain(group_id, member.member_id, -2 if for_a_while else -1, member.instance_id)

    def _plain(self, group_id: str, member_id: str, epoch: int, instance_id: str | None) -> Beat:
        nothing = (None, -1, None, None, None, None)
        return Beat(self._next(), 1, group_id, member_id, epoch, instance_id, *nothing, "c1", "/10.0.0.1", "")

    def _anything(self, group_id: str, view: ConsumerView | None) -> ConsumerOperation:
        rng = self._rng
        members = view.members if view is not None else ()
        member = rng.choice(members) if members else None
        member_id = member.member_id if member is not None and rng.random() < 0.8 else rng.choice(self._seen[-10:])
        instance_id = member.instance_id if member is not None and member.member_id == member_id else None
        if rng.random() < 0.15:
            instance_id = rng.choice([*self._instances, None, "i9"])
        chance = rng.random()
        if chance < 0.25:
            return self._join(group_id, member_id, instance_id)
        if chance < 0.4:
            return self._plain(group_id, member_id, rng.choice((-1, -1, -2, -2, -3)), instance_id)
        if chance < 0.65:
            return self._odd(group_id, member, member_id, instance_id)
        if chance < 0.9:
            return self._commit(group_id, view) if rng.random() < 0.7 else self._fetch(group_id, view)
        if chance < 0.95:
            others = [one for one in ("g", "h", "nobody's") if one != group_id and rng.random() < 0.4]
            return DeleteGroups(self._next(), (group_id, *others))
        return self._join(group_id, self._new_id(), instance_id)

    def _odd(self, group_id: str, member: ConsumerMemberView | None, member_id: str, instance_id: str | None) -> Beat:
        """A heartbeat that is wrong, late or strange."""
        rng = self._rng
        epoch, previous = (member.epoch, member.previous_epoch) if member is not None else (1, 0)
        epoch = rng.choice((epoch, epoch + 1, epoch - 1, previous, previous, 0, 1))
        owned: tuple[Partition, ...] | None = None
        if rng.random() < 0.7:
            held = tuple(one for one, _ in member.assigned) if member is not None else ()
            owned = rng.choice((held, held, (), (*held, self._partition())))
        beat = self._plain(group_id, member_id, max(epoch, 0), instance_id)
        beat = beat._replace(owned=owned)
        if rng.random() < 0.2:
            names, regex = self._subscription()
            beat = beat._replace(names=names, regex=regex, rebalance_timeout_ms=rng.choice(_REBALANCES_MS))
        if rng.random() < 0.05:
            nothing = rng.choice(("", " "))
            beat = rng.choice(
                (
                    beat._replace(member_id=nothing),
                    beat._replace(instance_id=nothing),
                    beat._replace(rack_id=nothing),
                )
            )
        return beat

    def _commit(self, group_id: str, view: ConsumerView | None) -> Commit | Fetch:
        rng = self._rng
        member = rng.choice(view.members) if view is not None and view.members else None
        topic = rng.choice(("orders", "orders", "refunds", "other"))
        number = self._next()
        member_id, epoch = rng.choice(self._seen[-5:]), rng.choice((0, 1, 2))
        if member is not None:
            member_id = member.member_id
            epoch = rng.choice((*[member.epoch] * 5, member.epoch - 1, member.previous_epoch, member.epoch + 1))
        elif rng.random() < (0.2 if view is None else 0.6):
            member_id, epoch = "", -1
        version = rng.choice((9, 10)) if rng.random() < 0.85 else rng.randrange(5, 9)
        # A partition that does not exist the broker refuses without asking the coordinator.
        most = next((one.partitions for one in self._topics if one.name == topic), 4)
        partition = rng.randrange(most)
        return Commit(number, version, group_id, epoch, member_id, None, topic, partition, number, rng.random() < 0.05)

    def _fetch(self, group_id: str, view: ConsumerView | None) -> Fetch:
        rng = self._rng
        if view is None or not view.members or rng.random() < 0.2:
            return Fetch(self._next(), group_id, rng.choice((None, self._seen[-1])), rng.choice((-1, 0, 1)))
        member = rng.choice(view.members)
        return Fetch(self._next(), group_id, member.member_id, member.epoch + rng.choice((0, 0, 0, 1, -1)))
