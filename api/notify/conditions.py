"""Conditions of alerts: findings about groups, sources and the feed, from the current view at an instant. Pure.

A new alert is a finding here, a rule in `dashboards/rules.py` and a page in `docs/runbooks`. Names, severities and
labels are those of the Prometheus rules (a test compares them), so Alertmanager takes an alert for one, whoever told it
first. `KardiaPredictionsUnreliable` is a score over hours and is left to Prometheus; so are `KardiaTableUnavailable`
(without tables nothing is found and nothing resolved), `KardiaAbsent` (whether `kardia serve` can be scraped is nothing
that tables say), `KardiaNotifyUndelivered` (whom this notifier cannot reach) and `KardiaArchiveBehind` (what the job
counts, over an hour).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from api.answers import dangers, lag
from api.present import deadlines, storms
from api.present.current import ClusterView, GroupView
from api.present.freshness import Freshness
from api.store import Store
from kardia.instants import to_rfc3339
from kardia.lag.commits import ERR, REWIND, STALL, STOP
from kardia.story import words

STUCK_AFTER_MS = 20_000
STALLED_AFTER_MS = 15_000
EVICTED_WITHIN_MS, EVICTED_MEMBERS = 600_000, 2
RECENT_MS = 300_000
"""How long a fenced member or a gap is news."""

NOUNS = {
    "eviction": ("eviction", "evictions"),
    "fenced": ("static member fenced", "static members fenced"),
}
"""What happened once, and more than once."""

LAG_STUCK = "KafkaGroupLagStuck"
"""The alert that takes the ends of partitions."""

FRESH_SHARE = 0.5
"""A feed that was stale is fresh again when its age is at most this share of the bound."""

MEMBERS_MAX = 20
"""Members named in one finding; the incident report has all of them."""


class Kind(NamedTuple):
    """One alert: its texts, how long its condition must last, and how long it stays after the condition is gone."""

    severity: str
    summary: str
    runbook: str
    hold_ms: int = 0
    linger_ms: int = 0
    names_at_once: bool = False
    """Whether a member that comes into it is told at once: its time runs out before the next refresh."""


KINDS = {
    "KafkaGroupSessionTimeoutImminent": Kind(
        "critical",
        "A consumer group member is about to be evicted for silence.",
        "session-timeout-imminent.md",
        linger_ms=30_000,
        names_at_once=True,
    ),
    "KafkaGroupPollTimeoutImminent": Kind(
        "warning",
        "A consumer group member has not polled for most of its poll interval.",
        "poll-timeout-imminent.md",
        linger_ms=30_000,
        names_at_once=True,
    ),
    "KafkaGroupZombieMember": Kind(
        "warning", "A consumer group member heartbeats and does no work.", "zombie-member.md", linger_ms=30_000
    ),
    "KafkaGroupRebalanceStuck": Kind(
        "critical", "A consumer group rebalances and does not get done.", "rebalance-stuck.md"
    ),
    "KafkaGroupPendingMemberBlocks": Kind(
        "warning",
        "A rebalance waits for a member id that nobody has joined with.",
        "pending-member-blocks.md",
        hold_ms=3_000,
    ),
    "KafkaGroupRebalanceStorm": Kind("warning", "A consumer group rebalances again and again.", "rebalance-storm.md"),
    "KafkaGroupStaticMemberFenced": Kind(
        "warning", "A static member was fenced: two processes use one group.instance.id.", "static-member-fenced.md"
    ),
    "KafkaGroupEvictions": Kind(
        "warning", "A consumer group keeps losing members that did not ask to go.", "evictions.md"
    ),
    LAG_STUCK: Kind(
        "warning",
        "A consumer group has something to read, and does not go forward.",
        "lag-stuck.md",
        hold_ms=300_000,
    ),
    "KardiaSourceStalled": Kind(
        "warning", "One of the logs that Kardia reads has stalled.", "source-stalled.md", hold_ms=5_000
    ),
    "KardiaLogGap": Kind("warning", "A part of a log was lost; verdicts about that time are unknown.", "log-gap.md"),
    "KardiaFeedStale": Kind(
        "critical",
        "Kardia has not heard from its sources; group alerts are held back.",
        "feed-stale.md",
        hold_ms=15_000,
    ),
}


class Finding(NamedTuple):
    """A condition that holds. `labels` without name and severity; group and source are empty where there is none."""

    alert: str
    cluster: str
    group: str
    source: str
    description: str
    members: tuple[str, ...] = ()
    """Whom it is about: static id, or client id and host."""

    member_ids: tuple[str, ...] = ()
    """The same, by their ids."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes two findings the same."""
        return self.alert, self.cluster, self.group, self.source


