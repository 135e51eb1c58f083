"""Where the broker's server.log says otherwise than its requests: what each of the two says, in a sentence.

Who reads a row beside the story of its group gives the name by which the story calls the member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardia.story import words
from kardia.story.facts import Evidence, Material, Sentence

Row = Mapping[str, Any]

_UNSURE = ("inferred", "provisional")


def text(row: Row, who: str = "") -> str:
    """The sentence about a row of `disagreements`; `who` is empty where the row itself must do."""
    known = row["client_id"] or row["member_id"]
    return _SAYS.get(row["kind"], _other)(row, who or (words.name(known) if known else "an unknown member"))


def sentence(material: Material, row: Row) -> Sentence:
    """The same in the story of its group."""
    member_id = row["member_id"]
    said = text(row, material.who(member_id, row["client_id"]) if member_id else "")
    member_ids = (member_id,) if member_id else ()
    return Sentence(row["at_ms"], "disagreement", said, "exact", member_ids, (_line(row),))


def _line(row: Row) -> Evidence:
    source, start = row["source"], row["start"]
    return Evidence("disagreements", None, f"{source}@{start}", source, start, row["end"])


_TIMERS = {
    "rebalance_timeout": "its rebalance timeout",
    "join_timeout": "its time to rejoin",
    "sync_timeout": "its time to sync",
}
"""Timers by which a line of a group that has epochs may say that a member ended, beside its session."""


def _what(row: Row, who: str) -> str:
    timer = _TIMERS.get(row["told"])
    return f"the session of {who} expired" if timer is None else f"{who} was removed as {timer} was over"


def _expired(row: Row, who: str) -> str:
    return f"server.log says that {_what(row, who)} at {words.instant(row['at_ms'])}"


def _another_instant(row: Row, who: str) -> str:
    at_ms = row["concluded_at_ms"]
    when = words.clock(at_ms, row["at_ms"]) if at_ms is not None else "an unknown instant"
    if row["concluded"] == "member":
        return f"{_expired(row, who)}; by the requests it was a member, and its session ran until {when}."
    over = "expired" if row["told"] not in _TIMERS else "was over"
    return f"{_expired(row, who)}; by the requests it {over} at {when}."


def _another_cause(row: Row, who: str) -> str:
    at_ms, sure = row["concluded_at_ms"], row["concluded_certainty"]
    when = f" at {words.clock(at_ms, row['at_ms'])}" if at_ms is not None else ""
    unsure = f", {sure}" if sure in _UNSURE else ""
    cause = words.name(row["concluded"])
    return f"{_expired(row, who)}; by the requests it had ended{when} by another cause ({cause}{unsure})."


def _another_generation(row: Row, _who: str) -> str:
    return (
        f"server.log says that the assignment of generation {words.name(row['told'])} came at "
        f"{words.instant(row['at_ms'])}; by the requests the group was in generation {words.name(row['concluded'])}."
    )


def _another_coordinator(row: Row, who: str) -> str:
    broker = str(row["source"]).partition("/")[0]
    return (
        f"The server.log of {words.name(broker)} says that {_what(row, who)} at "
        f"{words.instant(row['at_ms'])}; by the requests {words.name(row['concluded'])} led the group then, so it "
        "ended no membership."
    )


def _other(row: Row, who: str) -> str:
    """A kind that this version does not know."""
    return (
        f"server.log says of {who} at {words.instant(row['at_ms'])}: {words.name(row['told'])}; by the requests: "
        + (f"{words.name(row['concluded'])}.")
    )


_SAYS = {
    "another_instant": _another_instant,
    "another_cause": _another_cause,
    "another_generation": _another_generation,
    "another_coordinator": _another_coordinator,
}
"""Words for every kind of `kardia.tables.DISAGREEMENTS`; a test compares the two lists."""
