"""Answers that are not as the model of the brokers' release predicts, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardia.story import words
from kardia.tables import SURPRISE_CLASSES

Row = Mapping[str, Any]


CHARS_MAX = 200


def text(row: Row) -> str:
    """The sentences about a row of `surprises`. One that only says that the follower failed has no request, and no
    group where all of them were given up."""
    if not row["group_id"]:
        return f"Kardia's self-test began anew: {_told(row['seen'])}."
    if not row["request"]:
        return f"Kardia could not follow the group: {_told(row['seen'])}."
    of = f" of {words.name(row['member_id'])}" if row["member_id"] else ""
    return (
        f"{_told(row['request'])}{of} was answered {_told(row['seen'])}; Kafka {_told(row['kafka_version'])} answers "
        f"{_told(row['predicted'])}. {_told(row['surprise_class'])}: {_told(row['because'])}."
    )


def _told(text: str) -> str:
    """Words of the model, in which the id of a leader may stand."""
    return words.shortened(words.escaped(text), CHARS_MAX)


def outcomes(counts: Mapping[str, int]) -> dict[str, int]:
    """What became of the answers of columns `SELF_TEST`: predicted, of a group that was unknown, or by class."""
    classes = {name: counts[name] for name in SURPRISE_CLASSES}
    unknown = counts["answers"] - counts["predicted"] - sum(classes.values())
    return {"predicted": counts["predicted"], "unknown": unknown, **classes}


def in_short(counts: Mapping[str, int]) -> str:
    """The same in one line; empty where none was put to the model."""
    if not counts["answers"]:
        return ""
    became = outcomes(counts)
    found = sum(became[name] for name in SURPRISE_CLASSES)
    more = f", {became['unknown']:,} of groups that were not known yet" if became["unknown"] else ""
    return f"{became['predicted']:,} answers predicted, {found:,} surprise{'' if found == 1 else 's'}{more}."
