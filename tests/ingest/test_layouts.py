"""Lines in the layouts that people have: of server.log and both dialects of the request log, alone and wrapped."""

from __future__ import annotations

import random
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.errors import SettingsError
from ingest.layouts import recogniser
from ingest.layouts.log_pattern import compiled
from ingest.layouts.recogniser import Layouts, layouts
from ingest.layouts.table import LAYOUTS, SHIPPED, WORDS, Known
from ingest.stamps import zone_named
from kardia.events import Event, Kind
from tests.ingest.lines import DATA

STAMP_MS = 1795211494785.0
LOGGER = "kafka.coordinator.group.GroupCoordinator"
UTC = zone_named("UTC")
JSON_LINES, TEXT_LINES = "request-lines-3.9.2.txt", "text-lines-2.3.1.log"


@cache
def recorded_lines(name: str) -> list[bytes]:
    """Lines of a request log, as they were recorded."""
    return (DATA / name).read_bytes().splitlines()


def server(line: str | bytes, pattern: str = "") -> Any:
    data = line.encode() if isinstance(line, str) else line
    return ServerLog(UTC, log_pattern=pattern).read(data, "b/server/i", 0, len(data) + 1)


def request(line: bytes, pattern: str = "") -> Any:
    return RequestJson(UTC, log_pattern=pattern).read(line, "b/request/i", 0, len(line) + 1)


def without_place(reading: Any) -> Any:
    if isinstance(reading, list):
        return [without_place(one) for one in reading]
    return reading._replace(source="", start=0, end=0) if isinstance(reading, Event) else reading


SAID = without_place(server(f"[2026-11-20 21:51:34,785] INFO {WORDS} ({LOGGER})"))


def laid_out(layout: Known, words: bytes, logger: bytes, level: bytes = b"DEBUG") -> bytes:
    """Another line in the layout of an example."""
    short = b"k." + logger.split(b".", 1)[1] if b"k.c.g." in layout.example.encode() else logger
    line = layout.example.encode().replace(WORDS.encode(), words).replace(b"INFO", level)
    for name in (LOGGER.encode(), b"k.c.g.GroupCoordinator"):
        line = line.replace(name, short)
    return line.replace(b" GroupCoordinator:", b" logger:").replace(b"=GroupCoordinator ", b"=logger ")


def test_the_line_of_all_examples_is_a_line_of_the_coordinator() -> None:
    assert (SAID.kind, SAID.group_id, SAID.logged_at_ms) == (Kind.COORDINATOR_LINE, "g05", STAMP_MS)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.who)
def test_each_layout_is_recognised(layout: Known) -> None:
    assert without_place(server(layout.example)) == SAID


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.who)
@pytest.mark.parametrize("around", ["    {}", "\t\t{}", "> {}", "- {}", "* {}", "`{}`", "    > {}  ", "{}\t"])
def test_indents_and_marks_are_no_part_of_it(layout: Known, around: str) -> None:
    assert without_place(server(around.format(layout.example))) == SAID


