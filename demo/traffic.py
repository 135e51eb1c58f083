"""A modest producer, so that offsets advance: `python -m demo.traffic --rate 20 ...`. Ends on SIGTERM.

Records are small and go round the partitions; nothing in them is ever read.
"""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Sequence

from confluent_kafka import Producer

QUEUE_LIMIT = 10_000
"""Records waiting for the broker; with the broker away for long the oldest rule applies: stop producing."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the process."""
    parser = argparse.ArgumentParser(description="Produces a few records per second.")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rate", type=float, default=10.0, help="records per second")
    return parser.parse_args(argv)


def main() -> None:
    """Produce until told to stop."""
    options = parse()
    stop = threading.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: stop.set())
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap_server,
            "client.id": "demo-traffic",
            "linger.ms": 20,
            "queue.buffering.max.messages": QUEUE_LIMIT,
            "log_level": 0,
        }
    )
    number = 0
    while not stop.wait(1.0 / options.rate):
        try:
            producer.produce(options.topic, value=b"order %d" % number, partition=number % options.partitions)
            number += 1
        except BufferError:
            pass
        producer.poll(0)
    producer.flush(5.0)


if __name__ == "__main__":
    main()
