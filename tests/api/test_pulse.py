"""The pulse route: every beat that the evidence shows and none that it does not, from the archive and from health."""

from __future__ import annotations

from typing import Any

from deltalake import write_deltalake

from kardia.tables import TABLES
from spark_jobs.schemas import to_arrow
from tests.api.conftest import Serve
from tests.api.written import NOW_MS, Tables, health, member, progress, row_of, transition

PULSE = "/api/v1/clusters/demo/groups/orders/pulse"


def archive(tables: Tables, *events: dict[str, Any]) -> None:
    """Events of group `orders`, as the archive holds them."""
    rows = [
        row_of(TABLES["events"], group_id="orders", event_id=f"e{at}", **({"kind": "heartbeat"} | given))
        for at, given in enumerate(events)
    ]
    write_deltalake(tables.root / "events", to_arrow(TABLES["events"], rows, 0), mode="append")


def story(tables: Tables) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a"),
        member("orders", "b"),
        *(health("orders", "a", at_ms=NOW_MS - ago) for ago in (20_000, 15_000, 10_000)),
        health("orders", "b", at_ms=NOW_MS - 10_000, last_heard_at_ms=None, last_poll_at_ms=None, status="unknown"),
        progress(NOW_MS),
    )


def test_without_an_archive_the_beats_are_those_that_health_saw(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    found = api.get(PULSE)
    assert found["archived_to_ms"] is None
    a, b = found["members"]
    assert [(beat["at_ms"] - NOW_MS, beat["by"]) for beat in a["beats"]] == [
        (-21_000, "seen"),
        (-16_000, "seen"),
        (-11_000, "seen"),
    ]
    assert [poll["at_ms"] - NOW_MS for poll in a["polls"]] == [-22_000, -17_000, -12_000]
    assert a["samples"][0]["session_deadline_at_ms"] == NOW_MS - 11_000
    assert (b["beats"], b["polls"], b["samples"][0]["status"]) == ([], [], "unknown")


def test_an_archived_request_is_one_beat_and_a_refused_one_says_so(tables: Tables, serve: Serve) -> None:
    story(tables)
    archive(
        tables,
        {"at_ms": NOW_MS - 21_002, "member_id": "a", "error_code": 0},
        {"at_ms": NOW_MS - 18_000, "member_id": "a", "error_code": 27},
        {"at_ms": NOW_MS - 18_000, "member_id": "", "error_code": 0},
    )
    api = serve()
    api.wait_for_batch(0)
    found = api.get(PULSE)
    assert found["archived_to_ms"] == NOW_MS - 18_000
    assert [(beat["at_ms"] - NOW_MS, beat["by"], beat["error_code"]) for beat in found["members"][0]["beats"]] == [
        (-21_002, "heartbeat", 0),
        (-18_000, "heartbeat", 27),
        (-16_000, "seen", 0),
        (-11_000, "seen", 0),
    ]


def test_from_and_to_bound_everything(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    (a,) = api.get(PULSE, **{"from": NOW_MS - 16_000, "to": NOW_MS - 10_000})["members"]
    assert [beat["at_ms"] - NOW_MS for beat in a["beats"]] == [-16_000]
    assert [sample["at_ms"] - NOW_MS for sample in a["samples"]] == [-15_000]
    assert api.problem(PULSE, **{"from": NOW_MS - 21_600_001, "to": NOW_MS}) == (422, "parameter_refused")
    assert api.get(PULSE, **{"from": NOW_MS - 21_600_000, "to": NOW_MS})["left_off"] == 0
    assert api.get(PULSE, limit=1)["left_off"] == 1
