"""Who broke it, against what was done to the clients of the fleet: its brokers are well, so nobody blames one."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.stories import standing
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS
from tests.truth.fleet.seen import observe

GROUPS = 25
GONE = frozenset({"kill", "freeze", "close", "restart"})
"""What makes a client silent; one that is closed while it waits, or is static, leaves without a word."""


@pytest.mark.slow
@pytest.mark.parametrize(("version", "scenario"), [("3.9.2", "requests"), ("4.1.2", "records"), ("4.4.0", "moves")])
def test_what_was_done_to_a_client_is_what_broke_it(version: str, scenario: str) -> None:
    run = play(version, 77, GROUPS, SCENARIOS[scenario])
    judged: Counter[str] = Counter()
    wrong = []
    for row in standing("members", observe(run).rows["members"]):
        if row["fault"] is None:
            continue
        told = run.stories[row["group_id"]].told
        since = row["ended_at_ms"] - (row["session_timeout_ms"] or 0) - 4_000
        lately = [(what, client) for at, what, client in told if since <= at <= row["ended_at_ms"]]
        done = {what for what, client in lately if client == row["client_id"]}
        before = since - (row["rebalance_timeout_ms"] or 0)
        stalled = any(
            before <= at <= row["ended_at_ms"]
            for at, what, client in told
            if (what, client) == ("stall", row["client_id"])
        )
        several = len({client for what, client in lately if what in GONE}) > 1
        judged[row["fault"]] += 1
        if not _fits(row["fault"], row["end_cause"], done, several=several, stalled=stalled):
            wrong.append(f"{row['group_id']} {row['client_id']}: {row['end_cause']}, {lately}, said {row['fault']}")
    assert not wrong, "\n".join(wrong)
    assert judged["client_silent"] > 20
    assert judged["application"] > 0
    assert judged["unknown"] < 0.1 * judged.total()


def _fits(fault: str, cause: str, done: set[str], *, several: bool, stalled: bool) -> bool:
    """Whether a verdict may be true of a client to which this was done. `several`: not to it alone; `stalled`: within
    the poll interval before it fell silent."""
    if cause == "poll_timeout":
        return fault == "application"
    if fault == "application":
        return stalled or not done or not done <= GONE
    return fault in ("client_silent", "unknown") or (fault == "host_silent" and several)
