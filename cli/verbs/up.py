"""`kardia up`: all roles of one machine against an existing broker, from one file. Puts signals and processes together.

It reads no log and no topic itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import PLACE

WATCH_S = 0.5
"""How soon a role that fell is noticed; small beside the seconds that a start takes."""


def up(
    config: Annotated[Path, typer.Option(help="The one configuration file (YAML).", **PLACE)] = Path("kardia.yaml"),
    check: Annotated[
        bool, typer.Option("--check", help="Check the file, show what would be started, and stop.")
    ] = False,
) -> None:
    """Start everything on this machine that the file asks for, and keep it up: one process, or one for each role."""
    import shlex
    import time

    from rich.console import Console

    from supervise.change_engine import moved
    from supervise.process import ProcessError, stoppable
    from supervise.roles import api_url, move_command, roles
    from supervise.supervisor import Supervisor
    from supervise.up_config import ConfigError, busy_ports, load, owner_of

    out = Console(soft_wrap=True, highlight=False, markup=False)
    err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        settings = load(config)
        moves = owner_of(settings) not in (None, settings.engine)
        if check:
            if moves:
                out.print(f"first, as the tables are those of the other engine: {shlex.join(move_command(settings))}")
            for role in roles(settings):
                out.print(f"{role.name}: {shlex.join(role.command)}")
            return
        busy = busy_ports(settings)
        if busy:
            raise ConfigError("\n".join(f"{config}: {problem}" for problem in busy))
        settings.tables.mkdir(parents=True, exist_ok=True)
        with stoppable():
            if moves:
                moved(settings, out.print)
        with stoppable(), Supervisor(roles(settings), out.print) as supervisor:
            out.print(f"Kardia is up: {api_url(settings)}/ (stop with Ctrl-C)")
            while True:
                supervisor.watch()
                time.sleep(WATCH_S)
    except KeyboardInterrupt:
        out.print("Stopped.")
    except (ConfigError, ProcessError, OSError) as error:
        err.print(f"kardia up: {error}")
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None
