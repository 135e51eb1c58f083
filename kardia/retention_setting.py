"""What is kept how long: one setting, parsed here, read by the job (`--keep`) and by `kardia.yaml` (section `keep`).
Pure: reads no clock and no table; `spark_jobs.upkeep.retention` does what it says.

An age is counted on the cluster's own clock, from the newest instant that the tables have of it: the tables of a
cluster that was switched off a year ago are not emptied. Rows that still stand are kept however old they are
(`STANDING`): a member that joined half a year ago and is one today, the state of its group.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

SUMMED_AFTER_MS = HOUR_MS
"""Rows of `progress` are summed up after so long, one or two for each lane and source. A second writes one for each,
and every reader folds all of them when it begins: 500,000 a day for one broker."""


class KeepError(ValueError):
    """A setting that says nothing; its text says what was expected."""


class Kind(NamedTuple):
    """Tables that are kept equally long."""

    tables: tuple[str, ...]
    default_ms: int
    least_ms: int
    meaning: str


KINDS: dict[str, Kind] = {
    "health": Kind(("health", "lag"), 7 * DAY_MS, 2 * HOUR_MS, "samples of members, and lag: nearly all bytes"),
    "history": Kind(
        ("transitions", "rebalances", "members", "predictions", "disagreements", "surprises"),
        30 * DAY_MS,
        2 * DAY_MS,
        "who was a member, what rebalanced, who was evicted and why",
    ),
    "rejected": Kind(("rejected",), 7 * DAY_MS, HOUR_MS, "lines that were not understood, with an excerpt"),
    "events": Kind(("events",), 7 * DAY_MS, DAY_MS, "the archive of events: for replay and audit"),
}
"""Kinds by the word of the setting. The least of `health` is above what a reader looks back when it begins (15 minutes,
75 for lag), that of `history` above the day in which a source counts as alive."""

STANDING = ("transitions", "rebalances", "members", "predictions")
"""Tables of which rows are kept beyond their age, as long as they stand and say what is so now."""

FOREVER_MS = 1 << 62

_AGE = re.compile(r"(\d{1,6})\s*([hdw])")
_UNITS = {"h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}


class Keep(NamedTuple):
    """How long, in milliseconds, by kind."""

    health_ms: int = KINDS["health"].default_ms
    history_ms: int = KINDS["history"].default_ms
    rejected_ms: int = KINDS["rejected"].default_ms
    events_ms: int = KINDS["events"].default_ms

    def of(self, table: str) -> int:
        """Age at which rows of a table go; `progress` is summed up instead."""
        for name, kind in KINDS.items():
            if table in kind.tables:
                return int(getattr(self, f"{name}_ms"))
        return SUMMED_AFTER_MS

    def __str__(self) -> str:
        return ",".join(f"{name}={shown(getattr(self, f'{name}_ms'))}" for name in KINDS)


def age_of(name: str, text: str) -> int:
    """Milliseconds of an age: `36h`, `7d`, `4w`, or `forever`."""
    kind, words = KINDS[name], text.strip().lower()
    if words == "forever":
        return FOREVER_MS
    found = _AGE.fullmatch(words)
    if found is None:
        raise KeepError(f"{name}={text[:40]!r} is no age; expected 36h, 7d, 4w or forever")
    age_ms = int(found[1]) * _UNITS[found[2]]
    if age_ms < kind.least_ms:
        raise KeepError(f"{name}={words} is less than what readers look back; expected {shown(kind.least_ms)} or more")
    return age_ms


def keep_of(text: str) -> Keep:
    """The setting as one text: `health=7d,history=90d`; what it does not name has its default."""
    given: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, age = (piece.strip() for piece in part.partition("="))
        if not equals or name not in KINDS:
            raise KeepError(f"{part[:60]!r} names nothing that is kept; expected {', '.join(KINDS)}, as in health=7d")
        if f"{name}_ms" in given:
            raise KeepError(f"{name} is given twice")
        given[f"{name}_ms"] = age_of(name, age)
    return Keep(**given)


def shown(age_ms: int) -> str:
    """An age as the setting has it."""
    if age_ms >= FOREVER_MS:
        return "forever"
    return f"{age_ms // DAY_MS}d" if age_ms % DAY_MS == 0 else f"{age_ms // HOUR_MS}h"
