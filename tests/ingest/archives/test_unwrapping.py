"""However a broker's output was wrapped, what is read of it are the two logs that it would have written."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import struct
import subprocess
from collections.abc import Sequence
from datetime import UTC
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.archives import ordering, unwrapping
from ingest.archives.found import Archives, gather
from ingest.archives.kinds import LOKI, NODE, Kind, kind_of
from ingest.archives.planning import dialect_for, plan, refused_range
from ingest.archives.ranges import parse_range
from ingest.dialects import MAX_LINE_BYTES
from ingest.errors import LogFileError
from ingest.stamps import Stamps
from kardia.events import Event
from kardia.events import Kind as EventKind
from tests.ingest.archives import wrapping
from tests.ingest.lines import line
from tests.support.stories import CORPORA, Story

STORY = "c01_kill-3.9.2"


@cache
def log(name: str) -> tuple[bytes, ...]:
    return tuple(gzip.decompress((Story(STORY).folder / f"{name}.gz").read_bytes()).splitlines())


@cache
def output() -> tuple[bytes, ...]:
    """What the broker would have written to its output: both logs, by their stamps."""
    stamps = Stamps(UTC)
    keyed: list[tuple[float, int, bytes]] = []
    for name in ("server.log", "kafka-request.log"):
        at = 0.0
        for number, one in enumerate(log(name)):
            at = max(at, stamps.at_ms(one) or at)
            keyed.append((at, number, one))
    return tuple(one for _, _, one in sorted(keyed, key=lambda key: key[:2]))


def gathered(
    tmp_path: Path, *files: Path, message_field: str = "", zone: str = "UTC", server_logs: Sequence[Path] = ()
) -> Archives:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True, parents=True)
    return gather(files, (), server_logs, (), zone=zone, message_field=message_field, scratch=scratch)


def written(tmp_path: Path, data: bytes, name: str = "a.log") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def lines_of(paths: list[Path]) -> list[bytes]:
    return [one for path in paths for one in path.read_bytes().splitlines()]


LONG = line(7).replace(b'"clientId":"', b'"clientId":"' + b"x" * 100_000, 1)
"""A request that every wrapper cuts."""


@pytest.mark.parametrize("form", wrapping.FORMS)
def test_the_two_logs_come_out_as_the_broker_wrote_them(tmp_path: Path, form: str) -> None:
    broker = (LONG, *output())  # of two days before
    found = gathered(tmp_path, written(tmp_path, wrapping.FORMS[form](broker)))
    assert found.counts == {}
    assert found.left_out == []
    assert lines_of(found.request_logs) == [LONG, *log("kafka-request.log")]
    assert sorted(lines_of(found.server_logs)) == sorted(log("server.log"))
    assert {path.parent for path in found.request_logs} == {path.parent for path in found.server_logs}


@pytest.mark.parametrize("packed", ["gz", "zst", "xz", "bz2"])
def test_whatever_it_is_compressed_with(tmp_path: Path, packed: str) -> None:
    command = {"gz": "gzip", "xz": "xz", "bz2": "bzip2"}
    data = wrapping.cri(output())
    path = tmp_path / f"0.log.20261120.{packed}"
    if packed == "zst":
        half = len(data) // 2
        frames = [pa.compress(part, codec="zstd", asbytes=True) for part in (data[:half], data[half:])]
        path.write_bytes(b"".join(frames))
    else:
        path.write_bytes(subprocess.run([command[packed], "-c"], input=data, check=True, capture_output=True).stdout)
    assert lines_of(gathered(tmp_path, path).request_logs) == list(log("kafka-request.log"))


@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_a_torn_archive_is_named(tmp_path: Path, packed: str) -> None:
    data = wrapping.cri(output())
    whole = gzip.compress(data) if packed == "gz" else pa.compress(data, codec="zstd", asbytes=True)
    path = written(tmp_path, whole[: len(whole) // 2], f"0.log.{packed}")
    with pytest.raises(LogFileError, match=r"cannot be read to its end.*0\.log.*zstd -t"):
        gathered(tmp_path, path)


def test_a_zip_is_named_for_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match=r"zip archive.*unpack it"):
        gathered(tmp_path, written(tmp_path, b"PK\x03\x04" + bytes(100)))


# --- several files and several brokers -------------------------------------------------------------------


def test_an_export_that_is_newest_first_is_put_in_order(tmp_path: Path) -> None:
    newest_first = list(reversed(wrapping.loki(output()).splitlines(keepends=True)))
    found = gathered(tmp_path, written(tmp_path, b"".join(newest_first), "loki.jsonl"))
    requests = log("kafka-request.log")
    stamps = Stamps(UTC)
    assert lines_of(found.request_logs) == sorted(requests, key=lambda one: stamps.at_ms(one) or 0)
    unstamped = sum(stamps.at_ms(one) is None for one in log("server.log"))
    assert found.counts["unstamped"] == unstamped


def test_pieces_of_an_export_in_any_order_that_overlap_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "CHUNK_BYTES", 20_000)
    monkeypatch.setattr(ordering, "MAX_CHUNKS", 3)
    documents = wrapping.elastic(log("kafka-request.log")).splitlines(keepends=True)
    third = len(documents) // 3
    pieces = [documents[third:], documents[: 2 * third]]  # the middle is there twice
    for piece in pieces:
        random.Random(1).shuffle(piece)
    files = [written(tmp_path, b"".join(piece), f"{n}.jsonl") for n, piece in enumerate(pieces)]
    found = gathered(tmp_path, *files)
    assert sorted(lines_of(found.request_logs)) == sorted(log("kafka-request.log"))
    assert found.counts["twice"] == third
    stamps = Stamps(UTC)
    instants = [stamps.at_ms(one) or 0 for one in lines_of(found.request_logs)]
    assert instants == sorted(instants)
    assert {path.name for path in found.request_logs[0].parent.iterdir()} == {"kafka-request.log"}


def test_the_same_line_twice_in_one_file_is_two_lines(tmp_path: Path) -> None:
    once = wrapping.cri([line(3), line(1), line(1), *[line(n) for n in range(50_000, 50_010)], line(2)])
    assert len(lines_of(gathered(tmp_path, written(tmp_path, once)).request_logs)) == 14


def of_host(host: str, lines: tuple[bytes, ...]) -> list[dict[str, object]]:
    return [{"message": one.decode(), "host": {"name": host}} for one in lines]


def test_lines_of_two_brokers_in_one_export_are_told_apart(tmp_path: Path) -> None:
    other = tuple(one.replace(b" id=1", b" id=2").replace(b"Coordinator 1]", b"Coordinator 2]") for one in output())
    mixed = [one for pair in zip(of_host("a", output()), of_host("b", other), strict=True) for one in pair]
    found = gathered(tmp_path, written(tmp_path, wrapping.dumped(mixed)))
    assert [lines_of([path]) for path in found.request_logs] == [list(log("kafka-request.log"))] * 2
    assert len({path.parent for path in found.server_logs}) == 2


def as_broker(other: bytes) -> list[bytes]:
    """The server.log as another broker would have written it."""
    lines = []
    for one in log("server.log"):
        node = NODE.match(one)
        lines.append(one if node is None else one[: node.start(1)] + other + one[node.end(1) :])
    return lines


def by_node(found: Archives) -> dict[bytes, list[bytes]]:
    """The lines of each broker's server.log, by the node id of its first line that has one."""
    logs = [lines_of([path]) for path in found.server_logs]
    return {next(node[1] for one in lines if (node := NODE.match(one))): lines for lines in logs}


