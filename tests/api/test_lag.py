"""Lag as it is answered: records and time with their bounds, statuses by Burrow's rules, why, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.settings import ApiSettings
from api.shapes import lag_models, report_models
from kardia.story.lagging import REASONS
from kardia.tables import LIVE_TABLES
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.test_hostile_ids import IDS
from tests.api.written import NOW_MS, Tables, health, lag, looked, member, prediction, progress, rebalance, transition

GROUPS = "/api/v1/clusters/demo/groups"
TOPIC_CHARS_MAX = 70
"""Kafka's names of topics have 249 characters at most, all ASCII; these may have four bytes in each of theirs."""
LABELS = (
    *("group", "consumergroup", "group_id", "topic", "topic_name", "partition", "partition_id"),
    *("state", "status", "reason"),
)
STOPPED = {"verdict": "STOP", "window_produced": 40, "window_read": 0}


def rows() -> list[Any]:
    """A group for each reason, one that is well, and one of which nothing but commits is known."""
    found: list[Any] = [looked(), progress(NOW_MS)]
    for group in ("stuck", "slow", "unheld", "well", "rebalances", "unknown"):
        found += [transition(group, 1, "Stable"), member(group, "m"), health(group, "m")]
    found += [transition("nobody", 1, "Empty"), lag("nobody", 0, 40, **STOPPED, held="nobody")]
    found += [lag("stuck", 0, 40, **STOPPED, held="member", member_id="m", client_id="app")]
    found += [prediction("stuck", "m", "poll")]
    found += [lag("slow", 0, 40, verdict="WARN"), lag("slow", 1, 7, verdict="WARN", window_produced=90)]
    found += [lag("unheld", 0, 40, **STOPPED, held="nobody"), lag("unheld", 1, 0, held="member", member_id="m")]
    found += [lag("well", 0, 0), lag("well", 1, 3)]
    began_ms = NOW_MS - 30_000
    found += [
        rebalance("rebalances", began_ms, joined_at_ms=None, completed_at_ms=None),
        lag("rebalances", 0, 9, **STOPPED),
    ]
    found += [lag("unknown", 0, 9, **STOPPED), lag("unknown", 1, None)]
    found += [lag("only-commits", 0, 9, **STOPPED)]
    return found


@pytest.fixture
def api(tables: Tables, serve: Serve) -> Api:
    tables.create()
    tables.batch(0, *rows())
    found = serve(lag_names=True)
    found.wait_for_batch(0)
    return found


def of_group(api: Api, group: str) -> Any:
    found = api.get(f"{GROUPS}/{group}/lag")
    lag_models.LagOfGroup.model_validate(found, strict=True)
    return found


@pytest.mark.parametrize(
    ("group", "reason", "said"),
    [
        ("nobody", "nobody", "Nobody is a member of the group, so nobody reads orders-0."),
        ("rebalances", "rebalance", "A rebalance has lasted for 30 s, and nobody reads orders-0."),
        ("unheld", "unheld", "The group has 1 member, and none of them has orders-0."),
        (
            "stuck",
            "stuck",
            "app, which has orders-0, sends heartbeats and does not poll since 2025-10-09T08:53:18.000Z.",
        ),
        (
            "slow",
            "slow",
            "More comes than is read: in the last 50 s 90 records came to orders-0, and the group committed 50. "
            "The same of 1 other.",
        ),
        ("unknown", "unknown", "Nothing that is read shows why orders-0 falls behind."),
        ("only-commits", "unknown", "Nothing that is read shows why orders-0 falls behind."),
    ],
)
def test_a_group_that_falls_behind_is_told_why(api: Api, group: str, reason: str, said: str) -> None:
    found = of_group(api, group)
    assert [(one["reason"], one["text"]) for one in found["group"]["why"]] == [(reason, said)]
    assert found["partitions"][0]["reason"] == reason
    assert reason in REASONS


def test_who_comes_nearer_or_has_read_everything_is_given_no_reason(api: Api) -> None:
    found = of_group(api, "well")
    assert found["group"]["why"] == []
    assert [(one["partition"], one["lag"], one["reason"]) for one in found["partitions"]] == [
        (1, 3, None),
        (0, 0, None),
    ]


