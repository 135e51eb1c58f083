"""Cursors: where a page ended, signed so that only this server's key can have made them.

A cursor pins the batch that the first page saw. Rows are only ever added, with higher batch ids, so all pages together
are one view of the tables: no row twice, none missing, while the job writes and compacts. It is bound to its question
(route, cluster, group, filters), to the token that it was given to, and to the tables; a cursor of another question, of
another token, or of tables that were made anew is refused. itsdangerous signs, checks the signature before anything is
decoded, and makes text that fits into a URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from hashlib import blake2s
from typing import Any, NamedTuple

import orjson
from itsdangerous import BadData, URLSafeSerializer

from api.errors import BadCursor

CURSOR_CHARS_MAX = 2_000
_SERIALIZERS_KEPT = 1_024
"""Dashboards ask the same questions again and again."""

_SIGNING = {"key_derivation": "hmac", "digest_method": partial(blake2s, digest_size=18)}
"""A signature of 18 bytes is 24 characters of each cursor, with no bit to spare, so each changed one is noticed. One of
SHA-256 would be 43."""


class Place(NamedTuple):
    """A place between two rows: the batch the first page saw, and the sort values of the last row given."""

    batch_id: int
    after: tuple[Any, ...]


class _Json:
    """What itsdangerous asks of a serializer, in a third of the time of the standard library's."""

    @staticmethod
    def dumps(value: Any) -> str:
        return orjson.dumps(value).decode()

    @staticmethod
    def loads(text: str) -> Any:
        return orjson.loads(text)


class Cursors:
    """Makes and reads cursors under one key; several servers behind one name need the same key."""

    def __init__(self, key: bytes, whose: tuple[str, ...] = ()) -> None:
        self._key = key
        self._whose = whose

    def of(self, principal: str, tables: str) -> Cursors:
        """Cursors of one caller over tables of one identity; no others can be read by them."""
        return Cursors(self._key, (principal, tables))

    def write(self, question: Sequence[Any], place: Place) -> str:
        """Cursor for the rows behind `place`."""
        return self._signed(question).dumps([place.batch_id, *place.after])

    def read(self, question: Sequence[Any], text: str) -> Place:
        """Place of a cursor; BadCursor if it is not ours or belongs to another question."""
        if len(text) > CURSOR_CHARS_MAX or not text.isascii():
            raise _refused()
        try:
            batch_id, *after = self._signed(question).loads(text)
        except BadData:
            raise _refused() from None
        return Place(batch_id, tuple(after))

    def _signed(self, question: Sequence[Any]) -> URLSafeSerializer:
        """Whoever asks, the tables and the question are what itsdangerous calls the salt: each has a key of its own."""
        return _serializer(self._key, orjson.dumps([self._whose, list(question)]))


@lru_cache(_SERIALIZERS_KEPT)
def _serializer(key: bytes, salt: bytes) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt, serializer=_Json, signer_kwargs=_SIGNING)


def _refused() -> BadCursor:
    return BadCursor(
        "cursor: expected the next_cursor of an answer to this same question, with the same filters and token, over "
        "these tables; ask without a cursor."
    )
