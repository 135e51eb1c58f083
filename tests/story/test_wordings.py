"""What people read at three in the morning: short, the answer first, one finding once, and nothing that cannot be typed
back.

Method: the verbs over recorded stories on several kinds of evidence; every line is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from cli.asking import when
from kardia.observe import ObserverSettings
from kardia.story import words
from kardia.story.tell import explain, why
from kardia.story.together import WITHIN_MS
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay
from tests.story.conftest import kardia
from tests.story.rows import T, life, material, rebalance, transition, wait
from tests.support.stories import Story

STORIES = {
    "c04_mpi-3.9.2": "g04",
    "c13_commit-3.9.2": "g13",
    "n01_broker_kill-3.9.2": "clickstream",
    "d04_broker_frozen-4.4.0": "fz1",
    "d03_coordkill_modern-4.2.1": "cl1",
    "k08_rebalance_timeout-4.1.2": "h08",
    "c06_static-3.9.2": "g06",
    "k07_unreleased-4.4.0": "h07",
}
"""Recording and the group of it that is asked about."""

OLD = (
    r"nothing counts down",
    r"Everything logged up to",
    r"it went first",
    r"\(join phase",
    r"It waited for \S+ \([\d.]+ s\)\.",
    r"Who broke it cannot be told",
    r"There is no such line in the tables",
    r"rung",
    r"waited [\d.]+ s each",
    r"cannot be told from what was read",
    r"\(Seen at",
    r"over since",
    r"session timeout not known",
    r"library not announced",
)
"""Wordings that nobody is to read any more."""

SENTENCE_CHARS_MAX = 260
"""Of one sentence, up to its full stop: three lines of a terminal."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stories with all their logs, a cluster each."""
    root = tmp_path_factory.mktemp("wordings") / "tables"
    for name in STORIES:
        folder = Story(name).folder
        logs = sorted(folder.glob("kafka-request*.log.gz")), sorted(folder.glob("server*.log.gz"))
        factory = ObserverFactory(ObserverSettings(name, sample_within_ms=5_000))
        replay(
            Inputs(*logs, sorted(folder.glob("offsets.jsonl.gz")), Story(name).zone),
            root,
            factory,
            workers=1,
            append=True,
        )
    return root


def said(tables: Path, name: str) -> Iterator[str]:
    """Every line that the verbs say about the group."""
    where = ("--tables", tables, "--cluster", name)
    for verb in ("why", "explain", "incident", "group", "history"):
        yield from kardia(verb, STORIES[name], *where).out.splitlines()
    for verb in ("groups", "incident", "why"):
        yield from kardia(verb, *where).out.splitlines()


@pytest.mark.parametrize("name", STORIES)
def test_no_old_wording_is_left_and_every_sentence_is_short(tables: Path, name: str) -> None:
    for line in said(tables, name):
        assert not re.search("|".join(OLD), line), line
        if "needs " in line or line.startswith(("warning:", "advice:")):
            continue  # what to do next has the names of settings and files in it
        for sentence in re.split(r"(?<=[^A-Z]\.) ", re.sub(r'"[^"]*"|\([^()]*\)', "", line)):
            assert len(sentence) <= SENTENCE_CHARS_MAX, sentence


@pytest.mark.parametrize("name", STORIES)
def test_what_a_sentence_names_can_be_typed_back(tables: Path, name: str) -> None:
    where = ("--tables", tables, "--cluster", name)
    found = kardia("explain", STORIES[name], *where, "-o", "json").json()["sentences"]
    reached_ms = max(one["at_ms"] for one in found)
    for one in found:
        for clock in re.findall(r"(?<![T\d])\d\d:\d\d:\d\d\.\d{3}\S?", one["text"]):
            assert clock.endswith("Z"), f"{clock} is of no zone: {one['text']}"
            assert when.instant(clock, reached_ms, UTC).assumed is None
    named = {who for one in found for who in re.findall(r"\S+ \([0-9a-f]{8}\)", one["text"])}
    for who in sorted(named)[:3]:
        assert kardia("member", STORIES[name], who, *where).code == 0, who


