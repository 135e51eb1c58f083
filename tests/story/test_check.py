"""`kardia check`: the exit status is the answer, and unknown is never well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.verbs import check
from tests.api.written import Tables, health, member, progress, transition
from tests.story.conftest import kardia, wall_ms


@pytest.fixture
def live(tmp_path: Path) -> Any:
    """Tables of this moment with one member per given health; gives a function that checks them."""

    def check(*given: dict[str, Any], behind_ms: int = 0, words: tuple[str, ...] = ()) -> Any:
        now_ms = wall_ms() - behind_ms
        tables = Tables(tmp_path / "tables")
        tables.create()
        rows: list[Any] = [transition("g", 1, "Stable", at_ms=now_ms - 5_000)]
        for n, one in enumerate(given):
            rows.append(member("g", f"m{n}", joined_at_ms=now_ms - 5_000, known_at_ms=now_ms - 5_000))
            left_ms = one.pop("left_ms", 9_000)
            rows.append(health("g", f"m{n}", at_ms=now_ms, session_deadline_at_ms=now_ms + left_ms, **one))
        # Ten minutes ahead, so that no pause of this machine makes the tables old while they are asked.
        tables.batch(0, *rows, progress(now_ms + (0 if behind_ms else 600_000)))
        return kardia("check", *words, "--tables", tables.root)

    return check


def test_enough_is_left(live: Any) -> None:
    said = live({}, {"left_ms": 3_000})
    assert (said.code, said.out) == (0, "OK: 1 group, nobody is below the margin.\n")


def test_a_margin_is_kept_at_its_edge_and_broken_below_it(live: Any) -> None:
    said = live({}, {"left_ms": 2_999})
    assert (said.code, said.out) == (1, "BELOW g: session margin 0.2999, expected at least 0.3\n")


def test_an_overdue_member_is_below_every_margin(live: Any) -> None:
    said = live({"status": "overdue", "left_ms": -1}, words=("g", "--session-margin", "0"))
    assert (said.code, said.out) == (1, "BELOW g: 1 overdue\n")


def test_who_may_wait_for_a_rebalance_is_not_below_and_not_known(live: Any) -> None:
    said = live({"status": "overdue", "left_ms": -1_000, "group_state": "PreparingRebalance"})
    assert (said.code, said.out) == (3, "UNKNOWN: of 1 member the status is unknown.\n")


def test_poll_margins_count_when_they_are_asked_for(live: Any) -> None:
    said = live({}, words=("--poll-margin", "0.99"))
    assert (said.code, "poll margin 0.9667, expected at least 0.99" in said.out) == (1, True)


def test_unknown_is_neither_well_nor_below(live: Any) -> None:
    said = live({}, {"status": "unknown", "left_ms": -5_000})
    assert (said.code, said.out) == (3, "UNKNOWN: of 1 member the status is unknown.\n")


def test_what_is_below_for_sure_counts_whatever_else_is_unknown(live: Any) -> None:
    said = live({"left_ms": 100}, {"status": "unknown", "left_ms": -5_000})
    assert (said.code, said.out) == (1, "BELOW g: session margin 0.01, expected at least 0.3\n")


def test_tables_that_are_behind_give_no_answer(live: Any) -> None:
    said = live({}, behind_ms=60_000)
    assert (said.code, said.out.startswith("UNKNOWN: the tables are behind")) == (3, True)


def test_for_a_program_it_says_what_it_rests_on(live: Any) -> None:
    said = live({"left_ms": 100}, {"status": "unknown", "left_ms": -5_000}, words=("-o", "json"))
    found = said.json()
    assert found.pop("complete_as_of_ms") > wall_ms()
    assert (said.code, found) == (
        1,
        {
            "verdict": "below",
            "exit_status": 1,
            "stale": False,
            "session_margin": 0.3,
            "poll_margin": None,
            "groups": 1,
            "more_groups": False,
            "unknown_members": 1,
            "unknown_without_request_log": 0,
            "below": [
                {
                    "cluster_id": "demo",
                    "group_id": "g",
                    "why": "session margin 0.01, expected at least 0.3",
                    "overdue_members": 0,
                    "session_headroom_min_ratio": 0.01,
                    "poll_headroom_min_ratio": found["below"][0]["poll_headroom_min_ratio"],
                }
            ],
        },
    )


@pytest.mark.parametrize(
    ("given", "behind_ms", "verdict", "status"),
    [({}, 0, "ok", 0), ({"left_ms": 1}, 60_000, "unknown", 3), ({"status": "unknown"}, 0, "unknown", 3)],
    ids=["well", "behind", "unknown"],
)
def test_for_a_program_the_verdict_is_that_of_the_exit_status(
    live: Any, given: dict[str, Any], behind_ms: int, verdict: str, status: int
) -> None:
    said = live(given, behind_ms=behind_ms, words=("-o", "json"))
    found = said.json()
    assert (said.code, found["exit_status"], found["verdict"]) == (status, status, verdict)
    assert (found["stale"], found["below"]) == (behind_ms > 0, [])


def test_no_tables_give_no_answer_and_a_bad_question_is_one(tmp_path: Path) -> None:
    assert kardia("check", "--api", "http://127.0.0.1:9").code == 3
    assert kardia("check", "--tables", tmp_path / "none").code == 3, "nobody can tell, as the help says"
    assert kardia("groups", "--tables", tmp_path / "none").code == 2
    assert kardia("check", "--session-margin", "2").code == 2


def test_where_no_request_is_read_it_says_what_it_would_take(tmp_path: Path) -> None:
    """It said that the status is unknown and left whoever was called at night to find out why."""
    log = Path(__file__).parents[1] / "corpora" / "c04_mpi-3.9.2" / "server.log.gz"
    tables = tmp_path / "tables"
    assert kardia("replay", "--server-log", log, "--tables", tables).code == 0
    found = json.loads(kardia("check", "-o", "json", "--tables", tables).out)
    assert found["unknown_without_request_log"] == found["unknown_members"] > 0
    said = "\n".join(check._lines(found | {"stale": False}))
    assert "it takes the request log of their broker" in said
