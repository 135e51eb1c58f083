"""What coordinators of Kafka 2.0 to 2.7 say in `server.log`: as `server_lines`, in the words of their releases.

They count no members and pass on no reasons of clients; a member that left is told before the rebalance that it begins.
What they say at DEBUG is not said here. Words: log statements of the releases (`GroupCoordinator.scala`).
"""

from __future__ import annotations

from collections.abc import Iterable

from kardia.coordinator.classic.operations import Join, Leave, Operation, Sync, View
from kardia.coordinator.happenings import Happening
from kardia.events import shard_of
from kardia.kafka.releases import version_of
from kardia.kafka.states import GroupState
from tests.truth.fleet.server_lines import Narrator, Step


class OldNarrator(Narrator):
    """The sentences of one of these releases."""

    def __init__(self, kafka_version: str) -> None:
        """`kafka_version`: before 2.8."""
        super().__init__(java=False)
        self._version = version_of(kafka_version)

    def told(
        self, group_id: str, happenings: Iterable[Happening], operation: Operation | None, after: View | None
    ) -> list[str]:
        """Messages about one step of one group, in their order."""
        before, self._views[group_id] = self._views.get(group_id), after
        step = Step(group_id, operation, before, after)
        said: list[str] = []
        for one in happenings:
            step.note(one)
            leaves = one.kind in ("left", "removed_by_admin")
            said += self._gone(step, one) if leaves else self._one(step, one)
        return said

    def assignment_received(self, sync: Sync, view: View) -> str:  # noqa: ARG002
        """What the leader's SyncGroup makes it say."""
        return f"Assignment received from leader for group {sync.group_id} for generation {sync.generation_id}"

    def _gone(self, step: Step, one: Happening) -> list[str]:
        if self._version < (2, 2, 0):
            return []
        whose = f"Member {one.member_id}"
        if self._version >= (2, 4, 0):
            member = step.member(one.member_id)
            instance = f"Some({member.group_instance_id})" if member and member.group_instance_id else "None"
            whose = f"Member[group.instance.id {instance}, member.id {one.member_id}]"
        return [f"{whose} in group {step.group_id} has left, removing it from the group"]

    def _one(self, step: Step, one: Happening) -> list[str]:
        if one.kind == "pending":
            return []
        if one.kind != "member_replaced":
            return super()._one(step, one)
        instance_id = step.operation.group_instance_id if isinstance(step.operation, Join) else ""
        named, old = (f" of group {step.group_id}", "member id") if self._version >= (2, 5, 0) else ("", "member")
        return [
            f"Static member Some({instance_id}){named} with unknown member id rejoins, assigning new member id "
            f"{one.member_id}, while old {old} {one.detail} will be removed."
        ]

    def _state(self, step: Step, one: Happening) -> list[str]:
        moved, _, why = one.detail.partition(": ")
        to = moved.partition(" to ")[2]
        at = f" (__consumer_offsets-{shard_of(step.group_id)})"
        if to == GroupState.PREPARING:
            state = " in state PreparingRebalance" if self._version >= (2, 2, 0) else ""
            reason = f" (reason: {self._reason(step, why, moved)})" if self._version >= (2, 2, 0) else ""
            whose = f"Preparing to rebalance group {step.group_id}{state}"
            return [f"{whose} with old generation {step.generation_id}{at}{reason}"]
        said = []
        if to in (GroupState.COMPLETING, GroupState.EMPTY) and step.dropped:
            if self._version >= (2, 7, 0):
                names = ", ".join(step.dropped)
                said.append(f"Group {step.group_id} remove dynamic members who haven't joined: Set({names})")
            step.dropped.clear()
        if to in (GroupState.COMPLETING, GroupState.EMPTY):
            step.generation_id += 1
        if to == GroupState.COMPLETING:
            said.append(f"Stabilized group {step.group_id} generation {step.generation_id}{at}")
        elif to == GroupState.EMPTY:
            said.append(f"Group {step.group_id} with generation {step.generation_id} is now empty{at}")
        return said

    def _reason(self, step: Step, why: str, moved: str) -> str:
        operation, member_id = step.operation, step.actor
        before = f" during {moved.partition(' to ')[0]}" if self._version >= (2, 7, 0) else ""
        if why.startswith("member added"):
            instance_id = operation.group_instance_id if isinstance(operation, Join) else None
            named = f"Some({instance_id})" if instance_id else "None"
            words = " with group instance id " if self._version >= (2, 5, 0) else " with group instanceid "
            return f"Adding new member {member_id}" + (f"{words}{named}" if self._version >= (2, 3, 0) else "")
        if why.startswith("session expired"):
            return f"removing member {member_id} on heartbeat expiration"
        if why.startswith("member left"):
            asked = operation.members[0].member_id if isinstance(operation, Leave) else member_id
            return f"removing member {asked} on LeaveGroup"
        if why.startswith("assignment not stored") and step.before is not None:
            return f"error when storing group assignment during SyncGroup (member: {step.before.leader})"
        joined = operation.member_id if isinstance(operation, Join) else ""
        if why.startswith("leader rejoined") and self._version >= (2, 7, 0):
            return f"leader {joined} re-joining group{before}"
        if why.startswith(("leader rejoined", "metadata changed")):
            return f"Updating metadata for member {joined}{before}"
        if why.startswith("static member replaced") and isinstance(operation, Join):
            whose = f"static member {member_id} with instance id Some({operation.group_instance_id})"
            if moved.startswith(GroupState.STABLE):
                return f"Group's selectedProtocol will change because {whose} joined with change of protocol"
            return f"Updating metadata for {whose}"
        raise AssertionError(f"{why!r}: a reason that these brokers have no words for")
