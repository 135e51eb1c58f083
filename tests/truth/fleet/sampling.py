"""The admin API of a run's brokers, sampled: what a collector with `--admin` is answered, and when.

Asked as `ingest.admin.sampler` asks: all brokers for their groups, then each coordinator, portion by portion, a clock
of its own beside. An answer is what the coordinator holds in the instant in which it gives it; a broker that stands
still answers late or not at all, one that has nobody to lead a shard is asked again until time is up. What becomes of
the answers is the project's own code (`ingest.admin.samples`). Follows `GroupMetadata.summary` and
`ClassicGroup.describe`: assignments are shown of a group that is Stable.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ingest.admin.sampler import PORTION, TIMEOUT_S
from ingest.admin.samples import STREAM, Answer, Changes, Entry, Sample, sample_event
from ingest.archives.ranges import tick
from kardia.coordinator.classic.operations import View
from kardia.coordinator.consumer.operations import ConsumerView
from kardia.events import DEFAULT_OFFSETS_PARTITIONS, Event, shard_of
from kardia.kafka.states import GroupState
from tests.truth.fleet.cluster import Cluster
from tests.truth.fleet.world import START_MS

TIMEOUT_MS = TIMEOUT_S * 1_000
AGAIN_MS = 100.0
"""The library asks again who leads a shard, after so long."""

_NO_WORD = frozenset({"Assigning", "Reconciling"})
"""States of consumer groups that the client library has no word for."""


class Asks(NamedTuple):
    """How a sampler asks: every so often, by a clock that is off by so much; started anew in the middle of the run or
    not."""

    every_s: float
    apart_ms: float = 0.0
    restarts: bool = False


class Told(NamedTuple):
    """Something that a sampler has to say since `at_ms`; without a sample: that a round has been answered."""

    at_ms: float
    source: str
    sample: Sample | None


class Asker:
    """One sampler beside a cluster."""

    def __init__(self, cluster: Cluster, asks: Asks, seed: int, end_ms: float) -> None:
        """Begin to ask soon."""
        every_s = asks.every_s
        self.asks = asks
        self.told: list[Told] = []
        self._cluster, self._world = cluster, cluster.world
        self._chance = random.Random(f"samples {every_s} {seed}")
        self._begins_again_ms = (START_MS + end_ms) / 2 if asks.restarts else float("inf")
        self._begin_anew()
        self._world.after(self._chance.uniform(0, every_s * 1_000), self._round)

    def _begin_anew(self) -> None:
        self.changes = Changes(f"{self._chance.getrandbits(40):x}")

    @property
    def _here_ms(self) -> float:
        return self._world.now_ms + self.asks.apart_ms

    def _tell(self, sample: Sample | None) -> None:
        self.told.append(Told(self._world.now_ms, f"{STREAM}/{self.changes.run}", sample))

    def _deferred(self, act: partial[None]) -> bool:
        """While the machine stands still nobody asks and nobody hears."""
        if self._cluster.asleep:
            self._world.at(self._cluster.wakes_at_ms + self._chance.uniform(0.1, 20.0), act)
        return self._cluster.asleep

    # --- one round

    def _round(self) -> None:
        if self._deferred(partial(self._round)):
            return
        if self._world.now_ms >= self._begins_again_ms:
            self._begins_again_ms = float("inf")
            self._begin_anew()
            self._world.after(self._chance.uniform(3_000, 15_000), self._round)
            return
        self._list(self._world.now_ms)

    def _list(self, asked_ms: float) -> None:
        """Brokers are waited for while there is time."""
        if self._deferred(partial(self._list, asked_ms)):
            return
        still_ms = max(broker.stands_to_ms for broker in self._cluster.brokers)
        by_ms = min(still_ms, asked_ms + TIMEOUT_MS)
        if by_ms > self._world.now_ms:
            self._world.at(by_ms, partial(self._list, asked_ms))
            return
        listed = {one for one in self._cluster.truths if self._answer(one) is not None and self._is_there(one)}
        whole = all(broker.up and not broker.stands_still for broker in self._cluster.brokers)
        names = sorted(listed | self.changes.groups)
        self._world.after(
            self._chance.uniform(0.5, 5.0), partial(self._portion, asked_ms, names, whole=whole, any_listed=whole)
        )

    def _portion(self, began_ms: float, names: Sequence[str], *, whole: bool, any_listed: bool) -> None:
        if self._deferred(partial(self._portion, began_ms, names, whole=whole, any_listed=any_listed)):
            return
        now, later = names[:PORTION], names[PORTION:]
        answers: dict[str, Answer | None] = {}
        asked_ms = self._world.now_ms

        def answered() -> None:
            if self._deferred(partial(answered)):
                return
            self._take([answers[name] for name in now], asked_ms)
            all_told = whole and None not in answers.values()
            if later:
                self._portion(began_ms, later, whole=all_told, any_listed=any_listed)
            else:
                self._end_round(began_ms, whole=all_told, any_listed=any_listed)

        def heard(name: str) -> None:
            if self._deferred(partial(heard, name)):
                return
            still_ms = self._waits_ms(name)
            over_ms = asked_ms + TIMEOUT_MS
            if still_ms and self._world.now_ms < over_ms:
                self._world.at(min(self._world.now_ms + still_ms, over_ms), partial(heard, name))
                return
            answers[name] = None if still_ms else self._answer(name)
            if len(answers) == len(now):
                self._world.after(self._chance.uniform(0.2, 2.0), answered)

        for name in now:
            self._world.after(self._chance.uniform(0.3, 6.0), partial(heard, name))
        if not now:
            self._end_round(began_ms, whole=whole, any_listed=any_listed)

    def _take(self, answers: Iterable[Answer | None], asked_ms: float) -> None:
        """Tell what has changed by what was answered."""
        at_ms = self._here_ms
        for answer in answers:
            sample = None if answer is None else self.changes.note(answer, asked_ms + self.asks.apart_ms, at_ms)
            if sample is not None:
                self._tell(sample)

    def _end_round(self, began_ms: float, *, whole: bool, any_listed: bool) -> None:
        if whole:
            self._tell(self.changes.round(began_ms + self.asks.apart_ms, self._here_ms))
        if any_listed:
            self._tell(None)
        self._world.at(max(began_ms + self.asks.every_s * 1_000, self._world.now_ms), self._round)

    # --- what brokers answer

    def _waits_ms(self, group_id: str) -> float:
        """How long nobody can answer about a group, 0 when somebody can."""
        leader = self._cluster.shards[shard_of(group_id)].leader
        if leader is None or not leader.up:
            return AGAIN_MS
        return max(0.0, leader.stands_to_ms - self._world.now_ms)

    def _is_there(self, group_id: str) -> bool:
        return self._cluster.view(group_id) is not None

    def _answer(self, group_id: str) -> Answer | None:
        """None while nobody leads it, or who does is loading it: the library has an error then."""
        shard = self._cluster.shards[shard_of(group_id)]
        if shard.leader is None or not shard.leader.up or shard.leader.stands_still or shard.loading:
            return None
        view = self._cluster.view(group_id)
        if isinstance(view, View):
            return Answer(group_id, view.state, "classic", _shown(view), members=self._classic_members(group_id, view))
        if isinstance(view, ConsumerView):
            state = "Unknown" if view.state in _NO_WORD else view.state
            return Answer(group_id, state, "consumer", "uniform", members=self._members(view))
        return Answer(group_id, GroupState.DEAD)

    def _classic_members(self, group_id: str, view: View) -> list[Entry]:
        """A replaced static member has the assignment of the one before it, whether or not a record says so."""
        record = self._cluster.record(group_id) if view.state == GroupState.STABLE else None
        recorded = () if record is None else record.members
        shares = sorted(one.assignment for one in recorded if one.assignment)
        held = {one.member_id: one.assignment for one in recorded}
        held |= {f"instance {one.group_instance_id}": one.assignment for one in recorded if one.group_instance_id}
        entries: list[Entry] = []
        for member in view.members:
            own = held.get(member.member_id) or held.get(f"instance {member.group_instance_id}") or b""
            client_id, host = self._cluster.clients.get(member.member_id, ("", ""))
            # What the clients of a run assign is no subscription of anybody: a share has the number of its place.
            topics = [("orders", [shares.index(own)])] if own else []
            entries.append((member.member_id, member.group_instance_id or "", client_id, host, topics))
        return entries

    def _members(self, view: ConsumerView) -> list[Entry]:
        entries: list[Entry] = []
        for member in view.members:
            topics: dict[str, list[int]] = {}
            for name, number in self._cluster.names([partition for partition, _ in member.assigned]):
                topics.setdefault(name, []).append(number)
            entries.append(
                (member.member_id, member.instance_id or "", member.client_id, member.client_host, list(topics.items()))
            )
        return entries


def _shown(view: View) -> str:
    """The assignor is shown of a group that is Stable."""
    return (view.protocol_name or "") if view.state == GroupState.STABLE else ""


class Heard:
    """What a sampler has told, as its collector sends it: events and ticks, a step at a time."""

    def __init__(self, asker: Asker) -> None:
        """When the run is over."""
        self._told, self._apart_ms = asker.told, asker.asks.apart_ms
        self._patience_ms = 2_000 * (asker.asks.every_s + TIMEOUT_S)
        self._place = self._ticked = self._sent = 0
        self._source = ""
        self._answered_at_ms = 0.0

    def step(self, now: float) -> list[Event]:
        """Events of what was told up to `now`, and the tick behind them: see `ingest.admin.sampler.Sampler.events`."""
        events: list[Event] = []
        while self._place < len(self._told) and self._told[self._place].at_ms <= now:
            one = self._told[self._place]
            self._place += 1
            if one.source != self._source:
                self._source, self._ticked, self._sent, self._answered_at_ms = one.source, 0, 0, 0.0
            if one.sample is None:
                self._answered_at_ms = one.at_ms + self._apart_ms
                continue
            event = sample_event(one.sample, DEFAULT_OFFSETS_PARTITIONS)
            if event is not None:
                events.append(event)
                self._sent = event.end
        if not self._answered_at_ms:
            return events
        wall_ms = now + self._apart_ms
        to_ms = min(max(wall_ms, self._answered_at_ms), self._answered_at_ms + self._patience_ms)
        begin, self._ticked = self._ticked, self._sent
        return [*events, tick(self._source, begin, self._sent, to_ms, len(events), self._sent - begin, {}, wall_ms)]
