"""What followed from what: a rebalance that began because of one before it, said in words.

A link is drawn only from rows: the same member, the same client under another id, an interruption, an assignor that
works in two steps. Where it rests on more than ids and instants that are in the rows, the sentence says so.
"""

from __future__ import annotations

from kardia.kafka.sessions import POLL_INTERVAL_MS
from kardia.story import lives, words
from kardia.story.facts import Material, Row
from kardia.story.lasted import has_epochs, over_unread_by_ms

GONE = {
    "session_expired": "evicted",
    "poll_timeout": "poll timeout",
    "left": "left",
    "rebalance_timeout": "dropped",
    "sync_timeout": "dropped",
    "join_timeout": "dropped",
    "fenced": "fenced",
    "removed_by_admin": "removed",
}
"""End cause -> how it had gone, in a word."""

RETURN_MAX_MS = POLL_INTERVAL_MS
"""A client that comes back later than that did not cause what came before."""

SAME_SILENCE_MS = 1_000
"""A last sign of life that soon after a rebalance belongs to it: its own SyncGroup, or the first heartbeat after it."""

SECOND_STEP_MAX_MS = 5_000
"""With a cooperative assignor members rejoin as soon as they gave up partitions: within a poll or two."""

LOADED_WITHIN_MS = 60_000
"""A rebalance that much after a load has more to do with what came in between."""

Link = tuple[str, tuple[str, ...]]
"""Sentence with a blank before it, and the members that it names beside the trigger."""

NONE: Link = ("", ())


def before(material: Material, row: Row) -> Link:
    """How a rebalance follows from an earlier one; empty if nothing shows that it does."""
    earlier = [other for other in material.rebalances if other["started_at_ms"] < row["started_at_ms"]]
    previous = earlier[-1] if earlier else None
    for found in (
        _interrupts(row, previous),
        _silent_since(material, row, previous),
        _comes_back(material, row, earlier),
        _second_step(row, previous),
    ):
        if found != NONE:
            return found
    because_ms = row["caused_by_started_at_ms"]
    if because_ms is not None:
        return f" It follows from the rebalance that began at {words.clock(because_ms, row['started_at_ms'])}.", ()
    return _after_load(material, row, previous)


def _after_load(material: Material, row: Row, previous: Row | None) -> Link:
    """A coordinator loaded the group a moment before: members that find it again join again, and sessions ran anew."""
    at_ms = row["started_at_ms"]
    over_ms = None if previous is None else previous["completed_at_ms"]
    since_ms = at_ms - LOADED_WITHIN_MS if over_ms is None else max(at_ms - LOADED_WITHIN_MS, over_ms)
    for change in reversed(material.transitions):
        if change["cause"] == "coordinator_loaded" and since_ms <= change["at_ms"] <= at_ms:
            after = words.took(at_ms - change["at_ms"])
            return f" It came {after} after a coordinator had loaded the group.", ()
    return NONE


def _interrupts(row: Row, previous: Row | None) -> Link:
    if previous is None:
        return NONE
    if not has_epochs(row) and not has_epochs(previous):
        unread = _unread_between(row, previous)
        if unread:
            return unread, ()
    over_ms, at_ms = previous["completed_at_ms"], row["started_at_ms"]
    if over_ms is not None and over_ms <= at_ms:
        return NONE
    began = words.clock(previous["started_at_ms"], at_ms)
    return f" It interrupts the one before: that began at {began} and was not over yet.", ()


def _unread_between(row: Row, previous: Row) -> str:
    """What was not read between two rebalances, as their generations show; empty where the one led to the other."""
    reached, before = previous["generation_after"], row["generation_before"]
    began = words.clock(previous["started_at_ms"], row["started_at_ms"])
    parts = []
    if over_unread_by_ms(previous) is not None:
        parts.append(f"the end of the rebalance that began at {began} was not read")
    if reached is not None and before > reached:
        parts.append(f"nothing was read of what led from generation {reached} to generation {before}")
    elif reached is None and before != previous["generation_before"]:
        parts.append(f"what became of the rebalance that began at {began} was not read")
    return f" Before it, {words.listing(parts)}." if parts else ""


