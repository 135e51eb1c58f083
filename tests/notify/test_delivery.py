"""A receiver that does not end its answer, begins none, fails or is slow: what it costs, what is taken for delivered,
and that no alert waits for another one."""

from __future__ import annotations

import asyncio
import json
import logging
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.notify.delivery import ANSWER_BYTES_MAX, AT_ONCE, Delivery, asked_pause_s
from api.notify.lifecycle import Notice
from api.notify.metrics import NotifyMetrics
from api.notify.outbox import Outbox
from api.notify.settings import NotifySettings
from api.notify.targets import Links, to_webhook
from tests.notify.test_outbox import notice

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def receiver(answer: Answer) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that reads a request and then answers as it likes; gives its address and when it was asked."""
    asked: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                asked.append(len(asked))
                await answer(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def endless(writer: asyncio.StreamWriter) -> None:
    """200, and a body that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    while True:
        writer.write(piece)
        await writer.drain()


async def trickle(writer: asyncio.StreamWriter) -> None:
    """A head that never ends, a byte at a time: each byte would begin a limit on silence anew."""
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        writer.write(b"y")
        await writer.drain()
        await asyncio.sleep(0.01)


def delivery_to(url: str, send_timeout_ms: int, **more: Any) -> tuple[Delivery, NotifyMetrics]:
    metrics = NotifyMetrics()
    settings = NotifySettings(
        tables=Path("tables"), state=Path("state"), send_timeout_ms=send_timeout_ms, retry_after_max_ms=100, **more
    )
    links = Links.to("http://kardia.example")
    return Delivery("webhook-1", url, to_webhook, 1, Outbox([], 10), links, metrics, settings), metrics


async def deliver(delivery: Delivery, done: Callable[[], bool]) -> None:
    """Send until something is so."""
    async with httpx.AsyncClient(timeout=None, trust_env=False) as client:  # noqa: S113 - what is tested has its own
        delivery.put([notice("raised", "g")])
        task = asyncio.create_task(delivery.run(client, lambda: None, lambda: 0))
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_an_answer_without_end_is_delivered_and_kept_by_nobody() -> None:
    async def story() -> None:
        async with receiver(endless) as (url, asked):
            delivery, _ = delivery_to(url, 30_000)
            await deliver(delivery, lambda: not len(delivery.outbox))
            assert asked == [0]

    tracemalloc.start()
    try:
        asyncio.run(story())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * ANSWER_BYTES_MAX


def test_one_limit_holds_for_a_whole_delivery() -> None:
    async def story() -> None:
        async with receiver(trickle) as (url, asked):
            delivery, metrics = delivery_to(url, 200)
            await deliver(delivery, lambda: len(asked) >= 2)
            assert len(delivery.outbox) == 1, "nobody said that it was taken"
            assert metrics.failures.labels("webhook-1")._value.get() >= 1

    asyncio.run(story())


