"""The layouts that people are known to have: who has it, its conversion pattern, and a line of it.

Nothing is read by this table: `recogniser` reads all of them and more. A test holds each line against both readers, the
recogniser and the pattern as a person would give it; `docs/request-logging.md` shows the list. The words are those of a
recording, laid out anew.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """A layout."""

    who: str
    pattern: str
    """As log4j's files have it, without `%n`."""
    example: str


SHIPPED = "[%d] %p %m (%c)"
STRIMZI = "%d{ISO8601} %p %m (%c) [%t]"

_STAMP = "2026-11-20 21:51:34,785"
_MEMBER = "c05-b-c5af2812-9d07-47ad-be1c-12877bbe3119"
WORDS = (
    f"[GroupCoordinator 1]: Preparing to rebalance group g05 in state PreparingRebalance with old generation 0 "
    f"(__consumer_offsets-24) (reason: Adding new member {_MEMBER} with group instance id None; client reason: not "
    f"provided)"
)
_LOGGER = "kafka.coordinator.group.GroupCoordinator"
_THREAD = "data-plane-kafka-request-handler-3"

LAYOUTS: tuple[Known, ...] = (
    Known(
        "Kafka's own files; Confluent's and Bitnami's images; AWS MSK", SHIPPED, f"[{_STAMP}] INFO {WORDS} ({_LOGGER})"
    ),
    Known("the same with the number of the line", "[%d] %p %m (%c:%L)", f"[{_STAMP}] INFO {WORDS} ({_LOGGER}:66)"),
    Known("Strimzi, Red Hat AMQ Streams", STRIMZI, f"{_STAMP} INFO {WORDS} ({_LOGGER}) [{_THREAD}]"),
    Known("the same with both", "%d %p %m (%c:%L) [%t]", f"{_STAMP} INFO {WORDS} ({_LOGGER}:66) [{_THREAD}]"),
    Known("the thread before the words", "[%d] %p [%t] %m (%c)", f"[{_STAMP}] INFO [{_THREAD}] {WORDS} ({_LOGGER})"),
    Known("the thread before the level", "[%d] [%t] %p %m (%c)", f"[{_STAMP}] [{_THREAD}] INFO {WORDS} ({_LOGGER})"),
    Known(
        "Confluent for Kubernetes",
        "[%p] %d [%t] %c %M - app=kafka, clusterId=confluent, server=0 - %m",
        f"[INFO] {_STAMP} [{_THREAD}] {_LOGGER} prepareRebalance - app=kafka, clusterId=confluent, server=0 - {WORDS}",
    ),
    Known("Cloudera", "%d{ISO8601} %p %c: %m", f"{_STAMP} INFO {_LOGGER}: {WORDS}"),
    Known(
        "Ambari, HDP",
        "[%d{yyyy-MM-dd'T'HH:mm:ss,SSS}][%p][category=%c] %m",
        f"[2026-11-20T21:51:34,785][INFO][category={_LOGGER}] {WORDS}",
    ),
    Known("log4j's manual", "%d [%t] %-5p %c - %m", f"{_STAMP} [{_THREAD}] INFO  {_LOGGER} - {WORDS}"),
    Known(
        "log4j's manual, short",
        "%d %-5p [%t] %c{1}:%L - %m",
        f"{_STAMP} INFO  [{_THREAD}] GroupCoordinator:66 - {WORDS}",
    ),
    Known(
        "Spring Boot, an embedded broker",
        "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}  %p %pid --- [%15.15t] %-22.40c{1.} : %m",
        f"2026-11-20T21:51:34.785+00:00  INFO 7 --- [quest-handler-3] k.c.g.GroupCoordinator : {WORDS}",
    ),
    Known(
        "JBoss, Quarkus",
        "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p [%c] (%t) %m",
        f"{_STAMP} INFO  [{_LOGGER}] ({_THREAD}) {WORDS}",
    ),
    Known(
        "keys and values", "%d pri=%p t=%t at=%c{1} %m", f"{_STAMP} pri=INFO t={_THREAD} at=GroupCoordinator {WORDS}"
    ),
    Known("without a logger", "%d %p [%t] %m", f"{_STAMP} INFO [{_THREAD}] {WORDS}"),
    Known("without a level", "[%d] %m (%c)", f"[{_STAMP}] {WORDS} ({_LOGGER})"),
    Known("tabs between the parts", "%d\t%p\t%t\t%c\t%m", f"{_STAMP}\tINFO\t[{_THREAD}]\t{_LOGGER}\t{WORDS}"),
    Known("bars between the parts", "%d | %p | %c | %m", f"{_STAMP} | INFO | {_LOGGER} | {WORDS}"),
    Known("log4j's DATE", "%d{DATE} %p %c - %m", f"20 Nov 2026 21:51:34,785 INFO {_LOGGER} - {WORDS}"),
    Known(
        "slashes in the date", "%d{yyyy/MM/dd HH:mm:ss.SSS} %p %c %m", f"2026/11/20 21:51:34.785 INFO {_LOGGER} {WORDS}"
    ),
)
