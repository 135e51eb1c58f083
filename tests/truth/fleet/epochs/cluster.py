"""Brokers whose groups have epochs: the coordinators of their three protocols behind the same shards.

A consumer coordinator has classic groups beside, which is what a migration needs. Regular expressions are looked up by
a thread of the broker some ms after the heartbeat that calls for it; topics grow for all groups at once.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Collection, Sequence
from typing import Any

from kardia.coordinator.classic.operations import Join, View, groups_of
from kardia.coordinator.classic.records import GroupRecord
from kardia.coordinator.consumer.behaviour import consumer_behaviour_of
from kardia.coordinator.consumer.coordinator import ConsumerCoordinator
from kardia.coordinator.consumer.operations import Beat, ConsumerView, Partition, Resolve, Topic, Topics
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.wire import read_assignment
from kardia.coordinator.happenings import Happening
from kardia.coordinator.share.behaviour import share_behaviour_of
from kardia.coordinator.share.coordinator import ShareCoordinator
from kardia.coordinator.share.operations import ShareBeat, ShareView
from kardia.coordinator.share.settings import ShareSettings
from kardia.coordinator.streams.behaviour import streams_behaviour_of
from kardia.coordinator.streams.coordinator import StreamsCoordinator
from kardia.coordinator.streams.operations import StreamsBeat, StreamsView
from kardia.coordinator.streams.settings import StreamsSettings
from kardia.events import shard_of
from tests.truth.fleet.cluster import Cluster
from tests.truth.fleet.epochs.records import GroupRecords, Protocols
from tests.truth.fleet.epochs.truth import EpochTruth
from tests.truth.fleet.world import START_MS, World

EpochCoordinator = ConsumerCoordinator | ShareCoordinator | StreamsCoordinator
EpochView = ConsumerView | ShareView | StreamsView

TOPIC_PARTITIONS = {"orders": 6, "refunds": 3, "orders-eu": 2}


class LateShard:
    """A coordinator as a broker's one timer thread meets it: whatever kind of timer, all are fired together, late."""

    def __init__(self, coordinator: EpochCoordinator) -> None:
        """One group's."""
        self._coordinator = coordinator

    def perform(self, operation: Any, at_ms: int, *, overtakes: bool) -> list[Any]:
        """See `Stepped.perform`."""
        return self._coordinator.perform(operation, at_ms, overtakes=overtakes)

    def fire_late(self, _: Collection[str], due_to_ms: int, at_ms: int) -> list[Any]:
        """See `Stepped.fire_late`."""
        return self._coordinator.fire_late(min(due_to_ms, at_ms), at_ms)

    def next_deadline_at_ms(self, _: Collection[str]) -> int:
        """See `Stepped`."""
        return self._coordinator.next_deadline_at_ms()

    def take_happenings(self) -> list[Happening]:
        """See `Stepped`."""
        return self._coordinator.take_happenings()

    def view(self, group_id: str) -> View | EpochView | None:
        """See `ConsumerCoordinator`."""
        return self._coordinator.view(group_id)

    def record(self, group_id: str) -> GroupRecord | None:
        """The record of a classic group."""
        if isinstance(self._coordinator, ConsumerCoordinator):
            return self._coordinator.record(group_id)
        return None


