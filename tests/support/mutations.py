"""Real lines, damaged on purpose by a seed: bytes, numbers, texts, stamps, structure, order. One seed, the same bytes.

Lines come from the recorded stories and from the recorded requests of every broker version, a stretch of one of them
at a time, so that what is damaged stands among what belongs to it: what a damaged line can hurt is a group that goes
on.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random

CORPORA = Path(__file__).parents[1] / "corpora"
DATA = Path(__file__).parents[1] / "ingest" / "data"

DAMAGED = 0.25
"""Share of the lines of a batch that are damaged."""

NUMBERS: tuple[bytes, ...] = (
    b"0",
    b"-1",
    b"1",
    b"2147483647",
    b"2147483648",
    b"-2147483649",
    b"9223372036854775807",
    b"9" * 30,
    b"1e308",
)
NUMBERS += (b"1e400", b"-0.0", b"0.001", b"9999999999.9", b"10000000000", b"null", b'"7"', b"[]", b"{}", b"true")

TEXTS = (
    b"",
    b" ",
    b"\\ud800",
    b"\\u0000",
    b"\\n[2026-11-20 10:00:00,000] INFO ",
    b"g in state Stable with old generation 99999999999999999999999 (reason: a",
    b"Member x-11111111-2222-3333-4444-555555555555 in group g has failed",
    b"a" * 5_000,
    "ü\u202e\u2028".encode(),
    b"../../etc",
    b"' OR 1=1 --",
    b"__consumer_offsets",
    b"%s%n{}",
    b"g,generation_id=1,member_id=x",
    b"g},response:{error_code=0} from connection 1.1.1.1:1-2.2.2.2:2-0;totalTime:1.0",
    b"c, correlationId=1) -- {group_id=g,generation_id=1,member_id=x},response:{throttle_time_ms=0,error_code=0}",
    b"c\n[2026-11-22 16:40:12,336] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT, apiVersion=1, clientId=",
    b"{group_id=" * 400,
    b", correlationId=1) -- {" * 400,
)

_NUMBER = re.compile(rb"(?<=[:\[,=])-?\d+(?:\.\d+)?(?=[,\]})])")
_TEXT = re.compile(rb'(?<=:")[^"\\]{0,200}(?=")|(?<=[a-zI][de]=)[^,{}\[\]]{0,200}(?=[,}])')
_KEY = re.compile(rb'(?<=[",{])(\w+)(?:":|=)')
_STAMP = re.compile(rb"\A\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),")
_AHEAD_S = (-86_400 * 200, -7_200, -60, -1, 1, 5, 60, 7_200, 86_400 * 200)

Mutation = Callable[[bytes, Random, list[bytes]], bytes]


def _cut(line: bytes, random: Random, _: list[bytes]) -> bytes:
    return line[: random.randrange(len(line) + 1)]


def _bytes(line: bytes, random: Random, _: list[bytes]) -> bytes:
    damaged = bytearray(line)
    for _again in range(random.randint(1, 4)):
        if damaged:
            damaged[random.randrange(len(damaged))] = random.randrange(256)
    return bytes(damaged)


def _without(line: bytes, random: Random, _: list[bytes]) -> bytes:
    start = random.randrange(len(line) + 1)
    return line[:start] + line[start + random.randint(1, 40) :]


def _twice(line: bytes, random: Random, _: list[bytes]) -> bytes:
    start = random.randrange(len(line) + 1)
    piece = line[start : start + random.randint(1, 200)]
    return line[:start] + piece * random.choice((2, 3, 50)) + line[start + len(piece) :]


def _spliced(line: bytes, random: Random, others: list[bytes]) -> bytes:
    other = random.choice(others)
    return line[: random.randrange(len(line) + 1)] + other[random.randrange(len(other) + 1) :]


def _of(pattern: re.Pattern[bytes], values: tuple[bytes, ...]) -> Mutation:
    def replaced(line: bytes, random: Random, others: list[bytes]) -> bytes:
        found = list(pattern.finditer(line))
        for match in sorted(random.sample(found, min(len(found), random.randint(1, 3))), key=lambda one: -one.start()):
            line = line[: match.start()] + random.choice(values) + line[match.end() :]
        return line if found else _bytes(line, random, others)

    return replaced


def _keys(line: bytes, random: Random, others: list[bytes]) -> bytes:
    """Values under each other's names, or a name twice."""
    found = list(_KEY.finditer(line))
    if len(found) < 2:
        return _bytes(line, random, others)
    one, other = sorted(random.sample(found, 2), key=lambda match: match.start())
    first = line[: other.start(1)] + one[1] + line[other.end(1) :]
    return first if random.random() < 0.5 else first[: one.start(1)] + other[1] + first[one.end(1) :]


