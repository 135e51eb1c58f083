"""Prometheus alert rules as data: dangers to groups, and when Kardia itself cannot be trusted.

A new alert is a rule here, a finding in `api/notify/conditions.py` and a page in `docs/runbooks`. Alerts about groups
are held back while the feed is stale: then silence is ours and not the members'. What fires goes on firing until there
is evidence again. A member counts as imminent while a prediction of its timeout is open; when that is so is the
observer's rule, not one of Prometheus. A scrape is too slow for the last seconds of a short session: `kardia notify`
tells of the same conditions, under the same names and labels, straight from the tables, so that Alertmanager takes both
for one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from api.settings import URL

DASHBOARD = "/d/kardia-group?var-cluster={{ $labels.cluster | urlquery }}&var-group={{ $labels.group | urlquery }}"
_IDS = "cluster={{ $labels.cluster | urlquery }}&group={{ $labels.group | urlquery }}"


def _at(shift: str = "") -> str:
    """A template: epoch milliseconds of the evaluation, when the alert is told; a rule cannot say since when it is."""
    return f"{{{{ with query `time(){shift}` }}}}{{{{ . | first | value | printf `%.0f` }}}}000{{{{ end }}}}"


PAGE = f"/#/clusters/~/groups/~?{_IDS}&at={_at()}"
"""The page of the group at `kardia serve`, at that instant; its address (`--kardia`) is put in front."""

INCIDENT = f"{PAGE}&from={_at(' - 600')}&to={_at(' + 3000')}"
"""The same with its incident report open: ten minutes before and fifty after. A link into the API would be JSON, and
would need a token that no link carries."""

EACH = "max by (cluster, group)"
"""Several replicas of `kardia serve` say the same of a group; one alert comes of it."""

STALE = "on (cluster) kardia_feed_stale == 1"


def while_fresh(alert: str, condition: str) -> str:
    """A condition of groups that is believed while the feed is fresh. While it is stale nothing begins, nothing ends:
    what was firing goes on, with the value 0, which no such condition has. `ALERTS` is marked as over when an alert is,
    so it ends with the first evaluation of a fresh feed that finds nothing, and none comes back."""
    firing = f'max by (cluster, group) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return f"{condition} unless {STALE} or 0 * {firing} and {STALE}"


def while_known(alert: str, condition: str) -> str:
    """A condition about the lag of groups: believed while the feed is fresh, and held as well where lag is not known,
    because ends are not looked at any more."""
    firing = f'max by (cluster, group) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    unknown = f'on (cluster, group) {EACH} (kardia_group_lag_status{{status="UNKNOWN"}}) == 1'
    return f"{while_fresh(alert, condition)} or 0 * {firing} and {unknown}"


OF_GROUP = "{{ $labels.group }} in {{ $labels.cluster }}"


def either(one: str, many: str) -> str:
    """A template: what is said of one, and what of another number."""
    return f"{{{{ if eq $value 1.0 }}}}{one}{{{{ else }}}}{many}{{{{ end }}}}"


def counted(noun: str) -> str:
    """A template: the value with its noun."""
    return f"{{{{ $value }}}} {noun}{{{{ if ne $value 1.0 }}}}s{{{{ end }}}}"


def lasted(of: str = "$value") -> str:
    """A template: seconds as a duration. Prometheus's own writes 27.57s below a minute: nobody measured it so well."""
    below, above = f"{{{{ printf `%.0f` {of} }}}} s", f"{{{{ humanizeDuration {of} }}}}"
    return f"{{{{ if lt {of} 60.0 }}}}{below}{{{{ else }}}}{above}{{{{ end }}}}"


UNKNOWN = (
    f"Unknown of group {OF_GROUP}: this alert was firing when the feed became stale, so it may be over, or have "
    "come true. KardiaFeedStale says since when nothing is seen."
)


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
    of_group: bool = True
    """Whether it is about one group, and so has its dashboard and its incident report."""
    unknown: str = UNKNOWN
    """What is said of one that goes on because evidence is missing."""

    @property
    def is_held(self) -> bool:
        """Whether it goes on while the feed is stale."""
        return STALE in self.expr