PREFIXES = (
    "2026-11-20T21:51:34.786123456Z {}",
    "[pod/kafka-0/kafka] {}",
    "kafka-1  | {}",
    "\x1b[36mkafka_1  |\x1b[0m {}",
    "Nov 20 21:51:34 host1 kafka-server-start.sh[25720]: {}",
    "<134>1 2026-11-20T21:51:34.786Z host1 kafka 123 - - {}",
    "1795211494786\t{}",
    "2026-11-20T21:51:34.786000+00:00 b-1.log {}",
    "  2026-11-20 22:51:34 {}",
    '1795211494786,"{}"',
    "Nov 20, 2026 @ 21:51:34.786\t{}",
    '{{app="kafka", pod="kafka-0", level="info"}} {}',
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.who)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_others_put_before_it_is_passed_over(layout: Known, prefix: str) -> None:
    assert without_place(server(prefix.format(layout.example))) == SAID


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.who)
def test_each_layout_is_read_by_its_pattern(layout: Known) -> None:
    example = layout.example if "%t\t" not in layout.pattern else layout.example.replace("[", "", 1).replace("]", "", 1)
    found = layouts(f"{layout.pattern}%n").laid(example.encode())
    assert found is not None
    assert found.line.startswith(b"[2026-11-20 21:51:34,785")
    assert found.words.decode() == WORDS
    assert without_place(server(example, layout.pattern)) == SAID


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.who)
@pytest.mark.parametrize("recorded", [JSON_LINES, TEXT_LINES], ids=["json", "text"])
def test_requests_in_each_layout_are_read_as_in_the_shipped_one(layout: Known, recorded: str) -> None:
    told = 0
    for line in recorded_lines(recorded):
        if not line.startswith(b"[") or not line.endswith(b" (kafka.request.logger)"):
            continue
        words = line[line.index(b"Completed request:") :].removesuffix(b" (kafka.request.logger)")
        shipped = b"[2026-11-20 21:51:34,785] DEBUG " + words + b" (kafka.request.logger)"
        expected = request(shipped)
        assert without_place(request(laid_out(layout, words, b"kafka.request.logger"))) == without_place(expected)
        told += isinstance(expected, Event)
    assert told > 5


def test_a_request_that_a_tool_wrote_anew_is_read() -> None:
    import msgspec

    line = next(one for one in recorded_lines(JSON_LINES) if b'"requestApiKey":12,' in one)
    at = line.index(b"{")
    body = line[at : line.rindex(b"}") + 1]
    expected = without_place(request(line))
    assert isinstance(expected, Event)
    document = msgspec.json.decode(body)
    for anew in (msgspec.json.format(body, indent=1).replace(b"\n", b" "), sorted_json(document)):
        assert without_place(request(line[:at] + b" " + anew + b" (kafka.request.logger)")) == expected


def sorted_json(document: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(document, order="sorted")


def test_blanks_that_a_copy_has_doubled_are_one() -> None:
    line = f"[2026-11-20 21:51:34,785]  INFO\t {WORDS.replace(' ', '  ')} ({LOGGER})"
    assert without_place(server(line)) == SAID


# --- what is not the coordinator's -----------------------------------------------------------------------------------

FORGED = f"[2026-11-20 10:00:00,000] INFO [GroupCoordinator 1]: Group g with generation 3 is now empty ({LOGGER})"


@pytest.mark.parametrize(
    "line",
    [
        f"[2026-11-20 21:51:34,785] INFO Principal = User:{FORGED} is Denied Operation (kafka.authorizer.logger)",
        f"2026-11-20 21:51:34,785 INFO kafka.server.KafkaApis: {FORGED} x",
        f"2026-11-20 21:51:34,785 INFO Client {FORGED} x (kafka.server.KafkaApis) [data-plane-1]",
        "[2026-11-20 21:51:34,785] INFO [data-plane-1] [GroupCoordinator 1]: Group g with generation 3 is now empty "
        "(kafka.server.KafkaApis:66)",
        f"2026-11-20 21:51:34,785 DEBUG [GroupCoordinator 1]: nobody knows this ({LOGGER}) [main]",
    ],
)
def test_what_a_client_wrote_into_another_loggers_line_says_nothing(line: str) -> None:
    assert server(line) == "not_a_coordinator_line"


def test_a_request_within_another_loggers_line_is_none() -> None:
    heartbeat = next(one for one in recorded_lines(JSON_LINES) if b'"requestApiKey":12,' in one)
    words = heartbeat[heartbeat.index(b"Completed request:") :]
    assert request(b"2026-11-20 21:51:34,785 INFO denied to " + words + b" (kafka.authorizer.logger)") == "other_logger"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "21:51:34.785 [main] INFO kafka.coordinator.group.GroupCoordinator - [GroupCoordinator 1]: x",
            "unknown_layout",
        ),
        ("[GroupCoordinator 1]: Group g with generation 3 is now empty (__consumer_offsets-3)", "unknown_layout"),
        (f"11/20/2026 21:51:34,785 INFO {WORDS}", "unknown_layout"),
        (f"2026-11-20 21:51:34 INFO  [main] GroupCoordinator:66 - {WORDS}", "bad_timestamp"),
        ("2026-11-20 21:51:34,785 INFO [GroupCoordinator 1]: nobody knows this [main]", "unknown_sentence"),
    ],
)
def test_a_line_that_names_the_coordinator_and_is_not_understood_is_rejected(line: str, reason: str) -> None:
    event = server(line)
    assert isinstance(event, Event)
    assert event.kind == Kind.REJECTED
    assert (event.detail or {})["reason"] == reason


