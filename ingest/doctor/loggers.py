"""Asks brokers at which level `kafka.request.logger` stands and how they write their logs; estimates what it costs.

librdkafka knows no BROKER_LOGGER resource (KIP-412; its resource types end with BROKER and TRANSACTIONAL_ID) and does
not pass on which requests a broker takes, so kafka-python asks. Brokers say levels from 2.4 on. What they do not say
without JMX is their request rate: the estimate rests on the members that the groups have and on the intervals that
clients and replicas ask at by default, and is a least one. Reads only.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from ingest.doctor import Finding, Level
from ingest.doctor.cost import measured
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


Writes = Literal["log4j 2", "log4j 1, JSON", "log4j 1, text"]
"""How a broker is told to log, and how it writes a request: 4.x, 2.8 to 3.9, 2.0 to 2.7."""

_FETCH, _DESCRIBE_CLUSTER = 1, 60
_FETCH_FROM_4 = 4
"""Least version of FETCH that a broker 4.x takes (KIP-896)."""


@dataclass(frozen=True)
class Told:
    """What brokers told of their logging."""

    levels: Mapping[int, str | None] | str
    """Level of the request logger by broker, None where a broker does not tell; or why they could not be asked."""
    writes: frozenset[Writes] = frozenset()
    """Of all brokers; empty if they could not be asked. It takes no right."""

    @property
    def logs_requests(self) -> bool | None:
        """Whether each broker logs completed requests; None if that is not known."""
        if isinstance(self.levels, str) or None in self.levels.values():
            return None
        return set(self.levels.values()) <= set(WRITES)


def writes(apis: Mapping[int, tuple[int, int]]) -> Writes:
    """By the requests that a broker takes, as it says to everybody who has logged in: each API with its versions."""
    if apis[_FETCH][0] >= _FETCH_FROM_4:
        return "log4j 2"
    return "log4j 1, JSON" if _DESCRIBE_CLUSTER in apis else "log4j 1, text"


def ask(bootstrap: str, settings: Mapping[str, str], brokers: tuple[int, ...], timeout_s: float) -> Told:
    """What each broker tells of its logging."""
    from kafka import KafkaAdminClient  # the doctor alone needs it, and this question alone
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import KafkaError

    options = kafka_python(settings)
    if isinstance(options, str):
        return Told(options)
    reached = _reached(bootstrap, timeout_s)
    if not reached:
        return Told(f"no address of {bootstrap} can be reached")
    limits = {"request_timeout_ms": round(timeout_s * 1_000), "bootstrap_timeout_ms": round(timeout_s * 1_000)}
    asked = [ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker)) for broker in brokers]
    try:
        admin = KafkaAdminClient(bootstrap_servers=reached, **limits, **options)
        try:
            known = frozenset(writes(admin.get_broker_version_data(broker).api_versions) for broker in brokers)
            found = admin.describe_configs(asked, config_filter="all").get("broker_logger", {})
        finally:
            admin.close()
    except (KafkaError, OSError, ValueError) as error:
        return Told(f"the question failed ({type(error).__name__})")
    return Told({broker: _level(found.get(str(broker), {})) for broker in brokers}, known)


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


def findings(told: Told, bootstrap: str, *, wanted: bool) -> list[Finding]:
    """What the levels say. A broker that logs no request is as Kafka ships it, and in the way only of whoever has named
    a request log (`wanted`); one that does not tell is unknown."""
    if isinstance(told.levels, str):
        sentence = f"At which level {LOGGER} stands is not known: {told.levels}."
        return [Finding(Level.UNKNOWN, bootstrap, sentence, ("Ask with kafka-configs.sh, or name --request-log.",))]
    return [_finding(broker, level, wanted=wanted) for broker, level in sorted(told.levels.items())]


def _finding(broker: int, level: str | None, *, wanted: bool) -> Finding:
    subject = f"broker {broker}"
    if level is None:
        sentence = f"It does not say at which level {LOGGER} stands: it is older than 2.4, or the right is missing."
        return Finding(Level.UNKNOWN, subject, sentence, ("Allow DESCRIBE_CONFIGS on the cluster.",))
    if level in WRITES:
        return Finding(Level.GOOD, subject, f"{LOGGER} is at {level}: it logs completed requests.")
    if wanted:
        sentence = f"{LOGGER} is at {level}: it logs no request, so no heartbeat is seen. Expected DEBUG."
        return Finding(Level.BAD, subject, sentence)
    sentence = f"{LOGGER} is at {level}, as Kafka ships it: it logs no request, so no heartbeat is seen."
    return Finding(Level.NOTE, subject, sentence)


def cost(members: int | None, brokers: int) -> Finding:
    """What DEBUG costs each broker at least, and what that rests on. `members`: of all groups; None if not known."""
    subject = "cost of the request log"
    rest = (
        "Each request of every API is turned into text by the broker's threads before any filter; producers, busy "
        "topics and clients with other intervals come on top, and no broker says its request rate without JMX: "
        "kafka.network:type=RequestMetrics,name=RequestsPerSec has it."
    )
    found = measured()
    if found is not None:
        rest += f" {found.sentence()}"
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
