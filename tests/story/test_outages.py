"""What `kardia explain` tells of a broker that died or stood still: instants add up, and server.log bears them out."""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path

import pytest

from demo import server_log
from kardia.observe import ObserverSettings
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay
from tests.story.conftest import sentences
from tests.support.stories import Story

ROUNDED_MS = 50
"""What a duration of seconds is rounded by in a sentence."""

GROUPS = ("pair", "lone", "both")
KILLED = ("d01_kill_long-3.9.2", "d01_kill_long-4.4.0", "d02_kill_short-3.9.2", "d02_kill_short-4.4.0")
STOOD_STILL = ("d03_stand_still-3.9.2", "d03_stand_still-4.4.0")


@pytest.fixture(scope="module")
def outages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded outages with their server.log, a cluster each."""
    root = tmp_path_factory.mktemp("outages") / "tables"
    for name in (*KILLED, *STOOD_STILL):
        story = Story(name)
        logs = sorted(story.folder.glob("kafka-request*.log.gz")), sorted(story.folder.glob("server*.log.gz"))
        factory = ObserverFactory(ObserverSettings(name, sample_within_ms=5_000))
        replay(Inputs(*logs, [story.folder / "offsets.jsonl.gz"], story.zone), root, factory, workers=1, append=True)
    return root


def evicted(tables: Path, name: str) -> list[tuple[int, str]]:
    """Instant and text of each eviction by a session that is told."""
    return [
        (one["at_ms"], one["text"])
        for group in GROUPS
        for one in sentences(tables, name, group)
        if re.search("it did not come back within its session|its session of", one["text"]) and one["kind"] == "ended"
    ]


@cache
def loads(name: str) -> tuple[int, ...]:
    """When groups were loaded, as server.log has it."""
    with gzip.open(Story(name).folder / "server.log.gz", "rt", encoding="utf-8") as lines:
        return tuple(fact.at_ms for fact in server_log.facts(lines) if fact.what == server_log.LOADED)


def of_day_ms(text: str) -> int:
    """Milliseconds of a clock time."""
    hours, minutes, seconds = text.removesuffix("Z").split(":")
    return int(hours) * 3_600_000 + int(minutes) * 60_000 + round(float(seconds) * 1_000)


@pytest.mark.parametrize("name", [*KILLED, *STOOD_STILL])
def test_who_is_said_to_have_been_silent_for_its_session_was(outages: Path, name: str) -> None:
    told = evicted(outages, name)
    assert told
    for at_ms, text in told:
        said = re.search(r"its session of (\d+) s expired \(last heard at ([\d:.]+Z)\)", text)
        if said is not None:
            assert abs(of_day_ms(said[2]) + int(said[1]) * 1_000 - at_ms % 86_400_000) <= 1_000, text


@pytest.mark.parametrize("name", KILLED)
def test_a_session_that_a_load_began_anew_is_told_so(outages: Path, name: str) -> None:
    after = [(at_ms, text) for at_ms, text in evicted(outages, name) if at_ms > min(loads(name))]
    anew = [text for _, text in after if "and it did not come back within its session of 10 s" in text]
    assert anew
    for text in anew:
        said = re.search(r"loaded the group at ([\d:.]+Z), and", text)
        if said is None:
            assert "a coordinator loaded the group, and" in text
            continue
        at = of_day_ms(said[1])
        assert any(abs(at - load % 86_400_000) <= 200 for load in loads(name)), text


@pytest.mark.parametrize("name", STOOD_STILL)
def test_a_coordinator_that_stood_still_evicts_late_and_is_told_so(outages: Path, name: str) -> None:
    late = [(at_ms, text) for at_ms, text in evicted(outages, name) if "may have stood still" in text]
    assert late
    for at_ms, text in late:
        said = re.search(r"was over at ([\d:.]+Z) .* evicted it ([\d.]+) s later", text)
        assert said is not None, text
        assert abs(of_day_ms(said[1]) + float(said[2]) * 1_000 - at_ms % 86_400_000) <= 2 + ROUNDED_MS, text
