"""How sure a statement is: four words in an order, and what two statements are worth together.

Every row of every table carries one of these words. What rests on several things is no surer than the least sure of
them (`weaker`); the words must not be compared in any other way, as text in particular.
"""

from __future__ import annotations

from typing import Literal

Certainty = Literal["exact", "inferred", "provisional", "unknown"]
"""exact: the broker's own words or its own timer; inferred: follows from what was seen; provisional: may be corrected
when a waiting answer completes; unknown: the evidence is missing."""

CERTAINTIES: tuple[Certainty, ...] = ("exact", "inferred", "provisional", "unknown")
"""From the surest to the least sure."""

_WEAKNESS: dict[str, int] = {word: place for place, word in enumerate(CERTAINTIES)}


def weaker(first: Certainty, *others: Certainty) -> Certainty:
    """The least sure of some certainties: what a statement is worth that rests on all of them.

    Raises `KeyError` for a word that is none of the four.
    """
    return max((first, *others), key=lambda word: _WEAKNESS[word])


def stands(certainty: Certainty) -> bool:
    """Whether what is said so is not expected to be corrected: exact or inferred."""
    return _WEAKNESS[certainty] <= _WEAKNESS["inferred"]
