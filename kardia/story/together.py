"""What happened to several members at once, for one cause, as one sentence: nobody reads the same thing forty times.

Only what each sentence would say in the same words is put together: the same cause, the same fault, as sure, within a
second. A story of one member tells its own sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kardia.story import evidence, foretold, in_doubt, lives, who_broke, words
from kardia.story.facts import Material, Row, Sentence
from kardia.tolerances import LATE_MS

WITHIN_MS = 1_000
"""From the first to the last of what is told together."""

NAMES_MAX = 20
"""Members that are named in one sentence."""


def ended(material: Material, rows: Iterable[Row], *, alone: bool = False) -> list[Sentence]:
    """Ends of memberships, those of one kind in one sentence. `alone`: who somebody is was not told before."""

    def kind(life: Row) -> Any:
        return (
            life["end_cause"],
            life["end_reason"],
            life["certainty"],
            life.get("fault"),
            life.get("fault_certainty"),
            lives.is_after_load(material, life) if life["end_cause"] == "session_expired" else False,
            life["end_cause"] not in _ENDED,  # they are told one by one
        )

    found = []
    for some in _at_once(rows, "ended_at_ms", kind):
        if len(some) == 1 or some[0]["end_cause"] not in _ENDED:
            found += [lives.ended(material, life, alone=alone) for life in some]
        else:
            found.append(_ended(material, some))
    return found


def joined(material: Material, rows: Iterable[Row]) -> list[Sentence]:
    """Beginnings of memberships; who was merely seen for the first time is told of with others in one sentence."""
    found = []
    for some in _at_once(rows, "joined_at_ms", lambda life: lives.came_by(material, life)):
        cause = lives.came_by(material, some[0])
        if len(some) == 1 or cause not in lives.CAME:
            found += [lives.joined(material, life) for life in some]
            continue
        text = f"{_names(material, some)} {lives.CAME[cause].format(was='were', a='members')}."
        first = material.transition(some[0]["joined_at_ms"], "Member", some[0]["member_id"])
        rows_of = evidence.of(first) or evidence.of_row("members")
        sure = str(first["certainty"]) if first is not None else "inferred"
        found.append(Sentence(some[0]["joined_at_ms"], "joined", text, sure, _ids(some), rows_of))
    return found


def _at_once(rows: Iterable[Row], column: str, kind: Callable[[Row], Any]) -> list[list[Row]]:
    """Rows of one kind within `WITHIN_MS`, in the order of their first."""
    found: list[list[Row]] = []
    latest: dict[Any, list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row[column])):
        some = latest.get(kind(row))
        if some is None or row[column] - some[0][column] > WITHIN_MS:
            some = latest[kind(row)] = []
            found.append(some)
        some.append(row)
    return found


_ENDED = {
    "session_expired": "were evicted: their sessions{of} expired",
    "poll_timeout": "gave up their memberships: their applications had not polled in time",
    "left": "left",
    "rebalance_timeout": "were dropped: they had not rejoined, or not given up what they had, in time",
    "sync_timeout": "were dropped: they had joined, but their SyncGroups did not come in time",
    "join_timeout": "were dropped: their joins were not completed in time",
    "removed_by_admin": "were removed by an admin",
    "group_deleted": "were gone when the group was deleted",
    "unknown": "are no longer members; why was not read",
}
"""End cause -> what is said of several; whose static id was taken, or who was refused, is told by itself."""


def _ended(material: Material, some: list[Row]) -> Sentence:
    first, last = some[0], some[-1]
    within_ms = last["ended_at_ms"] - first["ended_at_ms"]
    cause, reason = first["end_cause"], first["end_reason"]
    did = _ENDED[cause]
    if cause == "session_expired" and lives.is_after_load(material, first):
        did = "were evicted: a coordinator loaded the group, and they did not come back within their sessions{of}"
    timeouts = {row["session_timeout_ms"] for row in some} if cause == "session_expired" else set()
    of = f" of {words.span(timeouts.pop())}" if len(timeouts) == 1 and None not in timeouts else ""
    late = _late(material, some) if cause == "session_expired" and not lives.is_after_load(material, first) else ""
    said = f"; their words: {words.quoted(reason)}" if reason and cause in ("left", "poll_timeout") else ""
    parts = (
        words.stopped(f"{_names(material, some)} {did.format(of=of)}{said}"),
        late,
        f"The last {words.took(within_ms)} after the first." if within_ms > LATE_MS else "",
        in_doubt.told(first),
        who_broke.of_several(some),
        foretold.of_several(material, some),
    )
    found = evidence.of(material.transition(first["ended_at_ms"], "Absent", first["member_id"]))
    text = " ".join(part for part in parts if part)
    rows_of = found or evidence.of_row("members")
    return Sentence(first["ended_at_ms"], "ended", text, first["certainty"], _ids(some), rows_of)


def _late(material: Material, some: list[Row]) -> str:
    """How late a coordinator evicted them that may have stood still."""
    late_ms = []
    for life in some:
        heard_ms, timeout_ms = lives.last_heard_at_ms(material, life), life["session_timeout_ms"]
        if heard_ms is not None and timeout_ms is not None:
            late_ms.append(life["ended_at_ms"] - heard_ms - timeout_ms)
    if not late_ms or max(late_ms) <= LATE_MS:
        return ""
    return f"The coordinator, which may have stood still, evicted them up to {words.took(max(late_ms))} late."


def _names(material: Material, some: list[Row]) -> str:
    return words.listing([material.who(row["member_id"]) for row in some], NAMES_MAX)


def _ids(some: list[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["member_id"] for row in some))
