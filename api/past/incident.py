"""What happened to a group in a stretch of time, put together from all tables: the data of an incident report.

Reads files through `api.past.archive`, bounded; the sentences are `kardia.story`'s, the findings `kardia.lint`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from api.answers import as_dicts
from api.errors import RangeTooWide, TablesMissing
from api.files.reader import TableReader
from api.past import archive, by_batch
from api.past.as_of import Then, brought_up
from api.past.cursor import Place
from api.past.renewals import Past
from api.present.freshness import Freshness
from api.settings import ApiSettings
from kardia import story
from kardia.lint import lint
from kardia.story import migrations
from kardia.tables import EVICTION_CAUSES

ROWS_MAX = 1_000
"""Rows of a kind that the timeline is told from, the latest; as many as the API's longest page."""

LINT_MS = 600_000
"""End of the stretch whose health samples the rules look at: 10 minutes are 120 samples of a member at 5 s."""

SETTINGS = (
    "member_id",
    "group_instance_id",
    "protocol",
    "client_id",
    "client_host",
    "client_software_name",
    "client_software_version",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "joined_at_ms",
    "ended_at_ms",
    "end_cause",
    "certainty",
)


class Asked(NamedTuple):
    """The question: which group, from when to when, which rows count, how long the lists are."""

    cluster_id: str
    group_id: str
    from_ms: int
    to_ms: int
    end_ms: int
    """The end of the stretch, or up to where all is known if that is before it: what was so then can be told."""
    knowledge: archive.Knowledge
    limit: int


class Rows(NamedTuple):
    """Standing rows about the group up to the end of the stretch."""

    transitions: list[Any]
    rebalances: list[Any]
    lives: list[Any]
    predictions: list[Any]
    health: Past
    """Of each member the latest at the end."""
    samples: list[Any]
    """All of the last `LINT_MS` before the end."""
    disagreements: list[Any]
    """Lines of server.log that say otherwise, by their stamps."""
    more: bool
    """Whether there is more than was read."""


def read(readers: Mapping[str, TableReader], settings: ApiSettings, asked: Asked) -> Rows:
    """Everything that the report is made of."""
    about, rows_max = (asked.cluster_id, asked.group_id), settings.rows_read_max
    place = Place(asked.knowledge.batch_id, ())
    part = archive.HistoryPart(None, asked.to_ms, ROWS_MAX, True, place, asked.knowledge.known_at_ms)
    transitions = archive.transitions(readers["transitions"], *about, part, None)
    rebalances = archive.rebalances(readers["rebalances"], *about, part, rows_max)
    predictions = archive.predictions(readers["predictions"], *about, part, rows_max)
    lives = archive.lives_until(readers["members"], *about, asked.knowledge, asked.to_ms, rows_max)
    sampled = archive.health_at(
        readers["health"], *about, asked.knowledge, asked.end_ms, settings.health_lookback_ms, rows_max
    )
    then = Then(asked.end_ms, asked.knowledge.known_at_ms, asked.knowledge.batch_id)
    health = brought_up(readers, about, then, sampled, rows_max)
    stretch = max(asked.from_ms, asked.to_ms - LINT_MS), asked.to_ms
    try:
        samples = archive.health_between(readers["health"], *about, asked.knowledge, stretch, rows_max)
    except RangeTooWide:
        samples = []  # the rule about heartbeats finds nothing then, as where there are no samples
    try:
        differing = by_batch.rows(readers["disagreements"], *about, part, {}).rows
    except TablesMissing:
        differing = []  # of a version that had no such table
    pages = (transitions, rebalances, predictions)
    return Rows(
        transitions.rows[::-1],
        rebalances.rows[::-1],
        sorted(lives, key=lambda row: (row.joined_at_ms, row.member_id)),
        predictions.rows[::-1],
        health,
        samples,
        sorted(differing, key=lambda row: (row.at_ms, row.source, row.start)),
        any(page.place is not None for page in pages),
    )