@pytest.mark.parametrize("order", ["in turn", "one behind the other"])
def test_lines_of_two_brokers_in_one_server_log_are_told_apart_by_node_id(tmp_path: Path, order: str) -> None:
    """They were read as one broker's where the file was plain."""
    one, two = list(log("server.log")), as_broker(b"2")
    lines = [line for pair in zip(one, two, strict=True) for line in pair] if order == "in turn" else one + two
    alone = {node: [line for line in of if NODE.match(line)] for node, of in ((b"1", one), (b"2", two))}
    plain = written(tmp_path, wrapping.plain(lines), "server.log")
    for found in (gathered(tmp_path / "a", plain), gathered(tmp_path / "b", server_logs=[plain])):
        told = {node: [line for line in of if NODE.match(line)] for node, of in by_node(found).items()}
        assert told == alone
        stamps = Stamps(UTC)
        kept = [one for of in by_node(found).values() for one in of if stamps.at_ms(one) is not None]
        assert len(kept) == sum(stamps.at_ms(one) is not None for one in lines)


def test_lines_of_two_brokers_in_an_export_without_a_host_are_told_apart_by_node_id(tmp_path: Path) -> None:
    documents = [
        {"message": one.decode()} for pair in zip(log("server.log"), as_broker(b"2"), strict=True) for one in pair
    ]
    assert by_node(gathered(tmp_path, written(tmp_path, wrapping.dumped(documents)))).keys() == {b"1", b"2"}


