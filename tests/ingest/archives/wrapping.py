"""Writes logs as others wrap them: what Docker, Kubernetes, the journal, Elasticsearch and Loki make of an output."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

DOCKER_PART = 16 * 1024
"""Docker and containerd cut a line there."""

JOURNAL_PART = 48 * 1024
"""LineMax of the journal."""

Lines = Sequence[bytes]


def parts(line: bytes, size: int) -> list[bytes]:
    """A line as it is cut."""
    return [line[at : at + size] for at in range(0, len(line), size)] or [b""]


def stamp_of(number: int) -> str:
    """Time of the wrapper; that of the line does not depend on it."""
    return datetime.fromtimestamp(1_795_000_000 + number / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f123Z")


def dumped(documents: Iterable[object]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def docker(lines: Lines) -> bytes:
    return dumped(
        {"log": part.decode() + ("\n" if last else ""), "stream": "stdout", "time": stamp_of(number)}
        for number, line in enumerate(lines)
        for part, last in _cut(line, DOCKER_PART)
    )


def cri(lines: Lines) -> bytes:
    return b"".join(
        b"%s stdout %s %s\n" % (stamp_of(number).encode(), b"F" if last else b"P", part)
        for number, line in enumerate(lines)
        for part, last in _cut(line, DOCKER_PART)
    )


def _cut(line: bytes, size: int) -> list[tuple[bytes, bool]]:
    cut = parts(line, size)
    return [(part, number + 1 == len(cut)) for number, part in enumerate(cut)]


def _journal_fields(lines: Lines) -> Iterable[dict[str, object]]:
    for number, line in enumerate(lines):
        for part, last in _cut(line, JOURNAL_PART):
            fields: dict[str, object] = {
                "__CURSOR": f"s=1;i={number}",
                "__REALTIME_TIMESTAMP": str(1_795_000_000_000_000 + number),
                "_HOSTNAME": "kafka-1",
                "_SYSTEMD_UNIT": "kafka.service",
                "PRIORITY": "6",
                "MESSAGE": part,
            }
            if not last:
                fields["_LINE_BREAK"] = "line-max"
            yield fields


def journal_json(lines: Lines) -> bytes:
    """`journalctl -o json --all`: a text that is not UTF-8, or holds control characters, is a list of bytes."""
    return dumped(
        {**fields, "MESSAGE": part.decode() if part.isascii() and part.decode().isprintable() else list(part)}
        for fields in _journal_fields(lines)
        if isinstance(part := fields["MESSAGE"], bytes)
    )


def journal_export(lines: Lines) -> bytes:
    """`journalctl -o export`."""
    written = bytearray()
    for fields in _journal_fields(lines):
        for name, value in fields.items():
            data = value if isinstance(value, bytes) else str(value).encode()
            if data.isascii() and data.decode().isprintable():
                written += name.encode() + b"=" + data + b"\n"
            else:
                written += name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"
        written += b"\n"
    return bytes(written)


def elastic(lines: Lines) -> bytes:
    """What elasticdump writes of Filebeat's documents."""
    return dumped(
        {
            "_index": "filebeat-8",
            "_id": str(number),
            "_source": {
                "@timestamp": "2026-11-20T10:00:00.000Z",
                "message": line.decode(),
                "host": {"name": "kafka-1"},
                "log": {"file": {"path": "/var/log/kafka/server.log"}, "offset": number},
            },
        }
        for number, line in enumerate(lines)
    )


def bulk(lines: Lines) -> bytes:
    """The same as the bulk API takes it: an action before each document."""
    documents = [json.loads(line)["_source"] for line in elastic(lines).splitlines()]
    return dumped(one for document in documents for one in ({"index": {"_index": "k"}}, document))


def loki(lines: Lines) -> bytes:
    """`logcli query -o jsonl --forward`."""
    return dumped(
        {"labels": {"pod": "kafka-0", "container": "kafka"}, "line": line.decode(), "timestamp": stamp_of(number)}
        for number, line in enumerate(lines)
    )


def fluent_bit(lines: Lines) -> bytes:
    """The `cri` parser of Fluent Bit and its Kubernetes filter."""
    return dumped(
        {"time": stamp_of(number), "stream": "stdout", "_p": "F" if last else "P", "log": part.decode()}
        | {"kubernetes": {"pod_name": "kafka-0", "host": "node-7"}}
        for number, line in enumerate(lines)
        for part, last in _cut(line, DOCKER_PART)
    )


def plain(lines: Lines) -> bytes:
    """Both logs in one file."""
    return b"".join(line + b"\n" for line in lines)


FORMS: dict[str, Callable[[Lines], bytes]] = {
    "docker": docker,
    "cri": cri,
    "journal_json": journal_json,
    "journal_export": journal_export,
    "elastic": elastic,
    "bulk": bulk,
    "loki": loki,
    "fluent_bit": fluent_bit,
    "plain": plain,
}
