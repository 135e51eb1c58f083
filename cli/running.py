"""What verbs have in common that run until they are stopped: an ordered end, and sentences that act on no terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import Event

import typer


def ending_event() -> Event:
    """From now on the first SIGTERM or SIGINT only asks for the end, by this event; the second one ends the process at
    once. A server that runs meanwhile has handlers of its own, and raises what it got once more when it has ended. For
    threads that wait for it; the main thread, in which handlers run, must not."""
    ending = Event()

    def stop(number: int, _: object) -> None:
        if ending.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        ending.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return ending


def ordered_end() -> Callable[[], bool]:
    """From now on the first SIGTERM or SIGINT only asks for the end: the answer says whether one did. The second one
    ends the process at once. No lock is taken, as by `ending_event`: whoever asks may do so anywhere."""
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
