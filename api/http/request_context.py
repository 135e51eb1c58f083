"""What a request needs of its application: the store, the key of cursors, and places for reads of files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from api.answers.encoded import Kept
from api.errors import Overloaded, ReadTimedOut
from api.files.counted import Read, counting
from api.past.cursor import Cursors
from api.store import Store

Found = TypeVar("Found")


class RequestContext:
    """What a request needs: the store, the key of cursors, and places for reads of files. One per application."""

    def __init__(self, store: Store, cursors: Cursors, observe: Callable[[Read], None]) -> None:
        """`observe` is told what each question has read of files, in the thread that has read it."""
        self._observe = observe
        self.store = store
        self.cursors = cursors
        self.kept = Kept()
        """Answers that may be sent again."""
        self.scraping = asyncio.Lock()
        """Held by the scrape that is being answered."""
        limits = store.settings
        # A pool of our own: a thread that is given up still holds its place, where anyio's limiter would hand it on.
        self._pool = ThreadPoolExecutor(limits.reads_at_once_max, "kardia-read")
        self._pending = 0
        self._lock = Lock()

    async def read(self, question: Callable[[], Found]) -> Found:
        """Run a read of files in a thread. One that takes too long is given up; its place stays taken to its end."""
        limits = self.store.settings
        if self._pending >= limits.reads_at_once_max + limits.reads_waiting_max:
            raise Overloaded(
                "expected fewer questions about the past at once; ask again later.",
                headers={"Retry-After": "1"},
                limit="reads_waiting_max",
            )
        with self._lock:
            self._pending += 1
        reading = self._pool.submit(self._counted, question)
        reading.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(reading), limits.read_timeout_ms / 1000)
        except TimeoutError:
            raise ReadTimedOut(
                f"expected an answer within {limits.read_timeout_ms} ms; narrow it with from and to, or ask later.",
                limit="read_timeout_ms",
            ) from None

    def _counted(self, question: Callable[[], Found]) -> Found:
        with counting() as read:
            try:
                return question()
            finally:
                self._observe(read)

    def close(self) -> None:
        """Take no more reads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: Future[Any]) -> None:
        # Called by the reading thread.
        with self._lock:
            self._pending -= 1
