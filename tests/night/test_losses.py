"""What was lost in a night is told, no more and no less: the judge finds each way in which that may be untrue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kardia.events import lane_of, shard_of
from tests.night.compare import DOUBLED, MISSED, UNTRUE
from tests.night.faults import EVENTS_TOPIC, REQUEST_LOG
from tests.night.logs import CopyTruncate
from tests.night.losses import ARCHIVE_WITHIN_MS, Emptied, Ledger, Line, account, emptied_of, lines_in, stamps_in

LANES = 2
BEGIN_MS = 1_000_000
UNTIL_MS = BEGIN_MS + 2 * ARCHIVE_WITHIN_MS
GROUPS = {lane_of(shard_of(group), LANES): group for group in ("a", "b")}


def line(at_ms: int, lane: int = 0) -> Line:
    """A heartbeat."""
    return Line(at_ms, "heartbeat", GROUPS[lane], "c-1")


def event(of: Line) -> dict[str, Any]:
    """Its row in the archive."""
    return {
        "event_id": f"{of.at_ms} {of.group_id}",
        "kind": of.kind,
        "group_id": of.group_id,
        "logged_at_ms": float(of.at_ms),
        "connection": of.connection,
    }


def gap(from_ms: int, to_ms: int, lane: int = 0, stream: str = "request") -> dict[str, Any]:
    """A row of `progress`."""
    return {"lane": lane, "source": f"b/{stream}", "gaps": 1, "gap_from_ms": from_ms, "gap_to_ms": to_ms}


LINES = [line(at_ms, lane) for at_ms in range(BEGIN_MS, UNTIL_MS, 3_000) for lane in range(LANES)]
AT_MS = BEGIN_MS + 300_000
EVENTS = [event(one) for one in LINES]
ALL = Ledger(LINES, (), (), (), EVENTS, (), UNTIL_MS, LANES)
LOG = Emptied(REQUEST_LOG, AT_MS, (AT_MS + 10, AT_MS + 90), AT_MS + 100)
BOTH = [gap(AT_MS, AT_MS + 100, lane) for lane in range(LANES)]
AGAIN = [{"at_ms": AT_MS, "until_ms": AT_MS + 500, "what": "make again", "whom": EVENTS_TOPIC}]


def told(ledger: Ledger) -> list[str]:
    """Kinds of the findings."""
    return sorted({one.what for one in account(ledger).findings})


def without(first_ms: int, last_ms: int) -> list[dict[str, Any]]:
    """The archive without the lines of some time."""
    return [event(one) for one in LINES if not first_ms <= one.at_ms <= last_ms]


def test_a_night_without_a_loss_has_none() -> None:
    assert GROUPS.keys() == set(range(LANES))
    assert told(ALL) == []
    assert account(ALL).counts == {"lines of groups in the archive": len(LINES)}


def test_a_line_that_is_nowhere_and_one_that_is_there_twice_are_found() -> None:
    assert told(replace(ALL, events=without(AT_MS, AT_MS))) == [MISSED]
    assert told(replace(ALL, events=[*EVENTS, EVENTS[7]])) == [DOUBLED]


def test_without_an_archive_its_lines_are_not_judged() -> None:
    assert told(replace(ALL, events=None)) == []
    assert told(replace(ALL, events=None, emptied=[LOG])) == [MISSED]


def test_what_an_emptied_log_lost_is_told_in_each_lane_with_its_bounds() -> None:
    lossy = replace(ALL, emptied=[LOG], progress=BOTH)
    assert told(lossy) == []
    assert account(lossy).gaps == [(AT_MS, AT_MS + 100)]
    assert told(replace(lossy, progress=BOTH[:1])) == [MISSED]
    read = [gap(AT_MS + 40, AT_MS + 100, lane) for lane in range(LANES)]
    assert told(replace(lossy, emptied=[LOG._replace(lost=(AT_MS + 10, AT_MS + 50))], progress=read)) == []
    assert told(replace(lossy, emptied=[LOG._replace(lost=(AT_MS + 10, AT_MS + 15))], progress=read)) == [MISSED]
    assert told(replace(lossy, progress=[*BOTH, gap(AT_MS - 3_600_000, AT_MS + 100)])) == [UNTRUE]
    assert told(replace(lossy, progress=[*BOTH, gap(AT_MS, AT_MS + 100, stream="server")])) == [UNTRUE]
    assert told(replace(lossy, emptied=[LOG._replace(lost=None)], progress=())) == []


def test_a_gap_is_as_much_wider_as_stamps_went_back_beside_it() -> None:
    wide = replace(ALL, progress=[gap(AT_MS - 60, AT_MS + 160, lane) for lane in range(LANES)])
    assert told(replace(wide, emptied=[LOG._replace(back_ms=60)])) == []
    assert told(replace(wide, emptied=[LOG])) == [UNTRUE]
    text = b"[2026-11-28 21:59:12,%d] DEBUG x\n"
    copy, behind = b"".join(text % at for at in (300, 410, 350)), text % 470
    found = emptied_of(REQUEST_LOG, copy, b"", [stamps_in(copy), stamps_in(behind)], UNTIL_MS)
    assert found is not None
    assert (found.next_ms - found.copied_to_ms, found.back_ms) == (60, 60)


def test_a_gap_that_nothing_made_is_found() -> None:
    killed = [{"at_ms": AT_MS, "until_ms": AT_MS, "what": "kill", "whom": "collect"}]
    assert told(replace(ALL, progress=BOTH, done=killed)) == [UNTRUE]


def test_what_was_in_a_topic_that_was_made_again_is_told_and_the_archive_lost_what_it_had_not_read() -> None:
    kept = without(AT_MS - 90_000, AT_MS)
    lost = replace(ALL, done=AGAIN, progress=BOTH, events=kept)
    assert told(lost) == []
    found = account(lost).counts
    assert found["lines of groups lost in a gap that was told"] == LANES
    assert found["lines of groups that the archive lost with its topic"] == LANES * 30
    record = event(line(AT_MS - 50_000)) | {"event_id": "of the offsets topic", "kind": "group_record"}
    assert told(replace(lost, events=[*kept, record])) == []
    hole = [one for one in kept if not AT_MS - 220_000 <= one["logged_at_ms"] <= AT_MS - 200_000]
    assert told(replace(lost, events=hole)) == [MISSED]


@pytest.mark.parametrize(("role", "before_ms", "after_ms"), [("stream", 40_000, 0), ("collect", 0, 40_000)])
def test_a_role_that_was_away_when_the_topic_was_made_again_widens_its_gap(
    role: str, before_ms: int, after_ms: int
) -> None:
    away = [{"at_ms": AT_MS - before_ms - 1_000, "until_ms": AT_MS, "what": "kill", "whom": role}, *AGAIN]
    progress = [gap(AT_MS - before_ms, AT_MS + 500 + after_ms, lane) for lane in range(LANES)]
    wide = replace(ALL, done=away, progress=progress)
    assert told(wide) == []
    assert told(replace(wide, done=AGAIN)) == [UNTRUE]
    outages = [(AT_MS - before_ms - 1_000, AT_MS + after_ms)]
    assert told(replace(wide, done=AGAIN, outages=outages)) == []


def test_the_archive_may_be_some_minutes_behind_and_no_more() -> None:
    assert told(replace(ALL, events=without(UNTIL_MS - 200_000, UNTIL_MS))) == []
    assert told(replace(ALL, events=without(UNTIL_MS - ARCHIVE_WITHIN_MS - 10_000, UNTIL_MS))) == [MISSED]


def test_what_is_written_after_the_copy_is_kept_for_the_judge(tmp_path: Path) -> None:
    log, rotation = tmp_path / "kafka-request.log", CopyTruncate(tmp_path / "emptied")
    first, lost, last = (
        b'[2026-11-28 21:59:12,47%d] DEBUG Completed request:{"requestHeader":{"requestApiKey":12,"clientId":"x"},'
        b'"request":{"groupId":"alone"},"connection":"h:1-h:2-0"} (kafka)\n' % number
        for number in (1, 3, 7)
    )
    log.write_bytes(first)
    rotation.copy_and_empty(log, 0.0)
    (kept,) = (tmp_path / "emptied").iterdir()
    kept.write_bytes(lost)
    log.write_bytes(last)
    pieces = rotation.pieces(log)
    stamps = [stamps_in(piece) for piece in pieces]
    ((copy, gone),) = rotation.lost(log)
    found = emptied_of(REQUEST_LOG, copy.read_bytes(), gone, stamps, max(map(max, stamps)) + 9)
    at_ms = 1_795_903_152_471
    assert found == Emptied(REQUEST_LOG, at_ms, (at_ms + 2, at_ms + 2), at_ms + 6)
    assert [one.at_ms - at_ms for one in sorted(lines_in(pieces))] == [0, 2, 6]
    assert {one[1:] for one in lines_in(pieces)} == {("heartbeat", "alone", "h:1-h:2-0")}