class Found(NamedTuple):
    """Everything that is so, and where nothing may be concluded from what is not found."""

    findings: tuple[Finding, ...]
    held: Mapping[tuple[str, str], int | None]
    """(cluster, group), or (cluster, "") for all its groups: evidence is missing, so nothing is raised or resolved.
    Value: up to when there was evidence, epoch ms; None if there never was."""
    blind: bool = False
    """The tables cannot be read: nothing may be concluded about anything."""
    stale: frozenset[str] = frozenset()
    """Clusters of which nothing is heard."""
    lag_unknown: Mapping[tuple[str, str], int | None] = MappingProxyType({})
    """The same as `held`, of what is said about lag alone: ends are not seen."""

    def is_held(self, finding: Finding) -> bool:
        """Whether evidence is missing. Only groups are held back while tables can be read: what is wrong with the feed
        is known all the better."""
        if self.blind or not finding.group:
            return self.blind
        unknown = finding.alert == LAG_STUCK
        return any(place in self.held or (unknown and place in self.lag_unknown) for place in _places(finding))

    def is_feed_silent(self, finding: Finding) -> bool:
        """Whether evidence is missing because nothing at all is heard, and not only of this group."""
        return self.blind or (finding.cluster, "") in self.held

    def known_to_ms(self, finding: Finding) -> int | None:
        """Up to when there was evidence of something that is held back; None if that cannot be told."""
        sources = (self.held, self.lag_unknown) if finding.alert == LAG_STUCK else (self.held,)
        instants = [source.get(place) for source in sources for place in _places(finding)]
        return min((at for at in instants if at is not None), default=None)


BLIND = Found((), {}, blind=True)
"""What is found where there are no tables."""


def _places(finding: Finding) -> tuple[tuple[str, str], tuple[str, str]]:
    return (finding.cluster, ""), (finding.cluster, finding.group)


def find(store: Store, stale_before: Collection[str] = frozenset()) -> Found:
    """All findings at present. `stale_before`: clusters that were stale at the last look: they are until their age is
    well below the bound, so that one that is about as old as the bound does not come and go."""
    findings: list[Finding] = []
    held: dict[tuple[str, str], int | None] = {}
    lag_unknown: dict[tuple[str, str], int | None] = {}
    stale = set[str]()
    for cluster in store.current.clusters.values():
        freshness = store.freshness(cluster)
        if cluster.cluster_id in stale_before:
            freshness = freshness._replace(stale_after_ms=round(FRESH_SHARE * freshness.stale_after_ms))
        findings += _of_feed(cluster, freshness)
        if freshness.stale:
            stale.add(cluster.cluster_id)
            held[cluster.cluster_id, ""] = freshness.complete_as_of_ms
            continue
        in_gap = _had_gap(cluster, freshness.now_ms)
        for view in cluster.groups.values():
            if (in_gap and view.statuses()["unknown"]) or _is_lost(view, cluster.reach.last_gap_at_ms):
                held[cluster.cluster_id, view.group_id] = cluster.reach.last_gap_at_ms
            if not _is_calm(view):
                findings += _of_group(view, freshness.now_ms)
        known = lag.known(cluster, freshness, store.settings.lag_stale_after_ms)
        findings += _of_lag(cluster, known, lag_unknown)
    return Found(tuple(findings), held, stale=frozenset(stale), lag_unknown=lag_unknown)


def _of_lag(cluster: ClusterView, known: lag.Known, unknown: dict[tuple[str, str], int | None]) -> Iterator[Finding]:
    """Groups that do not go forward; notes of which that is not known."""
    if known.stale:
        unknown[cluster.cluster_id, ""] = known.as_of_ms
        return
    for view in cluster.lags.groups.values():
        status = lag.status_of(view, known)
        if status == lag.NOT_KNOWN:
            unknown[cluster.cluster_id, view.group_id] = None
        elif status == ERR:
            counts = {word: view.verdicts[word] for word in (STOP, STALL, REWIND) if view.verdicts[word]}
            told = ", ".join(f"{count} {word}" for word, count in counts.items())
            which = words.count(sum(counts.values()), "partition")
            text = (
                f"Group {view.group_id}: {which} of {len(view.rows)} with something to read and no way forward: {told}."
            )
            yield Finding(LAG_STUCK, cluster.cluster_id, view.group_id, "", text)


def _of_feed(cluster: ClusterView, freshness: Freshness) -> Iterator[Finding]:
    name = cluster.cluster_id
    if freshness.stale:
        text = f"Nothing new is in the tables of {name}. Evictions in this time are not seen yet."
        yield Finding("KardiaFeedStale", name, "", "", text)
    for source, at_ms in cluster.reach.live_sources().items():
        age_ms = freshness.now_ms - at_ms
        if age_ms > STALLED_AFTER_MS:
            text = f"{source} of {name} has been read up to {_span(age_ms)} ago only."
            yield Finding("KardiaSourceStalled", name, "", source, text)
    if _had_gap(cluster, freshness.now_ms):
        yield Finding("KardiaLogGap", name, "", "", f"A part of the logs of {name} could not be read.")


def _had_gap(cluster: ClusterView, now_ms: int) -> bool:
    """Whether a part of a log was lost a short time ago."""
    gap_at_ms = cluster.reach.last_gap_at_ms
    return gap_at_ms is not None and now_ms - gap_at_ms < RECENT_MS


