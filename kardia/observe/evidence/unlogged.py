"""A request log that says nothing while its broker lives: switched off, or filtered. Silence in it is no evidence about
any member.

A record of the offsets topic shows the broker alive. But a commit, and a generation with members, are written for a
request, and the line of that request stands in the log moments later. A log that was read beyond the record, and whose
last line lies well before it, does not show what happens.
"""

from __future__ import annotations

from kardia.events import ALL_SHARDS, SILENCE_MS, Event, Kind
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import NEVER
from kardia.observe.timers.expiry import on_gap
from kardia.tolerances import LINE_WITHIN_MS, LOG_OFF_MS

_FOR_A_HEARTBEAT = frozenset({5, 8, 10, 14, 19, 22})
"""Records about a member of a group that has epochs: what it is, and what it has come to, by its own request."""


def has_a_line(event: Event) -> bool:
    """Whether a record was written for a request. Expiry writes empty generations and tombstones by itself."""
    detail = event.detail or {}
    if event.kind == Kind.GROUP_RECORD:
        return bool(detail.get("members"))
    if event.kind == Kind.OTHER_RECORD:
        return detail.get("record_type") in _FOR_A_HEARTBEAT and not detail.get("tombstone")
    return event.kind == Kind.OFFSET_RECORD and not detail.get("tombstone")


def is_sign_of_life(at: float, logged_to: float) -> bool:
    """Whether silence in the log up to a record is evidence. Not after a long one, whatever the record is of: the
    broker lives when it writes it, but it may have been down before, and its sessions begun anew."""
    return not 0 <= logged_to < at - SILENCE_MS


def is_off(event: Event, at: float, logged_to: float) -> bool:
    """Whether a record shows that the log, whose last line stands at `logged_to`, is switched off."""
    return logged_to >= 0 and has_a_line(event) and logged_to < at - LOG_OFF_MS


def has_lasted(since: dict[str, float], broker: str, at: float, logged_to: float) -> bool:
    """Whether the line of an earlier record has been missing for long; `since`: by broker, the first of them."""
    if since.get(broker, NEVER) <= logged_to:
        since[broker] = at
    return at - since[broker] >= LINE_WITHIN_MS


def note(facts: Facts, broker: str, event: Event, at: float, logged_to: float) -> bool:
    """Nothing of the broker is known from its last line to the record. Whether that is news since its last line."""
    is_new = facts.blind_to.get(broker, -1.0) <= logged_to
    detail = {"from_ms": logged_to, "to_ms": at, "reason": "log_off"}
    gap = event._replace(kind=int(Kind.GAP), shard=ALL_SHARDS, logged_at_ms=at, detail=detail)
    facts.broker, facts.evidence, facts.known = broker, gap, at + facts.settings.hold_ms
    on_gap(facts, gap, logged_to if is_new else at)
    return is_new
