"""What had been predicted: with how much lead, and which predictions did not come true."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby

from kardia.story import evidence, spoken, words
from kardia.story.facts import Material, Row, Sentence
from kardia.tables import STRUCK

NAMED_MAX = 3
"""That many averted predictions of one member and timeout are told one by one, more of them in one sentence."""

TIMEOUTS = {"session": "session timeout", "poll": "poll interval", "rebalance": "rebalance timeout"}

NO_LENGTH = "nothing says how long its session is"

_SIGNS = {"session": "it was heard", "poll": "a sign of a poll came", "rebalance": "it rejoined"}


def beforehand(material: Material, life: Row) -> str:
    """What had been said about an end before it came; empty for an end that nobody can foresee, as without the requests
    of the member none can be."""
    kind = STRUCK.get(life["end_cause"])
    if kind is None:
        return ""
    found = came_true(material, life, kind)
    if found is None:
        was_heard = life["session_timeout_ms"] is not None and bool(life["fault_signs"])
        return "This had not been predicted." if was_heard else ""
    said = words.clock(found["predicted_at_ms"], life["ended_at_ms"])
    lead_ms, error_ms = found["lead_ms"], found["error_ms"]
    lead = "" if lead_ms is None else f", {words.took(lead_ms)} ahead"
    if found["deadline_at_ms"] is None:
        return f"That it was in danger was said at {said}{lead}; when, was not known."
    off = "" if error_ms is None else f", {_off(error_ms, life['at_bound_ms'])}"
    return f"This was predicted at {said}{lead}{off}."


def of_several(material: Material, some: list[Row]) -> str:
    """What had been said before about several ends of one cause."""
    kind = STRUCK.get(some[0]["end_cause"])
    if kind is None:
        return ""
    found = [row for row in (came_true(material, life, kind) for life in some) if row is not None]
    if not found:
        heard = any(life["session_timeout_ms"] is not None and life["fault_signs"] for life in some)
        return "This had not been predicted." if heard else ""
    leads = sorted(int(row["lead_ms"]) for row in found if row["lead_ms"] is not None)
    times = list(dict.fromkeys(words.took(lead) for lead in leads[:1] + leads[-1:]))
    ahead = f" {' to '.join(times)} ahead" if times else ""
    if len(found) == len(some):
        return f"This was predicted of all,{ahead}." if ahead else "This was predicted of all."
    return f"This was predicted of {len(found)} of them{',' + ahead if ahead else ''}."


def _off(error_ms: int, at_bound_ms: int | None) -> str:
    """How right a prediction was of an end that came `error_ms` after what it said, or up to `at_bound_ms` later, None
    if nothing says how much."""
    bound_ms = 0 if at_bound_ms is None or at_bound_ms <= words.BOUND_SHOWN_MS else at_bound_ms
    ends = sorted((abs(error_ms), abs(error_ms + bound_ms)))
    if ends[1] == 0:
        return "right to the millisecond"
    if ends[0] == ends[1]:
        return f"off by {words.took(ends[1])}"
    if ends[0] == 0 or error_ms < 0 < error_ms + bound_ms:
        return f"off by at most {words.took(ends[1])}"
    return f"off by {words.took(ends[0])} to {words.took(ends[1])}"


def came_true(material: Material, life: Row, kind: str) -> Row | None:
    """The latest prediction of a kind about a life that came true."""
    found = [row for row in of_life(material, life, kind) if row["outcome"] == "came_true"]
    return found[-1] if found else None


def of_life(material: Material, life: Row, kind: str) -> list[Row]:
    """Predictions of a kind about one life."""
    until_ms = life["ended_at_ms"]
    return [
        row
        for row in material.predictions
        if row["member_id"] == life["member_id"]
        and row["kind"] == kind
        and row["predicted_at_ms"] >= life["joined_at_ms"]
        and (until_ms is None or row["predicted_at_ms"] <= until_ms)
    ]


def sentences(material: Material, members: Collection[str] | None = None) -> list[Sentence]:
    """Predictions about all members or some that did not come true or whose outcome is not known; those that came true
    are told with the end."""
    told = [row for row in material.predictions if row["outcome"] in ("averted", "unknown")]
    told = [row for row in told if members is None or row["member_id"] in members]
    told.sort(key=lambda row: (row["member_id"], row["kind"], row["outcome"]))
    found: list[Sentence] = []
    single: list[Row] = []
    for (member_id, kind, outcome), group in groupby(told, lambda row: (row["member_id"], row["kind"], row["outcome"])):
        rows = sorted(group, key=lambda row: int(row["predicted_at_ms"]))
        if len(rows) <= NAMED_MAX or outcome == "unknown":
            single += rows
        else:
            found.append(_many(material, member_id, kind, rows))
    return found + [_told(material, some) for some in _at_once(single)]


WITHIN_MS = 1_000
"""Warnings of one kind about several members, that near to each other, have one cause and are told in one sentence."""


def _at_once(rows: list[Row]) -> list[list[Row]]:
    """Warnings of one kind and outcome about different members within `WITHIN_MS`."""
    found: list[list[Row]] = []
    latest: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["predicted_at_ms"])):
        kind = row["kind"], row["outcome"]
        some = latest.get(kind)
        is_new = some is None or row["predicted_at_ms"] - some[0]["predicted_at_ms"] > WITHIN_MS
        if some is None or is_new or any(row["member_id"] == one["member_id"] for one in some):
            some = latest[kind] = []
            found.append(some)
        some.append(row)
    return found


def _told(material: Material, some: list[Row]) -> Sentence:
    """One warning, or several in one sentence."""
    if len(some) == 1:
        return _one(material, some[0])
    first, at_ms = some[0], some[0]["predicted_at_ms"]
    who = words.listing([material.who(row["member_id"], row["client_id"]) for row in some], 20)
    ends = sorted(int(row["deadline_at_ms"]) for row in some if row["deadline_at_ms"] is not None)
    when = " to ".join(dict.fromkeys(words.clock(end, at_ms) for end in ends[:1] + ends[-1:]))
    what = f"their {TIMEOUTS[first['kind']]}s would be over at {when}" if ends else f"{_MISSED}, and {NO_LENGTH}"
    after = "None of them struck." if first["outcome"] == "averted" else f"{NOT_READ}."
    members = tuple(row["member_id"] for row in some)
    text = f"Warning about {who}: {what}. {after}"
    return Sentence(at_ms, "predicted", text, first["certainty"], members, evidence.of_row("predictions"))


_MISSED = "they missed their heartbeats"
NOT_READ = "How that ended was not read"


def _expected(material: Material, row: Row) -> str:
    at_ms = row["predicted_at_ms"]
    who = material.who(row["member_id"], row["client_id"])
    if row["deadline_at_ms"] is None:
        return f"Warning about {who}: it missed its heartbeats, and {NO_LENGTH}"
    left_ms = row["deadline_at_ms"] - at_ms
    deadline = words.clock(row["deadline_at_ms"], at_ms)
    return f"Warning about {who}: its {TIMEOUTS[row['kind']]} would be over at {deadline}, in {words.took(left_ms)}"


_ENDED = {
    "left": "it left",
    "poll_timeout": "its application had not polled in time",
    "session_expired": "its session expired",
    "rebalance_timeout": "it had not rejoined in time",
    "static_replaced": "its seat was taken",
    "removed_by_admin": "an administrator removed it",
    "fenced": "it was fenced",
}
"""How a membership ended before a deadline of it came."""


def _one(material: Material, row: Row) -> Sentence:
    at_ms = row["predicted_at_ms"]
    if row["outcome"] == "unknown":
        life = material.life_at(row["member_id"], at_ms)
        over_ms = None if life is None else life["ended_at_ms"]
        after = NOT_READ
        if life is not None and over_ms is not None and life["end_cause"] in _ENDED and life["certainty"] != "unknown":
            after = f"Then {_ENDED[life['end_cause']]} at {words.clock(over_ms, at_ms)}"
    elif row["outcome_at_ms"] is None:
        after = "It did not strike"
    else:
        heard = words.clock(row["outcome_at_ms"], at_ms)
        life = material.life_at(row["member_id"], at_ms)
        sign = _SIGNS[row["kind"]]
        if row["kind"] == "rebalance" and life is not None and spoken.has_epochs(life["protocol"]):
            sign = f"it gave its {spoken.piece(life['protocol'])}s up"
        if life is not None and life["ended_at_ms"] == row["outcome_at_ms"]:
            sign = _ENDED.get(life["end_cause"], "its membership ended")
        after = f"It did not strike: {sign} at {heard}"
    text = f"{_expected(material, row)}. {after}."
    return Sentence(at_ms, "predicted", text, row["certainty"], (row["member_id"],), evidence.of_row("predictions"))


def _many(material: Material, member_id: str, kind: str, rows: list[Row]) -> Sentence:
    first, last = rows[0]["predicted_at_ms"], rows[-1]["predicted_at_ms"]
    over = [row for row in rows if None not in (row["outcome_at_ms"], row["deadline_at_ms"])]
    margins = [row["deadline_at_ms"] - row["outcome_at_ms"] for row in over]
    narrowest = f"; the narrowest margin was {words.took(min(margins))}" if margins else ""
    text = (
        f"{len(rows)} warnings about {material.who(member_id)} up to {words.clock(last, first)}: each time its "
        f"{TIMEOUTS[kind]} did not strike{narrowest}."
    )
    return Sentence(first, "predicted", text, "provisional", (member_id,), evidence.of_row("predictions"))
