"""Settings of a group that invite evictions and needless rebalances: rules as data, rows in, findings out.

Pure; knows what the tables know. `heartbeat.interval.ms` and the list of assignors never leave the client, so the rules
about them rest on what was seen, and say so by their certainty. A rule that has too little to go by finds nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kardia.story import words

Row = Mapping[str, Any]

SESSION_MIN_MS = 6_000
SESSION_MAX_MS = 1_800_000
"""Kafka's defaults of group.min.session.timeout.ms and group.max.session.timeout.ms (since 2.3 and 3.0)."""

HEARTBEAT_SHARE = 3
"""Kafka's own advice: heartbeat.interval.ms at most a third of session.timeout.ms, so that two may be lost."""

SAMPLES_MIN = 3
"""Samples of a member with so long a silence before it is taken for its habit; one may be a slow network."""


class Finding(NamedTuple):
    """Something about the settings that is worth changing, and whose it is."""

    rule: str
    severity: str
    """warning: it leads to evictions or endless rebalances; advice: it makes them likelier or harder to understand."""
    text: str
    advice: str
    certainty: str
    member_ids: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self._asdict() | {"member_ids": list(self.member_ids)}


class Seen(NamedTuple):
    """What the rules look at: rows of one group and one stretch of time."""

    lives: Sequence[Row]
    rebalances: Sequence[Row]
    health: Sequence[Row]
    fenced: frozenset[str] = frozenset()
    """Ids of members that still sent when another process had taken their static id."""


Found = tuple[str, tuple[str, ...]]
"""Sentence and member ids."""


class Rule(NamedTuple):
    """One rule."""

    name: str
    severity: str
    certainty: str
    advice: str
    look: Callable[[Seen], Iterable[Found]]


def lint(
    lives: Sequence[Row], rebalances: Sequence[Row], health: Sequence[Row], fenced: Iterable[str] = ()
) -> list[Finding]:
    """Findings about a group, in the order of the rules.

    `lives` and `rebalances` are the standing rows of the stretch looked at, `health` its samples, `fenced` the ids of
    members that were refused because another process had their static id.
    """
    seen = Seen(lives, rebalances, health, frozenset(fenced))
    return [
        Finding(rule.name, rule.severity, text, rule.advice, rule.certainty, member_ids)
        for rule in RULES
        for text, member_ids in rule.look(seen)
    ]


def _heartbeats(seen: Seen) -> Iterable[Found]:
    # A sample tells how long a member had been silent at an instant; of one silence only the longest counts.
    silences: dict[str, dict[int, int]] = defaultdict(dict)
    timeouts: dict[str, int] = {}
    row_of: dict[str, Row] = {}
    for row in seen.health:
        heard_ms, timeout_ms = row["last_heard_at_ms"], row["session_timeout_ms"]
        if row["status"] != "ok" or row["group_state"] != "Stable" or heard_ms is None or not timeout_ms:
            continue
        of_member = silences[row["member_id"]]
        of_member[heard_ms] = max(of_member.get(heard_ms, 0), row["at_ms"] - heard_ms)
        timeouts[row["member_id"]] = timeout_ms
        row_of[row["member_id"]] = row
    for member_id, of_member in sorted(silences.items()):
        third_ms = timeouts[member_id] / HEARTBEAT_SHARE
        long = [silent_ms for silent_ms in of_member.values() if silent_ms > third_ms]
        if len(long) >= SAMPLES_MIN and 2 * len(long) >= len(of_member):
            yield (
                f"{_names([row_of[member_id]])} was silent for up to {words.took(max(long))} while all was well; a "
                f"third of its session timeout is {words.span(third_ms)}.",
                (member_id,),
            )


def _assignors(seen: Seen) -> Iterable[Found]:
    chosen = Counter(row["protocol_name"] for row in seen.rebalances if row["protocol_name"])
    if len(chosen) > 1:
        names = words.listing([f"{words.name(name)} ({words.count(times, 'time')})" for name, times in chosen.items()])
        yield f"Rebalances chose different assignors: {names}.", ()


def _bounds(seen: Seen) -> Iterable[Found]:
    outside = [
        life
        for life in seen.lives
        if life["session_timeout_ms"] is not None and not SESSION_MIN_MS <= life["session_timeout_ms"] <= SESSION_MAX_MS
    ]
    for timeout_ms in sorted({life["session_timeout_ms"] for life in outside}):
        some = [life for life in outside if life["session_timeout_ms"] == timeout_ms]
        yield (
            f"A session timeout of {words.span(timeout_ms)} is outside the default bounds of a broker, "
            f"{words.span(SESSION_MIN_MS)} to {words.span(SESSION_MAX_MS)}: {_names(some)}.",
            _ids(some),
        )


def _different(column: str, noun: str) -> Callable[[Seen], Iterable[Found]]:
    def look(seen: Seen) -> Iterable[Found]:
        by_value: dict[int, list[Row]] = defaultdict(list)
        for life in seen.lives:
            if life[column] is not None and life["protocol"] == "classic":
                by_value[life[column]].append(life)
        if len(by_value) > 1:
            parts = [f"{words.span(value)} ({_names(lives)})" for value, lives in sorted(by_value.items())]
            yield f"Members have different {noun}s: {words.listing(parts)}.", _ids(seen.lives)

    return look


