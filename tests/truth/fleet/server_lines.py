"""What the simulated broker's coordinators say in `server.log`, in the words of real ones: Scala's and Java's.

Made from what the model says happened in a step, in the order in which Kafka logs it: Scala tells of a member that
left after the rebalance that it began, Java before. A line is stamped when it is said; `Assignment received` is said
when the leader's SyncGroup is handled, before the assignment is stored. Words: log statements of Kafka 3.9 and 4.x.
Nothing here reads what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardia.coordinator.classic.operations import Join, Leave, MemberView, Operation, Stored, Sync, View
from kardia.coordinator.happenings import Happening
from kardia.events import shard_of
from kardia.kafka.states import GroupState
from tests.truth.fleet.lines import stamp_of

NOT_PROVIDED = "not provided"
"""Reason of a client that gave none."""


def server_line(at_ms: float, message: str, group_id: str, *, java: bool) -> bytes:
    """A line of the coordinator's logger, with its end."""
    if java:
        prefix = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={shard_of(group_id)}] "
        logger = "org.apache.kafka.coordinator.group.GroupMetadataManager"
    else:
        prefix, logger = "[GroupCoordinator 1]: ", "kafka.coordinator.group.GroupCoordinator"
    return f"[{stamp_of(at_ms)}] INFO {prefix}{message} ({logger})\n".encode()