@pytest.mark.parametrize("name", STORIES)
def test_nothing_is_told_twice(tables: Path, name: str) -> None:
    """`why` told one eviction twice, and each of several members what all had in common."""
    for verb in ("why", "explain"):
        where = ("--tables", tables, "--cluster", name, "-o", "json")
        found = kardia(verb, STORIES[name], *where).json()["sentences"]
        told = [(one["at_ms"], one["text"]) for one in found]
        assert len(told) == len(set(told)), verb


def test_a_wait_is_no_sentence_of_its_own() -> None:
    row = rebalance(0, 11_873, "member_joined", "c", stragglers=[wait("billing-1", 11_854), wait("b", 1_646)])
    (over,) = [one.text for one in explain(material(rebalances=[row])).sentences if one.kind == "rebalance_ended"]
    assert "11.9 s; billing-1 was slow to rejoin (11.9 s). " in over
    assert "b (" not in over, "who came after 1.6 s kept nobody waiting"


def test_one_finding_of_a_kind_names_its_members_once() -> None:
    gone: list[Any] = [life(name, 0, 30_000 + 10 * n, "session_expired") for n, name in enumerate("abc")]
    gone.append(life("d", 0, 30_000 + 2 * WITHIN_MS, "session_expired"))
    told = [one for one in explain(material(lives=gone)).sentences if one.kind == "ended"]
    assert [one.member_ids for one in told] == [("a", "b", "c"), ("d",)]
    assert told[0].text.startswith("a, b and c were evicted: their sessions of 10 s expired.")
    of_b = [one for one in explain(material(lives=gone), member="b").sentences if one.kind == "ended"]
    assert [one.text.split(":")[0] for one in of_b] == ["b was evicted"], "a story of one member tells its own"


def test_ends_of_different_causes_are_told_apart() -> None:
    gone = [life("a", 0, 30_000, "session_expired"), life("b", 0, 30_000, "left"), life("c", 0, 30_000, "unknown")]
    assert len([one for one in explain(material(lives=gone)).sentences if one.kind == "ended"]) == 3


@pytest.mark.parametrize(
    ("member_id", "called"),
    [
        ("consumer-g-36-5af6534f-ee1b-4fee-a1c6-d153c575c815", "consumer-g-36 (5af6534f)"),
        ("5af6534f-ee1b-4fee-a1c6-d153c575c815", "member 5af6534f"),
        ("q3Zt0m1kTfKq2w9mH8b1Aw", "member q3Zt0m1kTfKq2w9mH8b1Aw"),
    ],
)
def test_who_has_no_client_id_is_called_by_the_id_and_can_be_typed_back(member_id: str, called: str) -> None:
    assert words.called(member_id) == called
    assert words.meant(called, [("another", None, None), (member_id, None, None)]) == [member_id]


def test_an_instant_of_the_day_names_its_zone() -> None:
    assert words.clock(T, T + 1_000) == words.instant(T)[11:]
    assert words.clock(T, T + 86_400_000) == words.instant(T)


def test_a_load_is_told_once_where_two_sources_tell_it() -> None:
    rows = [transition(n, 5_000, "Stable", cause="coordinator_loaded") for n in (1, 2)]
    told = [one.text for one in explain(material(transitions=rows)).sentences if "loaded" in one.text]
    assert len(told) == 1


def test_why_names_all_who_were_evicted_in_the_last_turn() -> None:
    """Of two whose sessions ended in one instant only the one that began the rebalance was told."""
    gone = [life("a", 0, 30_000, "session_expired"), life("b", 0, 30_005, "session_expired")]
    rows = [rebalance(30_000, 30_010, "session_expired", "a", members_after=0)]
    told = [one for one in why(material(lives=gone, rebalances=rows)).sentences if one.kind == "ended"]
    assert [one.member_ids for one in told] == [("a", "b")]