def _static_ids(seen: Seen) -> Iterable[Found]:
    by_static: dict[str, list[Row]] = defaultdict(list)
    for life in seen.lives:
        if life["group_instance_id"]:
            by_static[life["group_instance_id"]].append(life)
    for static_id, lives in sorted(by_static.items()):
        fenced = [life for life in lives if life["end_cause"] == "fenced" or life["member_id"] in seen.fenced]
        taken = [life for life in lives if life["end_cause"] == "static_replaced" and life not in fenced]
        hosts = {life["client_host"] for life in lives if life["client_host"]}
        # Taken over once is a restart; twice within one stretch, from two hosts, is two that fight for it.
        # One that was fenced by a JoinGroup of its own client and address may have been fenced by itself.
        fought = len(fenced) > 1 or not all(_may_be_fenced_by_itself(life, lives) for life in fenced)
        if fought or (len(taken) > 1 and len(hosts) > 1):
            times = words.count(len(fenced) + len(taken), "time")
            lived = f" Who had it before still lived and was fenced: {_names(fenced)}." if fenced else ""
            text = f"The static id {words.name(static_id)} was taken over {times}: {_names(lives)}.{lived}"
            yield text, _ids(lives)


def _may_be_fenced_by_itself(life: Row, lives: list[Row]) -> bool:
    """Whether the id that took its place is one of the same client.id and address."""
    who = life.get("client_id"), life["client_host"]
    same = [one for one in lives if one is not life and (one.get("client_id"), one["client_host"]) == who]
    return all(who) and any(one["joined_at_ms"] == life["ended_at_ms"] for one in same)


def _poll_below_session(seen: Seen) -> Iterable[Found]:
    short = [
        life
        for life in seen.lives
        if life["session_timeout_ms"] is not None
        and life["rebalance_timeout_ms"] is not None
        and life["rebalance_timeout_ms"] < life["session_timeout_ms"]
    ]
    if short:
        yield f"The poll interval is shorter than the session timeout: {_names(short)}.", _ids(short)


def _stalls(seen: Seen) -> Iterable[Found]:
    """Applications that did not poll within their interval, by the interval, with the longest time that one took."""
    by_interval: dict[int, list[tuple[Row, int | None]]] = defaultdict(list)
    for life in seen.lives:
        interval_ms = life["rebalance_timeout_ms"]
        by_application = life.get("fault") == "application" and life["end_cause"] in _ENDED_BY_STALL
        if interval_ms is None or not (life["end_cause"] == "poll_timeout" or by_application):
            continue
        back = [one["joined_at_ms"] for one in seen.lives if _is_next(life, one)]
        # It had polled an interval before it was over, and polls again to join.
        by_interval[interval_ms].append((life, min(back) - life["ended_at_ms"] + interval_ms if back else None))
    for interval_ms, found in sorted(by_interval.items()):
        stalls = [stalled_ms for _, stalled_ms in found if stalled_ms is not None]
        interval, lives = words.span(interval_ms), [life for life, _ in found]
        long = f"up to {words.took(max(stalls))}" if stalls else f"more than {interval}"
        yield f"{_names(lives)}: no poll for {long}, at a poll interval of {interval}.", _ids(lives)


_ENDED_BY_STALL = ("rebalance_timeout", "session_expired")


def _is_next(life: Row, other: Row) -> bool:
    """Whether a membership is the next one of the same client."""
    if other is life or other["joined_at_ms"] < life["ended_at_ms"]:
        return False
    if life["group_instance_id"]:
        return bool(other["group_instance_id"] == life["group_instance_id"])
    names = life.get("client_id"), life["client_host"]
    return all(names) and names == (other.get("client_id"), other["client_host"])


def _ids(lives: Iterable[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(life["member_id"] for life in lives))


def _names(lives: Iterable[Row]) -> str:
    """Members as everywhere: `billing-1 (6f6050d6)`."""
    known = {life["member_id"]: life.get("client_id") for life in lives}
    names = [words.told_apart(client, one) if client else words.called(one) for one, client in known.items()]
    return words.listing(names, 5)


RULES: tuple[Rule, ...] = (
    Rule(
        "duplicate_static_id",
        "warning",
        "inferred",
        "Give every process a group.instance.id of its own; two with one id throw each other out.",
        _static_ids,
    ),
    Rule(
        "stalls_above_interval",
        "warning",
        "inferred",
        "Raise max.poll.interval.ms above the longest time that a batch takes, or lower max.poll.records so that it "
        "takes less.",
        _stalls,
    ),
    Rule(
        "heartbeat_above_third",
        "warning",
        "inferred",
        "Set heartbeat.interval.ms to at most a third of session.timeout.ms, so that two heartbeats may be lost.",
        _heartbeats,
    ),
    Rule(
        "session_outside_bounds",
        "warning",
        "exact",
        "Choose a session timeout inside group.min.session.timeout.ms and group.max.session.timeout.ms; this one works "
        "only while the brokers' own bounds differ from the defaults.",
        _bounds,
    ),
    Rule(
        "mixed_assignors",
        "warning",
        "inferred",
        "Give all members the same partition.assignment.strategy; finish a rolling change of it.",
        _assignors,
    ),
    Rule(
        "different_session_timeouts",
        "advice",
        "exact",
        "Give all members of a group the same session.timeout.ms, or evictions come at different speeds.",
        _different("session_timeout_ms", "session timeout"),
    ),
    Rule(
        "different_rebalance_timeouts",
        "advice",
        "exact",
        "Give all members of a group the same max.poll.interval.ms: a rebalance waits as long as the longest allows.",
        _different("rebalance_timeout_ms", "rebalance timeout"),
    ),
    Rule(
        "poll_below_session",
        "advice",
        "exact",
        "Raise max.poll.interval.ms above session.timeout.ms: as it is, slow work is punished before a crash is seen.",
        _poll_below_session,
    ),
)
"""All rules, the gravest first."""
