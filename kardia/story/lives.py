"""Who came, who went, when and why: one sentence for each beginning and each end of a membership."""

from __future__ import annotations

from kardia.evidence_levels import GONE_REASON, TAKEN_REASON
from kardia.story import evidence, foretold, in_doubt, spoken, who_broke, words
from kardia.story.facts import Material, Row, Sentence
from kardia.tolerances import LATE_MS, STOPPED_WITHIN_MS

POLL_SIGNS = {
    "fetch": "a FETCH",
    "commit": "a commit",
    "join": "a JoinGroup",
    "sync": "a SyncGroup",
    "heartbeat": "a heartbeat, for it would have left otherwise",
    "telemetry": "its own telemetry",
}


FIRST_SEEN = "first seen"

CAME = {
    FIRST_SEEN: "{was} first seen here, {a} already",
    "listed": "{was} first named here, {a} already",
    "coordinator_loaded": "{was} {a} already when a coordinator loaded the group",
}
"""Words for the cause of a beginning that is not that of the membership, only of what is known of it."""


def came_by(material: Material, life: Row) -> str:
    """What shows that it is a member: the cause of the transition, or that it was first seen."""
    transition = material.transition(life["joined_at_ms"], "Member", life["member_id"])
    if transition is None:
        return FIRST_SEEN
    is_join = transition["cause"] == "listed" and transition["at_bound_ms"]  # between two samples
    return "joined" if is_join else str(transition["cause"])


def joined(material: Material, life: Row) -> Sentence:
    """It became a member, or was first seen as one."""
    member_id, at_ms = life["member_id"], life["joined_at_ms"]
    transition = material.transition(at_ms, "Member", member_id)
    who, cause = material.introduced(member_id), came_by(material, life)
    text = f"{who} {CAME[cause].format(was='was', a='a member')}." if cause in CAME else f"{who} joined."
    if transition is None:
        return Sentence(at_ms, "joined", text, "inferred", (member_id,), evidence.of_row("members"))
    came = words.between("It came", at_ms, transition["at_bound_ms"])
    if transition["cause"] == "static_replaced":
        before = [
            other
            for other in material.lives
            if other["ended_at_ms"] == at_ms and other["group_instance_id"] == life["group_instance_id"]
        ]
        if any(_is_fenced_by_itself(material, other) for other in before):
            text = f"{who} was made by a JoinGroup that its own process had given up: nobody sends under this id."
        elif any(_fenced_later(material, other) is not None for other in before):
            text = f"{who} took over a static id that another process still used."
        else:
            text = f"{who} came back and took over its static id: no rebalance was needed."
    text = f"{text} {came}" if came else text
    return Sentence(at_ms, "joined", text, transition["certainty"], (member_id,), evidence.of(transition))


def ended(material: Material, life: Row, *, alone: bool = False) -> Sentence:
    """It stopped being a member: why, how that is known, who broke it, and whether it had been predicted.

    `alone`: no sentence about its beginning stands before it, so that this one tells who it is.
    """
    member_id, at_ms = life["member_id"], life["ended_at_ms"]
    client = material.identity(member_id) if alone else ""
    parts = (
        _WHY.get(life["end_cause"], _unknown)(material, life),
        words.between("It ended", at_ms, life["at_bound_ms"], life["end_cause"]),
        unsure(life),
        who_broke.told(life),
        _poll_of_static_member(material, life),
        foretold.beforehand(material, life),
        f"The member: {client}." if client else "",
    )
    transition = material.transition(at_ms, "Absent", member_id)
    found = evidence.of(transition) or evidence.of_row("members")
    return Sentence(at_ms, "ended", " ".join(part for part in parts if part), life["certainty"], (member_id,), found)


def unsure(life: Row) -> str:
    """Why the end of a life is not certain, in words; empty if it is."""
    cause, certainty = life["end_cause"], life["certainty"]
    if certainty == "unknown" and cause == "left":
        return "(Not sure why: whether it was closed or had not polled in time was not read.)"
    if certainty != "inferred":
        return in_doubt.told(life)
    return {
        "session_expired": "(Inferred from silence.)",
        "poll_timeout": "(Inferred: it gave no reason, but its last sign of a poll was as old as the interval.)",
        "left": "(Inferred: it gave no reason, and nothing points to a timeout.)",
        "removed_by_admin": "(Inferred: another client asked for it.)",
    }.get(cause) or in_doubt.told(life)


