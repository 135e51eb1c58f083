"""One group of the coordinator model: asked, let go on, copied, and put together at an anchor.

The rules are those of `kardia.coordinator`, called as its `Coordinator` calls them; what Kafka leaves to the order of a
hash map is taken from the answers (`Chosen`). A record is stored when the log says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from kardia.coordinator.classic.behaviour import Behaviour
from kardia.coordinator.classic.coordinator import HANDLERS, fire
from kardia.coordinator.classic.group import Group, Member, StuckError
from kardia.coordinator.classic.held_up import Replaced
from kardia.coordinator.classic.operations import Answer, Operation, Stored
from kardia.coordinator.classic.rebalances import complete, prepare, try_complete
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.classic.shard import Shard, join_key, session_key, sync_key
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.timers import Key, Timer
from kardia.follow.tolerances import ORDER_MS
from kardia.kafka.states import ErrorCode, GroupState

NEVER_MS = 1 << 62
"""Later than everything."""

WOKEN_MS = 2
"""So soon after its log goes on a broker that stood still gets to its timers."""


ENDS = frozenset({"session_expired", "join_timeout", "rebalance_timeout", "sync_timeout", "left", "removed_by_admin"})
"""Happenings by which a member goes."""


class Chosen:
    """Answers what the model leaves open from what the broker answered: leader and protocol of each generation."""

    def __init__(self) -> None:
        self.leaders: dict[int, str] = {}
        self.protocols: dict[int, str] = {}
        self.ends: dict[int, int] = {}
        """When the first JoinGroup of a generation was answered: the lines of others may come late."""
        self.next_generation = 1

    def learn(self, generation_id: int, leader: str, protocol_name: str, answered_at_ms: int) -> None:
        """A JoinGroup was answered so; what is older than a few generations is forgotten."""
        if len(self.leaders) > 8 and generation_id not in self.leaders:
            for old in sorted(self.leaders)[:-4]:
                del self.leaders[old], self.protocols[old], self.ends[old]
        self.leaders[generation_id] = leader
        self.protocols[generation_id] = protocol_name
        self.ends[generation_id] = min(answered_at_ms, self.ends.get(generation_id, answered_at_ms))

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:  # noqa: ARG002
        """Whom the answers of the next generation name, if it is one of them."""
        wanted = self.leaders.get(self.next_generation, "")
        return wanted if wanted in candidates else candidates[0]

    def protocol(self, group_id: str, candidates: Sequence[str]) -> str:  # noqa: ARG002
        """Which protocol they name."""
        wanted = self.protocols.get(self.next_generation, "")
        return wanted if wanted in candidates else candidates[0]

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:  # noqa: ARG002
        """By id: nothing shows it."""
        return member_ids


class Seat(NamedTuple):
    """A member as an anchor shows it."""

    member_id: str
    instance_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Model:
    """One group."""

    def __init__(
        self, group_id: str, behaviour: Behaviour, settings: CoordinatorSettings, chosen: Chosen, at_ms: int
    ) -> None:
        """Nobody knows the group at `at_ms`. `settings`: with appends that take time."""
        self.group_id = group_id
        self.chosen = chosen
        self.shard = Shard(behaviour, settings, chosen)
        self.shard.now_ms = at_ms
        self.holds: dict[tuple[Key, int], int] = {}
        """Timer and its deadline -> when it fires instead."""
        self.silences: Sequence[tuple[float, float]] = ()
        """When the broker's log was silent: no timer fires then, as the broker may stand still or be dead."""
        self.fired: list[Timer] = []
        """The last timers that fired, oldest first."""
        self.ends: list[Happening] = []
        """Who went since the last anchor."""
        self.because = ""
        """Why the group changed its state last."""
        self.leads_next = ""
        """Who may have been the first to join, of two that joined at one instant."""
        self.knows_record = True
        """Whether the group's last record is what a load would find."""
        self.leader_is_free = False
        """Who leads was left to the order of a hash map since the last join phase."""

    # --- looking

    @property
    def now_ms(self) -> int:
        """The instant of the last step."""
        return self.shard.now_ms

    @property
    def group(self) -> Group | None:
        """The group, None while the coordinator does not know it."""
        return self.shard.groups.get(self.group_id)

    @property
    def state(self) -> GroupState:
        """Its state; Dead where the coordinator does not know it."""
        group = self.group
        return GroupState.DEAD if group is None else group.state

    def phase_ended_at(self, at_ms: int) -> bool:
        """Whether a join phase ended in this very instant."""
        group = self.group
        return group is not None and group.state is GroupState.COMPLETING and group.state_since_at_ms == at_ms

    def rests_on(self, member_id: str) -> str:
        """On what an answer to a member rests: how it went, or why the group is in its state."""
        group = self.group
        if group is None or member_id in group.members:
            return self.because
        return next((one.kind for one in reversed(self.ends) if one.member_id == member_id), self.because)

    def next_deadline_at_ms(self) -> int:
        """When the next timer is due, NEVER_MS without any."""
        timer = self.shard.timers.next()
        return NEVER_MS if timer is None else timer.deadline_at_ms

    # --- going on

    def perform(self, operation: Operation, at_ms: int) -> list[Answer]:
        """Apply an operation; what it answers."""
        shard = self.shard
        shard.now_ms = max(at_ms, shard.now_ms)
        self._choose()
        try:
            HANDLERS[type(operation)](shard, operation)
        except StuckError:
            shard.answer(operation.number, ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._taken()

    def stored(self, number: int, at_ms: int, error: int = 0) -> list[Answer]:
        """The record of a request is stored, or could not be."""
        if number not in self.shard.stores:
            return []
        return self.perform(Stored(-1, self.group_id, number, error), at_ms)

    def advance(self, to_ms: int) -> list[Answer]:
        """Let time pass; fire what is due, later where it is held."""
        shard = self.shard
        while (timer := shard.timers.pop_due(to_ms)) is not None:
            release_ms = max(
                self.holds.get((timer.key, timer.deadline_at_ms), -1), self._woken_ms(timer.deadline_at_ms)
            )
            if release_ms > timer.deadline_at_ms:
                shard.timers.arm(timer.key, release_ms, 0, timer.remaining_ms)
                continue
            self._fire(timer)
        shard.now_ms = max(to_ms, shard.now_ms)
        return self._taken()

    def _woken_ms(self, at_ms: int) -> int:
        """When a broker that is silent at an instant, and so may stand still, gets to its timers; -1 of one that is
        not."""
        place = bisect_right(self.silences, (at_ms, 1 << 62)) - 1
        if place < 0 or at_ms >= self.silences[place][1]:
            return -1
        return int(self.silences[place][1]) + WOKEN_MS

    def wakes_at(self, at_ms: int) -> bool:
        """Whether a broker that may have stood still gets to its timers about then."""
        last = bisect_right(self.silences, (at_ms + 1, 1 << 62)) - 1
        return last >= 0 and 0 <= at_ms + 1 - int(self.silences[last][1]) <= WOKEN_MS + ORDER_MS + 1

    def _fire(self, timer: Timer) -> None:
        shard = self.shard
        shard.now_ms = max(shard.now_ms, timer.deadline_at_ms)
        self.fired.append(timer)
        del self.fired[:-8]
        self._choose()
        with suppress(StuckError):
            fire(shard, timer)

    def _choose(self) -> None:
        """Let the answers name the leader where the model was free to take any."""
        group = self.group
        if group is None:
            return
        self.chosen.next_generation = group.generation_id + 1
        if group.state is GroupState.PREPARING:
            wanted = self.chosen.leaders.get(group.generation_id + 1, "")
            if (self.leader_is_free or wanted == self.leads_next) and wanted in group.members:
                group.leader = wanted
        else:
            self.leader_is_free, self.leads_next = False, ""

    def _taken(self) -> list[Answer]:
        happened, self.shard.happenings = self.shard.happenings, []
        for one in happened:
            if one.kind in ENDS:
                self.ends.append(one)
            elif one.kind == "state":
                self.because = one.detail.partition(": ")[2].partition(";")[0]
        if not self.knows_record:
            self.knows_record = any(one.kind == "recorded" for one in happened)
        group = self.group
        if group is not None and group.state is GroupState.PREPARING:
            self.leader_is_free |= any(one.kind == "leader" for one in happened) and len(group.members) > 1
        return self.shard.take_answers()

    # --- edits: what no request of the log did

    def renew(self, member_id: str, at_ms: int) -> None:
        """A member is heard; nothing else happens."""
        group = self.group
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None and not member.protected():
            shard = self.shard
            now_ms, shard.now_ms = shard.now_ms, at_ms
            shard.arm_session(group, member)
            shard.now_ms = now_ms

    def end_session(self, member_id: str, at_ms: int) -> list[Answer]:
        """The session of a member, or an id that was handed out, ends now."""
        key = session_key(self.group_id, member_id)
        self.shard.now_ms = max(at_ms, self.shard.now_ms)
        self.shard.timers.cancel(key)
        self._fire(Timer(self.now_ms, 0, key, 0))
        return self._taken()

    def pass_over(self, at_ms: int) -> None:
        """A part of the log is lost, up to an instant: whoever is a member may have been heard in it."""
        group = self.group
        self.shard.now_ms = max(at_ms, self.shard.now_ms)
        for member_id in () if group is None else group.ids:
            self.renew(member_id, at_ms)

    def begin(self, at_ms: int) -> list[Answer]:
        """A rebalance begins that nobody is seen to begin."""
        self.shard.now_ms = max(at_ms, self.shard.now_ms)
        group = self.group
        if group is not None and group.state in (GroupState.STABLE, GroupState.COMPLETING):
            self._choose()
            prepare(self.shard, group, "unseen")
        return self._taken()

    def remove(self, member_id: str, at_ms: int) -> list[Answer]:
        """A member, or an id that was handed out, goes that nobody is seen to leave."""
        shard, group = self.shard, self.group
        shard.now_ms = max(at_ms, shard.now_ms)
        if group is None:
            return []
        self._choose()
        member = group.members.get(member_id)
        if member is not None:
            shard.dismiss_join(group, member, ErrorCode.UNKNOWN_MEMBER_ID, "")
            shard.forget_one(group, member_id)
            if group.state in (GroupState.STABLE, GroupState.COMPLETING):
                prepare(shard, group, "unseen")
            else:
                try_complete(shard, group, by_expiry=True)
        elif member_id in group.pending:
            shard.forget(group, member_id)
            try_complete(shard, group, by_expiry=True)
        return self._taken()

    def expect(self, member_id: str, at_ms: int, session_ms: int) -> None:
        """An id has been handed out that nobody is seen to ask for: the join phase waits for it."""
        group = self.group
        if group is not None:
            group.pending.add(member_id)
            self.shard.timers.arm(session_key(self.group_id, member_id), at_ms, session_ms)

    def seat(self, seat: Seat, at_ms: int, number: int) -> None:
        """A member waits in a JoinGroup that is not in the log."""
        group = self.group
        if group is None:
            return
        member = group.members.get(seat.member_id)
        if member is None:
            member = Member(
                seat.member_id,
                seat.instance_id or None,
                "",
                "",
                seat.session_timeout_ms,
                seat.rebalance_timeout_ms,
                seat.protocols,
                waiting_join=number,
            )
            held = group.instances.get(seat.instance_id) if seat.instance_id else None
            if held is not None:
                self.shard.forget(group, held)
            group.add(member)
            group.pending.discard(seat.member_id)
            if group.leader is None:
                group.leader = seat.member_id
            self.shard.timers.arm(session_key(self.group_id, seat.member_id), at_ms, 300_000)
        elif member.waiting_join is None:
            group.wait(member, number)

    def finish_phase(self, at_ms: int) -> list[Answer]:
        """The join phase ends now, without whoever has not joined."""
        group = self.group
        self.shard.now_ms = max(at_ms, self.shard.now_ms)
        if group is not None and group.state is GroupState.PREPARING:
            self._choose()
            group.pending.clear()
            with suppress(StuckError):
                complete(self.shard, group)
        return self._taken()

    def unload(self, at_ms: int) -> list[Answer]:
        """The coordinator gives the group up."""
        self.fired.clear()
        return self.perform(Unload(-1), at_ms)

    def load(self, at_ms: int) -> list[Answer]:
        """A coordinator loads the group from its records, anew if it has it."""
        if self.shard.loaded:
            self.perform(Unload(-1), at_ms)
        return self.perform(Load(-2), at_ms)

    # --- anchors

    def put_empty(self, generation_id: int) -> None:
        """There is a group, Empty and in this generation."""
        group = Group(self.group_id, self.shard.now_ms)
        group.generation_id = generation_id
        self.shard.groups[self.group_id] = group

    def put(
        self,
        generation_id: int,
        leader: str,
        protocol_name: str,
        protocol_type: str,
        seats: Iterable[Seat],
        pending: Iterable[tuple[str, int]],
        at_ms: int,
    ) -> None:
        """A join phase has ended at `at_ms` with these members. `pending`: ids that were handed out, and until when."""
        shard = self.shard
        shard.now_ms = max(at_ms, shard.now_ms)
        group = Group(self.group_id, at_ms, GroupState.COMPLETING, generation_id, protocol_type, protocol_name, leader)
        for seat in seats:
            group.add(
                Member(
                    seat.member_id,
                    seat.instance_id or None,
                    "",
                    "",
                    seat.session_timeout_ms,
                    seat.rebalance_timeout_ms,
                    seat.protocols,
                )
            )
        shard.groups[self.group_id] = group
        self.knows_record = False
        shard.arm_sessions(group, group.members)
        for member_id, to_ms in pending:
            group.pending.add(member_id)
            shard.timers.arm(session_key(self.group_id, member_id), to_ms, 0)
        if shard.behaviour.sync_timer:
            group.pending_sync.update(group.members)
            shard.timers.arm(sync_key(self.group_id), at_ms, group.rebalance_timeout_ms())

    def join_deadline_at_ms(self) -> int:
        """When the join phase ends by its timer; -1 when none is armed."""
        return self.shard.timers.deadline(join_key(self.group_id))

    def sync_deadline_at_ms(self) -> int:
        """When members that have not synced are removed; -1 when no timer is armed."""
        return self.shard.timers.deadline(sync_key(self.group_id))

    def session_deadline_at_ms(self, member_id: str) -> int:
        """When the session of a member, or a pending id, ends; -1 when no timer is armed."""
        return self.shard.timers.deadline(session_key(self.group_id, member_id))

    # --- copying

    def copy(self) -> Model:
        """The same group, to be gone on with apart. What was chosen is shared: it is what the log says."""
        other = Model.__new__(Model)
        other.group_id, other.chosen = self.group_id, self.chosen
        other.silences = self.silences
        other.holds, other.fired = dict(self.holds), list(self.fired)
        other.ends, other.because = list(self.ends), self.because
        other.leads_next = self.leads_next
        other.leader_is_free, other.knows_record = self.leader_is_free, self.knows_record
        old = self.shard
        other.shard = shard = Shard(old.behaviour, old.settings, old.choose)
        shard.now_ms, shard.loaded = old.now_ms, old.loaded
        shard.timers = old.timers.copy()
        shard.records.groups = dict(old.records.groups)
        shard.failed = dict(old.failed)
        for group_id, group in old.groups.items():
            shard.groups[group_id] = _copied(group)
        shard.stores = dict(old.stores)
        for number, held in old.stores.items():
            if isinstance(held, Replaced):
                there = other.group
                member = None if there is None else there.members.get(held.member.member_id)
                shard.stores[number] = held if member is None else replace(held, member=member)
        return other


def _copied(group: Group) -> Group:
    return replace(
        group,
        members={member_id: replace(member) for member_id, member in group.members.items()},
        ids=list(group.ids),
        supported=Counter(group.supported),
        instances=dict(group.instances),
        pending=set(group.pending),
        pending_sync=set(group.pending_sync),
        offsets={},
        open_offsets={},
    )
