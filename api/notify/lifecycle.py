"""What is to be told: a finding is raised once, refreshed while it lasts, resolved when it is gone. Pure; no clock.

Rules, in this order, for each key of a finding:
1. Where evidence is missing (`Found.is_held`), nothing is raised and nothing resolved. What is raised and cannot be
   found for want of evidence is refreshed as unknown until it is found again or over: at once where the evidence of its
   group is missing, and with its next refresh where that of everything is, which one notice about the feed tells.
2. A finding is raised when it has lasted `hold_ms` with evidence; one that goes before is forgotten.
3. What is raised and no longer found is resolved after `linger_ms`.
4. Flapping: each time it was raised within `FLAP_WINDOW_MS` doubles the linger of the next (from `FLAP_LINGER_MS`
   on), up to `LINGER_MS_MAX`: it stays raised instead of coming and going.
5. What is raised is refreshed every `REFRESH_MS` at least. Whoever hears nothing for `EXPIRES_MS` may take it for over.
   What lingers is told as over: what was said last was true then.
6. A member that was not named yet since the alert was raised is told at once (`KINDS[...].names_at_once`), not with the
   next refresh: a timeout that is near is over by then. Each once, at most every `NAMED_AFTER_MS`, and only the first
   `NAMED_MAX`: a large group that fails one after the other does not flood.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from api.notify.conditions import KINDS, Finding, Found

REFRESH_MS = 30_000
EXPIRES_MS = 4 * REFRESH_MS
"""Prometheus, too, sends an end four evaluation or resend intervals ahead."""

NAMED_AFTER_MS = 2_000
"""A third of the shortest session timeout that brokers allow by default, of which half is left when it is near."""
NAMED_MAX = 100

FLAP_WINDOW_MS = 600_000
FLAP_LINGER_MS = 15_000
LINGER_MS_MAX = 600_000
RAISES_KEPT = 10
ALERTS_MAX = 50_000
"""Keys remembered. Beyond it new ones are dropped and counted: a storm of findings must not fill the memory."""

Key = tuple[str, str, str, str]


class Alert(msgspec.Struct):
    """What is remembered of one key; all instants in epoch ms of this host."""

    finding: Finding
    since_ms: int
    seen_ms: int
    raised_at_ms: int | None = None
    told_at_ms: int = 0
    told: int = 0
    """How often it has been told since it was raised."""
    raises_ms: list[int] = []
    """When it was raised lately, this time included."""
    unknown_since_ms: int | None = None
    """Up to when there was evidence of it, if there is none now."""
    by_feed: bool = False
    """Whether that is so, or was so last, because nothing is heard at all."""
    named: list[str] = []
    """Ids of members that were named since it was raised, `NAMED_MAX` at most."""


class Notice(msgspec.Struct, frozen=True):
    """One message. `id` is the same however often it is sent."""

    id: str
    what: str
    """raised, refreshed or resolved."""
    finding: Finding
    since_ms: int
    at_ms: int
    unknown_since_ms: int | None = None
    """It is not known whether it is still so: since then evidence is missing. None: it is so, or it is over."""
    outcome: str = ""
    """Of one that is resolved, or over: what became of whom it was about."""
    over_since_ms: int | None = None
    """It stays raised for a while, in case it comes again, and was not so at this instant any more; None: it is so."""


class Lifecycle:
    """All alerts that are pending, raised, or were raised lately."""

    def __init__(self, alerts: Mapping[Key, Alert] | None = None, refresh_ms: int = REFRESH_MS) -> None:
        """Begin with alerts of before; `refresh_ms` at most `REFRESH_MS`, which `EXPIRES_MS` rests on."""
        self.alerts: dict[Key, Alert] = dict(alerts or {})
        self._refresh_ms = refresh_ms
        self.dropped = 0
        """Findings that found no place."""

    def step(self, now_ms: int, found: Found) -> list[Notice]:
        """What is to be told about what is so now."""
        notices: list[Notice | None] = []
        present = {finding.key: finding for finding in found.findings}
        for key, finding in present.items():
            alert = self._alert(key, finding, now_ms)
            if alert is not None:
                notices.append(_see(alert, finding, found, now_ms))
        for key, alert in list(self.alerts.items()):
            gone, held = key not in present, found.is_held(alert.finding)
            if alert.raised_at_ms is not None:
                notices.append(self._step_raised(alert, found, now_ms, gone=gone, held=held))
            elif gone and held:
                alert.since_ms = now_ms
            elif gone:
                self._forget(key, alert, now_ms)
        return [notice for notice in notices if notice is not None]

    def _step_raised(self, alert: Alert, found: Found, now_ms: int, *, gone: bool, held: bool) -> Notice | None:
        """What is to be told of one that was raised: `gone` if it is not found, `held` if it could not be."""
        was_unknown = alert.unknown_since_ms is not None
        if not gone:
            alert.unknown_since_ms = None
        elif held:
            alert.by_feed = found.is_feed_silent(alert.finding)
            if not was_unknown:
                known_to_ms = found.known_to_ms(alert.finding)
                alert.unknown_since_ms = alert.seen_ms if known_to_ms is None else known_to_ms
            alert.seen_ms = now_ms  # the linger begins when there is evidence again
        if gone and not held and now_ms - alert.seen_ms >= linger_ms(alert, now_ms):
            alert.raised_at_ms = alert.unknown_since_ms = None
            return _tell(alert, "resolved", now_ms)
        if (
            now_ms - alert.told_at_ms >= self._refresh_ms
            or (was_unknown != (alert.unknown_since_ms is not None) and not alert.by_feed)
            or (not gone and _names_another(alert, now_ms))
        ):
            return _tell(alert, "refreshed", now_ms, over=gone and not held)
        return None

    def _alert(self, key: Key, finding: Finding, now_ms: int) -> Alert | None:
        alert = self.alerts.get(key)
        if alert is None:
            if len(self.alerts) >= ALERTS_MAX:
                self.dropped += 1
                return None
            alert = self.alerts[key] = Alert(finding, now_ms, now_ms)
        elif alert.raised_at_ms is None and alert.told:
            alert.since_ms, alert.told = now_ms, 0  # it was resolved, and is found again
        return alert

    def _forget(self, key: Key, alert: Alert, now_ms: int) -> None:
        """A resolved one is remembered as long as it may count as flapping."""
        if not alert.raises_ms or now_ms - alert.raises_ms[-1] >= FLAP_WINDOW_MS:
            del self.alerts[key]


def _see(alert: Alert, finding: Finding, found: Found, now_ms: int) -> Notice | None:
    """It is found: one that is pending is raised when that has lasted, and is told then."""
    alert.finding, alert.seen_ms = finding, now_ms
    if alert.raised_at_ms is not None:
        return None
    if found.is_held(finding):
        alert.since_ms = now_ms
    elif now_ms - alert.since_ms >= KINDS[finding.alert].hold_ms:
        alert.raised_at_ms, alert.told, alert.named = now_ms, 0, []
        alert.raises_ms = [*alert.raises_ms, now_ms][-RAISES_KEPT:]
        return _tell(alert, "raised", now_ms)
    return None


def linger_ms(alert: Alert, now_ms: int) -> int:
    """How long it stays raised after it was last found."""
    own = KINDS[alert.finding.alert].linger_ms
    again = sum(now_ms - at_ms < FLAP_WINDOW_MS for at_ms in alert.raises_ms) - 1
    return own if again <= 0 else min(LINGER_MS_MAX, max(own, FLAP_LINGER_MS) * 2**again)


def _names_another(alert: Alert, now_ms: int) -> bool:
    """Whether somebody is in it who was not told yet, and it is time to say so."""
    return (
        KINDS[alert.finding.alert].names_at_once
        and now_ms - alert.told_at_ms >= NAMED_AFTER_MS
        and len(alert.named) < NAMED_MAX
        and not set(alert.finding.member_ids) <= set(alert.named)
    )


def _tell(alert: Alert, what: str, now_ms: int, *, over: bool = False) -> Notice:
    alert.told += 1
    alert.told_at_ms = now_ms
    if KINDS[alert.finding.alert].names_at_once:
        alert.named = list(dict.fromkeys((*alert.named, *alert.finding.member_ids)))[:NAMED_MAX]
    digest = blake2b("\0".join(alert.finding.key).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    notice_id = f"{digest}-{alert.since_ms}-{alert.told}"
    over_since_ms = alert.seen_ms if over else None
    unknown_since_ms = None if over else alert.unknown_since_ms
    return Notice(notice_id, what, alert.finding, alert.since_ms, now_ms, unknown_since_ms, over_since_ms=over_since_ms)
