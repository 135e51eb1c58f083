"""What the words of the coordinator mean: why a rebalance began, and why a member left.

Sources: the reasons given to `prepareRebalance` and `maybePrepareRebalance` by `GroupCoordinator.scala` (2.2 to 3.9;
2.0 gives none) and `GroupMetadataManager.java`; KIP-800 for the client's own words in them (3.2 on).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.clients.leaves import ADMIN_REASON, POLL_TIMEOUT_REASONS
from kardia.observe.ledger.causes import CAUSE_TO_TRIGGER
from kardia.observe.members.lives import MAX_ENDED
from kardia.observe.state.group import Cause, Ended, Group
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import DOWNGRADED_WITHIN_MS

DOWNGRADED = "Downgrade group "
"""Begin of the reason with which a consumer group becomes a classic one; by whose end, it does not say."""


CLIENT_WORDS = "client reason: "
"""What follows is the client's own text, and may hold any words."""

NONE_GIVEN = frozenset({"", "not provided"})

_CLOSED = frozenset(
    {
        "the consumer is being closed",
        "the consumer unsubscribed from all topics",
        "client leaving group per normal operation",
    }
)
"""What Java consumers and franz-go say themselves. Other words may be those of an admin, who may say anything."""

_BY_WORDS = (
    ("Adding new member ", "member_joined"),
    ("on heartbeat expiration", "session_expired"),
    ("on pending sync request expiration", "sync_timeout"),
    ("when storing group assignment", "assignment_not_stored"),
    ("re-joining group during Stable", "leader_rejoined"),
    ("Updating metadata for static member ", "static_replaced"),
    ("because static member ", "static_replaced"),
    ("Updating metadata for member ", "metadata_changed"),
    ("Freshly-loaded group ", "over_capacity"),
)
"""Words of the coordinator's own part of a reason, and the trigger that they mean; the first that fits."""

_NOBODY = "`LeaveGroup` request for () members"
"""The Java coordinator names the member ids of the request: members send their own, an admin static ids alone."""

_DYNAMIC = re.compile(r" with group instance ?id (?:None|null)\Z")
_STATIC = re.compile(r" with group instance ?id (?:Some\((?P<scala>.*)\)|(?P<java>.*))\Z", re.DOTALL)
_UUID_CHARS = len("-00000000-0000-0000-0000-000000000000")


class Named(NamedTuple):
    """Who is named, as far as the sentence says it."""

    client_id: str
    """Empty where the sentence does not say that the member is not static: the id of a static one holds its static id
    instead."""
    instance_id: str


class LeaveCause(NamedTuple):
    """`end_cause` of `members`, what is in doubt about it, and the client's own words."""

    cause: str
    doubts: Doubts
    words: str


def own_part(reason: str) -> str:
    """The coordinator's own part of a reason, without what the client says."""
    return reason.partition("; " + CLIENT_WORDS)[0]


def client_part(reason: str) -> str:
    """The client's own words in a reason, empty where it gave none."""
    words = reason.partition("; " + CLIENT_WORDS)[2]
    return "" if words in NONE_GIVEN else words


def why_it_left(words: str) -> LeaveCause:
    """Why a member left, by its own words. Without any it may have closed, run out of its poll interval, or have been
    removed: that takes the request log."""
    if words in NONE_GIVEN:
        return LeaveCause("left", Doubt.REASON_NOT_GIVEN, "")
    if words in POLL_TIMEOUT_REASONS:
        return LeaveCause("poll_timeout", SURE, words)
    if words == ADMIN_REASON:
        return LeaveCause("removed_by_admin", SURE, words)
    return LeaveCause("left", SURE if words in _CLOSED else Doubt.REASON_NOT_GIVEN, words)


def client_id_of(member_id: str) -> str:
    """A dynamic member's id is its client.id and a UUID (`generateMemberId`)."""
    return member_id[:-_UUID_CHARS]


def who(event: Event, own: str) -> Named:
    """Client or static id of the member that joins."""
    if _DYNAMIC.search(own):
        return Named(client_id_of(event.member_id), "")
    static = _STATIC.search(own)
    return Named("", (static["scala"] or static["java"] or "") if static else "")


def cause_of(group: Group, event: Event, at: float) -> Cause:
    """What began a rebalance, by the sentence about its begin and those about this group just before it."""
    reason = str((event.detail or {}).get("reason", ""))
    own, words = own_part(reason), client_part(reason)
    if not reason:
        return _without_a_reason(group, event, at)
    if own.startswith(DOWNGRADED):
        return _of_downgrade(group, at, own)
    if "LeaveGroup" in own:
        return _of_leave(group, event, at, own, words)
    trigger = next((trigger for part, trigger in _BY_WORDS if part in own), "unknown")
    doubts: Doubts = SURE if trigger != "unknown" else Doubt.NOT_SEEN
    if trigger == "metadata_changed" and (not group.leader or _leads(group, event.member_id)):
        # Up to 2.5 the leader that joins again is told of in the same words, and no sentence says who leads.
        trigger, doubts = "leader_rejoined" if group.leader else trigger, Doubt.ORDER_OF_LINES
    member_id = event.member_id
    if trigger == "sync_timeout":
        removed = unsynced(group, event)
        member_id = removed[0] if removed else member_id
        doubts = SURE if member_id in group.members else Doubt.ORDER_OF_LINES  # else it may be an old id
    client_id, instance_id = who(event, own) if trigger == "member_joined" else _known(group, member_id)
    reason = words or (own if trigger == "unknown" else "")
    return Cause(at, trigger, member_id, client_id, instance_id, reason, doubts, named=True)


