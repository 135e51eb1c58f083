"""The same story a second time, from the archived logs: `kardia replay` must give the same rows as the live job.

Logs go on while the live tables are read, so both sides are cut at one instant: lines stamped later are left out of the
copy that is replayed, and rows known later are left out of the live tables. What is compared is what stands.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from demo.tables import Record, Tables, standing
from kardia.tables import TABLES
from supervise import process
from supervise.process import ProcessError
from supervise.roles import kardia

COMPARED = ("members", "rebalances", "transitions")
_NOT_COMPARED = {"batch_id", "known_at_ms"}
"""When a row became known depends on when ticks came, and its batch on when the job looked; the rest must be equal."""

REPLAY_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Comparison:
    """One table, live and replayed."""

    table: str
    live: int
    equal_rows: int
    replayed: int
    difference: str
    """The first difference, empty if there is none."""
    late: int = 0
    """Lines that reached the live job after their place in the order had passed. It holds every log back for a moment
    (`hold_ms`) so that there are none; on a starved machine there may be, and a replay sees them in their place."""

    @property
    def fault(self) -> str:
        """What is wrong, empty if nothing is: the same events in the same order must say the same."""
        return "" if self.equal or self.late else self.sentence

    @property
    def equal(self) -> bool:
        """Whether both sides say the same."""
        return not self.difference

    @property
    def sentence(self) -> str:
        """For the footer of the verdict."""
        if self.equal:
            return f"Replayed from the archived logs: {self.table} equal, {self.live} rows."
        why = f" after {self.late} lines came late to the live job, as on a busy machine" if self.late else ""
        return (
            f"Replayed from the archived logs: {self.table} differ{why}, {self.equal_rows} of {self.live} live and "
            f"{self.replayed} replayed rows are equal; first difference: {self.difference}"
        )


def replay(
    request_log: Path, offsets: Path | None, cluster: str, until_ms: int, work: Path, session_ms: int = -1
) -> Tables:
    """Run `kardia replay` on the logs as they were at `until_ms`; returns its tables. `session_ms`: session timeout of
    the consumer protocol, which a collector reads from the cluster."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    copied = work / request_log.name
    with request_log.open("rb") as source, copied.open("wb") as target:
        target.writelines(lines_until(source, until_ms))
    command = kardia("replay", "--tables", str(work / "tables"), "--request-log", str(copied), "--cluster", cluster)
    if offsets is not None:
        kept = work / "offsets.jsonl"
        with offsets.open(encoding="utf-8") as lines, kept.open("w", encoding="utf-8") as target_text:
            target_text.writelines(line for line in lines if json.loads(line)["timestamp_ms"] <= until_ms)
        command += ["--offsets", str(kept)]
    if session_ms > 0:
        command += ["--consumer-session-ms", str(session_ms)]
    run(command, work / "replay.log", "kardia replay")
    return Tables(work / "tables")


def capture(bootstrap: str, target: Path) -> Path:
    """Run `kardia capture`: the records of `__consumer_offsets` as they are now."""
    command = kardia("capture", "--bootstrap-server", bootstrap, "--out", str(target))
    run(command, target.with_suffix(".log"), "kardia capture")
    return target


def run(command: list[str], log: Path, name: str) -> None:
    """Run a verb to its end, or a ProcessError with the end of what it said."""
    child = process.spawn(command, log=log, environ=process.environ())
    try:
        code = child.wait(REPLAY_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        code = process.stop(child, 0.0)
    if code != 0:
        raise ProcessError(f"{name} ended with exit code {code}. Its log {log} ends:\n{process.tail(log)}")


def lines_until(lines: Iterable[bytes], until_ms: int) -> Iterable[bytes]:
    """Lines of a log, up to the first one stamped later (UTC); each line begins with `[2026-01-02 03:04:05,678]`."""
    limit = datetime.fromtimestamp(until_ms / 1000, UTC).strftime("[%Y-%m-%d %H:%M:%S,%f")[:-3].encode()
    for line in lines:
        if line.startswith(b"[") and line[: len(limit)] > limit:
            return
        yield line


def compare(live: Tables, replayed: Tables, until_ms: int) -> list[Comparison]:
    """What stands in both, table by table."""
    late = sum(row["late"] for row in live.rows("progress", ["late"]))
    return [
        compare_rows(
            name,
            standing((row for row in live.rows(name) if row["known_at_ms"] <= until_ms), TABLES[name].key),
            standing((row for row in replayed.rows(name) if row["known_at_ms"] <= until_ms), TABLES[name].key),
            late,
        )
        for name in COMPARED
    ]


def compare_rows(table: str, live: list[Record], replayed: list[Record], late: int = 0) -> Comparison:
    """Compare two sets of standing rows."""
    key = TABLES[table].key
    here = {tuple(row[column] for column in key): row for row in live}
    there = {tuple(row[column] for column in key): row for row in replayed}
    difference = ""
    equal = 0
    for at in sorted(here.keys() | there.keys(), key=str):
        one, other = here.get(at), there.get(at)
        if one is None or other is None:
            difference = difference or f"{at} is only in the {'replayed' if one is None else 'live'} table"
            continue
        columns = [name for name in one if name not in _NOT_COMPARED and one[name] != other[name]]
        if not columns:
            equal += 1
        elif not difference:
            difference = f"{at}: " + ", ".join(
                f"{name} {one[name]!r} live, {other[name]!r} replayed" for name in columns
            )
    return Comparison(table, len(here), equal, len(there), difference, late)
