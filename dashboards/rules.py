"""Prometheus rules: what somebody should be told before it happens, and when Kardia itself cannot be trusted.

Member alerts are held back while the feed is stale: then silence is ours and not the members'. A member counts as
imminent while a prediction of its timeout is open; when that is so is the observer's rule, not one of Prometheus.
A scrape is too slow for the last seconds of a short session: these alerts warn, they do not replace the API.
"""

from __future__ import annotations

from typing import Any, NamedTuple

RUNBOOKS = "docs/runbooks"
"""Where runbooks stand, in the repository; put the address of your copy in front (`--runbooks`)."""

DASHBOARD = "/d/kardia-group?var-cluster={{ $labels.cluster | urlquery }}&var-group={{ $labels.group | urlquery }}"
FRESH = "unless on (cluster) kardia_feed_stale == 1"


class Alert(NamedTuple):
    """One alert; `hold` is how long the condition must last, `linger` how long it stays after the condition is gone."""

    name: str
    expr: str
    severity: str
    summary: str
    description: str
    runbook: str
    hold: str = "0s"
    linger: str = "0s"
    dashboard: str = ""


ALERTS = (
    Alert(
        "KafkaGroupSessionTimeoutImminent",
        f"kardia_group_session_timeout_imminent_members > 0 {FRESH}",
        "critical",
        "A consumer group member is about to be evicted for silence.",
        "{{ $value }} member(s) of group {{ $labels.group }} in {{ $labels.cluster }} have been silent for long. "
        "The coordinator evicts them when their session timeout has passed, and the group rebalances.",
        "session-timeout-imminent.md",
        linger="30s",
        dashboard=DASHBOARD,
    ),
    Alert(
        "KafkaGroupPollTimeoutImminent",
        f"kardia_group_poll_timeout_imminent_members > 0 {FRESH}",
        "warning",
        "A consumer group member has not polled for most of its poll interval.",
        "{{ $value }} member(s) of group {{ $labels.group }} in {{ $labels.cluster }} send heartbeats, yet no poll. "
        "When max.poll.interval.ms has passed the client leaves, and the group rebalances.",
        "poll-timeout-imminent.md",
        linger="30s",
        dashboard=DASHBOARD,
    ),
    Alert(
        "KardiaFeedStale",
        "kardia_feed_stale == 1",
        "critical",
        "Kardia has not heard from its sources; group alerts are held back.",
        "Nothing of the last {{ with query (printf `kardia_feed_age_seconds{cluster=%q}` $labels.cluster) }}"
        "{{ . | first | value | humanizeDuration }}{{ end }} is in the tables of {{ $labels.cluster }}. "
        "Evictions in this time are not seen yet.",
        "feed-stale.md",
        hold="15s",
    ),
    Alert(
        "KardiaTableUnavailable",
        "kardia_table_available == 0",
        "warning",
        "Kardia cannot read one of its tables.",
        "The table {{ $labels.table }} does not exist or cannot be read. Answers that need it are refused with 503.",
        "feed-stale.md",
        hold="1m",
    ),
)


def build(runbooks: str = RUNBOOKS) -> dict[str, Any]:
    """The rule file."""
    return {"groups": [{"name": "kardia", "interval": "5s", "rules": [_rule(alert, runbooks) for alert in ALERTS]}]}


def _rule(alert: Alert, runbooks: str) -> dict[str, Any]:
    annotations = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": f"{runbooks}/{alert.runbook}",
    }
    if alert.dashboard:
        annotations["dashboard_url"] = alert.dashboard
    rule: dict[str, Any] = {"alert": alert.name, "expr": alert.expr}
    if alert.hold != "0s":
        rule["for"] = alert.hold
    if alert.linger != "0s":
        rule["keep_firing_for"] = alert.linger
    return rule | {"labels": {"severity": alert.severity}, "annotations": annotations}
