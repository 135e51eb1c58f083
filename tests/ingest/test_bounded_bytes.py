"""Work and memory per byte of input have a bound, whatever the bytes: a line that a client chose, a log of rubbish."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pyarrow as pa
import pytest

import ingest
from ingest.archives.ranges import PIECE_EVENTS, parse_pieces, plan
from ingest.dialects.request_json import RequestJson
from ingest.dialects.sentence import MAX_CHARS
from ingest.dialects.server_log import ServerLog
from ingest.dialects.telemetry import LAST_POLL, MAX_PARTS, MAX_UNPACKED_BYTES, read
from ingest.stamps import zone_named
from spark_jobs.replay.pieces import ParsedPiece, spill
from spark_jobs.replay.portions import PORTION_EVENTS, Portions
from tests.ingest.lines import START_MS, stamp
from tests.ingest.test_telemetry import metrics
from tests.support.work import Lines

UUID = "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"

LINES = 1_000
"""Lines of code that run until a message is found to have too many parts: some fifty, as they are counted by its
library. To look through them takes a line for each at least."""

LINE_S = 0.25
"""CPU of one line of up to 64 kB. A telemetry line of 10.9 kB took 4.9 s."""

RUBBISH = b"Completed request:\n"


def field(tag: int, data: bytes) -> bytes:
    """A part of a protobuf message that is bytes."""
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([tag]) + length + bytes([size]) + data


def zstd(data: bytes) -> str:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def in_metric(points: bytes) -> bytes:
    """Points of the metric that is read."""
    return field(0x0A, field(0x12, field(0x12, field(0x0A, LAST_POLL.encode()) + field(0x2A, points))))


EMPTY = MAX_UNPACKED_BYTES // 2 - 64
NESTED = {
    "resources": b"\x0a\x00" * EMPTY,
    "scopes": field(0x0A, b"\x12\x00" * EMPTY),
    "metrics": field(0x0A, field(0x12, b"\x12\x00" * EMPTY)),
    "attributes": field(0x0A, field(0x0A, b"\x0a\x00" * EMPTY)),
    "points": in_metric(b"\x0a\x00" * EMPTY),
}


@pytest.mark.parametrize("name", NESTED)
def test_telemetry_of_many_empty_parts_is_not_looked_through(name: str) -> None:
    """Half a million of them: it ends at the bound, whatever is left."""
    packed = zstd(NESTED[name])
    with Lines(Path(ingest.__file__).parent) as lines:
        assert read(packed, 4).unreadable == "too many parts"
    assert lines.done < LINES < MAX_PARTS


def test_parts_up_to_the_bound_are() -> None:
    """Three resources beside it: that of the metric, its scope, the metric."""
    assert read(zstd(metrics() + b"\x0a\x00" * 100), 4).last_poll_s == 6.0
    room = MAX_PARTS - 3
    assert read(zstd(in_metric(b"\x0a\x00" * room)), 4).unreadable == ""
    assert read(zstd(in_metric(b"\x0a\x00" * (room + 1))), 4).unreadable == "too many parts"


SENTENCES = {
    "preparing": "Preparing to rebalance group " + " in state Stable with old generation 1 (reason: a" * 1_300,
    "stabilized": "Stabilized group " + " generation 1" * 5_000,
    "failed": f"Member a-{UUID} in group " * 1_000 + " has failed, removing it from the grou",
    "left": f"[Group g] Member a-{UUID} has left group " * 700,
    "metadata": f"Member MemberMetadata(memberId=a-{UUID}, groupInstanceId=Some(i), clientId=c) has left group " * 500,
    "static": "Static member with groupInstanceId=i and unknown member id joins group g in Stable state. " * 700,
    "leader": f"Assignment received from leader a-{UUID} for group g for generation 1" * 600,
    "deleted": "The following groups were deleted: " + "a, " * 20_000,
}


@pytest.mark.parametrize("chars", sorted({*MAX_CHARS, 64_000} - {1024 * 1024}))
@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_full_of_beginnings_is_read_at_once(name: str, chars: int) -> None:
    sentence = SENTENCES[name][:chars]
    data = f"{stamp(START_MS)} INFO [GroupCoordinator 1]: {sentence} (kafka.coordinator.group.G)".encode()
    dialect = ServerLog(zone_named("UTC"))
    begun = time.process_time()
    dialect.read(data, "b/server/i", 0, len(data) + 1)
    assert time.process_time() - begun < 4 * LINE_S


def test_a_request_nested_to_the_end_is_read_at_once() -> None:
    head = f"{stamp(START_MS)} DEBUG Completed request:".encode()
    body = b'{"isForwarded":false,"requestHeader":{"requestApiKey":12,"requestApiVersion":4},"request":'
    dialect = RequestJson(zone_named("UTC"))
    begun = time.process_time()
    for deep in (b"[" * 60_000, b'{"a":' * 12_000, b'{"groupId":' * 5_000):
        dialect.read(head + body + deep, "b/request/i", 0, 1)
    assert time.process_time() - begun < LINE_S


def rubbish(path: Path, mib: int) -> Path:
    path.write_bytes(RUBBISH * (mib * 1024 * 1024 // len(RUBBISH)))
    return path


def test_a_log_of_rejected_lines_makes_pieces_and_portions_of_bounded_size(tmp_path: Path) -> None:
    """33 MiB of it took 2.5 GB. One block more may be in a piece: it is read whole."""
    lines = 0
    pieces: list[ParsedPiece] = []
    for one in plan([rubbish(tmp_path / "kafka-request.log", 4)]):
        for number, parsed in enumerate(parse_pieces(one, fold=True)):
            lines += parsed.lines
            pieces.append(spill(parsed, tmp_path / f"piece-{number}"))
    in_a_block = 1024 * 1024 // len(RUBBISH) + 1
    assert lines == sum(piece.unfolded for piece in pieces) == 4 * 1024 * 1024 // len(RUBBISH)
    assert max(piece.unfolded for piece in pieces) < PIECE_EVENTS + in_a_block
    portions = Portions()
    portions.add(pieces, [])
    fed = [sum(piece.unfolded for piece in portion.pieces) for portion in portions.ready([])]
    assert sum(fed) == lines
    assert max(fed) <= PORTION_EVENTS
