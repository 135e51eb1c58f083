"""What `kardia doctor` looks at before anything is collected: is there a log, is it whole, can the cluster be read.

    logs.examine(path, zone)              one request log or server.log: dialect, APIs, filter, time zone, clock
    cluster.examine(bootstrap, settings)  brokers, __consumer_offsets, the bounds of session timeouts
    settings_shown.examine(…)             settings of the brokers that their answers show, beside what they say
    protocol_migration.examine(…)         what the move of each classic group to the consumer protocol will meet
    answerable                            which questions that answers, and which step would answer the others
    remedies                              the exact lines to add, as docs/request-logging.md shows them

Each gives `Finding`s: sentences with what to do. Nothing is written, nothing is changed, no group is joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kardia.certainty import Certainty


class Level(StrEnum):
    """How a finding is meant; `unknown` where the evidence does not tell."""

    GOOD = "good"
    NOTE = "note"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    subject: str
    """What was looked at: a path, a topic, a broker."""

    sentence: str
    remedy: tuple[str, ...] = ()
    """What to do, line by line, ready to be copied; empty when there is nothing to do."""

    certainty: Certainty = "exact"
    """How sure it is, as of a row of the tables."""
