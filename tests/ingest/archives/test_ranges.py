"""Archived files: however they are cut, packed, rotated or named, they say the same as the live collector."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.archives.ranges import FileRange, ParsedRange, parse_pieces, parse_range, plan, route
from ingest.errors import SettingsError
from ingest.router import Directory
from kardia.events import Event, Kind, event_id, stream_of
from tests.ingest.lines import START_MS, STORIES, body, fetched_by_a_controller, line
from tests.ingest.world import LANES, World


def written(path: Path, numbers: range, connection: str = "10.0.0.1:9092-10.0.0.7:51234-0-17") -> Path:
    data = b"".join(line(number, connection=connection) + b"\n" for number in numbers)
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(data[:5000]) + gzip.compress(data[5000:]))  # two members in one file
    else:
        path.write_bytes(data)
    return path


def everything(ranges: list[FileRange]) -> list[Event]:
    return [event for piece in ranges for lane in parse_range(piece).events for event in lane]


def ids(events: list[Event]) -> list[str]:
    return sorted(event_id(event) for event in events)


@settings(max_examples=40, deadline=None)
@given(st.integers(300, 20_000))
def test_any_cutting_says_the_same(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    path = written(tmp_path_factory.mktemp("logs") / "kafka-request.log", range(60))
    whole = plan([path])
    pieces = plan([path], range_bytes=size)
    assert len(whole) == 1
    assert everything(pieces) == everything(whole)
    assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
    assert pieces == sorted(pieces, key=lambda piece: piece.first_at_ms)
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_pieces_of_bounded_memory_say_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "kafka-request.log", range(3_000))
    piece = plan([path])[0]
    pieces = list(parse_pieces(piece, 100_000))
    assert len(pieces) > 1
    assert [event for one in pieces for event in one.events[0]] == parse_range(piece).events[0]
    assert [one.start for one in pieces[1:]] == [one.end for one in pieces[:-1]]


def test_a_packed_file_says_the_same_and_all_its_members_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    plain = written(tmp_path / "kafka-request.log", range(60))
    packed = written(tmp_path / "a" / "kafka-request.log.gz", range(60))
    assert ids(everything(plan([packed]))) == ids(everything(plan([plain])))


def test_a_copy_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "kafka-request.log", range(60))
    shorter = written(tmp_path / "kafka-request.log.1", range(40))
    packed = written(tmp_path / "kafka-request.log.2.gz", range(50))
    assert len(everything(plan([shorter, path, packed, path]))) == 60


def test_files_with_the_same_banner_are_two(tmp_path: Path) -> None:
    for name, numbers in (("a", range(5)), ("b", range(5, 10))):
        path = written(tmp_path / name, numbers)
        path.write_bytes(b"banner\n" + path.read_bytes())
    ranges = plan([tmp_path / "a", tmp_path / "b"])
    assert len({piece.source for piece in ranges}) == 2
    assert len(set(ids(everything(ranges)))) == 10


def test_rotated_files_come_in_the_order_of_time(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"kafka-request.log.{9 - at}", range(at * 10, at * 10 + 10)) for at in range(5)]
    ranges = plan(sorted(paths))
    stamps = [event.logged_at_ms for event in everything(ranges)]
    assert stamps == sorted(stamps)
    assert len({stream_of(piece.source) for piece in ranges}) == 1


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log").touch()
    assert plan([tmp_path / "kafka-request.log"]) == []


def test_the_ids_of_a_replay_are_those_of_the_live_run(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.write(10)
        world.step(5)
        world.rename()
        world.write(10)
        world.step(5)
        world.drain()
        live = {event_id(event) for event in world.topic.events() if event.kind == Kind.HEARTBEAT}
    paths = sorted(tmp_path.glob("kafka-request.log*"))
    assert len(paths) == 2
    assert set(ids(everything(plan(paths, lanes=LANES)))) == live


# --- brokers -------------------------------------------------------------------------------------------------------


def test_a_server_log_belongs_to_the_request_log_with_its_number() -> None:
    story = STORIES / "m01_coordinator_kill-4.1.2"
    ranges = plan(sorted(story.glob("kafka-request-*")), sorted(story.glob("server-*")))
    named = {Path(piece.path).name: piece.source.split("/")[0] for piece in ranges}
    for number, port in ((1, 21000), (2, 21010), (3, 21020)):
        assert named[f"kafka-request-{number}.log.gz"] == named[f"server-{number}.log.gz"] == f"127.0.0.1:{port}"


def test_a_server_log_that_could_be_of_several_brokers_is_refused(tmp_path: Path) -> None:
    logs = [written(tmp_path / f"r{at}.log", range(at, 10), f"10.0.0.{at}:9092-10.0.0.7:5-1-1") for at in (1, 2)]
    server = tmp_path / "server.log"
    server.write_text("[2026-11-20 10:00:00,000] INFO x\n")
    with pytest.raises(SettingsError, match="which of 2 brokers"):
        plan(logs, [server])
    (tmp_path / "b").mkdir()
    beside = shutil.copy(logs[1], tmp_path / "b")
    ranges = plan([logs[0], beside], [shutil.copy(server, tmp_path / "b")])
    assert {piece.source.split("/")[0] for piece in ranges if piece.stream == "server"} == {"10.0.0.2:9092"}


def test_a_server_log_that_is_read_alone_is_named_by_the_node_id_in_its_lines(tmp_path: Path) -> None:
    ranges = plan([], sorted((STORIES / "m01_coordinator_kill-4.1.2").glob("server-*")))
    brokers = {Path(piece.path).name: piece.source.split("/")[0] for piece in ranges}
    assert brokers == {f"server-{number}.log.gz": f"broker-{number}" for number in (1, 2, 3)}
    nameless = tmp_path / "server.log"
    nameless.write_text("[2026-11-20 10:00:00,000] INFO x\n")
    assert plan([], [nameless])[0].source.startswith("broker/server/")


def test_a_name_that_is_given_wins(tmp_path: Path) -> None:
    path = written(tmp_path / "kafka-request.log", range(2))
    assert plan([path], broker="b-7")[0].source.startswith("b-7/request/")


def test_rotated_files_of_a_controller_belong_to_one_broker(tmp_path: Path) -> None:
    """One file begins with a line of the controllers' listener, the next one with a line of a client."""
    first, second = tmp_path / "kafka-request.log.1", tmp_path / "kafka-request.log"
    first.write_bytes(b"".join(data + b"\n" for data in (fetched_by_a_controller(), *map(line, range(1, 3)))))
    second.write_bytes(b"".join(data + b"\n" for data in (*map(line, range(3, 5)), fetched_by_a_controller(5))))
    assert {piece.source.split("/")[0] for piece in plan([first, second])} == {"10.0.0.1:9092"}