def last_heard_at_ms(material: Material, life: Row) -> int | None:
    """Last request that renewed the session of a life that expired: as observed, or by the timer's arithmetic."""
    timeout_ms = life["session_timeout_ms"]
    unheard = _not_heard_again(material, life)
    if unheard is not None and timeout_ms is not None:
        return int(unheard["deadline_at_ms"] - timeout_ms)
    for row in material.health:
        if row["member_id"] == life["member_id"] and row["status"] == "ended" and row["at_ms"] == life["ended_at_ms"]:
            return None if row["last_heard_at_ms"] is None else int(row["last_heard_at_ms"])
    if timeout_ms is None:
        return None
    predicted = foretold.came_true(material, life, "session")
    said_ms = predicted["deadline_at_ms"] if predicted is not None else None
    return int((life["ended_at_ms"] if said_ms is None else said_ms) - timeout_ms)


def _not_heard_again(material: Material, life: Row) -> Row | None:
    """A warning that was open when the session expired, for an earlier deadline: nothing was heard in between.

    Then the timer was begun anew without the member, as by a coordinator that loads the group, or it fired late.
    """
    for row in foretold.of_life(material, life, "session"):
        said_ms = row["deadline_at_ms"]
        if (
            row["outcome"] == "averted"
            and said_ms is not None
            and row["outcome_at_ms"] == life["ended_at_ms"] > said_ms
        ):
            return row
    return None


def is_after_load(material: Material, life: Row) -> bool:
    """Whether the timer that evicted it had begun with a load of the group: it was heard before that, or, where no row
    says when it was heard, the timer's own begin is the load."""
    heard_ms, timeout_ms = last_heard_at_ms(material, life), life["session_timeout_ms"]
    loaded_ms = who_broke.signs_of(life).get("loaded_at_ms")
    if loaded_ms is None or heard_ms is None or timeout_ms is None:
        return False
    late_ms = life["ended_at_ms"] - heard_ms - timeout_ms
    return bool(late_ms > LATE_MS or abs(heard_ms - loaded_ms) <= LATE_MS)


def _session_expired(material: Material, life: Row) -> str:
    at_ms, who, timeout_ms = life["ended_at_ms"], material.who(life["member_id"]), life["session_timeout_ms"]
    heard_ms = last_heard_at_ms(material, life)
    if timeout_ms is None:
        return f"{who} was evicted: its session expired, of a length that is not known."
    timeout = words.span(timeout_ms)
    if heard_ms is None:
        return f"{who} was evicted: its session of {timeout} expired; when it was last heard was not read."
    heard = f"last heard at {words.clock(heard_ms, at_ms)}"
    late_ms = at_ms - heard_ms - timeout_ms
    if is_after_load(material, life):
        loaded_ms = who_broke.signs_of(life)["loaded_at_ms"]
        # Neither is early: a timer is never, and the load may have been before the answer that showed it.
        began_ms = min(at_ms - timeout_ms, loaded_ms)
        exactly = abs(at_ms - timeout_ms - loaded_ms) <= LATE_MS
        when = f" at {words.clock(began_ms, at_ms)}" if exactly else ""
        before = f" It was {heard}." if late_ms > LATE_MS else ""
        return (
            f"{who} was evicted: a coordinator loaded the group{when}, and it did not come back within its session of "
            f"{timeout}.{before} (Inferred from the timer.)"
        )
    if late_ms > LATE_MS:
        return (
            f"{who} was evicted: its session of {timeout} was over at {words.clock(heard_ms + timeout_ms, at_ms)} "
            f"({heard}). The coordinator, which may have stood still, evicted it {words.took(late_ms)} later."
        )
    return f"{who} was evicted: its session of {timeout} expired ({heard})."


def _poll_timeout(material: Material, life: Row) -> str:
    who, reason = material.who(life["member_id"]), life["end_reason"]
    said = f"; its own words: {words.quoted(reason)}" if reason else ""
    text = words.stopped(f"{who} gave up its membership: its application had not polled in time{said}")
    return f"{text} {_last_poll(material, life)}".rstrip()


