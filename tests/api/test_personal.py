"""With `hide_personal` no answer of any route holds an address, a connection, or a client's own words.

A recorded story is told again by clients that come from `HOST`, as `PRINCIPAL`, and give `WORDS` as their reasons; then
every route is asked in every way, and all bytes of all answers are searched.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api.access.personal import HIDEABLE, NAMES
from api.settings import ApiSettings
from kardia.tables import TABLES
from tests.api.conftest import Api, Clock, running
from tests.api.recorded import REFUSED, Span, every_answer, write
from tests.api.written import Tables
from tests.support.stories import Story

STORY = Story("c04_mpi-4.1.2")
HOST, PRINCIPAL, WORDS = "198.5.7.9", "planted-person", "words that somebody planted"
TOLD = (
    (b"-127.0.0.1:", b"-" + HOST.encode() + b":"),
    (b"User:ANONYMOUS", b"User:" + PRINCIPAL.encode()),
    (b'"reason":"group is already rebalancing"', b'"reason":"' + WORDS.encode() + b'"'),
    (b'"reason":"consumer pro-actively leaving the group"', b'"reason":"' + WORDS.encode() + b'"'),
)


class Retold(Story):
    """The story in another folder."""

    @property
    def folder(self) -> Path:
        return Path(self.name)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, Span]:
    folder = tmp_path_factory.mktemp("personal")
    shutil.copy(STORY.folder / "meta.json", folder)
    lines = gzip.decompress((STORY.folder / "kafka-request.log.gz").read_bytes())
    for was, now in TOLD:
        assert was in lines, was
        lines = lines.replace(was, now)
    (folder / "kafka-request.log.gz").write_bytes(gzip.compress(lines))
    records = gzip.decompress((STORY.folder / "offsets.jsonl.gz").read_bytes())
    address = b"/127.0.0.1".hex().encode()
    assert address in records
    # Of the same length, as records of __consumer_offsets say how long a text is.
    records = records.replace(address, b"/198.5.7.9".hex().encode())
    (folder / "offsets.jsonl.gz").write_bytes(gzip.compress(records))
    made = Tables(folder / "tables")
    return made, write(made, Retold(str(folder)))


def asked(tables: tuple[Tables, Span], *, hide_personal: bool) -> Iterator[tuple[str, httpx.Response]]:
    made, span = tables
    settings = ApiSettings(tables=made.root, refresh_ms=20, hide_personal=hide_personal, metrics_members_max=100)
    with running(settings, Clock(span.to_ms)) as url:
        api = Api(url)
        api.wait_for_batch(0)
        yield from every_answer(api, span)
        api.client.close()


def test_what_is_to_be_hidden_is_there_when_it_is_shown(tables: tuple[Tables, Span]) -> None:
    """Else the next test would find nothing because there is nothing."""
    found = {}
    for url, reply in asked(tables, hide_personal=False):
        for value in (HOST, WORDS):
            if value in reply.text:
                found[url.split("?")[0].rsplit("/", 1)[-1], value] = url
        assert PRINCIPAL not in reply.text, url
    for noun in ("members", "evictions", "history", "incident", "metrics", "diff"):
        assert (noun, HOST) in found, noun
    for noun in ("rebalances", "groups", "incident"):
        assert (noun, WORDS) in found, noun


def test_nothing_hidden_is_in_any_answer(tables: tuple[Tables, Span]) -> None:
    count = 0
    for url, reply in asked(tables, hide_personal=True):
        told = reply.text + str(reply.headers)
        for value in (HOST, PRINCIPAL, WORDS):
            assert value not in told, (url, value)
        assert reply.status_code == 200 or url in REFUSED, (url, reply.text)
        count += 1
        if url == "/version":
            assert reply.json()["personal"] == "hidden"
    assert count > 80


def test_every_personal_column_is_a_name_or_can_be_hidden() -> None:
    for name, table in TABLES.items():
        for column in table.columns:
            hideable = column.name in HIDEABLE[name]
            assert hideable == (column.personal and column.name not in NAMES), (name, column.name)
            assert column.nullable or not hideable, (name, column.name)
            assert column.personal or column.name not in NAMES, (name, column.name)
    assert {"client_host", "end_reason"} <= HIDEABLE["members"]
    assert {"client_host", "connection", "detail"} <= HIDEABLE["events"]
