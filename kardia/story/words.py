"""How names, instants and durations are written. Every text that a stranger chose passes `name` or `quoted`.

Ids of groups and members, client ids and reasons may hold anything: control characters, terminal escapes, marks of
direction, a whole sentence. They are never interpreted: what is not plain stands in quotes, what is not printable is
escaped, what is long is cut in the middle. Backslash and quote are escaped as well, so that the writing is unambiguous.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from kardia.instants import to_rfc3339

NAME_CHARS_MAX = 80
"""Longest name shown; Kafka's own member ids are a client.id and 37 characters."""

REASON_CHARS_MAX = 200
LISTED_MAX = 10
"""Names in one sentence; the rest is counted."""

BOUND_SHOWN_MS = 5
"""A bound within that is the width of two stamps and of a timer that fires in time: nobody need read of it."""

_DAY_MS = 86_400_000
_PLAIN = re.compile(r"[A-Za-z0-9_.:@/+#~=-]+")
_UUID_AT_END = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
"""Behind a client.id or a static id and a hyphen in ids that a broker makes (`GroupMetadata.generateMemberId`)."""


def escaped(text: str) -> str:
    """Printable text: other characters, combining marks, backslash and quote as escapes."""
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character in ('"', "\\"):
        return "\\" + character
    if character.isprintable() and unicodedata.category(character) not in ("Mn", "Me"):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, chars_max: int) -> str:
    """A long text without its middle."""
    if len(text) <= chars_max:
        return text
    head = (chars_max - 1) * 2 // 3
    return text[:head] + "…" + text[-(chars_max - 1 - head) :]


def quoted(text: str, chars_max: int = REASON_CHARS_MAX) -> str:
    """A stranger's words, in quotes."""
    return f'"{shortened(escaped(shortened(text, chars_max)), 4 * chars_max)}"'


def stopped(text: str) -> str:
    """A sentence with its full stop, which may stand inside the last quote already."""
    return text if text.endswith((".", '."')) else text + "."


def name(text: str, chars_max: int = NAME_CHARS_MAX) -> str:
    """An id as it is where it is plain; in quotes and escaped where it could be taken for something else."""
    return shortened(text, chars_max) if _PLAIN.fullmatch(text) else quoted(text, chars_max)


def short_id(member_id: str) -> str:
    """What tells a member id from others of the same client: the head of its UUID, or its last characters."""
    found = _UUID_AT_END.search(member_id)
    return found[1] if found else name(member_id if len(member_id) <= 24 else "…" + member_id[-12:], 24)


def told_apart(client_id: str, member_id: str) -> str:
    """A client.id with what tells its members apart: `billing-1 (6f6050d6)`."""
    return f"{name(client_id)} ({short_id(member_id)})"


def called(member_id: str) -> str:
    """A member of which only the id is known: by what stands in it before its UUID, as one whose client.id is known."""
    found = _UUID_AT_END.search(member_id)
    head = member_id[: found.start()].removesuffix("-") if found else ""
    return told_apart(head, member_id) if head else f"member {short_id(member_id)}"


def meant(text: str, known: Iterable[tuple[str, str | None, str | None]]) -> list[str]:
    """Member ids that a word means, of (member id, client.id, static id): that id; else those with that client.id
    or static id; else those that are written so here (`6f6050d6`, `billing-1 (6f6050d6)`)."""
    rows = list(known)
    for is_meant in (
        lambda member_id, _client, _static: text == member_id,
        lambda _member_id, client, static: text in (client, static),
        lambda member_id, client, static: text in _written(member_id, client, static),
    ):
        found = [row[0] for row in rows if is_meant(*row)]
        if found:
            return list(dict.fromkeys(found))
    return []


def _written(member_id: str, client_id: str | None, static_id: str | None) -> Iterator[str]:
    """All that a sentence may call a member."""
    yield short_id(member_id)
    yield name(member_id)
    yield called(member_id)
    if client_id:
        yield told_apart(client_id, member_id)
        yield name(client_id)
    if static_id:
        yield name(static_id)


def instant(at_ms: int) -> str:
    """RFC 3339, UTC, with milliseconds; the number itself where no calendar holds it."""
    return to_rfc3339(at_ms) or f"{at_ms} ms"


def clock(at_ms: int, beside_ms: int) -> str:
    """Time of day where another instant of the same day stands beside it, else the whole instant. Either names its
    zone, so that it means the same wherever it is typed again."""
    whole = instant(at_ms)
    return whole[11:] if at_ms // _DAY_MS == beside_ms // _DAY_MS and whole.endswith("Z") else whole


BY_TIMER = frozenset({"session_expired", "pending_expired", "rebalance_timeout", "sync_timeout", "join_timeout"})
"""End causes and triggers that are a timer of the broker, which may fire late; bounds of others are wide for other
reasons."""


def between(what: str, at_ms: int, bound_ms: int | None, cause: str = "") -> str:
    """A sentence that says within which bounds something was, and why they are wide if `cause` is a timer; empty where
    they are those of a stamp, or not known."""
    if bound_ms is None or bound_ms <= BOUND_SHOWN_MS:
        return ""
    end_ms = at_ms + bound_ms
    why = ": timers of a broker may fire late" if cause in BY_TIMER else ""
    return f"{what} between {clock(at_ms, end_ms)} and {clock(end_ms, at_ms)}{why}."


def span(duration_ms: float) -> str:
    """A duration: to the millisecond below a minute, to the second above."""
    whole = round(abs(duration_ms))
    sign = "-" if duration_ms < 0 and whole else ""
    if whole < 1_000:
        return f"{sign}{whole} ms"
    if whole < 60_000:
        return f"{sign}{whole / 1000:.3f}".rstrip("0").rstrip(".") + " s"
    seconds = whole // 1000
    for size, unit, below, unit_below in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // below
            return f"{sign}{seconds // size} {unit}" + (f" {rest} {unit_below}" if rest else "")
    raise AssertionError(f"{duration_ms} ms: a minute or more has a unit")


def took(duration_ms: float) -> str:
    """How long something took or was waited for, in a sentence: to the tenth of a second above one. A setting, and what
    is held against one, is told by `span`."""
    return span(duration_ms if abs(duration_ms) < 1_000 else round(duration_ms / 100) * 100)


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listing(items: Sequence[str], listed_max: int = LISTED_MAX) -> str:
    """`a, b and c`; what is beyond the bound is counted."""
    if len(items) > listed_max:
        return ", ".join(items[:listed_max]) + f" and {len(items) - listed_max} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + f" and {items[-1]}"


def clauses(parts: Iterable[str]) -> str:
    """Parts of a sentence that are there, with commas."""
    return ", ".join(part for part in parts if part)
