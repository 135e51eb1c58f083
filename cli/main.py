"""`kardia`: one command, a verb for each role. Imports only the verbs' signatures; the rest is loaded when called."""

from __future__ import annotations

import gc
import importlib
import os
import sys

import typer

from cli.asking.left_out import BY_READERS, leave_out
from cli.extras import SOURCE_ONLY, is_there
from cli.options import Command
from cli.verbs.serve import follows
from kardia import __version__

PANELS = {
    "To begin with": ("demo",),
    "Questions": (
        "explain",
        "why",
        "history",
        "incident",
        "groups",
        "group",
        "member",
        "lag",
        "watch",
        "check",
        "rejected",
        "disagreements",
        "surprises",
        "trace",
    ),
    "Roles": ("doctor", "up", "live", "collect", "capture", "stream", "move", "replay", "serve", "notify", "bench"),
}
"""Verbs in the order of the help: what it looks like, what one asks, and the roles in the order of the flow."""

VERBS = tuple(verb for verbs in PANELS.values() for verb in verbs)

ASK_OR_SERVE = (*PANELS["Questions"], "serve", "notify")
"""Verbs that read tables and start no Spark."""

READ_LOGS = ("collect", "live", "surprises")
"""Verbs that read logs and start no Spark."""

ANSWER_AND_END = frozenset(PANELS["Questions"]) - {"watch"}
"""Verbs whose process ends with its answer: what it has loaded lives as long as it, and looking through that for
garbage, each time that more is loaded, was a sixth of its CPU time."""

ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL", "system"
"""Arrow's own allocator keeps what each of its threads once had: a notifier over the tables of an hour kept 40 MB more
by it than by the system's, at the same CPU time. Read when Arrow is loaded, in this process and those it starts."""

app = typer.Typer(
    name="kardia",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The liveness of Kafka consumer groups, reconstructed from the traffic itself: which member will be evicted, "
    "when and why; who stopped polling; what started a rebalance, whom it waited for and what it cost.",
)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"kardia {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_version, is_eager=True
    ),
) -> None:
    """Hold the options that come before a verb."""


for _panel, _verbs in PANELS.items():
    for _verb in _verbs:
        _module = importlib.import_module(f"cli.verbs.{_verb}")
        app.command(
            _verb,
            cls=getattr(_module, "COMMAND", Command),
            rich_help_panel=_panel,
            hidden=_verb in SOURCE_ONLY and not is_there(_verb),
        )(getattr(_module, _verb))


def run() -> None:
    """Entry point of the console script."""
    os.environ.setdefault(*ARROW_POOL)
    if sys.argv[1:2] and (sys.argv[1] in READ_LOGS or (sys.argv[1] == "serve" and follows(sys.argv[2:], os.environ))):
        leave_out(BY_READERS)
    elif sys.argv[1:2] and sys.argv[1] in ASK_OR_SERVE:
        leave_out()
    if sys.argv[1:2] and sys.argv[1] in ANSWER_AND_END:
        gc.disable()
    app(prog_name="kardia")


if __name__ == "__main__":
    run()
