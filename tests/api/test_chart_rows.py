"""The pulse as flat rows: the same points, the silence before each beat, lanes with names that people know."""

from __future__ import annotations

from typing import Any

import pytest

from api.answers import chart_rows
from api.routes.pulse import WIDTH_MAX_MS
from tests.api.conftest import Clock, Serve
from tests.api.test_pulse import PULSE, archive, story
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, transition

LANES = PULSE.replace("/pulse", "/lanes")


def test_each_point_of_the_pulse_is_a_row_and_there_is_no_other(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    pulse, found = api.get(PULSE)["members"], api.get(LANES)
    for kind in ("beats", "polls", "samples"):
        assert [row["at_ms"] for row in found[kind]] == sorted(one["at_ms"] for lane in pulse for one in lane[kind])
    assert [(row["gap_ms"], row["gap_ratio"]) for row in found["beats"]] == [(None, None)] * 3
    assert {row["lane"] for row in found["samples"]} == {one["lane"] for one in found["lanes"]} == {"app …a", "app …b"}
    left = {row["lane"]: (row["session_headroom_ratio"], row["poll_headroom_ratio"]) for row in found["samples"]}
    assert left == {"app …a": (0.9, 0.9667), "app …b": (None, None)}


def test_a_sample_makes_no_gap(tables: Tables, serve: Serve) -> None:
    """Session 10 s, a heartbeat every 3 s, archived up to a point; behind it a sample every 5 s, as of any healthy
    member."""
    tables.create()
    beats = (-40_000, -37_000, -34_000, -25_000, -22_000)
    samples = (-41_000, -36_000, -31_000, -20_000, -15_000, -10_000, -5_000)
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a"),
        *(health("orders", "a", at_ms=NOW_MS + at, last_heard_at_ms=NOW_MS + at - 1_000) for at in samples),
        health("orders", "a", at_ms=NOW_MS - 28_000, last_heard_at_ms=None, status="unknown", certainty="unknown"),
        progress(NOW_MS),
    )
    archive(tables, *({"at_ms": NOW_MS + at, "member_id": "a", "error_code": 0} for at in beats))
    api = serve()
    api.wait_for_batch(0)
    found = {row["at_ms"] - NOW_MS: (row["by"], row["gap_ms"]) for row in api.get(LANES)["beats"]}
    assert found == {
        -42_000: ("seen", None),
        -40_000: ("heartbeat", None),
        -37_000: ("heartbeat", 3_000),
        -34_000: ("heartbeat", 3_000),
        -32_000: ("seen", None),
        -25_000: ("heartbeat", None),
        -22_000: ("heartbeat", 3_000),
        -21_000: ("seen", None),
        -16_000: ("seen", None),
        -11_000: ("seen", None),
        -6_000: ("seen", None),
    }


def test_across_a_time_of_which_nothing_is_known_there_is_no_gap(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a"),
        health("orders", "a", at_ms=NOW_MS - 20_000, last_heard_at_ms=None, status="unknown", certainty="unknown"),
        progress(NOW_MS),
    )
    archive(tables, *({"at_ms": NOW_MS - ago, "member_id": "a"} for ago in (25_000, 22_000, 12_000, 9_000)))
    api = serve()
    api.wait_for_batch(0)
    assert [row["gap_ms"] for row in api.get(LANES)["beats"]] == [None, 3_000, None, 3_000]


def test_who_waits_in_a_joingroup_is_not_silent(tables: Tables, serve: Serve) -> None:
    """The session timeout of 10 s runs from the answer."""
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable"), member("orders", "a"), health("orders", "a"), progress(NOW_MS))
    archive(
        tables,
        {"at_ms": NOW_MS - 40_000, "member_id": "a"},
        {"at_ms": NOW_MS - 38_000, "member_id": "a", "kind": "join", "decided_at_ms": NOW_MS - 13_000.0},
        {"at_ms": NOW_MS - 12_990, "member_id": "a", "kind": "sync", "decided_at_ms": NOW_MS - 12_950.0},
        {"at_ms": NOW_MS - 10_000, "member_id": "a"},
    )
    api = serve()
    api.wait_for_batch(0)
    beats = [row for row in api.get(LANES)["beats"] if row["by"] != "seen"]
    assert [row["gap_ms"] for row in beats] == [None, 2_000, 10, 2_950]


