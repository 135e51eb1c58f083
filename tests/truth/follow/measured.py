"""What the follower makes of recorded stories and of simulated fleets: one `Measured` for each."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kardia.events import Event
from kardia.follow import Counts, Following, Surprise
from tests.support.stories import (
    CORPORA,
    FIRST_LIGHT,
    OLD_STORIES,
    Story,
    lanes_of,
)
from tests.truth.fleet.damage import damage_of
from tests.truth.fleet.run import Run, play
from tests.truth.fleet.scenarios import SCENARIOS, Scenario
from tests.truth.fleet.seen import logs_of
from tests.truth.fleet.world import START_MS

HEALTHY = (*FIRST_LIGHT, *OLD_STORIES, "c15_assign-4.1.2", "c19_admin-4.4.0")
"""Recorded stories of the classic protocol in which nothing befell the broker."""

WELL_EVIDENCED = (
    "requests",
    "records",
    "server log",
    "disorder",
    "odd clients",
    "large",
    "huge",
    "long",
    "quiet",
)
"""Scenarios whose requests are all logged, of brokers that are up: the ones that the stop rule is about."""

NEAR_MS = 10
"""An eviction is hit where its instant is so near, and between those that are said."""

STAMP_MS = 1
"""Instants that are said and those that are known are cut to 1 ms each."""


@dataclass
class Measured:
    """One story, or one scenario with all of its runs."""

    name: str
    kind: str
    """healthy, disturbed, well evidenced or upset."""
    counts: Counts = field(default_factory=Counts)
    surprises: list[Surprise] = field(default_factory=list)
    settings: dict[str, int] = field(default_factory=dict)
    cpu_s: float = 0.0
    evictions: int = 0
    hit: int = 0
    within: int = 0
    """Found between the instants that are said, not as near as a hit."""
    near: int = 0
    """Found, and it was not between the instants that are said."""
    invented: int = 0
    maybe: int = 0
    """Said as possible only."""
    maybe_not: int = 0
    """Said as possible, and was not."""
    widths_ms: list[int] = field(default_factory=list)
    """Between the first and the last instant of each that was found."""

    def add(self, other: Measured) -> None:
        """Add another run."""
        self.counts.add(other.counts)
        self.surprises += other.surprises
        self.cpu_s += other.cpu_s
        self.evictions += other.evictions
        self.hit += other.hit
        self.within += other.within
        self.near += other.near
        self.invented += other.invented
        self.maybe += other.maybe
        self.maybe_not += other.maybe_not
        self.widths_ms += other.widths_ms

    @property
    def answers_share(self) -> float:
        """Share of answers that were predicted, among those of groups that were ever known."""
        counts = self.counts
        known = counts.answers - counts.unknown["the log begins in the middle"]
        return counts.predicted / known if known else 1.0

    @property
    def windows_share(self) -> float:
        """Share of windows without a surprise."""
        counts = self.counts
        return 1 - counts.unexplained / counts.windows if counts.windows else 1.0

    def width_ms(self, share: float) -> int:
        """So wide at most is what is said of this share of the evictions that were found."""
        widths = sorted(self.widths_ms)
        return widths[min(int(share * len(widths)), len(widths) - 1)] if widths else 0

    def as_json(self) -> dict[str, Any]:
        """Everything, for other programs."""
        counts = self.counts
        return {
            "name": self.name,
            "kind": self.kind,
            "answers": counts.answers,
            "predicted": counts.predicted,
            "surprising": dict(counts.surprising),
            "unknown": dict(counts.unknown),
            "windows": counts.windows,
            "unexplained": counts.unexplained,
            "explained_by": dict(counts.explained),
            "replays": counts.replays,
            "evictions": self.evictions,
            "hit": self.hit,
            "within": self.within,
            "near": self.near,
            "invented": self.invented,
            "possible": self.maybe,
            "possible_and_was_not": self.maybe_not,
            "width_ms_p50": self.width_ms(0.5),
            "width_ms_p90": self.width_ms(0.9),
            "us_per_answer": round(1e6 * self.cpu_s / max(counts.answers, 1), 1),
            "settings": self.settings,
        }


def follow(
    name: str, kind: str, version: str, events: Iterable[Event], *, begins: bool = True
) -> tuple[Measured, Following]:
    """Follow events of one cluster."""
    following = Following(version, begins=begins, keeps_ends=True)
    given = list(events)
    began_s = time.process_time()
    following.take(given)
    following.finish()
    measured = Measured(name, kind, following.counts(), following.surprises, following.broker.found())
    measured.cpu_s = time.process_time() - began_s
    return measured, following


def of_story(name: str) -> Measured:
    """A recorded story. Evictions are those that its broker said by server.log."""
    story = Story(name)
    kind = "healthy" if name in HEALTHY else "disturbed"
    measured, following = follow(name, kind, meta_of(name)["broker_version"], once(name))
    said = {
        one["member_id"]: (one["group"], float(one["t"]))
        for one in story.expect.get("evictions", ())
        if "session" in str(one.get("why", "")) and one["group"] in following.followers
    }
    _judge(measured, following, said)
    return measured


def meta_of(name: str) -> dict[str, Any]:
    """How a story was recorded."""
    meta: dict[str, Any] = json.loads((Story(name).folder / "meta.json").read_text())
    return meta


def once(name: str) -> list[Event]:
    """Events of a story's request log, each once."""
    found = {(one.source, one.start, one.kind): one for lane in lanes_of(name, offsets=False) for one in lane}
    return list(found.values())


