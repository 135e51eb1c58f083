"""Bodies of messages to the two kinds of receivers: Alertmanager's API v2, and webhooks (CloudEvents 1.0 as JSON).

Ids of groups and members are strangers' text: they stand in JSON strings and percent-encoded in links, nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from api.notify.conditions import KINDS, Finding
from api.notify.lifecycle import EXPIRES_MS, Notice
from kardia.instants import to_rfc3339

BEFORE_MS, AFTER_MS = 600_000, 3_000_000
"""What an incident link is about: ten minutes that lead to the alert, and what came of it, an hour together. A link
without times would be about the last hour that was read when somebody opens it, the next morning. It leads to the page,
which asks for a token where one is needed: a browser that follows a link to the API has none."""


class Links(NamedTuple):
    """Addresses in front of links."""

    kardia: str
    runbooks: str

    @classmethod
    def to(cls, kardia: str, runbooks: str = "") -> Links:
        """Runbooks are those that `kardia serve` has, unless there are others."""
        kardia = kardia.rstrip("/")
        return cls(kardia, runbooks.rstrip("/") or f"{kardia}/runbooks")


class Request(NamedTuple):
    """One POST."""

    path: str
    content_type: str
    body: bytes
    notices: tuple[Notice, ...]
    """What it tells."""


def labels(finding: Finding) -> dict[str, str]:
    """Labels of an alert, as the Prometheus rules give them."""
    found = {"alertname": finding.alert, "severity": KINDS[finding.alert].severity, "cluster": finding.cluster}
    return found | {name: value for name, value in (("group", finding.group), ("source", finding.source)) if value}


def texts(notice: Notice, links: Links) -> dict[str, str]:
    """Texts and links of an alert. What is not known to be still so is told as that."""
    finding, kind = notice.finding, KINDS[notice.finding.alert]
    who = f" Members: {', '.join(finding.members)}." if finding.members else ""
    description = finding.description + who
    if notice.what == "resolved" and notice.outcome:
        description = f"Over. {notice.outcome}"
    if notice.over_since_ms is not None:
        over = f"Over since {to_rfc3339(notice.over_since_ms)}. {notice.outcome}".strip()
        description = f"{over} The alert stays for a while, in case it comes again."
    if notice.unknown_since_ms is not None:
        description = (
            f"Unknown since {to_rfc3339(notice.unknown_since_ms)}: evidence is missing, so it may be over, or have "
            f"come true. What was said last: {description}"
        )
    found = {
        "summary": kind.summary,
        "description": description,
        "runbook_url": f"{links.runbooks}/{kind.runbook}",
    }
    if finding.group:
        place = f"cluster={quote(finding.cluster, safe='')}&group={quote(finding.group, safe='')}"
        page = f"{links.kardia}/#/clusters/~/groups/~?{place}&at={notice.since_ms}"
        times = f"from={max(0, notice.since_ms - BEFORE_MS)}&to={notice.since_ms + AFTER_MS}"
        found |= {"page_url": page, "incident_url": f"{page}&{times}"}
    return found


def to_alertmanager(notices: Sequence[Notice], links: Links) -> list[Request]:
    """All of them in one POST; of one alert only the last, which is what stands."""
    latest = {notice.finding.key: notice for notice in notices}
    alerts = [
        {
            "labels": labels(notice.finding),
            "annotations": texts(notice, links),
            "startsAt": to_rfc3339(notice.since_ms),
            "endsAt": to_rfc3339(notice.at_ms if notice.what == "resolved" else notice.at_ms + EXPIRES_MS),
        }
        for notice in latest.values()
    ]
    return [Request("/api/v2/alerts", "application/json", msgspec.json.encode(alerts), tuple(notices))]


def to_webhook(notices: Sequence[Notice], links: Links) -> list[Request]:
    """One POST for each; a repeat has the same id."""
    return [
        Request("", "application/cloudevents+json", msgspec.json.encode(_cloud_event(notice, links)), (notice,))
        for notice in notices
    ]


def _cloud_event(notice: Notice, links: Links) -> dict[str, Any]:
    finding = notice.finding
    return {
        "specversion": "1.0",
        "id": notice.id,
        "type": f"io.kardia.alert.{notice.what}",
        "source": f"/clusters/{quote(finding.cluster, safe='')}",
        "subject": finding.alert,
        "time": to_rfc3339(notice.at_ms),
        "datacontenttype": "application/json",
        "data": {
            "labels": labels(finding),
            "annotations": texts(notice, links),
            "members": list(finding.members),
            "member_ids": list(finding.member_ids),
            "since_at_ms": notice.since_ms,
            "told_at_ms": notice.at_ms,
            "unknown_since_at_ms": notice.unknown_since_ms,
            "over_since_at_ms": notice.over_since_ms,
            "outcome": notice.outcome or None,
        },
    }
