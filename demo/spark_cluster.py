"""A Spark standalone cluster on this machine: a master and workers as processes of their own, which share nothing.

Every worker has a folder, a home and a temporary directory of its own, an environment with nothing of ours in it but
the keys of the store, and the plain Python that this one was made from. What an executor needs it must be given by the
job. Processes come from the Spark inside pyspark; they die with this one.

    with SparkCluster(directory, workers=2, environ=store.environ) as cluster:
        cluster.master, cluster.workers[0].kill(), cluster.workers[1].executors()

    python -m demo.spark_cluster DIRECTORY [--workers 2]      # until Ctrl-C; the workers get its AWS_… variables
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from demo.ports import HOST, free_ports
from spark_jobs.jvm import java
from supervise import process
from supervise.process import ProcessError

READY_TIMEOUT_S = 60.0
STOP_PATIENCE_S = 10.0

CORES = 1
MEMORY = "2g"

_EXECUTOR = "CoarseGrainedExecutorBackend"
_MASTER_READY = re.compile(r"Starting Spark master at|I have been elected leader")
_WORKER_READY = re.compile(r"Successfully registered with master")


def spark_home() -> Path:
    """The Spark inside pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ProcessError("The package pyspark is not installed in this Python. Run `make setup`.")
    return Path(next(iter(spec.submodule_search_locations)))


class Daemon:
    """The master or a worker."""

    def __init__(self, name: str, directory: Path, words: list[str], environ: Mapping[str, str]) -> None:
        self.name = name
        self.directory = directory
        self.log = directory / f"{name}.log"
        self._words = words
        self._environ = environ
        self._process: subprocess.Popen[str] | None = None

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, ready: re.Pattern[str]) -> None:
        """Start, and return when the log says that it is ready."""
        for folder in ("home", "tmp", "work"):
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
        from_byte = self.log.stat().st_size if self.log.exists() else 0
        runtime = java.find()
        environ = {
            "PATH": os.pathsep.join([str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"]),
            "JAVA_HOME": str(runtime.home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.directory / "tmp"),
            "HOME": str(self.directory / "home"),
            "TMPDIR": str(self.directory / "tmp"),
            "LANG": "C.UTF-8",
            "MALLOC_ARENA_MAX": "2",
            **self._environ,
        }
        command = [str(spark_home() / "bin" / "spark-class"), *self._words]
        self._process = process.spawn(command, log=self.log, environ=environ, cwd=self.directory)
        running = self._process

        def settled() -> bool:
            text = self.log.read_bytes()[from_byte:].decode("utf-8", "replace")
            return running.poll() is not None or ready.search(text) is not None

        process.until(settled, READY_TIMEOUT_S, lambda: f"{self.name} was not ready. {process.tail(self.log)}")
        if running.poll() is not None:
            raise ProcessError(f"{self.name} ended before it was ready. {process.tail(self.log)}")

    def executors(self) -> list[psutil.Process]:
        """Executors that this worker has started and that run."""
        if self._process is None:
            return []
        found = []
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if any(_EXECUTOR in word for word in child.cmdline()):
                        found.append(child)
        return found

    def kill(self) -> None:
        """SIGKILL for it and for everything that it started, as when the machine dies."""
        if self._process is not None:
            process.kill_session(self._process)
            self._process.wait()

    def stop(self) -> None:
        """Stop it, and what it started."""
        if self._process is not None:
            process.stop(self._process, STOP_PATIENCE_S)
            process.kill_session(self._process)


class SparkCluster:
    """A master and its workers from start to stop."""

    def __init__(self, directory: Path, workers: int = 2, environ: Mapping[str, str] | None = None) -> None:
        self.directory = directory.resolve()
        port = free_ports(1)[0]
        self.master = f"spark://{HOST}:{port}"
        words = ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]
        self._master = Daemon("master", self.directory / "master", words, {})
        self.workers = [self._worker(number, environ or {}) for number in range(workers)]

    def _worker(self, number: int, environ: Mapping[str, str]) -> Daemon:
        folder = self.directory / f"worker-{number}"
        words = ["org.apache.spark.deploy.worker.Worker", "--host", HOST, "--cores", str(CORES), "--memory", MEMORY]
        words += ["--work-dir", str(folder / "work"), "--webui-port", "0", self.master]
        return Daemon(f"worker-{number}", folder, words, environ)

    def start_worker(self, number: int) -> None:
        """Start a worker, for the first time or again."""
        self.workers[number].start(_WORKER_READY)

    def __enter__(self) -> SparkCluster:
        try:
            self._master.start(_MASTER_READY)
            for number in range(len(self.workers)):
                self.start_worker(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for one in (*self.workers, self._master):
            one.stop()


def main() -> None:
    """Run a cluster until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A Spark standalone cluster on the loopback address.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    keys = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    with process.stoppable(), SparkCluster(given.directory, given.workers, keys) as cluster:
        sys.stdout.write(f"{cluster.master}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
