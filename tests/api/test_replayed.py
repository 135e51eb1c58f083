"""A recorded story of a real broker, replayed by `kardia replay` and asked over HTTP: what was, and how it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.answers import as_dicts
from api.past.as_of import Then, group_at
from api.settings import ApiSettings
from api.shapes import models
from api.store import Store
from tests.api.conftest import Api, Clock, running

STORY = Path(__file__).parents[1] / "corpora" / "c04_mpi-4.1.2"
EXPECTED: dict[str, Any] = json.loads((STORY / "expect.json").read_text())
TOLERANCE_MS = 10


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("replayed") / "tables"
    words = ["replay", "--tables", root, "--request-log", STORY / "kafka-request.log.gz", "--cluster", "c04"]
    words += ["--offsets", STORY / "offsets.jsonl.gz", "--workers", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root


@pytest.fixture(scope="module")
def api(root: Path) -> Iterator[Api]:
    with running(ApiSettings(tables=root), Clock(EXPECTED["end_ms"])) as url:
        found = Api(url)
        found.wait_for_batch(0)
        yield found
        found.client.close()


def test_evictions_and_leaves_are_told_as_the_broker_knew_them(api: Api) -> None:
    found = {
        row["member_id"]: row
        for group in ("g04", "g04s")
        for row in models.Evictions.model_validate(
            api.get(f"/api/v1/clusters/c04/groups/{group}/evictions")
        ).model_dump()["evictions"]
    }
    wanted = {one["member_id"]: (one["t"], "session_expired") for one in EXPECTED["evictions"]}
    wanted |= {one["member_id"]: (one["t"], "poll_timeout") for one in EXPECTED["leaves"]}
    assert set(found) == set(wanted)
    for member_id, (at_ms, cause) in wanted.items():
        assert found[member_id]["end_cause"] == cause
        assert abs(found[member_id]["ended_at_ms"] - at_ms) <= TOLERANCE_MS


def test_every_member_of_the_story_is_found_with_its_client(api: Api) -> None:
    for member_id, client_id in EXPECTED["members"].items():
        group = "g04s" if client_id == "c04-s" else "g04"
        found = api.get(f"/api/v1/clusters/c04/groups/{group}/members/{member_id}")
        assert models.MemberAnswer.model_validate(found).model_dump()["member"]["client_id"] == client_id


def test_history_ends_in_the_state_that_the_group_shows(api: Api) -> None:
    for group in api.get("/api/v1/clusters/c04/groups")["groups"]:
        models.ListedGroup.model_validate(group)
        assert group["state"] == "Stable"
        changes = api.get(group["links"]["history"], entity="group", order="oldest", limit=1000)["transitions"]
        assert changes[-1]["to_state"] == group["state"]
        assert [one["from_state"] for one in changes[1:]] == [one["to_state"] for one in changes[:-1]]
        past = api.get(group["links"]["rebalances"], limit=1000)["rebalances"]
        assert past[0]["generation_after"] == group["generation_id"]
        assert all(models.Rebalance.model_validate(one) for one in past)


def test_the_series_count_what_the_routes_list(api: Api) -> None:
    lines = dict(
        line.rsplit(" ", 1) for line in api.client.get("/metrics").text.splitlines() if not line.startswith("#")
    )
    for group in api.get("/api/v1/clusters/c04/groups")["groups"]:
        rows = api.get(group["links"]["evictions"])["evictions"]
        for cause in ("session_expired", "poll_timeout"):
            name = f'kardia_evictions_total{{cause="{cause}",cluster="c04",group="{group["group_id"]}"}}'
            assert float(lines[name]) == sum(row["end_cause"] == cause for row in rows)
    assert float(lines['kardia_cluster_rebalances_total{cluster="c04",trigger="poll_timeout"}']) == 2


def settled(found: Any) -> Any:
    """An answer without what depends on the clock of whoever asks."""
    if isinstance(found, dict):
        return {name: settled(value) for name, value in found.items() if name != "remaining_ms"}
    return [settled(value) for value in found] if isinstance(found, list) else found


def test_the_newest_instant_is_told_from_the_files_as_the_view_has_it(root: Path) -> None:
    """Two ways to the same answer: rows folded as they came, and rows read from files for one instant. The instant is
    that of the newest row, which is a little beyond what the API answers."""
    store = Store(ApiSettings(tables=root), Clock(EXPECTED["end_ms"]))
    store.refresh()
    cluster = store.cluster("c04")
    newest_ms = cluster.reach.newest_ms
    assert newest_ms is not None
    then = Then(newest_ms, None, store.current.batch_id)
    freshness = store.freshness(cluster)
    for view in cluster.groups.values():
        past = group_at(store.readers, store.settings, "c04", view.group_id, view.shard, then)
        assert settled(as_dicts.group(past, freshness)) == settled(as_dicts.group(view, freshness))
        assert past.lives.keys() == view.lives.keys()
        for member_id, life in view.lives.items():
            told = as_dicts.member(past, past.lives[member_id], freshness)
            assert settled(told) == settled(as_dicts.member(view, life, freshness))


def test_each_eviction_lies_between_present_and_absent(api: Api) -> None:
    for one in EXPECTED["evictions"] + EXPECTED["leaves"]:
        groups = [f"/api/v1/clusters/c04/groups/{group}" for group in ("g04", "g04s")]
        before, after = (
            {row["member_id"] for group in groups for row in api.get(f"{group}/members", at=at_ms)["members"]}
            for at_ms in (one["t"] - TOLERANCE_MS - 1, one["t"] + TOLERANCE_MS + 1)
        )
        assert one["member_id"] in before - after
