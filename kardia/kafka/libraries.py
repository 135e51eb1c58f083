"""What each client library shows of its application on the wire, as data: a new client library is a row here.

The question is which requests exist only because the application polled. Java and kafka-python fetch, join and, where
they commit by themselves, commit inside poll; librdkafka does all of it in the background and shows consumption only in
the offsets it commits; franz-go and aiokafka fetch in the background, but not before what they fetched has been taken;
kafkajs does everything, heartbeats too, in the loop that runs the handlers; others promise nothing. Recognised from the
name a client announces, else from the client.id it takes when it is given none, else from the versions of the requests
that it speaks.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Library(NamedTuple):
    """One library. `polled_by`: request kinds that prove a poll at their arrival. `consumed_by_commit`: a commit of
    advanced offsets proves consumption at most `commit_trail_ms` before. `poll_interval`: the rebalance timeout of its
    JoinGroup is its max.poll.interval.ms and it gives up its membership when that runs out. `taken_within_ms`: a FETCH
    that follows an answer with records on the same connection is sent only when those have been taken, at most so
    long before; -1 where it proves nothing. `taken_by_partition`: what is not taken holds back the FETCH of its own
    partition only, so that with several such a FETCH proves nothing, and only the silence of all does.
    `auto_commit_ms`: it commits inside poll at that interval by default, and only such a commit proves a poll: one that
    the application asks for does not, it may ask between two polls as often as it likes; -1 where none is like that.
    `gives_up`: it leaves when its application has not polled for an interval, be that on the wire or not, so that a
    leave without a reason need not be a close. `shows_between`: its polls can show between two rebalances; where they
    cannot, nothing counts down to the end of its poll interval, and nothing says that it does not poll."""

    name: str
    polled_by: frozenset[str]
    consumed_by_commit: bool
    commit_trail_ms: int
    poll_interval: bool
    taken_within_ms: int = -1
    taken_by_partition: bool = False
    auto_commit_ms: int = -1
    gives_up: bool = True
    shows_between: bool = True

    @property
    def fetches_show_polls(self) -> bool:
        """Whether a FETCH of it can show that its application polls."""
        return "fetch" in self.polled_by or self.taken_within_ms >= 0


AUTO_COMMIT_INTERVAL_MS = 5_000
"""Default auto.commit.interval.ms of Java, kafka-python and librdkafka; a commit trails consumption by at most that."""

AUTO_COMMIT_EARLY_MS, AUTO_COMMIT_LATE_MS = 100, 600
"""A commit that a client makes by itself comes so much before or after its interval at most: seen 15 ms before to 130
ms after; a poll that waits for records may delay it by 500 ms."""

STREAMS_COMMIT_INTERVAL_MS = 30_000
"""Default commit.interval.ms of Kafka Streams at least once; the thread that commits is the one that polls."""

_INSIDE_POLL = frozenset({"fetch", "commit", "join", "sync"})
_LOOP = _INSIDE_POLL | {"heartbeat"}

LIBRARIES: dict[str, Library] = {
    library.name: library
    for library in (
        Library("java", _INSIDE_POLL, False, 0, True, auto_commit_ms=AUTO_COMMIT_INTERVAL_MS),
        Library("java-preview", frozenset(), False, 0, False),
        Library("streams", _INSIDE_POLL - {"commit"}, True, STREAMS_COMMIT_INTERVAL_MS, True),
        Library("kafka-python", _INSIDE_POLL, False, 0, True, auto_commit_ms=AUTO_COMMIT_INTERVAL_MS),
        Library("librdkafka", frozenset(), True, AUTO_COMMIT_INTERVAL_MS, True),
        Library(
            "aiokafka",
            frozenset(),
            True,
            AUTO_COMMIT_INTERVAL_MS,
            False,
            taken_within_ms=1_000,
            taken_by_partition=True,
        ),
        Library("sarama", frozenset(), True, 1_000, False, gives_up=False),
        Library("franz-go", frozenset(), True, AUTO_COMMIT_INTERVAL_MS, False, taken_within_ms=0, gives_up=False),
        Library("kafkajs", _LOOP, False, 0, False, gives_up=False),
        Library("kafka-go", frozenset(), True, 1_000, False, gives_up=False),
        Library("connect", frozenset({"join", "sync"}), False, 0, True, shows_between=False),
        Library("unknown", frozenset(), False, 0, False),
    )
}
"""`java-preview`: Java 3.x with the consumer protocol, which fetches and commits in the background. `unknown` may be
one that leaves by itself."""

_ANNOUNCED = (
    ("apache-kafka-java", "java"),
    ("rdkafka", "librdkafka"),
    ("confluent-kafka", "librdkafka"),
    ("kafka-python", "kafka-python"),
    ("aiokafka", "aiokafka"),
    ("sarama", "sarama"),
    ("kgo", "franz-go"),
    ("franz", "franz-go"),
    ("kafkajs", "kafkajs"),
    ("kafka-go", "kafka-go"),
)

_DEFAULT_IDS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"aiokafka-\d.*", "aiokafka"),
        (r"kafka-python-\d.*", "kafka-python"),
        (r".*\(github\.com/segmentio/kafka-go\)", "kafka-go"),
        (r"rdkafka", "librdkafka"),
        (r"sarama", "sarama"),
        (r"kgo", "franz-go"),
    )
)
"""client.id of a client that was given none: the whole of it, for an application may be named after its library."""

_STREAM_THREAD = "-StreamThread-"
"""In every client.id of Kafka Streams, which announces itself as the Java client that it is."""


def recognise(software: str, client_id: str, protocol_type: str) -> str:
    """Name of the library in `LIBRARIES`: as announced, else by its default client.id, else "unknown"."""
    if protocol_type == "connect":
        return "connect"
    announced = software.lower()
    if announced:
        name = next((name for part, name in _ANNOUNCED if part in announced), "unknown")
        return "streams" if name == "java" and _STREAM_THREAD in client_id else name
    return next((name for default, name in _DEFAULT_IDS if default.fullmatch(client_id)), "unknown")


def recognise_modern(software: str, client_id: str) -> str:
    """Name of the library of a member that speaks the consumer protocol: Java's preview of it was another client."""
    name = recognise(software, client_id, "")
    version = software.partition("/")[2]
    return "java-preview" if name in ("java", "streams") and version.startswith("3.") else name


AIOKAFKA_JOIN, AIOKAFKA_HEARTBEAT = 5, 1
"""Versions of JoinGroup and Heartbeat that only aiokafka speaks together; it announces no name. Old Java clients and
kafkajs, which announce none either, speak Heartbeat 3 with JoinGroup 5."""


def recognise_by_versions(join_version: int, heartbeat_version: int) -> str:
    """Name of a library that announces nothing, by the versions of its requests; "unknown" where several fit."""
    return "aiokafka" if (join_version, heartbeat_version) == (AIOKAFKA_JOIN, AIOKAFKA_HEARTBEAT) else "unknown"
