"""Requests of groups with epochs that wait for their records.

Whatever such a request changes, the coordinator writes into `__consumer_offsets`, with the very instant; but the line
of the request is read at once, and the record about a second later. A line that is understood first says the same with
bounds. So a request waits until the records of its time have been read, if they are read at all, and for so long at the
most. One that says only that its member lives does not wait, and none keeps a session from being renewed.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event, Kind
from kardia.kafka.states import COORDINATOR_MOVED, ErrorCode
from kardia.observe.modern import heartbeats
from kardia.observe.state.group import Group, Member
from kardia.tolerances import RECORDS_WAITED_FOR_MS


def must_wait(group: Group | None, event: Event, at: float, read_to: float) -> bool:
    """Whether a request waits, of a group that has epochs, or may have them by what waits already or by records that
    are gathered. `read_to`: up to when all records have been read, negative if none are."""
    if not 0 <= read_to < at <= read_to + RECORDS_WAITED_FOR_MS or event.error_code in COORDINATOR_MOVED:
        return False
    if group is None:
        return event.kind == Kind.MODERN_HEARTBEAT
    if group.modern is None and group.operation:
        return True  # whatever it says, it is understood by what the operation has made of the group
    if event.kind == Kind.MODERN_HEARTBEAT:
        lives = heartbeats.changes_nothing(group, event)
    else:
        lives = event.kind == Kind.HEARTBEAT and event.error_code == ErrorCode.NONE
    return not lives or any(one.member_id == event.member_id for one in group.deferred)


def is_needed(group: Group, kind: str, member_id: str) -> bool:
    """Whether a timer concludes from the absence of a request of a member, and one of it waits: a leave, or partitions
    that are given up. Where its records are read, only a record says that these were not."""
    concludes = kind == "removed" or (kind == "phase" and not (group.modern is not None and group.modern.by_records))
    return concludes and any(event.member_id == member_id for event in group.deferred)


def doubts_about(group: Group, member: Member) -> Doubts:
    """What is in doubt about a member of a group in which requests wait, or records whose operation may have more
    of them: its own, one that takes its place, or one by which it leaves, may have made it another one."""
    if any(event.member_id == member.member_id for event in group.operation):
        return Doubt.RECORDS_AWAITED
    for event in group.deferred:
        named = event.kind == Kind.LEAVE or event.member_id == member.member_id
        if named or (member.instance_id and event.group_instance_id == member.instance_id):
            return Doubt.RECORDS_AWAITED
    return SURE