def test_both_logs_of_two_brokers_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    """The request log has no node id in its lines."""
    lines = [*as_broker(b"2"), *output()]
    with pytest.raises(LogFileError, match=r"several brokers \(1, 2\).*no field.*host\.name"):
        gathered(tmp_path, written(tmp_path, wrapping.plain(lines)))


def test_two_request_logs_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    lines = [line(n, connection=f"10.0.0.{1 + n % 2}:9092-10.0.0.7:51234-0-17") for n in range(20)]
    with pytest.raises(LogFileError, match=r"several brokers \(10\.0\.0\.1, 10\.0\.0\.2\)"):
        gathered(tmp_path, written(tmp_path, wrapping.dumped({"message": one.decode()} for one in lines)))


def test_pods_side_by_side_are_different_brokers_and_their_rotated_parts_are_not(tmp_path: Path) -> None:
    requests = log("kafka-request.log")
    half = len(requests) // 2
    for pod in ("kafka-0", "kafka-1"):
        written(tmp_path, wrapping.cri(requests[half:]), f"pods/ns_{pod}_1/kafka/0.log")
        packed = gzip.compress(wrapping.cri(requests[:half]))
        written(tmp_path, packed, f"pods/ns_{pod}_1/kafka/0.log.20261120-101010.gz")
    found = gathered(tmp_path, tmp_path / "pods")
    assert [lines_of([path]) for path in found.request_logs] == [list(requests)] * 2


def test_a_line_that_was_cut_by_the_rotation_is_joined(tmp_path: Path) -> None:
    whole = wrapping.cri((line(1), LONG, line(9)))
    cut = whole.find(b" P ", len(whole) // 2)
    cut = whole.find(b"\n", cut) + 1
    first = written(tmp_path, whole[:cut], "k/0.log.1")
    second = written(tmp_path, whole[cut:], "k/0.log")
    assert lines_of(gathered(tmp_path, first, second).request_logs) == [line(1), LONG, line(9)]


def test_other_programs_in_an_export_are_left_out_and_named(tmp_path: Path) -> None:
    connect = [{"message": "[2026-11-20 10:00:00,000] INFO started (org.apache.kafka.connect.X)", "host": "connect-1"}]
    found = gathered(tmp_path, written(tmp_path, wrapping.dumped([*of_host("a", output()), *connect])))
    assert [one.partition(":")[0] for one in found.left_out] == ["connect-1"]
    assert len(found.server_logs) == 1


def test_more_writers_than_a_cluster_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unwrapping, "MAX_WRITERS", 3)
    documents = [{"message": line(n).decode(), "host": f"h{n}"} for n in range(4)]
    gathered(tmp_path, written(tmp_path, wrapping.dumped(documents[:3])))
    with pytest.raises(LogFileError, match="more than 3 hosts or pods"):
        gathered(tmp_path / "b", written(tmp_path / "b", wrapping.dumped(documents)))