@pytest.mark.parametrize(
    "line",
    [
        "\tat kafka.coordinator.group.GroupCoordinator.doJoin(GroupCoordinator.scala:1)",
        "java.lang.IllegalStateException: kafka.coordinator.group.GroupCoordinator",
        "// The group is loaded in GroupCoordinator 1 before completing the rebalance",
    ],
)
def test_a_stack_trace_and_prose_are_no_lines(line: str) -> None:
    assert server(line) == "continuation"


# --- patterns --------------------------------------------------------------------------------------------------------


def test_a_layout_that_is_not_known_is_read_by_its_pattern() -> None:
    line = f"<11/20/2026 21:51:34.785> {{{LOGGER}}} INFO     ~ {WORDS} ~ main thread"
    assert server(line).detail["reason"] == "unknown_layout"
    assert without_place(server(line, "<%d{MM/dd/yyyy HH:mm:ss.SSS}> {%c} %-8p ~ %m ~ %t%n")) == SAID


@pytest.mark.parametrize(
    ("pattern", "instant"),
    [
        ("%d{UNIX_MILLIS} %p %m", "1795211494785"),
        ("%d{COMPACT} %p %m", "20261120215134785"),
        ("%d{ISO8601_OFFSET_DATE_TIME_HHMM} %p %m", "2026-11-20T22:51:34,785+0100"),
        ("%d{ISO8601_OFFSET_DATE_TIME_HH} %p %m", "2026-11-20T22:51:34,785+01"),
        ("%d{dd MMM yy HH:mm:ss.SSS}{UTC} %p %m", "20 Nov 26 21:51:34.785"),
        ("%highlight{%d %p}{INFO=green} %m", "2026-11-20 21:51:34,785"),
        ("%d %X{trace} %p %m", "2026-11-20 21:51:34,785 "),
    ],
)
def test_dates_of_patterns(pattern: str, instant: str) -> None:
    event = server(f"{instant} INFO {WORDS}", pattern)
    assert isinstance(event, Event)
    assert (event.kind, event.logged_at_ms) == (Kind.COORDINATOR_LINE, STAMP_MS), event.detail


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("%p %m%n", "one %d"),
        ("%d %p%n", "one %m"),
        ("%m %d", "before %m"),
        ("%d{ABSOLUTE} %p %m%n", "no year"),
        ("%d{HH:mm:ss} %m", "no year"),
        ("%d{yyyy-MM-dd KK:mm:ss} %m", "letters 'KK'"),
        ("%d %y %m", "'%y %m'"),
        ("%d{ %m", "not closed"),
        ("%d %m" + "x" * 600, "longer than 500"),
    ],
)
def test_a_pattern_that_gives_no_instant_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why.replace("(", r"\(")):
        layouts(pattern)


def test_an_unread_pattern_leaves_the_known_layouts() -> None:
    assert without_place(server(f"2026-11-20 21:51:34,785 INFO {WORDS} ({LOGGER}) [t]", "%d{UNIX_MILLIS} %m")) == SAID


