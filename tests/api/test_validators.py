"""ETag and 304: one tag never stands for two sets of facts, whatever the clock and the tables do meanwhile."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from api.http.validators import TOLD_BY_THE_CLOCK, is_among, tag_of
from api.settings import ApiSettings
from api.store import FULL_LOOK_MS
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.recorded import every_answer, write
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition
from tests.support.stories import Story

GROUPS = "/api/v1/clusters/demo/groups"
UNTAGGED = ("/livez", "/healthz", "/readyz", "/metrics", "/api/v1/changes", "/api/v1/boards/")


def settled(text: str) -> Any:
    """An answer without what only the clock moves."""
    if not text.startswith("{"):
        return text

    def without(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: without(value) for name, value in found.items() if name not in TOLD_BY_THE_CLOCK}
        return [without(one) for one in found] if isinstance(found, list) else found

    return without(json.loads(text))


def test_one_tag_is_one_set_of_facts_on_every_route(tmp_path: Path) -> None:
    """A recorded story, whose feed goes stale, and then goes on."""
    tables, clock = Tables(tmp_path / "tables"), Clock()
    span = write(tables, Story("c04_mpi-4.1.2"))
    facts: dict[tuple[str, str], Any] = {}
    tags: dict[str, list[str]] = defaultdict(list)
    with running(ApiSettings(tables=tables.root, refresh_ms=20), clock) as url:
        api = Api(url)
        api.wait_for_batch(0)
        clock.now_ms = api.get("/readyz")["freshness"]["complete_as_of_ms"]

        def look() -> None:
            for asked, reply in every_answer(api, span):
                tag = reply.headers.get("etag")
                assert (tag is not None) == (reply.status_code == 200 and not asked.startswith(UNTAGGED)), asked
                if tag is not None:
                    assert facts.setdefault((asked, tag), settled(reply.text)) == settled(reply.text), asked
                    tags[asked].append(tag)

        look()
        clock.now_ms += 250
        look()
        for asked, (first, second) in tags.items():
            assert first == second or "incident" in asked, asked
            reply = api.client.get(asked, headers={"If-None-Match": second})
            assert (reply.status_code, reply.content, reply.headers["etag"]) == (304, b"", second), asked
            assert "content-type" not in reply.headers
            assert api.client.get(asked, headers={"If-None-Match": '"another"'}).status_code == 200
        clock.now_ms += ApiSettings(tables=tables.root).stale_after_ms
        look()
        tables.batch(1, progress(clock.now_ms, cluster_id="test"), transition("g04", 9_999, "Dead", cluster_id="test"))
        api.wait_for_batch(1)
        look()
        api.client.close()
    for asked, seen in tags.items():
        if asked.startswith("/api/") and "markdown" not in asked:
            # Fresh, stale, and with a batch more; a report in Markdown says nothing of the feed that is read from.
            assert len(set(seen[1:])) == 3, asked


def story(tables: Tables) -> None:
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "PreparingRebalance"),
        member("orders", "a"),
        health("orders", "a"),
        prediction("orders", "a", "session"),
        rebalance("orders", NOW_MS - 100, joined_at_ms=None, completed_at_ms=None),
        progress(NOW_MS),
    )


def test_if_none_match_is_read_as_it_is_written(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    tag = api.client.get(GROUPS).headers["etag"]
    assert tag.startswith('W/"'), "countdowns move and the tag does not"
    opaque = tag.removeprefix("W/")
    for header in (tag, opaque, f'"x", {tag}', f'"x",{opaque} , "y"', f'"a,b", {tag}', "*"):
        reply = api.client.get(GROUPS, headers={"If-None-Match": header})
        assert reply.status_code == 304, header
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-request-id"]
        assert api.client.head(GROUPS, headers={"If-None-Match": header}).status_code == 304, header
    assert api.client.get(GROUPS, headers=[("If-None-Match", '"x"'), ("If-None-Match", tag)]).status_code == 304
    for header in ("", '"x"', opaque.strip('"'), f"{tag[:-2]}", f'"{opaque[1:-2]}x"', "W/*", '"*"', ",,,"):
        assert api.client.get(GROUPS, headers={"If-None-Match": header}).status_code == 200, header
    # A tag belongs to its question.
    assert api.client.get(f"{GROUPS}?limit=5", headers={"If-None-Match": tag}).status_code == 200
    assert api.client.get(f"{GROUPS}/orders", headers={"If-None-Match": tag}).status_code == 200


def test_what_is_not_there_is_not_unmodified(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    for path, status in ((f"{GROUPS}/none", 404), (f"{GROUPS}?limit=0", 422), ("/v3/kafka/demo/topic", 501)):
        assert api.client.get(path, headers={"If-None-Match": "*"}).status_code == status, path


def test_tables_that_cannot_be_read_are_not_unmodified(tables: Tables, serve: Serve, clock: Clock) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    tag = api.client.get(GROUPS).headers["etag"]
    (tables.root / "health").rename(tables.root / "gone")
    clock.now_ms += FULL_LOOK_MS

    def is_missing() -> bool:
        return api.client.get(GROUPS, headers={"If-None-Match": tag}).status_code == 503

    api.wait(is_missing, "the table that is gone")


def test_a_tag_of_one_token_is_none_of_another(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    path, tokens = tmp_path / "tokens", ("first-" + "a" * 40, "second-" + "b" * 40)
    path.write_text("".join(f"{token}\n" for token in tokens))
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), Clock()) as url:
        mine, other = (Api(url, headers={"Authorization": f"Bearer {token}"}) for token in tokens)
        mine.wait_for_batch(0)
        tag = mine.client.get(GROUPS).headers["etag"]
        assert mine.client.get(GROUPS, headers={"If-None-Match": tag}).status_code == 304
        assert other.client.get(GROUPS, headers={"If-None-Match": tag}).status_code == 200
        nobody = Api(url)
        assert nobody.client.get(GROUPS, headers={"If-None-Match": tag}).status_code == 401
        for api in (mine, other, nobody):
            api.client.close()


def test_the_page_and_the_description_may_be_kept_and_asked_about(tables: Tables, serve: Serve) -> None:
    tables.create()
    api = serve()
    for path in ("/", "/openapi.json"):
        reply = api.client.get(path)
        assert reply.headers["cache-control"] == "no-cache"
        assert not reply.headers["etag"].startswith("W/")
    description = api.client.get("/openapi.json").headers["etag"]
    assert api.client.get("/openapi.json", headers={"If-None-Match": description}).status_code == 304
    script = next(Path("api/page").glob("*.js")).name
    found = api.client.get(f"/page/{script}").headers["etag"]
    assert api.client.get(f"/page/{script}", headers={"If-None-Match": found}).status_code == 304


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"age_ms":1,"x":2}', '{"age_ms":22,"x":2}', True),
        ('{"remaining_ms":-1}', '{"remaining_ms":5}', True),
        ('{"x":"a"}', '{"x":"b"}', False),
        ('{"x":"\\"age_ms\\":1"}', '{"x":"\\"age_ms\\":2"}', False),
        ('{"page_ms":1}', '{"page_ms":2}', False),
        ('{"x":["age_ms",1]}', '{"x":["age_ms",2]}', False),
        ('{"age_ms":{"x":1}}', '{"age_ms":{"x":2}}', False),
    ],
)
def test_a_tag_passes_over_the_clocks_fields_alone(one: str, other: str, same: bool) -> None:
    assert (tag_of(one.encode()) == tag_of(other.encode())) == same


def test_nobody_asked_is_nothing_matched() -> None:
    assert not is_among('W/"x"', None)
    assert is_among('"x"', 'W/"x"')
