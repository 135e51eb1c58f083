"""Holds what the notifier told its receiver against the broker's own log, and against the tables as they were then.

Asked is: whatever stood in the tables as a danger for long enough, while the feed was fresh and the notifier awake, was
told; an eviction by session timeout in a time in which Kardia saw everything was announced, or told with its outcome;
what became of a member, as a notice says, is in server.log; and nobody was flooded. Pure: values in, findings out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from demo import server_log
from demo.receiver import FROM_NOTIFIER, Message
from demo.server_log import Fact
from demo.told import ALERT_OF, OPEN_FOR_MS, Danger, Span
from demo.verdict import facts_that_end_by
from tests.night.compare import INVENTED, MISSED, UNTRUE, Finding

FLOODED = "flooded"

OUTCOME_WITHIN_MS = 1_500
"""A notice has no bound; a timer of a broker was never seen to be later than a second."""

AGAIN_AFTER_MS = 25_000
"""A refresh goes out every 30 s, and at once where evidence is missing or there again, where somebody is named who was
not since it was raised, or where a danger is there again of which it was told how it had ended."""

LISTED, LISTED_WITHIN_MS = "KafkaGroupEvictions", 60_000
"""The alert that names everybody who was evicted lately, and how long after an eviction it may come."""

MINUTE_MS, MINUTE_MAX = 60_000, 120
"""Notices in one minute. Five groups with three alerts each, refreshed twice, are 30."""

RAISED_MAX, RAISED_WITHIN_MS = 6, 600_000
"""Raises of one alert within so long: each doubles the time that it stays after its cause is gone."""

SETTLED_MS = 5_000
"""After a broker or a role is back, so long passes until what is seen is what there is."""

_OUTCOME = re.compile(
    r"(?P<who>\S+)(?: at \S+)? (?P<how>was evicted at|left at|is gone since) (?P<at>\S+?Z)(?:: (?P<cause>\w+))?\."
)
_FENCED = (server_log.STATIC_REPLACED,)
_UUID = 37
"""Length of what a coordinator puts behind a client id or static id to make a member id."""


@dataclass(frozen=True)
class Notice:
    """One that was received, the first time that it was."""

    id: str
    at_ms: int
    """Instant of its arrival."""
    told_at_ms: int
    what: str
    """raised, refreshed or resolved."""
    key: tuple[str, str, str]
    """Alert, group, source."""
    members: tuple[str, ...]
    member_ids: tuple[str, ...]
    outcome: str
    unknown: bool

    @property
    def names(self) -> set[str]:
        """Whom it names: static ids and client ids."""
        return {one.split(" at ", 1)[0] for one in self.members}


@dataclass(frozen=True)
class Told:
    """Everything that is compared."""

    notices: Sequence[Notice]
    facts: Sequence[Fact]
    dangers: Sequence[Danger] = ()
    """What stood in the tables and was worth an alert, by the instants at which they were seen there."""
    awake: Sequence[Span] = ()
    """When the feed was fresh and the notifier there."""
    unsure: frozenset[tuple[str, str]] = frozenset()
    """(group, member id) of whom the tables foretold the end and were not sure of it until it came: it might wait in a
    JoinGroup, unseen. Nobody is woken for that."""
    outages: Sequence[Span] = ()
    """When the broker was away or stood still."""
    sessions_ms: Mapping[str, int] = field(default_factory=dict)
    """Group -> session timeout of its members."""
    until_ms: int = 0
    gaps: Sequence[Span] = ()
    """Of what Kardia said that it knows nothing."""


@dataclass(frozen=True)
class Said:
    """What came of it."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]


def notices(messages: Iterable[Message]) -> list[Notice]:
    """What the notifier told; what came twice with the same id counts once, for it may have died in between."""
    found: dict[str, Notice] = {}
    for message in messages:
        if message.path != FROM_NOTIFIER:
            continue
        body, data = message.body, message.body["data"]
        labels = data["labels"]
        key = (labels["alertname"], labels.get("group", ""), labels.get("source", ""))
        what = str(body["type"]).rsplit(".", 1)[-1]
        unknown = data["unknown_since_at_ms"] is not None
        one = Notice(
            body["id"],
            message.at_ms,
            data["told_at_ms"],
            what,
            key,
            tuple(data["members"]),
            tuple(data["member_ids"]),
            data["outcome"] or "",
            unknown,
        )
        found.setdefault(one.id, one)
    return sorted(found.values(), key=lambda one: (one.told_at_ms, one.at_ms))


