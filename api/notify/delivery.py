"""Sends what waits in one outbox until it is taken. A few tasks for each target, so that none holds up another, and
that one alert for which a receiver is slow, or fails, holds up no other: what failed is tried again behind the rest. Of
one alert one message is on its way at a time, in the order of what happened.

An answer that will not change (4xx other than 408 and 429) is counted and given up; everything else is tried again,
with growing pauses, for as long as it takes: the outbox is bounded. A receiver that says when it wants to be asked
again (Retry-After) is not asked before, within `asked_pause_max_ms`. One time limit holds for a whole delivery, from
the connection to the end of the answer, of which only the status counts. Follows no redirect, uses no proxy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from math import inf
from secrets import SystemRandom
from typing import NamedTuple

import httpx

from api.notify.lifecycle import Key, Notice
from api.notify.metrics import NotifyMetrics
from api.notify.outbox import Outbox
from api.notify.settings import NotifySettings
from api.notify.targets import Links, Request

log = logging.getLogger("kardia.api.notify")

AT_ONCE = 4
"""POSTs to one target at a time: so many alerts may be slow before another one waits for them."""

ANSWER_BYTES_MAX = 65_536
"""Of an answer so much is read and thrown away; a receiver's answer without end filled 17 GB of memory."""

RETRY_STATUSES = frozenset({408, 429})

FIRST_PAUSE_S = 0.1
"""Longest pause after the first failure; it doubles with each."""

SAY_AGAIN_S = 60.0
"""How often it is said that a target still fails."""

_chance = SystemRandom()


class NotTakenError(Exception):
    """The target did not take it, and may do so later; not before `pause_s`, if it said so."""

    def __init__(self, why: str, pause_s: float = 0.0) -> None:
        super().__init__(why)
        self.pause_s = pause_s


class RefusedError(Exception):
    """The target will not take it."""


class Trouble(NamedTuple):
    """An alert that the target has not taken."""

    since_ms: int
    attempts: int
    due_s: float
    """When it is tried again, by the clock of the loop."""