def report(rows: Rows, asked: Asked, freshness: Freshness, ledger: Mapping[str, int]) -> dict[str, Any]:
    """The answer; each list has the latest `limit` entries, and `left_off` counts the rest."""
    inside = [row for row in rows.rebalances if _touches(row.started_at_ms, row.completed_at_ms, asked)]
    lives = [row for row in rows.lives if _touches(row.joined_at_ms, row.ended_at_ms, asked)]
    ended = [row for row in lives if row.ended_at_ms is not None and asked.from_ms <= row.ended_at_ms < asked.to_ms]
    ended.sort(key=lambda row: (row.ended_at_ms, row.member_id))
    evicted = [row for row in ended if row.end_cause in EVICTION_CAUSES]
    foretold = [row for row in rows.predictions if _touches(row.predicted_at_ms, row.outcome_at_ms, asked)]
    known = material(rows, asked, freshness, ledger)
    told = story.explain(known, from_ms=asked.from_ms, to_ms=asked.to_ms, sentences_max=asked.limit)
    findings = lint(
        _mappings(lives),
        _mappings(inside),
        _mappings(rows.samples),
        [row.member_id for row in rows.transitions if row.cause == "fenced" and row.at_ms >= asked.from_ms],
    )
    left_off: dict[str, int] = {}

    def latest(name: str, found: list[Any]) -> list[Any]:
        left_off[name] = max(0, len(found) - asked.limit)
        return found[-asked.limit :]

    return {
        "timeline": [sentence.as_json() for sentence in told.sentences],
        "causes": {
            "triggers": dict(Counter(row.trigger for row in inside).most_common()),
            "ends": dict(Counter(row.end_cause for row in ended).most_common()),
        },
        "evictions": [as_dicts.eviction(row) for row in latest("evictions", evicted)],
        "rebalances": [as_dicts.rebalance(row, freshness) for row in latest("rebalances", inside)],
        "predictions": [as_dicts.past_prediction(row, freshness) for row in latest("predictions", foretold)],
        "deadlines": [as_dicts.health(row, rows.health.settled) for row in latest("deadlines", _present(rows, asked))],
        "settings": [as_dicts.columns("members", row, SETTINGS) for row in latest("settings", lives)],
        "lint": [finding.as_json() for finding in findings],
        "migration": migrations.told(known, asked.from_ms, asked.to_ms, asked.limit),
        "left_off": left_off,
    }


def _present(rows: Rows, asked: Asked) -> list[Any]:
    """Health at the end of the stretch of those who were members then; whose session ends first comes last."""
    there = {
        row.member_id: row.joined_at_ms
        for row in rows.lives
        if row.ended_at_ms is None or row.ended_at_ms > asked.to_ms
    }
    found = [row for row in rows.health.rows if row.at_ms >= there.get(row.member_id, row.at_ms + 1)]
    return sorted(found, key=lambda row: (-(row.session_deadline_at_ms or 1 << 62), row.member_id))


def material(rows: Rows, asked: Asked, freshness: Freshness, ledger: Mapping[str, int]) -> story.Material:
    """What a story is told from."""
    cuts = [
        getattr(found[0], column)
        for found, column in (
            (rows.transitions, "at_ms"),
            (rows.rebalances, "started_at_ms"),
            (rows.predictions, "predicted_at_ms"),
        )
        if rows.more and len(found) == ROWS_MAX
    ]
    return story.Material(
        asked.cluster_id,
        asked.group_id,
        _mappings(rows.transitions),
        _mappings(rows.rebalances),
        _mappings(rows.lives),
        _mappings(rows.predictions),
        tuple(as_dicts.health(row, rows.health.settled) for row in rows.health.rows),
        freshness.complete_as_of_ms,
        freshness.now_ms,
        freshness.stale,
        max(cuts, default=None),
        ledger["gaps"],
        _mappings(rows.disagreements),
        rejected=ledger["rejected"],
    )


def _mappings(rows: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    return tuple(row._asdict() for row in rows)


def _touches(began_ms: int, ended_ms: int | None, asked: Asked) -> bool:
    """Whether something lasted into the stretch or began in it."""
    return began_ms < asked.to_ms and (ended_ms is None or ended_ms >= asked.from_ms)
