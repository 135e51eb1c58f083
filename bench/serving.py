"""Questions to `kardia serve`: 500 a second on one core while the tables grow; then the past. Baseline: `/livez`.

10,000 groups with 100,000 members, all sampled every 5 s as the observer does: 20,000 new rows of health a second, in
one commit with one rebalance. The server has one core for itself; load and writer share the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil

from bench.crowd import CLUSTER, DAY_MS, Crowd
from bench.growth import Laid, growing, lay
from bench.load import Loaded, cores, load, pin, quantile
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb

GROUPS = 10_000
WITH_HISTORY = 4

RATE = 500.0
"""Questions about the present per second."""

PAST_RATE = 10.0
"""Questions about the past per second: people and panels ask those, not probes."""

SECONDS, BASE_SECONDS, PAST_SECONDS, WARM_SECONDS = 30.0, 10.0, 15.0, 5.0

P99_MS, PAST_P99_MS = 15.0, 300.0

API = f"/api/v1/clusters/{CLUSTER}"
START_S = 120.0

MIX = {"group": 40, "members": 25, "member": 20, "list": 10, "next-evictions": 5}
"""Kinds of questions about the present, in percent."""

SCRAPE_EVERY = int(15 * RATE)
"""Questions between two scrapes: Prometheus asks every 15 s in its examples. A scrape is long, and no answer of the
mix; what counts is whether the answers wait for it."""

Asked = list[tuple[str, str]]


def present(crowd: Crowd, number: int, rng: random.Random) -> Asked:
    """Questions about what is so now, as panels, scripts and people ask them."""
    kinds = rng.choices(list(MIX), list(MIX.values()), k=number)
    found: Asked = []
    for place, kind in enumerate(kinds):
        if place % SCRAPE_EVERY == SCRAPE_EVERY // 2:
            found.append(("scrape", "/metrics"))
        group = rng.choice(crowd.groups)
        path = f"{API}/groups/{group}"
        if kind == "members":
            path += "/members"
        elif kind == "member":
            path += f"/members/{rng.choice(crowd.members[group])}"
        elif kind == "list":
            path = f"{API}/groups" + rng.choice(("", "?sort=worst", f"?search={group[:-1]}", "?state=Stable&limit=20"))
        elif kind == "next-evictions":
            path = f"{API}/next-evictions"
        found.append((kind, path))
    return found


def past(laid: Laid, number: int, rng: random.Random) -> Asked:
    """Groups and members as they stood at instants of the day before."""
    found: Asked = []
    for _ in range(number):
        at_ms = laid.at_ms - rng.randrange(laid.crowd.past_ms)
        path = f"{API}/groups/{rng.choice(laid.crowd.with_history)}"
        found.append(("at", f"{path}{rng.choice(('', '/members'))}?at={at_ms}"))
    return found


def moment_ago(laid: Laid, number: int, rng: random.Random) -> Asked:
    """Any group as it stood some seconds before the tables began to grow: among the samples of everybody."""
    at_ms = laid.at_ms + 1_000
    return [("at", f"{API}/groups/{rng.choice(laid.crowd.groups)}?at={at_ms}") for _ in range(number)]


def day(laid: Laid, number: int, rng: random.Random) -> Asked:
    """A day of history of a group."""
    found: Asked = []
    for _ in range(number):
        what = rng.choice(("history", "rebalances", "evictions"))
        range_ = f"from={laid.at_ms - DAY_MS}&to={laid.at_ms}"
        found.append((what, f"{API}/groups/{rng.choice(laid.crowd.with_history)}/{what}?{range_}"))
    return found


@contextlib.contextmanager
def served(tables: Path, log: Path, on: set[int]) -> Iterator[tuple[str, int]]:
    """`kardia serve` as a process on some cores; gives its address and process id."""
    with role(log, "serve", "--tables", str(tables), "--port", "0") as process:
        pin(process.pid, on)
        yield _ready(process, log), process.pid


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """Address of a server, when it has folded what is there."""
    until_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until_s:
        address = re.search(r"http://\S+(?=/ )", log.read_text(encoding="utf-8"))
        with contextlib.suppress(OSError):
            if address is not None:
                with urllib.request.urlopen(f"{address[0]}/readyz", timeout=10) as reply:  # noqa: S310 - http, here
                    if orjson.loads(reply.read())["freshness"]["batch_id"] >= 0:
                        return address[0]
        time.sleep(0.05)
    raise RuntimeError(f"`kardia serve` did not get ready:\n{log.read_text(encoding='utf-8')[-2000:]}")


def api_stage(directory: Path, scale: float) -> list[Result]:
    """Lay the tables, serve them, ask."""
    rng = random.Random(11)
    longer = min(1.0, scale)
    crowd = Crowd(max(20, int(GROUPS * scale)), max(1, int(WITH_HISTORY * longer)), max(1, round(24 * longer)))
    laid = lay(directory / "tables", crowd)
    alone, rest = cores()
    before = psutil.Process().cpu_affinity()

    def asked(number: float) -> int:
        return max(20, int(number * longer))

    with served(directory / "tables", directory / "serve.log", alone) as (url, pid):
        psutil.Process().cpu_affinity(list(rest))
        try:
            base = asyncio.run(load(url, [("livez", "/livez")] * asked(RATE * BASE_SECONDS), RATE))
            with growing(laid, rest):
                asyncio.run(load(url, present(crowd, asked(RATE * WARM_SECONDS), rng), RATE))
                memory, cpu_s = memory_mb(pid), cpu_seconds(pid)
                now = asyncio.run(load(url, present(crowd, asked(RATE * SECONDS), rng), RATE))
                beside_ms = now.beside_ms("scrape")
                scrapes_ms = now.times_ms.pop("scrape", [])
                used_s, grown = cpu_seconds(pid) - cpu_s, memory_mb(pid)
                count = asked(PAST_RATE * PAST_SECONDS)
                then = asyncio.run(load(url, past(laid, count, rng), PAST_RATE))
                lately = asyncio.run(load(url, moment_ago(laid, count, rng), PAST_RATE))
                history = asyncio.run(load(url, day(laid, count, rng), PAST_RATE))
        finally:
            psutil.Process().cpu_affinity(before)
    size = f"{len(crowd.groups):,} groups, {crowd.size:,} members"
    answers = len(now.all_ms())
    return [
        *_rows(
            "api", "the present", now, base, P99_MS, {"of": size, "core used": round(used_s / answers * now.rate, 2)}
        ),
        *(
            Result("api", f"{kind}, p99", quantile(times_ms, 99), "ms", more={"p50": round(quantile(times_ms, 50), 1)})
            for kind, times_ms in sorted(now.times_ms.items())
        ),
        *([Result("api", "a scrape, the longest", max(scrapes_ms), "ms")] if scrapes_ms else []),
        *([_beside(beside_ms)] if beside_ms else []),
        *_rows("api", "at an instant of the day before", then, base, PAST_P99_MS, {}),
        *_rows("api", "at a moment ago", lately, base, PAST_P99_MS, {}),
        *_rows("api", "a day of history", history, base, PAST_P99_MS, {}),
        Result("memory", "api, after the load", _all(grown), "MB", _all(memory), "before it", None, None, {}),
        Result("memory", "api, per member", _all(grown) * 1_000 / crowd.size, "kB"),
    ]


def _beside(times_ms: list[float]) -> Result:
    """Answers that were due while a scrape was on its way: what one waits for that is slow."""
    more: dict[str, object] = {"answers": len(times_ms), "p50": round(quantile(times_ms, 50), 1)}
    return Result("api", "the present beside a scrape, p99", quantile(times_ms, 99), "ms", more=more)


def _all(memory: dict[str, float]) -> float:
    return sum(memory.values())


def _rows(stage: str, what: str, found: Loaded, base: Loaded, p99_ms: float, more: dict[str, object]) -> list[Result]:
    """p50, p95, p99 and the longest, with rate and errors beside the first."""
    times_ms, base_ms = found.all_ms(), base.all_ms()
    if not times_ms or not base_ms:
        raise RuntimeError(f"nothing was answered: {dict(found.errors) or dict(base.errors)} ({stage}, {what})")
    about = {"answers": len(times_ms), "rate": round(found.rate, 1), "errors": dict(found.errors) or 0}
    about["kB each"] = round(found.bytes / len(times_ms) / 1_000, 1)
    return [
        Result(
            stage,
            f"{what}, {'longest' if at == 100 else f'p{at}'}",
            quantile(times_ms, at),
            "ms",
            quantile(base_ms, at),
            "/livez",
            target=p99_ms if at == 99 else None,
            more=about | more if at == 50 else {},
        )
        for at in (50, 95, 99, 100)
    ]
