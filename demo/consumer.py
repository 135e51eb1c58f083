"""One real consumer as a process: `python -m demo.consumer --group G ...`, commanded by lines on standard input.

    stall SECONDS     heartbeats go on, the application does not poll
    commit            commit the current position now, even while the group rebalances
    leave             close the consumer as an orderly application does, and end

It says what happens to it as JSON lines on standard output, so that a director can wait for it. It uses rebalance
callbacks, so librdkafka joins a rebalance only when the application polls (as the Java client always does).
A member with an instance id sends no LeaveGroup when it closes: that is how static membership works.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException

POLL_S = 0.1
"""How long one poll waits; so long may a command wait as well."""

OUTPUT_LIMIT = 100_000
"""Lines said before the process ends itself: nobody has listened for hours."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the process; durations in milliseconds, as Kafka's own settings."""
    parser = argparse.ArgumentParser(description="A consumer that does what it is told.")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--instance-id", default="")
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--session-timeout-ms", type=int, default=8_000)
    parser.add_argument("--heartbeat-interval-ms", type=int, default=2_000)
    parser.add_argument("--poll-interval-ms", type=int, default=10_000)
    parser.add_argument("--commit-interval-ms", type=int, default=2_000)
    return parser.parse_args(argv)


def configuration(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of the client."""
    settings: dict[str, Any] = {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group,
        "client.id": options.client_id,
        "max.poll.interval.ms": options.poll_interval_ms,
        "auto.commit.interval.ms": options.commit_interval_ms,
        "auto.offset.reset": "latest",
        "log_level": 0,
    }
    if options.protocol == "consumer":
        settings["group.protocol"] = "consumer"  # session and heartbeat interval are the broker's
    else:
        settings["session.timeout.ms"] = options.session_timeout_ms
        settings["heartbeat.interval.ms"] = options.heartbeat_interval_ms
    if options.instance_id:
        settings["group.instance.id"] = options.instance_id
    return settings


class Member:
    """The application around the consumer: a poll loop that obeys."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._commands: queue.Queue[str] = queue.Queue()
        self._stalled_until = 0.0
        self._said = 0
        self._records = 0
        self._consumer = Consumer(configuration(options))
        self._consumer.subscribe(
            [options.topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def run(self) -> None:
        """Poll and obey until told to leave or until nobody commands any more."""
        threading.Thread(target=self._listen, daemon=True).start()
        self._say("started")
        while True:
            try:
                # While stalled, wait for the next command without touching the consumer.
                pause = max(0.0, self._stalled_until - time.monotonic())
                command = self._commands.get(timeout=min(pause, POLL_S)) if pause else self._commands.get_nowait()
            except queue.Empty:
                if self._stalled_until and time.monotonic() >= self._stalled_until:
                    self._stalled_until = 0.0
                    self._say("polls again")
                if not self._stalled_until:
                    self._poll()
                continue
            if not self._obey(command.split()):
                return

    def _poll(self) -> None:
        message = self._consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            self._records += 1
        elif message is not None:
            self._say("error", error=str(message.error()))

    def _obey(self, words: list[str]) -> bool:
        if words[:1] == ["stall"]:
            self._stalled_until = time.monotonic() + float(words[1])
            self._say("stalls", seconds=float(words[1]))
        elif words == ["commit"]:
            try:
                # Where it is, named: auto-commit may have stored everything already, and nothing new is no commit.
                here = [p for p in self._consumer.position(self._consumer.assignment()) if p.offset >= 0]
                done = self._consumer.commit(offsets=here, asynchronous=False)
                self._say("committed", partitions=len(done or ()))
            except KafkaException as error:
                self._say("commit refused", error=str(error))
        elif words == ["leave"]:
            self._consumer.close()
            self._say("left", records=self._records)
            return False
        else:
            self._say("unknown command", words=words)
        return True

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip():
                self._commands.put(line.strip())
        self._commands.put("leave")

    def _on_assign(self, _: Consumer, partitions: list[Any]) -> None:
        self._say("assigned", partitions=sorted(p.partition for p in partitions))

    def _on_revoke(self, _: Consumer, partitions: list[Any]) -> None:
        self._say("revoked", partitions=sorted(p.partition for p in partitions))

    def _on_lost(self, _: Consumer, partitions: list[Any]) -> None:
        self._say("lost", partitions=sorted(p.partition for p in partitions))

    def _say(self, what: str, **facts: object) -> None:
        self._said += 1
        if self._said > OUTPUT_LIMIT:
            sys.exit("too much was said; nobody seems to listen")
        sys.stdout.write(json.dumps({"at_ms": time.time_ns() // 1_000_000, "what": what, **facts}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    Member(parse()).run()
