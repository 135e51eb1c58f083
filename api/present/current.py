"""What is so now: groups, members, deadlines and counts, kept in memory.

A view that is shown does not change any more, so that any thread may read it; `api.present.folding` makes the next one
beside it. What follows from a view is counted when it is first asked for, and kept. Nothing here reads a file, a clock,
or HTTP. What is closed is forgotten in the end (`Standing`), so memory follows what is alive.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple, Self, TypeVar

from api.present.bloom_filter import BloomFilter
from api.present.distribution import KNOWN_AFTER_BOUNDS_MS, LEAD_BOUNDS_MS, REBALANCE_BOUNDS_MS, Distribution
from api.present.freshness import BESIDE_BROKERS, Reach
from api.present.health import shown_as
from api.present.lagging import Lags
from api.present.member_counts import Tally, Told, counted, told
from api.present.standing import IS_CLOSED, Standing
from api.settings import ApiSettings
from kardia.certainty import Certainty
from kardia.events import broker_of
from kardia.rollouts import Step
from kardia.tables import PREDICTION_KINDS, TABLES

Found = TypeVar("Found")

STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Assigning", "Reconciling", "Unknown")
"""States that have a series of their own; a word outside this list is shown as it is and counted as Unknown."""

UNKNOWN_STATE = "Unknown"

UNHEARD = "coordinator_unheard"
"""Why the state of a group is not known that was Stable: a session deadline passed, and its broker wrote nothing."""

RECENT_KEPT = 32
"""What happened to a group lately, kept to count it within some minutes."""

ENDED_KEPT = 32
"""Lives of a group that are over, kept to say what became of a member."""


class StateNow(NamedTuple):
    """State of a group, since when, why, and how sure that is."""

    name: str
    since_at_ms: int
    cause: str
    certainty: Certainty


Overview = Callable[["ClusterView"], Generator[None, None, Found]]
"""Something that is counted over all groups of a cluster, in pieces: it yields wherever it may be interrupted."""

OVERVIEWS_FOR = 30
"""Batches for which an overview is counted ahead after somebody asked for it."""


class GroupView:
    """One group as it stands."""

    __slots__ = (
        "_is_shared",
        "_remembered",
        "_told",
        "ahead",
        "cluster_id",
        "ended",
        "evictions",
        "fenced",
        "group_id",
        "health",
        "lives",
        "member_seconds_lost",
        "predictions",
        "rebalance",
        "rebalances",
        "recent",
        "settled",
        "shard",
        "state",
        "steps",
    )

    def __init__(self, cluster_id: str, group_id: str, shard: int) -> None:
        self.cluster_id = cluster_id
        self.group_id = group_id
        self.shard = shard
        self.state: Any = None
        """Latest transition of the group itself."""
        self.ahead: StateNow | None = None
        """A state that members' health shows and that is not settled yet: a rebalance is under way, and what started it
        is known when its JoinGroups are answered."""
        self.health: dict[str, Any] = {}
        """Member id -> latest health row of a present member; changed by `take` and `drop`."""
        self._told: dict[str, Told] = {}
        """Member id -> what that row says."""
        self.lives: dict[str, Any] = {}
        """Member id -> row of its present membership."""
        self.predictions: dict[tuple[str, str], Any] = {}
        """(member id, kind) -> open prediction."""
        self.rebalance: Any = None
        """The latest rebalance, running or not."""
        self.rebalances: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.fenced = 0
        """Static members that went on sending after another process had taken their instance id."""
        self.recent: deque[tuple[str, int, str]] = deque(maxlen=RECENT_KEPT)
        """(eviction or fenced; when; id of the member that it happened to), the latest."""
        self.steps: deque[Step] = deque(maxlen=RECENT_KEPT)
        """Completed rebalances, the latest."""
        self.ended: dict[str, Any] = {}
        """Member id -> row of a life that is over, the latest `ENDED_KEPT`."""
        self.member_seconds_lost = 0
        """Sum over completed rebalances."""
        self.settled: frozenset[tuple[str, str]] = frozenset()
        """(member id, session or poll): of a view of the past, deadlines that are exact for its instant."""
        self._is_shared = False
        self._remembered: dict[str, Any] = {}

    def is_least(self, health: Any, kind: str) -> bool:
        """Whether a deadline of a member may be later than its health row says, because a member in good health is
        written down every few seconds only. Not while a prediction is open, which the next request would close, nor
        when it is overdue."""
        place = (health.member_id, kind)
        if place in self.settled or place in self.predictions:
            return False
        return kind != "session" or health.status != "overdue"

    def copied_on_write(self) -> GroupView:
        """The same group, for a next batch to be folded into. What samples of health do not change is shared, until
        `own_copy`: nearly all that a large fleet brings are samples."""
        other = GroupView.__new__(GroupView)
        other.cluster_id, other.group_id, other.shard = self.cluster_id, self.group_id, self.shard
        other.state, other.ahead, other.health = self.state, self.ahead, self.health.copy()
        other._told = self._told.copy()
        other.lives, other.predictions, other.rebalance = self.lives, self.predictions, self.rebalance
        other.rebalances, other.evictions, other.fenced = self.rebalances, self.evictions, self.fenced
        other.recent, other.member_seconds_lost, other.ended = self.recent, self.member_seconds_lost, self.ended
        other.settled, other.steps = self.settled, self.steps
        other._is_shared, other._remembered = True, {}
        return other

    def own_copy(self) -> GroupView:
        """Have everything of its own."""
        if self._is_shared:
            self.lives, self.predictions = self.lives.copy(), self.predictions.copy()
            self.rebalances, self.evictions = self.rebalances.copy(), self.evictions.copy()
            self.recent, self.ended, self.steps = self.recent.copy(), self.ended.copy(), self.steps.copy()
            self._is_shared = False
        return self

    def take(self, row: Any) -> None:
        """The latest health row of a present member."""
        self.health[row.member_id], self._told[row.member_id] = row, told(row)

    def drop(self, member_id: str) -> None:
        """Forget the health of a member, if there is any."""
        self.health.pop(member_id, None)
        self._told.pop(member_id, None)

    def remembered(self, name: str, count: Callable[[Self], Found]) -> Found:
        """What `count` finds in the view, counted once. Two threads may both count it, and find the same."""
        if name not in self._remembered:
            self._remembered[name] = count(self)
        found: Found = self._remembered[name]
        return found

    def status_of(self, member_id: str) -> str:
        """Status of a present member; unknown until its first health row."""
        row = self.health.get(member_id)
        return "unknown" if row is None else str(row.status)

    def tally(self) -> Tally:
        """What is counted of the health rows of present members."""
        return self.remembered("tally", lambda view: counted(view._told.values()))

    def statuses(self) -> Counter[str]:
        """Present members by status."""
        return self._with_those_unheard_of(self.tally().statuses())

    def shown_by_status(self) -> Counter[str]:
        """Present members by shown status."""
        return self.remembered("shown", lambda view: view._shown())

    def shown_of(self, member_id: str) -> str:
        """Status of a present member as it is shown; unknown until its first health row. A member whose timeout is
        predicted to pass is not ok: the prediction is younger than a row that says so."""
        row = self.health.get(member_id)
        if row is None:
            return "unknown"
        word = shown_as(row)
        return "late" if word == "ok" and self._is_predicted(member_id) else word

    def _is_predicted(self, member_id: str) -> bool:
        return any(predicted_id == member_id for predicted_id, _ in self.predictions)

    def _shown(self) -> Counter[str]:
        found = self._with_those_unheard_of(self.tally().shown())
        for member_id in {member_id for member_id, _ in self.predictions if member_id in self.health}:
            was, word = shown_as(self.health[member_id]), self.shown_of(member_id)
            if was != word:
                found.subtract((was,))
                found[word] += 1
        return found

    def certainties(self) -> Counter[str]:
        """Present members by how sure it is what is said of their health."""
        return self._with_those_unheard_of(self.tally().certainties())

    def _with_those_unheard_of(self, found: Counter[str]) -> Counter[str]:
        """A member without a health row is present, and nothing is known of it."""
        if len(self.lives) > len(self.health):
            found["unknown"] += len(self.lives) - len(self.health)
        return found

    def first_deadline_ms(self) -> int | None:
        """The deadline of a present member that comes first; None without one. Members of whom nothing is known since
        a gap have none."""
        return self.remembered("first_deadline", _first_deadline_ms)

    @property
    def broker(self) -> str:
        """The broker that leads it, as its members' rows say; else whoever told of its last change; empty if no log of
        a broker told of it."""
        return self.remembered("broker", _broker)

    @property
    def state_now(self) -> StateNow | None:
        """State of the group; None before anything is known of it, Unknown while its coordinator is not heard."""
        if self.ahead is not None or self.state is None:
            return self.ahead
        if (unheard_ms := self.unheard_since_ms) is not None:
            return StateNow(UNKNOWN_STATE, unheard_ms, UNHEARD, "unknown")
        row = self.state
        return StateNow(str(row.to_state), row.at_ms, row.cause, row.certainty)

    @property
    def state_name(self) -> str:
        """Name of `state_now`; Unknown without one."""
        if self.ahead is not None:
            return self.ahead.name
        is_known = self.state is not None and self.unheard_since_ms is None
        return str(self.state.to_state) if is_known else UNKNOWN_STATE

    @property
    def unheard_since_ms(self) -> int | None:
        """Since when the state of a Stable group is only what it was: the first session deadline that passed without a
        line of its broker. A broker that lives evicts at that instant and writes on, so it is down, or stands still,
        or is not the coordinator any more, however fresh the feed of the cluster is. None while the broker is heard."""
        if not self.health or self.ahead is not None or self.state is None or self.state.to_state != "Stable":
            return None  # nothing is remembered of a view that has no member yet: it is being folded
        return self.tally().unheard_since_ms

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


def _first_deadline_ms(view: GroupView) -> int | None:
    found = [] if (first_ms := view.tally().first_deadline_ms) is None else [first_ms]
    found += (
        row.deadline_at_ms
        for (member_id, kind), row in view.predictions.items()
        if kind == "rebalance" and member_id in view.health and row.deadline_at_ms is not None
    )
    return min(found, default=None)


def _broker(view: GroupView) -> str:
    lives = [*view.lives.values(), *view.ended.values()]
    latest = max((life for life in lives if life.broker), key=lambda life: int(life.known_at_ms), default=None)
    evidence = "" if view.state is None else str(view.state.evidence or "")
    source = evidence.rpartition("@")[0]
    of_log = source.count("/") >= 2 and broker_of(source) not in BESIDE_BROKERS
    if of_log and (latest is None or view.state.known_at_ms > latest.known_at_ms):
        return broker_of(source)
    return "" if latest is None else str(latest.broker)


class ClusterView:
    """One cluster as it stands."""

    def __init__(self, cluster_id: str, settings: ApiSettings) -> None:
        self.cluster_id = cluster_id
        self.reach = Reach(settings.source_retired_ms)
        self.groups: dict[str, GroupView] = {}
        self.without_members: dict[str, None] = {}
        """Groups without members, the one left longest first: `api.present.forgetting` drops them in the end."""
        self.forgotten = 0
        self._leaders: dict[str, str] = {}
        """Group -> the broker that leads it."""
        self._led: Counter[str] = Counter()
        self.lags = Lags()
        self.rebalances: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.predictions: Counter[tuple[str, str]] = Counter()
        """(kind, outcome) -> predictions that reached it."""
        self.rebalance_ms = Distribution(REBALANCE_BOUNDS_MS)
        self.eviction_known_after_ms = Distribution(KNOWN_AFTER_BOUNDS_MS)
        self.lead_ms = {kind: Distribution(LEAD_BOUNDS_MS) for kind in PREDICTION_KINDS}
        self.by_name: list[tuple[tuple[Any, ...], str, str]] = []
        """Entries of `api.answers.roster` in the order of names, as far as it has sorted them."""
        self.lived = BloomFilter()
        """(group, member id) of lives that are over, or that another one of the same id began beside."""
        self._overviews: dict[Overview[Any], Any] = {}
        self._asked: dict[Overview[Any], int] = {}
        """Overview -> batches for which it is still counted ahead. Handed from view to view."""

    def copied_on_write(self) -> ClusterView:
        """The same cluster, for a next batch to be folded into; shares its groups until they change."""
        other = copy(self)
        other.reach, other.groups = self.reach.copied_on_write(), self.groups.copy()
        other.without_members = self.without_members.copy()
        other._leaders, other._led = self._leaders.copy(), self._led.copy()
        other.rebalances, other.evictions = self.rebalances.copy(), self.evictions.copy()
        other.predictions = self.predictions.copy()
        other.rebalance_ms, other.eviction_known_after_ms = (
            self.rebalance_ms.copied_on_write(),
            self.eviction_known_after_ms.copied_on_write(),
        )
        other.lead_ms = {kind: lead.copied_on_write() for kind, lead in self.lead_ms.items()}
        other._overviews = {}
        return other

    def complete_of(self, group: GroupView) -> int | None:
        """The instant up to which everything is there about a group: by the logs of the broker that leads it."""
        return self.reach.complete_of(group.broker)

    def settle(self, changed: Iterable[str]) -> None:
        """Note who leads groups that a batch has changed, or that are forgotten, and how far all is complete."""
        for group_id in changed:
            group = self.groups.get(group_id)
            self._led[self._leaders.pop(group_id, "")] -= 1
            if group is not None:
                self._leaders[group_id] = group.broker
                self._led[group.broker] += 1
        self.reach.settle(self._led)

    def without_groups(self) -> ClusterView:
        """What is counted of the cluster as a whole, without all that grows with its groups."""
        other = copy(self)
        other.groups, other.without_members, other.by_name = {}, {}, []
        other.lags, other._overviews = Lags(), {}
        return other

    def overview(self, count: Overview[Found]) -> Found:
        """What `count` finds in the view, counted once; for the batches to come it is counted ahead."""
        self._asked[count] = OVERVIEWS_FOR
        if count not in self._overviews:
            for _ in self._counted(count):
                pass
        found: Found = self._overviews[count]
        return found

    def count_ahead(self) -> Iterator[None]:
        """Count what was asked of the views before this one, in pieces: over all groups of a large cluster each takes
        tens of ms, and whoever asked first would hold all others up."""
        for count, batches in list(self._asked.items()):
            if batches:
                self._asked[count] -= 1
                yield from self._counted(count)

    def _counted(self, count: Overview[Any]) -> Iterator[None]:
        self._overviews[count] = yield from count(self)

    def only_life(self, group: GroupView, member_id: str) -> Any:
        """Row of the one life that a present member id has had; None if it is not present or there may be others."""
        life = group.lives.get(member_id)
        return None if life is None or self.lived.may_know(group.group_id, member_id) else life


class Current:
    """All clusters as they stand at `batch_id`."""

    def __init__(self, settings: ApiSettings) -> None:
        self.settings = settings
        self.clusters: dict[str, ClusterView] = {}
        self.batch_id = -1
        self.standing = {name: Standing(TABLES[name], settings.closed_kept_max) for name in IS_CLOSED}
        """For `api.present.folding` alone: which rows stand, by table. Handed from view to view."""

    def copied_on_write(self) -> Current:
        """The same, for a next batch to be folded into."""
        other = copy(self)
        other.clusters = {cluster_id: view.copied_on_write() for cluster_id, view in self.clusters.items()}
        return other
