"""Answers that are sent again: encoded once for as long as the view is the same, and what the clock moves is of now."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from api.answers import as_dicts, dangers
from api.answers import encoded as module
from api.answers.encoded import Encoded, Kept, Open, encode
from api.http import asking
from api.present.current import ClusterView, Current
from api.present.folding import after
from api.present.freshness import Freshness
from api.settings import ApiSettings
from tests.api.conftest import Clock, Serve
from tests.api.test_large import _world
from tests.api.written import CLUSTER, NOW_MS, Tables, health, member, prediction, progress, rebalance, transition

ROUTES = ("/groups", "/groups/g", "/groups/g/members", "/next-evictions", "/open-rebalances")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each answer that was encoded tells."""
    found: list[dict[str, Any]] = []

    def counted(freshness: Open, members: dict[str, Any]) -> Encoded:
        found.append(members)
        return encode(freshness, members)

    monkeypatch.setattr(asking, "encode", counted)
    return found


def living(tables: Tables) -> None:
    tables.create()
    tables.batch(
        0,
        *(transition("g", 1, "Stable"), member("g", "m"), health("g", "m"), prediction("g", "m", "session")),
        progress(NOW_MS),
    )


@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_that_did_not_change_is_not_encoded_again(
    tables: Tables, serve: Serve, made: list[dict[str, Any]], route: str
) -> None:
    living(tables)
    api = serve()
    api.wait_for_batch(0)
    path = f"/api/v1/clusters/{CLUSTER}{route}"
    first = api.get(path)
    assert [api.get(path) for _ in range(3)] == [first] * 3  # the clock of the test stands still
    assert len(made) == 1
    tables.batch(1, health("g", "m", at_ms=NOW_MS + 1, session_deadline_at_ms=NOW_MS + 5_000), progress(NOW_MS + 1))
    api.wait_for_batch(1)
    assert api.get(path) != first
    assert len(made) == 2


def test_what_the_clock_moves_is_of_the_instant_at_which_an_answer_is_sent(
    tables: Tables, serve: Serve, clock: Clock, made: list[dict[str, Any]]
) -> None:
    living(tables)
    api = serve()
    api.wait_for_batch(0)
    path = f"/api/v1/clusters/{CLUSTER}/groups/g/members"
    first = api.get(path)
    clock.now_ms += 1_234
    again = api.get(path)
    assert len(made) == 1
    assert first["members"][0]["predictions"][0]["remaining_ms"] == 3_000
    assert again["members"][0]["predictions"][0]["remaining_ms"] == 3_000 - 1_234
    assert again["freshness"]["answered_at_ms"] == NOW_MS + 1_234
    assert again["freshness"]["age_ms"] == 1_234
    clock.now_ms += 3_600_000
    stale = api.get(path)
    assert stale["freshness"]["stale"]
    assert stale["members"][0]["session"]["remaining_ms"] is None


def test_how_long_a_rebalance_lasts_is_never_that_of_before(tables: Tables, serve: Serve, clock: Clock) -> None:
    tables.create()
    running = rebalance("g", NOW_MS - 500, joined_at_ms=None, completed_at_ms=None, known_at_ms=NOW_MS)
    tables.batch(0, transition("g", 1, "PreparingRebalance"), member("g", "m"), running, progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    path = f"/api/v1/clusters/{CLUSTER}"
    assert api.get(f"{path}/groups/g")["group"]["last_rebalance"]["duration_ms"] == 500
    assert api.get(f"{path}/open-rebalances")["open_rebalances"][0]["lasting_ms"] == 500
    clock.now_ms += 100
    assert api.get(f"{path}/groups/g")["group"]["last_rebalance"]["duration_ms"] == 600
    assert api.get(f"{path}/groups")["groups"][0]["last_rebalance"]["duration_ms"] == 600
    assert api.get(f"{path}/open-rebalances")["open_rebalances"][0]["lasting_ms"] == 600


def test_what_one_caller_may_see_is_not_sent_to_another(tables: Tables, serve: Serve, tmp_path: Path) -> None:
    living(tables)
    tokens = tmp_path / "tokens"
    one, other = "o" * 32, "p" * 32
    tokens.write_text(f"{one} cluster={CLUSTER}\n{other} cluster=elsewhere\n", encoding="utf-8")
    tokens.chmod(0o600)
    api = serve(token_file=tokens)
    api.client.headers["Authorization"] = f"Bearer {one}"
    api.wait_for_batch(0)
    for route in ROUTES:
        path = f"/api/v1/clusters/{CLUSTER}{route}"
        api.client.headers["Authorization"] = f"Bearer {one}"
        api.get(path)
        api.client.headers["Authorization"] = f"Bearer {other}"
        assert api.problem(path) == (404, "not_found"), route


@pytest.mark.parametrize("seed", range(10))
def test_an_answer_with_holes_is_the_answer_at_any_instant(seed: int, tmp_path: Path) -> None:
    current, kept = Current(ApiSettings(tables=tmp_path)), 0
    for batch_id, rows in enumerate(_world(random.Random(seed))):
        current = after(current, rows, batch_id)
        cluster = current.clusters[CLUSTER]
        at_ms = [NOW_MS]
        for told in (_groups, _members, _evictions):

            def fresh() -> Freshness:
                return Freshness(NOW_MS, at_ms[0], 10_000, 1)  # noqa: B023  read while the loop is here

            at_ms[0] = NOW_MS
            open_ = Open.of(fresh)
            found = encode(open_, told(cluster, open_))
            for later_ms in (0, 1, 4_000, 9_000, 60_000) if found.is_kept else (0,):
                at_ms[0] = NOW_MS + later_ms
                plain = {"freshness": fresh().as_answer()} | told(cluster, fresh())
                assert orjson.loads(found.filled()) == orjson.loads(orjson.dumps(plain))
            kept += found.is_kept
    assert kept > 10


def _groups(cluster: ClusterView, freshness: Freshness) -> dict[str, Any]:
    return {"groups": [as_dicts.group(view, freshness) for view in cluster.groups.values()]}


def _members(cluster: ClusterView, freshness: Freshness) -> dict[str, Any]:
    return {
        "members": [
            as_dicts.member(view, life, freshness) for view in cluster.groups.values() for life in view.lives.values()
        ]
    }


def _evictions(cluster: ClusterView, freshness: Freshness) -> dict[str, Any]:
    return dangers.next_evictions(cluster, freshness, 100)


def test_so_many_bytes_are_kept_and_those_that_nobody_asks_for_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES_MAX", 30)

    def ten() -> Encoded:
        return Encoded(lambda: Freshness(None, 0, 0, 0), [b"0123456789"], [], is_kept=True)

    kept = Kept()
    assert kept.of((1,), "a") is None
    for name in "abc":
        kept.keep(name, ten())
    assert kept.of((1,), "a") is not None
    kept.keep("d", ten())
    assert [name for name in "abcd" if kept.of((1,), name) is not None] == ["a", "c", "d"]
    kept.keep("e", ten()._replace(parts=[b"0" * 31]))
    kept.keep("f", ten()._replace(is_kept=False))
    assert [name for name in "abcdef" if kept.of((1,), name) is not None] == ["a", "c", "d"]
    assert kept.of((2,), "a") is None
    assert kept.of((1,), "a") is None
