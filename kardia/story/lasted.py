"""How long a rebalance lasted, whom it waited for and what it cost, as far as each of it is known.

What was not read has no length: of a rebalance that had begun before the log, or that was over in a hole of it, only
what is known is told, and a length between two bounds is told as one.
"""

from __future__ import annotations

from kardia.story import spoken, words
from kardia.story.facts import Material, Row

WAITED_MIN_MS = 1
"""A wait shorter than that is none: the member came in the same millisecond."""


def has_epochs(row: Row) -> bool:
    """Whether a rebalance is one of a group that has epochs: one of the consumer, share or streams protocol."""
    return row.get("protocol") not in (None, "classic")


def over_unread_by_ms(row: Row) -> int | None:
    """The latest that a rebalance was over of which the end was not read, as a later generation shows; else None."""
    joined_ms, bound_ms = row["joined_at_ms"], row["completed_bound_ms"]
    unread = row["completed_at_ms"] is None and joined_ms is not None and bound_ms and not has_epochs(row)
    return int(joined_ms + bound_ms) if unread else None


def is_exact(row: Row) -> bool:
    """Whether it is known from when to when a rebalance that is over lasted."""
    return not began_unseen(row) and row["trigger"] != "unknown"


def began_unseen(row: Row) -> bool:
    """Whether a rebalance had begun before anything that was read."""
    return bool(row.get("began_unseen"))


def length(row: Row) -> str:
    """How long a rebalance lasted that is over, with its phases where they are known: behind its subject."""
    began_ms, joined_ms, over_ms = row["started_at_ms"], row["joined_at_ms"], row["completed_at_ms"]
    early_ms, late_ms = row["at_bound_ms"], row["completed_bound_ms"]
    sync = "" if joined_ms is None else f"sync phase {_between(over_ms - joined_ms, 0, late_ms)}"
    if began_unseen(row):
        return f"was over ({words.clauses((sync, 'when it had begun was not read'))})"
    lasted = _between(over_ms - began_ms, early_ms, late_ms)
    if joined_ms is None:
        return f"took {lasted}"
    join = _between(joined_ms - began_ms, early_ms, late_ms if joined_ms == over_ms else 0)
    return f"took {lasted} (join phase {join}, {sync})"


def _between(length_ms: int, early_ms: int | None, late_ms: int | None) -> str:
    """A length of which the begin may be up to `early_ms` later and the end up to `late_ms`, None where nothing says
    how much."""
    shorter = early_ms is None or early_ms > words.BOUND_SHOWN_MS
    longer = late_ms is None or late_ms > words.BOUND_SHOWN_MS
    text = words.span(length_ms)
    return f"about {text}" if shorter and longer else text + " at most" * shorter + " at least" * longer


def waited(material: Material, row: Row) -> str:
    """Whom it waited for and how long; those who never came first."""
    piece = spoken.piece(row.get("protocol"))
    waits = [one for one in row["stragglers"] or () if one["waited_ms"] is not None]
    waits = [one for one in waits if one["waited_ms"] >= WAITED_MIN_MS]
    never = [one for one in waits if not one["joined"] and not one.get("pending")]
    gone = [(one, _went(material, row, one)) for one in never]
    unused = [_wait(material, one, piece) for one in waits if one.get("pending")]
    dropped = [_wait(material, one, piece) for one, went in gone if not went]
    came = [_wait(material, one, piece, at_least=began_unseen(row)) for one in waits if one["joined"]]
    text = f" It waited in vain for {words.listing(dropped)}: dropped." if dropped else ""
    for one, went in gone:
        if went:
            text += f" It waited {words.span(one['waited_ms'])} for {_who(material, one)}, which {went}."
    if unused:
        text += f" It waited for ids that had been handed out and that nobody joined with: {words.listing(unused)}."
    return text + (f" It waited for {words.listing(came)}." if came else "")


_WENT = {"session_expired": "was evicted", "left": "left", "poll_timeout": "left", "removed_by_admin": "was removed"}


def _went(material: Material, row: Row, entry: Row) -> str:
    """How a member went of its own while a rebalance waited for it; empty where it was dropped at the end of that."""
    life = material.life_at(entry["member_id"], row["started_at_ms"] + entry["waited_ms"])
    return "" if life is None else _WENT.get(life["end_cause"], "")


def _wait(material: Material, entry: Row, piece: str, *, at_least: bool = False) -> str:
    held = entry.get("partitions")
    back = f", to give up {words.count(held, piece)}" if held else ""
    return f"{_who(material, entry)} ({'at least ' * at_least}{words.span(entry['waited_ms'])}{back})"


def _who(material: Material, entry: Row) -> str:
    if entry.get("pending"):
        return words.name(entry["client_id"] or entry["member_id"])
    return material.who(entry["member_id"], entry["client_id"])


def cost(row: Row) -> str:
    """What it cost: the number of the ledger, which the page, the API and the metrics show as well; told for each
    member where each waited for all of it."""
    lost_s, many = row["member_seconds_lost"], row["members_after"]
    if not lost_s:
        return ""
    lasted_ms = row["completed_at_ms"] - row["started_at_ms"]
    if many and abs(many * lasted_ms - lost_s * 1_000) <= 500:  # seconds are rounded
        return f" {words.count(many, 'member')} waited {words.span(lasted_ms)}{' each' * (many > 1)} for partitions."
    of = f"{many} members" if many else "Members"
    return f" {of} waited for partitions, {words.span(lost_s * 1_000)} in sum."
