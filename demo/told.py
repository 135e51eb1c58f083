"""Which alerts were received for which fault, and whether any is missing. Pure functions over messages and rows.

An alert is received when the receiver behind Alertmanager has it. It belongs to the fault of its group that began last
before it. What had to be told is read off the tables: a prediction that stood open in them for long enough to be seen
while they were fresh, and that is worth an alert (`api.present.deadlines`). The story's script says when a fault began
and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from api.notify.settings import NotifySettings
from demo.receiver import FROM_ALERTMANAGER, FROM_NOTIFIER, Message
from demo.tables import Record
from kardia.instants import parse_instant

ALERT_OF = {"session": "KafkaGroupSessionTimeoutImminent", "poll": "KafkaGroupPollTimeoutImminent"}
"""Kind of a prediction -> the alert that tells of it."""

STALE_AFTER_MS = int(NotifySettings.model_fields["stale_after_ms"].default)
"""Where the tables are further behind, the notifier holds back whatever is about a group."""

OPEN_FOR_MS = 2_000
"""The notifier promises to tell within a second after the commit. What was over sooner than twice that, on a machine
that is busy, need not have been told."""

STOOD_STILL_MS = 15_000
"""Longest time at a stretch that the feed of a run may be stale: a machine that is too busy needs no longer."""

Span = tuple[int, int]
"""From an instant to an instant."""


@dataclass(frozen=True)
class Begun:
    """A fault began: to which group, and when (epoch ms)."""

    fault: str
    group_id: str
    at_ms: int


@dataclass(frozen=True)
class Danger:
    """A prediction that was worth an alert, as the tables had it: instants of evidence and of commits, epoch ms."""

    group_id: str
    member_id: str
    kind: str
    evidence_at_ms: int
    """When the broker's log, read so far, showed it; the broker's clock."""
    committed_at_ms: int
    closed_at_ms: int | None
    """When its outcome was committed; None while it is open."""

    @property
    def alert(self) -> str:
        """Name of the alert that tells of it."""
        return ALERT_OF[self.kind]

    def must_be_told(self, fresh: Sequence[Span]) -> bool:
        """Whether it stood long enough while the feed was fresh."""
        return any(
            min(to_ms, self.closed_at_ms or to_ms) - max(from_ms, self.committed_at_ms) >= OPEN_FOR_MS
            for from_ms, to_ms in fresh
        )


@dataclass(frozen=True)
class Received:
    """An alert from its first notification to its end. `raised_at_ms`: when the notifier decided to tell it; None if
    only Prometheus did. `pushed_at_ms`: when the notifier's own webhook had it."""

    alert: str
    group_id: str
    severity: str
    description: str
    incident_url: str
    at_ms: int
    resolved_at_ms: int | None = None
    raised_at_ms: int | None = None
    pushed_at_ms: int | None = None

    def covers(self, danger: Danger) -> bool:
        """Whether somebody who had it knew of that danger while it was there."""
        same = (self.alert, self.group_id) == (danger.alert, danger.group_id)
        late = danger.closed_at_ms is not None and self.at_ms > danger.closed_at_ms + OPEN_FOR_MS
        over = self.resolved_at_ms is not None and self.resolved_at_ms < danger.committed_at_ms
        return same and not late and not over


def received(messages: Sequence[Message]) -> list[Received]:
    """What Alertmanager told, by the instant of arrival; repeats of what is known to fire add nothing.

    One that fires again with its old start is the same alert: its two senders disagreed about its end, as they do while
    the feed is stale (the notifier holds it, Prometheus lets it go).
    """
    pushed = [message for message in messages if message.path == FROM_NOTIFIER]
    latest: dict[str, tuple[str, Received]] = {}
    """Fingerprint -> start of the alert, and what is known of it."""
    over: list[Received] = []
    for message in messages:
        for alert in message.body["alerts"] if message.path == FROM_ALERTMANAGER else ():
            start, known = latest.get(alert["fingerprint"], ("", None))
            if alert["status"] == "resolved":
                if known is not None:
                    known = replace(known, resolved_at_ms=message.at_ms)
            elif known is not None and (known.resolved_at_ms is None or start == alert["startsAt"]):
                known = replace(known, resolved_at_ms=None)
            else:
                over += [known] if known is not None else []
                known = _received(alert, message.at_ms, pushed)
            if known is not None:
                latest[alert["fingerprint"]] = (alert["startsAt"], known)
    return sorted([*over, *(known for _, known in latest.values())], key=lambda one: one.at_ms)


