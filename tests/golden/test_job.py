"""Every trace by the job's step of one lane with the real observer, which sees the request log alone.

Held against the trace: every transition of the group, every member that ends, with instant and cause, and what
started the rebalances that the trace names. Not held: answers and timers, which are what the log is made of, and
what is marked `# coordinator only`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kardia.coordinator.classic import operations as ops
from kardia.events import DEFAULT_LANES
from kardia.observe import ObserverSettings
from kardia.tables import Row
from kardia.trace import Played, Trace, play
from kardia.trace.language import MARKS
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory
from tests.golden import cases, name_of
from tests.golden.log import LANE, START_AT_MS, records
from tests.support.stories import named, standing


class Told(NamedTuple):
    """What is known about a history. Instants in ms from its begin."""

    states: list[tuple[int, str]]
    """The group's state after each instant at which it changed."""
    ends: set[tuple[int, str, str]]
    """When, who, why."""
    rebalances: set[tuple[int, str, str]]
    """Begin, trigger, who."""


def expected(trace: Trace, version: str) -> Told:
    """What the log can show of what the trace says."""
    told = Told([], set(), set())
    for step in trace.steps:
        for one in step.expectations:
            if version not in one.versions or one.mark == MARKS[0]:
                continue
            is_new = not told.states or told.states[-1][1] != one.value or one.mark == MARKS[1]
            if one.kind == "state" and is_new:
                told.states.append((step.at_ms, one.value))
            elif one.kind in ("evicted", "gone"):
                told.ends.update((step.at_ms, name, one.value) for name in one.names)
            elif one.kind == "rebalance":
                told.rebalances.add((step.at_ms, one.value, "".join(one.names)))
    return told


def observed(trace: Trace, version: str, played: Played, *, restarts: bool = False) -> Told:
    """What the job makes of the log, second by second; `restarts`: each in a new lane, from what the last one saved."""
    factory = ObserverFactory(ObserverSettings("golden", version))
    lane = Lane(factory, "kardia.events", LANE, DEFAULT_LANES)
    rows: dict[str, list[Row]] = {}
    for record in records(trace, played.exchanges, version):
        if restarts:
            saved = lane.save()
            lane = Lane(factory, "kardia.events", LANE, DEFAULT_LANES)
            lane.load(saved)
        for table, some in lane.step([record]).items():
            rows.setdefault(table, []).extend(some)
    names = {one.operation.new_id: one.who for one in played.exchanges if isinstance(one.operation, ops.Join)}
    states: dict[int, str] = {}
    for row in named("transitions", rows.get("transitions", [])):
        if row["entity"] == "group":
            states[_at(row["at_ms"])] = row["to_state"]
    ends = {
        (_at(row["ended_at_ms"]), names[row["member_id"]], row["end_cause"])
        for row in standing("members", rows.get("members", []))
        if row["ended_at_ms"] is not None
    }
    rebalances = {
        (_at(row["started_at_ms"]), row["trigger"], _name(names, row))
        for row in standing("rebalances", rows.get("rebalances", []))
    }
    return Told(sorted(states.items()), ends, rebalances)


def _at(at_ms: int) -> int:
    return at_ms - START_AT_MS


def _name(names: dict[str, str], row: dict[str, Any]) -> str:
    return names.get(row["trigger_member_id"] or "", row["trigger_client_id"] or "")


NOT_SHOWN = {
    "a-new-group-is-written-by-java-only.trace",
    "delayed-heartbeat-2-a-new-member-that-waits.trace",
    "empty-expiry-dead.trace",
    "rule-07-nothing-is-written-before-the-leader-syncs.trace",
    "rule-11-after-a-move.trace",
    "rule-12-a-follower-after-a-move.trace",
    "rule-15-requests-without-answers-count.trace",
    "static-4-replaced-in-its-first-join.trace",
}
"""Traces whose log cannot show what they say; each says why, after `Coordinator only because`."""

SHOWN = [(trace, version) for trace, version in cases() if not trace.coordinator_only]


def test_only_traces_that_no_log_can_show_are_left_out() -> None:
    assert {trace.name for trace, _ in cases() if trace.coordinator_only} == NOT_SHOWN


@pytest.mark.parametrize(("trace", "version"), SHOWN, ids=name_of)
def test_the_job_tells_what_the_trace_says(trace: Trace, version: str) -> None:
    wanted = expected(trace, version)
    played = play(trace, version)
    found = observed(trace, version, played)
    assert observed(trace, version, played, restarts=True) == found
    assert found.states == wanted.states
    assert found.ends == wanted.ends
    assert wanted.rebalances <= found.rebalances