def stories() -> list[str]:
    """Names of all recorded stories with a request log."""
    return sorted(
        path.parent.name for path in CORPORA.glob("*/meta.json") if list(path.parent.glob("kafka-request*.log.gz"))
    )


def of_run(version: str, seed: int, groups: int, scenario: Scenario) -> Measured:
    """One run of the simulated fleet."""
    run = play(version, seed, groups, scenario)
    kind = "well evidenced" if scenario.name in WELL_EVIDENCED else "upset"
    measured, following = follow(scenario.name, kind, version, events_of(run), begins=not scenario.middle)
    said = {
        life.member_id: (truth.group_id, float(life.ended_at_ms))
        for truth in run.truths.values()
        for life in truth.lives
        if life.cause == "session_expired"
    }
    _judge(measured, following, said)
    return measured


def events_of(run: Run) -> list[Event]:
    """The requests of a run as a collector reads them, with what is lost on the way, and its ticks."""
    damage = damage_of(run)
    logs = logs_of([[one for one in lines if one.written_at_ms > damage.begins_at_ms] for lines in run.logs], [])
    found: list[Event] = []
    now = max(START_MS, damage.begins_at_ms)
    while now < run.ended_at_ms:
        now += 1_000.0
        if not any(begin <= now < end for begin, end in run.sleeps):
            found += [event for log in logs for event in log.step(now, damage)]
    return list({(one.source, one.start, one.kind, one.shard): one for one in found}.values())


def _judge(measured: Measured, following: Following, known: dict[str, tuple[str, float]]) -> None:
    """Hold session evictions against what is known of them, up to the last anchor of each group. After it whoever is
    silent may wait in a JoinGroup that has no line yet."""
    found = {one.member_id: one for one in following.ends if one.kind == "session_expired"}
    possible = {one.member_id for one in following.possible if one.kind == "session_expired"}
    said = {
        member_id: at_ms
        for member_id, (group_id, at_ms) in known.items()
        if group_id in following.followers and at_ms < following.followers[group_id].anchored_at_ms
    }
    measured.evictions = len(said)
    for member_id, at_ms in said.items():
        end = found.get(member_id)
        if end is None:
            measured.maybe += member_id in possible
            continue
        measured.widths_ms.append(end.to_ms - end.from_ms)
        is_between = end.from_ms - STAMP_MS <= at_ms <= end.to_ms + STAMP_MS
        is_hit = is_between and abs(end.at_ms - at_ms) <= NEAR_MS
        measured.hit += is_hit
        measured.within += is_between and not is_hit
        measured.near += not is_between
    measured.invented = len(set(found) - set(known))
    measured.maybe_not = len(possible - set(known))


def total(name: str, kind: str, parts: Sequence[Measured]) -> Measured:
    """Several as one."""
    whole = Measured(name, kind)
    for part in parts:
        whole.add(part)
    return whole


def by_class(measured: Measured) -> Counter[str]:
    """Surprises by class."""
    return Counter(str(one.surprise_class) for one in measured.surprises)


def scenario_of(name: str) -> Scenario:
    """A scenario by its name."""
    return SCENARIOS[name]


CLASSIC_SCENARIOS = tuple(name for name, one in SCENARIOS.items() if not one.protocol)
