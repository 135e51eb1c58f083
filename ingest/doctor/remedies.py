"""The exact lines that switch the request log on, by what the broker logs with. docs/request-logging.md shows the same.

The APIs are those that the dialect of request logs reads.
"""

from __future__ import annotations

import re

from ingest.dialects.request_events import RequestEvents
from ingest.dialects.text_schemas import APIS as _TEXT_SCHEMAS
from ingest.doctor.cost import measured
from kardia.events import DEFAULT_OFFSETS_PARTITIONS

FETCH = 1
APIS = tuple(sorted(RequestEvents(DEFAULT_OFFSETS_PARTITIONS).by_api))
"""Numbers of the APIs that Kardia reads."""

TEXT_APIS = ("FETCH", *sorted(_TEXT_SCHEMAS, key=lambda name: _TEXT_SCHEMAS[name].key))
"""Names of those that text lines can be of."""

TEXT_NEEDLE = "RequestHeader(apiKey="
"""What only the head of a text line has; the name of a group may hold it, and lets a line more through."""

_LOG4J2 = """\
Appenders:
  RollingFile:
    - name: GroupRequests
      fileName: "${sys:kafka.logs.dir}/kafka-group-request.log"
      filePattern: "${sys:kafka.logs.dir}/kafka-group-request.log.%d{yyyy-MM-dd-HH}{UTC}.%i"
      PatternLayout: { pattern: "[%d{yyyy-MM-dd HH:mm:ss,SSS}{UTC}] %p %m (%c)%n" }
      Policies:
        TimeBasedTriggeringPolicy: { interval: 1, modulate: true }
        SizeBasedTriggeringPolicy: { size: "1 GB" }
Loggers:
  Logger:
    - name: kafka.request.logger
      level: DEBUG
      additivity: false
      AppenderRef:
        - ref: GroupRequests
          RegexFilter:
            regex: 'Completed request:\\{"isForwarded":(true|false),"requestHeader":\\{"requestApiKey":(APIS),.*'
            onMatch: ACCEPT
            onMismatch: DENY
"""

_LOG4J1 = """\
log4j.appender.groupRequests=org.apache.log4j.DailyRollingFileAppender
log4j.appender.groupRequests.DatePattern='.'yyyy-MM-dd-HH
log4j.appender.groupRequests.File=${kafka.logs.dir}/kafka-group-request.log
log4j.appender.groupRequests.layout=org.apache.log4j.EnhancedPatternLayout
log4j.appender.groupRequests.layout.ConversionPattern=[%d{yyyy-MM-dd HH:mm:ss,SSS}{UTC}] %p %m (%c)%n
"""

_LAST = (
    "log4j.appender.groupRequests.filter.99=org.apache.log4j.varia.DenyAllFilter",
    "log4j.logger.kafka.request.logger=DEBUG, groupRequests",
    "log4j.additivity.kafka.request.logger=false",
)


APPENDER, QUEUE = "GroupRequests", "GroupRequestsQueue"
"""Of log4j 2: what writes the file, and the queue before it."""

_QUEUE = """\
  Async:
    - name: GroupRequestsQueue
      bufferSize: 8192
      AppenderRef:
        - ref: GroupRequests
"""


def log4j2_yaml() -> str:
    """Kafka 4.x: what to add below `Configuration` of config/log4j2.yaml."""
    text = _LOG4J2.replace("APIS", "|".join(str(number) for number in APIS))
    found = measured()
    return with_queue(text) if found is not None and found.asynchronous else text


def with_queue(text: str) -> str:
    """The same configuration, these lines or a whole file with them, with a queue before the file: a thread of its own
    writes. It is full at 8,192 lines, and then the broker waits: nothing is dropped. log4j 1 cannot be told so in
    properties."""
    if QUEUE in text:
        return text
    text = re.sub(r"(?m)^( *- ref: )GroupRequests(\n *RegexFilter:)", rf"\g<1>{QUEUE}\g<2>", text)

    def inserted(found: re.Match[str]) -> str:
        return "".join(f"{found[1]}{line}\n" for line in _QUEUE.splitlines()) + found[0]

    return re.sub(r"(?m)^( *)Loggers:$", inserted, text, count=1)


def log4j1_properties() -> str:
    """Kafka 2.8 to 3.9: what to add to config/log4j.properties."""
    return _log4j1([], [f'"requestApiKey":{number},' for number in APIS])


def log4j1_text_properties() -> str:
    """Kafka 2.0 to 2.7, whose lines are text: the same with other words to filter by, and in UTF-8 whatever the JVM's
    own charset is."""
    return _log4j1(["log4j.appender.groupRequests.encoding=UTF-8"], [f"{TEXT_NEEDLE}{name}," for name in TEXT_APIS])


def _log4j1(more: list[str], needles: list[str]) -> str:
    """One accepting filter for each text, a last one denies. Filters run in the order of their names, compared as
    text."""
    lines = [_LOG4J1.rstrip("\n"), *more]
    for place, needle in enumerate(needles, 1):
        prefix = f"log4j.appender.groupRequests.filter.{place:02d}"
        lines += [
            f"{prefix}=org.apache.log4j.varia.StringMatchFilter",
            f"{prefix}.StringToMatch={needle}",
            f"{prefix}.AcceptOnMatch=true",
        ]
    return "\n".join([*lines, *_LAST, ""])


def at_run_time(bootstrap: str, broker_id: int) -> str:
    """From 2.4 on: set the level of a running broker, whose file has the filter already. A restart forgets it."""
    return (
        f"kafka-configs.sh --bootstrap-server {bootstrap} --entity-type broker-loggers --entity-name {broker_id} "
        "--alter --add-config kafka.request.logger=DEBUG"
    )
