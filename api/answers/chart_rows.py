"""The pulse of a group as flat lists, one row per point: what dashboards and data frames can draw without unfolding.

In: what `api.past.pulse` read, and transitions of the group. Out: `states`, `lanes`, `beats`, `polls` and `samples`,
each in order of time. Computes what a picture needs and a row does not have: the silence that a beat ended, what was
left of a timeout at a sample, and where knowledge ends: a picture goes on with what it saw last, so a feed that has
stalled is told by a last row that says `unknown`. A sample is no request, and the time between two is no silence.

A chart row is what one member is in a picture; answers call it `lane`, which elsewhere is a partition of the topic.
It is named as a person would name the member: by its static id, else by its client id; members that share one
are told apart by the end of their member ids. Decides nothing.

Every point carries the name of its chart row and not the member's id, which may be 32 KiB long; `lanes` has both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from api.present.current import UNKNOWN_STATE, StateNow
from api.present.health import headroom
from kardia.certainty import Certainty
from kardia.statuses import AWAITED

NAME_CHARS_MAX = 80
"""Longest name; what a legend can show."""

TAIL_CHARS = 6
"""Enough of a UUID's end to tell the members of one group apart."""


class Begin(NamedTuple):
    """What a group was when a picture begins."""

    at_ms: int
    state: str
    certainty: Certainty


class Ends(NamedTuple):
    """Where a picture ends (exclusive), and where knowledge ends, if it ends inside."""

    to_ms: int
    blind_from_ms: int | None


