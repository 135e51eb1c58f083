"""A real S3-compatible server on this machine: S3Proxy over a folder, started from the locked jars.

One process on the loopback address, with signed requests (a request without the key is refused) and conditional puts
that hold between processes: the object is linked to its name, which the file system does once. A bucket is a folder
below the server's own. Delays can be asked for, because a store across a network answers in 10 to 30 ms.

    with ObjectStore(directory) as store:
        store.endpoint, store.environ, store.bucket("kardia")

    python -m demo.object_store DIRECTORY BUCKET [--port 9000]      # until Ctrl-C; prints what to export
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demo.ports import HOST, free_ports
from spark_jobs.jvm import jars, java
from supervise import process
from supervise.process import ProcessError

JARS = "object-store"
"""Name of the set in the lock."""

READY_TIMEOUT_S = 60.0
STOP_PATIENCE_S = 5.0

HEAP_MB = 256

REGION = "us-east-1"


@dataclass(frozen=True)
class ObjectStoreSettings:
    """What differs between uses."""

    port: int = 0
    """0 takes a free one."""
    latency_ms: int = 0
    """Added to every request."""


class ObjectStore:
    """One server from start to stop; may be killed and started again on the same folder and port."""

    def __init__(self, directory: Path, settings: ObjectStoreSettings | None = None) -> None:
        self.directory = directory.resolve()
        self.settings = settings or ObjectStoreSettings()
        self.port = self.settings.port
        self.access_key = f"kardia{secrets.token_hex(8)}"
        self.secret_key = secrets.token_hex(20)
        self.log = self.directory / "console.log"
        self._process: subprocess.Popen[str] | None = None

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """What a client of AWS's kind reads from its environment. Region and endpoint are beside the keys."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }

    @property
    def buckets(self) -> Path:
        """The folder of the buckets."""
        return self.directory / "buckets"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        if self._process is None:
            raise ProcessError("The object store has not been started. Call start() first.")
        return self._process.pid

    def bucket(self, name: str) -> str:
        """Make a bucket, if it is not there; its address."""
        (self.buckets / name).mkdir(parents=True, exist_ok=True)
        return f"s3://{name}"

    def __enter__(self) -> ObjectStore:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start and return when it answers."""
        runtime = java.find()
        class_path = os.pathsep.join(str(path) for path in jars.ensure(JARS))
        self.buckets.mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_ports(1)[0]
        options = [f"-Xmx{HEAP_MB}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += [f"-Dlogback.configurationFile={self._write_logging()}"]
        self._process = process.spawn(
            [
                *(str(runtime.path), *options, "-cp", class_path),
                *("org.gaul.s3proxy.Main", "--properties", str(self._write_properties())),
            ],
            log=self.log,
            cwd=self.directory,
        )
        running = self._process

        def settled() -> bool:
            return running.poll() is not None or self._answers()

        def late() -> str:
            return f"The object store did not answer after {READY_TIMEOUT_S:.0f} s. {process.tail(self.log)}"

        process.until(settled, READY_TIMEOUT_S, late)
        if running.poll() is not None:
            raise ProcessError(f"The object store ended before it was ready. {process.tail(self.log)}")

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            process.stop(self._process, STOP_PATIENCE_S)

    def kill(self) -> None:
        """SIGKILL, as when the machine dies."""
        if self._process is not None and self._process.poll() is None:
            process.kill_session(self._process)
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.endpoint, timeout=5):  # noqa: S310  the address is ours
                return True
        except urllib.error.HTTPError:
            return True  # it refuses a request without a signature
        except OSError:
            return False

    def _write_properties(self) -> Path:
        properties = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": self.access_key,
            "s3proxy.credential": self.secret_key,
            "jclouds.provider": "filesystem",
            "jclouds.filesystem.basedir": str(self.buckets),
        }
        if self.settings.latency_ms:
            properties["s3proxy.latency-blobstore.*.latency"] = str(self.settings.latency_ms)
        path = self.directory / "s3proxy.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
        return path

    def _write_logging(self) -> Path:
        """Warnings only: at its own level it would write a line per request."""
        path = self.directory / "logback.xml"
        path.write_text(
            '<configuration><appender name="C" class="ch.qos.logback.core.ConsoleAppender"><encoder>'
            '<pattern>%date %-5level %logger{20} %message%n</pattern></encoder></appender><root level="WARN">'
            '<appender-ref ref="C"/></root></configuration>\n',
            encoding="utf-8",
        )
        return path


def main() -> None:
    """Serve a folder until Ctrl-C."""
    parser = argparse.ArgumentParser(description="An S3-compatible server on the loopback address, over a folder.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("bucket")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    given = parser.parse_args()
    with process.stoppable(), ObjectStore(given.directory, ObjectStoreSettings(given.port)) as store:
        store.bucket(given.bucket)
        for name, value in store.environ.items():
            print(f"export {name}={value}", flush=True)  # noqa: T201
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
