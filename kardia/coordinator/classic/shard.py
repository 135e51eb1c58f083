"""One shard of the coordinator: its groups, timers and records, and the small steps every rule is made of.

A step answers, arms, moves a group to a state, removes a member or writes a record, and each is told as a happening.
Decides nothing; the rules are in `joins`, `syncs`, `heartbeats`, `leaves`, `commits`, `rebalances` and
`removal_and_loading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardia.coordinator.classic.behaviour import Behaviour
from kardia.coordinator.classic.choices import Choose
from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.held_up import Store
from kardia.coordinator.classic.operations import Answer
from kardia.coordinator.classic.records import GroupRecord, RecordedMember, Records
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.happenings import Happening
from kardia.coordinator.timers import Key, TimerKind, Timers
from kardia.kafka.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from kardia.kafka.states import LEGAL_MOVES, ErrorCode, GroupState


class Shard:
    """State of a shard at `now_ms`. `answers` and `happenings` collect what the rules say until they are taken."""

    def __init__(self, behaviour: Behaviour, settings: CoordinatorSettings, choose: Choose) -> None:
        self.behaviour = behaviour
        self.settings = settings
        self.choose = choose
        self.now_ms = settings.started_at_ms
        self.loaded = True
        self.groups: dict[str, Group] = {}
        self.timers = Timers()
        self.records = Records()
        self.answers: list[Answer] = []
        self.happenings: list[Happening] = []
        self.topic_ids: dict[str, str] = {}
        """Ids of the cluster's topics by name; empty where nobody says which topics there are."""
        self.failed: dict[int, ErrorCode | None] = {}
        """Requests that are answered with an error while they wait, None once they are: what they waited for is not
        answered."""
        self.stores: dict[int, Store] = {}
        """By number of its request: what a record holds up that is not stored yet."""

    # -- saying ---------------------------------------------------------------------------------------------------

    def answer(self, number: int, error: ErrorCode) -> None:
        """Answer with nothing but an error code."""
        self.answers.append(Answer(number, self.now_ms, int(error)))

    def answer_join(self, number: int, error: ErrorCode, member_id: str) -> None:
        """Answer a JoinGroup that failed."""
        self.answers.append(Answer(number, self.now_ms, int(error), member_id=member_id))

    def take_answers(self) -> list[Answer]:
        """What was answered since this was last called; nothing more to who was told that it failed while it waits."""
        taken, self.answers = self.answers, []
        if self.failed:
            taken = [one for one in taken if self.failed.get(one.number, one.error_code) == one.error_code]
            self.failed.update({one.number: None for one in taken if one.number in self.failed})
        return taken

    def happen(self, group_id: str, kind: str, member_id: str = "", detail: str = "") -> None:
        """Note what happened."""
        self.happenings.append(Happening(self.now_ms, group_id, kind, member_id, detail))

    # -- timers ---------------------------------------------------------------------------------------------------

    def arm_session(self, group: Group, member: Member) -> None:
        """Let the member's session start anew, with its timeout as stored now."""
        key = session_key(group.group_id, member.member_id)
        member.heard_at_ms = self.now_ms
        if self.granted_five_minutes(member, self.now_ms + member.session_timeout_ms):
            # A timer that is void when it is made; an older one is as well, unless it was made in this very ms.
            if self.granted_five_minutes(member, self.timers.deadline(key)):
                self.timers.cancel(key)
            return
        self.timers.arm(key, self.now_ms, member.session_timeout_ms)

    def granted_five_minutes(self, member: Member, deadline_at_ms: int) -> bool:
        """Whether the expiry test of releases before 2.5 (`shouldKeepAlive`) lets a new member live beyond a deadline
        because it was heard less than five minutes before it."""
        kept = self.behaviour.new_member_keeps_short_timer
        if member.waiting_join is not None:
            kept = self.behaviour.waiting_new_member_keeps_short_timer
        return member.is_new and not kept and member.heard_at_ms + NEW_MEMBER_JOIN_TIMEOUT_MS > deadline_at_ms

    def arm_sessions(self, group: Group, member_ids: Iterable[str]) -> None:
        """Arm several at one instant, in the order Kafka would."""
        for member_id in self.in_order(group, member_ids):
            self.arm_session(group, group.members[member_id])

    def in_order(self, group: Group, member_ids: Iterable[str]) -> Iterable[str]:
        """The order of a hash map, asked for when it can matter."""
        ordered = sorted(member_ids)
        return ordered if len(ordered) < 2 else self.choose.order(group.group_id, ordered)

    # -- the group ------------------------------------------------------------------------------------------------

    def create(self, group_id: str) -> Group:
        """A new, Empty group in generation 0."""
        group = Group(group_id, self.now_ms)
        self.groups[group_id] = group
        self.happen(group_id, "created")
        return group

    def move(self, group: Group, state: GroupState, why: str) -> None:
        """Change the state; only along `LEGAL_MOVES`."""
        if state not in LEGAL_MOVES[group.state]:
            raise RuntimeError(
                f"group {group.group_id!r}: {group.state} may not become {state} ({why}); a rule is wrong"
            )
        self.happen(group.group_id, "state", detail=f"{group.state} to {state}: {why}")
        group.state = state
        group.state_since_at_ms = self.now_ms

    def lead(self, group: Group, candidates: Sequence[str]) -> None:
        """Choose a leader among the candidates, sorted; without any the group has none."""
        if len(candidates) > 1:
            group.leader = self.choose.leader(group.group_id, candidates)
        else:
            group.leader = candidates[0] if candidates else None
        if group.leader is not None:
            self.happen(group.group_id, "leader", group.leader)

    def forget(self, group: Group, member_id: str) -> None:
        """Take an id out of everything, its timer too. Leaves the group without leader if it was the leader."""
        group.remove(member_id)
        if group.leader == member_id:
            group.leader = None
        group.pending.discard(member_id)
        group.pending_sync.discard(member_id)
        self.timers.cancel(session_key(group.group_id, member_id))

    def forget_one(self, group: Group, member_id: str) -> None:
        """Take an id out, and let another member lead if it led."""
        led = group.leader == member_id
        self.forget(group, member_id)
        if led:
            self.lead(group, group.ids)

    def dismiss_join(self, group: Group, member: Member, error: ErrorCode, member_id: str) -> None:
        """Answer the member's waiting JoinGroup, if any, with an error."""
        number = group.end_wait(member)
        if number is not None:
            self.answer_join(number, error, member_id)

    def dismiss_sync(self, member: Member, error: ErrorCode) -> None:
        """Answer the member's waiting SyncGroup, if any, with an error."""
        if member.waiting_sync is not None:
            self.answer(member.waiting_sync, error)
            member.waiting_sync = None

    # -- records --------------------------------------------------------------------------------------------------

    def record(self, group: Group, assignments: dict[str, bytes]) -> None:
        """Write the group's record, with these assignments (empty where one is missing)."""
        members = tuple(
            RecordedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.metadata(group.protocol_name),
                assignments.get(member_id, b""),
            )
            for member_id, member in ((one, group.members[one]) for one in group.ids)
        )
        self.records.groups[group.group_id] = GroupRecord(
            self.now_ms,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader,
            group.state_since_at_ms,
            members,
        )
        self.happen(group.group_id, "recorded", detail=f"generation {group.generation_id}, {len(members)} members")


def session_key(group_id: str, member_id: str) -> Key:
    """Timer key of a member, new member or pending id."""
    return TimerKind.SESSION, group_id, member_id


def join_key(group_id: str) -> Key:
    """Timer key of a group's join phase."""
    return TimerKind.JOIN, group_id, ""


def sync_key(group_id: str) -> Key:
    """Timer key of a group's sync phase."""
    return TimerKind.SYNC, group_id, ""


EXPIRE_KEY: Key = (TimerKind.EXPIRE, "", "")
"""Timer key of the shard's search for expired offsets."""
