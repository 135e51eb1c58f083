"""Bringing a store up to date beside an event loop with requests to answer: files in a thread, folding in slices."""

from __future__ import annotations

import asyncio
from time import perf_counter

from api.current import Sampled
from api.store import Store

SLICE_S = 0.001
"""Longest time that folding keeps requests waiting, until all of a batch is shown at once; and then they have as much
for themselves, so that no queue of them grows meanwhile."""


async def catch_up(store: Store) -> bool:
    """Look at the tables, fold what is new, show it; whether there was anything."""
    change = await asyncio.to_thread(store.look)
    sampled: list[Sampled] = []
    until_s = perf_counter() + SLICE_S
    for one in store.fold_aside(change):
        sampled.append(one)
        if perf_counter() >= until_s:
            await asyncio.sleep(SLICE_S)
            until_s = perf_counter() + SLICE_S
    store.apply(change, sampled)
    return change.view is not None or any(change.rows.values())