class Narrator:
    """The coordinator's sentences. Remembers of each group how it was after the step before."""

    def __init__(self, *, java: bool) -> None:
        """Of brokers with the Java coordinator, or the Scala one."""
        self._java = java
        self._stop = "." if java else ""
        self._views: dict[str, View | None] = {}
        self._joins: dict[str, Join] = {}
        """Member -> the JoinGroup that made it one."""

    def told(
        self, group_id: str, happenings: Iterable[Happening], operation: Operation | None, after: View | None
    ) -> list[str]:
        """Messages about one step of one group, in their order."""
        before, self._views[group_id] = self._views.get(group_id), after
        step = Step(group_id, operation, before, after)
        said: list[str] = []
        left = ""
        for one in happenings:
            step.note(one)
            if one.kind == "member_added" and isinstance(operation, Join):
                self._joins[one.member_id] = operation
            if one.kind in ("left", "removed_by_admin"):
                said += [left] if left else []
                left = self._left(step, one)
                if self._java:
                    said.append(left)
                    left = ""
            else:
                said += self._one(step, one)
        return [*said, left] if left else said

    def assignment_received(self, sync: Sync, view: View) -> str:
        """What the leader's SyncGroup makes it say."""
        static = sum(one.group_instance_id is not None for one in view.members)
        return (
            f"Assignment received from leader {sync.member_id} for group {sync.group_id} for generation "
            f"{sync.generation_id}. The group has {len(view.members)} members, {static} of which are static."
        )

    def _one(self, step: Step, one: Happening) -> list[str]:
        group_id, stop = step.group_id, self._stop
        match one.kind:
            case "session_expired" | "join_timeout":
                return [f"Member {one.member_id} in group {group_id} has failed, removing it from the group{stop}"]
            case "pending":
                asks = "requesting" if self._java else "request"
                return [
                    f"Dynamic member with unknown member id joins group {group_id} in {step.state} state. Created a "
                    f"new member id {one.member_id} and {asks} the member to rejoin with this id."
                ]
            case "pending_expired":
                whose = f"Pending member {one.member_id} in group {group_id}"
                return [f"{whose} has been removed after session timeout expiration."]
            case "member_replaced":
                instance_id = step.operation.group_instance_id if isinstance(step.operation, Join) else ""
                return [
                    f"Static member with groupInstanceId={instance_id} and unknown member id joins group {group_id} in "
                    f"{step.state} state. Replacing previously mapped member {one.detail} with this groupInstanceId."
                ]
            case "member_added" if step.state == GroupState.PREPARING and isinstance(step.operation, Join):
                return self._added(step, one.member_id, step.operation)
            case "member_given_back" if self._java:
                taken = step.member(one.detail)
                whose = f"static member {one.detail} with group instance id {taken.group_instance_id if taken else ''}"
                why = "CoordinatorWriteEvent(name=classic-group-join) timed out after 5000ms"
                return [
                    f"Failed to persist metadata for group {group_id} {whose} due to {why}. Reverting to old member id "
                    f"{one.member_id}."
                ]
            case "state":
                return self._state(step, one)
            case "died" if not self._java:
                return [f"Group {group_id} transitioned to Dead in generation {step.generation_id}"]
            case _:
                return []

    def _added(self, step: Step, member_id: str, join: Join) -> list[str]:
        """Of a member that joins while its group prepares; of a dynamic one with an id, Scala tells at DEBUG only."""
        group_id, state = step.group_id, step.state
        added = f"Created a new member id {member_id} for this member and add{'ed' if self._java else ''} to the group."
        if join.group_instance_id is not None:
            whose = f"Static member with groupInstanceId={join.group_instance_id} and unknown member id"
            return [f"{whose} joins group {group_id} in {state} state. {added}"]
        if join.member_id:
            begin = f"Pending dynamic member with id {member_id} joins group {group_id} in {state} state."
            return [f"{begin} Adding to the group now."] if self._java else []
        if self._java:
            begin = f"Dynamic member with unknown member id joins group {group_id} in state {state}."
            return [f"{begin} Created a new member id {member_id} and added the member to the group."]
        return [f"Dynamic Member with unknown member id joins group {group_id} in {state} state. {added}"]

    def _state(self, step: Step, one: Happening) -> list[str]:
        moved, _, why = one.detail.partition(": ")
        to = moved.partition(" to ")[2]
        at = "" if self._java else f" (__consumer_offsets-{shard_of(step.group_id)})"
        if to == GroupState.PREPARING:
            return [
                f"Preparing to rebalance group {step.group_id} in state PreparingRebalance with old generation "
                f"{step.generation_id}{at} (reason: {self._reason(step, why, moved)}){self._stop}"
            ]
        said = []
        if to in (GroupState.COMPLETING, GroupState.EMPTY) and step.dropped:
            names = _set(step.dropped, java=self._java)
            said.append(f"Group {step.group_id} removed dynamic members who haven't joined: {names}")
            step.dropped.clear()
        if to == GroupState.COMPLETING:
            step.generation_id += 1
            count = len(step.after.members) if step.after is not None else 0
            said.append(
                f"Stabilized group {step.group_id} generation {step.generation_id}{at} with {count} members{self._stop}"
            )
        elif to == GroupState.EMPTY:
            step.generation_id += 1
            said.append(f"Group {step.group_id} with generation {step.generation_id} is now empty{at}{self._stop}")
        return said

    def _reason(self, step: Step, why: str, moved: str) -> str:
        """Why the group prepares, in the coordinator's words."""
        operation, member_id = step.operation, step.actor
        client = f"; client reason: {self._client_reason(getattr(operation, 'reason', None))}"
        if why.startswith("member added"):
            instance_id = operation.group_instance_id if isinstance(operation, Join) else None
            named = (instance_id or "null") if self._java else (f"Some({instance_id})" if instance_id else "None")
            return f"Adding new member {member_id} with group instance id {named}{client}"
        if why.startswith("session expired"):
            return f"removing member {member_id} on heartbeat expiration{self._stop}"
        if why.startswith("sync timeout"):
            return f"Removing {_set(step.never_synced(), java=self._java)} on pending sync request expiration"
        if why.startswith("member left") and isinstance(operation, Leave):
            if self._java:
                return f"explicit `LeaveGroup` request for ({', '.join(step.asked_to_leave)}) members."
            reason = self._client_reason(step.leave_reason)
            return f"Removing member {member_id} on LeaveGroup; client reason: {reason}"
        if why.startswith("assignment not stored") and isinstance(operation, Stored):
            error, gap = ("COORDINATOR_NOT_AVAILABLE", "") if self._java else ("REBALANCE_IN_PROGRESS", " ")
            leader = step.before.leader if step.before is not None else ""
            return f"Error {error} when storing group assignment{gap}during SyncGroup (member: {leader}){self._stop}"
        joined = operation.member_id if isinstance(operation, Join) else ""
        before = moved.partition(" to ")[0]
        if why.startswith("leader rejoined"):
            return f"Leader {joined} re-joining group during {before}{client}"
        if why.startswith("metadata changed"):
            return f"Updating metadata for member {joined} during {before}{client}"
        if why.startswith("static member replaced") and isinstance(operation, Join):
            whose = f"static member {member_id} with instance id {operation.group_instance_id}"
            if before == GroupState.STABLE:
                change = f"Group's selectedProtocol will change because {whose} joined with change of protocol"
                return f"{change}{client}"
            return f"Updating metadata for {whose}{client}"
        raise AssertionError(f"{why!r}: a reason that these brokers have no words for")

    def _client_reason(self, reason: str | None) -> str:
        return NOT_PROVIDED if reason is None or (self._java and not reason) else reason

    def _left(self, step: Step, one: Happening) -> str:
        reason = self._client_reason(step.leave_reason)
        if self._java:
            whose = f"[Group {step.group_id}] Member {one.member_id}"
            return f"{whose} has left group through explicit `LeaveGroup` request; client reason: {reason}"
        joined = self._joins.get(one.member_id)
        member = step.member(one.member_id)
        instance = f"Some({member.group_instance_id})" if member and member.group_instance_id else "None"
        client = (joined.client_id, joined.client_host) if joined else ("", "")
        names = ", ".join(name for name, _ in joined.protocols) if joined else ""
        timeouts = (member.session_timeout_ms, member.rebalance_timeout_ms) if member else (0, 0)
        return (
            f"Member MemberMetadata(memberId={one.member_id}, groupInstanceId={instance}, clientId={client[0]}, "
            f"clientHost=/{client[1]}, sessionTimeoutMs={timeouts[0]}, rebalanceTimeoutMs={timeouts[1]}, "
            f"supportedProtocols=List({names})) has left group {step.group_id} through explicit `LeaveGroup`; client "
            f"reason: {reason}"
        )