def _last_poll(material: Material, life: Row) -> str:
    """When the application was last known to poll, by what, and how far off that may be."""
    at_ms, interval_ms = life["ended_at_ms"], life["rebalance_timeout_ms"]
    for row in material.health:
        if row["member_id"] == life["member_id"] and row["last_poll_at_ms"] is not None and row["at_ms"] <= at_ms:
            sign = POLL_SIGNS.get(row["poll_evidence"], "nothing")
            bound_ms = row["poll_error_bound_ms"]
            bound = f", the poll at most {words.took(bound_ms)} earlier" if bound_ms else ""
            known_ms = interval_ms if row["poll_interval_ms"] is None else row["poll_interval_ms"]
            interval = "not known" if known_ms is None else words.span(known_ms)
            return (
                f"Last sign of a poll: {sign} at {words.clock(row['last_poll_at_ms'], at_ms)}{bound}; "
                f"its poll interval is {interval}."
            )
    predicted = foretold.came_true(material, life, "poll")
    if predicted is not None and interval_ms is not None:
        polled = words.clock(predicted["deadline_at_ms"] - interval_ms, at_ms)
        return f"Last sign of a poll: {polled}; its poll interval is {words.span(interval_ms)}."
    return f"Its poll interval is {words.span(interval_ms)}." if interval_ms is not None else ""


def _poll_of_static_member(material: Material, life: Row) -> str:
    """A static Java member whose poll interval ran out says nothing: it stops its heartbeats, and the session ends it.

    Kafka: `AbstractCoordinator.maybeLeaveGroup` sends no LeaveGroup for a static member.
    """
    heard_ms = last_heard_at_ms(material, life) if life["end_cause"] == "session_expired" else None
    if heard_ms is None or not life["group_instance_id"]:
        return ""
    for row in reversed(foretold.of_life(material, life, "poll")):
        if row["outcome"] != "averted" and abs(row["deadline_at_ms"] - heard_ms) <= STOPPED_WITHIN_MS:
            over = words.clock(row["deadline_at_ms"], life["ended_at_ms"])
            return (
                f"Its poll interval had run out at {over}, about when its heartbeats stopped: a static member does not "
                "leave then, it falls silent. (Inferred from the two instants.)"
            )
    return ""


def _left(material: Material, life: Row) -> str:
    reason = life["end_reason"]
    said = ", without giving a reason"
    if reason:
        said = f"; its own words: {words.quoted(reason)}"
    elif spoken.has_epochs(life["protocol"]):
        said = "; its protocol has no words for a reason"
    return words.stopped(f"{material.who(life['member_id'])} left{said}")


def _rebalance_timeout(material: Material, life: Row) -> str:
    timeout_ms = life["rebalance_timeout_ms"]
    if spoken.has_epochs(life["protocol"]):
        own = f" of {words.span(timeout_ms)}" if timeout_ms is not None else ""
        return (
            f"{material.who(life['member_id'])} was dropped: it had been told to give up "
            f"{spoken.piece(life['protocol'])}s, and had not within its rebalance timeout{own}."
        )
    within = f" within the rebalance timeout ({words.span(timeout_ms)} is its own)" if timeout_ms is not None else ""
    return f"{material.who(life['member_id'])} was dropped: it had not rejoined the rebalance{within}."


def _sync_timeout(material: Material, life: Row) -> str:
    return f"{material.who(life['member_id'])} was dropped: it had joined, but its SyncGroup did not come in time."


def _join_timeout(material: Material, life: Row) -> str:
    who = material.who(life["member_id"])
    if spoken.has_epochs(spoken.at(material, life["ended_at_ms"])):
        return f"{who} was dropped: it was told to join again, and had not within its rebalance timeout."
    return f"{who} was dropped: it was new and its join was not completed in time."


def _static_replaced(material: Material, life: Row) -> str:
    static = words.name(str(life["group_instance_id"]))
    who, refused = material.who(life["member_id"]), _fenced_later(material, life)
    if refused is not None:
        at = words.clock(refused["at_ms"], life["ended_at_ms"])
        if _is_fenced_by_itself(material, life):
            return _by_itself(material, life, at)
        return (
            f"{who} was replaced: another process took its static id {static}. It was no restart: {who} lived, went on "
            f"sending, and was fenced at {at}. Two processes have one static id."
        )
    return f"{who} was replaced: its static id {static} came back under a new member id."


