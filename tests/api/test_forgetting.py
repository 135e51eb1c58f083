"""The view in memory after groups that came and went: what it holds, what it lists, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.answers import roster
from api.present.current import ClusterView, Current
from api.present.folding import after
from api.settings import ApiSettings
from kardia.observe.facts.forgetting import DELETED_MS, EMPTY_MS
from kardia.tables import TABLES
from tests.api.written import NOW_MS, member, progress, transition

BOUND = 200


def rows(*given: tuple[str, tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Rows by table, as the store gives them."""
    found: dict[str, list[Any]] = {}
    for table, values in given:
        row = SimpleNamespace(**dict(zip(TABLES[table].names, values, strict=True)), batch_id=0)
        found.setdefault(table, []).append(row)
    return found


def came_and_went(group_id: str, at: int, state: str = "Empty") -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield member(group_id, "a", joined_at_ms=at - 500, ended_at_ms=at, end_cause="left")
    yield transition(group_id, 1, state, at_ms=at)


def empty_view() -> Current:
    return Current(ApiSettings(tables=Path("nowhere"), groups_without_members_max=BOUND))


def cluster_of(view: Current) -> ClusterView:
    return view.clusters["demo"]


def listed(cluster: ClusterView) -> list[str]:
    return [group_id for _, group_id, _ in roster.by_name(cluster)]


@pytest.mark.parametrize("count", [3_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_groups_that_came_and_went_take_no_more_than_their_bound(count: int) -> None:
    view, size = empty_view(), 100
    for begin in range(0, count, size):
        at = NOW_MS + begin
        some = [row for number in range(begin, begin + size) for row in came_and_went(f"g{number:07}", at)]
        view = after(view, rows(*some, member("kept", "a", joined_at_ms=NOW_MS), progress(at)), begin)
        cluster = cluster_of(view)
        assert len(cluster.without_members) <= BOUND
        assert set(cluster.groups) == {*cluster.without_members, "kept"}
        assert listed(cluster) == sorted(cluster.groups)
    assert cluster.forgotten == count - len(cluster.without_members)
    assert f"g{count - 1:07}" in cluster.groups, "the latest are held"


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_one_more_than_the_bound_drops_the_oldest(beyond: int) -> None:
    view = empty_view()
    for number in range(BOUND + beyond):
        view = after(view, rows(*came_and_went(f"g{number}", NOW_MS + number)), number)
    assert ("g0" in cluster_of(view).groups) == (beyond <= 0)


@pytest.mark.parametrize(("state", "held_ms"), [("Dead", DELETED_MS), ("Empty", EMPTY_MS)])
def test_how_long_a_group_without_members_is_shown(state: str, held_ms: float) -> None:
    view = after(empty_view(), rows(*came_and_went("g", NOW_MS, state), progress(NOW_MS)), 0)
    view = after(view, rows(progress(NOW_MS + int(held_ms) - 1)), 1)
    assert "g" in cluster_of(view).groups
    view = after(view, rows(progress(NOW_MS + int(held_ms))), 2)
    assert "g" not in cluster_of(view).groups
    assert cluster_of(view).forgotten == 1


def test_a_group_that_comes_back_is_held_again() -> None:
    view = after(empty_view(), rows(*came_and_went("g", NOW_MS, "Dead"), progress(NOW_MS + int(DELETED_MS))), 0)
    assert "g" not in cluster_of(view).groups
    view = after(view, rows(member("g", "b", joined_at_ms=NOW_MS + int(DELETED_MS) + 5)), 1)
    assert set(cluster_of(view).groups["g"].lives) == {"b"}
    assert not cluster_of(view).without_members


def test_the_view_that_is_shown_keeps_its_groups() -> None:
    shown = after(empty_view(), rows(*came_and_went("g", NOW_MS, "Dead"), progress(NOW_MS)), 0)
    after(shown, rows(progress(NOW_MS + int(DELETED_MS))), 1)
    assert "g" in cluster_of(shown).groups
    assert listed(cluster_of(shown)) == ["g"]