@pytest.mark.parametrize("size", [0, ANSWER_BYTES_MAX])
def test_a_short_answer_is_read_and_its_connection_used_again(size: int) -> None:
    connections: set[object] = set()

    async def short(writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
        await writer.drain()

    async def story() -> None:
        async with receiver(short) as (url, asked):
            delivery, _ = delivery_to(url, 30_000)
            delivery.put([notice("raised", name) for name in "abcdefhi"])
            await deliver(delivery, lambda: not len(delivery.outbox))
            assert len(asked) == 9

    asyncio.run(story())
    assert len(connections) <= AT_ONCE


class Judging:
    """A receiver that answers by what it is told: a status, or a pause before 200; and what it was told, in order."""

    def __init__(self, answers: Callable[[str, int], tuple[int, dict[str, str]]]) -> None:
        """`answers`: status and headers, by the group of an alert and how often it was told of that."""
        self.told: list[tuple[str, str]] = []
        self.at_s: list[float] = []
        self.held: dict[str, asyncio.Event] = {}
        self._answers = answers

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                event = json.loads(await reader.readexactly(length))
                group, what = event["data"]["labels"]["group"], event["type"].rpartition(".")[2]
                self.told.append((group, what))
                self.at_s.append(asyncio.get_running_loop().time())
                if group in self.held:
                    await self.held[group].wait()
                status, headers = self._answers(group, sum(one == group for one, _ in self.told))
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                writer.write(f"HTTP/1.1 {status} x\r\n{lines}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def sent(delivery: Delivery, notices: list[Notice], done: Callable[[], bool], now_ms: int = 0) -> None:
    """Send these until something is so."""
    delivery.put(notices)
    async with httpx.AsyncClient(timeout=None, trust_env=False) as client:  # noqa: S113 - what is tested has its own
        task = asyncio.create_task(delivery.run(client, lambda: None, lambda: now_ms))
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_an_alert_for_which_a_receiver_is_slow_or_fails_holds_up_no_other() -> None:
    async def story() -> None:
        judging = Judging(lambda group, _: (500 if group == "poison" else 200, {}))
        judging.held["slow"] = asyncio.Event()
        async with judging.serving() as url:
            delivery, metrics = delivery_to(url, 60_000)
            names = ["poison", "slow", *(f"g{at}" for at in range(8))]
            await sent(delivery, [notice("raised", name) for name in names], lambda: len(delivery.outbox) == 2)
            assert {one.finding.group for one in delivery.outbox.notices} == {"poison", "slow"}
            assert judging.told.count(("slow", "raised")) == 1
            judging.held["slow"].set()
            since = metrics.failing_since.labels("webhook-1")._value.get()
            assert since == 0, "the clock of this test stands at 0"

    asyncio.run(story())


def test_of_one_alert_the_order_stays_whatever_fails() -> None:
    async def story() -> None:
        judging = Judging(lambda _, times: (503 if times < 4 else 200, {}))
        async with judging.serving() as url:
            delivery, _ = delivery_to(url, 60_000)
            happened = [notice(what, "g", at) for at, what in enumerate(("raised", "resolved", "raised"))]
            await sent(delivery, happened, lambda: not len(delivery.outbox))
            taken = judging.told[3:]
            assert [what for _, what in judging.told[:3]] == ["raised"] * 3
            assert [what for _, what in taken] == ["raised", "resolved", "raised"]

    asyncio.run(story())


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_is_not_asked_before_it_wants_to_be(status: int) -> None:
    async def story() -> None:
        judging = Judging(lambda _, times: (status, {"Retry-After": "1"}) if times == 1 else (200, {}))
        async with judging.serving() as url:
            delivery, _ = delivery_to(url, 60_000)
            await sent(delivery, [notice("raised", "g")], lambda: not len(delivery.outbox))
            first_s, second_s = judging.at_s
            assert second_s - first_s >= 1

    asyncio.run(story())


def test_a_receiver_that_asks_for_too_much_is_asked_at_the_bound() -> None:
    async def story() -> None:
        judging = Judging(lambda _, times: (503, {"Retry-After": "86400"}) if times == 1 else (200, {}))
        async with judging.serving() as url:
            delivery, _ = delivery_to(url, 60_000, asked_pause_max_ms=300)
            await sent(delivery, [notice("raised", "g")], lambda: not len(delivery.outbox))
            first_s, second_s = judging.at_s
            assert 0.3 <= second_s - first_s < 60

    asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        (formatdate(1_700_000_030, usegmt=True), 30.0),
        (formatdate(1_699_999_970, usegmt=True), 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("1.5", 0.0),
        ("٣", 0.0),
        ("9" * 400, 999_999_999.0),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_an_instant(text: str, pause_s: float) -> None:
    assert asked_pause_s(text, 1_700_000_000_000) == pause_s


def test_a_receiver_that_fails_is_said_once_and_so_is_that_it_takes_again(caplog: pytest.LogCaptureFixture) -> None:
    """At the level that is shown, and without its address, which may hold a secret."""

    async def story() -> None:
        judging = Judging(lambda _, times: (502 if times < 12 else 200, {}))
        async with judging.serving() as url:
            delivery, metrics = delivery_to(url, 60_000)
            await sent(delivery, [notice("raised", "g")], lambda: len(judging.told) > 8, now_ms=5_000)
            assert metrics.failing_since.labels("webhook-1")._value.get() == 5.0
            await sent(delivery, [], lambda: not len(delivery.outbox), now_ms=9_000)
            assert metrics.failing_since.labels("webhook-1")._value.get() == 0
            assert metrics.failures.labels("webhook-1")._value.get() >= 8

    with caplog.at_level(logging.WARNING, "kardia.api.notify"):
        asyncio.run(story())
    told = [record.getMessage() for record in caplog.records if record.name == "kardia.api.notify"]
    assert told == [
        "notice.not_taken target=webhook-1 answer=502 waiting=1; it is tried again",
        "notice.taken_again target=webhook-1 after_s=4",
    ]


def test_no_more_is_on_the_way_than_may_be() -> None:
    async def story() -> None:
        judging = Judging(lambda *_: (200, {}))
        judging.held = {f"g{at}": asyncio.Event() for at in range(9)}
        async with judging.serving() as url:
            delivery, _ = delivery_to(url, 60_000)
            await sent(
                delivery, [notice("raised", name) for name in judging.held], lambda: len(judging.told) == AT_ONCE
            )
            assert len(delivery.outbox) == 9
            for held in judging.held.values():
                held.set()

    asyncio.run(story())