def _received(alert: Mapping[str, Any], at_ms: int, pushed: Iterable[Message]) -> Received:
    labels, texts = alert["labels"], alert["annotations"]
    began_ms = parse_instant(alert["startsAt"])
    same = [
        message
        for message in pushed
        if message.body["type"].endswith(".raised")
        and all(labels.get(name) == value for name, value in message.body["data"]["labels"].items())
        # An alert keeps its start for as long as it lasts, whoever told it first.
        and message.body["data"]["told_at_ms"] >= began_ms - OPEN_FOR_MS
    ]
    first = min(same, key=lambda message: message.at_ms, default=None)
    return Received(
        labels["alertname"],
        labels.get("group", ""),
        labels.get("severity", ""),
        texts.get("description", ""),
        texts.get("incident_url", ""),
        at_ms,
        raised_at_ms=None if first is None else int(first.body["data"]["told_at_ms"]),
        pushed_at_ms=None if first is None else first.at_ms,
    )


def dangers(rows: Iterable[Record], committed_at_ms: Mapping[int, int]) -> list[Danger]:
    """From all versions of `predictions`, in their order; `committed_at_ms`: batch to when it was committed."""
    opened: dict[tuple[Any, ...], Danger] = {}
    found: list[Danger] = []
    for row in rows:
        at_ms = committed_at_ms.get(row["batch_id"])
        if row["kind"] not in ALERT_OF or at_ms is None:
            continue
        key = (row["group_id"], row["member_id"], row["kind"], row["predicted_at_ms"])
        if row["outcome"] != "open":
            danger = opened.pop(key, None)
            if danger is not None:
                found.append(replace(danger, closed_at_ms=at_ms))
        elif key not in opened and (row["kind"] != "session" or row["certainty"] != "provisional"):
            opened[key] = Danger(*key[:3], row["known_at_ms"], at_ms, None)
    return sorted([*found, *opened.values()], key=lambda one: one.committed_at_ms)


def fault_of(one: Received, begun: Sequence[Begun]) -> Begun | None:
    """The fault that an alert belongs to."""
    before = [begin for begin in begun if begin.group_id == one.group_id and begin.at_ms <= one.at_ms]
    return max(before, key=lambda begin: begin.at_ms, default=None)


def fresh_spans(rows: Iterable[Record], committed_at_ms: Mapping[int, int], until_ms: int) -> list[Span]:
    """When the feed was fresh, by `progress` and the commits of its batches; spans that touch are one."""
    complete_to_ms: dict[tuple[int, str], int] = {}
    at_commit: dict[int, int] = {}
    for row in rows:
        complete_to_ms[row["lane"], row["source"]] = row["complete_to_ms"]
        if row["batch_id"] in committed_at_ms:
            at_commit[committed_at_ms[row["batch_id"]]] = min(complete_to_ms.values())
    spans: list[Span] = []
    for from_ms, next_ms in pairwise([*sorted(at_commit), until_ms]):
        to_ms = min(next_ms, at_commit[from_ms] + STALE_AFTER_MS)
        if spans and spans[-1][1] == from_ms:
            spans[-1] = (spans[-1][0], max(from_ms, to_ms))
        else:
            spans.append((from_ms, to_ms))
    return [span for span in spans if span[0] < span[1]]


def stood_still(fresh: Sequence[Span]) -> list[Span]:
    """When the feed had been stale for so long that a machine that is busy does not explain it."""
    return [
        (stale_from_ms, fresh_from_ms)
        for (_, stale_from_ms), (fresh_from_ms, _) in pairwise(fresh)
        if fresh_from_ms - stale_from_ms > STOOD_STILL_MS
    ]


def missing(found: Sequence[Danger], told: Sequence[Received], fresh: Sequence[Span]) -> list[Danger]:
    """What had to be told and was not."""
    return [danger for danger in found if danger.must_be_told(fresh) and not any(one.covers(danger) for one in told)]


def invented(found: Sequence[Danger], told: Sequence[Received]) -> list[Received]:
    """What was told of a timeout that the tables do not say is near."""
    return [one for one in told if one.alert in ALERT_OF.values() and not any(one.covers(danger) for danger in found)]


def danger_of(one: Received, found: Sequence[Danger]) -> Danger | None:
    """The danger that an alert was raised for: the first that it covers."""
    return next((danger for danger in found if one.covers(danger)), None)