def test_an_export_out_of_order_over_the_end_of_summer_time_is_refused(tmp_path: Path) -> None:
    lines = [b"[2026-10-25 %s,000] INFO [GroupCoordinator 1]: x" % at for at in (b"03:30:00", b"02:30:00", b"01:00:00")]
    documents = wrapping.dumped({"message": one.decode()} for one in lines)
    with pytest.raises(LogFileError, match="clock was set back"):
        gathered(tmp_path, written(tmp_path, documents), zone="Europe/Berlin")


# --- what is damaged -------------------------------------------------------------------------------------


def rejected(found: Archives) -> list[tuple[str, str]]:
    events: list[Event] = []
    for file in found.refused:
        parsed = parse_range(refused_range(file, "UTC", 1))
        assert parsed.lines == len(parsed.events[0]) == sum(parsed.rejected.values())
        events += parsed.events[0]
    assert {event.kind for event in events} <= {EventKind.REJECTED}
    return [(event.detail["reason"], event.detail["excerpt"]) for event in events if event.detail]


GOOD = {"message": line(1).decode(), "host": "a"}

DAMAGED = {
    "not JSON": (b'{"message": "[2026-', "bad_json"),
    "too deep": (b'{"message":' + b"[" * 100_000, "bad_json"),
    "no object": (b"[1,2]", "bad_json"),
    "no message": (b'{"host": "a"}', "unknown_shape"),
    "a number": (b'{"message": 7}', "unknown_shape"),
    "bytes": (b'{"message": "\xff\xfe"}', "bad_json"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_entry_is_a_rejected_line_and_the_rest_is_read(tmp_path: Path, case: str) -> None:
    bad, reason = DAMAGED[case]
    data = wrapping.dumped([GOOD]) + bad + b"\n" + wrapping.dumped([GOOD])
    found = gathered(tmp_path, written(tmp_path, data))
    assert [one for one, _ in rejected(found)] == [reason]
    assert lines_of(found.request_logs) == [line(1)] * 2


def test_its_row_says_where_it_stands(tmp_path: Path) -> None:
    good = wrapping.dumped([GOOD])
    found = gathered(tmp_path, written(tmp_path, good + b"{broken\n" + good))
    (event,) = parse_range(refused_range(found.refused[0], "UTC", 1)).events[0]
    assert (event.start, event.end) == (len(good), len(good) + len(b"{broken\n"))
    assert event.logged_at_ms == dialect_for("request", "UTC").stamp_ms(line(1))
    assert event.detail is not None
    assert event.detail["excerpt"] == "{broken"


def test_a_message_that_journalctl_left_out_is_said_with_the_remedy(tmp_path: Path) -> None:
    documents = [{"MESSAGE": line(1).decode()}, {"MESSAGE": None}]
    found = gathered(tmp_path, written(tmp_path, wrapping.dumped(documents)))
    (event,) = parse_range(refused_range(found.refused[0], "UTC", 1)).events[0]
    assert event.detail is not None
    assert (event.detail["reason"], "--all" in event.detail["expected"]) == ("incomplete_line", True)


def test_an_export_of_the_journal_that_ends_in_a_field_is_incomplete(tmp_path: Path) -> None:
    whole = wrapping.journal_export((line(1), line(2) + b"\x07"))
    found = gathered(tmp_path, written(tmp_path, whole[:-40]))
    assert [reason for reason, _ in rejected(found)] == ["incomplete_line"]
    assert lines_of(found.request_logs) == [line(1)]


def test_a_length_that_cannot_be_is_no_memory(tmp_path: Path) -> None:
    huge = b"__CURSOR=1\nMESSAGE\n" + struct.pack("<Q", 2**63) + b"x" * 100 + b"\n\n"
    found = gathered(tmp_path, written(tmp_path, wrapping.journal_export((line(1),)) + huge))
    assert [reason for reason, _ in rejected(found)] == ["incomplete_line"]


def test_an_entry_over_the_bound_is_rejected_and_the_next_one_read(tmp_path: Path) -> None:
    long = b'{"message": "' + b"x" * (9 * MAX_LINE_BYTES) + b'"}\n'
    found = gathered(tmp_path, written(tmp_path, wrapping.dumped([GOOD]) + long + wrapping.dumped([GOOD])))
    assert [reason for reason, _ in rejected(found)] == ["line_too_long"]
    assert lines_of(found.request_logs) == [line(1)] * 2


def test_a_line_of_parts_without_end_is_cut_at_the_bound_and_its_reader_rejects_it(tmp_path: Path) -> None:
    part = b"2026-11-20T10:00:00Z stdout P " + b"x" * 16_000 + b"\n"
    begin = b"2026-11-20T10:00:00Z stdout P " + line(1)[:100] + b"\n"
    data = wrapping.cri([line(1)]) + begin + part * 200 + wrapping.cri([line(2)])
    found = gathered(tmp_path, written(tmp_path, data))
    events = parse_range(plan(found.request_logs, lanes=1)[0]).rejected
    assert events == {"line_too_long": 1}


# --- fields ----------------------------------------------------------------------------------------------


def test_the_field_may_be_named(tmp_path: Path) -> None:
    documents = wrapping.dumped({"payload": {"raw": one.decode()}, "host": "a"} for one in (line(1), line(2)))
    path = written(tmp_path, documents)
    with pytest.raises(LogFileError, match=r"its fields: host, payload.*--message-field"):
        gathered(tmp_path, path)
    assert lines_of(gathered(tmp_path, path, message_field="payload.raw").request_logs) == [line(1), line(2)]


@pytest.mark.parametrize("name", ["MESSAGE", "log", "line", "message", "msg", "_raw", "textPayload", "body"])
def test_common_names_of_the_field_are_known(tmp_path: Path, name: str) -> None:
    data = wrapping.dumped({name: line(1).decode(), "other": "x"} for _ in range(2))
    assert lines_of(gathered(tmp_path, written(tmp_path, data)).request_logs) == [line(1)] * 2


def test_of_two_fields_the_one_with_the_whole_line_is_read(tmp_path: Path) -> None:
    """Elastic's pipelines take the stamp off `message` and keep the line under `event.original`."""
    document = {"message": "Completed request:{}", "event": {"original": line(1).decode()}}
    assert lines_of(gathered(tmp_path, written(tmp_path, wrapping.dumped([document]))).request_logs) == [line(1)]


def test_a_broker_whose_layout_is_json_is_read_as_well(tmp_path: Path) -> None:
    """The layout of the Elastic Common Schema for log4j2: stamp, level and logger have fields of their own."""
    said = "[GroupCoordinator 1]: Stabilized group g generation 3 (__consumer_offsets-10) with 2 members"
    document = {
        "@timestamp": "2026-11-20T10:49:05.568Z",
        "log.level": "INFO",
        "message": said,
        "log.logger": "kafka.coordinator.group.GroupCoordinator",
    }
    found = gathered(tmp_path, written(tmp_path, wrapping.dumped([document])))
    parsed = parse_range(plan([], found.server_logs, lanes=1)[0])
    (event,) = parsed.events[0]
    assert (event.group_id, event.logged_at_ms) == ("g", 1_795_171_745_568.0)


def test_json_of_one_piece_is_refused_with_the_way_out(tmp_path: Path) -> None:
    answer = {"status": "success", "data": {"resultType": "streams", "result": []}}
    path = written(tmp_path, json.dumps(answer, indent=1).encode())
    with pytest.raises(LogFileError, match=r"not one document per line.*jq -c"):
        gathered(tmp_path, path)


# --- text with something before each line ---------------------------------------------------------------

PREFIXES = {
    "journalctl": b"Nov 20 10:47:18 kafka-1 kafka-server-start.sh[812]: ",
    "journalctl -o short-full": b"Fri 2026-11-20 10:47:18 UTC kafka-1 kafka-server-start.sh[812]: ",
    "docker compose logs": b"kafka-1  | ",
    "docker compose logs, coloured": b"\x1b[36mkafka-1  |\x1b[0m ",
    "docker logs --timestamps": b"2026-11-20T10:47:18.113456789Z ",
    "kubectl logs --prefix": b"[pod/kafka-0/kafka] ",
    "logcli": b'2026-11-20T10:47:18Z {pod="kafka-0", container="kafka"} ',
    "grafana": b"2026-11-20 11:47:18.113\t",
    "syslog": b"<30>1 2026-11-20T10:47:18.1Z kafka-1 kafka 812 - - ",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_stands_before_each_line_is_left_out_and_its_stamp_believed_by_nobody(tmp_path: Path, prefix: str) -> None:
    found = gathered(tmp_path, written(tmp_path, wrapping.plain([PREFIXES[prefix] + one for one in output()])))
    stamps = Stamps(UTC)
    assert lines_of(found.request_logs) == list(log("kafka-request.log"))
    assert lines_of(found.server_logs) == [one for one in log("server.log") if stamps.at_ms(one) is not None]


def test_a_prefix_tells_brokers_apart_and_not_the_same_one_after_a_restart_or_on_another_day(tmp_path: Path) -> None:
    half = len(output()) // 2
    other = [one.replace(b" id=1", b" id=2").replace(b"Coordinator 1]", b"Coordinator 2]") for one in output()]
    begins = (b"Fri 2026-11-20 10:47:18 UTC %s java[812]: ", b"Sat 2026-11-21 00:01:02 UTC %s java[9]: ")
    lines = []
    for number, (one, two) in enumerate(zip(output(), other, strict=True)):
        begin = begins[number > half]
        lines += [begin % b"kafka-1" + one, begin % b"kafka-2" + two]
    found = gathered(tmp_path, written(tmp_path, wrapping.plain(lines)))
    assert [lines_of([path]) for path in found.request_logs] == [list(log("kafka-request.log"))] * 2


def test_lines_of_two_brokers_behind_times_alone_are_told_apart_by_node_id(tmp_path: Path) -> None:
    pairs = zip(log("server.log"), as_broker(b"2"), strict=True)
    lines = [b"2026-11-20T10:47:18Z " + one for pair in pairs for one in pair]
    assert by_node(gathered(tmp_path, written(tmp_path, wrapping.plain(lines)))).keys() == {b"1", b"2"}


def test_what_looks_like_a_line_within_a_plain_one_is_no_prefix(tmp_path: Path) -> None:
    forged = (
        b"[2026-11-20 10:00:00,000] INFO [GroupCoordinator 1]: Group g[2026-11-20 10:00:00,000] INFO x is dead (k.X)"
    )
    path = written(tmp_path, wrapping.plain([forged] * 3 + [line(1)]))
    found = gathered(tmp_path, path)
    assert lines_of([*found.server_logs, *found.request_logs]) == [forged] * 3 + [line(1)]


@pytest.mark.parametrize("names", ['"@timestamp",message,host.name', "@timestamp,@message,@logStream", ""])
def test_a_table_is_read_by_its_column_of_lines(tmp_path: Path, names: str) -> None:
    """As Kibana and CloudWatch export it, also without the names of the columns."""
    lines = [line(n, connection=f"10.0.0.{1 + n % 2}:9092-10.0.0.7:51234-0-17") for n in range(4)]
    rows = [
        '"Nov 20, 2026 @ 10:47:18.113","' + one.decode().replace('"', '""') + f'",kafka-{number % 2}'
        for number, one in enumerate(lines)
    ]
    if not names:
        rows = [row.rpartition(",")[0] for row in rows[::2]]
    found = gathered(tmp_path, written(tmp_path, "\n".join([*filter(None, [names]), *rows]).encode(), "kibana.csv"))
    assert lines_of(found.request_logs) == ([*lines[::2], *lines[1::2]] if names else lines[::2])


def test_an_answer_of_loki_is_refused_with_the_way_out(tmp_path: Path) -> None:
    values = [["1795171638113000000", one.decode()] for one in (line(1), line(2))]
    result = [{"stream": {"pod": "kafka-0"}, "values": values}]
    answer = json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}}).encode()
    with pytest.raises(LogFileError, match=r"jq -c '\.data\.result"):
        gathered(tmp_path, written(tmp_path, answer, "loki.json"))
    jq = shutil.which("jq")
    if jq is None:
        return  # the command that was named can be tried where it is
    made = subprocess.run([jq, "-c", LOKI], input=answer, check=True, capture_output=True).stdout
    again = gathered(tmp_path / "again", written(tmp_path / "again", made))
    assert lines_of(again.request_logs) == [line(1), line(2)]


