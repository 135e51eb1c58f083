"""`kardia doctor`: look at a cluster and its logs, say what is missing, and print the lines to add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking.common import TextOutput, print_as
from cli.options import PLACE, SeveralValues
from cli.shared import ClientConfig, LogPatternOrEmpty

if TYPE_CHECKING:
    from ingest.doctor import Finding


class DoctorCommand(SeveralValues):
    """The logs may be named as a shell writes them."""

    several = frozenset({"--request-log", "--server-log"})


COMMAND = DoctorCommand


def doctor(
    request_log: Annotated[
        list[str] | None, typer.Option("--request-log", help="Request logs, or patterns; may be given several times.")
    ] = None,
    server_log: Annotated[
        list[str] | None, typer.Option("--server-log", help="server.log files, or patterns; several times.")
    ] = None,
    broker_logging: Annotated[
        list[Path] | None,
        typer.Option(
            "--broker-logging",
            help="A broker's log4j2.yaml or log4j.properties: prints it whole, with what is missing.",
            **PLACE,
        ),
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option("--bootstrap-server", help="Brokers of the cluster: HOST:PORT,…")
    ] = None,
    client_config: ClientConfig = None,
    topic: Annotated[str, typer.Option("--topic", help="Topic of events, for the rights to it.")] = "kardia.events",
    log_timezone: Annotated[
        str | None, typer.Option("--log-timezone", help="Zone of the stamps: IANA name, UTC or +05:30.")
    ] = None,
    log_pattern: LogPatternOrEmpty = "",
    output: Annotated[TextOutput, typer.Option("-o", "--output", help="Form of the answer.")] = TextOutput.TEXT,
) -> None:
    """Look at a cluster and its logs before collecting: what is missing, the exact lines to add, what can be asked.

    Exit code 0 if nothing is wrong, 1 if something is, 2 if nothing was named to look at. Changes nothing.
    """
    from rich.console import Console

    from ingest.clients.settings import client_config as read_config
    from ingest.doctor import Level, answerable, cluster, logs, protocol_migration, settings_shown
    from ingest.doctor import broker_logging as broker_logging_file
    from ingest.errors import IngestError, SettingsError
    from ingest.settings import expanded
    from ingest.stamps import zone_named

    try:
        if not (request_log or server_log or broker_logging or bootstrap_server):
            raise SettingsError(
                "nothing was named to look at",
                "--request-log, --server-log, --broker-logging, --bootstrap-server",
                "a log or a cluster",
                "give at least one of them",
            )
        zone = zone_named(log_timezone) if log_timezone else None
        findings: list[Finding] = []
        examined = cluster.Examined((), cluster.ASK)
        if bootstrap_server:
            config = read_config(client_config)
            examined = cluster.examine(bootstrap_server, config, topic=topic, wanted=bool(request_log))
            findings += examined.findings
        for path in broker_logging or ():
            findings += broker_logging_file.examine(path)
        requests, servers = expanded(tuple(request_log or ())), expanded(tuple(server_log or ()))
        for paths, server in ((requests, False), (servers, True)):
            for path in paths:
                findings += logs.examine(path, zone, examined.switch_on, server=server, log_pattern=log_pattern)
        findings += settings_shown.examine(requests, zone, examined.settings, log_pattern)
        findings += protocol_migration.examine(requests, zone, examined.settings, log_pattern)
        if requests or servers or examined.reached:
            read = answerable.read_of(
                requests,
                servers,
                offsets=examined.reads_offsets,
                zone=zone,
                topic_ends=examined.reads_ends,
                samples=examined.samples,
                log_pattern=log_pattern,
            )
            looked = answerable.Looked(
                (bootstrap_server or "") if examined.reached else "",
                client_config,
                tuple(requests),
                tuple(servers),
                log_timezone or "",
                log_pattern,
            )
            # Lines for the brokers that answered stand above, beside what they cost.
            findings += answerable.findings(read, looked, () if examined.reached else examined.switch_on)
    except IngestError as error:
        Console(stderr=True).print(f"kardia doctor: {error}", markup=False, highlight=False)
        raise typer.Exit(2) from None
    if output is TextOutput.TEXT:
        _print_text(findings)
    else:
        print_as(
            output,
            [asdict(finding) | {"level": finding.level.value, "remedy": list(finding.remedy)} for finding in findings],
        )
    raise typer.Exit(1 if any(finding.level is Level.BAD for finding in findings) else 0)


def _print_text(findings: Sequence[Finding]) -> None:
    from rich.console import Console

    from ingest.doctor import Level
    from kardia.story import words

    console = Console(highlight=False, markup=False, soft_wrap=True)
    marks = {
        Level.GOOD: ("  ok   ", "green"),
        Level.NOTE: ("  note ", "yellow"),
        Level.BAD: ("  BAD  ", "bold red"),
        Level.UNKNOWN: ("  ?    ", "yellow"),
    }
    subject = ""
    shown: set[tuple[str, ...]] = set()
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            console.print(words.escaped(words.shortened(subject, 400)))
        mark, style = marks[finding.level]
        console.print(mark, style=style, end="")
        console.print(finding.sentence + (f" [{finding.certainty}]" if finding.certainty == "inferred" else ""))
        if finding.remedy in shown and finding.sentence.endswith(":"):
            console.print("         (the lines above)")
        if finding.remedy and finding.remedy not in shown:
            shown.add(finding.remedy)  # the same lines for every log are enough once
            for line in finding.remedy:
                console.print(f"         {line}")
    console.print(_verdict(findings), style="bold red" if any(one.level is Level.BAD for one in findings) else "green")


def _verdict(findings: Sequence[Finding]) -> str:
    from ingest.doctor import Level, answerable

    bad = sum(1 for finding in findings if finding.level is Level.BAD)
    unknown = any(finding.level is Level.UNKNOWN for finding in findings)
    asked = [finding for finding in findings if finding.subject == answerable.SUBJECT]
    nothing = (
        "Nothing is wrong." if not unknown else "Nothing is wrong as far as was looked; what is not known is above."
    )
    verdict = nothing if not bad else "One thing is wrong." if bad == 1 else f"{bad} things are wrong."
    if not asked:
        return verdict
    answered = sum(1 for finding in asked if finding.level is Level.GOOD)
    return f"{verdict} {answered} of {len(asked)} questions can be answered by what was looked at."
