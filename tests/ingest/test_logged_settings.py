"""What a broker that starts logs of its settings: how long sessions are, for all lanes, and nothing that stands
elsewhere. The lines were recorded with 4.4.0, of which the brokers' own session timeout was set to 10 s."""

from __future__ import annotations

from ingest.blocks import Gathered, Splitter, read_cut
from ingest.dialects.server_log import ServerLog
from ingest.router import Directory
from ingest.stamps import zone_named
from kardia.events import ALL_SHARDS, Event, Kind
from tests.ingest.lines import DATA

RECORDED = (DATA / "server-settings-4.4.0.txt").read_bytes()
SESSION = b"\tgroup.consumer.session.timeout.ms = 10000\n"


def lanes_of(data: bytes, lanes: int = 2, cut_at: int = 0) -> list[list[Event]]:
    gathered, splitter = Gathered(lanes, Directory()), Splitter()
    dialect = ServerLog(zone_named("UTC"))
    for part in (data[:cut_at], data[cut_at:]):
        read_cut(dialect, splitter.feed(part), "b/server/i", gathered)
    assert not gathered.rejected
    assert gathered.lines == data.count(b"\n")
    return gathered.events


def told(events: list[Event]) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in events:
        detail = event.detail or {}
        assert (event.kind, event.shard, detail["what"]) == (Kind.COORDINATOR_LINE, ALL_SHARDS, "configured")
        found |= detail["session_ms"]
    return found


def test_every_lane_is_told_how_long_sessions_of_each_protocol_are() -> None:
    lanes = lanes_of(RECORDED)
    assert lanes[0] == lanes[1]
    assert told(lanes[0]) == {"consumer": 10_000, "share": 45_000, "streams": 45_000}


def test_it_was_so_when_the_head_was_logged() -> None:
    (head, *_) = RECORDED.splitlines()
    stamp = ServerLog(zone_named("UTC")).stamp_ms(head)
    assert {event.logged_at_ms for event in lanes_of(RECORDED)[0]} == {stamp}


def test_each_has_the_place_of_its_own_line_however_the_log_is_cut() -> None:
    whole = lanes_of(RECORDED)
    assert next(RECORDED[event.start : event.end] for event in whole[0]) == SESSION
    for cut_at in range(0, len(RECORDED), 97):
        assert lanes_of(RECORDED, cut_at=cut_at) == whole


def test_lines_that_follow_no_head_are_no_settings() -> None:
    head, rest = RECORDED.split(b"\n", 1)
    other = b"[2026-11-28 19:04:13,730] INFO [BrokerServer id=1] Starting broker (kafka.server.BrokerServer)\n"
    assert lanes_of(rest) == [[], []]
    assert lanes_of(head + b"\n" + other + SESSION) == [[], []]


def test_a_line_of_the_coordinator_with_a_break_in_an_id_makes_none() -> None:
    forged = b"[2026-11-28 19:04:13,730] INFO [GroupCoordinator id=1] Starting up KafkaConfig values: x\n" + SESSION
    events = lanes_of_any(forged)
    assert [event for event in events if (event.detail or {}).get("what") == "configured"] == []


def lanes_of_any(data: bytes) -> list[Event]:
    gathered = Gathered(1, Directory())
    read_cut(ServerLog(zone_named("UTC")), Splitter().feed(data), "b/server/i", gathered)
    return gathered.events[0]


def test_what_is_no_number_or_longer_than_any_timeout_is_passed_over() -> None:
    head = RECORDED.split(b"\n", 1)[0] + b"\n"
    for text in (b"null", b"-1", b"10000000000"):
        assert lanes_of(head + SESSION.replace(b"10000", text)) == [[], []]
