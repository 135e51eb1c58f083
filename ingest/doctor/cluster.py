"""Looks at a cluster with the rights of an operator's client: brokers, the offsets topic, the bounds of timeouts.

Reads metadata, configurations and the ends of partitions; joins no group and consumes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub does not list them
    AdminClient,
    ConfigResource,
    ResourceType,
)

from ingest.doctor import Finding, Level, loggers, remedies, rights
from ingest.errors import AwayError, RefusedError
from ingest.offsets.source import CONSUMER, TOPIC
from ingest.security.config import ClientConfig
from ingest.security.reach import connect
from ingest.security.rendering import librdkafka as rendered

TIMEOUT_S = 15.0
EVENTS_TOPIC = "kardia.events"
GROUPS_ASKED = 1_000
"""Groups whose members are counted for the estimate of cost."""

PARTITIONS_ASKED = 3
"""Partitions of the offsets topic whose ends are asked for: a right is given for a topic, not for a partition."""

_BOUNDS = ("group.min.session.timeout.ms", "group.max.session.timeout.ms", "offsets.retention.minutes")


@dataclass(frozen=True)
class Examined:
    """What was found, and how to switch the request log on in such a cluster."""

    findings: tuple[Finding, ...]
    switch_on: tuple[str, ...]
    reached: bool = False
    """Whether somebody answered."""
    logs_requests: bool | None = None
    """Whether each broker logs completed requests; None if that is not known."""
    samples: bool = False
    """Whether the admin API tells of groups."""
    reads_offsets: bool = False
    """Whether `__consumer_offsets` can be read."""
    reads_ends: bool = False
    """Whether it may be seen where the partitions of every topic end."""
    settings: Mapping[str, str] | None = None
    """Settings of the first broker; None if they may not be read."""


def examine(
    bootstrap: str,
    config: ClientConfig | None = None,
    timeout_s: float = TIMEOUT_S,
    topic: str = EVENTS_TOPIC,
    *,
    wanted: bool = False,
) -> Examined:
    """Findings about a cluster. `config`: of the client (`ingest.clients.settings`); `topic`: of events, for rights to
    it; `wanted`: whether somebody named a request log, so that one is expected."""
    config = config or ClientConfig()
    settings = rendered(config)
    quiet = {"log_level": 0, **settings, "bootstrap.servers": bootstrap}
    try:
        admin, metadata = connect(bootstrap, settings, timeout_s)
    except (AwayError, RefusedError) as error:
        sentence = f"{error.what[:1].upper()}{error.what[1:]}. Expected: {error.expected}."
        remedy = (f"{error.next_step[:1].upper()}{error.next_step[1:]}.",)
        return Examined((Finding(Level.BAD, bootstrap, sentence, remedy),), ASK)
    brokers = tuple(sorted(metadata.brokers))
    named = ", ".join(str(broker) for broker in brokers)
    findings = [
        Finding(
            Level.GOOD,
            bootstrap,
            f"One broker answers: {named}. It needs a collector for its logs."
            if len(brokers) == 1
            else f"{len(brokers)} brokers answer: {named}. Each needs a collector for its logs.",
        )
    ]
    known = _configuration(admin, brokers[0])
    findings.append(_bounds(brokers[0], known))
    told = loggers.ask(bootstrap, settings, brokers, timeout_s)
    findings += loggers.findings(told, bootstrap, wanted=wanted)
    offsets = _offsets(admin, quiet, metadata, bootstrap, hidden=not rights.is_open(known))
    findings.append(offsets)
    findings += rights.findings(admin, bootstrap, config.principal, topic, known)
    lines = switch_on(told.writes, bootstrap, brokers)
    samples = rights.may_describe_groups(admin, known)
    findings.append(loggers.cost(_members(admin) if samples else None, len(brokers)))
    if not wanted and told.logs_requests is not False:
        sentence = NOT_NAMED if told.logs_requests else NOT_KNOWN
        findings.append(Finding(Level.UNKNOWN, REQUEST_LOG, sentence))
    if not told.logs_requests:
        sentence = "These lines switch it on, one broker at a time; docs/request-logging.md says more."
        findings.append(Finding(Level.NOTE, REQUEST_LOG, sentence, lines))
    return Examined(
        tuple(findings),
        lines,
        reached=True,
        logs_requests=told.logs_requests,
        samples=samples,
        reads_offsets=offsets.level is Level.GOOD,
        reads_ends=rights.may_see_ends(admin),
        settings=known,
    )


REQUEST_LOG = "the request log"

NOT_KNOWN = (
    "No request log was named, and it is not known whether the brokers write one: without it no heartbeat is seen. "
    "Name it with --request-log, if they do."
)

NOT_NAMED = (
    "The brokers log requests, but no request log was named, so it is not known whether it can be read. Name it with "
    "--request-log."
)

ASK = (
    "kardia doctor --bootstrap-server BROKER   # prints the lines for the release of the brokers",
    "They stand in docs/request-logging.md as well, for each release.",
)
"""Where the release is not known: the lines for all of them would be two hundred, most of them wrong."""

MERGE_4 = (
    "Kafka 4.x, into the lists that config/log4j2.yaml has already "
    "(kardia doctor --broker-logging FILE prints the file whole):"
)


def switch_on(writes: Iterable[loggers.Writes], bootstrap: str, brokers: tuple[int, ...]) -> tuple[str, ...]:
    """Lines that switch the request log on in brokers that write so; of several kinds in the middle of an upgrade."""
    of_kind = {
        "log4j 2": (MERGE_4, remedies.log4j2_yaml()),
        "log4j 1, JSON": (
            "Kafka 2.8 to 3.9, into config/log4j.properties in place of its kafka.request.logger:",
            remedies.log4j1_properties(),
        ),
        "log4j 1, text": (
            "Kafka 2.0 to 2.7, into config/log4j.properties in place of its kafka.request.logger:",
            remedies.log4j1_text_properties(),
        ),
    }
    known = set(writes)
    if not known:
        return ASK[1:]
    lines = [line for kind in of_kind if kind in known for line in (of_kind[kind][0], *of_kind[kind][1].splitlines())]
    lines.append("Then restart the brokers one by one; where the filter is in the file already, without a restart:")
    return (*lines, *(remedies.at_run_time(bootstrap, broker) for broker in brokers))


def _configuration(admin: AdminClient, broker: int) -> dict[str, str] | None:
    """Settings of a broker; None if they may not be read."""
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    try:
        found = admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource].result(TIMEOUT_S)
    except (KafkaException, TimeoutError):
        return None
    return {name: str(entry.value) for name, entry in found.items()}


def _members(admin: AdminClient) -> int | None:
    """How many members all groups have; None if that is not told. Of very many groups the first ones stand for
    all."""
    try:
        groups = [one.group_id for one in admin.list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S).valid]
        asked = groups[:GROUPS_ASKED]
        described = admin.describe_consumer_groups(asked, request_timeout=TIMEOUT_S) if asked else {}
    except (KafkaException, TimeoutError):
        return None
    told = [count for one in described.values() if (count := _members_of(one)) is not None]
    if not told:
        return None if asked else 0
    return round(sum(told) * len(groups) / len(told))


def _members_of(described: Any) -> int | None:
    """Members of a group; None where it is not told, as librdkafka does not of a group with epochs."""
    try:
        return len(described.result(TIMEOUT_S).members)
    except (KafkaException, TimeoutError):
        return None


def _bounds(broker: int, known: Mapping[str, str] | None) -> Finding:
    subject = f"broker {broker}"
    if known is None:
        sentence = "Its settings may not be read, so the bounds of session timeouts stay unknown."
        return Finding(Level.UNKNOWN, subject, sentence, ("Allow DESCRIBE_CONFIGS on the cluster, or go on without.",))
    told = ", ".join(f"{name}={known[name]}" for name in _BOUNDS if name in known)
    return Finding(Level.GOOD, subject, f"{told}.")


def _offsets(
    admin: AdminClient, settings: Mapping[str, Any], metadata: Any, bootstrap: str, *, hidden: bool
) -> Finding:
    """`hidden`: whether there are rights: what may not be described looks as if it were not there."""
    subject = f"{TOPIC} at {bootstrap}"
    topic = metadata.topics.get(TOPIC)
    if topic is None and not hidden:
        sentence = "There is no such topic yet: it appears with the first group that joins or commits."
        return Finding(Level.NOTE, subject, sentence)
    if topic is None or topic.error is not None:
        sentence = "There is no such topic, or it may not be described: it appears with the first group that commits."
        remedy = ("Allow DESCRIBE and READ on the topic __consumer_offsets; --no-offsets goes on without it.",)
        return Finding(Level.NOTE, subject, sentence, remedy)
    consumer = Consumer({**settings, **CONSUMER})
    try:
        for partition in sorted(topic.partitions)[:PARTITIONS_ASKED]:
            consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=TIMEOUT_S)
    except KafkaException as error:
        sentence = f"It cannot be read: {error.args[0].str()}."
        remedy = ("Allow DESCRIBE and READ on the topic __consumer_offsets; --no-offsets goes on without it.",)
        return Finding(Level.BAD, subject, sentence, remedy)
    finally:
        consumer.close()
    if hidden and not rights.may_read(admin, TOPIC):  # where they end is told to who may describe them
        sentence = f"{len(topic.partitions)} partitions, and they may be described, but not read."
        remedy = ("Allow READ on the topic __consumer_offsets; --no-offsets goes on without it.",)
        return Finding(Level.NOTE, subject, sentence, remedy)
    return Finding(Level.GOOD, subject, f"{len(topic.partitions)} partitions, and they can be read.")
