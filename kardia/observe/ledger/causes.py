"""What began a rebalance: the earliest of everything that makes a settled group prepare one. Changes only its ledger.

An answer 27 before the earliest of them says that something else began it, which was not seen. Of two within the width
of a stamp neither is sure, nor of two of which one is a timer that may have been late. Whoever was told of a rebalance
before it joined did not begin it.
"""

from __future__ import annotations

import re
from math import inf

from kardia.doubts import SURE, Doubt, Doubts, stands
from kardia.observe.deadlines.late import begun_by, earlier
from kardia.observe.deadlines.missing import could_begin
from kardia.observe.deadlines.phases import due_between, in_no_order
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger.dropped import Dropped
from kardia.observe.ledger.rebalance_row import withdraw
from kardia.observe.state.entries import BeginLine
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Join, Rebalance
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import LATE_MS, TWO_STAMPS_MS

CAUSE_TO_TRIGGER = {
    "session_expired": "session_expired",
    "left": "member_left",
    "poll_timeout": "poll_timeout",
    "removed_by_admin": "removed_by_admin",
    "sync_timeout": "sync_timeout",
    "join_timeout": "session_expired",
}
"""`end_cause` -> `trigger` of the rebalance that it begins."""

BY_LEAVE = frozenset(CAUSE_TO_TRIGGER[cause] for cause in LEAVE_CAUSES)
"""Triggers that are a LeaveGroup."""

_UNSYNCED = "on pending sync request expiration"

_WORDS: tuple[tuple[str, frozenset[str], str], ...] = (
    ("Adding new member ", frozenset({"member_joined"}), "member_joined"),
    ("on heartbeat expiration", frozenset({"session_expired"}), "session_expired"),
    (_UNSYNCED, frozenset({"sync_timeout"}), "sync_timeout"),
    ("LeaveGroup", BY_LEAVE, "member_left"),
)
"""Words of the coordinator's reason, the triggers that they may stand for, and the one that they are where nothing else
was seen of it."""

_CLIENT_WORDS = "; client reason: "
"""What follows is the client's own text, and may hold any words."""


def choose(facts: Facts, group: Group, current: Rebalance, dropped: list[Dropped]) -> None:
    """The earliest thing that makes a settled group prepare is the trigger; an answer 27 before it says: not seen."""
    written_at_ms = current.started_at_ms if current.cause is not None and current.row_known >= 0 else NEVER
    timers = [
        Cause(at, how, member.member_id, member.client_id, member.instance_id, "", doubts, by)
        for member, at, by, how, doubts in dropped
        if how in ("session_expired", "sync_timeout")
    ]
    timers += _ended_before(group, current)
    for one in timers if current.members_before < 0 else ():
        one.doubts |= Doubt.MEMBERS_UNKNOWN  # it may have begun one that was not seen
    candidates = [*([] if current.cause is None else [current.cause]), *timers]
    asked = [join for join in (*current.joins, *current.refused) if could_begin(group, join) and not join.first_seen]
    candidates += [_of_join(group, current, join) for join in asked]
    tolerance = facts.settings.tolerance_ms
    line = _line_of(group, current, tolerance)
    if line is not None:
        chosen = _by_line(group, candidates, line, 4 * tolerance)
    else:
        chosen, rivalled = _by_order(group, candidates, current, tolerance)
        current.contested = rivalled or _is_contested(group, current, chosen, dropped)
        if chosen.doubts == SURE and current.contested:
            chosen.doubts = Doubt.ANOTHER_UNSURE  # that member may have gone first
        if chosen.doubts == SURE and chosen.at <= group.gap_at_ms:
            chosen.doubts = Doubt.LINES_LOST  # what came first may have stood there
        _by_what_broke(group, chosen, asked)
        if chosen.trigger == "static_replaced" and _may_wait_to_be_stored(current, chosen, asked, timers):
            chosen.doubts |= Doubt.STORED_LATE
    if written_at_ms >= 0 and chosen.at != written_at_ms:
        if line is not None and abs(chosen.at - written_at_ms) <= tolerance:
            chosen.at = written_at_ms  # of a line the stamp is as good as that, and a row is found by its start
        elif line is None and chosen.at > written_at_ms:
            return
        else:
            withdraw(facts, group, current)  # what was logged late shows what came before
    current.cause = chosen
    current.started_at_ms = chosen.at
    current.began_unseen = chosen.trigger == "unknown" and not chosen.named and _was_never_steady(group)


def _was_never_steady(group: Group) -> bool:
    """Whether no answer has shown the group between two rebalances since its log begins: then this one had begun before
    anything that was read."""
    return group.stable_at_ms < 0 and group.steady_at_ms < 0 and group.previous is None


