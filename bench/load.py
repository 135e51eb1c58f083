"""Open-loop load: requests leave at their instants, whether or not earlier ones have been answered.

The time of a request counts from the instant at which it was due, not from when a connection was free for it: a server
that stands still for a second makes five hundred requests late at 500 a second, and all of them are counted. Tools that
wait for an answer before they ask again (closed loop) would count one. Runs in the process that measures, on the core
that the server does not have.
"""

from __future__ import annotations

import asyncio
import gc
import http
import os
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp
import psutil
from yarl import URL

CONNECTIONS = 128
"""Open connections at most. A request that finds none free waits, and the wait counts."""

GIVE_UP_S = 30.0


@dataclass
class Loaded:
    """What a load has met: time of each answer by kind of request, answers that were none, and the rate in the end."""

    times_ms: dict[str, list[float]] = field(default_factory=dict)
    due_s: dict[str, list[float]] = field(default_factory=dict)
    """When each of them was due, beside its time."""
    errors: Counter[str] = field(default_factory=Counter)
    rate: float = 0.0
    bytes: int = 0
    """Size of all answers."""

    def take(self, kind: str, due_s: float, took_ms: float) -> None:
        """An answer."""
        self.times_ms.setdefault(kind, []).append(took_ms)
        self.due_s.setdefault(kind, []).append(due_s)

    def beside_ms(self, kind: str) -> list[float]:
        """Times of the answers of other kinds that were due while one of this kind was on its way."""
        spans = [
            (due_s, due_s + took_ms / 1_000)
            for due_s, took_ms in zip(self.due_s.get(kind, ()), self.times_ms.get(kind, ()), strict=True)
        ]
        return [
            took_ms
            for other, times_ms in self.times_ms.items()
            if other != kind
            for due_s, took_ms in zip(self.due_s[other], times_ms, strict=True)
            if any(begin_s <= due_s <= end_s for begin_s, end_s in spans)
        ]

    def all_ms(self) -> list[float]:
        """Times of all answers."""
        return [at for found in self.times_ms.values() for at in found]


def quantile(times_ms: Sequence[float], percent: int) -> float:
    """The time that so many percent of the answers did not need; the longest for 100."""
    if percent == 100 or len(times_ms) < 2:
        return max(times_ms)
    return statistics.quantiles(times_ms, n=100, method="inclusive")[percent - 1]


async def load(base_url: str, asked: Sequence[tuple[str, str]], rate: float) -> Loaded:
    """Ask (kind, path) one after the other, `rate` per second."""
    loaded = Loaded()
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=GIVE_UP_S)
    gc.collect()
    gc.freeze()
    gc.disable()  # a pause here would be counted as one of the server's
    try:
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=GIVE_UP_S), auto_decompress=False
        ) as client:
            start_s = time.perf_counter() + 0.1
            waiting: set[asyncio.Task[None]] = set()
            for number, (kind, path) in enumerate(asked):
                due_s = start_s + number / rate
                if (wait_s := due_s - time.perf_counter()) > 0:
                    await asyncio.sleep(wait_s)
                task = asyncio.create_task(_ask(client, loaded, kind, URL(base_url + path, encoded=True), due_s))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.gather(*waiting)
            loaded.rate = len(asked) / (time.perf_counter() - start_s)
    finally:
        gc.enable()
        gc.unfreeze()
    return loaded


async def _ask(client: aiohttp.ClientSession, loaded: Loaded, kind: str, url: URL, due_s: float) -> None:
    try:
        async with client.get(url) as reply:
            body = await reply.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        loaded.errors[type(error).__name__] += 1
        return
    if reply.status == http.HTTPStatus.OK:
        loaded.take(kind, due_s, (time.perf_counter() - due_s) * 1_000)
        loaded.bytes += len(body)
    else:
        loaded.errors[str(reply.status)] += 1


def cores() -> tuple[set[int], set[int]]:
    """A core for the server alone, and what is left for the load; the same one where there is no other."""
    there = sorted(psutil.Process().cpu_affinity() or [0])
    return {there[0]}, set(there[1:]) or {there[0]}


def pin(pid: int, to: set[int]) -> None:
    """Keep a process, with all threads that it starts later, on some cores. Only Linux can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, to)
