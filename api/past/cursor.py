"""Cursors: where a page ended, sealed so that only this server's key can have made them.

A cursor pins the batch that the first page saw. Rows are only ever added, with higher batch ids, so all pages together
are one view of the tables: no row twice, none missing, while the job writes and compacts. It is bound to its question
(route, cluster, group, filters), to the token that it was given to, and to the tables; a cursor of another question, of
another token, or of tables that were made anew is refused, and the seal is checked before decoding.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from api.errors import BadCursor

_SEAL_BYTES = 16
CURSOR_CHARS_MAX = 2_000


class Place(NamedTuple):
    """A place between two rows: the batch the first page saw, and the sort values of the last row given."""

    batch_id: int
    after: tuple[Any, ...]


class Cursors:
    """Makes and reads cursors under one key; several servers behind one name need the same key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, principal: str, tables: str) -> Cursors:
        """Cursors of one caller over tables of one identity; no others can be read by them."""
        return Cursors(hmac.digest(self._key, orjson.dumps([principal, tables]), "sha256"))

    def write(self, question: Sequence[Any], place: Place) -> str:
        """Cursor for the rows behind `place`."""
        data = orjson.dumps([place.batch_id, *place.after])
        return base64.urlsafe_b64encode(self._seal(question, data) + data).rstrip(b"=").decode("ascii")

    def read(self, question: Sequence[Any], text: str) -> Place:
        """Place of a cursor; BadCursor if it is not ours or belongs to another question."""
        try:
            if len(text) > CURSOR_CHARS_MAX:
                raise ValueError("too long")
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _refused() from None
        seal, data = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(question, data)):
            raise _refused()
        batch_id, *after = orjson.loads(data)
        return Place(batch_id, tuple(after))

    def _seal(self, question: Sequence[Any], data: bytes) -> bytes:
        return hmac.digest(self._key, orjson.dumps(list(question)) + b"\0" + data, "sha256")[:_SEAL_BYTES]


def _refused() -> BadCursor:
    return BadCursor(
        "cursor: expected the next_cursor of an answer to this same question, with the same filters and token, over "
        "these tables; ask without a cursor."
    )
