"""What each client library shows of its application on the wire, as data.

The question is which requests exist only because the application polled. Java and kafka-python fetch, commit and join
inside poll; librdkafka does all of it in the background and shows consumption only in the offsets it commits; franz-go
and aiokafka fetch in the background, but not before what they fetched has been taken; others promise nothing.
Recognised from the name a client announces, else from the client.id it takes when it is given none, else from the
versions of the requests that it speaks.
"""

from __future__ import annotations

from typing import NamedTuple


class Library(NamedTuple):
    """One library. `polled_by`: request kinds that prove a poll at their arrival. `consumed_by_commit`: a commit of
    advanced offsets proves consumption at most `commit_trail_ms` before. `poll_interval`: the rebalance timeout of its
    JoinGroup is its max.poll.interval.ms and it gives up its membership when that runs out. `taken_within_ms`: a FETCH
    that follows an answer with records on the same connection is sent only when those have been taken, at most so
    long before; -1 where it proves nothing."""

    name: str
    polled_by: frozenset[str]
    consumed_by_commit: bool
    commit_trail_ms: int
    poll_interval: bool
    taken_within_ms: int = -1


AUTO_COMMIT_INTERVAL_MS = 5_000
"""Default auto.commit.interval.ms of Java and librdkafka; a commit trails consumption by at most that."""

_INSIDE_POLL = frozenset({"fetch", "commit", "join", "sync"})

LIBRARIES: dict[str, Library] = {
    library.name: library
    for library in (
        Library("java", _INSIDE_POLL, True, 0, True),
        Library("kafka-python", _INSIDE_POLL, True, 0, True),
        Library("librdkafka", frozenset(), True, AUTO_COMMIT_INTERVAL_MS, True),
        Library("aiokafka", frozenset(), True, AUTO_COMMIT_INTERVAL_MS, False, taken_within_ms=1_000),
        Library("sarama", frozenset(), True, 1_000, False),
        Library("franz-go", frozenset(), True, AUTO_COMMIT_INTERVAL_MS, False, taken_within_ms=0),
        Library("kafkajs", frozenset({"commit", "fetch"}), True, 0, False),
        Library("kafka-go", frozenset(), True, 1_000, False),
        Library("connect", frozenset({"join", "sync"}), False, 0, True),
        Library("unknown", frozenset(), False, 0, False),
    )
}

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


def recognise(software: str, client_id: str, protocol_type: str) -> str:
    """Name of the library in `LIBRARIES`: as announced, else by its default client.id, else "unknown"."""
    if protocol_type == "connect":
        return "connect"
    announced = software.lower()
    if announced:
        for part, name in _ANNOUNCED:
            if part in announced:
                return name
        return "unknown"
    client = client_id.lower()
    for part, name in (("aiokafka", "aiokafka"), ("kafka-python", "kafka-python"), ("kafka-go", "kafka-go")):
        if part in client:
            return name
    return "unknown"


AIOKAFKA_JOIN, AIOKAFKA_HEARTBEAT = 5, 1
"""Versions of JoinGroup and Heartbeat that only aiokafka speaks together; it announces no name. Old Java clients and
kafkajs, which announce none either, speak Heartbeat 3 with JoinGroup 5."""


def recognise_by_versions(join_version: int, heartbeat_version: int) -> str:
    """Name of a library that announces nothing, by the versions of its requests; "unknown" where several fit."""
    return "aiokafka" if (join_version, heartbeat_version) == (AIOKAFKA_JOIN, AIOKAFKA_HEARTBEAT) else "unknown"
