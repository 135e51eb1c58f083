"""Records a story with the admin API sampled: `python -m tests.corpora.samples_recording STORY VERSION FOLDER`.

A real broker, librdkafka's consumers (`demo.consumer`), and `kardia capture --admin` beside them from before the first
member to after the last one. What is kept has the shape of the other stories and `samples.jsonl` with it; `expect.json`
comes from server.log alone (`demo.server_log`), never from a sample. Nothing here knows how Kardia reads any of it.
"""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from supervise import process
from tests.corpora.recording import SESSION_MS, Recording, asked, expectation, keep, keep_offsets, write

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY_S = 2.0
"""From one sample to the next."""

QUIET_S = 2 * EVERY_S + 1.0
"""Between two things that are done: a sample has seen the one before the other comes."""

OVER_S = SESSION_MS / 1_000 + QUIET_S
"""Until a member that was killed is none any more, and a sample has seen that."""

STORIES = {
    "a01_changes": "one member killed, one that leaves, one that comes late, a static seat taken in time and too late",
}


@contextmanager
def sampled(bootstrap: str, out: Path) -> Iterator[None]:
    """`kardia capture --admin` beside what is done."""
    words = ["capture", "--admin", "--admin-every-s", str(EVERY_S), "--bootstrap-server", bootstrap, "--out", str(out)]
    running = process.spawn([sys.executable, "-m", "cli.main", *words], log=out.with_suffix(".log"))
    try:
        part = out.with_name(out.name + ".part")
        process.until(part.exists, 60.0, lambda: process.tail(out.with_suffix(".log")))
        yield
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            ended = running.wait(60)
        except subprocess.TimeoutExpired:
            process.kill_session(running)
            raise
    if ended:
        raise SystemExit(process.tail(out.with_suffix(".log")))


def changes(recording: Recording) -> None:
    """Five groups, so that each thing that is done stands alone in its own."""
    pairs = {"killed": "killed-b", "left": "left-b"}
    for group, second in pairs.items():
        recording.start(group, f"{group}-a")
        recording.start(group, second)
    recording.start("static", "static-a")
    recording.start("static", "static-b", instance="seat-1")
    recording.start("outstayed", "outstayed-a")
    recording.start("outstayed", "outstayed-b", instance="seat-2")
    recording.start("late", "late-a")
    for name in ("killed-a", "killed-b", "left-a", "left-b", "static-a", "static-b"):
        recording.await_assigned(name)
    for name in ("outstayed-a", "outstayed-b", "late-a"):
        recording.await_assigned(name)
    time.sleep(QUIET_S)
    recording.kill("killed-b", "outstayed-b")
    recording.leave("left-b")
    time.sleep(QUIET_S)
    recording.start("late", "late-b")
    recording.kill("static-b")
    recording.start("static", "static-c", instance="seat-1")
    recording.await_assigned("static-c")
    recording.await_assigned("late-b")
    time.sleep(OVER_S - QUIET_S)
    recording.start("outstayed", "outstayed-c", instance="seat-2")
    recording.await_assigned("outstayed-c")
    time.sleep(QUIET_S)
    recording.leave("left-a")
    time.sleep(QUIET_S)


def record(version: str, folder: Path) -> tuple[Recording, int, int]:
    """Let it happen; returns the recording and the instants between which it is judged."""
    recording = Recording(version, folder, 1)
    recording.boot()
    try:
        recording.broker.create_topic("orders", 3)
        with sampled(recording.bootstrap, folder / "samples.jsonl"):
            begin_ms = time.time_ns() // 1_000_000
            changes(recording)
            end_ms = time.time_ns() // 1_000_000
        keep_offsets(recording.bootstrap, folder / "offsets.jsonl")
    finally:
        recording.end()
    return recording, begin_ms, end_ms


def main(argv: Sequence[str] | None = None) -> None:
    """Record and keep one story."""
    options = asked(argv, __doc__ or "", STORIES)
    to = options.to / f"{options.story}-{options.version}"
    with tempfile.TemporaryDirectory() as folder:
        recording, begin_ms, end_ms = record(options.version, Path(folder))
        to.mkdir(parents=True)
        keep(recording.brokers, Path(folder), to)
        with gzip.GzipFile(to / "samples.jsonl.gz", "wb", mtime=0) as packed:
            packed.write((Path(folder) / "samples.jsonl").read_bytes())
        judged = {"scenario": options.story, "broker": options.version, "start_ms": begin_ms, "end_ms": end_ms}
        meta = {
            "what": STORIES[options.story],
            "broker_version": options.version,
            "nodes": 1,
            "log_timezone": "UTC",
            "admin_every_s": EVERY_S,
        }
        write(to, judged, meta, recording.truth, expectation([recording.broker.server_log]))


if __name__ == "__main__":
    main()
