"""What a row does to the current view. The next view is made beside the one that is shown, piece by piece.

A `Fold` begins with a copy on write of a view, takes the rows of a batch in, and counts ahead what is asked of every
view. It yields wherever requests may be answered in between, from the view before; when it is through, `view` is there
to be shown at once. Folding the same row twice changes nothing but the ledger, and the store never gives a row twice. A
fold that is given up half-way leaves the view before as it was, but not what stands (`Current.standing`): the next one
must begin with an empty view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from api.present import forgetting
from api.present.current import ENDED_KEPT, ClusterView, Current, GroupView, StateNow
from api.present.standing import is_withdrawn
from kardia.rollouts import Step
from kardia.tables import EVICTION_CAUSES

Rows = Mapping[str, list[Any]]
"""New rows by table."""

Samples = dict[tuple[str, str], list[Any]]
"""New rows of health by (cluster, group)."""


def by_group(rows: Iterable[Any]) -> dict[tuple[str, str], list[Any]]:
    """Rows by (cluster, group)."""
    found: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        place = (row.cluster_id, row.group_id)
        if place in found:
            found[place].append(row)
        else:
            found[place] = [row]
    return found


def after(before: Current, rows: Rows, batch_id: int) -> Current:
    """The view after a batch, in one go; `rows` with those of health."""
    fold = Fold(before, rows, by_group(rows.get("health", ())), batch_id)
    for _ in fold.pieces():
        pass
    return fold.view


LAGS_AT_ONCE = 500
"""Rows of lag that are folded without a break for requests."""


class Fold:
    """A view in the making."""

    def __init__(self, before: Current, rows: Rows, samples: Samples, batch_id: int) -> None:
        """Begin; nothing is folded yet. Rows of health in `rows` are passed over: they are in `samples`, which is used
        up."""
        self.view = before.copied_on_write()
        self.view.batch_id = batch_id
        self.replaced: list[GroupView] = []
        """Groups of the view before that have a copy in this one."""
        self._rows = rows
        self._samples = samples
        self._own: dict[tuple[str, str], GroupView] = {}

    def pieces(self) -> Iterator[None]:
        """Fold; `members` come before health, which is only kept for present members."""
        for cluster_id, found in _by_cluster(self._rows.get("progress", ())).items():
            self._cluster(cluster_id).reach.fold(found)
        for name, take in (
            ("transitions", self._on_transition),
            ("members", self._on_member),
            ("rebalances", self._on_rebalance),
            ("predictions", self._on_prediction),
        ):
            for row in sorted(self._rows.get(name, ()), key=_order):
                take(self._cluster(row.cluster_id), row)
                yield
        for cluster_id, found in _by_cluster(self._rows.get("lag", ())).items():
            cluster = self._cluster(cluster_id)
            cluster.lags = cluster.lags.copied_on_write()
            for begin in range(0, len(found), LAGS_AT_ONCE):
                cluster.lags.fold(sorted(found[begin : begin + LAGS_AT_ONCE], key=_order))
                yield
        while self._samples:
            place, rows = self._samples.popitem()
            # Rows of one group only need an order among themselves.
            if len(rows) > 1:
                rows.sort(key=_order)
            group = self._group(*place, rows[0].shard)
            for row in rows:
                _sample(group, row)
            yield
        for group in self._own.values():
            group.first_deadline_ms()
            yield
        for cluster in self.view.clusters.values():
            forgetting.note(cluster, (group for place, group in self._own.items() if place[0] == cluster.cluster_id))
            changed = [group_id for cluster_id, group_id in self._own if cluster_id == cluster.cluster_id]
            changed += forgetting.forget(cluster, self.view.settings.groups_without_members_max)
            cluster.settle(changed)
            yield
        for cluster in self.view.clusters.values():
            yield from cluster.count_ahead()

    def _cluster(self, cluster_id: str) -> ClusterView:
        view = self.view.clusters.get(cluster_id)
        if view is None:
            view = self.view.clusters[cluster_id] = ClusterView(cluster_id, self.view.settings)
        return view

    def _group(self, cluster_id: str, group_id: str, shard: int) -> GroupView:
        """A group of this view alone, made when it is first heard of."""
        place = (cluster_id, group_id)
        group = self._own.get(place)
        if group is None:
            groups = self._cluster(cluster_id).groups
            before = groups.get(group_id)
            if before is None:
                group = GroupView(cluster_id, group_id, shard)
            else:
                group = before.copied_on_write()
                self.replaced.append(before)
            self._own[place] = groups[group_id] = group
        return group

    def _group_of(self, row: Any) -> GroupView:
        """The group that a row is about, which it may change in any way."""
        return self._group(row.cluster_id, row.group_id, row.shard).own_copy()

    def _on_transition(self, _: ClusterView, row: Any) -> None:
        group = self._group_of(row)
        if row.entity == "member" and row.cause == "fenced":
            group.fenced += 1
            group.recent.append(("fenced", row.at_ms, row.member_id or ""))
        if row.entity == "group" and (group.state is None or row.seq >= group.state.seq):
            group.state = row
            group.ahead = None

    def _on_member(self, cluster: ClusterView, row: Any) -> None:
        stands, before = self.view.standing["members"].fold(row)
        if not stands:
            return
        group = self._group_of(row)
        life = group.lives.get(row.member_id)
        group.ended.pop(row.member_id, None)
        if row.ended_at_ms is not None:
            group.ended[row.member_id] = row
            if len(group.ended) > ENDED_KEPT:
                del group.ended[next(iter(group.ended))]
        if row.ended_at_ms is None and (life is None or life.joined_at_ms <= row.joined_at_ms):
            group.lives[row.member_id] = row
        if row.ended_at_ms is not None or (life is not None and life.joined_at_ms != row.joined_at_ms):
            cluster.lived.add(row.group_id, row.member_id)
        if row.ended_at_ms is not None and life is not None and life.joined_at_ms == row.joined_at_ms:
            del group.lives[row.member_id]
            group.drop(row.member_id)
        if _closes(before, row, "ended_at_ms") and row.end_cause in EVICTION_CAUSES:
            cluster.evictions[row.end_cause] += 1
            group.evictions[row.end_cause] += 1
            group.recent.append(("eviction", row.ended_at_ms, row.member_id))
            cluster.eviction_known_after_ms.add(row.known_at_ms - row.ended_at_ms, row.ended_at_ms)

    def _on_rebalance(self, cluster: ClusterView, row: Any) -> None:
        stands, before = self.view.standing["rebalances"].fold(row)
        if not stands:
            return
        group = self._group_of(row)
        latest = group.rebalance
        _take_step(group, row)
        if is_withdrawn(row):
            if latest is not None and (latest.generation_before, latest.started_at_ms) == (
                row.generation_before,
                row.started_at_ms,
            ):
                group.rebalance = None
            return
        if latest is None or (row.started_at_ms, row.generation_before) >= (
            latest.started_at_ms,
            latest.generation_before,
        ):
            group.rebalance = row
        if _closes(before, row, "completed_at_ms"):
            cluster.rebalances[row.trigger] += 1
            group.rebalances[row.trigger] += 1
            if not row.began_unseen:  # else it is not known how long it lasted
                cluster.rebalance_ms.add(row.completed_at_ms - row.started_at_ms, row.completed_at_ms)
            if row.member_seconds_lost is not None:
                group.member_seconds_lost += row.member_seconds_lost

    def _on_prediction(self, cluster: ClusterView, row: Any) -> None:
        stands, before = self.view.standing["predictions"].fold(row)
        if not stands:
            return
        group, place = self._group_of(row), (row.member_id, row.kind)
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
                cluster.lead_ms[row.kind].add(row.lead_ms, row.outcome_at_ms or row.known_at_ms)


def _take_step(group: GroupView, row: Any) -> None:
    """Keep what is known of a completed rebalance, in place of what was known of it before."""
    before = next((step for step in group.steps if step.started_at_ms == row.started_at_ms), None)
    if before is not None:
        group.steps.remove(before)
    if row.completed_at_ms is not None and not is_withdrawn(row):
        group.steps.append(Step(row.started_at_ms, row.completed_at_ms, row.trigger, row.trigger_member_id))


def _sample(group: GroupView, row: Any) -> None:
    """Take a health row in."""
    if row.member_id not in group.lives:
        return
    present = group.health.get(row.member_id)
    if present is not None and present.at_ms > row.at_ms:
        return
    if row.status == "ended":
        group.drop(row.member_id)
        return
    group.take(row)
    settled, ahead = group.state, group.ahead
    if settled is None or row.at_ms <= (settled.at_ms if ahead is None else ahead.since_at_ms):
        return
    if row.group_state == settled.to_state:
        group.ahead = None
    elif ahead is None or ahead.name != row.group_state:
        told = row.awaited_since_at_ms
        since = row.at_ms if told is None or told <= settled.at_ms else min(told, row.at_ms)
        group.ahead = StateNow(str(row.group_state), since, "seen, its cause is not known yet", "provisional")


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
