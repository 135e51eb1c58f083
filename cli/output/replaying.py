"""What `kardia replay` runs and shows: the engine, a progress bar, and a summary for a person."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from cli.output.telling import wrapped
from ingest.archives.found import Archives
from kardia.observe import ObserverSettings
from kardia.story import words
from spark_jobs.errors import InputFileError
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, Told, replay
from spark_jobs.replay.summary import Refused, Summary
from stores.locations import Folder

SMALL_BYTES = 64 * 1024 * 1024
"""Logs up to that size are replayed with a history of health; with larger ones it takes more time than all the rest."""

SHOWN_LEFT_OUT = 10
"""Files that are not read and that are named."""

HEALTH_EVERY_S = 5.0
"""As often as the live job writes who is in good health (`ObserverSettings.health_sample_ms`)."""


def health_every_s(asked: float | None, logs: Sequence[Path]) -> float:
    """Seconds between two rows of health of a member that is well, 0 for its last one only: as asked, or else by the
    size of the logs together."""
    if asked is not None:
        return asked
    return HEALTH_EVERY_S if sum(log.stat().st_size for log in logs if log.exists()) <= SMALL_BYTES else 0.0


def run_replay(
    *,
    files: Sequence[Path],
    message_field: str,
    request_logs: Sequence[Path],
    server_logs: Sequence[Path],
    offsets: Sequence[Path],
    tables: Folder,
    cluster: str,
    kafka_version: str,
    session_ms: tuple[int, int, int],
    zone: str,
    log_pattern: str,
    spark: bool,
    append: bool,
    overwrite: bool,
    workers: int,
    master: str,
    health_every: float | None,
) -> None:
    """Replay, with a bar while it runs and a table at the end.

    `health_every` in seconds: see `health_every_s`. `session_ms`: session timeouts of members of consumer, share and
    streams groups, -1 where they are not known.
    """
    if not (files or request_logs or server_logs or offsets):
        raise InputFileError(
            "there is nothing to replay",
            "the command line",
            "files or folders of logs, or one of --request-log, --server-log and --offsets",
            "name them; `kardia replay --help` lists what is read",
        )
    console = Console(stderr=True)
    inputs = Inputs(
        request_logs, server_logs, offsets, zone, files=files, message_field=message_field, log_pattern=log_pattern
    )
    every_s = health_every_s(health_every, inputs.given())
    within_ms = 1_000 * every_s
    consumer_ms, share_ms, streams_ms = session_ms
    factory = ObserverFactory(
        ObserverSettings(
            cluster,
            kafka_version,
            sample_within_ms=within_ms,
            consumer_session_ms=consumer_ms,
            share_session_ms=share_ms,
            streams_session_ms=streams_ms,
        )
    )
    started = time.monotonic()
    with _bar(console) as bar:
        task = bar.add_task("replay", total=None, lines="")
        read = 0

        def advanced(size: float, lines: int) -> None:
            nonlocal read
            read += lines
            rate = read / max(0.001, time.monotonic() - started)
            bar.update(task, advance=size, lines=f"{read:,} lines, {rate:,.0f}/s" if read else "")

        def again(why: str) -> None:
            nonlocal read
            read = 0
            bar.reset(task, total=None, lines="")
            console.print(
                f"{why} The replay begins again, with care, and leaves it out.", markup=False, highlight=False
            )

        told = Told(lambda total: bar.update(task, total=total or 1), advanced, again)
        if spark:
            from spark_jobs.replay.on_spark import replay_on_spark

            summary = replay_on_spark(
                inputs, tables, factory, master=master, append=append, overwrite=overwrite, told=told
            )
        else:
            summary = replay(inputs, tables, factory, workers=workers, append=append, overwrite=overwrite, told=told)
        bar.update(task, completed=bar.tasks[0].total or 1)
    _show(Console(), summary, tables, time.monotonic() - started, every_s)
    _show_next(Console(soft_wrap=True, highlight=False, markup=False), summary, tables, zone)
    if summary.lines and summary.events <= summary.rejected:
        refused = "".join(f"; {one.lines:,} were rejected as {one.reason}" for one in summary.refused[:3])
        named = [expected for option, expected in ((request_logs, _REQUESTS), (server_logs, _SENTENCES)) if option]
        raise InputFileError(
            f"none of the {summary.lines:,} lines says anything about a consumer group{refused}",
            ", ".join(str(path) for path in (*files, *request_logs, *server_logs, *offsets))[:400],
            summary.refused[0].expected if summary.refused else "; ".join(named or (_REQUESTS, _SENTENCES)),
            _NEXT_OF_SERVER if named == [_SENTENCES] else _NEXT_OF_REQUESTS,
        )


_REQUESTS = (
    "lines such as `[...] DEBUG Completed request:{...} (kafka.request.logger)`, or, of Kafka 2.0 to 2.7, "
    "`Completed request:RequestHeader(...)`"
)
_SENTENCES = "lines such as `[...] INFO [GroupCoordinator 1]: ... (kafka.coordinator.group.GroupCoordinator)`"
_NEXT_OF_REQUESTS = (
    "check that these are the request logs and that kafka.request.logger is at DEBUG: docs/request-logging.md"
)
_NEXT_OF_SERVER = (
    "check that this is server.log of the broker that leads the group, that kafka.coordinator.group is at INFO, and "
    "the layout (--log-pattern): docs/request-logging.md"
)


_NOT_APPLIED = "left out: a defect, please report it; `kardia rejected --reason not_applied` lists them"


def _of_archives(found: Archives) -> list[tuple[str, int, str]]:
    """What was read in which form; files that are not read are shown one by one, up to `SHOWN_LEFT_OUT`."""
    counts = found.counts
    shown = [("left out" if not number else "", 1, why) for number, why in enumerate(found.left_out[:SHOWN_LEFT_OUT])]
    more = len(found.left_out) - len(shown)
    return [
        ("unwrapped", found.unwrapped, "files of container runtimes, the journal or exports"),
        ("damaged", counts["refused"], "entries of them that could not be read, among the rejected"),
        ("doubled", counts["twice"], "lines that were exported twice, read once"),
        ("unplaced", counts["unstamped"], "lines without a stamp in an export that is not in order, left out"),
        *shown,
        ("", more, "more files that are not read"),
    ]


def _of_refused(one: Refused) -> str:
    """What was expected, and of a layout that is not known its first line."""
    first = f"; the first of them: {one.excerpt}" if one.reason == "unknown_layout" else ""
    return f"expected {one.expected}{first}"[:_REFUSED_CHARS]


_REFUSED_CHARS = 500

_DISAGREE = "lines of server.log that say otherwise than the requests; `kardia disagreements` lists them"


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[lines]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=not console.is_terminal,
    )


def _show_next(console: Console, summary: Summary, tables: Folder, zone: str) -> None:
    """From when to when the logs are, in which zone their stamps were read, and what to ask now."""
    if summary.span_ms is not None:
        first, last = (words.instant(int(at_ms)) for at_ms in summary.span_ms)
        other = " If the brokers log in another zone, name it with --log-timezone." if zone == "UTC" else ""
        text = f"The logs are from {first} to {last}. Stamps without a zone were read as {zone}.{other}"
        console.print(wrapped(console, text, indent=2))
    if summary.groups:
        console.print(f"Next: kardia incident --tables {tables}")


def _show(console: Console, summary: Summary, tables: Folder, seconds: float, every_s: float) -> None:
    shown = Table(title=f"Replayed into {tables}", show_header=False, title_justify="left")
    shown.add_column(style="bold")
    shown.add_column(justify="right")
    shown.add_column()
    rate = f"{summary.lines / max(seconds, 0.001):,.0f}/s"
    rows: list[tuple[str, int, str]] = [
        ("lines", summary.lines, f"in {seconds:.1f} s, {rate}"),
        ("events", summary.events, ""),
        ("ignored", summary.ignored, "lines and records that say nothing about a group"),
        ("rejected", summary.rejected, "lines that could not be understood; `kardia rejected` lists them"),
        *((f"  {one.reason}", one.lines, _of_refused(one)) for one in summary.refused),
        *((("not applied", summary.not_applied, _NOT_APPLIED),) if summary.not_applied else ()),
        ("unattributed", summary.unattributed, "fetches of clients that belong to no group seen"),
        ("groups", summary.groups, ""),
        ("members", summary.members, "memberships, one per life of a member"),
        ("rebalances", summary.rebalances, ""),
        ("ended", sum(summary.ends.values()), "memberships that ended:"),
        *((f"  {cause}", count, "") for cause, count in summary.ends.items()),
        *((("disagreements", sum(summary.disagreements.values()), _DISAGREE),) if summary.disagreements else ()),
        *((f"  {kind}", count, "") for kind, count in summary.disagreements.items()),
    ]
    rows[2:2] = [(what, count, remark) for what, count, remark in _of_archives(summary.archives) if count]
    for name, count, remark in rows:
        shown.add_row(name, f"{count:,}", remark)
    kept = f"every {every_s:g} s" if every_s else "the last only; --health-every 5 keeps a history of it"
    shown.add_row("health", "", f"{kept}, beside what was in danger")
    console.print(shown)