class Delivery:
    """One target: its address, how it is spoken to, and its outbox."""

    def __init__(
        self,
        name: str,
        url: str,
        requests: Callable[[Sequence[Notice], Links], list[Request]],
        together: int,
        outbox: Outbox,
        links: Links,
        metrics: NotifyMetrics,
        settings: NotifySettings,
    ) -> None:
        """`together`: notices that one POST may tell."""
        self.name = name
        self.outbox = outbox
        self._url = url.rstrip("/")
        self._requests = requests
        self._together = together
        self._links = links
        self._metrics = metrics
        metrics.begin(name)
        self._pause_max_s = settings.retry_after_max_ms / 1_000
        self._asked_max_s = settings.asked_pause_max_ms / 1_000
        self._send_timeout_s = settings.send_timeout_ms / 1_000
        self._something = asyncio.Event()
        self._on_the_way: set[Key] = set()
        self._troubles: dict[Key, Trouble] = {}
        self._failed = 0
        """Attempts in a row that failed, of whatever alert."""
        self._not_before_s = 0.0
        self._said_s = -inf

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
        async with asyncio.TaskGroup() as senders:
            for _ in range(AT_ONCE):
                senders.create_task(self._send(client, saved, now_ms))

    async def _send(self, client: httpx.AsyncClient, saved: Callable[[], None], now_ms: Callable[[], int]) -> None:
        while True:
            waiting, due_s = self._next()
            if not waiting:
                self._something.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(None if due_s == inf else due_s):
                        await self._something.wait()
                continue
            [request] = self._requests(waiting, self._links)
            keys = {notice.finding.key for notice in waiting}
            self._on_the_way |= keys
            try:
                is_done = await self._deliver(client, request, now_ms)
            finally:
                self._on_the_way -= keys
            if is_done:
                self.outbox.done(waiting)
                self._metrics.waiting.labels(self.name).set(len(self.outbox))
                if not len(self.outbox):
                    self._troubles.clear()  # of alerts that were dropped meanwhile
                    self._tell_since()
                saved()
            self._something.set()  # what waited for its turn behind these

    def _next(self) -> tuple[list[Notice], float]:
        """What is to be sent now; if there is nothing, when there may be."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._not_before_s:
            return [], self._not_before_s
        later = {key: trouble.due_s for key, trouble in self._troubles.items() if trouble.due_s > now_s}
        return self.outbox.first(self._together, self._on_the_way | later.keys()), min(later.values(), default=inf)

    async def _deliver(self, client: httpx.AsyncClient, request: Request, now_ms: Callable[[], int]) -> bool:
        """One attempt; whether there is to be no other."""
        try:
            await self._post(client, request, now_ms())
        except RefusedError as error:
            log.warning("notice.refused target=%s answer=%s", self.name, error)
            self._metrics.dropped.labels(self.name, "refused").inc(len(request.notices))
            self._over(request, now_ms())
            return True
        except NotTakenError as error:
            self._metrics.failures.labels(self.name).inc()
            self._note(request, error, now_ms())
            return False
        for notice in request.notices:
            self._metrics.delivered.labels(self.name, notice.what).inc()
            self._metrics.seconds.labels(self.name).observe(max(0, now_ms() - notice.at_ms) / 1_000)
        self._over(request, now_ms())
        return True

    def _note(self, request: Request, error: NotTakenError, now_ms: int) -> None:
        """It failed: this alert waits for a while, and so does the target, the longer the more that fails in a row."""
        now_s = asyncio.get_running_loop().time()
        self._failed += 1
        self._not_before_s = now_s + max(error.pause_s, self._pause_s(self._failed))
        for key in {notice.finding.key for notice in request.notices}:
            before = self._troubles.get(key, Trouble(now_ms, 0, 0.0))
            due_s = max(self._not_before_s, now_s + self._pause_s(before.attempts + 1))
            self._troubles[key] = Trouble(before.since_ms, before.attempts + 1, due_s)
        if now_s >= self._said_s + SAY_AGAIN_S:
            self._said_s = now_s
            log.warning(
                "notice.not_taken target=%s answer=%s waiting=%d; it is tried again", self.name, error, len(self.outbox)
            )
        self._tell_since()

    def _over(self, request: Request, now_ms: int) -> None:
        """These alerts were taken, or given up."""
        self._failed = 0
        had = bool(self._troubles)
        since_ms = min((trouble.since_ms for trouble in self._troubles.values()), default=now_ms)
        for notice in request.notices:
            self._troubles.pop(notice.finding.key, None)
        if had and not self._troubles:
            self._said_s = -inf
            log.warning("notice.taken_again target=%s after_s=%d", self.name, (now_ms - since_ms) // 1_000)
        self._tell_since()

    def _tell_since(self) -> None:
        since_ms = min((trouble.since_ms for trouble in self._troubles.values()), default=0)
        self._metrics.failing_since.labels(self.name).set(since_ms / 1_000)

    def _pause_s(self, attempts: int) -> float:
        return _chance.uniform(0, min(self._pause_max_s, FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 32)))

    async def _post(self, client: httpx.AsyncClient, request: Request, now_ms: int) -> None:
        status, asked_s = 0, 0.0
        try:
            async with asyncio.timeout(self._send_timeout_s):
                async with client.stream(
                    "POST",
                    self._url + request.path,
                    content=request.body,
                    headers={"content-type": request.content_type},
                ) as reply:
                    status = reply.status_code
                    asked_s = asked_pause_s(reply.headers.get("retry-after", ""), now_ms)
                    await _discard(reply)
        except (httpx.HTTPError, TimeoutError) as error:
            if not 200 <= status < 300:  # else it was taken, and only the rest of its answer did not come
                raise NotTakenError(type(error).__name__) from error
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in RETRY_STATUSES:
            raise RefusedError(str(status))
        raise NotTakenError(str(status), min(asked_s, self._asked_max_s))


def asked_pause_s(text: str, now_ms: int) -> float:
    """Seconds that a Retry-After asks for (RFC 9110, 10.2.3): a number of them, or an instant; 0 if it is neither."""
    if text.strip().isascii() and text.strip().isdigit():
        return float(text.strip()[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_ms / 1_000)
    except (ValueError, OverflowError):
        return 0.0


async def _discard(reply: httpx.Response) -> None:
    """Read a short answer to its end, so that the connection can be used again, and keep nothing of it. A longer one is
    left where it is, and its connection closed: nobody but the status is asked."""
    taken = 0
    async for piece in reply.aiter_raw():
        taken += len(piece)
        if taken > ANSWER_BYTES_MAX:
            return
