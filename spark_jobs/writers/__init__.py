"""Writes the rows of a batch into the live Delta tables, each batch exactly once: one interface, two implementations.

`delta_rs` is the default, `delta_spark` is for executors on several machines; `tables` creates and checks tables.

Steps of a batch; a crash between any two leaves a state from which the same batch, repeated, gives the same tables:

    1. for each table of `BODY_TABLES` that has rows: skipped if its log already holds (app_id, batch_id), else one
       commit that carries the rows and the transaction (app_id, batch_id) together;
    2. `progress`, in the same way, after every commit of step 1 has been acknowledged;
    3. the caller commits the batch in its checkpoint.

A reader trusts a row if its batch_id is not above the highest one in `progress`, so rows of a half-written batch are
invisible until its repeat has written the rest. The repeat writes the same rows because a batch is a function of saved
state and of a fixed range of offsets. `app_id` is query name + generation of the checkpoint: a fresh checkpoint counts
its batches from 0 again, and under the old app_id its writes would be skipped in silence.

Truth: Delta protocol, transaction identifiers; failure runs in tests/spark_jobs/test_writers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from kardia.tables import LIVE_TABLES

BODY_TABLES: tuple[str, ...] = tuple(name for name in LIVE_TABLES if name != "progress")
"""Tables of step 1. They may be written at the same time: nothing of a batch is trusted before step 2."""

Reached = Callable[[str, int], None]
"""Called between the numbered steps with the step (`members:written`) and the batch: the port for injected faults."""


def nothing_happens(_step: str, _batch_id: int) -> None:
    """Stand at the fault port in production."""


class TableWriter(Protocol):
    """Writes batches of rows to the live tables. One writer per table directory at a time (see `spark_jobs.leases`)."""

    def prepare(self) -> None:
        """Create missing tables; refuse a table of another shape."""

    def write(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Run steps 1 and 2 for one batch."""

    def written(self) -> int | None:
        """Give the last batch of this app_id that is complete in the tables, None if there is none."""
