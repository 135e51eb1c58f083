"""One night from its first to its last minute: bring everything up, do the steps, let it settle, ask, stop, compare."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demo import server_log
from demo.scheduling_delay import Pace
from demo.tables import Record, Tables
from kardia.events import DEFAULT_LANES
from kardia.kafka.releases import version_of
from supervise import process
from supervise.process import ProcessError
from tests.night import watch
from tests.night.cluster import elections, of_holders
from tests.night.compare import Night, compare
from tests.night.faults import MEMBERS, QUIET_END_S, SPARK, draw
from tests.night.losses import Ledger, account, lines_in
from tests.night.report import Result
from tests.night.stage import Stage, now_ms
from tests.night.table_polls import Looking
from tests.night.told import Told, compare_told, notices, outages, unsure_of

STALL_FROM_MS = 10
"""Shorter ones are within what an instant may be off."""

TABLES_TIMEOUT_S = 240.0
"""Until the tables have everything: seconds, a minute where the job was killed last."""

ASK_TIMEOUT_S = 120.0

_MEMBER_ID = re.compile(r"[A-Za-z0-9._-]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Options:
    """What the command line chose."""

    minutes: float
    seed: int
    version: str
    directory: Path
    follow_server_log: bool = True
    brokers: int = 1
    spared: tuple[str, ...] = ()
    """Roles that nothing befalls, so that each lives through the whole night."""
    engine: str = SPARK


ALL_ARE_NAMED = (3, 0, 0)
"""First release that writes down the id of each dynamic member, also of one that joins while its group rebalances."""


def _member_ids(logs: Sequence[str]) -> frozenset[str]:
    return frozenset(found for text in logs for found in _MEMBER_ID.findall(text))


def play(options: Options, told: Callable[[str], None]) -> Result:
    """A whole night; ProcessError where it could not be played."""
    watched = watch.Watch()
    faults: list[str] = []
    with (
        Stage(
            options.directory,
            options.version,
            brokers=options.brokers,
            seed=options.seed,
            follow_server_log=options.follow_server_log,
            engine=options.engine,
        ) as stage,
        Pace(options.directory / "pace.log", STALL_FROM_MS) as pace,
    ):
        stage.start_kardia()
        beside = f"{options.brokers} brokers" if options.brokers > 1 else "a broker"
        told(f"Kardia is up beside {beside} of Kafka {options.version}; everything is in {options.directory}.")
        stage.start_consumers()
        looking = Looking(stage.data / "tables")
        began_s = time.monotonic()
        _steps(stage, (watched, looking), options, began_s, told)
        hours = (time.monotonic() - began_s) / 3_600
        until_ms = now_ms()
        members_now = stage.members_now()
        stalls = pace.stalls()
        tables = Tables(stage.data / "tables")
        faults += _await_tables(tables, until_ms)
        faults += [f"{role} does not answer at the end" for role in stage.unready()]
        watched.look(stage.roles())
        if not stage.kardia_runs:
            faults.append(f"kardia up ended by itself:\n{process.tail(stage.up_log)}")
        elif (code := stage.stop_kardia()) != 0:
            faults.append(f"kardia up ended with exit code {code}")
        faults += [f"left behind: {one}" for one in stage.left_behind()]
        logs = stage.cluster.server_logs()
        ever = {name: tables.rows(name) for name in ("members", "rebalances", "predictions")}
        lines, emptied = lines_in(stage.cluster.request_lines()), stage.cluster.emptied(until_ms)
        faults += _asked(stage.data / "tables")
        done = list(stage.done)
        messages = stage.receiver.messages
        sizes = watch.log_sizes(stage.up_log, stage.data / "logs")
    memory = watch.memory(watched.samples + watch.heap_samples(sorted((options.directory / "gc").glob("*.log"))))
    faults += [fault for one in memory for fault in one.faults] + watch.floods(sizes, hours)
    lost = account(
        Ledger(
            lines=lines,
            emptied=emptied,
            done=done,
            progress=tables.rows("progress"),
            events=_archived(tables) if options.engine == SPARK else None,
            outages=outages(done),
            until_ms=until_ms,
            lanes=DEFAULT_LANES if options.engine == SPARK else 1,
        )
    )
    facts = of_holders([list(server_log.facts(text.splitlines())) for text in logs], [elections(text) for text in logs])
    said = compare_told(
        Told(
            notices=notices(messages),
            facts=facts,
            dangers=looking.dangers(),
            awake=looking.awake,
            unsure=unsure_of(ever["predictions"]),
            outages=outages(done),
            sessions_ms={plan.group_id: plan.session_timeout_ms for plan in MEMBERS},
            until_ms=until_ms,
            gaps=lost.gaps,
        )
    )
    comparison = compare(
        Night(
            facts=facts,
            ever=ever,
            until_ms=until_ms,
            members_now=members_now,
            member_ids=_member_ids(logs) if version_of(options.version) >= ALL_ARE_NAMED else None,
            was_given=stage.cluster.requests_name,
            stalls=stalls,
            by_requests_alone=not options.follow_server_log,
            gaps=lost.gaps,
        )
    )
    return Result(
        seed=options.seed,
        minutes=options.minutes,
        version=options.version,
        server_log_followed=options.follow_server_log,
        brokers=options.brokers,
        spared=options.spared,
        engine=options.engine,
        done=done,
        comparison=comparison.and_also(said.findings, said.counts).and_also(lost.findings, lost.counts),
        memory=memory,
        log_bytes=sizes,
        hours=hours,
        faults=faults,
    )


def _steps(
    stage: Stage,
    watching: tuple[watch.Watch, Looking],
    options: Options,
    began_s: float,
    told: Callable[[str], None],
) -> None:
    """Do what was drawn, each at its time, and let everything become well again before the end."""
    watched, looking = watching
    length_s = options.minutes * 60
    waiting = [step for step in draw(options.seed, length_s, options.engine) if step.whom not in options.spared]
    well_s = length_s - QUIET_END_S / 2
    while (now_s := time.monotonic() - began_s) < length_s:
        while waiting and waiting[0].at_s <= now_s:
            step = waiting.pop(0)
            told(f"{now_s:7.1f} s  {step.what} {step.whom}")
            stage.play(step)
        if now_s >= well_s:
            stage.well_again()
            well_s = length_s
        stage.tend()
        watched.look(stage.roles())
        looking.look(now_ms(), stage.notifier_is_awake)
        time.sleep(0.1)


def _archived(tables: Tables) -> list[Record]:
    return tables.rows("events", ["event_id", "kind", "group_id", "logged_at_ms", "connection"])


def _await_tables(tables: Tables, until_ms: int) -> list[str]:
    with suppress(ProcessError):
        process.until(lambda: tables.complete_to_ms() >= until_ms, TABLES_TIMEOUT_S, lambda: "", pause_s=2.0)
    behind_ms = until_ms - tables.complete_to_ms()
    return [f"the tables are {behind_ms / 1_000:.1f} s behind at the end"] if behind_ms > 0 else []


def _asked(tables: Path) -> list[str]:
    """`kardia why` and `kardia explain` answer about every group."""
    said = []
    for group_id in sorted({plan.group_id for plan in MEMBERS}):
        for words in (("why", group_id), ("explain", "--group", group_id)):
            command = [sys.executable, "-m", "cli.main", *words, "--tables", str(tables)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, env=process.environ(), check=False
            )
            (tables.parent / f"{words[0]}-{group_id}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
            if done.returncode or "Traceback" in done.stderr:
                said.append(f"kardia {' '.join(words)} ended with exit code {done.returncode}: {done.stderr[-300:]}")
    return said