def compare_told(told: Told) -> Said:
    """All findings by instant."""
    counts: Counter[str] = Counter(f"told: {one.key[0]} {one.what}" for one in told.notices)
    findings = [
        *_untold(told, counts),
        *_evictions(told, counts),
        *_outcomes(told, counts),
        *_floods(told),
    ]
    return Said(tuple(sorted(findings, key=lambda one: (one.at_ms, one.told))), dict(counts))


def unsure_of(predictions: Iterable[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """`Told.unsure`, from all rows of `predictions`."""
    of_sessions = [row for row in predictions if row["kind"] == "session" and row["outcome"] == "open"]
    foretold = {(row["group_id"], row["member_id"]) for row in of_sessions}
    sure = {(row["group_id"], row["member_id"]) for row in of_sessions if row["certainty"] != "provisional"}
    return frozenset(foretold - sure)


def name_of(member_id: str) -> str:
    """The client id or static id from which a coordinator made a member id."""
    return member_id[:-_UUID]


def _untold(told: Told, counts: Counter[str]) -> Iterator[Finding]:
    """Dangers that the tables had while nobody was told that there was one in that group. An alert is about a group: a
    further member is named two seconds later, and one in danger for less than that may be over by then."""
    for danger in told.dangers:
        if danger.evidence_at_ms > told.until_ms or not danger.must_be_told(told.awake):
            counts["dangers that were over soon, or that nobody could tell"] += 1
            continue
        until_ms = (danger.closed_at_ms or told.until_ms) + OPEN_FOR_MS
        same = [one for one in told.notices if one.key[:2] == (danger.alert, danger.group_id) and one.at_ms <= until_ms]
        within = [one for one in same if one.at_ms >= danger.committed_at_ms]
        before = [one for one in same if one.at_ms < danger.committed_at_ms]
        name = name_of(danger.member_id)
        # The notifier may have seen it before the look that noted it here.
        up = [one for one in before[-1:] if one.what != "resolved"]
        if any(name in one.names for one in (*within, *up)):
            counts["dangers that had to be told: told by name"] += 1
        elif up or any(one.what != "resolved" for one in within):
            counts["dangers that had to be told: told of the group"] += 1
        else:
            counts["dangers that had to be told: not told"] += 1
            text = f"{danger.kind} timeout of {name} was near in the tables, and not told"
            yield Finding(danger.committed_at_ms, danger.group_id, MISSED, text)


def _evictions(told: Told, counts: Counter[str]) -> Iterator[Finding]:
    """Evictions by session timeout of which nobody heard, before or after."""
    for fact in told.facts:
        if fact.what != server_log.MEMBER_FAILED or fact.at_ms > told.until_ms:
            continue
        session_ms = told.sessions_ms.get(fact.group_id, 0)
        name = name_of(fact.member_id)
        mine = [one for one in told.notices if one.key[1] == fact.group_id and name in one.names]
        if any(
            one.key[0] == ALERT_OF["session"] and fact.at_ms - session_ms <= one.told_at_ms <= fact.at_ms
            for one in mine
        ):
            counts["evictions by session timeout: announced"] += 1
        elif any(
            name == who and abs(at_ms - fact.at_ms) <= OUTCOME_WITHIN_MS
            for one in mine
            for who, _, at_ms, _ in _said(one)
        ):
            counts["evictions by session timeout: told with their outcome"] += 1
        elif any(one.key[0] == LISTED and 0 <= one.told_at_ms - fact.at_ms <= LISTED_WITHIN_MS for one in mine):
            counts["evictions by session timeout: told in a list"] += 1
        elif not _covered((fact.at_ms - session_ms, fact.at_ms), told.awake):
            counts["evictions by session timeout: while Kardia did not see or tell"] += 1
        elif _touches((fact.at_ms - session_ms, fact.at_ms), told.outages):
            counts["evictions by session timeout: around an outage of the broker"] += 1
        elif _touches((fact.at_ms - session_ms, fact.at_ms), told.gaps):
            counts["evictions by session timeout: around a gap that was told"] += 1
        elif (fact.group_id, fact.member_id) in told.unsure:
            counts["evictions by session timeout: foretold, and not sure until it came"] += 1
        else:
            counts["evictions by session timeout: not told"] += 1
            yield Finding(fact.at_ms, fact.group_id, MISSED, f"eviction of {name}: it was neither announced nor told")


def _outcomes(told: Told, counts: Counter[str]) -> Iterator[Finding]:
    """What a notice says became of somebody, and is not in the broker's log."""
    true: dict[tuple[str, str, str], list[int]] = {}
    for fact in told.facts:
        if fact.member_id:
            true.setdefault((fact.what, fact.group_id, name_of(fact.member_id)), []).append(fact.at_ms)
    seen: set[tuple[str, str, int]] = set()
    for one in told.notices:
        for who, cause, at_ms, text in _said(one):
            facts = _FENCED if cause == "fenced" else facts_that_end_by(cause)
            if not facts or (one.key[1], who, at_ms) in seen or at_ms > told.until_ms:
                continue
            seen.add((one.key[1], who, at_ms))
            counts["outcomes told"] += 1
            instants = [instant for what in facts for instant in true.get((what, one.key[1], who), ())]
            off_ms = min((abs(at_ms - instant) for instant in instants), default=None)
            if off_ms is None:
                yield Finding(one.told_at_ms, one.key[1], INVENTED, f"told, and not in server.log: {text}")
            elif off_ms > OUTCOME_WITHIN_MS:
                yield Finding(one.told_at_ms, one.key[1], UNTRUE, f"told, server.log has it {off_ms} ms off: {text}")


def _said(one: Notice) -> Iterator[tuple[str, str, int, str]]:
    """(who, end cause, instant, sentence) of each end that an outcome tells."""
    for found in _OUTCOME.finditer(one.outcome):
        at_ms = round(datetime.fromisoformat(found["at"]).timestamp() * 1_000)
        yield found["who"], found["cause"] or "left", at_ms, found[0]


def _floods(told: Told) -> Iterator[Finding]:
    """More than anybody can read, or the same again without need."""
    by_key: dict[tuple[str, str, str], list[Notice]] = {}
    for one in told.notices:
        by_key.setdefault(one.key, []).append(one)
    for (alert, group_id, source), ones in by_key.items():
        whose = f"{alert} {group_id}{source}".rstrip()
        named: set[str] = set()
        for before, one in pairwise(ones):
            named = {*before.member_ids, *(named if before.what != "raised" else ())}
            soon = one.told_at_ms - before.told_at_ms < AGAIN_AFTER_MS and before.unknown == one.unknown
            is_back = bool(before.outcome) and not one.outcome  # it was told how it had ended, and then it began again
            soon = soon and set(one.member_ids) <= named and not is_back
            if one.what == "raised" and before.what != "resolved":
                yield Finding(one.told_at_ms, group_id, FLOODED, f"{whose} was raised twice without an end between")
            elif one.what == "refreshed" and soon:
                text = f"{whose} was told again after {one.told_at_ms - before.told_at_ms} ms"
                yield Finding(one.told_at_ms, group_id, FLOODED, text)
        raised = [one.told_at_ms for one in ones if one.what == "raised"]
        if any(last - first < RAISED_WITHIN_MS for first, last in zip(raised, raised[RAISED_MAX:], strict=False)):
            text = f"{whose} was raised more than {RAISED_MAX} times in {RAISED_WITHIN_MS // MINUTE_MS} minutes"
            yield Finding(raised[RAISED_MAX], group_id, FLOODED, text)
    for minute, count in Counter(one.at_ms // MINUTE_MS for one in told.notices).items():
        if count > MINUTE_MAX:
            yield Finding(minute * MINUTE_MS, "", FLOODED, f"{count} notices in a minute")


def outages(done: Sequence[Mapping[str, Any]]) -> list[Span]:
    """From a kill or stop of the broker until a moment after it was there again."""
    spans: list[Span] = []
    since_ms: int | None = None
    for one in done:
        if one["whom"] != "broker":
            continue
        if one["what"] in ("start", "thaw"):
            if since_ms is not None:
                spans.append((since_ms, one["at_ms"] + SETTLED_MS))
            since_ms = None
        elif since_ms is None:
            since_ms = one["at_ms"]
    return spans


def _covered(span: Span, spans: Sequence[Span]) -> bool:
    return any(first <= span[0] and span[1] <= last for first, last in spans)


def _touches(span: Span, spans: Sequence[Span]) -> bool:
    return any(first <= span[1] and span[0] <= last for first, last in spans)
