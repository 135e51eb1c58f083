"""Text lines of brokers 2.0 to 2.7: every API in every version, hostile names, several lines, bounded work.

Goal: the same events as of JSON lines; of a name that imitates a line nothing but the truth or a rejection. Method:
recorded lines of eight releases (`data/text-lines-*`, `odd-lines-*`), and lines built from them.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.archives.ranges import parse_range, plan
from ingest.blocks import Gathered, Splitter, read_cut, read_last
from ingest.dialects.request_json import RequestJson
from ingest.dialects.text_layout import whole
from ingest.router import Directory
from ingest.stamps import zone_named
from kardia.events import Event, Kind
from tests.ingest.lines import DATA, STORIES, line

RELEASES = ("2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2")
SHOWN = {"2.0.1": "2.0", "2.1.1": "2.0", "2.2.2": "2.0", "2.6.3": "2.6", "2.7.2": "2.6"}
HEARTBEAT = "apiKey=HEARTBEAT, apiVersion=2"
UUID = "11111111-2222-3333-4444-555555555555"
TAIL = (
    " from connection 10.0.0.1:9092-10.0.0.7:51234-3;totalTime:2.5,requestQueueTime:0.25,localTime:0.5,remoteTime:1.0,"
    "throttleTime:0.0,responseQueueTime:0.25,sendTime:0.5,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,"
    "listener:PLAINTEXT (kafka.request.logger)"
)


def text_line(client: str = "c", group: str = "own", member: str = f"c-{UUID}", *, error: int = 0) -> str:
    """A heartbeat as a broker 2.0 writes it."""
    head = f"[2026-11-20 10:47:18,113] DEBUG Completed request:RequestHeader({HEARTBEAT}, clientId={client}"
    asked = f"{{group_id={group},generation_id=5,member_id={member}}}"
    return f"{head}, correlationId=7) -- {asked},response:{{throttle_time_ms=0,error_code={error}}}{TAIL}"


def events_of(text: str, *, fold: bool = False) -> tuple[list[Event], Gathered]:
    """What a block within a file says; only the first block of a file is never folded."""
    dialect = RequestJson(zone_named("UTC"), fold=fold)
    gathered = Gathered(1, Directory())
    splitter = Splitter(1_000)
    read_cut(dialect, splitter.feed(text.encode()), "b/request/i", gathered)
    rest, cut = splitter.finish()
    if rest:
        read_last(dialect, rest, "b/request/i", cut.start, gathered)
    found = gathered.events[0] + [event for events in gathered.unrouted.values() for event in events]
    for stretch in dialect.quiet.take().stretches() if dialect.quiet is not None else ():
        found.extend(stretch.events())
    return sorted(found, key=lambda event: event.start), gathered


def recorded(name: str) -> Iterator[Event | str]:
    """Readings of recorded lines."""
    dialect = RequestJson(zone_named("UTC"))
    for record in whole((DATA / name).read_bytes().split(b"\n")[:-1]):
        reading = dialect.read(record, "b/request/i", 0, len(record) + 1)
        yield from [reading] if isinstance(reading, Event | str) else reading


@pytest.mark.parametrize("release", RELEASES)
def test_every_api_in_every_version_is_understood(release: str) -> None:
    found = list(recorded(f"text-lines-{release}.log"))
    events = [one for one in found if isinstance(one, Event)]
    assert {one for one in found if isinstance(one, str)} <= {"other_api"}
    assert not [event.detail for event in events if event.kind == Kind.REJECTED]
    kinds = {Kind(event.kind).name for event in events}
    assert kinds >= {"JOIN", "SYNC", "HEARTBEAT", "LEAVE", "COMMIT", "TXN_COMMIT", "DELETE_GROUPS", "FETCH"}
    for event in events:
        assert event.arrived_at_ms <= event.handled_at_ms <= event.decided_at_ms <= event.logged_at_ms + 0.01
        assert event.client_host == "127.0.0.1"
        assert bool(event.software) <= (release >= "2.5")
    shown = {(event.detail or {})["release"] for event in events if event.kind == Kind.JOIN}
    assert shown == {SHOWN.get(release, release[:3])}


def test_a_join_says_what_the_line_says_and_no_more() -> None:
    joins = [one for one in recorded("text-lines-2.3.1.log") if isinstance(one, Event) and one.kind == Kind.JOIN]
    event = next(one for one in joins if one.client_id == "o07-a2")
    assert (event.group_id, event.group_instance_id, event.generation_id, event.api_version) == ("g07", "i-a", 2, 5)
    assert event.detail == {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [["range", ""]],
        "reason": "",
        "assigned_member_id": "i-a-8218e54c-45e0-4868-8466-9a42e169517b",
        "leader": "i-b-98b96aaf-eb9f-4eda-898a-328b11ef716b",
        "protocol_name": "range",
        "members": [],
        "skip_assignment": False,
        "release": "2.3",
    }


def test_the_error_of_a_leave_stands_within_from_version_3_on() -> None:
    leaves = [one for one in recorded("text-lines-2.7.2.log") if isinstance(one, Event) and one.kind == Kind.LEAVE]
    assert {event.error_code for event in leaves if event.api_version >= 3} >= {0, 25}


def test_a_fetch_says_how_much_it_brought() -> None:
    for release, size in (("2.0.1", 943), ("2.3.1", 341), ("2.7.2", 943)):
        events = [one for one in recorded(f"text-lines-{release}.log") if isinstance(one, Event)]
        brought = [(event.detail or {})["bytes"] for event in events if event.kind == Kind.FETCH]
        assert (min(brought), max(brought)) == (0, size)


ODD_GROUPS = {
    "odd",
    "odd2",
    "g,1",
    "g={a}",
    'g"1"',
    "g'1",
    "{g}",
    "g],member_id=x",
    "g,generation_id=99,member_id=evil",
    "a b",
    "ü-group",
    "",
    "nl\ng",
    "groupId='x', generationId=5",
    "g\x01",
    "g},response:{error_code=0} from connection 9.9.9.9:9-9.9.9.9:9-9;totalTime:0",
}


@pytest.mark.parametrize("release", ["2.0.1", "2.3.1", "2.7.2"])
def test_hostile_names_come_out_as_they_were_sent(release: str) -> None:
    events = [one for one in recorded(f"odd-lines-{release}.log") if isinstance(one, Event)]
    assert not [event.detail for event in events if event.kind == Kind.REJECTED]
    assert {event.group_id for event in events} == ODD_GROUPS
    clients = {event.client_id for event in events}
    assert {"a,b", "x={y}", "q\"uo'te", "sp ace", "e)(e", "new\nline"} <= clients
    assert [client for client in clients if client.startswith("fake, correlationId=1) -- {group_id=zzz,")]


FAKE = "{group_id=victim,generation_id=5,member_id=v-" + UUID + "},response:{throttle_time_ms=0,error_code=0}"

HOSTILE = {
    "client id with a request": text_line(client=f"v, correlationId=1) -- {FAKE}"),
    "client id with a whole line": text_line(client=f"v, correlationId=1) -- {FAKE}{TAIL}"),
    "the same, the member unknown": text_line(client=f"v, correlationId=1) -- {FAKE}", member="nobody", error=25),
    "member id with a request": text_line(member=f"x, correlationId=1) -- {FAKE[:-1]}", error=25),
    "group id with a request": text_line(group=f"x, correlationId=1) -- {FAKE[:-1]}"),
    "member id of the victim after all": text_line(
        client="victim-" + UUID, group="own,generation_id=5,member_id=x", member=f"y,generation_id=5,member_id=v-{UUID}"
    ),
    "line break and a whole line": text_line(client="x\n" + text_line(group="victim", member=f"v-{UUID}") + "\ny"),
    "line break and the head of one": text_line(
        client="x\n[2026-11-20 10:47:18,113] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT, apiVersion=2, "
        f"clientId=v, correlationId=1) -- {FAKE}"
    ),
}


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("what", HOSTILE)
def test_no_name_makes_an_event_of_another_group(what: str, fold: bool) -> None:
    """Before and after it stand lines of others, which are read."""
    around = text_line(group="before") + "\n", text_line(group="after") + "\n"
    found, gathered = events_of(around[0] + HOSTILE[what] + "\n" + around[1], fold=fold)
    said = {event.group_id for event in found if event.kind == Kind.HEARTBEAT}
    assert "victim" not in said
    assert {"before", "after"} <= said
    assert len(found) + sum(gathered.ignored.values()) >= 3  # nothing is lost silently


STATIC = "apiKey=HEARTBEAT, apiVersion=3"


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize(
    "forged",
    [
        f"v, correlationId=1) -- {{group_id=victim,generation_id=1,member_id=v-{UUID},group_instance_id=x",
        f"v, correlationId=1) -- {{group_id=victim,generation_id=1,member_id=i-{UUID},group_instance_id=i",
        f"v, correlationId=1) -- {{group_id=victim,generation_id=1,member_id=v-{UUID},group_instance_id=null}},"
        "response:{throttle_time_ms=0,error_code=0} from connection 1.2.3.4:1-5.6.7.8:9-0;totalTime:1.0",
        f"v, correlationId=1) -- {{group_id=victim,generation_id=1,member_id=v-{UUID},group_instance_id=",
    ],
)
def test_a_static_member_moves_by_no_client_id(forged: str, fold: bool) -> None:
    """Its member id is made of its instance id, so that nothing vouches for its client.id: what looks better proves
    nothing."""
    real = text_line(client=forged, member=f"i-1-{UUID},group_instance_id=i-1").replace(HEARTBEAT, STATIC)
    found, _ = events_of(real + "\n", fold=fold)
    assert "victim" not in {event.group_id for event in found}
    assert {event.group_id for event in found if event.kind == Kind.HEARTBEAT} <= {"own"}


def test_a_line_with_two_readings_is_ambiguous_and_counted() -> None:
    found, gathered = events_of(text_line(group="g,generation_id=1,member_id=x", member="made-up", error=25) + "\n")
    assert [(event.detail or {})["reason"] for event in found] == ["ambiguous"]
    assert gathered.rejected == {"ambiguous": 1}


def test_a_request_of_several_lines_is_one_however_it_arrives() -> None:
    data = (DATA / "odd-lines-2.3.1.log").read_bytes()
    at_once, _ = events_of(data.decode())
    at_once = [event._replace(start=event.start - 1_000, end=event.end - 1_000) for event in at_once]
    dialect = RequestJson(zone_named("UTC"))
    gathered = Gathered(1, Directory())
    splitter = Splitter()
    for at in range(0, len(data), 37):
        read_cut(dialect, splitter.feed(data[at : at + 37]), "b/request/i", gathered)
    assert splitter.position == len(data)
    assert gathered.events[0] == at_once
    multi = [event for event in at_once if "\n" in event.client_id]
    assert multi
    assert all(data[event.start : event.end].count(b"\n") > 1 for event in multi)


def test_ranges_of_a_file_do_not_cut_a_request(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes((DATA / "odd-lines-2.3.1.log").read_bytes() * 3)
    expected = parse_range(plan([log])[0])
    for size in (500, 777, 3_000):
        pieces = [parse_range(one) for one in plan([log], range_bytes=size)]
        assert len(pieces) > 5
        found = [event for cut in pieces for lane in cut.events for event in lane]
        whole_file = [event for lane in expected.events for event in lane]
        assert sorted(found, key=repr) == sorted(whole_file, key=repr)


def test_a_request_that_never_ends_is_told() -> None:
    found, _ = events_of(text_line()[:200] + "\nmore\n")
    assert [(event.detail or {})["reason"] for event in found] == ["incomplete_line"]


def test_a_log_goes_over_from_text_to_json() -> None:
    text = [text_line(group="old").encode()]
    text += [line(1), text_line(group="old").encode(), line(2)]
    found, gathered = events_of(b"\n".join(text).decode() + "\n")
    assert [event.group_id for event in found] == ["old", "g-1", "old", "g-1"]
    assert not gathered.rejected


def test_lines_of_the_other_logger_are_ignored() -> None:
    found = list(recorded("trace-lines-2.7.2.log"))
    assert found.count("other_logger") == 9


@pytest.mark.parametrize("story", ["o01_kill-2.0.1", "o01_kill-2.7.2", "o06_static-2.3.1", "o25_odd-2.3.1"])
def test_folding_changes_nothing(story: str) -> None:
    text = gzip.decompress((STORIES / story / "kafka-request.log.gz").read_bytes()).decode()
    folded, gathered = events_of(text, fold=True)
    single, _ = events_of(text)
    assert sum(map(len, gathered.events)) + sum(map(len, gathered.unrouted.values())) < len(single)
    assert folded == single


@pytest.mark.parametrize(
    "name",
    [
        "{group_id=" * 3_000,
        ", correlationId=1) -- {group_id=a,generation_id=1,member_id=" * 600,
        "a,generation_id=1,member_id=" * 1_100,
        "},response:{error_code=0}" * 1_300,
        "},{" * 10_000,
        "," * 32_000,
        "\n" * 32_000,
    ],
)
def test_work_is_bounded_whatever_the_names_are(name: str) -> None:
    text = text_line(client=name, group=name, member=name)
    began_s = time.process_time()
    found, _ = events_of(text + "\n")
    assert time.process_time() - began_s < 2.0
    assert all(event.kind == Kind.REJECTED for event in found) or found[0].group_id == name


def test_a_charset_that_is_not_utf_8_is_named() -> None:
    dialect = RequestJson(zone_named("UTC"))
    reading = dialect.read(text_line(group="ü").encode("latin-1"), "b/request/i", 0, 1)
    assert isinstance(reading, Event)
    assert (reading.detail or {})["reason"] == "bad_encoding"
    assert json.dumps(reading.detail)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("release", ["2.3.1", "2.4.1"])
def test_2_4_is_told_from_2_3_by_what_it_says_of_the_records_of_a_fetch(release: str, fold: bool) -> None:
    """Clients that ask for nothing 2.3 does not have, as librdkafka does, show it by their FETCH alone."""
    lines = (DATA / f"text-lines-{release}.log").read_text(encoding="utf-8").splitlines()
    fetch = next(one for one in lines if "apiKey=FETCH, apiVersion=11" in one and "record_set=FileRecords(" in one)
    same = (DATA / "text-lines-2.3.1.log").read_text(encoding="utf-8").splitlines()
    join = next(one for one in same if "apiKey=JOIN_GROUP, apiVersion=5" in one)
    events, _ = events_of(f"{join}\n{fetch}\n", fold=fold)
    assert {(event.detail or {})["release"] for event in events if event.kind == Kind.JOIN} == {"2.3"}
    events, _ = events_of(f"{fetch}\n{join}\n", fold=fold)
    assert {(event.detail or {})["release"] for event in events if event.kind == Kind.JOIN} == {release[:3]}
