"""Tables of a recorded story with their archive of events, and every answer that an API over them can give.

The routes and their parameters come from the OpenAPI document; a parameter without a value in `VALUES` is an error, so
that a new one cannot be forgotten.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx

from api.access.ids import to_segment
from ingest.dialects.request_json import RequestJson
from ingest.stamps import zone_named
from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import TABLES, Row
from spark_jobs.archive.rows import row_of
from tests.api.conftest import Api
from tests.api.written import Tables
from tests.support.stories import Story, doctored, lanes_in, observe, surprises

CLUSTER = "test"
REFUSED = ("/api/v1/clusters/none", "/nowhere", "/api/v1/clusters?x=1")
"""What is not there, and what cannot be asked."""

NOT_ARCHIVED = frozenset((Kind.TICK, Kind.GAP, Kind.REJECTED))


class Span(NamedTuple):
    """First and last instant of a story."""

    from_ms: int
    to_ms: int


def write(tables: Tables, story: Story) -> Span:
    """Write what the observer makes of a story as one batch, and its events as the archive."""
    lanes = lanes_in(story)
    events: list[Event] = [event for lane in lanes for event in lane if event.kind not in NOT_ARCHIVED]
    tables.create()
    tables.create("events")
    rows = observe(lanes)
    tables.batch(0, *(("events", row_of(CLUSTER, event)) for event in events))
    tables.batch(0, ("rejected", cut_short(story)))
    tables.batch(0, *(("disagreements", row) for row in observe(doctored(story.name))["disagreements"]))
    tables.batch(0, *(("surprises", row) for row in surprises(lanes, CLUSTER)))
    tables.batch(0, *((name, row) for name in TABLES for row in rows.get(name, ())))
    instants = [int(event.logged_at_ms) for event in events if event.logged_at_ms > 0]
    return Span(min(instants), max(instants))


def cut_short(story: Story, cluster_id: str = CLUSTER) -> Row:
    """What becomes of a line of the story of which half was lost, read by the real dialect and the observer."""
    with gzip.open(story.folder / "kafka-request.log.gz") as file:
        halves = (line[: len(line) // 2] for line in file)
        readings = (
            RequestJson(zone_named(story.zone)).read(half, "127.0.0.1:9092/request/0a1b2c3d4e5f6071", 0, len(half))
            for half in halves
        )
        # Half a line of an API that has nothing to do with groups is passed over as the whole line is.
        rejected = next(reading for reading in readings if isinstance(reading, Event))
    (row,) = Observer(ObserverSettings(cluster_id), 0).step([rejected])["rejected"]
    return row


def values(span: Span) -> dict[str, tuple[Any, ...]]:
    """Values to ask with, by name of a parameter; None leaves it out."""
    middle_ms = (span.from_ms + span.to_ms) // 2
    return {
        "cluster": (None,),
        "group": (None,),
        "member": (None,),
        "at": (None, middle_ms),
        "known_at": (None, span.to_ms - 5_000),
        "from": (span.from_ms,),
        "to": (None, span.to_ms + 1),
        "limit": (1_000,),
        "cursor": (None,),
        "order": ("oldest",),
        "sort": ("worst",),
        "search": (None,),
        "state": (None,),
        "cause": (None, "left"),
        "reason": (None, "bad_json"),
        "kind": (None, "another_generation"),
        "surprise_class": (None, "own_mistake"),
        "entity": (None,),
        "events": ("true",),
        "format": (None, "markdown"),
        "topic": (None, "orders"),
        "partition": (None,),
        "name[]": (None, "kardia_build_info"),
    }


def urls(api: Api, span: Span) -> Iterator[str]:
    """Every route with every combination of `values`, for every group and member of the story."""
    known = values(span)
    for path, item in api.get("/openapi.json")["paths"].items():
        names = [one["name"] for one in item["get"].get("parameters", ()) if one["in"] == "query"]
        for chosen in product(*(known[name] for name in names)):
            given = {name: value for name, value in zip(names, chosen, strict=True) if value is not None}
            for filled in _filled(api, path, span):
                yield f"{filled}?{urlencode(given)}" if given else filled


def _filled(api: Api, path: str, span: Span) -> Iterator[str]:
    path = path.replace("{cluster}", CLUSTER)
    groups = api.get(f"/api/v1/clusters/{CLUSTER}/groups")["groups"] if "{" in path else []
    if not groups:
        yield path
    for group in groups:
        name = to_segment(group["group_id"])
        of_group = path.replace("{group}", name).replace("{consumer}", name)
        if "{member}" not in of_group:
            yield of_group
            continue
        history = api.get(group["links"]["history"], entity="member", limit=1_000)["transitions"]
        for member_id in sorted({one["member_id"] for one in history}):
            yield of_group.replace("{member}", to_segment(member_id))


def every_answer(api: Api, span: Span) -> Iterator[tuple[str, httpx.Response]]:
    """Each URL of `urls` with its answer, the first news of the stream, and some that are refused."""
    for url in (*urls(api, span), "/openapi.json", *REFUSED):
        yield url, api.client.get(url)
    with api.client.stream("GET", "/api/v1/changes") as stream:
        news = next(line for line in stream.iter_lines() if line.startswith("data:"))
        yield "/api/v1/changes", httpx.Response(stream.status_code, headers=stream.headers, text=news)