def test_the_state_that_lasts_is_in_the_picture_before_its_cause_is_known(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 50_000),
        member("orders", "a"),
        health("orders", "a", at_ms=NOW_MS - 49_000),
        health("orders", "a", at_ms=NOW_MS - 30_000, group_state="PreparingRebalance", certainty="provisional"),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)

    def told(to: int | None = None) -> list[tuple[int, str, str]]:
        times = {"from": NOW_MS - 60_000} | ({} if to is None else {"to": NOW_MS + to})
        found = api.get(LANES, **times)["states"]
        return [(row["at_ms"] - NOW_MS, row["state"], row["certainty"]) for row in found]

    before = [(-60_000, "Unknown", "unknown"), (-50_000, "Stable", "exact")]
    assert told() == [*before, (-30_000, "PreparingRebalance", "provisional")]
    assert told(-30_000) == before
    # Once it is told, it stands where it was, and once.
    tables.batch(
        1,
        transition("orders", 2, "PreparingRebalance", at_ms=NOW_MS - 31_000, known_at_ms=NOW_MS),
        transition("orders", 3, "Stable", at_ms=NOW_MS - 1_000, known_at_ms=NOW_MS),
        progress(NOW_MS),
    )
    api.wait_for_batch(1)
    settled = [(-31_000, "PreparingRebalance", "exact"), (-1_000, "Stable", "exact")]
    assert told() == [*before, *settled]


def test_who_is_waited_for_is_told_from_who_waits(tables: Tables, serve: Serve) -> None:
    tables.create()
    common = {"group_state": "PreparingRebalance", "certainty": "provisional"}
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 50_000),
        *(member("orders", one, client_id=one) for one in "abc"),
        health("orders", "a", client_id="a", status="overdue", **common),
        health("orders", "b", client_id="b", status="ok", awaited_since_at_ms=NOW_MS - 9_000, **common),
        health("orders", "c", client_id="c", status="overdue"),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    assert {row["lane"]: row["shown"] for row in api.get(LANES)["samples"]} == {
        "a": "unseen",
        "b": "awaited",
        "c": "overdue",
    }


def test_where_there_is_no_room_for_all_those_in_trouble_are_shown(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=NOW_MS - 50_000),
        *(member("orders", one, client_id=one) for one in "abcd"),
        *(health("orders", one, client_id=one, at_ms=NOW_MS - 9_000) for one in "abcd"),
        health("orders", "c", client_id="c", at_ms=NOW_MS - 8_000, status="imminent"),
        health("orders", "c", client_id="c"),
        health("orders", "d", client_id="d", status="overdue"),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    found = api.get(LANES, limit=2)
    assert ([one["lane"] for one in found["lanes"]], found["left_off"]) == (["c", "d"], 2)
    assert [one["lane"] for one in api.get(LANES, limit=3)["lanes"]] == ["a", "c", "d"]