def test_an_export_of_splunk_has_the_line_in_a_result(tmp_path: Path) -> None:
    documents = [{"preview": False, "result": {"_raw": line(n).decode(), "host": "a"}} for n in (1, 2)]
    found = gathered(tmp_path, written(tmp_path, wrapping.dumped(documents)))
    assert lines_of(found.request_logs) == [line(1), line(2)]


# --- what a file is --------------------------------------------------------------------------------------


def test_what_each_file_is_shows_its_content(tmp_path: Path) -> None:
    story = Story(STORY).folder
    names = {"kafka-request.log.gz": Kind.REQUEST, "server.log.gz": Kind.SERVER, "offsets.jsonl.gz": Kind.OFFSETS}
    for number, (name, kind) in enumerate(names.items()):
        renamed = tmp_path / f"file-{number}"
        renamed.write_bytes((story / name).read_bytes())
        assert kind_of(renamed).kind is kind
    assert kind_of(written(tmp_path, b"\n", "empty")).kind is Kind.EMPTY
    assert kind_of(written(tmp_path, b"hello\n", "other")).kind is Kind.OTHER


@pytest.mark.parametrize("story", sorted(path.parent.name for path in CORPORA.glob("*/kafka-request.log.gz")))
def test_every_recorded_request_log_is_one(story: str) -> None:
    """Those that are text name topics and offsets as a dump of the offsets topic does."""
    assert kind_of(CORPORA / story / "kafka-request.log.gz").kind is Kind.REQUEST


