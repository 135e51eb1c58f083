"""Whether a log can be followed: a collector reads lines as the broker wrote them, or as a container runtime wrapped
them (`ingest.tail.wrapped`).

What the journal or an export wrapped, and what is compressed, is for a replay: followed as it is, some of its lines
would be read, others refused, and sentences of the coordinator passed over without a word. Looks at the head of a file;
keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ingest.archives.envelopes import form_of, has_plain_lines
from ingest.archives.opened import packing_of
from ingest.errors import SettingsError
from ingest.layouts.recogniser import layouts
from ingest.tail.wrapped import form_in

HEAD_BYTES = 64 * 1024
"""So much of a file shows its form: a container runtime cuts lines at 16 KiB."""

EXPECTED = "a log as the broker wrote it, or as a container runtime keeps it (CRI, json-file)"

NEXT = (
    "let the broker write a file (docs/request-logging.md has the appender), put it on a volume that the collector "
    "reads, and follow that; `kardia replay` reads this one as it is"
)


def why_not(path: Path, log_pattern: str = "") -> str | None:
    """What a file is that cannot be followed; empty if it can, None while too little is written to tell. Raises
    OSError."""
    if packing_of(path) is not None:
        return "the log is compressed"
    with path.open("rb") as opened:
        head = opened.read(HEAD_BYTES)
    if b"\n" not in head and len(head) < HEAD_BYTES:
        return None
    if has_plain_lines(head) or form_in(head) is not None:  # an id with line breaks never forges all lines
        return ""
    form = form_of(head, layouts(log_pattern))
    return "" if form is None else f"the lines of this log are wrapped ({form.name})"


class Followable:
    """Looks at each log once, as soon as there is something in it."""

    def __init__(self, log_pattern: str = "") -> None:
        """`log_pattern`: conversion pattern of the logs."""
        self._log_pattern = log_pattern
        self._known: set[Path] = set()
        self._left_out: set[Path] = set()

    def check(self, path: Path) -> None:
        """Raises `SettingsError` for one that cannot be followed. One that is not there yet is looked at later."""
        if path in self._known:
            return
        try:
            found = why_not(path, self._log_pattern)
        except OSError:
            return  # who follows it says so
        if found is None:
            return
        if found:
            raise SettingsError(found, str(path), EXPECTED, NEXT)
        self._known.add(path)

    def takes(self, path: Path, say: Callable[[str], None]) -> bool:
        """Whether a log that is there by now can be followed; why not is said once. What comes to lie beside the logs
        of a collector that runs does not end it."""
        if path in self._left_out:
            return False
        try:
            self.check(path)
        except SettingsError as error:
            self._left_out.add(path)
            say(f"left out: {error}")
        return path not in self._left_out
