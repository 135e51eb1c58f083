"""`kardia demo`: a real broker, consumers with real faults, the whole pipeline, a verdict. Reads the options only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.options import PLACE

LOG_WIDTH = 150
"""Characters per line where nobody's terminal sets a limit: the table of the verdict then needs one line per row."""


def demo(
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            help="Play this fault only; may be repeated. One of join, leave, kill, poll-timeout, straggler, commit, "
            "static-restart, static-expiry, empty, migration, epoch-kill, held-back. Without it: all of them, about "
            "two minutes."
        ),
    ] = None,
    for_: Annotated[
        float, typer.Option("--for", min=0, help="Repeat the story until so many seconds have passed.")
    ] = 0.0,
    stay: Annotated[bool, typer.Option("--stay", help="Keep everything up after the verdict, until Ctrl-C.")] = False,
    directory: Annotated[Path, typer.Option(help="Where everything of the run goes.", **PLACE)] = Path(
        "kardia-data/demo"
    ),
    within: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Largest accepted difference, in ms, between an instant that Kardia names and the broker's log; the "
            "median may be a fifth of it. Where a program is seen to be kept waiting, as much more is accepted.",
        ),
    ] = None,
    stretch: Annotated[
        int,
        typer.Option(
            min=1, max=100, help="Make all times of the story so many times as long, for a machine that is too busy."
        ),
    ] = 1,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the API and the page; 0 takes a free one.")] = 0,
    with_prometheus: Annotated[
        bool,
        typer.Option(
            "--with-prometheus",
            help="Also run the notifier, Prometheus with Kardia's rules, and Alertmanager, which must be on the path "
            "(Debian packages prometheus and prometheus-alertmanager); shows who was told of which fault, how soon.",
        ),
    ] = False,
    kafka: Annotated[
        str | None,
        typer.Option(
            help="Release of the broker: 4.4.0, the newest, if none is named; 3.9.2, the last with the Scala "
            "coordinator; 2.7.2 or 2.3.1, whose request log is text. The jars of an older one, up to 48 MB, are "
            "fetched when it is first asked for.",
        ),
    ] = None,
    engine: Annotated[
        Literal["spark", "local"],
        typer.Option(
            help="What steps the lanes: `spark`, a topic and three processes; or `local`, one process that reads the "
            "broker's log itself. The verdict is the same.",
        ),
    ] = "spark",
) -> None:
    """Show on a real broker, with real faults, what Kardia sees; exit 0 only if every fault was reconstructed."""
    from rich.console import Console

    from demo.broker import NEWEST, releases
    from demo.evidence import Tolerance
    from demo.scenario import FAULTS, WITH_EPOCHS, played_on
    from demo.show import Options, show
    from spark_jobs.jvm.errors import JvmError
    from supervise.process import ProcessError, stoppable

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    unknown = [name for name in scenario or () if name not in FAULTS]
    if unknown:
        errors.print(f"kardia demo: there is no scenario {', '.join(unknown)}; there are {', '.join(FAULTS)}.")
        raise typer.Exit(2)
    release = NEWEST if kafka is None else kafka
    if release not in releases():
        errors.print(f"kardia demo: there is no broker {release}; there are {', '.join(releases())}.")
        raise typer.Exit(2)
    impossible = [name for name in scenario or () if name not in played_on(release)]
    if impossible:
        needs = "groups with epochs" if WITH_EPOCHS.intersection(impossible) else "static members"
        errors.print(f"kardia demo: {', '.join(impossible)} needs {needs}, which Kafka {release} has not.")
        raise typer.Exit(2)
    if with_prometheus and engine == "local":
        errors.print(
            "kardia demo: --with-prometheus shows how long each of the three processes took: it needs --engine spark."
        )
        raise typer.Exit(2)
    tolerance = Tolerance() if within is None else Tolerance(within)
    options = Options(
        scenario or played_on(release),
        directory.resolve(),
        for_,
        stay,
        port,
        release,
        with_prometheus,
        stretch,
        tolerance,
        engine,
    )
    try:
        with stoppable():
            right = show(options, console)
    except (ProcessError, JvmError, OSError) as error:
        errors.print(f"kardia demo: {error}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        errors.print("kardia demo: stopped before the verdict.")
        raise typer.Exit(130) from None
    raise typer.Exit(0 if right else 1)
