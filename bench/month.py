"""A month of a job in some minutes: whether files, bytes, log and answers stay as they were on the first day.

    python -m bench.month [--days 30] [--commits 120] [--hour]

A commit stands for as many seconds as a day has of them by `--commits`, so that a month of one commit a second becomes
3,600; each has the rows of one second of 20 groups with 200 members. What is rare is as frequent as it would be: each
group loses a member and rebalances four times a day. Upkeep is the job's own, every 60 commits, with the clock of the
month; what Delta keeps of its log by the clock of this machine (30 minutes, and 10 of replaced files) is shortened
alike. `--hour` adds one hour as it is: 3,600 commits, and a pass of upkeep for every 60 of them.

Baseline of everything is the end of the first day.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from bench.crowd import CLUSTER, SAMPLE_EVERY_S, Crowd, Rows, moved
from bench.result import Result, machine, show
from kardia.retention_setting import DAY_MS, HOUR_MS, Keep
from kardia.tables import LIVE_TABLES
from spark_jobs.schemas import to_tables
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers import tables as writing
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import open_table

GROUPS = 20
LOST_A_DAY = 4
"""Times a day that a group loses a member."""

COMMITS_A_PASS = 60
DAYS = (1, 7, 30)
RUNS = 3
LOG_KEPT_MS, FILES_KEPT_MS = 60_000, 20_000
"""Instead of 30 and 10 minutes."""


class Month:
    """Tables that grow."""

    def __init__(self, directory: Path, began_ms: int, step_ms: int, keep: Keep) -> None:
        """Lay the fleet as it is at the beginning."""
        self.directory = directory
        self.now_ms = began_ms
        self._step_ms = step_ms
        self._began_ms = began_ms
        self._batch = 0
        self._lost = 0.0
        self.crowd = Crowd(GROUPS, 0, hours=0)
        self._writer = DeltaRsWriter(directory, "bench/1")
        self._writer.prepare()
        self._writer.write(0, to_tables(self.crowd.present(began_ms), 0))
        self._samples = self.crowd.samples(began_ms)
        self._upkeep = Maintenance(directory, keep=keep, said=print, now_ms=lambda: self.now_ms)
        self.commit_ms: list[float] = []
        self.pass_s: list[float] = []
        self.files_most = 0

    def until(self, end_ms: int) -> None:
        """Commit after commit, upkeep in its turn."""
        while self.now_ms < end_ms:
            self.now_ms += self._step_ms
            self._batch += 1
            self._commit()
            if self._batch % COMMITS_A_PASS == 0:
                self.files_most = max(self.files_most, *(len(files) for files in self.files().values()))
                began = time.process_time()
                done = self._upkeep.run_once()
                self.pass_s.append(time.process_time() - began)
                if done.failures:
                    raise RuntimeError(f"upkeep of {done.failures} failed at batch {self._batch}; its words are above")

    def files(self) -> dict[str, list[str]]:
        """Data files that each table has by its log."""
        return {name: open_table(self.directory, name).file_uris() for name in LIVE_TABLES}

    def _commit(self) -> None:
        rows: Rows = defaultdict(list)
        self._lost += self._step_ms / DAY_MS * LOST_A_DAY * GROUPS
        while self._lost >= 1:
            self._lost -= 1
            for name, found in self.crowd.second(self.now_ms, self._batch + len(rows["members"])).items():
                rows[name] += found if name != "progress" else []
        rows["progress"] = self.crowd.reached(self.now_ms)
        sample = self._samples[self._batch % SAMPLE_EVERY_S]
        health = moved(sample, self.now_ms - self._began_ms, self._batch)
        given = to_tables({name: found for name, found in rows.items() if found}, self._batch) | {"health": health}
        began = time.process_time()
        self._writer.write(self._batch, given)
        self.commit_ms.append(1_000 * (time.process_time() - began))

    def close(self) -> None:
        """Let the writer go."""
        self._writer.close()


def told(month: Month, when: str, before: dict[str, float]) -> list[Result]:
    """What the tables are like, and what questions cost, as processes and inside a server."""
    recent = slice(-2 * COMMITS_A_PASS, None)
    group = month.crowd.groups[0]
    found = {
        "files of all tables": (float(sum(map(len, month.files().values()))), "files"),
        "most files of a table before a pass": (float(month.files_most), "files"),
        "data of all tables, by their logs": (_bytes(month.directory) / 1e6, "MB"),
        "files in the folders, log and replaced ones too": (float(_there(month.directory)), "files"),
        "entries of the logs": (float(len(list(month.directory.glob("*/_delta_log/*.json")))), "entries"),
        "a commit, CPU, median": (statistics.median(month.commit_ms[recent]), "ms"),
        "a pass of upkeep, CPU, median": (1_000 * statistics.median(month.pass_s[-4:]), "ms"),
        "a server's start, CPU": (_start_ms(month), "ms"),
        "kardia groups, CPU": (_cpu_ms("groups", month), "ms"),
        "kardia history, CPU": (_cpu_ms("history", month, group), "ms"),
        "kardia explain, CPU": (_cpu_ms("explain", month, "--group", group), "ms"),
    }
    month.files_most = 0
    results = []
    for what, (value, unit) in found.items():
        first = before.setdefault(what, value)
        results.append(Result("month", f"{when}: {what}", value, unit, first, "the first day"))
    return results


def _bytes(directory: Path) -> int:
    return sum(
        sum(open_table(directory, name).get_add_actions(flatten=True).column("size_bytes").to_pylist())
        for name in LIVE_TABLES
    )


def _there(directory: Path) -> int:
    return sum(1 for path in directory.rglob("*") if path.is_file())


def _start_ms(month: Month) -> float:
    """CPU of a view that is made from nothing, as `kardia serve` does at its start."""
    from api.settings import ApiSettings
    from api.store import Store

    found = []
    for _ in range(RUNS):
        began = time.process_time()
        store = Store(ApiSettings(tables=month.directory), lambda: month.now_ms)
        store.refresh()
        found.append(1_000 * (time.process_time() - began))
        if len(store.cluster(CLUSTER).groups) != GROUPS:
            raise RuntimeError(f"{len(store.cluster(CLUSTER).groups)} groups are shown. Expected: all {GROUPS}")
    return statistics.median(found)


def _cpu_ms(verb: str, month: Month, *more: str) -> float:
    """CPU of a question as a process, the libraries that it loads included."""
    command = [sys.executable, "-m", "cli.main", verb, *more, "--tables", str(month.directory)]
    found = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not done.stdout:
            raise RuntimeError(f"kardia {verb} said nothing ({done.returncode}): {done.stderr[-500:]}")
        found.append(1_000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return statistics.median(found)


def sample_bytes(month: Month) -> Result:
    """What a row of health takes in files that upkeep has put together."""
    table = open_table(month.directory, "health")
    listed = table.get_add_actions(flatten=True)
    rows, size = sum(listed.column("num_records").to_pylist()), sum(listed.column("size_bytes").to_pylist())
    return Result("month", "a sample of a member, compacted", size / rows, "bytes", more={"rows": f"{rows:,}"})


def run(directory: Path, days: int, commits: int, *, hour: bool) -> list[Result]:
    """All of it."""
    writing.PROPERTIES["delta.logRetentionDuration"] = f"interval {LOG_KEPT_MS} milliseconds"
    writing.PROPERTIES["delta.deletedFileRetentionDuration"] = f"interval {FILES_KEPT_MS} milliseconds"
    results, before = [], dict[str, float]()
    now_ms = time.time_ns() // 1_000_000
    if hour:
        one = Month(directory / "hour", now_ms - HOUR_MS, 1_000, Keep())
        one.until(now_ms)
        one.close()
        results += told(one, "an hour as it is", {})
    began_ms = now_ms - days * DAY_MS
    month = Month(directory / "month", began_ms, DAY_MS // commits, Keep())
    for day in sorted({day for day in DAYS if day < days} | {days}):
        month.until(began_ms + day * DAY_MS)
        results += told(month, f"day {day}", before)
    results.append(sample_bytes(month))
    month.close()
    return results


def main() -> None:
    """Run and show it."""
    parser = argparse.ArgumentParser(description="A month of tables, in minutes.")
    parser.add_argument("--days", type=int, default=DAYS[-1])
    parser.add_argument("--commits", type=int, default=120, help="commits that a day has")
    parser.add_argument("--hour", action="store_true", help="an hour of one commit a second before it")
    given = parser.parse_args()
    around = machine()
    with tempfile.TemporaryDirectory(prefix="kardia-bench-month-") as name:
        show(run(Path(name), given.days, given.commits, hour=given.hour), around, None)


if __name__ == "__main__":
    main()