def test_a_folder_is_read_without_what_is_no_log(tmp_path: Path) -> None:
    story = Story(STORY).folder
    for name in ("kafka-request.log.gz", "server.log.gz", "offsets.jsonl.gz"):
        written(tmp_path, (story / name).read_bytes(), f"logs/broker-1/{name}")
    written(tmp_path, b"[2026-11-20 10:00:00,000] INFO [Controller id=1] x (kafka.server.X)\n", "logs/controller.log")
    written(tmp_path, b"GC(1) Pause\n", "logs/kafkaServer-gc.log")
    written(tmp_path, b"secret", "logs/.hidden/x")
    found = gathered(tmp_path, tmp_path / "logs")
    assert [len(one) for one in (found.request_logs, found.server_logs, found.offsets)] == [1, 1, 1]
    assert [Path(one.partition(": ")[0]).name for one in found.left_out] == ["controller.log", "kafkaServer-gc.log"]


def test_a_pattern_is_read_as_the_shell_would(tmp_path: Path) -> None:
    for day in (20, 21):
        written(tmp_path, line(day) + b"\n", f"b1/{day}/kafka-request.log")
    found = gathered(tmp_path, Path(f"{tmp_path}/b*/**/kafka-request.log*"))
    assert len(found.request_logs) == 2
    with pytest.raises(LogFileError, match="no such file"):
        gathered(tmp_path, Path(f"{tmp_path}/nothing*"))


def test_a_part_of_server_log_that_names_no_broker_belongs_to_the_other_parts(tmp_path: Path) -> None:
    named = b"[2026-11-20 10:00:00,000] INFO [GroupCoordinator 3]: Startup complete. (kafka.coordinator.group.X)\n"
    quiet = b"[2026-11-20 11:00:00,000] INFO Terminating process due to signal SIGTERM (x)\n"
    other = named.replace(b"Coordinator 3", b"Coordinator 4")
    first = written(tmp_path, named, "server-3.log.1")
    second = written(tmp_path, quiet, "server-3.log")
    third = written(tmp_path, other, "server-4.log")
    sources = [piece.source.split("/")[0] for piece in plan([], [second, third, first])]
    assert sorted(sources) == ["broker-3", "broker-3", "broker-4"]
