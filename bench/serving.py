"""Questions to `kardia serve` on one core while the tables grow, then about the past. Baseline: `/livez`, as often.

10,000 groups with 100,000 members, all sampled every 5 s as the observer does: 20,000 new rows of health a second, in
one commit with one rebalance. The server has one core for itself; load and writer share the rest. A latency at a fixed
rate says nothing of a machine on which the rate is too high: so CPU is told, of a row that is folded in (nobody asks)
and of an answer (what the core uses beyond that); and the latency at half of the rate at which both would fill it. For
questions about the past the system is told, once a second, to let go of what it has of the files in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import psutil
from prometheus_client.parser import text_string_to_metric_families

from bench.crowd import CLUSTER, DAY_MS, SAMPLE_EVERY_S, Crowd
from bench.growth import Laid, growing, lay
from bench.load import Loaded, cores, load, pin, quantile
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb

GROUPS = 10_000
WITH_HISTORY = 4

RATE = 500.0
"""Questions about the present per second, as long as it is not known at which rate they fill the core."""

SHARE = 0.5
"""Of the rate that fills the core: that at which latency is measured."""

PAST_RATE = 10.0
"""Questions about the past per second: people and panels ask those, not probes."""

SECONDS, BASE_SECONDS, PAST_SECONDS, WARM_SECONDS = 30.0, 10.0, 15.0, 5.0

PAST_P99_MS = 300.0
CPU_MS = 0.6
"""Of an answer of 30 kB."""

LIVEZ_TIMES = 4.0
"""p99 of the present, at most so many times that of `/livez` at the same rate."""

READ_MB = 2.0
"""What a question about one group reads of the files."""

COLD_EVERY_S = 1.0

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

    tables = directory / "tables"
    with served(tables, directory / "serve.log", alone) as (url, pid):
        psutil.Process().cpu_affinity(list(rest))
        try:
            with growing(laid, rest):
                asyncio.run(load(url, present(crowd, asked(RATE * WARM_SECONDS), rng), RATE))
                memory = memory_mb(pid)
                row_s, share = _folding(url, pid, crowd.size, max(3.0, BASE_SECONDS * longer))
                begun_s, cpu_s = time.monotonic(), cpu_seconds(pid)
                now = asyncio.run(load(url, present(crowd, asked(RATE * SECONDS), rng), RATE))
                lasted_s, used_s = time.monotonic() - begun_s, cpu_seconds(pid) - cpu_s
                answer_s = max(1e-6, used_s - share * lasted_s) / max(1, len(now.all_ms()))
                rate = SHARE * max(0.05, 1.0 - share) / answer_s
                base = asyncio.run(load(url, [("livez", "/livez")] * asked(rate * BASE_SECONDS), rate))
                half = asyncio.run(load(url, present(crowd, asked(rate * SECONDS), rng), rate))
                beside_ms = half.beside_ms("scrape")
                scrapes_ms = half.times_ms.pop("scrape", [])
                grown = memory_mb(pid)
                count = asked(PAST_RATE * PAST_SECONDS)
                with cold(tables):
                    then, then_read = _asked(url, past(laid, count, rng))
                    lately, lately_read = _asked(url, moment_ago(laid, count, rng))
                    history, history_read = _asked(url, day(laid, count, rng))
        finally:
            psutil.Process().cpu_affinity(before)
    size = f"{len(crowd.groups):,} groups, {crowd.size:,} members"
    kb = round(now.bytes / max(1, len(now.all_ms())) / 1_000, 1)
    times = quantile(half.all_ms(), 99) / quantile(base.all_ms(), 99)
    fills = {"fills the core at": f"{rate / SHARE:,.0f}/s"}
    return [
        Result("api", "CPU of an answer", answer_s * 1e3, "ms", target=CPU_MS, more={"kB each": kb} | fills),
        Result("api", "CPU of a row folded in", row_s * 1e6, "µs", more={"of a core": round(share, 2)}),
        *_rows(
            "api", "the present at half of that rate", half, base, None, {"of": size, "asked for": f"{rate:,.0f}/s"}
        ),
        Result("api", "the present at half of that rate, p99 of /livez", times, "times", target=LIVEZ_TIMES),
        *(
            Result("api", f"{kind}, p99", quantile(times_ms, 99), "ms", more={"p50": round(quantile(times_ms, 50), 1)})
            for kind, times_ms in sorted(half.times_ms.items())
        ),
        *([Result("api", "a scrape, the longest", max(scrapes_ms), "ms")] if scrapes_ms else []),
        *([_beside(beside_ms)] if beside_ms else []),
        *_rows("api", "at an instant of the day before", then, base, PAST_P99_MS, {}),
        Result(
            "api",
            "at an instant of the day before, read at most",
            then_read.most,
            "MB",
            target=READ_MB,
            more={"MB each": round(then_read.each, 2)},
        ),
        *_rows("api", "at a moment ago", lately, base, PAST_P99_MS, {"MB each": round(lately_read.each, 2)}),
        *_rows("api", "a day of history", history, base, PAST_P99_MS, {"MB each": round(history_read.each, 2)}),
        Result("memory", "api, after the load", _all(grown), "MB", _all(memory), "before it", None, None, {}),
        Result("memory", "api, per member", _all(grown) * 1_000 / crowd.size, "kB"),
    ]


def _folding(url: str, pid: int, size: int, seconds: float) -> tuple[float, float]:
    """(CPU seconds of a row that is folded in, share of a core that folding takes) while nobody asks anything."""
    batch_id, begun_s, cpu_s = _batch_id(url), time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)  # what is measured takes its time
    lasted_s, used_s = time.monotonic() - begun_s, cpu_seconds(pid) - cpu_s
    rows = (_batch_id(url) - batch_id) * size / SAMPLE_EVERY_S
    return used_s / max(1.0, rows), used_s / lasted_s


def _batch_id(url: str) -> int:
    """The batch that is shown."""
    with urllib.request.urlopen(f"{url}/readyz", timeout=START_S) as reply:  # noqa: S310 - http, here
        return int(orjson.loads(reply.read())["freshness"]["batch_id"])


class ReadMb(NamedTuple):
    """What questions have read of files, in MB, by the server's own series."""

    each: float
    most: float
    """A bound of its buckets that none was above."""


