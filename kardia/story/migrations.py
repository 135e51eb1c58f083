"""A group that changes its protocol: who speaks which one when, what converted it and by whose request, what is in the
way. `None` of a group that speaks one protocol all the time, and was refused no other.

Only classic and consumer: share and streams groups change into nothing. A client's library says whether it could speak
the consumer protocol (`kardia.kafka.newer_protocol`); one that announced none is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kardia.kafka.newer_protocol import BUILT_IN, Support, support_of
from kardia.story import evidence, words
from kardia.story.facts import Material, Row, Sentence

PROTOCOLS = ("classic", "consumer")

NEAR_MS = 1_000
"""A member is taken for the one by which a group changed if it came or went within that: both instants are bounded
where no record is read."""

REFUSED = {
    "upgrade_refused": "GROUP_ID_NOT_FOUND. A coordinator refuses so where group.consumer.migration.policy does not "
    "let a group with members move, where it has more members than group.consumer.max.size, or where its assignor "
    "sends data of its own; server.log says which",
    "upgrade_failed": "UNKNOWN_SERVER_ERROR. Kafka 4.0 to 4.4 answer so while the group prepares its first generation; "
    "it is asked again",
}
"""Causes of transitions that tell of it -> the answer, and what it may mean."""

_TIMED = ("session_expired", "rebalance_timeout", "join_timeout", "sync_timeout")


def told(material: Material, from_ms: int, to_ms: int, limit: int) -> dict[str, Any] | None:
    """Everything about it in a stretch of time, plain values for JSON; of each list the latest `limit` entries."""
    lives = [row for row in material.lives if row["protocol"] in PROTOCOLS and _lasts(row, from_ms, to_ms)]
    conversions = [_conversion(material, row) for row in _of(material, ("upgraded", "downgraded"), from_ms, to_ms)]
    refused = [_refusal(material, row) for row in _of(material, REFUSED, from_ms, to_ms)]
    both = len({row["protocol"] for row in lives}) > 1
    if not (both or conversions or refused):
        return None
    obstacles = [*refused, *_behind(material, lives, to_ms), *_assignor(material, from_ms, to_ms)]
    obstacles += _evicted(material, lives, from_ms, to_ms)
    return {
        "speaks": _speaks(lives, from_ms, to_ms)[-limit:],
        "conversions": [one.as_json() for one in conversions[-limit:]],
        "in_the_way": [one.as_json() for one in sorted(obstacles, key=lambda one: one.at_ms)[-limit:]],
    }


def _lasts(row: Row, from_ms: int, to_ms: int) -> bool:
    return bool(row["joined_at_ms"] < to_ms and (row["ended_at_ms"] is None or row["ended_at_ms"] >= from_ms))


def _of(material: Material, causes: Iterable[str], from_ms: int, to_ms: int) -> list[Row]:
    """Transitions with one of these causes."""
    wanted = set(causes)
    return [row for row in material.transitions if row["cause"] in wanted and from_ms <= row["at_ms"] < to_ms]


def _speaks(lives: list[Row], from_ms: int, to_ms: int) -> list[dict[str, Any]]:
    """How many members speak each protocol, at the begin of the stretch and whenever that changes."""
    changes: dict[int, dict[str, int]] = {from_ms: dict.fromkeys(PROTOCOLS, 0)}
    for row in lives:
        ends = row["ended_at_ms"]
        for at_ms, more in ((max(row["joined_at_ms"], from_ms), 1), (ends, -1)):
            if at_ms is not None and at_ms < to_ms:
                at = changes.setdefault(max(at_ms, from_ms), dict.fromkeys(PROTOCOLS, 0))
                at[row["protocol"]] += more
    found: list[dict[str, Any]] = []
    now = dict.fromkeys(PROTOCOLS, 0)
    for at_ms in sorted(changes):
        after = {protocol: now[protocol] + changes[at_ms][protocol] for protocol in PROTOCOLS}
        if after != now or not found:
            found.append({"at": words.instant(at_ms), "at_ms": at_ms, **after})
        now = after
    return found


def _conversion(material: Material, row: Row) -> Sentence:
    """The group changed its protocol: by whom."""
    at_ms, up = row["at_ms"], row["cause"] == "upgraded"
    column = "joined_at_ms" if up else "ended_at_ms"
    near = [
        life
        for life in material.lives
        if life["protocol"] == "consumer" and life[column] is not None and abs(life[column] - at_ms) <= NEAR_MS
    ]
    by = min(near, key=lambda life: abs(life[column] - at_ms), default=None)
    there = [life for life in material.lives if _lasts(life, at_ms, at_ms) and life is not by]
    stayed = words.count(sum(life["protocol"] == "classic" for life in there), "classic member")
    if up:
        who = "a member of the consumer protocol joined"
        who = who if by is None else f"{material.who(by['member_id'])} joined with the consumer protocol"
        text = f"The group became a consumer group: {who}. {stayed} stayed in it."
    else:
        who = "the last member of the consumer protocol was gone"
        who = who if by is None else f"{material.who(by['member_id'])}, the last of the consumer protocol, was gone"
        why = "" if by is None or by["end_cause"] in (None, "unknown") else f" ({by['end_cause']})"
        text = f"The group became a classic group again: {who}{why}. {stayed} stayed in it."
    certainty = row["certainty"] if by is not None else "inferred"
    return Sentence(at_ms, "context", text, certainty, _ids(by), evidence.of(row))


def _refusal(material: Material, row: Row) -> Sentence:
    who = material.who(row["member_id"])
    text = f"{who} asked to join with the consumer protocol and was answered {REFUSED[row['cause']]}."
    return Sentence(row["at_ms"], "context", text, row["certainty"], (row["member_id"],), evidence.of(row))


def _behind(material: Material, lives: list[Row], to_ms: int) -> list[Sentence]:
    """Who still speaks the classic protocol at the end, and whether its client could do otherwise."""
    end_ms = material.known_to(to_ms)
    classic = [row for row in lives if row["protocol"] == "classic" and _lasts(row, end_ms, end_ms + 1)]
    found = []
    for row in classic:
        software = "/".join(str(row[part] or "") for part in ("client_software_name", "client_software_version"))
        can, library = support_of(software.strip("/"), row["client_id"] or "")
        who = material.introduced(row["member_id"])
        if can in (Support.YES, Support.ASKED):
            text, sure = "stayed with the classic protocol, though its client can speak the consumer protocol.", "exact"
        elif can is Support.UNKNOWN:
            text, sure = (
                "stayed with the classic protocol; whether its client can speak another is not known.",
                "unknown",
            )
        else:
            needs = f" Needed: {library.needs}." if library is not None else ""
            text, sure = f"stayed with the classic protocol: its client is too old for the other.{needs}", "exact"
        found.append(Sentence(end_ms, "state", f"{who} {text}", sure, (row["member_id"],), evidence.of_row("members")))
    return found


def _assignor(material: Material, from_ms: int, to_ms: int) -> list[Sentence]:
    """The assignor of the last generation, if no assignor of the broker does what it does."""
    rows = [row for row in material.rebalances if row["protocol_name"] and from_ms <= row["started_at_ms"] < to_ms]
    if not rows or rows[-1]["protocol_name"] in BUILT_IN:
        return []
    name = words.name(rows[-1]["protocol_name"])
    text = (
        f"The classic members chose the assignor {name}, which is none of Kafka's own: in a consumer group the broker "
        "assigns, and does not know it. (Whether it sends data along, which stops the move, is not seen.)"
    )
    return [Sentence(rows[-1]["started_at_ms"], "context", text, "inferred", (), evidence.of_row("rebalances"))]


def _evicted(material: Material, lives: list[Row], from_ms: int, to_ms: int) -> list[Sentence]:
    """Who was evicted while members of both protocols were there."""
    found = []
    for row in lives:
        at_ms, cause = row["ended_at_ms"], row["end_cause"]
        if at_ms is None or cause not in _TIMED or not from_ms <= at_ms < to_ms:
            continue
        others = {one["protocol"] for one in lives if one is not row and _lasts(one, at_ms, at_ms)}
        if others - {row["protocol"]}:
            who = f"{material.who(row['member_id'])}, of the {row['protocol']} protocol,"
            text = f"{who} was evicted ({cause}) while members of both were there."
            found.append(
                Sentence(at_ms, "ended", text, row["certainty"], (row["member_id"],), evidence.of_row("members"))
            )
    return found


def _ids(row: Row | None) -> tuple[str, ...]:
    return () if row is None else (row["member_id"],)