@pytest.mark.parametrize(("began_ms", "reasons"), [(60_000, ["slow"]), (40_000, [])])
def test_who_reads_within_the_time_of_its_own_commits_falls_not_behind(
    tables: Tables, serve: Serve, began_ms: int, reasons: list[str]
) -> None:
    """Its window is fifty seconds long, and a little more came than it has committed yet."""
    tables.create()
    waits = {f"behind_{name}_ms": NOW_MS - began_ms for name in ("from", "at", "to")}
    tables.batch(0, transition("g", 1, "Stable"), member("g", "m"), health("g", "m"), lag("g", 0, 5, **waits))
    tables.batch(1, looked(), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(1)
    assert [one["reason"] for one in of_group(api, "g")["group"]["why"]] == reasons


def test_a_time_lag_has_its_bounds_and_grows_without_a_row(tables: Tables) -> None:
    tables.create()
    open_ended = {"behind_from_ms": None, "behind_at_ms": None}
    tables.batch(0, lag("g", 0, 5), lag("g", 1, 5, **open_ended), lag("g", 2, 0), looked(), progress(NOW_MS))
    clock = Clock()
    with running(ApiSettings(tables=tables.root, refresh_ms=20), clock) as url:
        api = Api(url)
        api.wait_for_batch(0)
        found = {one["partition"]: one for one in of_group(api, "g")["partitions"]}
        times = ("time_lag_least_ms", "time_lag_ms", "time_lag_most_ms")
        assert [found[0][name] for name in times] == [8_000, 10_000, 12_000]
        assert [found[1][name] for name in times] == [8_000, None, None], "at least, never a guess"
        assert [found[2][name] for name in times] == [0, 0, 0]
        clock.now_ms = NOW_MS + 60_000
        tables.batch(1, looked(NOW_MS + 60_000), progress(NOW_MS + 60_000))
        api.wait_for_batch(1)
        found = {one["partition"]: one for one in of_group(api, "g")["partitions"]}
        assert found[0]["time_lag_ms"] == 70_000
        assert found[2]["lag"] == 0, "nothing was written about it: it is as it was"
        clock.now_ms = NOW_MS + 60_000 + 61_000
        stale = of_group(api, "g")
        assert stale["known"]["stale"]
        assert stale["group"]["status"] == "UNKNOWN"
        assert [one["lag"] for one in stale["partitions"]] == [None] * 3
        assert [one[name] for one in stale["partitions"] for name in times] == [None] * 9
        api.client.close()


def test_groups_are_listed_by_status_then_by_lag_and_a_page_is_bounded(api: Api) -> None:
    found = api.get("/api/v1/clusters/demo/lag")
    lag_models.LagOfCluster.model_validate(found, strict=True)
    listed = [(one["group_id"], one["status"], one["lag"]) for one in found["groups"]]
    assert listed[:3] == [("nobody", "ERR", 40), ("stuck", "ERR", 40), ("unheld", "ERR", 40)]
    assert listed[-2:] == [("slow", "WARN", 47), ("well", "OK", 3)]
    assert [one["partitions_known"] for one in found["groups"] if one["group_id"] == "unknown"] == [1]
    short = api.get("/api/v1/clusters/demo/lag", limit=2)
    assert (len(short["groups"]), short["left_off"]) == (2, len(listed) - 2)
    assert api.get(f"{GROUPS}/slow/lag", limit=1)["left_off"] == 1


def test_its_history_is_paged_and_filtered(tables: Tables, serve: Serve) -> None:
    tables.create()
    for number in range(6):
        at_ms = NOW_MS - 60_000 + number * 10_000
        tables.batch(number, lag("g", number % 2, number, at_ms=at_ms), looked(at_ms), progress(at_ms))
    api = serve()
    api.wait_for_batch(5)
    first = api.get(f"{GROUPS}/g/lag/history", limit=4)
    lag_models.LagHistory.model_validate(first, strict=True)
    second = api.get(f"{GROUPS}/g/lag/history", limit=4, cursor=first["next_cursor"])
    assert [row["lag"] for row in first["lag"] + second["lag"]] == [5, 4, 3, 2, 1, 0]
    assert second["next_cursor"] is None
    one = api.get(f"{GROUPS}/g/lag/history", topic="orders", partition=1, order="oldest")
    assert [row["lag"] for row in one["lag"]] == [1, 3, 5]
    assert api.get(f"{GROUPS}/g/lag/history", topic="none")["lag"] == []
    assert api.problem(f"{GROUPS}/g/lag/history", partition="x") == (422, "parameter_refused")
    assert api.problem(f"{GROUPS}/nowhere/lag") == (404, "not_found")


def test_a_commit_that_is_gone_is_held_no_more(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(0, lag("g", 0, 5), lag("g", 1, 5), looked(), progress(NOW_MS))
    tables.batch(1, lag("g", 0, None, state="gone", known_at_ms=NOW_MS + 1), looked(), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(1)
    assert [one["partition"] for one in of_group(api, "g")["partitions"]] == [1]


def test_deleted_records_and_commits_beyond_the_end_are_told(tables: Tables, serve: Serve) -> None:
    tables.create()
    below = {"state": "below_start", "start_offset": 130}
    tables.batch(0, lag("g", 0, 50, **below), lag("g", 1, None, state="beyond_end"), looked(), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    found = {one["partition"]: one for one in of_group(api, "g")["partitions"]}
    assert (found[0]["deleted_unread"], found[0]["lag"]) == (30, 50)
    assert (found[1]["status"], found[1]["lag"]) == ("UNKNOWN", None)


def test_any_name_can_be_asked_about(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(0, *(lag(text, 0, 1, topic=text[:TOPIC_CHARS_MAX]) for text in IDS), looked(), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    listed = api.get("/api/v1/clusters/demo/lag", limit=1_000)["groups"]
    assert {one["group_id"] for one in listed} == set(IDS)
    for one in listed:
        topic, found = one["group_id"][:TOPIC_CHARS_MAX], api.get(one["href"])
        assert [row["topic"] for row in found["partitions"]] == [topic]
        assert api.get(found["partitions"][0]["href"])["lag"][0]["topic"] == topic


def series(api: Api) -> dict[tuple[str, tuple[str, ...]], float]:
    text = api.client.get("/metrics").text
    return {
        (sample.name, tuple(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_series_say_what_is_known_and_nothing_else(api: Api) -> None:
    found = series(api)
    assert found["kardia_group_lag_records", ("slow",)] == 47
    assert found["kardia_group_lag_seconds", ("slow",)] == 10
    assert found["kardia_group_lag_partitions", ("unknown", "unknown")] == 1
    assert found["kardia_group_lag_status", ("slow", "WARN")] == 1
    assert found["kardia_group_lag_status", ("slow", "OK")] == 0
    assert found["kardia_group_lag_reason_partitions", ("slow", "slow")] == 2
    assert found["kardia_partition_lag_records", ("slow", "orders", "1")] == 7
    assert ("kardia_partition_lag_records", ("unknown", "orders", "1")) not in found
    assert found["kardia_lag_known_to_timestamp_seconds", ()] == NOW_MS / 1000


def test_names_of_other_exporters_are_there_on_demand(api: Api, serve: Serve) -> None:
    found = series(api)
    assert found["kafka_consumergroup_lag", ("slow", "orders", "1")] == 7
    assert found["kafka_consumergroup_current_offset", ("slow", "orders", "1")] == 100
    assert found["kafka_consumergroup_lag_sum", ("slow", "orders")] == 47
    assert found["kafka_consumergroup_current_offset_sum", ("slow", "orders")] == 200
    assert found["kafka_consumergroup_members", ("slow",)] == 1
    assert found["kafka_topic_partition_oldest_offset", ("orders", "1")] == 0
    assert found["kminion_kafka_consumer_group_topic_partition_lag", ("slow", "orders", "1")] == 7
    assert found["kminion_kafka_consumer_group_topic_lag", ("slow", "orders")] == 47
    assert ("kafka_topic_partition_current_offset", ("orders", "0")) in found
    other = serve()
    other.wait_for_batch(0)
    assert not [name for name, _ in series(other) if name.startswith(("kafka_", "kminion_"))]


def test_series_of_partitions_are_bounded_and_what_is_left_out_is_counted(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(0, *(lag("g", number, number) for number in range(20)), looked(), progress(NOW_MS))
    api = serve(metrics_lag_partitions_max=5)
    api.wait_for_batch(0)
    found = series(api)
    shown = {labels for name, labels in found if name == "kardia_partition_lag_records"}
    assert shown == {("g", "orders", str(number)) for number in range(15, 20)}
    assert found["kardia_lag_partitions_without_series", ()] == 15
    assert found["kardia_group_lag_records", ("g",)] == sum(range(20))


def test_burrow_is_answered_by_its_own_rules_where_commits_are_read(api: Api) -> None:
    found = api.get("/v3/kafka/demo/consumer/slow/status")
    report_models.BurrowStatus.model_validate(found, strict=True)
    status = found["status"]
    assert (status["status"], status["totallag"], status["partition_count"], status["complete"]) == ("WARN", 47, 2, 1.0)
    assert status["maxlag"]["current_lag"] == 40
    assert [(one["partition"], one["status"]) for one in status["partitions"]] == [(0, "WARN"), (1, "WARN")]
    assert status["partitions"][0]["start"]["offset"] == 50
    assert api.get("/v3/kafka/demo/consumer/stuck/status")["status"]["status"] == "ERR"
    assert api.get("/v3/kafka/demo/consumer/well/status")["status"]["partitions"] == []
    assert len(api.get("/v3/kafka/demo/consumer/well/lag")["status"]["partitions"]) == 2
    unknown = api.get("/v3/kafka/demo/consumer/unknown/lag")["status"]
    assert (unknown["complete"], [one["status"] for one in unknown["partitions"]]) == (0.5, ["STOP", "UNKNOWN"])
    assert "only-commits" in api.get("/v3/kafka/demo/consumer")["consumers"]


def test_burrow_is_told_nothing_of_lag_that_is_old(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(0, lag("g", 0, 0), looked(NOW_MS - 61_000), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    found = api.get("/v3/kafka/demo/consumer/g/status")
    assert found["status"]["status"] == "WARN"
    assert (found["status"]["totallag"], found["status"]["complete"]) == (None, 0.0)
    assert "nobody has looked at the ends of partitions since" in found["message"]


def test_tables_of_an_older_version_are_answered_from_without_lag(tables: Tables, serve: Serve) -> None:
    tables.create(*(name for name in LIVE_TABLES if name != "lag"))
    tables.batch(0, transition("g", 1, "Stable"), member("g", "m"), health("g", "m"), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    assert api.client.get("/readyz").status_code == 200
    assert api.get(f"{GROUPS}/g")["group"]["state"] == "Stable"
    assert api.problem(f"{GROUPS}/g/lag") == (503, "tables_missing")
    assert api.get("/v3/kafka/demo/consumer/g/status")["status"]["status"] == "OK"