def _asked(url: str, questions: Asked) -> tuple[Loaded, ReadMb]:
    """Ask about the past; what is measured, and what was read for it."""
    before = _read_bytes(url)
    loaded = asyncio.run(load(url, questions, PAST_RATE))
    grown = {name: value - before[name] for name, value in _read_bytes(url).items()}
    count = grown.pop("count")
    each = grown.pop("sum") / max(1.0, count) / 1e6
    return loaded, ReadMb(each, min(float(bound) for bound, below in grown.items() if below >= count) / 1e6)


def _read_bytes(url: str) -> dict[str, float]:
    """`count`, `sum`, and of each bound how many questions have read no more."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=START_S) as reply:  # noqa: S310 - http, here
        text = reply.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        if family.name == "kardia_http_read_bytes":
            for sample in family.samples:
                found[sample.labels.get("le") or sample.name.rpartition("_")[2]] = sample.value
    return found


@contextlib.contextmanager
def cold(tables: Path) -> Iterator[None]:
    """Once a second the system is told to let go of what it has of the files in memory. Only Linux takes it."""
    done = threading.Event()

    def forget() -> None:
        while not done.wait(COLD_EVERY_S):
            for path in tables.glob("*/*.parquet"):
                with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    thread = threading.Thread(target=forget, name="cold")
    if hasattr(os, "posix_fadvise"):
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def _beside(times_ms: list[float]) -> Result:
    """Answers that were due while a scrape was on its way: what one waits for that is slow."""
    more: dict[str, object] = {"answers": len(times_ms), "p50": round(quantile(times_ms, 50), 1)}
    return Result("api", "the present beside a scrape, p99", quantile(times_ms, 99), "ms", more=more)


def _all(memory: dict[str, float]) -> float:
    return sum(memory.values())


def _rows(
    stage: str, what: str, found: Loaded, base: Loaded, p99_ms: float | None, more: dict[str, object]
) -> list[Result]:
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
