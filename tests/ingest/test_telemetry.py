"""Metrics that clients push: real ones, each way to pack them, and bytes that a hostile client may choose."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from ingest.archives.ranges import parse_range, plan, route
from ingest.blocks import Gathered, read_block
from ingest.dialects.request_json import RequestJson
from ingest.dialects.telemetry import LAST_POLL, MAX_PACKED_BYTES, MAX_UNPACKED_BYTES, Pushed, read
from ingest.router import Directory
from ingest.stamps import zone_named
from kardia.events import ALL_SHARDS, DEFAULT_LANES, Event, Kind, lane_of, shard_of
from tests.ingest.lines import DATA, line, recorded


def metrics(value: float | None = 6.0, member_key: str = "group_member_id", **attributes: str) -> bytes:
    """Metrics of a consumer as a Java client writes them, unpacked."""
    data = MetricsData()
    named = {"group_id": "g", member_key: "m-1", **attributes}
    for name, number in (("org.apache.kafka.consumer.time.between.poll.max", 612.0), (LAST_POLL, value)):
        resource = data.resource_metrics.add()
        for key, text in named.items():
            resource.resource.attributes.add(key=key).value.string_value = text
        metric = resource.scope_metrics.add().metrics.add(name=name)
        if number is not None:
            metric.gauge.data_points.add().as_double = number
    packed: bytes = data.SerializeToString()
    return packed


def streamed(codec: str, data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def snappy(data: bytes) -> bytes:
    block: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return block


def framed(*blocks: bytes) -> bytes:
    """Blocks of Snappy behind the header that Java's stream writes."""
    parts = [len(block).to_bytes(4, "big") + block for block in map(snappy, blocks)]
    return b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2 + b"".join(parts)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


ONE = metrics()

PACKED = {
    "none": (0, ONE),
    "gzip": (1, gzip.compress(ONE)),
    "snappy": (2, framed(ONE)),
    "snappy in two blocks": (2, framed(ONE[:50], ONE[50:])),
    "snappy without a frame": (2, snappy(ONE)),
    "lz4": (3, streamed("lz4", ONE)),
    "zstd": (4, streamed("zstd", ONE)),
}


@pytest.mark.parametrize("name", PACKED)
def test_every_compression_of_the_protocol_is_read(name: str) -> None:
    compression, packed = PACKED[name]
    assert read(coded(packed), compression) == Pushed("g", "m-1", "", 6.0)


def test_who_it_is_may_be_named_in_either_way_and_with_a_static_id() -> None:
    found = read(coded(metrics(member_key="member_id", group_instance_id="s-1")), 0)
    assert (found.member_id, found.group_instance_id) == ("m-1", "s-1")


@pytest.mark.parametrize("value", [None, -1.0, float("nan"), float("inf"), 1e300])
def test_a_value_that_cannot_be_is_none(value: float | None) -> None:
    assert read(coded(metrics(value)), 0).last_poll_s is None


def test_whole_numbers_are_numbers() -> None:
    data = MetricsData()
    point = data.resource_metrics.add().scope_metrics.add().metrics.add(name=LAST_POLL).gauge.data_points.add()
    point.as_int = 12
    assert read(coded(data.SerializeToString()), 0).last_poll_s == 12.0


