"""The simulated brokers of 2.0, 2.3 and 2.7 write what real ones do, and what is said of their groups is true.

Goal: the same fields in the same order as recorded lines of the release, for every API in the highest version that it
knows; then the goals of the fleet. A failure prints the command that plays it again.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path

import pytest

from kardia.coordinator.classic.operations import (
    Answer,
    Commit,
    DeleteGroups,
    Heartbeat,
    Join,
    Leave,
    Leaving,
    Operation,
    Sync,
)
from tests.support.stories import CORPORA
from tests.truth.fleet.__main__ import OLD_VERSIONS
from tests.truth.fleet.lines import Sender, Times
from tests.truth.fleet.old_lines import TextLog, most_versions
from tests.truth.fleet.report import INVENTED, judged, missed, table
from tests.truth.fleet.scenarios import SCENARIOS

DATA = Path(__file__).parents[2] / "ingest" / "data"
STORIES = {
    release: CORPORA / f"{name}-{release}" / "kafka-request.log.gz"
    for release, name in (("2.0.1", "o01_kill"), ("2.3.1", "o06_static"), ("2.7.2", "o01_kill"))
}
"""A tour of all APIs answers most with an error."""

MEMBER = "c-0b0a1cf9-8da0-4f6a-9c3e-0123456789ab"
_HEADER = re.compile(r"RequestHeader\(apiKey=(\w+), apiVersion=(\d+),.*?\) -- (.*),response:(.*) from connection ")
_NAME = re.compile(r"(?<=[{,])([a-z_]+)=")
_AFTER = re.compile(r"(?<=[;,])([a-zA-Z]+):")


def _shape(line: str) -> tuple[str, int, list[str], list[str], list[str]] | None:
    """API, version, and names in the order in which they come first: of the request, the response, and the rest."""
    found = _HEADER.search(line)
    if found is None:
        return None
    parts = [list(dict.fromkeys(_NAME.findall(found[number]))) for number in (3, 4)]
    return found[1], int(found[2]), parts[0], parts[1], _AFTER.findall(line[found.end() :])


@cache
def _recorded(release: str) -> dict[tuple[str, int], list[tuple[list[str], list[str], list[str]]]]:
    found: dict[tuple[str, int], list[tuple[list[str], list[str], list[str]]]] = {}
    with gzip.open(STORIES[release], "rt", encoding="utf-8", errors="replace") as story:
        lines = story.readlines()
    tour = DATA / f"text-lines-{release}.log"
    for line in [*tour.read_text(encoding="utf-8", errors="replace").splitlines(), *lines]:
        shape = _shape(line)
        if shape is not None:
            found.setdefault(shape[:2], []).append(shape[2:])
    return found


def _asked(release: str) -> list[tuple[int, Operation | None, Answer]]:
    """One request of every kind with its answer, in the highest version of the release."""
    join, sync, beat, leave, commit, fetch = most_versions(release)
    members = ((MEMBER, None, b"\0\1"),)
    protocols = (("range", b"\0\1"),)
    return [
        (
            join,
            Join(1, join, "g", "", None, "c", "1.2.3.4", 9, 9, "consumer", protocols, None, ""),
            Answer(1, 0, 0, 1, MEMBER, MEMBER, "range", members),
        ),
        (
            sync,
            Sync(2, sync, "g", 1, MEMBER, None, "consumer", "range", ((MEMBER, b"\1"),)),
            Answer(2, 0, 0, assignment=b"\1"),
        ),
        (beat, Heartbeat(3, beat, "g", 1, MEMBER, None), Answer(3, 0, 0)),
        (
            leave,
            Leave(4, leave, "g", (Leaving(MEMBER, None, None),)),
            Answer(4, 0, 0, left=((MEMBER, None, 0),)),
        ),
        (commit, Commit(5, commit, "g", 1, MEMBER, None, "orders", 0, 7), Answer(5, 0, 0)),
        (TextLog(release).delete_groups, DeleteGroups(6, ("g",)), Answer(6, 0, 0, parts=(("g", 0),))),
        (fetch, None, Answer(7, 0, 0)),
    ]


@pytest.mark.parametrize("release", OLD_VERSIONS)
def test_lines_have_the_fields_of_recorded_ones_in_their_order(release: str) -> None:
    log, recorded = TextLog(release), _recorded(release)
    for version, operation, answer in _asked(release):
        sender, times = Sender("c", ("x", "1"), "1.2.3.4:1-5.6.7.8:2-0"), Times(0.1, 0.1, 0.0, 0.1, 0.1)
        line = log.line(1.8e12, version, 1, sender, operation, answer if operation else None, times, 300)
        shape = _shape(line.decode())
        assert shape is not None
        same = recorded[shape[:2]]
        assert shape[2] in [one[0] for one in same], f"{shape[0]} {version}: {shape[2]}; recorded {same[-1][0]}"
        assert shape[3] in [one[1] for one in same], f"{shape[0]} {version}: {shape[3]}; recorded {same[-1][1]}"
        assert shape[4] in [one[2] for one in same], f"{shape[0]} {version}: {shape[4]}; recorded {same[-1][2]}"


@pytest.mark.slow
@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_what_is_said_is_true(version: str) -> None:
    report = judged(version, 11, 20)
    assert not missed(report), f"\n{table([report])}"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("version", OLD_VERSIONS)
@pytest.mark.parametrize(
    "name",
    [one.name for one in SCENARIOS.values() if one.share and not one.protocol and one.name not in ("huge", "long")],
)
def test_nothing_is_invented_and_exact_is_true_whatever_befalls_brokers_and_evidence(version: str, name: str) -> None:
    scenario = SCENARIOS[name]
    report = judged(version, 31, 6, scenario)
    never = (*INVENTED, "exact and untrue", *scenario.must_find)
    assert not [text for text in report.score.problems if text.startswith(never)], f"\n{table([report])}"