def _by_itself(material: Material, life: Row, at: str) -> str:
    """A client gave up a JoinGroup and asked again; the broker handled the first one behind the second."""
    heir, static, until = _heir(material, life), words.name(life["group_instance_id"] or ""), ""
    if heir is not None and heir["session_timeout_ms"] is not None:
        over_ms = heir["joined_at_ms"] + heir["session_timeout_ms"]
        until = f", until its session is over at {words.clock(over_ms, life['ended_at_ms'])}"
    new = "the new one" if heir is None else material.who(heir["member_id"])
    return (
        f"{material.who(life['member_id'])} was fenced at {at}, by itself: the same process (client.id and address are "
        f"the same, and nobody sends under the new id) had asked to join twice with static id {static}, and its first "
        f"JoinGroup, which it had given up, was handled last. {new} is nobody's and keeps its seat{until}."
    )


def _heir(material: Material, life: Row) -> Row | None:
    """Who has the static id of a member that was replaced, from then on."""
    for other in material.lives:
        if other["group_instance_id"] == life["group_instance_id"] and other["joined_at_ms"] == life["ended_at_ms"]:
            return other
    return None


def _is_fenced_by_itself(material: Material, life: Row) -> bool:
    """Whether it was fenced by a JoinGroup of its own process: its heir has its client.id and its address, and was
    never heard behind its JoinGroup, while this one went on sending. An heir that is heard is a second process."""
    heir, refused = _heir(material, life), _fenced_later(material, life)
    if heir is None or refused is None or not life["client_id"] or not life["client_host"]:
        return False
    if (heir["client_id"], heir["client_host"]) != (life["client_id"], life["client_host"]):
        return False
    health = [row for row in material.health if row["member_id"] == heir["member_id"]]
    heard = [row["last_heard_at_ms"] for row in health if row["last_heard_at_ms"] is not None]
    if heard and max(heard) > refused["at_ms"]:
        return False
    return bool(heard) or heir["end_cause"] == "session_expired"


def _fenced_later(material: Material, life: Row) -> Row | None:
    """The refusal (FENCED_INSTANCE_ID) of a replaced member that still sent: it had not ended, it was pushed out."""
    for row in material.transitions:
        is_its = row["member_id"] == life["member_id"] and row["cause"] == "fenced"
        if is_its and row["at_ms"] >= life["joined_at_ms"]:
            return row
    return None


def _fenced(material: Material, life: Row) -> str:
    static = f" {words.name(life['group_instance_id'])}" if life["group_instance_id"] else ""
    return f"{material.who(life['member_id'])} was fenced: another process took its static id{static}."


def _rejected(material: Material, life: Row) -> str:
    who = material.who(life["member_id"])
    return f"{who} was rejected when it rejoined: the group was full (group.max.size), others had taken the places."


def _removed_by_admin(material: Material, life: Row) -> str:
    reason = f"; the reason given: {words.quoted(life['end_reason'])}" if life["end_reason"] else ""
    return words.stopped(f"{material.who(life['member_id'])} was removed by an admin{reason}")


def _group_deleted(material: Material, life: Row) -> str:
    return f"{material.who(life['member_id'])} was gone when the group was deleted."


def _unknown(material: Material, life: Row) -> str:
    if life["end_reason"] == GONE_REASON:
        return f"{material.who(life['member_id'])} is no longer a member: it {GONE_REASON}."
    if life["end_reason"] == TAKEN_REASON:
        return f"{material.who(life['member_id'])} is no longer a member: {TAKEN_REASON}."
    return f"{material.who(life['member_id'])} is no longer a member; why was not read."


_WHY = {
    "session_expired": _session_expired,
    "poll_timeout": _poll_timeout,
    "left": _left,
    "rebalance_timeout": _rebalance_timeout,
    "sync_timeout": _sync_timeout,
    "join_timeout": _join_timeout,
    "static_replaced": _static_replaced,
    "fenced": _fenced,
    "rejected": _rejected,
    "removed_by_admin": _removed_by_admin,
    "group_deleted": _group_deleted,
    "unknown": _unknown,
}
"""Words for every end cause of `kardia.tables.END_CAUSES`; a test compares the two lists."""
