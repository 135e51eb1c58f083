"""What makes a large fleet quick must change no answer: views made beside the shown one, rendered lists, indexes,
members from memory. Each is held against the plain way."""

from __future__ import annotations

import random
from collections.abc import Generator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from api.answers import as_dicts, dangers, rendered, roster
from api.files import columns
from api.files.reader import ROW_TYPES
from api.present.bloom_filter import BloomFilter
from api.present.current import OVERVIEWS_FOR, ClusterView, Current
from api.present.folding import Fold, after, by_group
from api.present.freshness import Freshness
from api.settings import ApiSettings
from tests.api.conftest import Serve
from tests.api.written import CLUSTER, NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

STATUSES = ("ok", "late", "imminent", "overdue", "unknown", "ended")
FRESH = Freshness(NOW_MS, NOW_MS, 10_000, 1)


def _rows(batch_id: int, *given: tuple[str, tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Rows by table as a reader gives them."""
    found: dict[str, list[Any]] = {}
    for name, row in given:
        found.setdefault(name, []).append(ROW_TYPES[name]._make((*row, batch_id)))
    return found


def _world(rng: random.Random) -> list[dict[str, list[Any]]]:
    """Some batches about some groups: lives begin and end, rebalances run, members are sampled well and ill."""
    batches = []
    groups = ["a", "b/ü", "c\n", "d", "E", "Ef"]
    for batch_id in range(6):
        given = [progress(NOW_MS + batch_id)]
        for number, group in enumerate(groups):
            for place in range(3):
                who, at_ms = f"{group}-{place}", NOW_MS + rng.randrange(-50, 50) + batch_id * 100
                if batch_id == 0 or rng.random() < 0.1:
                    ended_ms = at_ms if rng.random() < 0.3 else None
                    given.append(
                        member(
                            *(group, who),
                            joined_at_ms=NOW_MS - 60_000 + rng.choice((0, 1)),
                            ended_at_ms=ended_ms,
                            end_cause=None if ended_ms is None else "session_expired",
                        )
                    )
                if rng.random() < 0.7:
                    state = rng.choice(("Stable", "PreparingRebalance"))
                    status = rng.choice(STATUSES)
                    given.append(health(group, who, at_ms=at_ms, status=status, group_state=state))
                if rng.random() < 0.1:
                    kind = rng.choice(("session", "poll", "rebalance"))
                    given.append(prediction(group, who, kind, deadline_at_ms=NOW_MS + rng.randrange(9_000)))
            if batch_id == 0 or rng.random() < 0.2:
                given.append(transition(group, batch_id * 10 + number, "Stable", at_ms=NOW_MS + batch_id * 100 - 150))
            if rng.random() < 0.2:
                over = NOW_MS + batch_id * 100 if rng.random() < 0.5 else None
                given.append(rebalance(group, NOW_MS + batch_id * 10, completed_at_ms=over))
        batches.append(_rows(batch_id, *given))
    return batches


def _told(view: Current) -> Any:
    """Everything that answers tell of the present of a cluster."""
    cluster = view.clusters.get(CLUSTER)
    return cluster and (
        {name: as_dicts.group(view, FRESH) for name, view in cluster.groups.items()},
        {
            (name, row.member_id): as_dicts.member(view, row, FRESH)
            for name, view in cluster.groups.items()
            for row in view.lives.values()
        },
        dangers.next_evictions(cluster, FRESH, 1_000),
        roster.worst_first(cluster),
        (cluster.rebalances, cluster.evictions, cluster.predictions, cluster.rebalance_ms.buckets()),
        cluster.reach.ledger,
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_view_shares_groups_with_the_one_before_and_changes_nothing_of_it(seed: int, tmp_path: Path) -> None:
    shown = alone = Current(ApiSettings(tables=tmp_path))
    for batch_id, rows in enumerate(_world(random.Random(seed))):
        alone = after(deepcopy(alone), rows, batch_id)
        before = deepcopy(_told(shown))
        fold = Fold(shown, rows, by_group(rows.get("health", ())), batch_id)
        for _ in fold.pieces():
            assert _told(shown) == before
        assert _told(shown) == before
        shown = fold.view
        assert _told(shown) == _told(alone)


def test_what_was_asked_of_a_view_is_counted_ahead_for_the_next_ones(tmp_path: Path) -> None:
    counted = []

    def groups(cluster: ClusterView) -> Generator[None, None, int]:
        yield
        counted.append(len(cluster.groups))
        return counted[-1]

    view = after(Current(ApiSettings(tables=tmp_path)), _rows(0, member("a", "m"), progress(NOW_MS)), 0)
    assert counted == []
    assert view.clusters[CLUSTER].overview(groups) == view.clusters[CLUSTER].overview(groups) == 1
    assert counted == [1]
    view = after(view, _rows(1, member("b", "m"), progress(NOW_MS)), 1)
    assert counted == [1, 2], "counted while nobody asks"
    assert view.clusters[CLUSTER].overview(groups) == 2
    assert counted == [1, 2]
    for batch_id in range(2, 2 * OVERVIEWS_FOR):
        view = after(view, _rows(batch_id, progress(NOW_MS)), batch_id)
    assert len(counted) == 2 + OVERVIEWS_FOR, "nobody has asked for long"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("freshness", [FRESH, Freshness(NOW_MS, NOW_MS + 60_000, 10_000, 1)])
def test_a_rendered_group_is_the_group(seed: int, freshness: Freshness, tmp_path: Path) -> None:
    current = Current(ApiSettings(tables=tmp_path))
    for batch_id, rows in enumerate(_world(random.Random(seed))):
        current = after(current, rows, batch_id)
        for view in current.clusters[CLUSTER].groups.values():
            for _ in range(2):  # made, and remembered
                listed = orjson.loads(orjson.dumps(rendered.group(view, freshness, 4)))
                assert listed == as_dicts.group(view, freshness) | {"rung": 4}


@pytest.mark.parametrize("seed", range(5))
def test_pages_of_both_orders_hold_each_matching_group_once_and_in_order(seed: int, tmp_path: Path) -> None:
    current = Current(ApiSettings(tables=tmp_path))
    for batch_id, rows in enumerate(_world(random.Random(seed))):
        current = after(current, rows, batch_id)
        cluster = current.clusters[CLUSTER]
        for sort in roster.SORTS:
            for search, state in ((None, None), ("E", None), (None, "stable"), ("nobody", None)):
                last, found, more = None, [], True
                while more:
                    page, more = roster.page(cluster, sort, last, 2, search, state)
                    found += page
                    last = tuple(orjson.loads(orjson.dumps(page[-1][0]))) if page else None
                wanted = {
                    name
                    for name, view in cluster.groups.items()
                    if (search or "").casefold() in name.casefold()
                    and (state is None or view.state_name.casefold() == state)
                }
                assert {view.group_id for _, view in found} == wanted
                assert len(found) == len(wanted)
                assert [key for key, _ in found] == sorted(key for key, _ in found)


def test_the_nearest_deadlines_are_those_of_all_groups(tmp_path: Path) -> None:
    current = Current(ApiSettings(tables=tmp_path))
    for batch_id, rows in enumerate(_world(random.Random(3))):
        current = after(current, rows, batch_id)
    cluster = current.clusters[CLUSTER]
    everything = sorted(one for view in cluster.groups.values() for one in dangers.deadlines_of(view))
    assert len(everything) > 5
    for limit in (1, 2, 5, 1_000):
        found = dangers.next_evictions(cluster, FRESH, limit)["next_evictions"]
        assert [(one["deadline_at_ms"], one["group_id"], one["member_id"], one["kind"]) for one in found] == [
            one[:4] for one in everything[:limit]
        ]


def test_a_member_has_all_its_lives_whether_memory_or_files_tell(tables: Tables, serve: Serve) -> None:
    tables.create()
    began_ms = NOW_MS - 60_000
    tables.batch(
        0,
        member("g", "once", joined_at_ms=began_ms),
        member("g", "twice", joined_at_ms=began_ms - 100, ended_at_ms=began_ms, end_cause="left"),
        member("g", "over", joined_at_ms=began_ms, ended_at_ms=NOW_MS, end_cause="left"),
        health("g", "once"),
        progress(NOW_MS),
    )
    tables.batch(1, member("g", "twice", joined_at_ms=began_ms + 50), progress(NOW_MS + 1))
    api = serve()
    api.wait_for_batch(1)
    path = f"/api/v1/clusters/{CLUSTER}/groups/g/members"
    assert [life["joined_at_ms"] for life in api.get(f"{path}/once")["lives"]] == [began_ms]
    assert [life["joined_at_ms"] for life in api.get(f"{path}/twice")["lives"]] == [began_ms + 50, began_ms - 100]
    assert api.get(f"{path}/over")["member"]["end_cause"] == "left"
    tables.batch(2, member("g", "once", joined_at_ms=began_ms, ended_at_ms=NOW_MS, end_cause="left"), progress(NOW_MS))
    api.wait_for_batch(2)
    assert api.get(f"{path}/once")["member"]["ended_at_ms"] == NOW_MS


def test_what_was_seen_is_never_forgotten() -> None:
    seen = BloomFilter()
    assert not seen.may_know("g", "m")
    for number in range(5_000):
        seen.add("g", str(number))
    assert all(seen.may_know("g", str(number)) for number in range(5_000))
    assert sum(seen.may_know("h", str(number)) for number in range(5_000)) < 50


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "a", None, "b", "a", "a"]),
        pa.array(["a", "b", None]),
        pa.array([None, None], pa.string()),
        pa.array([1, None, 3]),
        pa.array([[], ["x", None], None, []], pa.list_(pa.string())),
        pa.array([[], []], pa.list_(pa.string())),
        pa.array([[{"a": 1}], []], pa.list_(pa.struct([("a", pa.int64())]))),
        pa.array([], pa.string()),
        pa.array([], pa.list_(pa.string())),
    ],
)
def test_rows_hold_the_values_that_arrow_gives_however_many_are_made_at_once(column: pa.Array) -> None:
    for found in (pa.chunked_array([column]), pa.chunked_array([column, column])):
        for at_once in (1, 2, 100):
            made = list(columns.rows([found, None], len(found), at_once))
            assert made == [(value, None) for value in found.to_pylist()]