def _may_wait_to_be_stored(current: Rebalance, seat: Cause, asked: list[Join], timers: list[Cause]) -> bool:
    """Whether a JoinGroup that took a seat may have begun nothing, and have waited for its record until something else
    began the rebalance that answered it: nobody was told of that before the next one joined, or somebody's time was
    over."""
    others = [*(join.handled_at_ms for join in asked), *(timer.at for timer in timers)]
    later = min((at for at in others if at > seat.at + TWO_STAMPS_MS), default=inf)
    return later < inf and not 0 <= current.rebalance_notified_at_ms < later


def _by_what_broke(group: Group, chosen: Cause, asked: list[Join]) -> None:
    """Who was heard by another connection before may have begun it by that one, in a JoinGroup that was never answered:
    at any time since, while the group was Stable."""
    for join in asked:
        if join.member_id == chosen.member_id and join.heard_before_ms >= 0 and join.came == (chosen.at, chosen.by):
            since = max(join.heard_before_ms, group.stable_at_ms, group.steady_at_ms)
            if since < chosen.at - TWO_STAMPS_MS:
                chosen.at, chosen.by = since, chosen.at if chosen.by is None else chosen.by


def _ended_before(group: Group, current: Rebalance) -> list[Cause]:
    """Members of the generation before that a timer had ended, which was seen in another order than it happened."""
    stable_at_ms = max(group.stable_at_ms, group.steady_at_ms)
    if stable_at_ms < 0 or (
        group.previous is not None and stable_at_ms <= group.previous.started_at_ms + TWO_STAMPS_MS
    ):
        return []  # it never was Stable: whose end the join phase before had to wait for began nothing
    named = "" if current.cause is None else current.cause.member_id
    ended_it = _joined_before(group, current)
    return [
        Cause(at, over.cause, one.member_id, one.client_id, one.instance_id, "", over.doubts, over.by)
        for over in group.ended.values()
        if over.cause in ("session_expired", "sync_timeout")
        and not _made_an_epoch(over)
        and not _latest(over) <= ended_it  # the join phase before waited for it
        and stable_at_ms <= (at := _not_before(over, stable_at_ms)) <= current.joined_at_ms
        and (one := over.member).member_id != named
    ]


def _made_an_epoch(over: Ended) -> bool:
    """Whether a life was over in a group of epochs. The last such end may have made it a classic one, whose rebalance
    that is from the start (`conversions`)."""
    return over.member.modern is not None


def _joined_before(group: Group, current: Rebalance) -> float:
    """When the join phase of the generation before had ended, NEVER where that is not known."""
    last = group.previous
    return last.joined_at_ms if last is not None and last.generation_after == current.generation_before else NEVER


def _latest(over: Ended) -> float:
    """The latest that a life can have been over, as far as anything says so."""
    return over.ended_at_ms if over.by is None else inf if over.by < 0 else max(over.ended_at_ms, over.by)


def _not_before(over: Ended, stable_at_ms: float) -> float:
    """When a life was over: not before an answer that shows the group Stable, if its bounds allow for that."""
    late = over.ended_at_ms < stable_at_ms <= over.ended_at_ms + LATE_MS
    return stable_at_ms if late and over.by is not None and not 0 <= over.by < stable_at_ms else over.ended_at_ms


def _is_contested(group: Group, current: Rebalance, chosen: Cause, dropped: list[Dropped]) -> bool:
    """Whether a member of which it is not sure when it ended may have gone before what was chosen."""
    unsure = [one.member.member_id for one in dropped if not stands(one.doubts)]
    unsure += [
        over.member.member_id
        for over in group.ended.values()
        if not stands(over.doubts) and _gone_from(group, chosen, over) <= over.ended_at_ms <= current.joined_at_ms
    ]
    # Who came by another connection may have joined by the one that broke.
    unsure += [
        join.member_id
        for join in (*current.joins, *current.refused)
        if 0 <= join.heard_before_ms < chosen.at <= join.handled_at_ms and could_begin(group, join)
    ]
    return any(member_id != chosen.member_id for member_id in unsure)


def _gone_from(group: Group, chosen: Cause, over: Ended) -> float:
    """Ends from when on are to be asked. Who is gone for an unknown cause is so by the instant that is said, and since
    the group was last seen to be Stable: that began a rebalance, maybe before what was chosen."""
    return min(chosen.at, group.steady_at_ms) if over.cause == "unknown" else chosen.at


def _line_of(group: Group, current: Rebalance, tolerance_ms: float) -> BeginLine | None:
    """The coordinator's own line about the begin of a rebalance: of its generation, the latest before it was over."""
    before = current.generation_after - 1 if current.generation_after > 0 else current.generation_before
    over_by = current.joined_at_ms + tolerance_ms if current.joined_at_ms >= 0 else inf
    lines = (one for one in reversed(group.begin_lines) if one.generation_before == before)
    return next((one for one in lines if one.began_at_ms <= over_by), None)


