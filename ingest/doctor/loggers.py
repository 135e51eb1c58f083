"""Asks brokers at which level `kafka.request.logger` stands, and estimates what it costs to switch it on.

librdkafka knows no BROKER_LOGGER resource (KIP-412; its resource types end with BROKER and TRANSACTIONAL_ID), so
kafka-python asks. Brokers say levels from 2.4 on. What they do not say without JMX is their request rate: the estimate
rests on the members that the groups have and on the intervals that clients and replicas ask at by default, and is a
least one. Reads only.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ingest.doctor import Finding, Level
from ingest.security.rendering import kafka_python

LOGGER = "kafka.request.logger"
WRITES = ("DEBUG", "TRACE")
"""Levels at which completed requests are logged."""

HEARTBEAT_EVERY_S = 3.0
"""Default of `heartbeat.interval.ms` of the Java client and of librdkafka."""

COMMIT_EVERY_S = 5.0
"""Default of `auto.commit.interval.ms`."""

FETCH_EVERY_S = 0.5
"""Default of `fetch.max.wait.ms` and of `replica.fetch.wait.max.ms`: a fetch without records is answered then."""


def levels(
    bootstrap: str, settings: Mapping[str, str], brokers: tuple[int, ...], timeout_s: float
) -> dict[int, str | None] | str:
    """Level of the request logger by broker, None where the broker does not tell; or why they cannot be asked."""
    from kafka import KafkaAdminClient  # the doctor alone needs it, and this question alone
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import KafkaError

    options = kafka_python(settings)
    if isinstance(options, str):
        return options
    reached = _reached(bootstrap, timeout_s)
    if not reached:
        return f"no address of {bootstrap} can be reached"
    limits = {"request_timeout_ms": round(timeout_s * 1_000), "bootstrap_timeout_ms": round(timeout_s * 1_000)}
    asked = [ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker)) for broker in brokers]
    try:
        admin = KafkaAdminClient(bootstrap_servers=reached, **limits, **options)
        try:
            found = admin.describe_configs(asked, config_filter="all").get("broker_logger", {})
        finally:
            admin.close()
    except (KafkaError, OSError, ValueError) as error:
        return f"the question failed ({type(error).__name__})"
    return {broker: _level(found.get(str(broker), {})) for broker in brokers}


def _reached(bootstrap: str, timeout_s: float) -> list[str]:
    """Addresses that somebody listens on: of others kafka-python leaves sockets open for as long as it asks again."""
    found = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not port.isdigit():
            continue
        with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout_s):
            found.append(address.strip())
    return found


def _level(entries: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The logger's own level, else that of the root, which it then has; None where nothing is told: no right to it."""
    entry = entries.get(LOGGER) or entries.get("root")
    return None if entry is None else str(entry["value"])


def findings(found: Mapping[int, str | None] | str, bootstrap: str, switch_on: tuple[str, ...]) -> list[Finding]:
    """What the levels say: a broker that logs no request is in the way, and one that does not tell is unknown."""
    if isinstance(found, str):
        sentence = f"At which level {LOGGER} stands is not known: {found}."
        return [Finding(Level.UNKNOWN, bootstrap, sentence, ("Ask with kafka-configs.sh, or name --request-log.",))]
    return [_finding(broker, level, switch_on) for broker, level in sorted(found.items())]


def _finding(broker: int, level: str | None, switch_on: tuple[str, ...]) -> Finding:
    subject = f"broker {broker}"
    if level is None:
        sentence = f"It does not say at which level {LOGGER} stands: it is older than 2.4, or the right is missing."
        return Finding(Level.UNKNOWN, subject, sentence, ("Allow DESCRIBE_CONFIGS on the cluster.",))
    if level in WRITES:
        return Finding(Level.GOOD, subject, f"{LOGGER} is at {level}: it logs completed requests.")
    sentence = f"{LOGGER} is at {level}: it logs no request, so no heartbeat is seen. Expected DEBUG."
    return Finding(Level.BAD, subject, sentence, switch_on)


def cost(members: int | None, brokers: int) -> Finding:
    """What DEBUG costs each broker at least, and what that rests on. `members`: of all groups; None if not known."""
    subject = "cost of the request log"
    rest = (
        "Each request of every API is turned into text by the broker's threads before any filter; producers, busy "
        "topics and clients with other intervals come on top, and no broker says its request rate without JMX: "
        "kafka.network:type=RequestMetrics,name=RequestsPerSec has it."
    )
    if members is None:
        return Finding(Level.UNKNOWN, subject, f"How many members the groups have may not be asked. {rest}")
    group_per_s = members * (1 / HEARTBEAT_EVERY_S + 1 / COMMIT_EVERY_S) / brokers
    fetch_per_s = (members + brokers - 1) / FETCH_EVERY_S
    return Finding(
        Level.NOTE,
        subject,
        f"At least about {group_per_s + fetch_per_s:,.0f} requests/s for each broker, by the default intervals of "
        f"{members} members and {brokers - 1} replicating brokers: heartbeats and commits {group_per_s:,.1f}, fetches "
        f"up to {fetch_per_s:,.0f} where each member reads from each broker. {rest}",
    )
