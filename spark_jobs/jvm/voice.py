"""Standard error of the JVM and of its Python workers: passed on while the job runs, dropped once it stops.

A stop interrupts whatever is under way, and the JVM tells each interruption with a page of trace; nobody who asked for
the stop needs that. Children inherit file descriptor 2 when they are started, so it is a pipe for as long as the JVM is
being started, and ours again after that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spark_jobs.jvm import private_py4j

PIECE_BYTES = 65_536


class Voice:
    """Standard error of what is started within `lent`."""

    def __init__(self) -> None:
        """Nobody speaks yet."""
        self._hushed = False

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Whatever is started within it speaks through this; what this process says meanwhile goes the same way."""
        own = os.dup(2)
        reading, writing = os.pipe()
        os.dup2(writing, 2)  # inheritable, as the other two are not
        os.close(writing)
        threading.Thread(target=self._pass_on, args=(reading, own), name="voice", daemon=True).start()
        try:
            yield
        finally:
            os.dup2(own, 2)

    def _pass_on(self, reading: int, own: int) -> None:
        while piece := os.read(reading, PIECE_BYTES):
            view = memoryview(piece)
            while view and not self._hushed:
                view = view[os.write(own, view) :]

    def hush(self) -> None:
        """Drop what comes from here on, and what py4j says of a JVM that is going."""
        self._hushed = True
        private_py4j.silence()
