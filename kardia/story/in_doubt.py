"""What is in doubt about what is told, in brackets behind it: the sentences of the doubts that count.

Of several doubts those count that leave a row worth what it is; others are less than that. A release before doubts were
kept has none in its rows: then only how sure they are is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardia.doubts import meanings_of
from kardia.story.facts import Row

TOLD_MAX = 2
"""Sentences in one pair of brackets."""

_WORDS = {"inferred": "Inferred", "provisional": "This may change", "unknown": "Not sure"}


def sentences(certainty: str, doubts: Iterable[str] | None) -> list[str]:
    """Sentences, without their full stop, of the doubts that leave a row worth `certainty`."""
    return [meaning.sentence for meaning in meanings_of(doubts) if meaning.worth == certainty]


def told(row: Row) -> str:
    """How sure a row is, and why no more: `(This may change: … .)`; empty if it is exact."""
    certainty = str(row["certainty"])
    if certainty not in _WORDS:
        return ""
    why = sentences(certainty, row.get("doubts"))[:TOLD_MAX]
    return f"({_WORDS[certainty]}{': ' if why else ''}{'; and '.join(why)}.)"