def _leads(group: Group, member_id: str) -> bool:
    """Whether it is the leader, or has its seat: the id of a static member begins with its static id, and up to
    2.4 the sentence about a seat that is taken names no group."""
    leader = group.members.get(group.leader)
    seat = leader.instance_id if leader is not None else ""
    return member_id == group.leader or bool(seat and seat == client_id_of(member_id))


def unsynced(group: Group, event: Event) -> list[str]:
    """Members that a sentence says were removed because they had not sent SyncGroup in time (`expirePendingSync`): of
    whom it names, those who are held, and those whom nothing had named. It may name the old id of a static member as
    well, which is none any more; but that its seat was taken has a sentence of its own, which was read where the end of
    the join phase was."""
    named = [event.member_id, *map(str, (event.detail or {}).get("members") or ())]
    unnamed = _may_be_unnamed(group, event)
    return [one for one in dict.fromkeys(named) if one in group.members or (unnamed and one and one not in group.ended)]


def _may_be_unnamed(group: Group, event: Event) -> bool:
    """Whether members are there that nothing has named, and whoever ended since the join phase did is still held."""
    current = group.rebalance
    if current is None or not current.unrequested or current.joined_at_ms < 0 or group.membership_complete:
        return False
    oldest = next(iter(group.ended.values()), None)
    forgotten = len(group.ended) >= MAX_ENDED and oldest is not None and oldest.ended_at_ms >= current.joined_at_ms
    return current.generation_after == event.generation_id and not forgotten


def _of_leave(group: Group, event: Event, at: float, own: str, words: str) -> Cause:
    """A LeaveGroup began it: of whom, the sentence says, unless an admin named static ids alone."""
    over = group.ended.get(event.member_id) if event.member_id else _last(group)
    if over is None or over.cause not in LEAVE_CAUSES:
        left = why_it_left(words)
        doubts: Doubts = SURE if left.doubts == SURE else Doubt.REASON_CONCLUDED
        known = _known(group, event.member_id)
        return Cause(at, CAUSE_TO_TRIGGER[left.cause], event.member_id, *known, words, doubts, named=True)
    member, cause = over.member, over.cause
    if over.doubts != SURE and _NOBODY in own:
        cause = "removed_by_admin"
    doubts = SURE if over.doubts == SURE else Doubt.REASON_CONCLUDED
    known = member.client_id, member.instance_id
    return Cause(at, CAUSE_TO_TRIGGER[cause], member.member_id, *known, over.reason, doubts, named=True)


def _of_downgrade(group: Group, at: float, own: str) -> Cause:
    """The last member of the consumer protocol ended: the sentence about that was the one before."""
    over = _last(group)
    if over is None or over.cause not in CAUSE_TO_TRIGGER or over.ended_at_ms < at - DOWNGRADED_WITHIN_MS:
        return Cause(at, "unknown", reason=own, doubts=Doubt.NOT_SEEN, named=True)
    one, doubts = over.member, over.doubts if over.doubts == SURE else Doubt.ORDER_OF_LINES
    trigger = CAUSE_TO_TRIGGER[over.cause]
    return Cause(at, trigger, one.member_id, one.client_id, one.instance_id, over.reason, doubts, named=True)


def _without_a_reason(group: Group, event: Event, at: float) -> Cause:
    """2.0 says no reason. Who went since the join phase before began it, or somebody who joined an Empty group;
    else nothing tells it."""
    over = _last(group)
    if over is not None and over.told and over.cause in CAUSE_TO_TRIGGER:
        one, trigger = over.member, CAUSE_TO_TRIGGER[over.cause]
        return Cause(
            at, trigger, one.member_id, one.client_id, one.instance_id, over.reason, Doubt.ORDER_OF_LINES, named=True
        )
    if event.generation_id == 0 or group.state in (GroupState.EMPTY, GroupState.DEAD):
        return Cause(at, "member_joined", doubts=Doubt.ORDER_OF_LINES, named=True)
    return Cause(at, "unknown", doubts=Doubt.NOT_SEEN, named=True)


def _last(group: Group) -> Ended | None:
    """Who ended last, if it was since the last join phase, or the load that undid it: such an end begins the next."""
    over = next(reversed(group.ended.values()), None)
    joined_at_ms = group.loaded_at_ms if group.rebalance is None else group.rebalance.joined_at_ms
    return over if over is not None and over.ended_at_ms >= max(joined_at_ms, group.loaded_at_ms) else None


def _known(group: Group, member_id: str) -> tuple[str, str]:
    """client.id and static id of a member, as far as something told them."""
    over = group.ended.get(member_id)
    member = group.members.get(member_id) or (over.member if over is not None else None)
    return (member.client_id, member.instance_id) if member is not None else ("", "")
