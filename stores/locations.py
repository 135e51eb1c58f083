"""Where tables, checkpoints and files lie: a path, or a location with a scheme, as people and object stores write it.

    local    a folder or file of this machine: a path, or `file://` in front of one
    folder   the same, or a folder in an S3-compatible store: s3://BUCKET/FOLDER (s3a:// is the same place)

Anything else (`abfss://`, `gs://`, `hdfs://`) is refused here, at once and with a sentence, because `pathlib` would
take it silently: of `gs://bucket/tables` it makes the folder `gs:/bucket/tables` below the current one. Every option
and every setting that takes a place goes through one of the two. It opens nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Of two characters at least; `pathlib` leaves one of the slashes behind it."""

_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/(?!/))", re.IGNORECASE)
"""What may stand before the path of a file on this machine (RFC 8089)."""

_STORE = re.compile(
    r"s3a?://(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9])(?P<folder>(?:/[A-Za-z0-9!_.*'()=+@,-]+)*)/?",
    re.IGNORECASE,
)
"""A bucket by Amazon's names, the old ones included, and a folder of the characters that Amazon calls safe, and
=+@, which Spark and people use. No name or password, no query: what is secret is not part of a place."""

EXPECTED = "a folder or file of this machine, as a path or as file:///path"
EXPECTED_FOLDER = "a folder of this machine, as a path or as file:///path, or of a store, as s3://BUCKET/FOLDER"


class LocationError(ValueError):
    """A place that Kardia cannot use. The text has what, where, what was expected and what to do next."""

    def __init__(self, what: str, where: str, next_step: str, expected: str = EXPECTED) -> None:
        """Build the sentence."""
        super().__init__(f"{what} ({where}). Expected: {expected}. Next: {next_step}.")
        self.what = what
        self.where = where
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Store:
    """A folder in an S3-compatible store. `/` names one below it, as with a path."""

    bucket: str
    prefix: str
    """Key before the names in it, without a slash at either end; empty for the bucket itself."""

    def __truediv__(self, name: str) -> Store:
        """A folder or an object below this one."""
        return Store(self.bucket, f"{self.prefix}/{name}" if self.prefix else name)

    def __str__(self) -> str:
        """As delta-rs takes it, and as people read it."""
        return f"s3://{self.key}"

    @property
    def key(self) -> str:
        """Bucket and prefix, as Arrow's file systems take it."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    @property
    def hadoop(self) -> str:
        """As Spark takes it: Hadoop knows this kind of store by another scheme."""
        return f"s3a://{self.key}"


Folder: TypeAlias = Path | Store
"""Where tables can lie."""


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
            f"{found[1]}:// is a place in a store that cannot be used here",
            shown(text),
            "name a folder on a local or mounted disk; tables alone may lie in a store, in one that speaks S3",
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


def folder(given: str | Path | Store) -> Folder:
    """The folder that a location means, of this machine or of a store; LocationError for any other."""
    if isinstance(given, Store):
        return given
    text = str(given)
    found = _SCHEME.match(text)
    if found is None or found[1].lower() == "file":
        return local(given)
    if found[1].lower() not in ("s3", "s3a"):
        raise LocationError(
            f"{found[1]}:// is a place in a store that cannot be used yet",
            shown(text),
            "name a folder on a local or mounted disk, or in a store that speaks S3; copy what lies elsewhere there",
            EXPECTED_FOLDER,
        )
    whole = _STORE.fullmatch(text)
    if whole is None or any(part in (".", "..") for part in whole["folder"].split("/")):
        raise LocationError(
            "this is not a folder in a store that speaks S3",
            shown(text),
            "write s3://BUCKET/FOLDER, with two slashes and names of letters, digits and -_.!*'()=+@, only; keys and "
            "passwords come from the environment or a profile, never from here",
            EXPECTED_FOLDER,
        )
    return Store(whole["bucket"], whole["folder"].strip("/"))


def checked(given: object) -> object:
    """`local` for a setting whose type somebody else checks: what is neither text nor path stays as it is."""
    return local(given) if isinstance(given, str | Path) else given


def checked_folder(given: object) -> object:
    """`folder` for a setting whose type somebody else checks."""
    return folder(given) if isinstance(given, str | Path) else given


def shown(text: str) -> str:
    """A location for a message: no password before an @, no query behind the path, nothing that acts on a terminal."""
    text = re.sub(r"(?<=:/)(/?)[^/@]*:[^/@]*@", r"\1…@", text).partition("?")[0][:200]
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
