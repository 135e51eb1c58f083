"""Recorded stories of brokers 2.0 to 2.7, whose request log is text, against their truth: every eviction, leave and
rebalance, none invented, and nothing of a name that imitates a line.

As `test_stories`, with what these recordings allow: their brokers were starved, and took up to 50 ms to handle a
request, somewhere within which it took effect; the first requests after a start took longer still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.corpora.test_stories import LEFT, TRIGGER_OF_REASON, WITHIN_MS
from tests.support.stories import NOISE_GROUPS, OLD_STORIES, Story, lanes_of, live, named, observe, standing

HANDLED_MS = 50
YOUNG_MS = 600
"""The same of the first requests of a broker, for which it loads classes."""

SAID_LATER = 500.0
"""Whoever joined so late after the start of a rebalance was waited for (`ObserverSettings.straggler_ms`)."""


def lives(name: str, *, server_log: bool = False, offsets: bool = True) -> list[dict[str, Any]]:
    """Standing lives of a story without the noise."""
    rows = standing("members", observe(lanes_of(name, server_log, offsets))["members"])
    return [row for row in rows if row["group_id"] not in NOISE_GROUPS]


def ended(rows: list[dict[str, Any]], causes: tuple[str, ...]) -> dict[tuple[str, str], int]:
    """(group, member id) -> when its life ended by one of these causes."""
    return {(row["group_id"], row["member_id"]): row["ended_at_ms"] for row in rows if row["end_cause"] in causes}


def true_of(name: str, what: str, why: str | None = None) -> dict[tuple[str, str], int]:
    """(group, member id) -> when, by the coordinator's own lines."""
    items = [item for item in Story(name).expect[what] if why is None or item["why"] == why]
    return {(item["group"], item["member_id"]): item["t"] for item in items}


def in_scope(name: str, found: dict[tuple[str, str], int]) -> Iterator[tuple[str, str]]:
    """Of what was found that which is judged."""
    expect = Story(name).expect
    return (key for key, at_ms in found.items() if expect["start_ms"] <= at_ms <= expect["end_ms"])


@pytest.mark.parametrize("server_log", [False, True])
@pytest.mark.parametrize("name", OLD_STORIES)
def test_every_eviction_is_found_and_none_invented(name: str, server_log: bool) -> None:
    said = ended(lives(name, server_log=server_log), ("session_expired",))
    true = true_of(name, "evictions", "session timeout")
    assert set(in_scope(name, said)) <= true.keys() <= said.keys()
    assert all(abs(said[key] - at_ms) <= (0 if server_log else WITHIN_MS) for key, at_ms in true.items())


def test_a_removal_without_a_sentence_is_found() -> None:
    """Up to 2.5 server.log does not say that a member did not join again in time."""
    name = "o11_join_timeout-2.0.1"
    true = true_of(name, "evictions", "did not rejoin within the rebalance timeout")
    for server_log in (False, True):
        said = ended(lives(name, server_log=server_log), ("rebalance_timeout",))
        assert said.keys() == true.keys()
        assert all(abs(said[key] - at_ms) <= WITHIN_MS for key, at_ms in true.items())


@pytest.mark.parametrize("name", OLD_STORIES)
def test_every_leave_is_found_and_none_invented(name: str) -> None:
    rows = lives(name)
    said, true = ended(rows, LEFT), true_of(name, "leaves")
    bounds_ms = {(row["group_id"], row["member_id"]): row["at_bound_ms"] or 0 for row in rows}
    assert set(in_scope(name, said)) <= true.keys() <= said.keys()
    assert all(said[key] - HANDLED_MS <= at_ms <= said[key] + bounds_ms[key] + WITHIN_MS for key, at_ms in true.items())


@pytest.mark.parametrize("name", OLD_STORIES)
def test_every_rebalance_has_its_start_cause_and_straggler(name: str) -> None:
    expect = Story(name).expect
    said: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in standing("rebalances", observe(lanes_of(name))["rebalances"]):
        if row["group_id"] not in NOISE_GROUPS and expect["start_ms"] <= row["started_at_ms"] <= expect["end_ms"]:
            said.setdefault((row["group_id"], row["generation_before"]), []).append(row)
    assert said.keys() == {(item["group"], item["from_gen"]) for item in expect["rebalances"]}
    for item in expect["rebalances"]:
        (row,) = said[item["group"], item["from_gen"]]
        assert row["generation_after"] == item["to_gen"]
        assert row["members_after"] == item["members"]
        if item["reason"] is not None:  # 2.0 and 2.1 do not say it
            assert row["trigger"] in next(ones for words, ones in TRIGGER_OF_REASON if words in item["reason"])
        assert row["trigger"] != "unknown"
        late_ms = HANDLED_MS if item["from_gen"] else YOUNG_MS
        assert abs(row["started_at_ms"] - item["t_start"]) <= late_ms
        if item["from_gen"] and item.get("last_joiner_after_ms", 0) > SAID_LATER + HANDLED_MS:
            last = next(one for one in row["stragglers"] if one["joined"])
            assert last["client_id"] == item["last_joiner"]
            assert abs(last["waited_ms"] - item["last_joiner_after_ms"]) <= HANDLED_MS


@pytest.mark.parametrize("name", OLD_STORIES)
def test_what_is_said_live_stands_in_the_end(name: str) -> None:
    """Read as it is written, second by second, the same members are evicted."""
    said = ended(standing("members", live(name)["members"]), ("session_expired",))
    assert said.keys() >= true_of(name, "evictions", "session timeout").keys()
    assert said.keys() == ended(lives(name), ("session_expired",)).keys() | (said.keys() & {("warmup", "")})


@pytest.mark.parametrize("name", [name for name in OLD_STORIES if name != "o27_completing-2.0.1"])
def test_no_line_contradicts_what_is_held(name: str) -> None:
    """In the story that is left out two members leave 15 ms after a join phase, before its answers were settled."""
    assert sum(row["divergences"] for row in named("progress", observe(lanes_of(name, True))["progress"])) == 0


def test_a_log_without_any_line_for_seconds_convicts_nobody() -> None:
    """The last member of this story is evicted in a silence of 8 s, in which the broker may have been down: without the
    record or the line that tells, it is not said."""
    name, key = "o25_odd-2.3.1", ("tour-big", "bigone-5ed040cd-b4af-42e4-9217-836d048adfa3")
    assert key in ended(lives(name), ("session_expired",))
    assert key not in ended(lives(name, offsets=False), ("session_expired",))
