"""What is so now: groups, members, deadlines and counts, kept in memory and folded from new rows only.

Folding the same row twice changes nothing but the ledger, and the store never gives a row twice. Nothing here reads a
file, a clock, or HTTP. What is closed is forgotten in the end (`Standing`), so memory follows what is alive.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self, TypeVar

from api.distribution import KNOWN_AFTER_BOUNDS_MS, LEAD_BOUNDS_MS, REBALANCE_BOUNDS_MS, Distribution
from api.freshness import Reach
from api.seen import Seen
from api.settings import ApiSettings
from api.standing import IS_CLOSED, Standing
from kardia.tables import PREDICTION_KINDS, TABLES

Found = TypeVar("Found")

EVICTION_CAUSES = (
    "session_expired",
    "poll_timeout",
    "rebalance_timeout",
    "sync_timeout",
    "join_timeout",
    "fenced",
    "rejected",
    "removed_by_admin",
)
"""End causes that took a membership away from a consumer that had not asked to go. `unknown` is none of them: an
eviction is never invented. A poll timeout is one, although the client itself sends the leave."""

STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Assigning", "Reconciling", "Unknown")
"""States that have a series of their own; a word outside this list is shown as it is and counted as Unknown."""


RECENT_KEPT = 32
"""What happened to a group lately, kept to count it within some minutes."""


class StateNow(NamedTuple):
    """State of a group, since when, why, and how sure that is."""

    name: str
    since_at_ms: int
    cause: str
    certainty: str


class Remembering:
    """A view that keeps what follows from it until it changes: every list and scrape asks for it."""

    __slots__ = ("_remembered",)

    def __init__(self) -> None:
        self._remembered: dict[str, Any] = {}

    def remembered(self, name: str, count: Callable[[Self], Found]) -> Found:
        """What `count` finds in the view as it stands, counted once per change."""
        if name not in self._remembered:
            self._remembered[name] = count(self)
        found: Found = self._remembered[name]
        return found

    def changed(self) -> None:
        """The view is not what it was."""
        self._remembered.clear()


class Present(Remembering):
    """Who is present in a group, and how: what samples of health change, and what they are held against."""

    __slots__ = ("ahead", "health", "lives", "predictions", "state")

    def __init__(self) -> None:
        self.state: Any = None
        """Latest transition of the group itself."""
        self.ahead: StateNow | None = None
        """A state that members' health shows and that is not settled yet: a rebalance is under way, and what started it
        is known when its JoinGroups are answered."""
        self.lives: dict[str, Any] = {}
        """Member id -> row of its present membership."""
        self.health: dict[str, Any] = {}
        """Member id -> latest health row of a present member."""
        self.predictions: dict[tuple[str, str], Any] = {}
        """(member id, kind) -> open prediction."""
        super().__init__()

    def status_of(self, member_id: str) -> str:
        """Status of a present member; unknown until its first health row."""
        row = self.health.get(member_id)
        return "unknown" if row is None else str(row.status)

    def statuses(self) -> Counter[str]:
        """Present members by status."""
        return self.remembered("statuses", _statuses)

    def first_deadline_ms(self) -> int | None:
        """The deadline of a present member that comes first; None without one. Members of whom nothing is known since
        a gap have none."""
        return self.remembered("first_deadline", _first_deadline_ms)

    def aside(self) -> Present:
        """A copy for new samples to be folded into; shares what samples do not change."""
        copy = Present()
        copy.state, copy.ahead = self.state, self.ahead
        copy.lives, copy.health, copy.predictions = self.lives, dict(self.health), self.predictions
        return copy

    def take(self, copy: Present) -> None:
        """Show what was folded into a copy. The copy keeps what was shown before: to free it takes ten times as long as
        this does, and may be done bit by bit."""
        self.health, copy.health = copy.health, self.health
        self.ahead, self._remembered = copy.ahead, copy._remembered


class GroupView(Present):
    """One group as it stands."""

    __slots__ = (
        "cluster_id",
        "evictions",
        "fenced",
        "folded_id",
        "group_id",
        "member_seconds_lost",
        "rebalance",
        "rebalances",
        "recent",
        "shard",
    )

    def __init__(self, cluster_id: str, group_id: str, shard: int) -> None:
        self.cluster_id = cluster_id
        self.group_id = group_id
        self.folded_id = group_id.casefold()
        """What a search looks into."""
        self.shard = shard
        self.rebalance: Any = None
        """The latest rebalance, running or not."""
        self.rebalances: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.fenced = 0
        """Static members that went on sending after another process had taken their instance id."""
        self.recent: deque[tuple[str, int]] = deque(maxlen=RECENT_KEPT)
        """(eviction, rebalance or fenced; when), the latest."""
        self.member_seconds_lost = 0
        """Sum over completed rebalances."""
        super().__init__()

    @property
    def state_now(self) -> StateNow | None:
        """State of the group; None before anything is known of it."""
        if self.ahead is not None or self.state is None:
            return self.ahead
        row = self.state
        return StateNow(str(row.to_state), row.at_ms, row.cause, row.certainty)

    @property
    def state_name(self) -> str:
        """Name of its state; Unknown before anything is known of it."""
        if self.ahead is not None:
            return self.ahead.name
        return "Unknown" if self.state is None else str(self.state.to_state)

    @property
    def rebalancing_since_ms(self) -> int | None:
        """Since when it rebalances; None if it does not. The state shows it before the ledger does: a rebalance gets
        its row when its first JoinGroup is answered."""
        latest, now = self.rebalance, self.state_now
        if latest is not None and latest.completed_at_ms is None:
            return int(latest.started_at_ms)
        if now is not None and now.name in ("PreparingRebalance", "CompletingRebalance"):
            return now.since_at_ms
        return None

    @property
    def _latest_health(self) -> Any:
        return max(self.health.values(), key=lambda row: (row.at_ms, row.batch_id), default=None)

    @property
    def pending_members(self) -> int:
        """Ids handed out to clients that did not come back, as the latest health row of the group says."""
        latest = self._latest_health
        return 0 if latest is None else latest.pending_members or 0

    @property
    def pending(self) -> list[dict[str, Any]]:
        """Those of them that last longest."""
        latest = self._latest_health
        return [] if latest is None else [dict(entry) for entry in latest.pending or ()]


def _statuses(view: Present) -> Counter[str]:
    found = [row.status for row in view.health.values()]  # of present members only
    counts: Counter[str] = Counter()
    for status in set(found):
        counts[status] = found.count(status)
    if len(view.lives) > len(found):
        counts["unknown"] += len(view.lives) - len(found)
    return counts


def _first_deadline_ms(view: Present) -> int | None:
    first_ms = _NEVER_MS
    for row in view.health.values():
        if row.status != "unknown":
            if (session_ms := row.session_deadline_at_ms) is not None and session_ms < first_ms:
                first_ms = session_ms
            if (poll_ms := row.poll_deadline_at_ms) is not None and poll_ms < first_ms:
                first_ms = poll_ms
    for (member_id, kind), row in view.predictions.items():
        if kind == "rebalance" and member_id in view.health and row.deadline_at_ms is not None:
            first_ms = min(first_ms, row.deadline_at_ms)
    return None if first_ms == _NEVER_MS else first_ms


_NEVER_MS = 1 << 62


class Sampled(NamedTuple):
    """A group, and what it will be when the batch is shown."""

    view: GroupView
    copy: Present


class ClusterView(Remembering):
    """One cluster as it stands."""

    def __init__(self, cluster_id: str, settings: ApiSettings) -> None:
        self.cluster_id = cluster_id
        self.reach = Reach(settings.source_retired_ms)
        self.groups: dict[str, GroupView] = {}
        self.rebalances: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.predictions: Counter[tuple[str, str]] = Counter()
        """(kind, outcome) -> predictions that reached it."""
        self.rebalance_ms = Distribution(REBALANCE_BOUNDS_MS)
        self.eviction_known_after_ms = Distribution(KNOWN_AFTER_BOUNDS_MS)
        self.lead_ms = {kind: Distribution(LEAD_BOUNDS_MS) for kind in PREDICTION_KINDS}
        self.by_name: list[tuple[tuple[Any, ...], GroupView]] = []
        """Groups in the order of their names, as far as `api.roster` has sorted them."""
        self.lived = Seen()
        """(group, member id) of lives that are over, or that another one of the same id began beside."""
        super().__init__()

    def only_life(self, group: GroupView, member_id: str) -> Any:
        """Row of the one life that a present member id has had; None if it is not present or there may be others."""
        life = group.lives.get(member_id)
        return None if life is None or self.lived.may_know(group.group_id, member_id) else life

    def group(self, row: Any) -> GroupView:
        """The group a row is about, made when it is first heard of."""
        view = self.groups.get(row.group_id)
        if view is None:
            view = self.groups[row.group_id] = GroupView(self.cluster_id, row.group_id, row.shard)
        return view


class Current:
    """All clusters as they stand at `batch_id`."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings
        self._standing = {name: Standing(TABLES[name], settings.closed_kept_max) for name in IS_CLOSED}
        self.clusters: dict[str, ClusterView] = {}
        self.batch_id = -1

    def fold(self, rows: Mapping[str, Iterable[Any]], batch_id: int, sampled: Iterable[Sampled] = ()) -> None:
        """Take new rows of all tables in; `members` come before `health`, which is only kept for present members.

        `sampled` are groups of which there is nothing but new health, folded aside already.
        """
        for view, copy in sampled:
            view.take(copy)
        for cluster_id, found in _by_cluster(rows.get("progress", ())).items():
            self._cluster(cluster_id).reach.fold(found)
        for name, take in (
            ("transitions", self._on_transition),
            ("members", self._on_member),
            ("rebalances", self._on_rebalance),
            ("predictions", self._on_prediction),
            ("health", self._on_health),
        ):
            for row in sorted(rows.get(name, ()), key=_order):
                take(self._cluster(row.cluster_id), row)
        self.batch_id = batch_id
        for cluster in self.clusters.values():
            cluster.changed()

    def fold_aside(self, samples: Mapping[tuple[str, str], list[Any]]) -> Iterator[Sampled]:
        """Fold health rows of groups of which the batch says nothing else, one group after the other, into copies.

        Health is nearly all that a large fleet writes: folded at once, a second of 100,000 members would hold every
        request up for tenths of a second. Nothing of it is seen before `fold` is given what this gave.
        """
        for (cluster_id, group_id), rows in samples.items():
            view = self.clusters[cluster_id].groups[group_id]
            copy = view.aside()
            if len(rows) > 1:
                rows.sort(key=_order)
            for row in rows:
                _sample(copy, row)
            copy.statuses()
            copy.first_deadline_ms()
            yield Sampled(view, copy)

    def only_sampled(self, rows: Mapping[str, list[Any]]) -> dict[tuple[str, str], list[Any]]:
        """Health rows by (cluster, group), of known groups that no other table tells of in this batch."""
        told = {
            (row.cluster_id, row.group_id)
            for name in ("transitions", "members", "rebalances", "predictions")
            for row in rows.get(name, ())
        }
        found: dict[tuple[str, str], list[Any]] = {}
        for row in rows.get("health", ()):
            place = (row.cluster_id, row.group_id)
            if place in found:
                found[place].append(row)
            elif place not in told and (cluster := self.clusters.get(place[0])) and place[1] in cluster.groups:
                found[place] = [row]
        return found

    def _cluster(self, cluster_id: str) -> ClusterView:
        view = self.clusters.get(cluster_id)
        if view is None:
            view = self.clusters[cluster_id] = ClusterView(cluster_id, self._settings)
        return view

    def _on_transition(self, cluster: ClusterView, row: Any) -> None:
        group = cluster.group(row)
        group.changed()
        if row.entity == "member" and row.cause == "fenced":
            group.fenced += 1
            group.recent.append(("fenced", row.at_ms))
        if row.entity == "group" and (group.state is None or row.seq >= group.state.seq):
            group.state = row
            group.ahead = None

    def _on_member(self, cluster: ClusterView, row: Any) -> None:
        stands, before = self._standing["members"].fold(row)
        if not stands:
            return
        group = cluster.group(row)
        group.changed()
        life = group.lives.get(row.member_id)
        if row.ended_at_ms is None and (life is None or life.joined_at_ms <= row.joined_at_ms):
            group.lives[row.member_id] = row
        if row.ended_at_ms is not None or (life is not None and life.joined_at_ms != row.joined_at_ms):
            cluster.lived.add(row.group_id, row.member_id)
        if row.ended_at_ms is not None and life is not None and life.joined_at_ms == row.joined_at_ms:
            del group.lives[row.member_id]
            group.health.pop(row.member_id, None)
        if _closes(before, row, "ended_at_ms") and row.end_cause in EVICTION_CAUSES:
            cluster.evictions[row.end_cause] += 1
            group.evictions[row.end_cause] += 1
            group.recent.append(("eviction", row.ended_at_ms))
            cluster.eviction_known_after_ms.add(row.known_at_ms - row.ended_at_ms)

    def _on_rebalance(self, cluster: ClusterView, row: Any) -> None:
        stands, before = self._standing["rebalances"].fold(row)
        if not stands:
            return
        group = cluster.group(row)
        group.changed()
        latest = group.rebalance
        if latest is None or (row.started_at_ms, row.generation_before) >= (
            latest.started_at_ms,
            latest.generation_before,
        ):
            group.rebalance = row
        if _closes(before, row, "completed_at_ms"):
            cluster.rebalances[row.trigger] += 1
            group.rebalances[row.trigger] += 1
            group.recent.append(("rebalance", row.completed_at_ms))
            cluster.rebalance_ms.add(row.completed_at_ms - row.started_at_ms)
            group.member_seconds_lost += row.member_seconds_lost or 0

    def _on_prediction(self, cluster: ClusterView, row: Any) -> None:
        stands, before = self._standing["predictions"].fold(row)
        if not stands:
            return
        group, place = cluster.group(row), (row.member_id, row.kind)
        group.changed()
        present = group.predictions.get(place)
        if row.outcome == "open":
            if present is None or present.predicted_at_ms <= row.predicted_at_ms:
                group.predictions[place] = row
            return
        if present is not None and present.predicted_at_ms == row.predicted_at_ms:
            del group.predictions[place]
        if before is None or before.outcome == "open":
            cluster.predictions[row.kind, row.outcome] += 1
            if row.lead_ms is not None:
                cluster.lead_ms[row.kind].add(row.lead_ms)

    def _on_health(self, cluster: ClusterView, row: Any) -> None:
        _sample(cluster.group(row), row)


def _sample(group: Present, row: Any) -> None:
    """Take a health row in."""
    if row.member_id not in group.lives:
        return
    group.changed()
    present = group.health.get(row.member_id)
    if present is not None and present.at_ms > row.at_ms:
        return
    if row.status == "ended":
        group.health.pop(row.member_id, None)
        return
    group.health[row.member_id] = row
    settled, ahead = group.state, group.ahead
    if settled is None or row.at_ms <= (settled.at_ms if ahead is None else ahead.since_at_ms):
        return
    if row.group_state == settled.to_state:
        group.ahead = None
    elif ahead is None or ahead.name != row.group_state:
        group.ahead = StateNow(str(row.group_state), row.at_ms, "seen, its cause is not known yet", "provisional")


def _order(row: Any) -> tuple[int, int]:
    return row.known_at_ms, row.batch_id


def _closes(before: Any, row: Any, column: str) -> bool:
    """Whether this row is the first of its thing that is closed: the instant at which it is counted, once."""
    return getattr(row, column) is not None and (before is None or getattr(before, column) is None)


def _by_cluster(rows: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.cluster_id, []).append(row)
    return found
