"""What a text line of brokers 2.0 to 2.7 can mean: its request and response by their schema, in every way that fits.

Nothing in these lines is escaped, so an id may look like anything, the rest of a line included. A line whose names have
none of the characters between fields has one reading: one regular expression finds it, in time that grows with the
line (no two parts of it can begin with the same character). Every other line is matched in all ways that its schema
allows, with a bounded number of steps, and what decides between several readings is what a client cannot choose
freely: a member id is made of the client id, or of a group instance id, and a UUID of the broker.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ingest.dialects.text_schemas import APIS, Field, Struct, Value

MAX_STEPS = 10_000
"""Steps of the search through a line: some 10 ms. What needs more is ambiguous."""

MAX_READINGS = 64

MAX_CHARS = 256 * 1024
"""Characters of a line that is searched: names of 32 KiB, several times over."""

MAX_KNOWN = 1_024
MAX_KNOWN_CHARS = 512
"""Lists of one struct whose items are kept, and how long they may be: some 2 MB."""

PLAIN = r"[^,{}\[\]\n]*"
_INT = r"-?\d{1,19}"
_BUFFER = r"java\.nio\.\w+\[pos=\d+ lim=\d+ cap=\d+\]"
_NAMES = r"[^{}\[\]\n]*"
_VALUES = {
    Value.NUMBER: _INT,
    Value.TEXT: PLAIN,
    Value.OPTION: PLAIN,
    Value.BYTES: _BUFFER,
    Value.NAMES: rf"\[{_NAMES}\]",
}
_TAGGED = ",_tagged_fields={}"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_CHARS = 36
HEADER_END = re.compile(r", correlationId=-?\d+\) -- ")
_int_at = re.compile(_INT).match
_bytes_at = re.compile(_BUFFER).match
_ACCEPTED = (0, 27, 79)
"""Answers to a member that the broker knows: what they say of others is made up by the client."""

Parts = dict[str, Any]


class Reading(NamedTuple):
    """One way to read a line: names as in a JSON line."""

    client_id: str
    request: Parts
    response: Parts


# --- lines with one reading ------------------------------------------------------------------------------------------


class Shape:
    """A struct in one version, compiled."""

    def __init__(self, struct: Struct, version: int) -> None:
        """Fields that are there in this version."""
        self.fields = [field for field in struct.fields if field.since <= version <= field.until]
        self.close = _TAGGED + "}" if version >= struct.flexible else "}"
        self.within = {
            field.names: Shape(field.value, version) for field in self.fields if isinstance(field.value, Struct)
        }
        self.literals = [
            tuple(f"{',' if number else '{'}{name}=" for name in field.names)
            for number, field in enumerate(self.fields)
        ]
        self.pattern = self._pattern("")
        self.captured = self._pattern("(")
        self.item = re.compile(self.captured)
        self.kept = [(field.to, self._value(field)) for field in self.fields if field.to]
        self._known: dict[str, list[Parts]] = {}

    def _pattern(self, group: str) -> str:
        parts = []
        for field, literals in zip(self.fields, self.literals, strict=True):
            inner = self.within.get(field.names)
            value = _VALUES[field.value] if isinstance(field.value, Value) else ""
            if inner is not None:
                value = rf"\[(?:{inner.pattern}(?:,{inner.pattern})*)?\]"
            names = "|".join(map(re.escape, literals))
            kept = group if field.to else ""
            parts.append(f"(?:{names}){kept}{value}{')' if kept else ''}")
        return "".join(parts) + re.escape(self.close)

    def parts(self, texts: Sequence[str]) -> Parts:
        """Parts from what the expression captured."""
        return {to: value(text) for (to, value), text in zip(self.kept, texts, strict=False)}

    def _value(self, field: Field) -> Callable[[str], Any]:
        """How the value of a field is made of its text, which is plain where it is a list."""
        if field.value is Value.NUMBER:
            return int
        if field.value is Value.OPTION:
            return _option
        if field.value is Value.NAMES:
            return _bare
        inner = self.within.get(field.names)
        return str if inner is None else inner.items

    def items(self, text: str) -> list[Parts]:
        """Items of a list of plain names. Whoever gets them reads them only: the answers to one client are much alike,
        so that the last ones are kept."""
        known = self._known.get(text)
        if known is not None:
            return known
        found, kept = self.item.findall(text), self.kept
        if len(kept) == 1:
            ((to, value),) = kept
            items = [{to: value(one)} for one in found]
        elif len(kept) == 2:
            (first, first_value), (second, second_value) = kept
            items = [{first: first_value(one), second: second_value(other)} for one, other in found]
        else:
            items = [{to: value(one) for (to, value), one in zip(kept, texts, strict=False)} for texts in found]
        if len(text) <= MAX_KNOWN_CHARS:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[text] = items
        return items


def _option(text: str) -> str | None:
    return None if text == "null" else text


def _bare(text: str) -> str:
    return text[1:-1]


class Schema(NamedTuple):
    """An API in one version."""

    name: str
    request: Shape
    response: Shape
    plain: re.Pattern[str]
    """The whole from the client id to the end of the response."""


@lru_cache(maxsize=256)  # brokers 2.0 to 2.7 know 40; a forged line may name any
def schema_of(name: str, version: int) -> Schema:
    """Compiled once for each API and version; versions beyond the last one known are like it."""
    api = APIS[name]
    request, response = Shape(api.request, version), Shape(api.response, version)
    whole = rf"({PLAIN}){HEADER_END.pattern}{request.captured},response:{response.captured}"
    return Schema(name, request, response, re.compile(whole))


def plain_reading(schema: Schema, text: str, at: int, end: int) -> Reading | None:
    """The only reading of a line without odd names; `at` is where the client id begins, `end` where the tail does."""
    match = schema.plain.match(text, at, end)
    if match is None or match.end() != end:
        return None
    client_id, *groups = match.groups()
    asked = len(schema.request.kept)
    reading = Reading(client_id, schema.request.parts(groups[:asked]), schema.response.parts(groups[asked:]))
    return reading if is_consistent(reading) else None


def is_consistent(reading: Reading) -> bool:
    """Whether the answer speaks of what was asked: else a name was cut in the wrong place."""
    request, response = reading.request, reading.response
    if "groupsNames" in request:
        names = [result["groupId"] for result in response["results"]]
        raw = request["groupsNames"]
        return sum(map(len, names)) + max(len(names) - 1, 0) == len(raw) and all(name in raw for name in names)
    if "topics" in request:
        asked, answered = _partitions(request), _partitions(response)
        return asked == answered or sorted(asked) == sorted(answered)
    if "members" in request:
        answered_members = response["members"]
        if not answered_members:
            return True  # refused as a whole
        return [one["memberId"] for one in request["members"]] == [one["memberId"] for one in answered_members]
    return True


def _partitions(side: Parts) -> list[tuple[str, int]]:
    return [(topic["name"], one["partitionIndex"]) for topic in side["topics"] for one in topic["partitions"]]


# --- every other line ------------------------------------------------------------------------------------------------


class _StepsError(Exception):
    """The search took too long."""


class _Search:
    """All readings of one line."""

    def __init__(self, text: str, end: int) -> None:
        self._text, self._end = text, end
        self._steps = 0
        self._places: dict[str, list[int]] = {}

    def readings(self, schema: Schema, at: int) -> Iterator[Reading]:
        """Every way in which the line fits the schema."""
        for header in HEADER_END.finditer(self._text, at, self._end):
            for request, between in self._struct(schema.request, header.end()):
                if not self._text.startswith(",response:", between):
                    continue
                for response, end in self._struct(schema.response, between + len(",response:")):
                    if end == self._end:
                        yield Reading(self._text[at : header.start()], request, response)

    def _struct(self, shape: Shape, at: int) -> Iterator[tuple[Parts, int]]:
        return self._fields(shape, 0, at)

    def _fields(self, shape: Shape, number: int, at: int) -> Iterator[tuple[Parts, int]]:
        self._step()
        if number == len(shape.fields):
            if self._text.startswith(shape.close, at):
                yield {}, at + len(shape.close)
            return
        literal = next((one for one in shape.literals[number] if self._text.startswith(one, at)), None)
        if literal is None:
            return
        field = shape.fields[number]
        follow = shape.literals[number + 1] if number + 1 < len(shape.fields) else (shape.close,)
        for value, end in self._values(shape, field, at + len(literal), follow):
            for rest, last in self._fields(shape, number + 1, end):
                yield ({field.to: value, **rest} if field.to else rest), last

    def _values(self, shape: Shape, field: Field, at: int, follow: tuple[str, ...]) -> Iterator[tuple[Any, int]]:
        inner = shape.within.get(field.names)
        if inner is not None:
            yield from self._list(inner, at)
        elif field.value in (Value.NUMBER, Value.BYTES):
            match = (_int_at if field.value is Value.NUMBER else _bytes_at)(self._text, at, self._end)
            if match is not None:
                yield (int(match[0]) if field.value is Value.NUMBER else ""), match.end()
        else:
            names = field.value is Value.NAMES
            if names and self._text[at : at + 1] != "[":
                return
            for literal in follow:
                for end in self._ends(("]" if names else "") + literal, at + names):
                    text = self._text[at + names : end]
                    yield (None if field.value is Value.OPTION and text == "null" else text), end + names

    def _list(self, shape: Shape, at: int) -> Iterator[tuple[list[Parts], int]]:
        if self._text[at : at + 2] == "[]":
            yield [], at + 2
        elif self._text[at : at + 1] == "[":
            yield from self._items(shape, at + 1, [], 0)

    def _items(self, shape: Shape, at: int, before: list[Parts], odd: int) -> Iterator[tuple[list[Parts], int]]:
        """Items of a list from `at` on. Where one has plain names, no other reading of it is looked for."""
        items = list(before)
        while (match := shape.item.match(self._text, at, self._end)) is not None:
            mark = self._text[match.end() : match.end() + 1]
            if mark not in (",", "]"):
                break
            items.append(shape.parts(match.groups()))
            at = match.end() + 1
            if mark == "]":
                yield items, at
                return
        if odd >= MAX_READINGS:
            raise _StepsError  # deeper than this the search does not go
        for item, end in self._struct(shape, at):
            mark = self._text[end : end + 1]
            if mark == "]":
                yield [*items, item], end + 1
            elif mark == ",":
                yield from self._items(shape, end + 1, [*items, item], odd + 1)

    def _ends(self, literal: str, at: int) -> Iterator[int]:
        """Places from `at` on where a text may end, because this follows it."""
        places = self._places.get(literal)
        if places is None:
            places = self._places[literal] = [
                match.start() for match in re.finditer(re.escape(literal), self._text[: self._end])
            ]
        for number in range(bisect_left(places, at), len(places)):
            self._step()
            yield places[number]

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _StepsError


def careful_reading(schema: Schema, text: str, at: int, end: int) -> Reading | str | None:
    """The one reading of a line with odd names; None if it has none, a sentence if it has several."""
    if end > MAX_CHARS:
        return f"names without any of ,{{}}[] in a line over {MAX_CHARS} characters"
    found: list[Reading] = []
    try:
        for reading in _Search(text, end).readings(schema, at):
            if is_consistent(reading) and reading not in found:
                found.append(reading)
            if len(found) > MAX_READINGS:
                break
    except (_StepsError, RecursionError):
        return "a line with one meaning; an id in it looks like too many other things"
    if not found:
        return None
    found = _without_joined_items(found)
    if len(found) == 1:
        return found[0]
    possible = [reading for reading in found if _error(reading) not in _ACCEPTED or _is_handed_out(reading)]
    if len(possible) == 1 and _member_ids(possible[0]):
        return possible[0]
    return "a line with one meaning; an id in it looks like a part of another one"


_LISTS = ("protocols", "members", "assignments", "topics")


def _without_joined_items(found: list[Reading]) -> list[Reading]:
    """Readings that differ only in where the items of a list end are one: that with the most items, because a name that
    looks like two of them is nobody's. Not where the items are what the request is about."""
    if "protocols" not in found[0].request and "assignments" not in found[0].request:
        return found
    chosen: dict[str, Reading] = {}
    for reading in found:
        same = repr([{key: value for key, value in side.items() if key not in _LISTS} for side in reading[1:]])
        same += reading.client_id
        if same not in chosen or _items_of(reading) > _items_of(chosen[same]):
            chosen[same] = reading
    return list(chosen.values())


