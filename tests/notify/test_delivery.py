"""A receiver that does not end its answer, or begins none: what it costs, and what is taken for delivered."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from api.notify.delivery import ANSWER_BYTES_MAX, Delivery
from api.notify.metrics import NotifyMetrics
from api.notify.outbox import Outbox
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


def delivery_to(url: str, send_timeout_ms: int) -> tuple[Delivery, NotifyMetrics]:
    metrics = NotifyMetrics()
    links = Links.to("http://kardia.example")
    return Delivery("webhook-1", url, to_webhook, Outbox([], 10), links, metrics, 100, send_timeout_ms), metrics


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
            delivery.put([notice("raised", name) for name in "abc"])
            await deliver(delivery, lambda: not len(delivery.outbox))
            assert len(asked) == 4

    asyncio.run(story())
    assert len(connections) == 1
