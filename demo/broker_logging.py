"""Logging configuration of the demo's broker: what a user would add to see the group traffic and nothing else.

One file for the coordinator's lines (server.log), one for completed requests (kafka-request.log), restricted to the
APIs that Kardia reads. Kafka 4 is configured by log4j 2 XML, Kafka 2 and 3 by log4j 1 properties, whose filters look
for other words where the lines are text (before 2.8); all were run on real brokers. The pattern is Kafka's own. Decides
nothing else about the broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

APIS = {
    1: "FETCH",
    8: "OFFSET_COMMIT",
    11: "JOIN_GROUP",
    12: "HEARTBEAT",
    13: "LEAVE_GROUP",
    14: "SYNC_GROUP",
    28: "TXN_OFFSET_COMMIT",
    42: "DELETE_GROUPS",
    68: "CONSUMER_GROUP_HEARTBEAT",
    72: "PUSH_TELEMETRY",
    76: "SHARE_GROUP_HEARTBEAT",
    88: "STREAMS_GROUP_HEARTBEAT",
}
"""Numbers of the APIs whose lines are kept: the group APIs, and FETCH and PUSH_TELEMETRY as evidence of polls."""

_PATTERN = "[%d] %p %m (%c)%n"


JSON = '"requestApiKey":{number},'
TEXT = "RequestHeader(apiKey={name},"
"""What only lines of one API have, from 2.8 on and before."""

KEPT_FILES = 60
"""Rotated files of a log that are kept."""


def log4j2_xml(
    logs: Path,
    rotate_kb: int = 0,
    rotate_server_kb: int = 0,
    apis: Iterable[int] = APIS,
    watched_s: int = 0,
    *,
    asynchronous: bool = False,
) -> str:
    """Configuration for Kafka 4. The shutdown hook is off, or the last lines of the broker would be lost. With
    `rotate_kb` the request log goes on in a new file when it has that many kB, with `rotate_server_kb` server.log.
    `apis`: those whose lines are kept; without any, the request log is off. `watched_s`: the broker looks so often
    whether the file is another one, and goes on by that; 0: never. `asynchronous`: lines of the request log are put
    into a queue, and written by a thread of their own."""
    numbers = "|".join(str(number) for number in apis)
    level = "DEBUG" if numbers else "WARN"
    watched = f' monitorInterval="{watched_s}"' if watched_s else ""
    regex = r'Completed request:\{"isForwarded":(true|false),"requestHeader":\{"requestApiKey":(' + numbers + r"),.*"
    server, request = (
        _appender("server", logs / "server.log", rotate_server_kb),
        _appender("request", logs / "kafka-request.log", rotate_kb),
    )
    if asynchronous:
        request += '\n    <Async name="queue"><AppenderRef ref="request"/></Async>'
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR" shutdownHook="disable"{watched}>
  <Appenders>
    {server}
    {request}
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="server"/></Root>
    <Logger name="kafka.request.logger" level="{level}" additivity="false">
      <AppenderRef ref="{"queue" if asynchronous else "request"}">
        <RegexFilter regex={quoteattr(regex)} onMatch="ACCEPT" onMismatch="DENY"/>
      </AppenderRef>
    </Logger>
  </Loggers>
</Configuration>
"""


def _appender(name: str, path: Path, rotate_kb: int) -> str:
    """An appender of log4j 2, which goes on in a new file at that size, or never."""
    file, layout = quoteattr(str(path)), f'<PatternLayout pattern="{_PATTERN}"/>'
    if not rotate_kb:
        return f'<File name="{name}" fileName={file}>\n      {layout}\n    </File>'
    return (
        f'<RollingFile name="{name}" fileName={file} filePattern={quoteattr(f"{path}.%i")}>'
        f'{layout}<SizeBasedTriggeringPolicy size="{rotate_kb} KB"/>'
        f'<DefaultRolloverStrategy max="{KEPT_FILES}" fileIndex="min"/></RollingFile>'
    )


def log4j1_properties(logs: Path, rotate_kb: int = 0, rotate_server_kb: int = 0, lines_of: str = JSON) -> str:
    """Configuration for Kafka 2 and 3: one accepting filter per API, everything else denied. Rotation as above.
    `lines_of`: by what the lines of an API are known."""
    lines = [
        "log4j.rootLogger=INFO, server",
        "log4j.logger.kafka.request.logger=DEBUG, request",
        "log4j.additivity.kafka.request.logger=false",
    ]
    logged = (("server", "server.log", rotate_server_kb), ("request", "kafka-request.log", rotate_kb))
    for name, file, rolls_kb in logged:
        if rolls_kb:
            lines.append(f"log4j.appender.{name}.MaxFileSize={rolls_kb}KB")
            lines.append(f"log4j.appender.{name}.MaxBackupIndex={KEPT_FILES}")
        lines += [
            f"log4j.appender.{name}=org.apache.log4j.{'RollingFileAppender' if rolls_kb else 'FileAppender'}",
            f"log4j.appender.{name}.File={logs / file}",
            # Names stand in text lines as they are, in the encoding of the machine if none is named.
            f"log4j.appender.{name}.Encoding=UTF-8",
            f"log4j.appender.{name}.layout=org.apache.log4j.PatternLayout",
            f"log4j.appender.{name}.layout.ConversionPattern={_PATTERN}",
        ]
    for place, (number, name) in enumerate(APIS.items()):
        # Filters run in the order of their names, compared as text.
        prefix = f"log4j.appender.request.filter.{place:02d}"
        lines += [
            f"{prefix}=org.apache.log4j.varia.StringMatchFilter",
            f"{prefix}.StringToMatch={lines_of.format(number=number, name=name)}",
            f"{prefix}.AcceptOnMatch=true",
        ]
    lines.append("log4j.appender.request.filter.99=org.apache.log4j.varia.DenyAllFilter")
    return "\n".join([*lines, ""])