def _silent_since(material: Material, row: Row, previous: Row | None) -> Link:
    """The member whose end began this one had been in the one before, and gave no sign of life after it."""
    member_id = row["trigger_member_id"]
    life = material.life_at(member_id, row["started_at_ms"])
    if previous is None or previous["completed_at_ms"] is None or life is None or life["ended_at_ms"] is None:
        return NONE
    waits = {entry["member_id"]: entry["waited_ms"] for entry in previous["stragglers"] or ()}
    if member_id not in waits and member_id != previous["trigger_member_id"]:
        return NONE
    sign_ms = _last_sign_ms(material, life)
    if sign_ms is None or sign_ms > previous["completed_at_ms"] + SAME_SILENCE_MS:
        return NONE
    waited_ms = waits.get(member_id)
    waited = "" if waited_ms is None or waited_ms < 1_000 else f", which had waited {words.took(waited_ms)} for it"
    began = words.clock(previous["started_at_ms"], row["started_at_ms"])
    return f" It had given no sign of life since the rebalance of {began}{waited}.", ()


def _last_sign_ms(material: Material, life: Row) -> int | None:
    if life["end_cause"] == "session_expired":
        return lives.last_heard_at_ms(material, life)
    if life["end_cause"] == "poll_timeout" and life["rebalance_timeout_ms"] is not None:
        return int(life["ended_at_ms"] - life["rebalance_timeout_ms"])
    return None


def _comes_back(material: Material, row: Row, earlier: list[Row]) -> Link:
    """A client whose end had begun a rebalance, or that one had dropped, is back: one fault, two rebalances."""
    life = material.life_at(row["trigger_member_id"], row["started_at_ms"])
    if row["trigger"] not in ("member_joined", "static_replaced") or life is None:
        return NONE
    at_ms = row["started_at_ms"]
    gone = [
        other
        for other in material.lives
        if other["ended_at_ms"] is not None
        and other["member_id"] != life["member_id"]
        and 0 <= at_ms - other["ended_at_ms"] <= RETURN_MAX_MS
        and _same_client(other, life)
        and not _present(material, other, at_ms)
    ]
    if not gone:
        return NONE
    last = max(gone, key=lambda other: int(other["ended_at_ms"]))
    away = words.took(at_ms - last["ended_at_ms"])
    ended = words.clock(last["ended_at_ms"], at_ms)
    who = material.who(last["member_id"])
    began_one = any(material.end_that_began(other) is last for other in earlier)
    too = "; that began a rebalance too" if began_one else ""
    how = GONE.get(last["end_cause"], "gone")
    text = f" The same client had been {who} until {ended} ({how}{too}); it came back after {away}."
    if not life["group_instance_id"]:
        text += " (Inferred: same client.id and host.)"
    return text, (last["member_id"],)


def _second_step(row: Row, previous: Row | None) -> Link:
    if previous is None or "cooperative" not in str(previous["protocol_name"]):
        return NONE
    over_ms = previous["completed_at_ms"]
    if row["trigger"] not in ("leader_rejoined", "metadata_changed") or over_ms is None:
        return NONE
    after_ms = row["started_at_ms"] - over_ms
    if not 0 <= after_ms <= SECOND_STEP_MAX_MS:
        return NONE
    return (
        f" It follows {words.took(after_ms)} after the one before, whose assignor is cooperative: members rejoin when "
        "they have given up partitions. (Inferred.)",
        (),
    )


def _same_client(one: Row, other: Row) -> bool:
    if one["group_instance_id"] or other["group_instance_id"]:
        return bool(one["group_instance_id"] == other["group_instance_id"])
    # Without a host, not known or hidden, a client.id alone says nothing: a fleet shares one.
    names = one["client_id"], one["client_host"]
    return all(names) and names == (other["client_id"], other["client_host"])


def _present(material: Material, ended: Row, at_ms: int) -> bool:
    """Whether a twin of an ended life was there before it ended and still is: then nobody came back."""
    return any(
        other["member_id"] != ended["member_id"]
        and _same_client(other, ended)
        and other["joined_at_ms"] < at_ms
        and (other["ended_at_ms"] is None or other["ended_at_ms"] > at_ms)
        for other in material.lives
    )
