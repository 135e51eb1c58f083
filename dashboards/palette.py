"""What a colour means, once: every panel takes its colours from here, so that one colour says one thing on all boards.

Okabe and Ito's colours, told apart by all, and never the only sign: the word stands beside. Green is said only of what
is known to be well. A number that nobody knows is grey, as is all that the feed does not show at present; no alarm
colour is ever the colour of a missing value. Reads nothing; knows no panel.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models.dashboard import (
    DashboardRegexMapOptions,
    DashboardSpecialValueMapOptions,
    RegexMap,
    SpecialValueMap,
    SpecialValueMatch,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)

WELL = "#009E73"
SOON = "#E69F00"
"""Unusual: look at it when there is time."""
ALARM = "#D55E00"
"""Somebody should act, or is waited for."""
OVER = "#CC79A7"
"""A deadline has passed, or a membership was taken away."""
PLAIN = "#0072B2"
"""A number or a word that is neither good nor bad."""
REST = "#56B4E9"
"""At rest: nothing to do here, or less sure than it might be."""
MINOR = "#F0E442"
BLIND = "#888888"
"""Not known."""
GONE = "#444444"
"""Over, and known to be."""
NONE = "transparent"

COLOURS = frozenset((WELL, SOON, ALARM, OVER, PLAIN, REST, MINOR, BLIND, GONE, NONE))

STATUS = {
    "ok": WELL,
    "late": SOON,
    "imminent": ALARM,
    "awaited": ALARM,
    "overdue": OVER,
    "unseen": BLIND,
    "unknown": BLIND,
    "ended": GONE,
    "no members": REST,
}
STATE = {
    "Stable": WELL,
    "PreparingRebalance": ALARM,
    "CompletingRebalance": SOON,
    "Assigning": ALARM,
    "Reconciling": SOON,
    "Empty": REST,
    "Dead": GONE,
    "Unknown": BLIND,
}
CERTAINTY = {"exact": WELL, "inferred": REST, "provisional": SOON, "unknown": BLIND}
OUTCOME = {"came_true": PLAIN, "averted": SOON, "unknown": BLIND}
PREDICTED = {"yes": ALARM, "no": PLAIN, "unknown": BLIND}
CAUSE = {
    "session_expired": ALARM,
    "poll_timeout": OVER,
    "rebalance_timeout": SOON,
    "sync_timeout": SOON,
    "join_timeout": MINOR,
    "fenced": MINOR,
    "rejected": MINOR,
    "removed_by_admin": PLAIN,
}
"""Why a membership was taken away: none of them is well."""
END = {
    **CAUSE,
    "left": GONE,
    "static_replaced": GONE,
    "group_deleted": GONE,
    "still a member": PLAIN,
    "unknown": BLIND,
}
TRIGGER = {
    "member_joined": PLAIN,
    "member_left": PLAIN,
    "leader_rejoined": REST,
    "static_replaced": REST,
    "metadata_changed": REST,
    "topic_metadata": REST,
    "coordinator_loaded": REST,
    "session_expired": ALARM,
    "poll_timeout": OVER,
    "rebalance_timeout": SOON,
    "sync_timeout": SOON,
    "pending_expired": MINOR,
    "removed_by_admin": MINOR,
    "assignment_not_stored": SOON,
    "over_capacity": SOON,
    "unknown": BLIND,
}
SEVERITY = {"critical": OVER, "warning": ALARM, "info": PLAIN}


def steps(*colours: tuple[float | None, str]) -> ThresholdsConfig:
    """Colours from values on; the first has None."""
    found = [Threshold(value=value, color=colour) for value, colour in colours]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def alarm(at: float | None, *, below: bool = False) -> ThresholdsConfig:
    """Plain, and an alarm from a value on; with `below`, up to it. None: never."""
    if at is None:
        return steps((None, PLAIN))
    return steps((None, ALARM), (at, PLAIN)) if below else steps((None, PLAIN), (at, ALARM))


HEADROOM = steps((None, OVER), (0.2, ALARM), (0.35, SOON), (0.5, WELL))
"""What is left of a timeout: below a half is unusual."""


def missing(text: str) -> SpecialValueMap:
    """What stands for a value that nobody knows: a word in grey. Null is no answer, NaN a series that is blind."""
    result = ValueMappingResult(text=text, color=BLIND)
    options = DashboardSpecialValueMapOptions(match=SpecialValueMatch.NULL_AND_NAN, result=result)
    return SpecialValueMap(options=options)


def countdown() -> tuple[RegexMap, ...]:
    """Countdowns in words: one that is over, one that comes within three seconds (less than a heartbeat of the default
    settings), of whom there is none, and none that is known. The least that it may be (`≥`) is no alarm: who is in
    danger is sampled in every batch and so told exactly, and who is well now and then."""
    return told("^due", OVER), told(r"^[0-2]\.", ALARM), told("^ended", GONE), told("^not known", BLIND)


def mapped(colours: dict[str, str]) -> ValueMap:
    """Texts in their colours."""
    return ValueMap(options={text: ValueMappingResult(color=colour) for text, colour in colours.items()})


def told(pattern: str, colour: str) -> RegexMap:
    """Texts of a pattern in their colour."""
    return RegexMap(options=DashboardRegexMapOptions(pattern=pattern, result=ValueMappingResult(color=colour)))