ARCHIVE_BEHIND_RECORDS = 50_000
"""25 batches of the archive (`KARDIA_STREAM_ARCHIVE_MAX_RECORDS`), of a second or two each. Six lanes of a cluster with
little to say get some twenty records a second, and between two runs 2,400; after a long stop it may be millions, which
then become fewer."""


def _least(window: str, before: str = "") -> str:
    """Fewest records that the archive was behind in a window, by job."""
    return f"max by (instance) (min_over_time(kardia_stream_archive_behind_records[{window}]{before}))"


ALERTS = (
    Alert(
        "KafkaGroupSessionTimeoutImminent",
        while_fresh(
            "KafkaGroupSessionTimeoutImminent",
            f"{EACH} (kardia_group_session_timeout_imminent_members) > 0",
        ),
        "critical",
        "A consumer group member is about to be evicted for silence.",
        f"{counted('member')} of group {OF_GROUP} {either('has', 'have')} been silent for long. "
        "The coordinator evicts whoever is silent for a session timeout, and the group rebalances.",
        "session-timeout-imminent.md",
        linger="30s",
    ),
    Alert(
        "KafkaGroupPollTimeoutImminent",
        while_fresh(
            "KafkaGroupPollTimeoutImminent",
            f"{EACH} (kardia_group_poll_timeout_imminent_members) > 0",
        ),
        "warning",
        "A consumer group member has not polled for most of its poll interval.",
        f"{counted('member')} of group {OF_GROUP} {either('sends', 'send')} heartbeats, yet no poll. "
        "When max.poll.interval.ms has passed a client leaves, and the group rebalances.",
        "poll-timeout-imminent.md",
        linger="30s",
    ),
    Alert(
        "KafkaGroupZombieMember",
        while_fresh(
            "KafkaGroupZombieMember",
            f"{EACH} (kardia_group_zombie_members) > 0",
        ),
        "warning",
        "A consumer group member heartbeats and does no work.",
        f"{counted('member')} of group {OF_GROUP} "
        + either("is alive by its heartbeats, but holds", "are alive by their heartbeats, but hold")
        + " a rebalance up or "
        + either(
            "is past its poll deadline. Nobody works on its", "are past their poll deadlines. Nobody works on their"
        )
        + " partitions.",
        "zombie-member.md",
        linger="30s",
    ),
    Alert(
        "KafkaGroupRebalanceStuck",
        while_fresh(
            "KafkaGroupRebalanceStuck",
            f"{EACH} (kardia_group_rebalance_running_seconds) > 20",
        ),
        "critical",
        "A consumer group rebalances and does not get done.",
        f"Group {OF_GROUP} has been rebalancing for {lasted()}. "
        "It waits for members that have not rejoined, at most for its rebalance timeout.",
        "rebalance-stuck.md",
    ),
    Alert(
        "KafkaGroupPendingMemberBlocks",
        while_fresh(
            "KafkaGroupPendingMemberBlocks",
            f"{EACH} (kardia_group_pending_members) > 0 and on (cluster, group) "
            f'kardia_group_state{{state="PreparingRebalance"}} == 1',
        ),
        "warning",
        "A rebalance waits for a member id that nobody has joined with.",
        f"The coordinator handed out {counted('member id')} of group {OF_GROUP}, and no JoinGroup came back with "
        f"{either('it', 'them')}. The rebalance waits until one session timeout has passed.",
        "pending-member-blocks.md",
        hold="3s",
    ),
    Alert(
        "KafkaGroupRebalanceStorm",
        while_fresh(
            "KafkaGroupRebalanceStorm",
            f"{EACH} (kardia_group_storm_rebalances) >= 4",
        ),
        "warning",
        "A consumer group rebalances again and again.",
        f"Group {OF_GROUP} has rebalanced on {{{{ $value }}}} occasions in five minutes. A roll-out is none, a "
        "start-up is one.",
        "rebalance-storm.md",
    ),
    Alert(
        "KafkaGroupStaticMemberFenced",
        f"{EACH} (increase(kardia_static_members_fenced_total[5m])) > 0",
        "warning",
        "A static member was fenced: two processes use one group.instance.id.",
        f"In the last five minutes a member of group {OF_GROUP} was told FENCED_INSTANCE_ID, because another process "
        "joined with its group.instance.id.",
        "static-member-fenced.md",
    ),
    Alert(
        "KafkaGroupEvictions",
        f"{EACH} (sum without (cause) (increase(kardia_evictions_total[10m]))) >= 2",
        "warning",
        "A consumer group keeps losing members that did not ask to go.",
        f"About {{{{ $value | printf `%.0f` }}}} members of group {OF_GROUP} were evicted in ten minutes.",
        "evictions.md",
    ),
    Alert(
        "KafkaGroupLagStuck",
        while_known("KafkaGroupLagStuck", f'{EACH} (kardia_group_lag_status{{status="ERR"}}) == 1'),
        "warning",
        "A consumer group has something to read, and does not go forward.",
        f"Of group {OF_GROUP} partitions have stood still for five minutes at least: records wait there, and it "
        "commits nothing, the same offset again and again, or a lower one than before (Burrow's STOP, STALL and "
        "REWIND). kardia lag says which, and why.",
        "lag-stuck.md",
        hold="5m",
        unknown=f"Unknown of group {OF_GROUP}: this alert was firing when the ends of its partitions were seen last, "
        "so it may be over. kardia lag says how far lag is known.",
    ),
    Alert(
        "KardiaSourceStalled",
        "max by (cluster, source) (kardia_source_age_seconds) > 15",
        "warning",
        "One of the logs that Kardia reads has stalled.",
        f"{{{{ $labels.source }}}} of {{{{ $labels.cluster }}}} has been read up to {lasted()} ago only. "
        "Groups whose coordinator writes it are not seen.",
        "source-stalled.md",
        hold="5s",
        of_group=False,
    ),
    Alert(
        "KardiaLogGap",
        'max by (cluster) (increase(kardia_ledger_total{what="gaps"}[5m])) > 0',
        "warning",
        "A part of a log was lost; verdicts about that time are unknown.",
        "In the last five minutes a part of the logs of {{ $labels.cluster }} could not be read. "
        "What happened in it is unknown, and Kardia does not guess.",
        "log-gap.md",
        of_group=False,
    ),
    Alert(
        "KardiaSourcesDisagree",
        "sum by (cluster) (max by (cluster, kind) "
        '(increase(kardia_disagreements_total{kind!="another_coordinator"}[1h]))) > 0',
        "info",
        "A broker's server.log says otherwise than its requests.",
        "In the last hour server.log of {{ $labels.cluster }} told of an eviction or a generation that the requests do "
        "not show. Kardia believes server.log; kardia disagreements says which group, and what each says.",
        "sources-disagree.md",
        of_group=False,
    ),
    Alert(
        "KardiaBrokerNotAsRelease",
        'max by (cluster) (increase(kardia_self_test_answers_total{outcome="broker_not_as_release"}[1h])) >= 3',
        "info",
        "A broker answers otherwise than its release.",
        "In the last hour brokers of {{ $labels.cluster }} answered the same request otherwise than the model of their "
        "release, again and again. kardia surprises says which, with a trace that shows it.",
        "broker-not-as-release.md",
        of_group=False,
    ),
    Alert(
        "KardiaPredictionsUnreliable",
        'sum by (cluster, kind) (increase(kardia_predictions_total{outcome="averted"}[6h])) '
        '/ sum by (cluster, kind) (increase(kardia_predictions_total{outcome=~"averted|came_true"}[6h])) > 0.5 '
        'and sum by (cluster, kind) (increase(kardia_predictions_total{outcome=~"averted|came_true"}[6h])) >= 4',
        "info",
        "Most predicted timeouts do not happen.",
        "{{ $value | humanizePercentage }} of the predicted {{ $labels.kind }} timeouts in {{ $labels.cluster }} were "
        "averted in six hours: members are often late and come back.",
        "predictions-unreliable.md",
        of_group=False,
    ),
    Alert(
        "KardiaFeedStale",
        "max by (cluster) (kardia_feed_stale) == 1",
        "critical",
        "Kardia has not heard from its sources; group alerts are held back.",
        "Nothing of the last {{ with query (printf `kardia_feed_age_seconds{cluster=%q}` $labels.cluster) }}"
        f"{{{{ with . | first | value }}}}{lasted('.')}{{{{ end }}}}{{{{ end }}}} is in the tables of "
        "{{ $labels.cluster }}. "
        "Evictions in this time are not seen yet.",
        "feed-stale.md",
        hold="15s",
        of_group=False,
    ),
    Alert(
        "KardiaTableUnavailable",
        "min by (table) (kardia_table_available) == 0",
        "warning",
        "Kardia cannot read one of its tables.",
        "The table {{ $labels.table }} does not exist or cannot be read. Answers that need it are refused with 503.",
        "feed-stale.md",
        hold="1m",
        of_group=False,
    ),
    Alert(
        "KardiaArchiveBehind",
        # A run that comes to its end leaves what came meanwhile: so the least of some time says how far runs come.
        f"{_least('30m')} > {ARCHIVE_BEHIND_RECORDS} and {_least('15m')} > {_least('15m', ' offset 15m')}",
        "warning",
        "The table events falls behind, and does not catch up.",
        "{{ $value | humanize }} records of the topic are in the live tables of the job at {{ $labels.instance }} and "
        "not in the table events, after the best of its runs in half an hour, and they become more. What the topic "
        "drops before is missing in events for good.",
        "archive-behind.md",
        hold="10m",
        of_group=False,
    ),
    Alert(
        "KardiaNotifyUndelivered",
        "max by (target) (time() - (kardia_notify_failing_since_timestamp_seconds > 0)) > 60 "
        'or max by (target) (increase(kardia_notify_dropped_total{target!=""}[10m])) > 0',
        "warning",
        "Alerts of Kardia do not reach one of those who are to be told.",
        "kardia notify has told {{ $labels.target }} of an alert that it has not taken for a minute, or has given up "
        "some in the last ten. Targets are numbered as kardia notify was given them; its log says what they answer.",
        "notify-undelivered.md",
        of_group=False,
    ),
    Alert(
        "KardiaAbsent",
        # Without these series every other rule here is silent. They are missing too while nothing has been read.
        "absent(kardia_feed_age_seconds)",
        "critical",
        "Nobody tells how any consumer group is: the series of Kardia are gone.",
        "Prometheus gets no series of `kardia serve` any more, or it has never read anything. No other alert about "
        "groups can come from here; what `kardia notify` tells still does.",
        "absent.md",
        hold="1m",
        of_group=False,
    ),
)


