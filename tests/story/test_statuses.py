"""One member that is silent in a rebalance, and one that a rebalance waits for: every way out says the same of them.

Goal: whoever may be waiting in a JoinGroup is `unseen` everywhere, is over nowhere, and has no margin; whom a rebalance
waits for is `awaited`. Method: tables of this moment with the two, a member in good health and one that is overdue in a
Stable group; the terminal, the story, REST, the boards and the series are asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from api.metrics import TableMetrics
from api.settings import ApiSettings
from api.store import Store
from tests.api.conftest import Api, running
from tests.api.written import Tables, health, member, prediction, progress, rebalance, transition
from tests.story.conftest import kardia, wall_ms

PREPARING = "PreparingRebalance"
WAITS = {"silent": "unseen", "slow": "awaited", "well": "ok"}
"""Members of the group `waits` and how they are shown."""

GROUP = "/api/v1/clusters/demo/groups/waits"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    now_ms = wall_ms()
    made = Tables(tmp_path_factory.mktemp("statuses") / "tables")
    made.create()
    joined = {"joined_at_ms": now_ms - 60_000, "known_at_ms": now_ms - 60_000}
    of_waits = {"at_ms": now_ms, "group_state": PREPARING}
    made.batch(
        0,
        transition("waits", 1, "Stable", at_ms=now_ms - 60_000),
        transition("waits", 2, PREPARING, at_ms=now_ms - 15_000, from_state="Stable"),
        rebalance("waits", now_ms - 15_000, joined_at_ms=None, completed_at_ms=None, generation_after=None),
        *(member("waits", name, client_id=name, **joined) for name in WAITS),
        health(
            "waits",
            "silent",
            client_id="silent",
            status="overdue",
            reasons=["its session deadline has passed"],
            session_deadline_at_ms=now_ms - 3_000,
            last_heard_at_ms=now_ms - 13_000,
            poll_deadline_at_ms=now_ms - 1_000,
            **of_waits,
        ),
        health("waits", "slow", client_id="slow", awaited_since_at_ms=now_ms - 14_000, **of_waits),
        health("waits", "well", client_id="well", session_deadline_at_ms=now_ms + 7_000, **of_waits),
        transition("over", 1, "Stable", at_ms=now_ms - 60_000),
        member("over", "dead", client_id="dead", **joined),
        health("over", "dead", client_id="dead", status="overdue", at_ms=now_ms, session_deadline_at_ms=now_ms - 9),
        # Ten minutes ahead, so that no pause of this machine makes the tables old while they are asked.
        progress(now_ms + 600_000),
    )
    return made.root


@pytest.fixture(scope="module")
def api(tables: Path) -> Iterator[Api]:
    with running(ApiSettings(tables=tables), wall_ms) as url:
        found = Api(url)
        found.wait_for_batch(0)
        yield found
        found.client.close()


def row_of(out: str, name: str) -> str:
    """Line of a table that begins with a name."""
    (line,) = (line for line in out.splitlines() if re.match(rf"\s*{name}\s", line))
    return line


@pytest.mark.parametrize("verb", [("group", "waits"), ("watch", "waits", "--for", "0")], ids=lambda verb: verb[0])
def test_a_table_of_members_says_what_the_page_says(tables: Path, verb: tuple[str, ...]) -> None:
    out = kardia(*verb, "--tables", tables).out
    for name, status in WAITS.items():
        assert status in row_of(out, name).split(), name
    assert "over since" not in out
    assert "overdue" not in out
    lines = [out.index(row_of(out, name)) for name in ("slow", "silent", "well")]
    assert lines == sorted(lines), "the worst first"


def test_one_member_is_told_alike(tables: Path) -> None:
    out = kardia("member", "waits", "silent", "--tables", tables).out
    assert row_of(out, "status").split()[1] == "unseen"
    assert "over since" not in out


@pytest.mark.parametrize("verb", [("groups",), ("watch", "--for", "0")], ids=lambda verb: verb[0])
def test_a_table_of_groups_says_it_and_lists_the_worst_first(tables: Path, verb: tuple[str, ...]) -> None:
    out = kardia(*verb, "--tables", tables).out
    assert row_of(out, "over").split()[1] == "overdue"
    assert row_of(out, "waits").split()[1] == "awaited"
    assert out.index("over ") < out.index("waits ")


def test_the_story_does_not_say_that_a_deadline_has_passed(tables: Path) -> None:
    found = kardia("explain", "waits", "--tables", tables, "-o", "json").json()["sentences"]
    (told,) = (one for one in found if one["kind"] == "deadline" and one["member_ids"] == ["silent"])
    assert "it waits in its JoinGroup, which is logged when it is answered, or is gone" in told["text"]
    assert "passed" not in told["text"]
    assert told["certainty"] == "unknown"


def test_rest_and_boards_leave_nothing_and_nothing_over(api: Api) -> None:
    found = {one["member_id"]: one for one in api.get(f"{GROUP}/members")["members"]}
    assert {name: one["shown"] for name, one in found.items()} == WAITS
    for kind in ("session", "poll"):
        left = found["silent"][kind]
        assert (left["remaining_ms"], left["headroom_ratio"]) == (None, None), kind
        assert found["well"][kind]["headroom_ratio"] is not None
    group = api.get(GROUP)["group"]
    assert group["session_headroom_min_ratio"] == found["well"]["session"]["headroom_ratio"]
    assert group["next_session_deadline"]["member_id"] == "well"
    nearest = api.get("/api/v1/clusters/demo/next-evictions")
    assert "silent" not in {one["member_id"] for one in nearest["next_evictions"]}
    assert nearest["unknown_members"] == 1, "it is counted among those of whom no deadline is known"
    board = api.get("/api/v1/boards/clusters/demo/groups/waits")["members"]
    assert {one["client_id"]: one["status"] for one in board} == WAITS


def test_members_are_counted_by_the_words_that_the_list_of_them_says(api: Api) -> None:
    """A member that a rebalance waits for was counted twice, as ok and awaited; one that is predicted to go, as ok."""
    for group in api.get("/api/v1/clusters/demo/groups")["groups"]:
        words = Counter(one["shown"] for one in api.get(f"{group['href']}/members")["members"])
        detail = api.get(group["href"])["group"]["members"]
        assert detail == group["members"]
        assert {word: count for word, count in detail.items() if count} == {**words, "total": words.total()}


def test_series_have_no_margin_of_who_is_unseen(tables: Path) -> None:
    store, registry = Store(ApiSettings(tables=tables), wall_ms), CollectorRegistry(auto_describe=False)
    store.refresh()
    registry.register(TableMetrics(store))
    of_group = {"cluster": "demo", "group": "waits"}
    assert registry.get_sample_value("kardia_group_session_headroom_min_ratio", of_group) == 0.7
    for threshold in ("0.5", "0.25", "0.1"):
        of = {"kind": "session", "threshold": threshold}
        assert registry.get_sample_value("kardia_group_members_below_headroom", of_group | of) == 0
    for status in ("ok", "late", "imminent", "overdue", "unknown", "awaited", "unseen"):
        count = registry.get_sample_value("kardia_group_members", of_group | {"state": status})
        assert count == (status in WAITS.values()), status
    in_all = {"cluster": "demo", "state": "unseen"}
    assert registry.get_sample_value("kardia_members", in_all) == 1


@pytest.mark.parametrize("verb", [("group", "g"), ("groups",), ("watch", "--for", "0"), ("watch", "g", "--for", "0")])
def test_nothing_is_near_once_its_deadline_has_passed_unread(tmp_path: Path, verb: tuple[str, ...]) -> None:
    """The job has not read so far yet: `imminent` and `over since` were said of who may have been heard long ago."""
    written, now_ms = Tables(tmp_path / "tables"), wall_ms()
    written.create()
    written.batch(
        0,
        transition("g", 1, "Stable", at_ms=now_ms - 60_000),
        member("g", "weak", client_id="weak", joined_at_ms=now_ms - 60_000),
        health(
            "g",
            "weak",
            at_ms=now_ms - 3_000,
            client_id="weak",
            status="imminent",
            last_heard_at_ms=now_ms - 11_000,
            session_deadline_at_ms=now_ms - 1_000,
        ),
        prediction("g", "weak", "session", predicted_at_ms=now_ms - 5_000, deadline_at_ms=now_ms - 1_000),
        progress(now_ms - 2_000),
    )
    out = kardia(*verb, "--tables", written.root).out
    assert "was imminent" in out
    assert not re.search(r"(?<!was )imminent|over since", out)
    assert re.search(r"due [\d.]+ m?s ago", out)