# --- what a range carries ------------------------------------------------------------------------------------------


def fetch_line(client: str) -> bytes:
    return line(
        requestHeader={**body()["requestHeader"], "requestApiKey": 1, "clientId": client},
        request={"maxWaitMs": 500, "sessionEpoch": 0},
        response={"errorCode": 0, "responses": []},
    )


def test_a_fetch_finds_groups_that_are_learned_later(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"\n".join([fetch_line("c-1"), fetch_line("who"), line(5)]) + b"\n")
    piece = parse_range(plan([path])[0])
    assert {(client, len(events)) for client, _, events in piece.unrouted} == {("c-1", 1), ("who", 1)}
    directory = Directory()
    directory.merge(piece.directory)
    routed = route(piece, directory)
    kinds = Counter(Kind(event.kind) for events in routed.values() for event in events)
    assert kinds == {Kind.HEARTBEAT: 1, Kind.FETCH: 1}
    assert piece.ignored == {"unattributed_fetch": 1}


def test_folding_loses_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.archives.ranges._BLOCK_BYTES", 1_000)  # the last block has CR: not folded
    path = tmp_path / "kafka-request.log"
    lines = [line(4), fetch_line("c-1"), line(5), line(6), fetch_line("c-1"), line(7)[:99], line(8) + b"\r"]
    path.write_bytes(b"\n".join(lines) + b"\n")
    single, folded = (parse_range(plan([path])[0], fold=fold) for fold in (False, True))
    assert [len(stretch) for _, _, stretches in folded.unrouted_stretches for stretch in stretches] == [2]
    assert sum(len(stretch) for lane in folded.stretches for stretch in lane) == 3
    assert _places(folded) == _places(single)
    for name in ("directory", "lines", "ignored", "rejected", "first_at_ms", "last_at_ms", "silences"):
        assert getattr(folded, name) == getattr(single, name), name


def _places(piece: ParsedRange) -> list[tuple[object, ...]]:
    events = [event for lane in piece.events for event in lane]
    events += [event for _, _, unrouted in piece.unrouted for event in unrouted]
    events += [event for lane in piece.stretches for stretch in lane for event in stretch.events()]
    events += [event for _, _, found in piece.unrouted_stretches for stretch in found for event in stretch.events()]
    return sorted((event.start, *event[:19], (event.detail or {}).get("bytes")) for event in events)


def test_ticks_speak_of_the_whole_range(tmp_path: Path) -> None:
    path = written(tmp_path / "kafka-request.log", range(20))
    first, second = [parse_range(piece) for piece in plan([path], range_bytes=path.stat().st_size // 2)]
    for before, after in ((None, first), (first, second)):
        for tick in after.ticks({0: 7}):
            assert tick.kind == Kind.TICK
            assert (tick.start, tick.end) == (before.end if before else 0, after.end)
            assert tick.logged_at_ms == after.last_at_ms
        assert [(tick.detail or {})["events"] for tick in after.ticks({0: 7})] == [7, 0, 0, 0, 0, 0]
    assert second.last_at_ms == START_MS + 19


def test_a_file_over_the_end_of_summer_time_is_read_in_one_piece(tmp_path: Path) -> None:
    change_ms = 1_792_890_000_000  # 2026-10-25T01:00Z, in Berlin 03:00 becomes 02:00
    path = tmp_path / "kafka-request.log"
    local = [change_ms + 7_200_000 - 1_800_000 + at * 60_000 for at in range(30)]
    local += [change_ms + 3_600_000 + at * 60_000 for at in range(90)]
    path.write_bytes(b"".join(line(at, at_ms=stamp) + b"\n" for at, stamp in enumerate(local)))
    ranges = plan([path], zone="Europe/Berlin", range_bytes=2_000)
    assert len(ranges) == 1
    stamps = [event.logged_at_ms for event in everything(ranges)]
    assert stamps == sorted(stamps)
    assert stamps[-1] - stamps[0] == 119 * 60_000
    assert len(plan([path], zone="UTC", range_bytes=2_000)) > 1
