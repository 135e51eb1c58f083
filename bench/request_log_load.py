"""The load of `bench.request_log`: a process that sends produce requests at their instants, or consumes and commits.

    python -m bench.request_log_load send BOOTSTRAP TOPIC RATE SECONDS      prints JSON: counts, and p99 of a request
    python -m bench.request_log_load consume BOOTSTRAP TOPIC FILE           until its input is closed

FILE holds how many records the consumer has read, five times a second.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

AS_FAST_AS_IT_GOES = 0
WINDOW = 64
"""Requests under way at most."""

RECORD = b"x" * 512
COMMIT_EVERY_S = 0.2
MIN_SENT = 20
"""Fewer have no p99."""


def send(bootstrap: str, topic: str, rate: int, seconds: float) -> dict[str, float]:
    """Send one record per request, and time each."""
    settings = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 0,
        "batch.num.messages": 1,
        "acks": "all",
        "max.in.flight": WINDOW,
        "log_level": 0,
    }
    producer = Producer(settings)
    took_ms: list[float] = []
    failed = 0

    def delivered(sent_s: float) -> Any:
        def acknowledged(error: object, _: object) -> None:
            nonlocal failed
            if error is None:
                took_ms.append((time.perf_counter() - sent_s) * 1000)
            else:
                failed += 1

        return acknowledged

    producer.produce(topic, RECORD)
    producer.flush(30)  # connected, and the topic known
    sent, began_s = 0, time.perf_counter()
    while (now_s := time.perf_counter()) - began_s < seconds:
        due = sent < (now_s - began_s) * rate if rate else len(producer) < WINDOW
        if due:
            producer.produce(topic, RECORD, on_delivery=delivered(now_s))
            sent += 1
            producer.poll(0)
        else:
            producer.poll(0.0005)
    producer.flush(30)
    lasted_s = time.perf_counter() - began_s
    if failed or len(took_ms) < MIN_SENT:
        raise SystemExit(f"{failed} requests failed, {len(took_ms)} were answered")
    took_ms.sort()
    return {"produced": len(took_ms), "lasted_s": lasted_s, "p99_ms": took_ms[int(len(took_ms) * 0.99)]}


def consume(bootstrap: str, topic: str, counted: Path) -> None:
    """Be a member of a group that reads the topic, and commit often, until the input is closed."""
    ended = threading.Event()
    threading.Thread(target=_await_end, args=(ended,), daemon=True).start()
    own = {"group.id": "bench", "enable.auto.commit": False, "auto.offset.reset": "latest", "log_level": 0}
    consumer = Consumer({"bootstrap.servers": bootstrap, "fetch.min.bytes": 1, **own})
    consumer.subscribe([topic])
    committed_s, read = time.monotonic(), 0
    told = os.open(counted, os.O_WRONLY | os.O_CREAT)
    while not ended.is_set():
        read += sum(message.error() is None for message in consumer.consume(500, 0.05))
        if time.monotonic() - committed_s >= COMMIT_EVERY_S:
            committed_s = time.monotonic()
            os.pwrite(told, b"%020d" % read, 0)
            places = [one for one in consumer.position(consumer.assignment()) if one.offset >= 0]
            try:
                if places:
                    consumer.commit(offsets=places)
            except KafkaException:
                continue  # a rebalance; it comes again
    consumer.close()


def _await_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    if sys.argv[1] == "send":
        print(json.dumps(send(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))))
    else:
        consume(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
