"""Sends what waits in one outbox, in order, until it is taken. One task for each target, so that none holds up another.

An answer that will not change (4xx other than 408 and 429) is counted and given up; everything else is tried again,
with growing pauses, for as long as it takes: the outbox is bounded. One time limit holds for a whole delivery, from the
connection to the end of the answer, of which only the status counts. Follows no redirect, uses no proxy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import httpx
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from api.notify.lifecycle import Notice
from api.notify.metrics import NotifyMetrics
from api.notify.outbox import Outbox
from api.notify.targets import Links, Request

log = logging.getLogger("kardia.api.notify")

BATCH_MAX = 64
ANSWER_BYTES_MAX = 65_536
"""Of an answer so much is read and thrown away; a receiver's answer without end filled 17 GB of memory."""

RETRY_STATUSES = frozenset({408, 429})


class NotTakenError(Exception):
    """The target did not take it, and may do so later."""


class RefusedError(Exception):
    """The target will not take it."""


class Delivery:
    """One target: its address, how it is spoken to, and its outbox."""

    def __init__(
        self,
        name: str,
        url: str,
        requests: Callable[[Sequence[Notice], Links], list[Request]],
        outbox: Outbox,
        links: Links,
        metrics: NotifyMetrics,
        retry_after_max_ms: int,
        send_timeout_ms: int,
    ) -> None:
        self.name = name
        self.outbox = outbox
        self._url = url.rstrip("/")
        self._requests = requests
        self._links = links
        self._metrics = metrics
        self._retry_after_max_ms = retry_after_max_ms
        self._send_timeout_s = send_timeout_ms / 1_000
        self._something = asyncio.Event()

    def put(self, notices: Sequence[Notice]) -> None:
        """Take notices in; `run` sends them."""
        for notice in notices:
            self.outbox.put(notice)
        for reason in list(self.outbox.dropped):
            self._metrics.dropped.labels(self.name, "full").inc(self.outbox.dropped.pop(reason))
        self._metrics.waiting.labels(self.name).set(len(self.outbox))
        if len(self.outbox):
            self._something.set()

    async def run(self, client: httpx.AsyncClient, saved: Callable[[], None], now_ms: Callable[[], int]) -> None:
        """Send for ever; `saved` is called when something has been delivered and may be forgotten."""
        while True:
            await self._something.wait()
            self._something.clear()
            while waiting := self.outbox.first(BATCH_MAX):
                for request in self._requests(waiting, self._links):
                    await self._deliver(client, request, now_ms)
                    self.outbox.done(list(request.notices))
                    self._metrics.waiting.labels(self.name).set(len(self.outbox))
                saved()

    async def _deliver(self, client: httpx.AsyncClient, request: Request, now_ms: Callable[[], int]) -> None:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(NotTakenError),
            wait=wait_random_exponential(multiplier=0.1, max=self._retry_after_max_ms / 1_000),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    await self._post(client, request)
        except RefusedError as error:
            log.warning("notice.refused target=%s answer=%s", self.name, error)
            self._metrics.dropped.labels(self.name, "refused").inc(len(request.notices))
            return
        for notice in request.notices:
            self._metrics.delivered.labels(self.name, notice.what).inc()
            self._metrics.seconds.labels(self.name).observe(max(0, now_ms() - notice.at_ms) / 1_000)

    async def _post(self, client: httpx.AsyncClient, request: Request) -> None:
        status = 0
        try:
            async with asyncio.timeout(self._send_timeout_s):
                async with client.stream(
                    "POST",
                    self._url + request.path,
                    content=request.body,
                    headers={"content-type": request.content_type},
                ) as reply:
                    status = reply.status_code
                    await _discard(reply)
        except (httpx.HTTPError, TimeoutError) as error:
            if not 200 <= status < 300:  # else it was taken, and only the rest of its answer did not come
                self._metrics.failures.labels(self.name).inc()
                log.info("notice.not_taken target=%s error=%s", self.name, type(error).__name__)
                raise NotTakenError from error
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in RETRY_STATUSES:
            raise RefusedError(str(status))
        self._metrics.failures.labels(self.name).inc()
        log.info("notice.not_taken target=%s status=%d", self.name, status)
        raise NotTakenError


async def _discard(reply: httpx.Response) -> None:
    """Read a short answer to its end, so that the connection can be used again, and keep nothing of it. A longer one is
    left where it is, and its connection closed: nobody but the status is asked."""
    taken = 0
    async for piece in reply.aiter_raw():
        taken += len(piece)
        if taken > ANSWER_BYTES_MAX:
            return
