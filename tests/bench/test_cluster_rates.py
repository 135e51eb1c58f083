"""Rates of the job on a cluster are of its own commits to `progress`: what upkeep commits there is no batch."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from bench.cluster import steady

BATCHES = {0: 10, 1: 20, 2: 300, 3: 600}
"""Batch -> its events."""


def put(path: Path, batch: int, events: int, at_ms: int) -> None:
    """A batch of two lanes, committed at an instant."""
    rows = pa.table({"batch_id": pa.array([batch] * 2, pa.int64()), "events": pa.array([events // 2] * 2, pa.int64())})
    own = CommitProperties(app_transactions=[Transaction("kardia-live/one", batch)])
    write_deltalake(str(path), rows, mode="append", commit_properties=own)
    entry = path / "_delta_log" / f"{DeltaTable(str(path)).version():020}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = at_ms
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def test_the_first_batches_and_upkeep_are_left_out(tmp_path: Path) -> None:
    for batch, events in BATCHES.items():
        put(tmp_path / "progress", batch, events, 1_000_000 + batch * 1_000)
    DeltaTable(str(tmp_path / "progress")).optimize.compact()
    one = steady(tmp_path / "progress", 9.0)
    assert one.rate == 450.0
    assert (one.lowest, one.highest, one.seconds) == (300.0, 600.0, 9.0)


def test_too_few_batches_are_said(tmp_path: Path) -> None:
    for batch in (0, 1):
        put(tmp_path / "progress", batch, 10, batch)
    with pytest.raises(RuntimeError, match="only 2 batches"):
        steady(tmp_path / "progress", 9.0)
