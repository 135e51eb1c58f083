"""One run at a time on a folder of a store: what Spark writes there (checkpoint, archive) has no fence of its own.

The commits of the live tables are fenced one by one (`spark_jobs.writers.fence`); files of a checkpoint and commits of
Spark cannot be. So whoever begins

    (1) takes the next number, in a small Delta table of the folder: an entry of its log can be made once, by one
    (2) says that it lives, in an object of that number, again and again
    (3) waits until everybody with a lower number is gone: its object is taken away, or has not changed for `EXPIRES_S`,
        or is of this machine, where neither it nor its JVM runs any more

A run that finds a higher number than its own stops, and takes its object away when it has; so the newer one goes on,
as with the fence. A run that could not say that it lives for half of `EXPIRES_S` stops as well, because others may
think it dead: it asks before each step of a batch (`check`). Clocks are not compared: whoever waits looks at its own,
and for changes. What is left: a process that is stopped in the middle of a write, for longer than `EXPIRES_S`, ends
that write when it goes on.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_jobs.checkpoint import kardia_files
from spark_jobs.errors import JobError, LeaseError
from spark_jobs.storage_errors import store_named
from spark_jobs.writers import fence
from stores import delta
from stores.locations import Store

FOLDER = "_kardia_lease"
NUMBERS = "numbers"
_ALIVE = "alive-"

BEAT_S = 5.0
"""Between two signs of life: 17,280 puts a day, nine cents at Amazon's."""

EXPIRES_S = 20.0
"""Without a change after which a run counts as dead: four signs were missed."""

GIVES_WAY_S = 120.0
"""How long a run that lives may take to stop for a newer one."""

LOOK_S = 0.5


class StoreLease:
    """The right to use a folder of a store, from `take` to `release`, or until somebody else begins."""

    def __init__(
        self, directory: Store, role: str, *, beat_s: float = BEAT_S, expires_s: float = EXPIRES_S, machine: str = ""
    ) -> None:
        """Name the folder and what it is used for. `machine` tells a machine from others; empty: this one."""
        self.directory = directory
        self.role = role
        self.number = 0
        self._folder = directory / FOLDER
        self._beat_s, self._expires_s = beat_s, expires_s
        self._machine = machine or _this_machine()
        self._table: DeltaTable | None = None
        self._stop = threading.Event()
        self._beaten_s = 0.0
        self._beats = 0
        self._newer = False
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def take(self) -> StoreLease:
        """Steps 1 to 3. LeaseError if a newer run begins meanwhile, or an older one lives and does not stop."""
        with store_named(self.directory):
            delta.create(self._folder / NUMBERS, pa.schema([pa.field("number", pa.int64())]))
            self._table = delta.opened(self._folder / NUMBERS)
            self.number = fence.begin(self._table)
            self._beat()
        self._thread.start()
        try:
            self._await_others()
        except BaseException:
            self.release()
            raise
        return self

    def check(self) -> None:
        """Raise a LeaseError if this run may write no more."""
        if self._newer:
            raise LeaseError(
                f"another run has begun as {self.role}",
                str(self.directory),
                f"one {self.role} at a time; the newest one goes on",
                "find out who started it; stop one of the two, or give it a folder of its own",
            )
        silent_s = time.monotonic() - self._beaten_s
        if silent_s > self._expires_s / 2:
            raise LeaseError(
                f"the store has not taken a sign of life for {silent_s:.0f} s: others may think this run dead",
                str(self.directory),
                f"one every {self._beat_s:.0f} s",
                "look at the network, or at what stopped this process, and start again: nothing is lost",
            )

    def release(self) -> None:
        """Give the lease back: whoever waits may begin."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(self._expires_s)
        if self.number:
            with suppress(JobError, OSError, DeltaError):  # it expires
                kardia_files.remove(self._folder, f"{_ALIVE}{self.number}")

    def __enter__(self) -> StoreLease:
        """Take the lease."""
        return self.take()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()

    def _run(self) -> None:
        while not self._stop.wait(self._beat_s):
            with suppress(JobError, OSError, DeltaError):  # `check` says so when it has lasted
                self._beat()

    def _beat(self) -> None:
        """Say that we live, and look for who is newer. It counts from before it was asked."""
        began_s = time.monotonic()
        self._beats += 1
        # Its JVM goes on writing for a moment when a driver is killed.
        pids = [os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))]
        said = {"machine": self._machine, "pids": pids, "role": self.role, "beats": self._beats}
        kardia_files.write(self._folder, f"{_ALIVE}{self.number}", json.dumps(said).encode())
        assert self._table is not None, "taken before it beats"  # noqa: S101 - a broken promise of ours
        self._table.update_incremental()
        self._newer |= (self._table.transaction_version(fence.APP_ID) or 0) > self.number
        self._beaten_s = began_s

    def _await_others(self) -> None:
        """Step 3."""
        seen: dict[str, tuple[bytes, float]] = {}
        end_s = time.monotonic() + max(GIVES_WAY_S, 1.5 * self._expires_s)
        while others := self._others():
            for name in others:
                content, now_s = self._content(name), time.monotonic()
                if content is None:
                    continue
                before, since_s = seen.get(name, (b"", now_s))
                if content != before:
                    seen[name] = content, now_s
                if self._is_dead(content) or (content == before and now_s - since_s >= self._expires_s):
                    kardia_files.remove(self._folder, name)
            self.check()
            if time.monotonic() >= end_s:
                raise LeaseError(
                    f"another run lives as {self.role} and does not stop",
                    str(self.directory),
                    f"one {self.role} at a time; an older one stops when it sees a newer",
                    "stop it, or give this one a folder of its own",
                )
            if self._others():
                time.sleep(min(LOOK_S, self._beat_s))

    def _others(self) -> list[str]:
        """Objects of older runs."""
        names = kardia_files.names(self._folder)
        numbers = [number for name in names if (number := name.removeprefix(_ALIVE)) != name and number.isdigit()]
        return [f"{_ALIVE}{number}" for number in numbers if int(number) < self.number]

    def _content(self, name: str) -> bytes | None:
        try:
            return kardia_files.read(self._folder, name)
        except FileNotFoundError:
            return None

    def _is_dead(self, content: bytes) -> bool:
        """Whether it is of processes that were of this machine and are there no more."""
        try:
            said = json.loads(content)
            return said["machine"] == self._machine and not any(psutil.pid_exists(pid) for pid in said["pids"])
        except (OSError, ValueError, LookupError, TypeError):
            return False


def guarded(reached: Callable[[str, int], None], leases: list[StoreLease]) -> Callable[[str, int], None]:
    """A port between the steps of a batch that asks first whether this run may still write."""
    if not leases:
        return reached

    def step(name: str, batch_id: int) -> None:
        reached(name, batch_id)
        if name.endswith(":before"):
            for lease in leases:
                lease.check()

    return step


def _this_machine() -> str:
    """What tells this machine, since it was started, and this container from others. Without that: nothing does, and
    nobody is thought dead before the time."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {booted} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()} {os.getpid()} {time.monotonic_ns()}"