def _items_of(reading: Reading) -> int:
    return sum(len(side.get(name, ())) for side in (reading.request, reading.response) for name in _LISTS)


def _is_handed_out(reading: Reading) -> bool:
    """Whether a broker may know the members of a reading by these ids, so that its answer fits: of a client id, or of
    the instance id of a static member, and a UUID. A client may write any whole reading into its client.id, with ids
    that fit: so one that fits better than another proves nothing, only one that alone does."""
    return all(_is_one(member_id, reading) for member_id in _member_ids(reading))


def _is_one(member_id: str, reading: Reading) -> bool:
    if not member_id:
        return True  # who only commits is no member
    given, uuid = member_id[: -_UUID_CHARS - 1], member_id[-_UUID_CHARS - 1 :]
    if uuid[:1] != "-" or _UUID.fullmatch(uuid[1:]) is None:
        return False
    return given in (reading.client_id, reading.request.get("groupInstanceId"))


def _member_ids(reading: Reading) -> list[str]:
    request, response = reading.request, reading.response
    if "members" in request:
        return [one["memberId"] for one in request["members"]]
    if "protocols" in request:
        return [request["memberId"] or response["memberId"]]
    return [request["memberId"]] if "memberId" in request else []


def _error(reading: Reading) -> int:
    response = reading.response
    if "topics" in response:
        codes = [one["errorCode"] for topic in response["topics"] for one in topic["partitions"]]
    else:
        codes = [one["errorCode"] for one in response.get("members", ()) if "errorCode" in one]
        codes.append(response.get("errorCode", 0))
    return next((code for code in codes if code), 0)
