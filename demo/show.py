"""The whole demo in order: broker, pipeline, consumers, story, verdict, replay, and everything stopped again.

Puts the parts together and decides nothing about the verdict. Everything it makes is below one directory, which the
next run replaces; nothing outside it is touched but the cache of jars.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.text import Text

from demo import alarm_report, replayed, report, request_log, server_log, watching
from demo.alarm import Alarm
from demo.broker import NEWEST, Broker, BrokerSettings, jar_set
from demo.consumer_processes import Cast
from demo.director import Director
from demo.evidence import Evidence, GivenUp, Tolerance, Witness
from demo.narrator import Teller
from demo.ports import free_ports
from demo.scenario import FAULTS, PARTITIONS, SESSION_TIMEOUT_MS, TOPIC, Cue, has_epochs
from demo.scheduling_delay import Pace, Stall
from demo.tables import Tables
from demo.told import Begun
from demo.verdict import Verdict, judge
from spark_jobs.jvm import jars, java
from spark_jobs.leases.table_owner import Engine
from supervise import process
from supervise.process import ProcessError
from supervise.roles import api_url, roles
from supervise.supervisor import Supervisor
from supervise.up_config import CollectSection, NotifySection, ServeSection, StreamSection, UpConfig

CLUSTER = "demo"
MARKER = ".kardia-demo"
"""A directory with this file was made by the demo and may be replaced by it."""

ROOM_MB = 1_000
"""Logs, topic and tables of a run of two minutes are about 100 MB; the rest is slack."""

SETTLE_TIMEOUT_S = 90.0
"""Until the tables have everything of the story: a second or two live, a minute on a busy machine."""

STALL_FROM_MS = 3
"""Shorter waits are those of any machine."""

PROMPT_MS = 2_000
"""The story begins when the tables are no further behind than this: a first batch of Spark takes its time."""

PROMPT_TIMEOUT_S = 60.0

FIRST_BATCH_TIMEOUT_S = 180.0
"""Until there is anything in the tables: 10 s, and more than a minute where five others want the processors."""

LATE = (
    "What was predicted too late was in the tables too late: this machine is busy with other things. With --stretch 2 "
    "all timeouts of the story are twice as long, and so is the time to see them coming."
)

TOO_LATE = "too late"
"""In the sentence of a timeout that was predicted, but not in time: only the machine is to blame for that."""

VERDICT = "verdict.json"
"""File in the directory of a run: what was wrong, as sentences, and how exact the instants were."""

_MAX_POLL = "_MAX_POLL_EXCEEDED"


@dataclass(frozen=True)
class Options:
    """What the command line chose."""

    faults: Sequence[str]
    directory: Path
    for_s: float = 0.0
    stay: bool = False
    port: int = 0
    kafka: str = NEWEST
    with_prometheus: bool = False
    stretch: int = 1
    tolerance: Tolerance = field(default_factory=Tolerance)
    engine: Engine = "spark"
    """What steps the lanes: three processes and a topic, or one."""


@dataclass(frozen=True)
class Played:
    """A story that is over."""

    seen_at_ms: dict[tuple[str, str, str], int]
    """(group, member, kind) -> when an open prediction was first readable."""
    begun: list[Begun]
    """When each fault began."""
    from_ms: int
    """When all groups were up."""


def show(options: Options, console: Console) -> bool:
    """Run the demo; whether everything was reconstructed. ProcessError and JvmError are for the caller to print."""
    programs = watching.programs() if options.with_prometheus else None
    _prepare(options.directory)
    runtime = java.find()
    for name in (jar_set(options.kafka), *(["spark"] if options.engine == "spark" else [])):
        jars.ensure(name)
    of_broker = "" if options.engine == "spark" else ", for the broker alone"
    console.print(
        f"Java {runtime.version} from {runtime.origin}{of_broker}; everything of this run is in {options.directory}.",
        soft_wrap=True,
    )
    with ExitStack() as stack:
        broker = Broker(options.directory / "broker", broker_settings(options))
        stack.callback(broker.stop)
        broker.start()
        broker.create_topic(TOPIC, PARTITIONS)
        console.print(f"A Kafka {broker.settings.version} broker listens on {broker.bootstrap}.")
        alarm = stack.enter_context(Alarm(programs, options.directory / "alarm")) if programs is not None else None
        config = configuration(options, broker, alarm)
        config.tables.mkdir(parents=True, exist_ok=True)
        running = roles(config) + (alarm.roles(api_url(config)) if alarm is not None else [])
        supervisor = stack.enter_context(
            Supervisor(running, lambda told: console.print(told, soft_wrap=True, markup=False))
        )
        console.print(f"API and page: {api_url(config)}/  (OpenAPI: {api_url(config)}/openapi.json)", style="bold")
        if alarm is not None:
            watchers = alarm.watchers
            console.print(f"Prometheus: {watchers.prometheus_url}/  Alertmanager: {watchers.alertmanager_url}/")
        cast = stack.enter_context(Cast(broker.bootstrap, options.directory / "consumers"))
        pace = stack.enter_context(Pace(options.directory / "pace.log", STALL_FROM_MS))
        played = _play(options, console, supervisor, cast, config, alarm)
        # Nothing that happens from here on counts: both sides are cut at this instant.
        until_ms = _now_ms()
        stall_ms, stalls = pace.worst_ms(), pace.stalls()
        tables = Tables(config.tables)
        _await_tables(tables, until_ms)
        verdict = _judge(broker, tables, until_ms, played, cast, options.tolerance, stalls)
        console.print("Replaying the archived logs ...", style="dim")
        offsets = replayed.capture(broker.bootstrap, options.directory / "offsets.jsonl")
        session_ms = SESSION_TIMEOUT_MS * options.stretch if has_epochs(options.kafka) else -1
        again = replayed.replay(
            broker.request_log, offsets, CLUSTER, until_ms, options.directory / "replayed", session_ms
        )
        comparisons = replayed.compare(tables, again, until_ms)
        report.show(console, verdict, comparisons)
        faults = [*verdict.faults, *(comparison.fault for comparison in comparisons if comparison.fault)]
        if alarm is not None:
            faults += _told(console, alarm, tables, played.begun, config)
        if not any(not line.routine for line in verdict.lines):
            faults.append("The broker's log tells of no fault at all, so nothing has been shown.")
        _conclude(console, faults, verdict, stall_ms)
        _leave_for_machines(options.directory / VERDICT, faults, verdict, stall_ms)
        if options.stay:
            _stay(console, supervisor, api_url(config))
        else:
            _ask_on(console, verdict, config.tables)
    return not faults


def broker_settings(options: Options) -> BrokerSettings:
    """The broker of the story: members of the consumer protocol take their session timeout from it."""
    session_ms = SESSION_TIMEOUT_MS * options.stretch
    return BrokerSettings(
        version=options.kafka,
        extra={
            "group.consumer.session.timeout.ms": str(session_ms),
            "group.consumer.heartbeat.interval.ms": str(session_ms // 4),
        }
        if has_epochs(options.kafka)
        else {},
    )


def configuration(options: Options, broker: Broker, alarm: Alarm | None) -> UpConfig:
    """What an operator would write into kardia.yaml for this broker; without server.log, which the verdict uses."""
    collect_port, stream_port, api_port = free_ports(3)
    return UpConfig(
        cluster=CLUSTER,
        bootstrap_server=broker.bootstrap,
        engine=options.engine,
        data=options.directory / "kardia",
        collect=CollectSection(
            request_log=(str(broker.request_log),), server_log=(), log_timezone="UTC", metrics_port=collect_port
        ),
        stream=StreamSection(metrics_port=stream_port),
        serve=ServeSection(port=options.port or api_port),
        notify=alarm.section() if alarm is not None else NotifySection(),
    )


def _prepare(directory: Path) -> None:
    if directory.exists() and any(directory.iterdir()) and not (directory / MARKER).exists():
        raise ProcessError(
            f"The directory {directory} holds files that are not the demo's. Name an empty one with --directory."
        )
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / MARKER).touch()
    free_mb = shutil.disk_usage(directory).free // 1_000_000
    if free_mb < ROOM_MB:
        raise ProcessError(
            f"The disk of {directory} has {free_mb} MB left and the demo needs {ROOM_MB} MB. Free some, or name a "
            "directory on another disk with --directory."
        )


def _play(
    options: Options, console: Console, supervisor: Supervisor, cast: Cast, config: UpConfig, alarm: Alarm | None
) -> Played:
    """Play the story and tell it."""
    begun: list[Begun] = []
    director = Director(cast, list(options.faults), options.for_s, options.stretch)
    with Teller(console, config.tables, _now_ms) as teller:

        def meanwhile() -> None:
            supervisor.watch()
            teller.look()
            for sentence in alarm.news() if alarm is not None else ():
                teller.told(sentence)

        def told(cue: Cue) -> None:
            fault = FAULTS[cue.fault]
            if cue.step.told == fault.steps[0].told:
                begun.append(Begun(cue.fault, fault.group_id, _now_ms()))
            teller.done(cue.step.told)

        teller.note("The roles start. Meanwhile the broker rehearses with a group that is not in the story.")
        director.rehearse(epochs=has_epochs(options.kafka))
        _await_prompt(teller, Tables(config.tables))
        director.raise_groups(teller.done)
        teller.note("All groups are up. The story: " + "; ".join(FAULTS[name].title for name in options.faults) + ".")
        if options.stretch > 1:
            teller.note(f"All times of the story are {options.stretch} times as long as it says.")
        from_ms = _now_ms()
        director.play(told, meanwhile)
        fallen = cast.ended_early(director.expected)
        if fallen:
            names = ", ".join(actor.plan.client_id for actor in fallen)
            raise ProcessError(f"Consumers ended that nobody ended: {names}.\n{process.tail(fallen[0].log)}")
        return Played(dict(teller.seen_at_ms), begun, from_ms)


def _await_prompt(teller: Teller, tables: Tables) -> None:
    """Begin when the job has caught up and keeps up; on a machine too busy for that, say so and begin all the same."""

    def behind_ms() -> int:
        return _now_ms() - tables.complete_to_ms()

    def prompt() -> bool:
        teller.look()
        return behind_ms() < PROMPT_MS

    with contextlib.suppress(ProcessError):  # Spark's first batch is the longest: without it nothing can be foretold
        process.until(lambda: tables.complete_to_ms() >= 0, FIRST_BATCH_TIMEOUT_S, lambda: "", pause_s=0.1)
    try:
        process.until(prompt, PROMPT_TIMEOUT_S, lambda: "", pause_s=0.1)
    except ProcessError:
        behind = (
            f"are {behind_ms() / 1000:.1f} s behind the broker" if tables.complete_to_ms() >= 0 else "are empty yet"
        )
        teller.note(
            f"The tables {behind}: this machine is busy with other things, and what should be predicted may be said "
            "too late."
        )


def _await_tables(tables: Tables, until_ms: int) -> None:
    process.until(
        lambda: tables.complete_to_ms() >= until_ms,
        SETTLE_TIMEOUT_S,
        lambda: (
            f"The tables in {tables.directory} have the log only up to {tables.complete_to_ms()} ms after "
            f"{SETTLE_TIMEOUT_S:.0f} s; {until_ms} ms was expected. Look into the logs of the roles beside them."
        ),
        pause_s=1.0,
    )


def _judge(
    broker: Broker,
    tables: Tables,
    until_ms: int,
    played: Played,
    cast: Cast,
    tolerance: Tolerance,
    stalls: Sequence[Stall],
) -> Verdict:
    facts = [fact for fact in server_log.read(broker.server_log) if fact.at_ms <= until_ms]
    return judge(
        Evidence(
            facts=facts,
            first_group_id=facts[0].group_id if facts else "",
            members=tables.standing("members"),
            rebalances=tables.standing("rebalances"),
            transitions=tables.standing("transitions"),
            predictions=tables.standing("predictions"),
            commits=[commit for commit in request_log.commits(broker.request_log) if commit.at_ms <= until_ms],
            witnesses=_witnesses(cast),
            given_up=_given_up(cast),
            from_ms=played.from_ms,
            tolerance=tolerance,
            stalls=stalls,
            seen_at_ms=played.seen_at_ms,
        )
    )


def _told(console: Console, alarm: Alarm, tables: Tables, begun: Sequence[Begun], config: UpConfig) -> list[str]:
    """Show who was told of what; what is wrong with it. What is on its way is waited for."""
    dangers = alarm.dangers(tables, _now_ms())
    with contextlib.suppress(ProcessError):  # what never came is a fault like any other
        process.until(lambda: not alarm.missing(dangers), SETTLE_TIMEOUT_S, lambda: "")
    delays = alarm.delays(dangers, begun, config.bootstrap_server, config.topic)
    alarm_report.show(console, delays, begun, dangers)
    return alarm.faults(dangers)


def _witnesses(cast: Cast) -> list[Witness]:
    """What the clients themselves said about poll intervals that they missed."""
    return [
        Witness(client_id, word["at_ms"])
        for client_id, said in cast.said().items()
        for word in said
        if word["what"] == "error" and _MAX_POLL in word["error"]
    ]


def _given_up(cast: Cast) -> list[GivenUp]:
    """When the clients themselves said that they gave partitions up."""
    return [
        GivenUp(client_id, word["at_ms"])
        for client_id, said in cast.said().items()
        for word in said
        if word["what"] == "revoked" and word["partitions"]
    ]


def _conclude(console: Console, faults: Sequence[str], verdict: Verdict, stall_ms: int) -> None:
    if faults:
        wrong = "One thing is wrong:" if len(faults) == 1 else f"{len(faults)} things are wrong:"
        console.print(wrong, style="bold red")
        for fault in faults:
            console.print(f"  {fault}", markup=False)
        within_ms = verdict.tolerance.instant_ms
        if stall_ms >= within_ms and verdict.max_ms > within_ms:
            console.print(
                f"This machine was busy: it kept a program waiting for {stall_ms} ms that wanted to run, and a broker "
                f"that waits decides and logs late. Run the demo while little else runs, or with --within "
                f"{within_ms + stall_ms}.",
                style="yellow",
            )
        if any(TOO_LATE in fault for fault in faults):
            console.print(LATE, style="yellow")
    else:
        console.print("Every fault was reconstructed, none was invented.", style="bold green")


def _leave_for_machines(path: Path, faults: Sequence[str], verdict: Verdict, stall_ms: int) -> None:
    """The verdict as JSON: `wrong`, and those of it that are only `late`; instants and the longest stall in ms."""
    said = {
        "wrong": [fault for fault in faults if TOO_LATE not in fault],
        "late": [fault for fault in faults if TOO_LATE in fault],
        "instants": len(verdict.errors_ms),
        "median_ms": verdict.median_ms,
        "max_ms": verdict.max_ms,
        "stall_ms": stall_ms,
    }
    path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def _ask_on(console: Console, verdict: Verdict, tables: Path) -> None:
    """What one can do next: the tables stay, and every question can be asked of them."""
    struck = [line.group_id for line in verdict.lines if line.lead_ms is not None]
    group_id = (struck or [line.group_id for line in verdict.lines if not line.routine] or ["GROUP"])[-1]
    here = Path.cwd()
    shown = tables.relative_to(here) if tables.is_relative_to(here) else tables
    kardia = sys.argv[0] if Path(sys.argv[0]).name == "kardia" else "kardia"
    console.print("The tables stay. Ask them, or run the demo with --stay to look around while it is up:")
    for verb, what in (
        (("why", group_id), "why it rebalanced last"),
        (("explain", group_id), "its whole story"),
        (("groups",), "how all groups stood at the end"),
        (("surprises",), "how many answers the model of the release predicted"),
        (("serve",), "the page"),
    ):
        command = Text(f"  {shlex.join((kardia, *verb, '--tables', str(shown)))}")
        command.append(f"  # {what}", style="dim")
        console.print(command, soft_wrap=True)


def _stay(console: Console, supervisor: Supervisor, url: str) -> None:
    console.print(f"Everything stays up until Ctrl-C: {url}/")
    try:
        while True:
            supervisor.watch()
            time.sleep(0.5)
    except KeyboardInterrupt:
        console.print("Stopping.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