def _nested(line: bytes, random: Random, _: list[bytes]) -> bytes:
    at = line.find(b":{", random.randrange(len(line) + 1))
    deep = random.choice((10, 1_000, 100_000))
    return line[: at + 1] + b"[" * deep + (b"]" * deep if random.random() < 0.5 else b"") + line[at + 1 :]


def _stamp(line: bytes, random: Random, others: list[bytes]) -> bytes:
    match = _STAMP.match(line)
    if match is None:
        return _bytes(line, random, others)
    try:
        at = datetime.fromisoformat(match[1].decode()).replace(tzinfo=UTC)
    except ValueError:
        return line
    moved = at + timedelta(seconds=random.choice(_AHEAD_S))
    return f"[{moved:%Y-%m-%d %H:%M:%S},".encode() + line[match.end() :]


def _damage(line: bytes, random: Random, _: list[bytes]) -> bytes:
    return random.choice((line + b"\r", b"\0" * random.choice((1, 100)) + line, b"\xef\xbb\xbf" + line, b"", line[1:]))


MUTATIONS: tuple[Mutation, ...] = (
    *(_of(_NUMBER, NUMBERS), _of(_NUMBER, NUMBERS), _of(_TEXT, TEXTS), _of(_TEXT, TEXTS)),
    *(_cut, _bytes, _without, _twice, _spliced, _keys, _nested, _stamp, _damage),
)


TEXT_SHARE = 1 / 3
"""Of the request logs those of brokers before 2.8, however many others are recorded."""


@cache
def _lines(kind: str, *, text: bool) -> tuple[tuple[bytes, ...], ...]:
    """Lines of every recording of one kind: request, server or offsets; `text`: of the request logs those that are."""
    if kind != "request":
        return _all_lines(kind)
    return tuple(lines for lines in _all_lines(kind) if text is any(b"RequestHeader(" in line for line in lines))


@cache
def _all_lines(kind: str) -> tuple[tuple[bytes, ...], ...]:
    names = {"request": "kafka-request*.log.gz", "server": "server*.log.gz", "offsets": "offsets.jsonl.gz"}
    found = [gzip.decompress(path.read_bytes()).splitlines() for path in sorted(CORPORA.glob(f"*/{names[kind]}"))]
    if kind == "request":
        found.append((DATA / "kafka-request-4.1.1.log").read_bytes().splitlines())
        found += [
            [line for line in path.read_bytes().splitlines() if not line.startswith(b"# ")]
            for path in sorted(DATA.glob("request-lines-*.txt"))
        ]
        found += [path.read_bytes().splitlines() for path in sorted(DATA.glob("*-lines-2.*.log"))]
    if kind == "server":
        found.append((DATA / "coordinator-server-log-4.1.1.txt").read_bytes().splitlines())
    return tuple(tuple(lines) for lines in found if lines)


def damaged(kind: str, seed: str, count: int) -> tuple[list[bytes], int]:
    """`count` lines of one recording, some of them damaged; and how many are. A line may hold line ends by now."""
    random = Random(f"{kind}/{seed}")
    lines = random.choice(_lines(kind, text=random.random() < TEXT_SHARE))
    start = random.randrange(max(1, len(lines) - count))
    chosen = [lines[at % len(lines)] for at in range(start, start + count)]
    changed = 0
    for at, line in enumerate(chosen):
        if random.random() < DAMAGED:
            chosen[at] = random.choice(MUTATIONS)(line, random, chosen)
            changed += 1
    if random.random() < 0.3:  # out of order: what belongs together comes apart
        first = random.randrange(count)
        part = chosen[first : first + 20]
        random.shuffle(part)
        chosen[first : first + 20] = part
    return chosen, changed