class EpochCluster(Cluster):
    """The brokers of a run whose groups speak the newer protocols, or both."""

    def __init__(
        self,
        world: World,
        version: str,
        groups: Sequence[str],
        brokers: int,
        seed: int,
        protocol: str,
    ) -> None:
        """`protocol`: `share`, `streams`, or `consumer` for groups of the consumer and the classic protocol."""
        chance = world.random
        self.session_ms = chance.choice((8_000, 10_000, 12_000, 15_000))
        self.interval_ms = chance.choice((1_000, 2_000, 2_000))
        self.protocol = protocol
        names = sorted(TOPIC_PARTITIONS)
        self._topic_ids = {one: urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=") for one in names}
        self._partitions = dict(TOPIC_PARTITIONS)
        self._delay_ms = chance.choice((0, 500, 3_000))
        self._version = version
        self._written: dict[str, GroupRecords] = {}
        self._classic: dict[str, View] = {}
        """Group -> how it was while it was last a classic group."""
        self._appended: dict[str, float] = {}
        """Group -> when its last record was written."""
        self._protocols: dict[str, dict[str, Protocols]] = {}
        super().__init__(world, version, groups, self._delay_ms, brokers, seed, 2_147_483_647)
        for group_id in groups:
            self._written[group_id] = GroupRecords(group_id, version, self._appender(group_id))

    def _new_truth(self, group_id: str) -> EpochTruth:
        return EpochTruth(group_id, self.session_ms)

    def _new_coordinator(self, group_id: str) -> Any:  # noqa: ARG002
        coordinator: EpochCoordinator
        if self.protocol == "share":
            share = ShareSettings(self.session_ms, self.interval_ms, started_at_ms=int(START_MS))
            coordinator = ShareCoordinator(share_behaviour_of(self._version), share)
        elif self.protocol == "streams":
            streams = StreamsSettings(
                self.session_ms,
                self.interval_ms,
                group_streams_initial_rebalance_delay_ms=self._delay_ms,
                started_at_ms=int(START_MS),
            )
            coordinator = StreamsCoordinator(streams_behaviour_of(self._version), streams)
        else:
            consumer = ConsumerSettings(
                self.session_ms,
                self.interval_ms,
                group_initial_rebalance_delay_ms=self._delay_ms,
                started_at_ms=int(START_MS),
            )
            coordinator = ConsumerCoordinator(consumer_behaviour_of(self._version), consumer)
        coordinator.perform(self._topics(), int(START_MS))
        coordinator.take_happenings()
        return LateShard(coordinator)

    def _topics(self) -> Topics:
        listed = (Topic(name, self._topic_ids[name], count) for name, count in sorted(self._partitions.items()))
        return Topics(0, tuple(listed))

    def names(self, partitions: Sequence[Partition]) -> tuple[tuple[str, int], ...]:
        """Partitions by the names of their topics."""
        by_id = {topic_id: name for name, topic_id in self._topic_ids.items()}
        return tuple((by_id[topic_id], number) for topic_id, number in partitions)

    def partitions_of(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """All partitions of topics, by name."""
        return [(name, number) for name in names for number in range(self._partitions.get(name, 0))]

    # --- what befalls topics and expressions

    def grow(self) -> None:
        """A topic gets partitions, of which every group learns in its next heartbeat."""
        self._partitions["orders"] += self.world.random.choice((1, 3))
        for group_id in self._coordinators:
            self._step(group_id, self._topics())  # type: ignore[arg-type]

    def perform(self, asked: Any, operation: Any) -> None:
        """The coordinator takes a request; a look-up that it has ordered is done some ms later."""
        super().perform(asked, operation)
        if isinstance(operation, Beat):
            resolve = Resolve(self.number())
            group_id = operation.group_id
            self.world.after(self.world.random.uniform(2.0, 40.0), lambda: self._resolve(group_id, resolve))

    def _resolve(self, group_id: str, resolve: Resolve) -> None:
        shard = self.shards[shard_of(group_id)]
        if shard.leader is not None and not shard.loading:
            self._step(group_id, resolve)  # type: ignore[arg-type]

    tells_stored = False

    def waits(self, operation: Any) -> bool:
        """See `Cluster.waits`."""
        group_id = groups_of(operation)[0]
        return isinstance(self._coordinators[group_id].view(group_id), EpochView)

    # --- what is said and written

    def _tell(self, *_: Any, **__: Any) -> None:
        """`server.log` is not read of these groups."""

    def _appender(self, group_id: str) -> Any:
        def append(key: bytes, value: bytes | None) -> None:
            with_last = self._appended.get(group_id) == self.world.now_ms
            self._appended[group_id] = self.world.now_ms
            self.topic.append(group_id, key, value, self.world.now_ms, with_last=with_last)

        return append

    def _write(  # type: ignore[override]
        self, group_id: str, coordinator: LateShard, operation: Any, answers: list[Any], happened: Sequence[Happening]
    ) -> bool:
        """Records of the operation, those of both protocols where the group changes from one to the other."""
        view = coordinator.view(group_id)
        if isinstance(view, View):
            self._classic[group_id] = view
        modern = view if isinstance(view, EpochView) else None
        protocols = self._protocols.setdefault(group_id, {})
        self._note_refusals(group_id, operation, answers)
        if isinstance(operation, Join):
            protocols[operation.member_id or operation.new_id] = operation.protocols
        if view is None and coordinator.record(group_id) is None and not any(one.kind == "deleted" for one in happened):
            return False  # it is not loaded
        writer = self._written[group_id]
        before = self._records[group_id]
        wrote = False
        if modern is None:
            wrote = writer.step(happened, None, protocols)
        super()._write(group_id, coordinator, operation, answers, happened)  # type: ignore[arg-type]
        if modern is not None:
            if isinstance(modern, ConsumerView) and before is not None and before.members:
                self._write_conversion(group_id, before, modern, protocols)
            wrote = writer.step(happened, modern, protocols)
        return wrote

    def _write_conversion(
        self, group_id: str, before: GroupRecord, view: ConsumerView, protocols: dict[str, Protocols]
    ) -> None:
        """What is written first: the group as a consumer group, with the members that it had a moment ago."""
        recorded = {one.member_id: one.assignment for one in before.members}
        here = {one.member_id for one in view.members}
        assigned: dict[str, list[Partition]] = {}
        last = self._classic[group_id]
        for member_id in [one.member_id for one in last.members]:
            data = recorded.get(member_id, b"")
            held = read_assignment(data).partitions if data else ()
            if member_id in recorded or member_id in here:
                assigned[member_id] = [(self._topic_ids[name], number) for name, number in held]
        self._written[group_id].converted(before, last.generation_id, assigned, view, protocols)

    def _note_refusals(self, group_id: str, operation: Any, answers: list[Any]) -> None:
        if isinstance(operation, Beat | ShareBeat | StreamsBeat | Join):
            for answer in answers:
                if answer.error_code and answer.number == operation.number:
                    truth = self.truths[group_id]
                    if isinstance(truth, EpochTruth):
                        truth.note_refusal(int(self.world.now_ms), operation.member_id, answer.error_code)
