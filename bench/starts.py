"""What a start of the job costs, with an archive of its classes and without: from nothing to the end of a small topic.

    python -m bench.starts [--pairs 3]

Each pair is `kardia stream --once` twice over the same events of 1,000 members, in caches of their own that hold the
same jars; the archive is made first, as `python -m spark_jobs.class_archive` makes it. Baseline is the one without.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from bench.population import Population
from bench.result import Result, Usage, machine, show
from bench.size import CLUSTER, TOPIC, send
from demo.broker import Broker
from kardia.events import DEFAULT_LANES
from spark_jobs.jvm.cache import cache_dir

GROUPS = 100


def cache_of(folder: Path) -> Path:
    """A cache with the jars of this user's, and nothing else."""
    folder.mkdir()
    (folder / "jars").symlink_to(cache_dir() / "jars", target_is_directory=True)
    return folder


def ran(command: list[str], cache: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of a command with this cache."""
    usage, began_s = Usage(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, "KARDIA_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return time.monotonic() - began_s, usage.cpu_s()


def run(directory: Path, pairs: int) -> list[Result]:
    """Make the archive, then start the job with it and without."""
    caches = {name: cache_of(directory / name) for name in ("with", "without")}
    _, making_s = ran(["spark_jobs.class_archive"], caches["with"])
    size_mb = sum(path.stat().st_size for path in (caches["with"] / "classes").iterdir()) / 1e6
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in caches}
    with Broker(directory / "broker") as broker:
        broker.create_topic(TOPIC, DEFAULT_LANES)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for batch in Population(GROUPS, 1.0).forming(time.time() * 1_000):
            send(producer, batch)
        producer.flush(60)
        for number in range(pairs):
            for name in caches if number % 2 else reversed(caches):
                home = directory / f"{name}-{number}"
                command = ["cli.main", "stream", "--once", "--cluster", CLUSTER, "--bootstrap-server", broker.bootstrap]
                command += ["--tables", str(home / "tables"), "--checkpoint", str(home / "checkpoint")]
                found[name].append(ran(command, caches[name]))
    seconds, cpu_s = ({name: [one[place] for one in runs] for name, runs in found.items()} for place in (0, 1))
    return [
        Result(
            "starts",
            what,
            statistics.median(taken["with"]),
            "s",
            statistics.median(taken["without"]),
            "without the archive",
            more={name: " ".join(f"{one:.1f}" for one in sorted(runs)) for name, runs in taken.items()},
        )
        for what, taken in (("the job over a small topic", seconds), ("CPU of it", cpu_s))
    ] + [Result("starts", "CPU of making the archive", making_s, "s", more={"MB": round(size_mb)})]


def main() -> None:
    """Run and show it."""
    parser = argparse.ArgumentParser(description="Starts of the job, with an archive of its classes and without.")
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    around = machine()
    with tempfile.TemporaryDirectory(prefix="kardia-bench-starts-") as name:
        show(run(Path(name), given.pairs), around, None)


if __name__ == "__main__":
    main()
