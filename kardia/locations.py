"""Where tables, checkpoints and files lie: a path, or a location with a scheme, as people and object stores write it.

Kardia reads and writes folders of this machine: a path, or `file://` in front of one. Any other scheme (`s3a://`,
`abfss://`, `gs://`) is refused here, at once and with a sentence, because `pathlib` would take it silently: of
`s3a://bucket/tables` it makes the folder `s3a:/bucket/tables` below the current one. Every option and every setting
that takes a place goes through `local`. It opens nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Of two characters at least; `pathlib` leaves one of the slashes behind it."""

_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/(?!/))", re.IGNORECASE)
"""What may stand before the path of a file on this machine (RFC 8089)."""

EXPECTED = "a folder or file of this machine, as a path or as file:///path"


class LocationError(ValueError):
    """A place that Kardia cannot use. The text has what, where, what was expected and what to do next."""

    def __init__(self, what: str, where: str, next_step: str) -> None:
        """Build the sentence."""
        super().__init__(f"{what} ({where}). Expected: {EXPECTED}. Next: {next_step}.")
        self.what = what
        self.where = where
        self.next_step = next_step


def local(given: str | Path) -> Path:
    """The path that a location of this machine means; LocationError for any other. A path stays as it was written.

    In `file://` every character may be written as `%` and two digits; a percent sign must be. A folder whose own name
    looks like a scheme is meant by `./` or a whole path before it, and comes back as a whole path.
    """
    text = str(given)
    found = _SCHEME.match(text)
    if found is None:
        path = Path(text)
        return path.absolute() if _SCHEME.match(f"{path}/") else path
    if found[1].lower() != "file":
        raise LocationError(
            f"{found[1]}:// is a place in a store that cannot be used yet",
            shown(text),
            "name a folder on a local or mounted disk; what lies in a store is copied there first",
        )
    prefix = _FILE.match(text)
    meant = unquote(text[prefix.end() :]) if prefix else ""
    if not meant or "\0" in meant:
        raise LocationError(
            "this is not a file of this machine",
            shown(text),
            "write three slashes and the whole path: file:///var/lib/kardia/tables; a name of another machine must not "
            "stand between them",
        )
    return Path(meant)


def checked(given: object) -> object:
    """The same for a setting whose type somebody else checks: what is neither text nor path stays as it is."""
    return local(given) if isinstance(given, str | Path) else given


def shown(text: str) -> str:
    """A location for a message: no password before an @, no query behind the path, nothing that acts on a terminal."""
    text = re.sub(r"(?<=:/)(/?)[^/@]*:[^/@]*@", r"\1…@", text).partition("?")[0][:200]
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
