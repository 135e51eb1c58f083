"""What verbs have in common that run until they are stopped: an ordered end, and sentences that act on no terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable

import typer


def ordered_end() -> Callable[[], bool]:
    """From now on the first SIGTERM or SIGINT only asks for the end: the answer says whether one did. The second one
    ends the process at once."""
    signals = 0

    def stop(number: int, _: object) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return lambda: signals > 0


def sayer(verb: str) -> Callable[[str], None]:
    """Says sentences on standard error, the verb before each. Names of files and texts of errors may hold anything:
    nothing of them is to act on a terminal."""

    def say(text: str) -> None:
        plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
        typer.echo(f"{verb}: {plain}", err=True)

    return say
