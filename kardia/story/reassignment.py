"""Partitions on their way in a group that has epochs, in words: what a member must give up, and for whom.

In: entries of `health.moving` (`kardia.tables`). Out: clauses; where they stand in a sentence is decided by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kardia.story import words
from kardia.story.facts import Row

NAMED_MAX = 8
"""Partitions that are named one by one; of more it is said how many."""


def partitions(entries: Sequence[Row]) -> str:
    """`orders 0, 1 and 2 more`: topics one after the other. Names are a stranger's and are escaped."""
    by_topic: dict[str, list[int]] = {}
    for entry in entries[:NAMED_MAX]:
        by_topic.setdefault(entry["topic"], []).append(entry["partition"])
    named = "; ".join(f"{words.name(topic)} {', '.join(map(str, some))}" for topic, some in by_topic.items())
    return f"{named} and {len(entries) - NAMED_MAX} more" if len(entries) > NAMED_MAX else named


def given_up(member_id: str, entries: Iterable[Row] | None, who: Callable[[str], str]) -> list[str]:
    """What a member is to give up, a clause for each who is to get it: `orders 0, 1 for c`."""
    mine = [entry for entry in entries or () if entry["from_member_id"] == member_id]
    return [f"{partitions(some)}{f' for {who(to)}' if to else ''}" for to, some in _by(mine, "to_member_id")]


def awaited(member_id: str, entries: Iterable[Row] | None, who: Callable[[str], str]) -> list[str]:
    """What a member is to get, a clause for each who has it still: `orders 0, 1 of a`."""
    mine = [entry for entry in entries or () if entry["to_member_id"] == member_id]
    return [
        f"{partitions(some)} of {who(holder)}" if holder else f"{partitions(some)}, which nobody is known to have"
        for holder, some in _by(mine, "from_member_id")
    ]


def _by(entries: Sequence[Row], field: str) -> list[tuple[str | None, list[Row]]]:
    """Entries by whom they name, in the order in which each is first met."""
    found: dict[str | None, list[Row]] = {}
    for entry in entries:
        found.setdefault(entry[field], []).append(entry)
    return list(found.items())