class Step:
    """What is known of a step while its happenings are gone through."""

    def __init__(self, group_id: str, operation: Operation | None, before: View | None, after: View | None) -> None:
        self.group_id, self.operation, self.before, self.after = group_id, operation, before, after
        self.state = before.state if before is not None else str(GroupState.EMPTY)
        self.generation_id = before.generation_id if before is not None else 0
        self.actor = ""
        """Of whom the last happening told."""
        self.leave_reason: str | None = None
        self.dropped: list[str] = []
        """Members that did not rejoin in time."""
        self.asked_to_leave: list[str] = []
        """Members that left, by the ids that were sent: empty where an instance id was."""

    def note(self, one: Happening) -> None:
        """The next happening."""
        if one.kind == "rebalance_timeout":
            self.dropped.append(one.member_id)
        elif one.kind in ("left", "removed_by_admin"):
            self.asked_to_leave.append(one.member_id if one.kind == "left" else "")
            if isinstance(self.operation, Leave):
                self.leave_reason = next((entry.reason for entry in self.operation.members), None)
        if one.kind not in ("state", "generation", "leader", "recorded"):
            self.actor = one.member_id

    def never_synced(self) -> Sequence[str]:
        """Ids that had not sent SyncGroup, those among them that are no members any more."""
        return self.before.pending_sync if self.before is not None else ()

    def member(self, member_id: str) -> MemberView | None:
        """A member as it was before the step."""
        members = self.before.members if self.before is not None else ()
        return next((one for one in members if one.member_id == member_id), None)


def _set(names: Sequence[str], *, java: bool) -> str:
    """Names as Java's or Scala's collections print them."""
    if java:
        return f"[{', '.join(names)}]"
    return f"{'HashSet' if len(names) > 4 else 'Set'}({', '.join(names)})"
