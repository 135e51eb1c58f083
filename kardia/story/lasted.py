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
    """How long a rebalance lasted that is over, behind its subject. Of its phases the second is told where it took
    long, or is all that was read: the first is the wait for members, which is told by whom it waited for."""
    began_ms, joined_ms, over_ms = row["started_at_ms"], row["joined_at_ms"], row["completed_at_ms"]
    early_ms, late_ms = row["at_bound_ms"], row["completed_bound_ms"]
    sync = ""
    if joined_ms is not None and (over_ms - joined_ms >= SLOW_MS or began_unseen(row)):
        sync = f", {_between(over_ms - joined_ms, 0, late_ms)} of it for the assignments"
    if began_unseen(row):
        return f"was over{sync}; when it had begun was not read"
    return f"took {_between(over_ms - began_ms, early_ms, late_ms)}{sync}"


def _between(length_ms: int, early_ms: int | None, late_ms: int | None) -> str:
    """A length of which the begin may be up to `early_ms` later and the end up to `late_ms`, None where nothing says
    how much."""
    shorter = early_ms is None or early_ms > words.BOUND_SHOWN_MS
    longer = late_ms is None or late_ms > words.BOUND_SHOWN_MS
    text = words.took(length_ms)
    return f"about {text}" if shorter and longer else "at most " * shorter + "at least " * longer + text


SLOW_MS = 1_000
"""Who keeps a rebalance waiting that long is slow: clients look for one with each poll, and poll several times a second
where they have nothing else to do."""

SLOW_NAMED_MAX = 3


def slow(material: Material, row: Row) -> str:
    """Who came last to a rebalance, the slowest first, as a part of a sentence; empty where nobody kept it waiting for
    most of its time: who came early kept nobody."""
    waits = _waits(row)
    over_ms = row["joined_at_ms"] if row["joined_at_ms"] is not None else row["completed_at_ms"]
    lasted_ms = 0 if over_ms is None else over_ms - row["started_at_ms"]
    most_ms = max([lasted_ms, *(one["waited_ms"] for one in waits)])
    came = [one for one in waits if one["joined"] and not one.get("pending")]
    last = [one for one in came if 2 * one["waited_ms"] >= most_ms]
    if not last:
        return ""
    last.sort(key=lambda one: -int(one["waited_ms"]))
    names = words.listing([_wait(material, one, at_least=began_unseen(row)) for one in last], SLOW_NAMED_MAX)
    if last[0]["waited_ms"] < SLOW_MS:
        return f"it waited for {names}"
    held = sum(one.get("partitions") or 0 for one in last)
    did = f"give up {words.count(held, spoken.piece(row.get('protocol')))}" if held else _came_back(material, row, last)
    if len(last) > 1:
        return f"{names} were slow to {did}"
    return f"{_who(material, last[0])} was slow to {did} ({_how_long(last[0], at_least=began_unseen(row))})"


def _came_back(material: Material, row: Row, some: list[Row]) -> str:
    """What was waited for in a rebalance: that members rejoin, or that new ones join."""
    lives = [material.life_at(one["member_id"], row["started_at_ms"]) for one in some]
    are_new = all(life is not None and life["joined_at_ms"] >= row["started_at_ms"] for life in lives)
    return "join" if are_new else "rejoin"


def gone(material: Material, row: Row) -> str:
    """Who never came to a rebalance that waited for it, as sentences with a blank before each."""
    never = [one for one in _waits(row) if not one["joined"] and not one.get("pending")]
    went = [(one, _went(material, row, one)) for one in never]
    dropped = [one for one, how in went if not how]
    unused = [one for one in _waits(row) if one.get("pending")]
    text = ""
    if dropped:
        held = sum(one.get("partitions") or 0 for one in dropped)
        did = f"had not given up {words.count(held, spoken.piece(row.get('protocol')))}" if held else "never came"
        were = "was" if len(dropped) == 1 else "were"
        text += f" {words.listing([_wait(material, one) for one in dropped])} {did} and {were} dropped."
    for one, how in went:
        if how:
            text += f" It waited {words.took(one['waited_ms'])} for {_who(material, one)}, which {how}."
    if unused:
        ids = "an id that was" if len(unused) == 1 else f"{len(unused)} ids that were"
        names = words.listing([_wait(material, one) for one in unused])
        text += f" It waited for {ids} handed out and never used: {names}."
    return text


def waited(material: Material, row: Row) -> str:
    """Whom it waited for and how long, as sentences with a blank before each; those who never came first."""
    came = slow(material, row)
    if came.startswith("it "):
        came = f"It {came[3:]}"
    return gone(material, row) + (f" {came}." if came else "")


def _waits(row: Row) -> list[Row]:
    """For whom a rebalance waited, for a time that is known."""
    waits = [one for one in row["stragglers"] or () if one["waited_ms"] is not None]
    return [one for one in waits if one["waited_ms"] >= WAITED_MIN_MS]


_WENT = {"session_expired": "was evicted", "left": "left", "poll_timeout": "left", "removed_by_admin": "was removed"}


def _went(material: Material, row: Row, entry: Row) -> str:
    """How a member went of its own while a rebalance waited for it; empty where it was dropped at the end of that."""
    life = material.life_at(entry["member_id"], row["started_at_ms"] + entry["waited_ms"])
    return "" if life is None else _WENT.get(life["end_cause"], "")


def _wait(material: Material, entry: Row, *, at_least: bool = False) -> str:
    who, waited_for = _who(material, entry), _how_long(entry, at_least=at_least)
    return f"{who[:-1]}, {waited_for})" if who.endswith(")") else f"{who} ({waited_for})"


def _how_long(entry: Row, *, at_least: bool) -> str:
    return f"{'at least ' * at_least}{words.took(entry['waited_ms'])}"


def _who(material: Material, entry: Row) -> str:
    if entry.get("pending"):
        return words.name(entry["client_id"] or entry["member_id"])
    return material.who(entry["member_id"], entry["client_id"])


def cost(row: Row) -> str:
    """What it cost: who had no partitions all the while, or the sum of the ledger, which the page, the API and the
    metrics show as well."""
    lost_s, many = row["member_seconds_lost"], row["members_after"]
    if not lost_s:
        return ""
    lasted_ms = row["completed_at_ms"] - row["started_at_ms"]
    if many and abs(many * lasted_ms - lost_s * 1_000) <= 500:  # seconds are rounded
        return f" Meanwhile {words.count(many, 'member')} had no partitions."
    of = words.count(many, "member") if many else "Members"
    return f" {of} had no partitions for {words.took(lost_s * 1_000)} in sum."
