"""The cases: recorded stories by kind of evidence, at once, live, and live with restarts; traces; simulated groups.

A case has a name, and its rows follow from it alone: no clock, no chance that is not seeded by the name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import cycle

from kardia.events import DEFAULT_LANES
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from kardia.trace import play
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory
from tests import golden
from tests.corpora.test_lanes import ALL, EVIDENCE, has
from tests.golden.log import LANE, records
from tests.support.restored import restored
from tests.support.stories import SAMPLED_STORIES, lanes_of, observe, read_live, stamps_of, told_live
from tests.truth.fleet import run, seen
from tests.truth.fleet.__main__ import OLD_VERSIONS, VERSIONS, WITH_EPOCHS
from tests.truth.fleet.many import turn
from tests.truth.fleet.scenarios import SCENARIOS

Rows = Mapping[str, Iterable[Row]]

GROUPS = 10
"""Of a simulated run."""

RUNS, RUNS_WITH_EPOCHS, RUNS_OF_OLD = 150, 40, 10
SEED = 70_001

EVERY_MS = 1_000
RESTART_EVERY = 7
"""Steps of a live reader from one restart to the next."""

LIVE = ("requests", "requests and records", "requests and server.log", "everything")
"""Kinds of evidence whose clock is that of a request log."""


def names() -> list[str]:
    """Names of all cases, those of one kind together."""
    return [*_stories(), *_traces(), *_simulated()]


def _stories() -> Iterator[str]:
    for name in ALL:
        for evidence, what in EVIDENCE.items():
            if not has(name, what):
                continue
            yield f"story/{name}/{evidence}/at once"
            if evidence in LIVE and name not in SAMPLED_STORIES:
                yield f"story/{name}/{evidence}/live"
                yield f"story/{name}/{evidence}/restarts"


def _traces() -> Iterator[str]:
    for trace, version in golden.cases():
        yield f"trace/{trace.name.removesuffix('.trace')}/{version}"


def _simulated() -> Iterator[str]:
    kinds = [one for one in SCENARIOS.values() if one.share]
    classic, epochs = [one for one in kinds if not one.protocol], [one for one in kinds if one.protocol]
    for versions, scenarios, runs in (
        (VERSIONS, classic, RUNS),
        (WITH_EPOCHS, epochs, RUNS_WITH_EPOCHS),
        (OLD_VERSIONS, classic, RUNS_OF_OLD),
    ):
        scenario, version = cycle(turn(scenarios)), cycle(versions)
        for number in range(runs):
            one, release = next(scenario), next(version)
            if one.is_played_by(release):
                yield f"simulated/{one.name}/{release}/{SEED + number}"


def rows_of(name: str) -> list[str]:
    """The rows of a case, each as a line of JSON with its table, sorted."""
    kind, _, rest = name.partition("/")
    found = _KINDS[kind](*rest.split("/"))
    return sorted(json.dumps([table, *row]) for table, some in found.items() for row in some)


def digest_of(rows: Iterable[str]) -> str:
    """A digest of the rows of a case."""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def _story(name: str, evidence: str, how: str) -> Rows:
    lanes = lanes_of(name, **EVIDENCE[evidence])
    if how == "at once":
        return observe(lanes)
    stamps = stamps_of(name)
    told = told_live(lanes, EVERY_MS, stamps)
    rows: dict[str, list[Row]] = {}
    for number, events in enumerate(lanes):
        observer = Observer(ObserverSettings("test"), number)
        for count, step in enumerate(read_live(events, EVERY_MS, stamps, told), 1):
            _add(rows, observer.step(step))
            if how == "restarts" and count % RESTART_EVERY == 0:
                observer = restored(observer)
    return rows


def _trace(name: str, version: str) -> Rows:
    (trace,) = (one for one in golden.traces() if one.name.removesuffix(".trace") == name)
    lane = Lane(ObserverFactory(ObserverSettings("golden", version)), "kardia.events", LANE, DEFAULT_LANES)
    rows: dict[str, list[Row]] = {}
    for record in records(trace, play(trace, version).exchanges, version):
        _add(rows, lane.step([record]))
    return rows


def _run(scenario: str, version: str, seed: str) -> Rows:
    return seen.observe(run.play(version, int(seed), GROUPS, SCENARIOS[scenario])).rows


def _add(rows: dict[str, list[Row]], more: Rows) -> None:
    for table, some in more.items():
        rows.setdefault(table, []).extend(some)


_KINDS: Mapping[str, Callable[..., Rows]] = {"story": _story, "trace": _trace, "simulated": _run}
