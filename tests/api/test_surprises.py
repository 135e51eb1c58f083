"""Answers that are not as the model predicts, over HTTP and by `kardia surprises`: in pages, by class, counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.shapes import models
from kardia.follow.surprises import SurpriseClass
from kardia.tables import SELF_TEST, SURPRISE_CLASSES
from tests.api.conftest import Api, Serve
from tests.api.written import NOW_MS, Tables, progress, surprise, transition
from tests.story.conftest import kardia

SURPRISES = "/api/v1/clusters/demo/surprises"
COUNTS: dict[str, Any] = {"answers": 120, "predicted": 110, "own_mistake": 2, "broker_not_as_release": 1}


def test_the_classes_are_those_of_the_follower() -> None:
    assert tuple(SURPRISE_CLASSES) == tuple(SurpriseClass)


def story(tables: Tables) -> None:
    """Two batches."""
    tables.create()
    tables.batch(
        0,
        *(transition(group, 1, "Stable", at_ms=NOW_MS - 60_000) for group in ("orders", "other")),
        surprise("orders", 500, at_ms=NOW_MS - 9_000, trace="Kafka 3.9.2\n"),
        progress(NOW_MS - 5_000, **COUNTS),
    )
    tables.batch(
        1,
        surprise("other", 900, at_ms=NOW_MS - 4_000, surprise_class="broker_not_as_release"),
        surprise("orders", 700, at_ms=NOW_MS - 4_000, member_id=None, tried=None),
        progress(NOW_MS, answers=80, predicted=80),
    )


@pytest.fixture
def api(tables: Tables, serve: Serve) -> Api:
    story(tables)
    found = serve()
    found.wait_for_batch(1)
    return found


def starts(answer: Any) -> list[int]:
    return [row["start"] for row in answer["surprises"]]


def test_the_latest_come_first_in_pages_and_by_class_group_and_time(api: Api) -> None:
    whole = api.get(SURPRISES)
    models.Surprises.model_validate(whole)
    assert starts(whole) == [900, 700, 500]
    first = api.get(SURPRISES, limit=2)
    assert starts(first) == [900, 700]
    assert starts(api.get(SURPRISES, limit=2, cursor=first["next_cursor"])) == [500]
    assert starts(api.get(SURPRISES, surprise_class="own_mistake")) == [700, 500]
    assert starts(api.get(SURPRISES, to=NOW_MS - 5_000)) == [500]
    assert starts(api.get("/api/v1/clusters/demo/groups/orders/surprises")) == [700, 500]
    assert whole["surprises"][2]["text"] == (
        "Heartbeat of a was answered 0 NONE; Kafka 3.9.2 answers 25 UNKNOWN_MEMBER_ID. own_mistake: nothing shows yet "
        "whose mistake it is."
    )
    refused = api.client.get(SURPRISES, params={"surprise_class": "boredom"})
    assert refused.status_code == 422
    assert "broker_not_as_release" in refused.text


def test_what_became_of_all_answers_is_in_the_cluster_and_in_the_metrics(api: Api) -> None:
    cluster = api.get("/api/v1/clusters/demo")["cluster"]
    assert cluster["self_test"] == dict.fromkeys(SELF_TEST, 0) | COUNTS | {"answers": 200, "predicted": 190}
    assert cluster["self_test_in_words"] == ("190 answers predicted, 3 surprises, 7 of groups that were not known yet.")
    metrics = api.client.get("/metrics").text
    for outcome, count in {"predicted": 190, "unknown": 7, "broker_not_as_release": 1, "own_mistake": 2}.items():
        assert f'kardia_self_test_answers_total{{cluster="demo",outcome="{outcome}"}} {count}.0' in metrics


def test_the_verb_tells_the_same_of_the_tables(tables: Tables) -> None:
    story(tables)
    said = kardia("surprises", "--tables", tables.root, "--traces")
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert lines[0] == "190 answers predicted, 3 surprises, 7 of groups that were not known yet."
    assert [line.split()[-1] for line in lines if "byte" in line] == ["900", "700", "500"]
    assert "    Kafka 3.9.2" in lines
    only = kardia("surprises", "--tables", tables.root, "--surprise-class", "broker_not_as_release", "--json").json()
    assert [one["start"] for one in only["surprises"]] == [900]
    assert only["self_test"]["answers"] == 200


def test_without_a_request_log_there_is_nothing_to_say(tables: Tables) -> None:
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable"), progress(NOW_MS))
    said = kardia("surprises", "--tables", tables.root)
    assert said.code == 1
    assert said.out.startswith("No answer was put to the model of the brokers' release")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert kardia("surprises", "--tables", tmp_path / "none").code == 2
