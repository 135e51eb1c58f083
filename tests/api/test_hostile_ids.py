"""Ids that may be anything, on every route: found where they exist, 404 where not, never a path, filter or log line.

The routes come from the OpenAPI document, so a new one cannot be forgotten.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from api.access.ids import ID_BYTES_MAX, from_segment, to_segment
from api.settings import ApiSettings
from tests.api.conftest import Api, Clock, running
from tests.api.written import (
    NOW_MS,
    Tables,
    disagreement,
    health,
    lag,
    member,
    prediction,
    progress,
    rebalance,
    surprise,
    transition,
)

IDS = [
    "plain",
    "with space",
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "/",
    "//",
    "/absolute",
    "..",
    "../../etc/passwd",
    "..%2f..%2f",
    ".",
    "./x",
    "a\\b",
    "C:\\x",
    "~",
    "~~",
    "~cGxhaW4",
    "-",
    "--help",
    "-rf",
    "",
    " ",
    "\t",
    "trailing ",
    "line\nbreak",
    "cr\r\nX-Injected: yes",
    "nul\x00byte",
    "\x00",
    "\x1b[31mred",
    "\x7f",
    "'",
    '"',
    "' OR '1'='1",
    "'; DROP TABLE members; --",
    '") or true or ("',
    "$(id)",
    "`id`",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "%s%n%x",
    "%",
    "%zz",
    "?group=x",
    "#fragment",
    "a&b=c",
    "a;b",
    "a+b",
    "a,b",
    "<script>alert(1)</script>",
    "</title><img src=x onerror=1>",
    "\u202egnp.exe",
    "\u2066isolate\u2069",
    "\u200bzero",
    "\ufeffbom",
    "\ufffd",
    "\uffff",
    "пример",
    "例え",
    "👩‍👩‍👧‍👦",
    "e\u0301",
    "é",
    "I\u0307",
    "null",
    "None",
    "true",
    "members",
    "groups",
    "0",
    "1e9",
    "x" * 1_000,
    "\U0010ffff" * 300,
    "m" * (ID_BYTES_MAX // 2),
]


def rows_of(text: str) -> list[tuple[str, tuple[Any, ...]]]:
    """A group, a member, a client that are all called `text`, in every table."""
    gone = {"joined_at_ms": NOW_MS - 9_000, "ended_at_ms": NOW_MS - 5_000, "end_cause": "session_expired"}
    return [
        member(text, text, client_id=text, end_reason=text),
        member(text, text + "gone", **gone),
        health(text, text, client_id=text, reasons=[text]),
        transition(text, 1, "Stable"),
        rebalance(text, NOW_MS - 5_000, trigger_member_id=text, stragglers=[(text, text, 5, True, False, 1)]),
        prediction(text, text, "session"),
        disagreement(text, "another_instant", 0, member_id=text, client_id=text),
        surprise(text, 0, member_id=text, seen=text, predicted=text),
        lag(text, 0, 5, member_id=text, client_id=text, topic=text),
    ]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    tables = Tables(tmp_path_factory.mktemp("hostile") / "tables")
    tables.create()
    # Short ids share files; each long one has its own, so that its statistics, which are cut, decide about it.
    batches = [[text for text in IDS if len(text) < 100], *([text] for text in IDS if len(text) >= 100)]
    for batch, texts in enumerate(batches):
        tables.batch(batch, *(row for text in texts for row in rows_of(text)), progress(NOW_MS))
    with running(ApiSettings(tables=tables.root, refresh_ms=20, page_size_max=1_000), Clock()) as url:
        found = Api(url)
        found.wait_for_batch(len(batches) - 1)
        yield found
        found.client.close()


def routes(api: Api) -> list[str]:
    return [path for path in api.get("/openapi.json")["paths"] if "{group}" in path]


def filled(path: str, text: str) -> str:
    return path.replace("{cluster}", "demo").replace("{group}", text).replace("{member}", text)


ABOUT_ALL = {"freshness", "evidence", "known"}
"""Parts of an answer that are about what was read."""


@pytest.mark.parametrize("text", IDS, ids=lambda text: ascii(text)[:30])
def test_every_route_finds_every_id_by_segment_and_by_parameter(api: Api, text: str) -> None:
    for path in routes(api):
        by_segment = api.get(filled(path, to_segment(text)))
        given = {"group": text} | ({"member": text} if "{member}" in path else {})
        by_parameter = api.get(filled(path, "~"), **given)
        assert by_segment == by_parameter, path
        told = [value for name, value in by_segment.items() if name not in ABOUT_ALL and isinstance(value, dict | list)]
        found = told[0][0] if isinstance(told[0], list) else told[0]
        assert found["group_id"] == text, path
        assert api.get(found["href"]), path


def test_the_list_of_groups_shows_every_id_as_it_is(api: Api) -> None:
    found = {group["group_id"] for group in api.get("/api/v1/clusters/demo/groups", limit=1000)["groups"]}
    assert found == set(IDS)


def test_ids_that_are_not_there_are_404_on_every_route_and_leak_nothing(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="kardia")
    for path in routes(api):
        for text in IDS:
            missing = text[: ID_BYTES_MAX // 4 - 2] + "\x07?"
            reply = api.client.get(filled(path, to_segment(missing)))
            assert (reply.status_code, reply.json()["code"]) == (404, "not_found"), (path, missing)
            assert missing not in reply.text
    assert "\x07" not in caplog.text
    assert "Bz8" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("kardia"))


def test_a_raw_path_never_leaves_its_route(api: Api) -> None:
    for text in ("..%2F..%2Fopenapi.json", "%2e%2e/%2e%2e", "a%2Fb/extra/segments", "%00%00", "%ff%fe"):
        reply = api.client.get(f"/api/v1/clusters/demo/groups/{text}")
        assert reply.status_code == 404, text
        assert reply.headers["content-type"] == "application/problem+json"
    for text in ("%2e%2e%2findex.html", "..%2f..%2fapp.py", "%2fetc%2fpasswd", "....//app.py"):
        assert api.client.get(f"/page/{text}").status_code == 404, text


@pytest.mark.parametrize("length", [ID_BYTES_MAX - 1, ID_BYTES_MAX, ID_BYTES_MAX + 1])
def test_the_longest_id_is_the_protocols(api: Api, length: int) -> None:
    expected = (404, "not_found") if length <= ID_BYTES_MAX else (422, "parameter_refused")
    for path in (
        f"/api/v1/clusters/demo/groups/{to_segment('m' * length)}",
        f"/api/v1/clusters/demo/groups/~?group={'m' * length}",
    ):
        reply = api.client.get(path)
        assert (reply.status_code, reply.json()["code"]) == expected


def test_encodings_that_are_not_canonical_are_refused(api: Api) -> None:
    for segment in ("~!", "~a", "~____", "~cGxhaW4=", "~cGxhaW5", "~_w", "~gA", "~\u00e9"):
        status, code = api.problem(f"/api/v1/clusters/demo/groups/{quote(segment)}")
        assert (status, code) == (422, "parameter_refused"), segment
    assert api.problem("/api/v1/clusters/demo/groups/plain", group="plain") == (422, "parameter_refused")


@given(st.text())
def test_an_id_survives_its_segment(text: str) -> None:
    segment = to_segment(text)
    assert re.fullmatch(r"[A-Za-z0-9_~.-]+", segment)
    assert segment not in (".", "..")
    assert from_segment(segment) == text
    assert from_segment("~", text) == text


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_a_segment_is_read_or_refused_and_nothing_else(segment: str) -> None:
    try:
        text = from_segment(segment)
    except ValueError:
        return
    assert from_segment(to_segment(text)) == text


def test_ids_are_escaped_in_metrics(api: Api) -> None:
    text = api.client.get("/metrics").text
    families: dict[str, Any] = {}
    for family in text_string_to_metric_families(text):
        families[family.name] = family
    labels = {sample.labels["group"] for sample in families["kardia_group_generation"].samples}
    short = {text for text in IDS if len(text) <= 200}
    assert short <= labels
    assert len(labels) == len(IDS)
    assert all(len(label) <= 200 for label in labels)