def named(members: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """(name of the chart row, member), by name. Names are unique: where tails do not do, the rows are numbered."""
    ordered = sorted(members, key=lambda one: one["member_id"])
    shared = Counter(map(_plain, ordered))
    names = [_plain(one) if shared[_plain(one)] == 1 else _with_tail(one) for one in ordered]
    if len(set(names)) < len(names):
        names = [f"{number} {_plain(one)}" for number, one in enumerate(ordered, 1)]
    return sorted(zip(names, ordered, strict=True), key=lambda pair: pair[0])


def states(before: Begin, transitions: Iterable[Any], ahead: StateNow | None, ends: Ends) -> list[dict[str, Any]]:
    """The state at the beginning and every change after it, oldest first. A state that lasted for less than a
    millisecond has no width and is left out. `ahead` is the state that members show and no transition has told yet: it
    lasts, so it belongs into the picture from when it was first seen."""
    found: dict[int, tuple[str, str]] = {before.at_ms: (before.state, before.certainty)}
    for row in transitions:
        found[row.at_ms] = row.to_state, row.certainty
    if ahead is not None and ahead.since_at_ms < ends.to_ms:
        found[max(ahead.since_at_ms, *found)] = ahead.name, ahead.certainty
    if ends.blind_from_ms is not None:
        found[max(ends.blind_from_ms, *found)] = UNKNOWN_STATE, "unknown"
    return [{"at_ms": at_ms, "state": state, "certainty": sure} for at_ms, (state, sure) in found.items()]


def flat(members: list[dict[str, Any]], blind_from_ms: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Rows of the answer; `blind_from_ms` is where knowledge ends, if it ends inside the picture."""
    chart_rows = named(members)
    return {
        "lanes": [
            {
                "href": one["href"],
                "lane": chart_row,
                "group_id": one["group_id"],
                "member_id": one["member_id"],
                "client_id": one["client_id"],
                "group_instance_id": one["group_instance_id"],
                "last_status": one["samples"][-1]["status"] if one["samples"] else "unknown",
            }
            for chart_row, one in chart_rows
        ],
        "beats": _ordered(row for chart_row, one in chart_rows for row in _beats(chart_row, one)),
        "polls": _ordered({"lane": chart_row, **poll} for chart_row, one in chart_rows for poll in one["polls"]),
        "samples": _ordered(row for chart_row, one in chart_rows for row in _samples(chart_row, one, blind_from_ms)),
    }


POINT = ("kind", "at_ms", "lane", "shown", "gap_ratio", "session_headroom_ratio", "poll_headroom_ratio")
"""Columns of a point; those that its kind does not have are null."""

POINTS = {"state": "states", "sample": "samples", "beat": "beats", "poll": "polls"}
"""Kind of a point -> the list of `Lanes` that it is from."""


SEEN = ("at_ms", "status", "shown", "certainty", "group_state", "generation_id")
"""What a sample of a chart row has from the sample of its member."""

TROUBLE = ("overdue", "imminent", AWAITED, "late")
"""Shown statuses for which a member goes into a picture that has no room for all, the first one first."""


def worst(members: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` members: those that were in most trouble in the stretch; among equals by id."""
    return sorted(members, key=lambda one: (_trouble(one), one["member_id"]))[:limit]


def _trouble(one: dict[str, Any]) -> int:
    seen = {row["shown"] for row in one["samples"]}
    return next((rank for rank, status in enumerate(TROUBLE) if status in seen), len(TROUBLE))


def points(found: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All lists of a picture as one: a dashboard that asks once can draw them all."""
    return _ordered(
        {"kind": kind, **{name: row.get(name) for name in POINT[1:]}, **_own(kind, row)}
        for kind, name in POINTS.items()
        for row in found[name]
    )


def _own(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    is_poll = kind == "poll"
    return {
        "state": row["state"] if kind == "state" else None,
        "evidence": row["evidence"] if is_poll else None,
        "error_bound_ms": row["error_bound_ms"] if is_poll else None,
    }


def _plain(one: dict[str, Any]) -> str:
    name = str(one["group_instance_id"] or one["client_id"] or one["member_id"])
    return name if len(name) <= NAME_CHARS_MAX else f"{name[: NAME_CHARS_MAX - 1]}…"


def _with_tail(one: dict[str, Any]) -> str:
    return f"{_plain(one)} …{one['member_id'][-TAIL_CHARS:]}"


def _ordered(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["at_ms"])


def _beats(chart_row: str, one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Beats with the silence before each, where it is known: both are archived requests, and nothing hid others."""
    before: dict[str, Any] | None = None
    timeout_at = 0
    samples = one["samples"]
    hidden_ms = [sample["at_ms"] for sample in samples if sample["status"] == "unknown"]
    for beat in one["beats"]:
        # The session timeout that was in force: that of the first sample at or after the beat, else of the last one.
        while timeout_at < len(samples) - 1 and samples[timeout_at]["at_ms"] < beat["at_ms"]:
            timeout_at += 1
        timeout_ms = samples[timeout_at]["session_timeout_ms"] if samples else None
        gap_ms: int | None = None
        if before is not None and "seen" not in (before["by"], beat["by"]):
            first = bisect_left(hidden_ms, before["at_ms"])
            if first == len(hidden_ms) or hidden_ms[first] > beat["at_ms"]:
                gap_ms = max(0, beat["at_ms"] - before["renewed_at_ms"])
        ratio: float | None = None if gap_ms is None or not timeout_ms else round(gap_ms / timeout_ms, 4)
        yield {"lane": chart_row, **beat, "gap_ms": gap_ms, "gap_ratio": ratio}
        before = beat


def _samples(chart_row: str, one: dict[str, Any], blind_from_ms: int | None) -> Iterator[dict[str, Any]]:
    samples = one["samples"]
    if blind_from_ms is not None and samples and samples[-1]["status"] != "ended":
        at_ms = max(blind_from_ms, samples[-1]["at_ms"])
        blind = dict.fromkeys(("status", "shown", "certainty"), "unknown")
        samples = [*samples, {**samples[-1], "at_ms": at_ms, **blind}]
    for sample in samples:
        known = sample["status"] != "unknown"
        at_ms = sample["at_ms"]
        yield {
            "lane": chart_row,
            **{name: sample[name] for name in SEEN},
            "session_headroom_ratio": headroom(sample["session_deadline_at_ms"], sample["session_timeout_ms"], at_ms)
            if known
            else None,
            "poll_headroom_ratio": headroom(sample["poll_deadline_at_ms"], sample["poll_timeout_ms"], at_ms)
            if known
            else None,
        }
