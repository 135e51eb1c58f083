"""How soon after a batch the next one is made: at once while something happens, after a rest while nothing does.

A batch of Spark costs the same whatever is in it, and beside members that do nothing else than live batches back to
back take a core. So as long as all goes on as before a batch is followed by a rest, and the next one is larger. A rest
is short beside the session timeouts and poll intervals there are, and there is none while a member is late or worse or
a group rebalances, for a while after anything else than samples was told, and while so much comes that it might not fit
into a batch.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kardia.kafka.states import GroupState, ModernState
from kardia.tables import PROGRESS

SAMPLED = frozenset({"health", "lag", PROGRESS.name})
"""Tables whose rows say that all goes on as before."""

CALM = ("ok", "unknown", "ended")
"""Statuses of members for which no timeout is in sight."""

REBALANCING = (GroupState.PREPARING, GroupState.COMPLETING, ModernState.ASSIGNING, ModernState.RECONCILING)
"""States of groups in which a timeout may be in sight for a member whose status is ok: whom a rebalance waits for goes
on with its heartbeats (`kardia.statuses`)."""

AWAKE_S = 10.0
"""So long after something was told batches are made back to back: one thing seldom happens alone."""

SHARE = 8
"""A rest is at most this part of the shortest timeout: half of one passes before it is called imminent."""

TIMEOUTS = ("session_timeout_ms", "poll_interval_ms")
"""Columns of `health`."""

FORGET_S = 60.0
"""A timeout counts for so long after the last sample of a member that has it."""

FULL = 0.25
"""No rest while this share of what a batch may take has come in the one before."""


class Pace:
    """Rests of one run. Used by the thread of the query; ended by any."""

    def __init__(
        self, quiet_s: float, max_records: int, records: Callable[[], int], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`quiet_s`: the longest rest; 0: none. `records`: how many the last batch but this one had."""
        self._quiet_s, self._max_records, self._records, self._now_s = quiet_s, max_records, records, now_s
        self._ended = threading.Event()
        self._awake_until_s = now_s() + AWAKE_S
        self._shortest_ms, self._shortest_at_s = math.inf, -math.inf

    def rest(self, tables: Mapping[str, pa.Table]) -> None:
        """Wait until the next batch is due after one with these rows, or until the run ends."""
        rest_s = self.rest_s(tables)
        if rest_s > 0:
            self._ended.wait(rest_s)

    def rest_s(self, tables: Mapping[str, pa.Table]) -> float:
        """Seconds until the next batch is due; 0: at once."""
        now_s, health = self._now_s(), tables.get("health")
        if tables.keys() - SAMPLED or (health is not None and not _is_calm(health)):
            self._awake_until_s = now_s + AWAKE_S
        if health is not None:
            self._note(health, now_s)
        if self._quiet_s <= 0 or now_s < self._awake_until_s or self._records() >= FULL * self._max_records:
            return 0.0
        return min(self._quiet_s, self._shortest_ms / SHARE / 1000)

    def end(self) -> None:
        """End a rest, and let there be no other."""
        self._ended.set()

    def _note(self, health: pa.Table, now_s: float) -> None:
        found_ms = min((ms for name in TIMEOUTS if (ms := pc.min(health[name]).as_py()) is not None), default=math.inf)
        if found_ms <= self._shortest_ms or now_s - self._shortest_at_s > FORGET_S:
            self._shortest_ms, self._shortest_at_s = found_ms, now_s


def _is_calm(health: pa.Table) -> bool:
    calm = pc.is_in(health["status"], pa.array(CALM))
    rebalancing = pc.is_in(health["group_state"], pa.array(REBALANCING))
    return bool(pc.all(pc.and_not(calm, rebalancing), min_count=0).as_py())
