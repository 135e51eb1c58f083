"""Deadlines of the past against what was so: a recorded story, its tables as a live job leaves them, and the truth.

Goal: no answer says that less was left than was, unless it says that it is the least. Method: the truth is what the
observer knows when it writes every member down twenty times a second; the tables have a row every few seconds, with and
without the archive of single requests. At hundreds of instants both are compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from api.answers import as_dicts
from api.past.as_of import Then, freshness_at, group_at
from api.settings import ApiSettings
from api.store import Store
from kardia.observe import Observer, ObserverSettings
from kardia.tables import TABLES
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, transition
from tests.support.pictures import write_live
from tests.support.stories import lanes_of

STORY, CLUSTER = "c04_mpi-4.1.2", "demo"
FINE_MS = 50.0
EVERY = 23
"""Of the instants at which the truth is known: every 1.15 s, so that all places between two rows are met."""


class Life(NamedTuple):
    """What the fine rows say of one member: at which instants it was there, and what each deadline runs from."""

    instants: list[int]
    renewals: dict[str, dict[int, int]]
    """session or poll -> when it was renewed -> the deadline that follows."""

    def deadline_ms(self, kind: str, at_ms: int) -> int | None:
        """The deadline that was in force at an instant."""
        begun = [renewed_ms for renewed_ms in self.renewals[kind] if renewed_ms <= at_ms]
        return self.renewals[kind][max(begun)] if begun else None


class Told(NamedTuple):
    """A story in tables, and what was so: (group, member) -> its life."""

    root: Path
    truth: dict[tuple[str, str], Life]
    end_ms: int


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    root = tmp_path_factory.mktemp("renewals") / "tables"
    _, end_ms = write_live(STORY, root, CLUSTER)
    names = TABLES["health"].names
    truth: dict[tuple[str, str], Life] = {}
    for lane, events in enumerate(lanes_of(STORY)):
        observer = Observer(ObserverSettings(CLUSTER, health_sample_ms=FINE_MS, sample_within_ms=FINE_MS), lane)
        for values in observer.step(list(events))["health"]:
            row = dict(zip(names, values, strict=False))
            if row["session_deadline_at_ms"] is None or row["status"] in ("ended", "unknown"):
                continue
            life = truth.setdefault((row["group_id"], row["member_id"]), Life([], {"session": {}, "poll": {}}))
            life.instants.append(row["at_ms"])
            life.renewals["session"][row["last_heard_at_ms"]] = row["session_deadline_at_ms"]
            if row["poll_deadline_at_ms"] is not None:
                life.renewals["poll"][row["last_poll_at_ms"]] = row["poll_deadline_at_ms"]
    return Told(root, truth, end_ms)


def compared(told: Told, root: Path) -> Iterator[tuple[dict[str, Any], int, int]]:
    """(deadline as answered, its truth, the instant)."""
    store = Store(ApiSettings(tables=root), Clock(told.end_ms))
    store.refresh()
    cluster = store.cluster(CLUSTER)
    reached_ms = cluster.reach.complete_as_of_ms
    assert reached_ms is not None
    every = {at_ms for life in told.truth.values() for at_ms in life.instants if at_ms <= reached_ms - 1_000}
    instants = sorted(every)[::EVERY]
    for at_ms in instants:
        then = Then(at_ms, None, store.current.batch_id)
        for view in cluster.groups.values():
            past = group_at(store.readers, store.settings, CLUSTER, view.group_id, view.shard, then)
            for member_id, life in past.lives.items():
                fine = told.truth.get((view.group_id, member_id))
                if fine is None or at_ms not in fine.instants:
                    continue
                found = as_dicts.member(past, life, freshness_at(store.freshness(cluster), then))
                for kind in ("session", "poll"):
                    truth_ms = fine.deadline_ms(kind, at_ms)
                    if found[kind] is not None and found[kind]["deadline_at_ms"] is not None and truth_ms is not None:
                        yield {"kind": kind, "status": found["status"], **found[kind]}, truth_ms, at_ms


def test_a_deadline_of_the_past_is_right_or_says_that_it_is_the_least(told: Told) -> None:
    seen = list(compared(told, told.root))
    assert len(seen) > 200
    for found, truth_ms, at_ms in seen:
        if found["is_least"]:
            assert found["deadline_at_ms"] <= truth_ms + 1, (found, truth_ms)
            assert found["remaining_ms"] is None or found["remaining_ms"] >= 0
        else:
            assert abs(found["deadline_at_ms"] - truth_ms) <= 1, (found, truth_ms)
            assert found["remaining_ms"] == found["deadline_at_ms"] - at_ms
    exact = [one["is_least"] for one, _, _ in seen if one["kind"] == "session"].count(False)
    assert exact > 0.8 * sum(one["kind"] == "session" for one, _, _ in seen), "the archive holds each heartbeat"


def test_without_the_archive_more_is_the_least_and_nothing_wrong(told: Told, tmp_path: Path) -> None:
    root = tmp_path / "tables"
    shutil.copytree(told.root, root)
    shutil.rmtree(root / "events")
    least = 0
    for found, truth_ms, _ in compared(told, root):
        least += found["is_least"]
        assert found["deadline_at_ms"] <= truth_ms + 1, (found, truth_ms)
        assert found["is_least"] or abs(found["deadline_at_ms"] - truth_ms) <= 1, (found, truth_ms)
    assert least > 20, "rows alone cannot know all of them"


def test_the_health_route_and_the_report_know_as_much(told: Told) -> None:
    with running(ApiSettings(tables=told.root), Clock(told.end_ms)) as url:
        api = Api(url)
        api.wait_for_batch(0)
        group = f"/api/v1/clusters/{CLUSTER}/groups/g04"
        reached_ms = api.get(group)["freshness"]["complete_as_of_ms"]
        there = {who: life for (name, who), life in told.truth.items() if name == "g04"}
        at_ms = max(at for life in there.values() for at in life.instants if at <= reached_ms - 5_000)
        rows = api.get(f"{group}/health", at=at_ms)["health"]
        report = api.get(f"{group}/incident", **{"from": at_ms - 1_000, "to": at_ms})["deadlines"]
        members = api.get(f"{group}/members", at=at_ms)["members"]
        api.client.close()
    assert members
    for found in (rows, report):
        known = {row["member_id"]: row for row in found}
        for one in members:
            row = known[one["member_id"]]
            for kind in ("session", "poll"):
                told_ms = one[kind]["deadline_at_ms"], one[kind]["is_least"]
                assert (row[f"{kind}_deadline_at_ms"], row[f"{kind}_is_least"]) == told_ms


GROUP = "/api/v1/clusters/demo/groups/orders"


def sampled(tables: Tables, serve: Serve, *rows: tuple[str, tuple[Any, ...]]) -> Api:
    """A member that was written down 8 s ago, and heard 1 s before that, of a session of 6 s."""
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 60_000),
        member("orders", "a", session_timeout_ms=6_000, known_at_ms=NOW_MS - 60_000),
        health(
            "orders", "a", at_ms=NOW_MS - 4_900, session_timeout_ms=6_000, session_deadline_at_ms=NOW_MS - 108,
            last_heard_at_ms=NOW_MS - 6_108,
        ),
        *rows,
        progress(NOW_MS),
    )  # fmt: skip
    api = serve()
    api.wait_for_batch(0)
    return api


@pytest.mark.parametrize("at", [None, NOW_MS])
def test_who_is_well_is_never_over_since(tables: Tables, serve: Serve, at: int | None) -> None:
    """`ok … over since 108 ms` of a member that had been heard since, now and in the past."""
    api = sampled(tables, serve)
    when = {} if at is None else {"at": at}
    (found,) = api.get(f"{GROUP}/members", **when)["members"]
    assert (found["status"], found["session"]["is_least"], found["session"]["remaining_ms"]) == ("ok", True, None)
    deadline = api.get(GROUP, **when)["group"]["next_session_deadline"]
    assert (deadline["is_least"], deadline["remaining_ms"]) == (True, None)
    if at is None:
        (listed,) = api.get("/api/v1/clusters/demo/groups")["groups"]
        assert listed["next_session_deadline"] == deadline
        first = api.get("/api/v1/clusters/demo/next-evictions")["next_evictions"][0]
        assert (first["kind"], first["is_least"], first["remaining_ms"]) == ("session", True, None)


@pytest.mark.parametrize("at", [None, NOW_MS])
def test_who_is_predicted_to_go_is_told_exactly(tables: Tables, serve: Serve, at: int | None) -> None:
    """The next request would have closed the prediction; its deadline is younger than the row."""
    said = prediction(
        "orders", "a", "session", predicted_at_ms=NOW_MS - 500, deadline_at_ms=NOW_MS - 108, known_at_ms=NOW_MS - 500
    )
    api = sampled(tables, serve, said)
    (found,) = api.get(f"{GROUP}/members", **({} if at is None else {"at": at}))["members"]
    assert (found["session"]["is_least"], found["session"]["remaining_ms"]) == (False, -108)
