"""A request log of some days beside a server.log of more: what each part proves is said of that part, and nothing else.

The recorded stories with their request log cut: its first part, its last one, or the middle alone is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from kardia.events import Event, Kind
from kardia.tables import Row
from tests.corpora.test_evidence_levels import HAS_STRANGE_NAMES
from tests.corpora.test_outages import OUTAGES
from tests.support.evidence_levels import classic, score, scored
from tests.support.stories import OLD_STORIES, STORIES, Story, lanes_of, observe

CUTS = {"its begin": (0.0, 0.4), "its middle": (0.3, 0.7)}
ALL = tuple(name for name in (*STORIES, *OLD_STORIES, *OUTAGES) if name != HAS_STRANGE_NAMES)

LATE = "another completed_at_ms"
"""Up to 2.7 an answer comes so much later than the sentence about it, also where all requests are read."""


def cut(name: str, part: str, offsets: bool) -> tuple[tuple[Event, ...], ...]:
    """Events of a story whose request logs are there for a part of it, each lane in one step."""
    lanes = lanes_of(name, server_log=True, offsets=offsets)
    stamps: dict[str, list[float]] = {}
    for lane in lanes:
        for event in lane:
            if "/request/" in event.source and event.kind != Kind.TICK:
                stamps.setdefault(event.source, []).append(event.logged_at_ms)
    first, last = min(map(min, stamps.values())), max(map(max, stamps.values()))
    begin, end = (first + share * (last - first) for share in CUTS[part])
    inside = {source: [at for at in found if begin <= at <= end] for source, found in stamps.items()}
    spans = {source: (min(found), max(found)) for source, found in inside.items() if found}
    return tuple(tuple(_of(lane, spans)) for lane in lanes)


def _of(lane: tuple[Event, ...], spans: dict[str, tuple[float, float]]) -> Iterator[Event]:
    """Of a broker whose log begins later, or ended before, nothing is read: then it has none."""
    for event in lane:
        if "/request/" not in event.source:
            yield event
            continue
        begin, end = spans.get(event.source, (0.0, -1.0))
        if event.kind == Kind.TICK and end >= begin:
            detail: dict[str, Any] = {
                name: value
                for name, value in (event.detail or {}).items()
                if name not in ("events", "first_line_at_ms")
            }
            if end < detail["last_line_at_ms"]:
                detail["ends_at_ms"] = end
            detail |= {"last_line_at_ms": end, "begins_at_ms": begin}
            detail["silences"] = [pair for pair in detail["silences"] if begin <= pair[0] and pair[1] <= end]
            yield event._replace(detail=detail)
        elif begin <= event.logged_at_ms <= end:
            yield event


@cache
def told(name: str, part: str, offsets: bool) -> dict[str, list[Row]]:
    return observe(cut(name, part, offsets))


@pytest.mark.parametrize("offsets", [False, True], ids=("alone", "with records"))
@pytest.mark.parametrize("part", CUTS)
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_said_that_was_not_so(name: str, part: str, offsets: bool) -> None:
    problems = scored(Story(name).expect, classic(told(name, part, offsets)), "4").problems
    assert [one for one in problems if not one.startswith(LATE)] == []


@pytest.mark.parametrize("offsets", [False, True], ids=("alone", "with records"))
@pytest.mark.parametrize("part", CUTS)
@pytest.mark.parametrize("name", [name for name in ALL if name not in OUTAGES])
def test_it_finds_no_less_than_server_log_alone(name: str, part: str, offsets: bool) -> None:
    """But for what was under way when the request log ended, and so is known within bounds."""
    found, least = (
        scored(Story(name).expect, classic(told(name, part, offsets)), "4"),
        score(name, "4" if offsets else "3"),
    )
    for mine, lower in zip(found[:4], least[:4], strict=True):
        assert mine.found >= lower.found - 1