def test_nothing_pushed_is_nothing_said() -> None:
    assert read("", 0) == Pushed()
    assert read(coded(b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"), 4) == Pushed()


BOMB = bytes(MAX_UNPACKED_BYTES + 1)


@pytest.mark.parametrize(
    ("compression", "packed"),
    [
        (1, gzip.compress(BOMB)),
        (2, framed(BOMB)),
        (2, snappy(BOMB)),
        (3, streamed("lz4", BOMB)),
        (4, streamed("zstd", BOMB)),
    ],
)
def test_what_is_too_long_unpacked_is_not_read(compression: int, packed: bytes) -> None:
    assert read(coded(packed), compression) == Pushed(unreadable="too long")


def test_many_small_blocks_are_bounded_together() -> None:
    assert read(coded(framed(*[BOMB[: MAX_UNPACKED_BYTES // 2 + 1]] * 2)), 2).unreadable == "too long"


@pytest.mark.parametrize(
    ("text", "compression", "why"),
    [
        ("A" * (MAX_PACKED_BYTES * 4 // 3 + 8), 0, "too long"),
        ("é", 0, "not base64"),
        ("AAA", 0, "not base64"),
        (coded(ONE), 9, "unknown compression"),
        (coded(ONE), 4, "damaged"),
        (coded(ONE), 1, "damaged"),
        (coded(streamed("zstd", ONE)[:-9]), 4, None),
        (coded(b"\xff" * 40), 0, "not metrics"),
        (coded(b""), 2, None),
        (coded(b"\x82SNAPPY\x00"), 2, None),
    ],
)
def test_what_cannot_be_read_is_named(text: str, compression: int, why: str | None) -> None:
    found = read(text, compression)
    assert found.last_poll_s is None
    if why is not None:
        assert found == Pushed(unreadable=why)


@given(st.binary(max_size=400), st.integers(-1, 6), st.booleans())
def test_no_bytes_stop_the_reader(data: bytes, compression: int, framed_too: bool) -> None:
    packed = b"\x82SNAPPY\x00" + data if framed_too else data
    assert read(coded(packed), compression).unreadable in (
        "",
        "damaged",
        "not metrics",
        "too long",
        "unknown compression",
    )


# --- lines -----------------------------------------------------------------------------------------------------------


def telemetry(data: bytes) -> Event:
    reading = RequestJson(zone_named("UTC")).read(data, "b/request/i", 0, len(data))
    assert isinstance(reading, Event)
    assert reading.kind == Kind.TELEMETRY
    return reading


@pytest.mark.parametrize(("version", "ago"), [("3.9.2", 0.0), ("4.0.2", 3.0), ("4.1.2", 0.0)])
def test_a_recorded_push_of_a_java_client_says_when_it_polled(version: str, ago: float) -> None:
    (data,) = [one for title, one in recorded(version) if "PUSH_TELEMETRY" in title and "apache-kafka-java" in title]
    found = telemetry(data)
    assert found.group_id in ("p0", "p0k")
    assert found.member_id
    assert found.shard == shard_of(found.group_id)
    assert found.detail is not None
    assert found.detail["last_poll_s"] == ago
    assert "metrics" not in found.detail, "what a client pushes is not passed on"


def test_a_recorded_push_of_librdkafka_says_whose_it_is_and_nothing_of_polls() -> None:
    lines = (DATA / "kafka-request-4.1.1.log").read_bytes().splitlines()
    (data,) = [one for one in lines if b'"PUSH_TELEMETRY"' in one]
    found = telemetry(data)
    assert (found.group_id, found.member_id[:6]) == ("g-tec", "te-ck-")
    assert found.detail == {"bytes": 738, "compression": 4, "client_instance_id": "4KTEOrJwQfStIQmS1b75Lw"}


def push(number: int, packed: bytes) -> bytes:
    """A line of a push of zstd."""
    header = {"requestApiKey": 72, "requestApiVersion": 0, "clientId": "c-1", "requestApiKeyName": "PUSH_TELEMETRY"}
    request = {"clientInstanceId": "x", "compressionType": 4, "metrics": coded(packed)}
    return line(number, requestHeader=header, request=request)


def test_it_goes_to_the_shard_of_its_group_and_to_no_other(tmp_path: Path) -> None:
    """Also if its client is known for groups of other shards. One that cannot be read goes where its client is."""
    good, bad = push(2, streamed("zstd", ONE)), push(3, b"no")
    data = b"\n".join([line(1), good, bad]) + b"\n"
    path = tmp_path / "kafka-request.log"
    path.write_bytes(data)
    (piece,) = plan([path])
    found = parse_range(piece)
    directory = Directory()
    directory.merge(found.directory)
    routed = [(event.shard, event.group_id) for lane in route(found, directory).values() for event in lane]
    assert sorted(routed) == sorted([(shard_of("g-1"), "g-1"), (shard_of("g-1"), ""), (shard_of("g"), "g")])
    gathered = Gathered(DEFAULT_LANES, Directory())
    read_block(RequestJson(zone_named("UTC")), data, "s", 0, gathered)
    assert [event.kind for event in gathered.events[lane_of(shard_of("g"))]].count(Kind.TELEMETRY) == 1
    assert [event.shard for events in gathered.unrouted.values() for event in events] == [ALL_SHARDS]
