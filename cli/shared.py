"""Options that several verbs have: their names, their sentences, and what they take, once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import PLACE, TABLES_PLACE, Folder

RequestLog = Annotated[
    list[str] | None,
    typer.Option("--request-log", help="Request logs to follow, or patterns; may be given several times."),
]
ServerLog = Annotated[
    list[str] | None,
    typer.Option("--server-log", help="server.log files to follow, or patterns; may be given several times."),
]
ObservedBrokers = Annotated[
    str | None, typer.Option("--bootstrap-server", help="Brokers of the observed cluster: HOST:PORT,…")
]
Offsets = Annotated[
    bool | None, typer.Option("--offsets/--no-offsets", help="Read __consumer_offsets of the observed cluster.")
]
Admin = Annotated[
    bool | None,
    typer.Option("--admin/--no-admin", help="Sample groups by the admin API; needs nothing on a broker."),
]
AdminEveryS = Annotated[
    float | None, typer.Option("--admin-every-s", help="Seconds from one sample to the next. Default: 10.")
]
EndsEveryS = Annotated[
    float | None,
    typer.Option(
        "--ends-every-s",
        help="Ask so often, in seconds, where the partitions end that groups read; 0: never. Default: 5.",
    ),
]
OffsetsPartitions = Annotated[
    int | None,
    typer.Option("--offsets-partitions", help="Partitions of __consumer_offsets when the cluster cannot be asked."),
]
ObservedClientConfig = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        help="Properties file (security) for the observed cluster, in the names of librdkafka or Java.",
        **PLACE,
    ),
]
EventsTopic = Annotated[str | None, typer.Option("--topic", help="Topic of events. Default: kardia.events.")]
Cluster = Annotated[str | None, typer.Option("--cluster", help="Name of the observed cluster.")]
Broker = Annotated[
    str | None,
    typer.Option("--broker", help="Name of the broker whose logs these are; as the lines say by default."),
]
LogTimezone = Annotated[
    str | None,
    typer.Option("--log-timezone", help="Time zone of the brokers' JVM: UTC, Europe/Berlin, +05:30. No default."),
]
LogPattern = Annotated[
    str | None,
    typer.Option(
        "--log-pattern",
        help="Conversion pattern of the logs as the brokers' log4j file has it, for a layout that is not known.",
    ),
]
MetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", help="Serve Prometheus counters on this port of loopback.")
]
RotateWaitS = Annotated[
    float | None, typer.Option("--rotate-wait-s", help="Read a rotated file so long after its end. Default: 5.")
]
KafkaVersion = Annotated[
    str | None,
    typer.Option("--kafka-version", help="Release of the brokers; recognised if not given."),
]
ConsumerSessionMs = Annotated[
    int | None,
    typer.Option("--consumer-session-ms", help="group.consumer.session.timeout.ms of the brokers, if it is known."),
]
ShareSessionMs = Annotated[
    int | None,
    typer.Option("--share-session-ms", help="group.share.session.timeout.ms of the brokers, if it is known."),
]
SelfTest = Annotated[
    bool | None,
    typer.Option(
        "--self-test/--no-self-test",
        help="Put classic requests to the model of the brokers' release, tell what is otherwise: `kardia surprises`.",
    ),
]

StreamsSessionMs = Annotated[
    int | None,
    typer.Option("--streams-session-ms", help="group.streams.session.timeout.ms of the brokers, if it is known."),
]
Host = Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one and prints it. Default: 8765."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="Bearer tokens, one per line, for cluster=NAME or all, until expires=TIME; a must beyond loopback.",
        **PLACE,
    ),
]
TlsKey = Annotated[Path | None, typer.Option(help="Key of the certificate (PEM).", **PLACE)]
AllowedHost = Annotated[
    list[str] | None, typer.Option(help="Host name to answer to beside the address; may be repeated.")
]
HidePersonal = Annotated[
    bool | None,
    typer.Option("--hide-personal", help="Answer without clients' addresses and their own words, everywhere."),
]
ServeEveryoneWithoutAToken = Annotated[
    bool | None,
    typer.Option("--serve-everyone-without-a-token", help="Listen beyond loopback although anybody may read."),
]
Webhook = Annotated[list[str] | None, typer.Option(help="Address that gets CloudEvents as JSON; may be repeated.")]
RunbooksUrl = Annotated[
    str | None, typer.Option(help="Address in front of the names of the runbooks; those of --kardia-url if absent.")
]
ClientConfig = Annotated[
    Path | None,
    typer.Option("--client-config", help="Properties file (security), in the names of librdkafka or of Java.", **PLACE),
]
TablesToRead = Annotated[Folder, typer.Option(help="Folder with the Delta tables, here or s3://.", **TABLES_PLACE)]
LogPatternOrEmpty = Annotated[
    str,
    typer.Option(
        "--log-pattern",
        help="Conversion pattern of the logs as the brokers' log4j file has it, for a layout that is not known.",
    ),
]