def test_the_list_of_points_has_what_the_lanes_have(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    found, points = api.get(LANES), api.get(LANES.replace("/lanes", "/points"))["points"]
    assert [row["at_ms"] for row in points] == sorted(row["at_ms"] for row in points)
    for kind, name in chart_rows.POINTS.items():
        of_kind = [row for row in points if row["kind"] == kind]
        assert len(of_kind) == len(found[name]) > 0, kind
        for point, row in zip(of_kind, found[name], strict=True):
            filled = {field: value for field, value in point.items() if field != "kind" and value is not None}
            assert filled == {field: value for field, value in row.items() if field in filled}, kind


def test_one_member_is_asked_for_by_its_id(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    found = api.get(LANES, member="a")
    assert [one["lane"] for one in found["lanes"]] == ["app"]
    assert {row["lane"] for row in found["samples"]} == {"app"}
    assert api.get(LANES, member="nobody")["lanes"] == []


def test_a_range_that_is_too_wide_or_ahead_of_the_log_is_answered_for_its_end(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    found = api.get(LANES, **{"from": NOW_MS - 10 * WIDTH_MAX_MS, "to": NOW_MS + 60_000})
    assert (found["to_ms"], found["to_ms"] - found["from_ms"]) == (NOW_MS + 1, WIDTH_MAX_MS)
    assert len(found["samples"]) == 4
    ahead = api.get(LANES, **{"from": NOW_MS + 60_000})
    assert (ahead["from_ms"], ahead["to_ms"], ahead["samples"]) == (NOW_MS + 60_000, NOW_MS + 60_000, [])


def test_states_begin_with_what_was_and_leave_out_what_had_no_width(tables: Tables, serve: Serve) -> None:
    tables.create()
    changes = (
        (-30_000, "Stable"),
        (-20_000, "PreparingRebalance"),
        (-20_000, "CompletingRebalance"),
        (-19_000, "Stable"),
    )
    rows = [transition("orders", seq, state, at_ms=NOW_MS + at) for seq, (at, state) in enumerate(changes, 1)]
    other = transition("orders", 5, "Absent", entity="member", member_id="a", at_ms=NOW_MS - 15_000)
    tables.batch(0, *rows, other, progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)

    def told(**times: int) -> list[tuple[int, str]]:
        found = api.get(LANES, **{name.rstrip("_"): NOW_MS + at for name, at in times.items()})["states"]
        return [(row["at_ms"] - NOW_MS, row["state"]) for row in found]

    later = [(-20_000, "CompletingRebalance"), (-19_000, "Stable")]
    assert told(from_=-25_000) == [(-25_000, "Stable"), *later]
    assert told(from_=-35_000) == [(-35_000, "Unknown"), (-30_000, "Stable"), *later]
    assert told(from_=-20_000) == later
    assert told(from_=-25_000, to=-20_000) == [(-25_000, "Stable")]


def test_a_picture_of_a_feed_that_stalled_ends_in_unknown(tables: Tables, serve: Serve, clock: Clock) -> None:
    story(tables)
    tables.batch(1, health("orders", "c", at_ms=NOW_MS - 9_000, status="ended"), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(1)

    def ends(**times: int) -> tuple[dict[str, str], str]:
        found = api.get(LANES, **{name.rstrip("_"): at for name, at in times.items()})
        return {row["lane"][-1]: row["status"] for row in found["samples"]}, found["states"][-1]["state"]

    fresh = ({"a": "ok", "b": "unknown", "c": "ended"}, "Stable")
    assert ends() == fresh
    clock.now_ms += 60_000
    blind = ({"a": "unknown", "b": "unknown", "c": "ended"}, "Unknown")
    assert ends() == blind
    assert ends(from_=NOW_MS - 30_000, to=NOW_MS + 60_000) == blind
    assert ends(from_=NOW_MS - 30_000, to=NOW_MS - 1) == ({"a": "ok", "b": "unknown", "c": "ended"}, "Unknown")


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ([("app", None, "m-1")], ["app"]),
        ([("app", "static-1", "m-1"), ("app", None, "m-2")], ["app", "static-1"]),
        ([("app", None, "m-000001"), ("app", None, "m-000002")], ["app …000001", "app …000002"]),
        ([("app", None, "1-000001"), ("app", None, "2-000001")], ["1 app", "2 app"]),
        (
            [("1 app", None, "a-000001"), ("app", None, "b-000001"), ("app", None, "c-000001")],
            ["1 1 app", "2 app", "3 app"],
        ),
        ([(None, None, "m-1")], ["m-1"]),
        ([("x" * 81, None, "m-1"), ("y" * 80, None, "m-2")], ["x" * 79 + "…", "y" * 80]),
    ],
)
def test_lanes_have_names_that_people_know_and_no_two_share_one(
    members: list[tuple[str | None, str | None, str]], names: list[str]
) -> None:
    found: list[dict[str, Any]] = [
        {"client_id": client_id, "group_instance_id": static_id, "member_id": member_id}
        for client_id, static_id, member_id in members
    ]
    assert [name for name, _ in chart_rows.named(found)] == names


def test_history_and_predictions_are_told_of_one_member_alone(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        transition("orders", 2, "Present", entity="member", member_id="a"),
        transition("orders", 3, "Present", entity="member", member_id="b"),
        member("orders", "a"),
        member("orders", "b"),
        health("orders", "a"),
        prediction("orders", "a", "session"),
        prediction("orders", "b", "poll"),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    group = PULSE.removesuffix("/pulse")
    for member_id, kind in (("a", "session"), ("b", "poll")):
        told = api.get(f"{group}/history", member=member_id)["transitions"]
        assert [row["member_id"] for row in told] == [member_id]
        foretold = api.get(f"{group}/predictions", member=member_id)["predictions"]
        assert [(row["member_id"], row["kind"]) for row in foretold] == [(member_id, kind)]
    counted = dict(line.rsplit(" ", 1) for line in api.client.get("/metrics").text.splitlines())
    by_certainty = {
        certainty: float(counted[f'kardia_members_by_certainty{{certainty="{certainty}",cluster="demo"}}'])
        for certainty in ("exact", "inferred", "provisional", "unknown")
    }
    assert by_certainty == {"exact": 1, "inferred": 0, "provisional": 0, "unknown": 1}, "b has no health row yet"
