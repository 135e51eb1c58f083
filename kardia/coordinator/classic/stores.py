"""What a record holds up: a request that is answered, or takes effect, when its record is stored.

Stored means that the replicas in sync have it (`acks=all`); one of them that stands still holds everything up until it
is no replica in sync any more. With `CoordinatorSettings.appends_take_time` a record is stored when `Stored` says so,
or could not be; otherwise at once. Follows `storeGroup` and its callbacks (Scala), `appendFuture` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.held_up import Assigned, Replaced, Store
from kardia.coordinator.classic.operations import Answer, Join, Stored
from kardia.coordinator.classic.rebalances import prepare, propagate
from kardia.coordinator.classic.shard import Shard, session_key
from kardia.kafka.sessions import Coordinator
from kardia.kafka.states import ErrorCode, GroupState

SKIP_ASSIGNMENT_FROM = 9
"""First JoinGroup version whose sender understands that it leads and shall not assign."""


def store(shard: Shard, one: Store) -> None:
    """A record was written; what it holds up waits for `Stored`, or is done now."""
    if shard.settings.appends_take_time:
        shard.stores[one.number] = one
    else:
        _done(shard, one, ErrorCode.NONE)


def stored(shard: Shard, operation: Stored) -> None:
    """The record of a request is stored, or could not be. Without effect when nothing waits for it any more."""
    one, error = shard.stores.pop(operation.of, None), ErrorCode(operation.error_code)
    if one is not None:
        _done(shard, one, error)
    elif error is not ErrorCode.NONE:
        _give_up_waiting(shard, operation.group_id, operation.of, error)


def _done(shard: Shard, one: Store, error: ErrorCode) -> None:
    group = shard.groups.get(one.group_id)
    if group is None:
        return
    if isinstance(one, Assigned):
        if group.state is GroupState.COMPLETING and group.generation_id == one.generation_id:
            _assign(shard, group, one.assignments, error)
    elif error is ErrorCode.NONE:
        _take_over(shard, group, one)
    elif one.member.member_id == one.request.new_id:
        _give_back(shard, group, one, error)


def _give_up_waiting(shard: Shard, group_id: str, number: int, error: ErrorCode) -> None:
    """A request that holds up nothing waits, and something before it could not be stored in time (Java). It is answered
    so, and the group goes on as if it waited: what it waits for is answered to nobody."""
    group = shard.groups.get(group_id)
    members = () if group is None else group.members.values()
    if any(member.waiting_join == number for member in members):
        shard.answer_join(number, error, "")
    elif any(member.waiting_sync == number for member in members):
        shard.answer(number, error)
    else:
        return
    shard.failed[number] = error


def _assign(shard: Shard, group: Group, assignments: dict[str, bytes], error: ErrorCode) -> None:
    """The leader's assignments are handed out, and the group is Stable; who is missing gets empty bytes. Where they
    could not be stored nobody gets any, and the rebalance starts anew."""
    for member in group.members.values():
        member.assignment = b"" if error is not ErrorCode.NONE else assignments.get(member.member_id, b"")
    propagate(shard, group, error)
    if error is ErrorCode.NONE:
        shard.move(group, GroupState.STABLE, "assignment stored")
    else:
        prepare(shard, group, "assignment not stored")


def _take_over(shard: Shard, group: Group, one: Replaced) -> None:
    """The new id is told. Where it was taken over itself meanwhile, Scala tells it to who did that."""
    if one.member.member_id == one.request.new_id or shard.behaviour.coordinator is Coordinator.SCALA:
        answer_replaced(shard, group, one.member, one.request, one.leader_before)


def answer_replaced(shard: Shard, group: Group, member: Member, request: Join, leader_before: str | None) -> None:
    """Answer with the generation as it is. Older senders get the leader's id from before, so that none leads."""
    number = group.end_wait(member)
    if number is None:
        return  # a join phase has ended meanwhile
    skips = shard.behaviour.skips_assignment and request.version >= SKIP_ASSIGNMENT_FROM
    leads = group.leader == request.new_id
    shard.answers.append(
        Answer(
            number,
            shard.now_ms,
            int(ErrorCode.NONE),
            generation_id=group.generation_id,
            leader=(group.leader if skips else leader_before) or "",
            member_id=request.new_id,
            protocol_name=group.protocol_name,
            members=group.listing() if skips and leads else (),
            skip_assignment=skips and leads,
        )
    )


def _give_back(shard: Shard, group: Group, one: Replaced, error: ErrorCode) -> None:
    """The old id is the member again; its session starts anew, and what it or the new one waits for is over."""
    member, new_id = one.member, one.request.new_id
    answered = group.end_wait(member) != one.number
    if shard.behaviour.coordinator is Coordinator.JAVA:
        group.change_protocols(member, one.protocols)  # Scala remembers those that it has just stored
    member.session_timeout_ms, member.rebalance_timeout_ms = one.session_timeout_ms, one.rebalance_timeout_ms
    shard.timers.cancel(session_key(group.group_id, new_id))
    shard.dismiss_sync(member, ErrorCode.FENCED_INSTANCE_ID)
    group.remove(new_id)
    member.member_id = one.old_id
    group.add(member)
    if group.leader == new_id:
        group.leader = one.old_id
    shard.happen(group.group_id, "member_given_back", one.old_id, new_id)
    shard.arm_session(group, member)
    if not answered:
        shard.answers.append(
            Answer(
                one.number,
                shard.now_ms,
                int(error),
                generation_id=group.generation_id,
                leader=one.leader_before or "",
                protocol_name=group.protocol_name,
            )
        )
