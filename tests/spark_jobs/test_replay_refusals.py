"""What goes wrong around a replay is reported in one sentence that names the cause: the file, the disk, the option."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingest.archives.ranges import plan
from kardia.observe import ObserverSettings
from spark_jobs.errors import InputFileError, TablesError
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import SPILL_PREFIX, Inputs, replay
from spark_jobs.replay.summary import Summary
from spark_jobs.replay.worker import Worker
from spark_jobs.storage_errors import disk_named
from tests.ingest.lines import line
from tests.spark_jobs.support import ROOT

FACTORY = ObserverFactory(ObserverSettings("c"))
LOG = b"".join(line(number) + b"\n" for number in range(2_000))
PACKED = gzip.compress(LOG, mtime=0)


def replayed(tmp_path: Path, *, log: bytes = LOG, offsets: bytes | None = None, tables: str = "tables") -> Summary:
    path, captured = tmp_path / "kafka-request.log", tmp_path / "offsets.jsonl"
    path.write_bytes(log)
    if offsets is not None:
        captured.write_bytes(offsets)
    inputs = Inputs([path], [], [captured] if offsets is not None else [])
    return replay(inputs, tmp_path / tables, FACTORY, workers=1)


@pytest.mark.parametrize(
    "damaged",
    [PACKED[: len(PACKED) // 2], PACKED[:5], PACKED[:10] + b"xxxx" + PACKED[14:]],
    ids=("cut", "head", "bytes"),
)
def test_a_damaged_archive_is_named(tmp_path: Path, damaged: bytes) -> None:
    with pytest.raises(InputFileError, match=r"kafka-request\.log.*gzip -t"):
        replayed(tmp_path, log=damaged)


def test_a_request_log_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"none of its 2,000 lines is a record.*offsets\.jsonl.*--request-log"):
        replayed(tmp_path, offsets=LOG)


RECORD = '{"partition":%s,"offset":%s,"timestamp_ms":%s,"key":%s,"value":null}\n'


def test_a_capture_of_numbers_and_depths_that_cannot_be_is_rejected_line_by_line(tmp_path: Path) -> None:
    unknown = RECORD % (1, 2, 3, '"00ff"')
    lines = [
        RECORD % (2**31, 1, 1, "null"),
        RECORD % (1, 2**63, 1, "null"),
        RECORD % (1, "9" * 5_000, 1, "null"),
        RECORD % (1, 1, 8_000_000_000_000, "null"),
        RECORD % (1, 1, -(2**60), "null"),
        '{"x":' + "[" * 100_000 + "\n",
        unknown,
    ]
    good = RECORD % (1, 2, 1_795_000_000_000, '"0002000167"')
    summary = replayed(tmp_path, offsets="".join([*lines, good]).encode())
    assert (summary.rejected, summary.ignored) == (6, 1)


def test_a_capture_of_unknown_kinds_alone_is_counted_and_changes_nothing_else(tmp_path: Path) -> None:
    unknown = "".join(RECORD % (1, offset, 3, '"00ff"') for offset in range(7))
    summary, plainly = replayed(tmp_path, offsets=unknown.encode()), replayed(tmp_path, tables="plain")
    assert summary.ignored == plainly.ignored + 7
    assert (summary.lines, summary.events, summary.groups) == (plainly.lines + 7, plainly.events, plainly.groups)


def test_a_year_that_cannot_be_is_a_rejected_line(tmp_path: Path) -> None:
    strange = b"".join(year + line(1)[5:] + b"\n" for year in (b"[0001", b"[1969", b"[9999"))
    assert replayed(tmp_path, log=LOG + strange).rejected == 3


def test_a_file_in_the_place_of_the_tables_is_named(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file")
    with pytest.raises(TablesError, match=r"cannot be written.*tables.*right to write"):
        replayed(tmp_path)


def test_a_full_disk_is_not_the_fault_of_the_input(tmp_path: Path) -> None:
    """A directory that is not there any more refuses as a full one does."""
    path = tmp_path / "kafka-request.log"
    path.write_bytes(LOG)
    worker = Worker(FACTORY, tmp_path / "gone", "w", [0], 1)
    with pytest.raises(TablesError, match=r"parsed lines cannot be written.*gone.*make room"):
        worker.parse(plan([path])[0])


def test_what_a_killed_run_spilled_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "tables" / f"{SPILL_PREFIX}abc"
    left.mkdir(parents=True)
    (left / "0-0").write_bytes(b"x")
    replayed(tmp_path)
    assert not list((tmp_path / "tables").glob(f"{SPILL_PREFIX}*"))


PARENT = """
import multiprocessing, sys
from pathlib import Path
from spark_jobs.lane_model import ObserverFactory
from kardia.observe import ObserverSettings
from spark_jobs.replay.pool import Pool
from ingest.archives.ranges import plan
if __name__ == "__main__":
    pool = Pool(ObserverFactory(ObserverSettings("c")), Path(sys.argv[2]), 1, 1)
    for number, one in enumerate(plan([sys.argv[1]])):
        pool.parse(number, one)
    print(pool._processes[0].pid, flush=True)
    pool.take()
"""


def test_a_worker_dies_with_its_parent(tmp_path: Path) -> None:
    """Also in the middle of a command: it was noticed when the answer could not be sent."""
    log, script = tmp_path / "kafka-request.log", tmp_path / "parent.py"
    script.write_text(PARENT)
    log.write_bytes(PACKED * 1_000)  # half a minute of work
    parent = subprocess.Popen(
        [sys.executable, str(script), str(log), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 8
    while time.monotonic() < until and Path(f"/proc/{worker}").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


@pytest.mark.parametrize(("rejected", "status"), [(2, 1), (1, 0)])
def test_a_replay_of_nothing_but_rejected_lines_fails(tmp_path: Path, rejected: int, status: int) -> None:
    """One line that is understood is enough."""
    cut = line(1).replace(b"HEARTBEAT", b"", 1)[:-40]
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"".join(one + b"\n" for one in (*[cut] * rejected, *[line(2)] * (2 - rejected))))
    words = ["replay", "--tables", str(tmp_path / "tables"), "--request-log", str(path), "--workers", "1"]
    told = subprocess.run([sys.executable, "-m", "cli.main", *words], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == status, told.stderr
    assert ("none of the 2 lines says anything about a consumer group; 2 were rejected" in told.stderr) == bool(status)


def test_a_jvm_that_is_gone_is_not_blamed_on_the_disk(tmp_path: Path) -> None:
    with pytest.raises(ConnectionRefusedError), disk_named(tmp_path):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    with pytest.raises(TablesError, match="No space left"), disk_named(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
