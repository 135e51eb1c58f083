"""The token file, followed: read again when it changes, so that a token is revoked or given without a restart.

Every request looks at the file before its token is compared. A file that cannot be used (half written, gone, one line
wrong) leaves the tokens in force that are known, and says so once and in a counter: nobody is shut out by a mistake in
the file, and a token is revoked only by a file that can be read. It is read again every `RETRY_MS` until it can be
used: what was wrong may have been the disk and not the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from api.access.tokens import Scope, TokenFileError, Tokens

log = logging.getLogger("kardia.api.token_file")

OUTCOMES = ("taken", "kept")
"""What came of a changed file: its tokens are in force, or those before it stay."""

RETRY_MS = 1_000

Mark = tuple[int, ...]


class TokenFile:
    """Tokens of a file as it is now; TokenFileError if it cannot be used at the start."""

    def __init__(self, path: Path, changed: Callable[[str], None] = lambda _: None) -> None:
        """`changed` is told one of `OUTCOMES` whenever the file has changed."""
        self._path = path
        self._changed = changed
        # Looked at before it is read: what is written in between is seen as another change.
        self._mark = self._look()
        self._tokens = Tokens.read(path)
        self._retry_at_ms: int | None = None
        """When to read a file again that could not be used."""

    def accept(self, authorization: bytes | None, now_ms: int) -> Scope | None:
        """As `Tokens.accept`, by the file as it is now."""
        self._follow(now_ms)
        return self._tokens.accept(authorization, now_ms)

    def key(self) -> bytes:
        """As `Tokens.key`, of the tokens in force."""
        return self._tokens.key()

    def _look(self) -> Mark:
        """What differs when the file does. The time of the last change of its entry too: permissions that were mended
        leave the content's alone."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _follow(self, now_ms: int) -> None:
        mark, before = self._look(), self._mark
        if mark == before and (self._retry_at_ms is None or now_ms < self._retry_at_ms):
            return
        self._mark = mark
        try:
            self._tokens = Tokens.read(self._path)
        except TokenFileError as error:
            self._retry_at_ms = now_ms + RETRY_MS
            if mark != before:
                log.warning("token_file.kept: the tokens read before stay in force. %s", error)
                self._changed("kept")
        else:
            self._retry_at_ms = None
            log.warning("token_file.taken file=%s", self._path.name)
            self._changed("taken")
