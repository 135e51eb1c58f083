"""Brings the store up to date beside the event loop: what takes long is read in a thread, rows folded in slices."""

from __future__ import annotations

import asyncio
from time import perf_counter

from api.store import Store

SLICE_S = 0.0005
"""After how long folding lets requests in: at its next piece."""

REST_S = 0.0005
"""How long requests then have the event loop for themselves, so that their queue does not grow."""


async def is_behind(store: Store) -> bool:
    """Whether a look may find something. Of tables on a disk that is known at once."""
    return store.is_behind() if store.is_near else await asyncio.to_thread(store.is_behind)


async def catch_up(store: Store, rest_s: float = REST_S) -> bool:
    """Look at the tables, fold what is new, show it; whether there was anything."""
    change = await store.looked()
    rest_at_s = perf_counter() + SLICE_S
    for _ in store.take_in(change):
        if perf_counter() >= rest_at_s:
            await asyncio.sleep(rest_s)
            rest_at_s = perf_counter() + SLICE_S
    return change.is_news