def _is_lost(view: GroupView, gap_at_ms: int | None) -> bool:
    """Whether a member that was known has not been heard since a gap. That may last longer than the gap is news: who is
    dead says nothing, and its end is seen with the next rebalance. Or whether one was in danger when it came: a member
    is written anew within seconds only, and what is said of it until then is from before."""
    if view.statuses().keys() <= {"ok"}:
        return False
    return any(
        _has_gap(row)
        if row.status == "unknown"
        else row.status != "ok" and gap_at_ms is not None and row.at_ms <= gap_at_ms
        for member_id, row in view.health.items()
    )


def _has_gap(row: Any) -> bool:
    """Whether an unknown member was known once: it was heard, and its timeout was seen, which of one that has an epoch
    nothing may say."""
    was_seen = row.session_timeout_ms is not None or row.member_epoch is not None
    return was_seen and row.last_heard_at_ms is not None


def _is_calm(view: GroupView) -> bool:
    """Whether nothing can be found about a group: true of nearly all of a large fleet, and said quickly."""
    may_storm = len(view.steps) >= storms.REBALANCES
    rebalances = may_storm or view.rebalancing_since_ms is not None
    return not (view.predictions or view.recent or rebalances or deadlines.zombies(view))


def _of_group(view: GroupView, now_ms: int) -> Iterator[Finding]:
    def found(alert: str, text: str, member_ids: list[str] | None = None) -> Finding:
        ids = tuple((member_ids or [])[:MEMBERS_MAX])
        who = tuple(name_of(view, member_id) for member_id in ids)
        return Finding(alert, view.cluster_id, view.group_id, "", f"Group {view.group_id}: {text}", who, ids)

    for kind, alert in (("session", "KafkaGroupSessionTimeoutImminent"), ("poll", "KafkaGroupPollTimeoutImminent")):
        near = sorted((row.deadline_at_ms, row.member_id) for row in deadlines.endangered(view) if row.kind == kind)
        if near:
            first = _when(near[0][0], now_ms)
            whose = words.count(len(near), "member")
            text = f"the {kind} timeout of {whose} is near, {'the first ' if len(near) > 1 else ''}{first}."
            yield found(alert, text, [member_id for _, member_id in near])
    zombies = [row.member_id for row in deadlines.zombies(view)]
    if zombies:
        does = "heartbeats and does" if len(zombies) == 1 else "heartbeat and do"
        yield found("KafkaGroupZombieMember", f"{words.count(len(zombies), 'member')} {does} no work.", zombies)
    since_ms = view.rebalancing_since_ms
    if since_ms is not None and now_ms - since_ms > STUCK_AFTER_MS:
        waits_for = [str(one["member_id"]) for one in dangers.waits_for(view)]
        yield found("KafkaGroupRebalanceStuck", f"rebalancing for {_span(now_ms - since_ms)}.", waits_for)
    if view.pending_members and view.state_name == "PreparingRebalance":
        ids = words.count(view.pending_members, "member id")
        yield found("KafkaGroupPendingMemberBlocks", f"{ids} handed out and never used.")
    stormy = storms.recent(view, now_ms)
    if len(stormy) >= storms.REBALANCES:
        text = f"it rebalanced on {len(stormy)} occasions in {storms.WITHIN_MS // 60_000} minutes."
        whom_began = dict.fromkeys(step.member_id for step in stormy if step.member_id)
        yield found("KafkaGroupRebalanceStorm", text, list(whom_began))
    for alert, happened, within_ms, at_least in (
        ("KafkaGroupEvictions", "eviction", EVICTED_WITHIN_MS, EVICTED_MEMBERS),
        ("KafkaGroupStaticMemberFenced", "fenced", RECENT_MS, 1),
    ):
        recent = [whom for what, at_ms, whom in view.recent if what == happened and now_ms - at_ms < within_ms]
        if len(recent) >= at_least:
            text = f"{words.count(len(recent), *NOUNS[happened])} in {within_ms // 60_000} minutes."
            yield found(alert, text, list(dict.fromkeys(filter(None, recent))))


def _span(duration_ms: int) -> str:
    """A duration in whole seconds: its end is the present."""
    return words.span(duration_ms // 1_000 * 1_000)


def _when(deadline_at_ms: int, now_ms: int) -> str:
    """When a deadline is, as an instant too: a notice may be delivered late, and is read later still. One that has
    passed was not yet followed by its end, or by a request that averts it."""
    at, left_ms = to_rfc3339(deadline_at_ms), deadline_at_ms - now_ms
    if left_ms < 0:
        return f"was due at {at}, {-left_ms / 1_000:.1f} s ago, and has no outcome yet"
    return f"at {at}, in {left_ms / 1_000:.1f} s"


def name_of(view: GroupView, member_id: str) -> str:
    """Static id, or client id and host; a host may be hidden or not seen yet."""
    life: Any = view.lives.get(member_id) or view.ended.get(member_id)
    if life is None:
        return member_id
    if life.group_instance_id:
        return str(life.group_instance_id)
    client = life.client_id or member_id
    return f"{client} at {life.client_host}" if life.client_host else str(client)
