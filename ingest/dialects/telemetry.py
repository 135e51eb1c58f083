"""What a client says of itself in PUSH_TELEMETRY (KIP-714): whose it is, and when its application last polled.

The request log has the metrics as they were pushed: OTLP `MetricsData`, compressed, in base64. Of all that is in them
one number is kept: `consumer.last.poll.seconds.ago`, whole seconds since the begin of the last poll, measured by the
Java client itself. librdkafka pushes no such metric. Everything here was chosen by the client, so nothing is believed
for long: sizes are bounded before anything is unpacked, and what cannot be read is named and left.

Truth: KIP-714, Kafka's `ClientTelemetryUtils`, and recorded lines of Java clients 3.9 to 4.2 and of librdkafka 2.16.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import cramjam
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData, NumberDataPoint

MAX_PACKED_BYTES = 1024 * 1024
"""A broker takes 1 MiB by default (`telemetry.max.bytes`); one metric of a consumer has some 200 bytes."""

MAX_UNPACKED_BYTES = 1024 * 1024
"""What is longer unpacked is not read: every metric that a Java client has takes about 300 kB. Part by part of two
bytes each, so much is 16 times as much memory and some ms to parse."""

MAX_PARTS = 10_000
"""Resources, scopes, metrics, attributes and points looked at, in 10 ms; a Java client pushes about 1,000."""

MAX_ID_CHARS = 2**15 - 1
"""Longest string of the protocol; a longer attribute is none that a consumer wrote."""

LAST_POLL = "org.apache.kafka.consumer.last.poll.seconds.ago"

T = TypeVar("T")

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class Pushed(NamedTuple):
    """What was read. `unreadable` names what hindered it, else it is empty."""

    group_id: str = ""
    member_id: str = ""
    group_instance_id: str = ""
    last_poll_s: float | None = None
    """Whole seconds from the begin of the last poll to the push; None if it was not pushed, or never polled."""
    unreadable: str = ""


class Unreadable(ValueError):  # noqa: N818 - says what the bytes are
    """Bytes that are not what they should be; the message is one of a few fixed words."""


def read(metrics: str, compression: int) -> Pushed:
    """Read the metrics of a PUSH_TELEMETRY, in base64."""
    if not metrics:
        return Pushed()
    try:
        packed = _decoded(metrics)
        return _said(MetricsData.FromString(_unpacked(packed, compression)))
    except Unreadable as error:
        return Pushed(unreadable=str(error))
    except DecodeError:
        return Pushed(unreadable="not metrics")


def _decoded(metrics: str) -> bytes:
    if len(metrics) > MAX_PACKED_BYTES * 4 // 3 + 4:
        raise Unreadable("too long")
    try:
        return base64.b64decode(metrics, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable("not base64") from error


def _unpacked(packed: bytes, compression: int) -> bytes:
    unpack = _UNPACKERS.get(compression)
    if unpack is None:
        raise Unreadable("unknown compression")
    try:
        data = unpack(packed)
    except (cramjam.DecompressionError, IndexError) as error:
        raise Unreadable("too long" if _FULL in str(error) else "damaged") from error
    if len(data) > MAX_UNPACKED_BYTES:
        raise Unreadable("too long")
    return data


_FULL = "whole buffer"
"""What cramjam says when what it unpacks is longer than the room it was given."""


def _into(unpack: Callable[[bytes, bytearray], int]) -> Callable[[bytes], bytes]:
    """Unpack into a room that is one byte larger than the bound, and never more."""

    def unpacked(packed: bytes) -> bytes:
        room = bytearray(MAX_UNPACKED_BYTES + 1)
        return bytes(memoryview(room)[: unpack(packed, room)])

    return unpacked


def _snappy(packed: bytes) -> bytes:
    """Unpack Snappy as Java writes it: blocks with their lengths behind a header; or one bare block."""
    if not packed.startswith(_XERIAL):
        return _snappy_block(packed, MAX_UNPACKED_BYTES)
    parts, room, at = [], MAX_UNPACKED_BYTES, _XERIAL_HEADER_BYTES
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        part = _snappy_block(packed[at + 4 : at + 4 + size], room)
        parts.append(part)
        room -= len(part)
        at += 4 + size
    return b"".join(parts)


def _snappy_block(block: bytes, room: int) -> bytes:
    size = shift = 0
    for place in range(5):  # the length unpacked, seven bits a byte
        size |= (block[place] & 0x7F) << shift
        if block[place] < 0x80:
            break
        shift += 7
    if size > room:
        raise Unreadable("too long")
    unpacked = bytearray(size)
    cramjam.snappy.decompress_raw_into(block, unpacked)
    return bytes(unpacked)


_UNPACKERS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: _into(cramjam.gzip.decompress_into),
    2: _snappy,
    3: _into(cramjam.lz4.decompress_into),
    4: _into(cramjam.zstd.decompress_into),
}
"""By the protocol's number of the compression type."""


def _said(data: MetricsData) -> Pushed:
    said: dict[str, str] = {}
    last_poll_s = None
    part = _Parts()
    for resource in part.of(data.resource_metrics):
        for attribute in part.of(resource.resource.attributes):
            if len(attribute.value.string_value) <= MAX_ID_CHARS:
                said.setdefault(attribute.key, attribute.value.string_value)
        for scope in part.of(resource.scope_metrics):
            for metric in part.of(scope.metrics):
                if metric.name == LAST_POLL:
                    last_poll_s = max(_values(part.of(metric.gauge.data_points)), default=last_poll_s)
    return Pushed(
        said.get("group_id", ""),
        said.get("group_member_id") or said.get("member_id", ""),
        said.get("group_instance_id", ""),
        last_poll_s,
    )


class _Parts:
    """Hands out parts until there are too many."""

    def __init__(self) -> None:
        self._room = MAX_PARTS

    def of(self, parts: Sequence[T]) -> Sequence[T]:
        self._room -= len(parts)
        if self._room < 0:
            raise Unreadable("too many parts")
        return parts


def _values(points: Iterable[NumberDataPoint]) -> Iterator[float]:
    """Values of a gauge that can be: -1 stands for a client that never polled."""
    for point in points:
        value = float(point.as_double if point.HasField("as_double") else point.as_int)
        if math.isfinite(value) and 0 <= value <= 1e9:
            yield value