def either_held(description: str, unknown: str = UNKNOWN) -> str:
    """A template: what is so, or that it was and nobody knows. How many it was about is not known any more either."""
    return f"{{{{ if eq $value 0.0 }}}}{unknown}{{{{ else }}}}{description}{{{{ end }}}}"


def build(runbooks: str = "", kardia: str = URL) -> dict[str, Any]:
    """The rule file; `runbooks` and `kardia` are the addresses in front of the links."""
    rules = [_rule(alert, runbooks or f"{kardia}/runbooks", kardia) for alert in ALERTS]
    return {"groups": [{"name": "kardia", "interval": "5s", "rules": rules}]}


def for_operator(built: dict[str, Any]) -> dict[str, Any]:
    """The same rules as an object of the Prometheus Operator. Which labels its Prometheus selects rules by is its own
    affair: put them in with kustomize or `kubectl label`."""
    head = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "kardia"}}
    return head | {"spec": built}


def _rule(alert: Alert, runbooks: str, kardia: str) -> dict[str, Any]:
    annotations = {
        "summary": alert.summary,
        "description": either_held(alert.description, alert.unknown) if alert.is_held else alert.description,
        "runbook_url": f"{runbooks}/{alert.runbook}",
    }
    if alert.of_group:
        annotations |= {"page_url": kardia + PAGE, "incident_url": kardia + INCIDENT, "dashboard_url": DASHBOARD}
    rule: dict[str, Any] = {"alert": alert.name, "expr": alert.expr}
    if alert.hold != "0s":
        rule["for"] = alert.hold
    if alert.linger != "0s":
        rule["keep_firing_for"] = alert.linger
    return rule | {"labels": {"severity": alert.severity}, "annotations": annotations}