PIECES = (
    *("[", "]", "(", "a.", " (a.b) [x]", "a=b ", "[x] ", " - ", "| ", "INFO ", "\x1b[", "2026-11-20 10:00:00,000 "),
    *("2026-11-20 10:00:00,000 INFO ", "[2026-11-20 10:00:00,000] INFO [x] ", " (", "kafka.", "A" * 64, " ", "\t", "<"),
)


class Handed:
    """An expression that counts what it is given to look through; `work`: bytes, and one for each time it is asked."""

    work = 0

    def __init__(self, expression: re.Pattern[bytes]) -> None:
        self._expression = expression

    def __getattr__(self, name: str) -> Any:
        def counted(line: bytes, begin: int = 0, end: int = sys.maxsize) -> Any:
            Handed.work += 1 + max(0, min(end, len(line)) - begin)
            return getattr(self._expression, name)(line, begin, end)

        return counted


def handed(known: Layouts, line: bytes) -> int:
    """What the expressions are given of a line."""
    Handed.work = 0
    known.laid(line)
    return Handed.work


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every expression counts. That of colours does not: it takes each byte once, as `replace` would."""
    for name, value in vars(recogniser).items():
        if isinstance(value, re.Pattern) and name != "_COLOUR":
            monkeypatch.setattr(recogniser, name, Handed(value))
    stamps = tuple((date, Handed(expression)) for date, expression in recogniser._STAMPS)
    monkeypatch.setattr(recogniser, "_STAMPS", stamps)


HANDED_MAX = 512 * 1024
"""Of one line: eight stamps in each of eight formats, with sixteen parts behind each, are a quarter of that."""


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("pattern", ["", *(one.pattern for one in LAYOUTS)])
def test_of_a_hostile_line_no_more_is_looked_through_than_of_another(pattern: str) -> None:
    """A megabyte of any piece, behind any front, is the work of its first and last kilobytes: twice the line is none
    more. An expression that grew fast within a kilobyte would show as a test that does not end."""
    known = Layouts(pattern)
    if known._pattern is not None:
        head, tail = Handed(known._pattern.head), Handed(known._pattern.tail)
        known._pattern = known._pattern._replace(head=head, tail=tail)  # type: ignore[arg-type]
    fronts = ("", "[2026-11-20 10:00:00,000] INFO ", "[INFO] 2026-11-20 10:00:00,000 [t] a.b m - ")
    for front in fronts:
        for piece in PIECES:
            once, twice = ((front + piece * (size // len(piece))).encode() for size in (2**20, 2**21))
            work = handed(known, once)
            assert work <= HANDED_MAX, (front, piece)
            # Where the line is cut lies elsewhere in a piece.
            assert abs(handed(known, twice) - work) <= 2 * len(piece), (front, piece)
    chosen = random.Random(7)
    for _ in range(3):
        assert handed(known, "".join(chosen.choices(PIECES, k=100_000)).encode()) <= HANDED_MAX


def test_expressions_of_patterns_are_compiled_once() -> None:
    assert layouts(SHIPPED) is layouts(SHIPPED)
    assert compiled(SHIPPED).date.has_millis


def test_a_file_in_each_layout_is_known_by_its_content(tmp_path: Path) -> None:
    from ingest.archives.kinds import Kind as FileKind
    from ingest.archives.kinds import kind_of

    for number, layout in enumerate(LAYOUTS):
        path = tmp_path / f"{number}.txt"
        path.write_text(f"\t{layout.example}\n" * 3)
        assert kind_of(path).kind is FileKind.SERVER, layout.who


def test_the_page_shows_each_layout() -> None:
    page = (Path(__file__).parents[2] / "docs" / "request-logging.md").read_text(encoding="utf-8")
    for layout in LAYOUTS:
        pattern = layout.pattern.replace("|", r"\|").replace("\t", r"\t")
        assert f"| {layout.who} | `{pattern}` |" in page