def says_unsynced(reason: str) -> bool:
    """Whether the coordinator's reason for a rebalance is that the time for SyncGroup is over."""
    return _UNSYNCED in reason.partition(_CLIENT_WORDS)[0]


def take_line(facts: Facts, group: Group, current: Rebalance) -> bool:
    """The coordinator's own line about a rebalance that nobody was left to end: of several that went in the instant in
    which it began it names the first. When that was is known. Returns whether it says so, and did not before."""
    tolerance, cause = facts.settings.tolerance_ms, current.cause
    line = None if cause is None or cause.named else _line_of(group, current, tolerance)
    if cause is None or line is None or abs(line.began_at_ms - current.started_at_ms) > tolerance:
        return False
    chosen = _named(group, [cause], line)
    if chosen is None:
        return False
    chosen.at, chosen.named, chosen.doubts = current.started_at_ms, True, _doubts_by_line(chosen)
    chosen.by = line.began_at_ms if cause.by is not None and line.began_at_ms > chosen.at + TWO_STAMPS_MS else None
    chosen.reason = chosen.reason or _words_of(line, chosen.trigger)
    current.cause = chosen
    return True


def _by_line(group: Group, candidates: list[Cause], line: BeginLine, near_ms: float) -> Cause:
    """The coordinator's own line says when it began, and mostly why and by whom: of what was seen, that is the cause.
    Whoever it names may not have been seen: a client that died while it waited in its JoinGroup is never answered."""
    line_at = line.began_at_ms
    chosen = _named(group, candidates, line)
    if chosen is not None:
        chosen.named = True
    else:
        then = [one for one in candidates if -near_ms <= line_at - one.at <= (near_ms if one.by is None else LATE_MS)]
        chosen = min(then, key=lambda item: abs(item.at - line_at)) if then else Cause(line_at, "unknown")
    chosen.at, chosen.by = line_at, None
    chosen.reason = chosen.reason or _words_of(line, chosen.trigger)
    chosen.doubts = _doubts_by_line(chosen)
    return chosen


def _words_of(line: BeginLine, trigger: str) -> str:
    """What the client said by the coordinator's line; the coordinator's own reason only where it is all that is known
    of what began it."""
    own, _, said = line.reason.partition(_CLIENT_WORDS)
    return said if said not in ("", "not provided") else own if trigger == "unknown" else ""


def _doubts_by_line(chosen: Cause) -> Doubts:
    """What is in doubt about a cause that the coordinator's line names. Why somebody left is told by the client, from
    version 5 of LeaveGroup on, and not by the line."""
    return SURE if chosen.trigger not in BY_LEAVE or chosen.doubts == SURE else Doubt.REASON_CONCLUDED


def _named(group: Group, candidates: list[Cause], line: BeginLine) -> Cause | None:
    """What the words of the coordinator's reason say; None where they name nobody, or are of another kind."""
    line_at, own, named = line.began_at_ms, line.reason.partition(_CLIENT_WORDS)[0], line.named
    for words, triggers, trigger in _WORDS:
        if words in own and named:
            same = [one for one in candidates if one.trigger in triggers and one.member_id in named]
            if same:
                return min(same, key=lambda item: abs(item.at - line_at))
            why, doubts = _why_it_left(group, named[0]) if triggers is BY_LEAVE else (trigger, SURE)
            return Cause(line_at, why, named[0], *_known_of(group, named[0]), doubts=doubts)
    # Other reasons name a member in their words alone, as that of a static one whose metadata is updated.
    same = [one for one in candidates if one.member_id and _is_in(one.member_id, own)]
    if same:
        return min(same, key=lambda item: abs(item.at - line_at))
    return None


def _why_it_left(group: Group, member_id: str) -> tuple[str, Doubts]:
    """Trigger of a rebalance that a LeaveGroup began, as far as the request told, and what is in doubt about it."""
    over = group.ended.get(member_id)
    if over is None or over.cause not in LEAVE_CAUSES:
        return "member_left", Doubt.REASON_CONCLUDED
    return CAUSE_TO_TRIGGER[over.cause], SURE if over.doubts == SURE else Doubt.REASON_CONCLUDED


def _is_in(member_id: str, words: str) -> bool:
    """Whether words name a member, and not another one whose id goes on where this one ends."""
    return re.search(rf"(?<!\S){re.escape(member_id)}(?![^\s,;.])", words) is not None


def _known_of(group: Group, member_id: str) -> tuple[str, str]:
    """client.id and static id of a member, as far as it was seen."""
    over = group.ended.get(member_id)
    member = group.members.get(member_id) or (over.member if over is not None else None)
    if member is not None:
        return member.client_id, member.instance_id
    handed_out = group.pending.get(member_id)
    return (handed_out.client_id, "") if handed_out is not None else ("", "")


