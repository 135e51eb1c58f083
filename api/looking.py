"""Bringing a store up to date beside an event loop with requests to answer: files in a thread, folding in slices."""

from __future__ import annotations

import asyncio
from time import perf_counter

from api.current import Sampled
from api.store import Store

SLICE_S = 0.001
"""Longest time that folding keeps requests waiting, but for the moment in which all of a batch is shown at once; and
then they have as much for themselves, so that no queue of them grows meanwhile."""


async def catch_up(store: Store) -> bool:
    """Look at the tables, fold what is new, show it; whether there was anything."""
    change = await asyncio.to_thread(store.look)
    slices = _Slices()
    sampled: list[Sampled] = []
    for one in store.fold_aside(change):
        sampled.append(one)
        await slices.rest()
    store.apply(change, sampled)
    while sampled:
        del sampled[-1]  # and with it what it has replaced
        await slices.rest()
    return change.view is not None or any(change.rows.values())


class _Slices:
    """Gives requests their time between the pieces of a work."""

    def __init__(self) -> None:
        self._until_s = perf_counter() + SLICE_S

    async def rest(self) -> None:
        """Let requests be answered, if this work has kept them waiting for long enough."""
        if perf_counter() >= self._until_s:
            await asyncio.sleep(SLICE_S)
            self._until_s = perf_counter() + SLICE_S