def _by_order(group: Group, candidates: list[Cause], current: Rebalance, tolerance_ms: float) -> tuple[Cause, bool]:
    """The earliest candidate, unless a member was told of the rebalance before that; and whether another one may have
    come before it."""
    rebalance_notified_at_ms = current.rebalance_notified_at_ms
    if not candidates:
        seen = (rebalance_notified_at_ms, current.told_start, current.joined_at_ms)
        first = next((at for at in seen if at >= 0), NEVER)
        waited = [join.came[0] for join in current.joins if join.first_seen]
        return Cause(min([first, *waited]), "unknown", doubts=Doubt.NOT_SEEN), False
    chosen = min(candidates, key=lambda item: item.at)
    if chosen.trigger == "session_expired":  # sessions end in the order of their deadlines, however late
        known = [one for one in candidates if one.trigger == chosen.trigger and (one is chosen or stands(one.doubts))]
        chosen = min(known, key=lambda one: due_between(group, one))
    if 0 <= rebalance_notified_at_ms < chosen.at - tolerance_ms:
        return Cause(rebalance_notified_at_ms, "unknown", doubts=Doubt.NOT_SEEN), False
    told_before = 0 <= rebalance_notified_at_ms < chosen.at - TWO_STAMPS_MS
    to_at = chosen.at + TWO_STAMPS_MS
    if chosen.by is not None:
        chosen.by = earlier(chosen.by, begun_by(current, chosen.at))
        to_at = max(to_at, earlier(chosen.by, chosen.at + LATE_MS))
    rivalled = any(_is_rival(group, one, chosen, to_at) for one in candidates)
    if told_before:
        chosen.doubts |= Doubt.BEGIN_UNSEEN
    if rivalled:
        chosen.doubts |= Doubt.STAMPS_TIED  # which of them came first is not seen
    return chosen, rivalled


def _is_rival(group: Group, one: Cause, chosen: Cause, to_at: float) -> bool:
    """Whether something else may have come before what came first by its deadline. Sessions end in their order, as far
    as stamps that are cut to 1 ms show it."""
    if one.trigger != chosen.trigger:
        return one.at <= to_at
    both = one.trigger == "session_expired" and one.member_id != chosen.member_id
    return both and in_no_order(due_between(group, one), due_between(group, chosen))


def _awaits_assignment(group: Group, current: Rebalance, join: Join) -> bool:
    """Whether the generation before had no assignment as a JoinGroup came: somebody waited in SyncGroup for it, or
    none is seen, and no line is lost by which it would be."""
    last = group.previous
    if last is None or last.generation_after != current.generation_before or last.assigned_at_ms >= 0:
        return False
    return _is_awaited(current, join) or group.gap_at_ms < last.joined_at_ms


def _is_awaited(current: Rebalance, join: Join) -> bool:
    waiting = current.sent_back
    return waiting is not None and waiting.handled_at_ms < join.came[0] <= waiting.at_ms + TWO_STAMPS_MS


def _of_join(group: Group, current: Rebalance, join: Join) -> Cause:
    """What a JoinGroup means when it comes first (`doJoinGroup`: new member, static one, leader, follower)."""
    if join.replaces:
        trigger = "static_replaced"
    elif join.is_new:
        trigger = "member_joined"
    elif not _awaits_assignment(group, current, join) and (
        join.member_id == group.leader or (not group.leader and current.members_before == 1)
    ):
        trigger = "leader_rejoined"  # while its assignment is awaited it would just be answered
    else:
        trigger = "metadata_changed"
    # Of a group that was not known whole, somebody unseen may have gone first.
    doubts: Doubts = SURE if current.members_before >= 0 else Doubt.MEMBERS_UNKNOWN
    if not join.replaces_surely:
        doubts |= Doubt.RENEWAL_UNSURE  # who had the seat may have been gone before
    if trigger == "metadata_changed" and not group.leader:
        doubts = Doubt.MEMBERS_UNKNOWN  # of a group that was a consumer group a moment ago it may be the leader
    if not join.member_id:
        doubts = Doubt.ID_UNSURE  # it was answered without the id that it has
    if trigger == "metadata_changed" and join.member_id == group.leader and not _is_awaited(current, join):
        # By another connection than before it may have sent the assignment, unseen.
        doubts = Doubt.CONNECTION_BROKE if join.heard_before_ms >= 0 else doubts
    if join.may_be_earlier:
        doubts |= Doubt.HANDLED_SLOWLY
    at, by = join.came
    return Cause(at, trigger, join.member_id, join.client_id, join.instance_id, join.reason, doubts, by)
