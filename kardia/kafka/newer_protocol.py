"""Which version of a client library speaks the consumer protocol (KIP-848), as data: a new release is a row here.

A client announces its name and version in ApiVersions; from then on they stand in every line of the request log. What
a library can do is said by its own release notes, which each row names. A client that can still speaks the classic
protocol until its `group.protocol` says otherwise. A library without a row, or a client that announces nothing, is
`unknown`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from kardia.kafka.libraries import recognise

BUILT_IN = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Assignors that Java and librdkafka bring: what they do, one of the broker's does for a consumer group (`uniform` and
`range`, `group.consumer.assignors`). One of another name has no counterpart there."""

COOPERATIVE = "cooperative-sticky"


class Support(StrEnum):
    """Whether a client can speak it."""

    YES = "yes"
    ASKED = "asked"
    """Where its application asks for it."""
    PREVIEW = "preview"
    NO = "no"
    UNKNOWN = "unknown"


class Speaks(NamedTuple):
    """Of a library: since when."""

    preview: tuple[int, int] | None
    """First version that has it, not meant for production; None: none that is known."""
    ready: tuple[int, int] | None
    """First version that has it for production; None: it has to be asked for in every version."""
    needs: str
    """What to say to somebody who is behind."""
    source: str


_KAFKA = "https://kafka.apache.org/44/operations/consumer-rebalance-protocol/"

SPEAKS: dict[str, Speaks] = {
    "java": Speaks((3, 7), (4, 0), "the Java client from 4.0 on", _KAFKA),
    "librdkafka": Speaks(
        (2, 4), (2, 12), "librdkafka from 2.12 on", "https://github.com/confluentinc/librdkafka/releases/tag/v2.12.0"
    ),
    "franz-go": Speaks(
        (1, 19),
        None,
        "franz-go from 1.19 on",
        "https://github.com/twmb/franz-go/pull/912",
    ),
    "kafka-python": Speaks(None, None, "another library", "https://github.com/dpkp/kafka-python/issues/3000"),
    "streams": Speaks(None, None, "the streams protocol, which is another one (KIP-1071)", _KAFKA),
    "connect": Speaks(None, None, "nothing: Connect has a protocol of its own inside the classic one", _KAFKA),
}

_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})")
_RDKAFKA = re.compile(r"rdkafka[-/](\d{1,6}\.\d{1,6})")


def support_of(software: str, client_id: str, protocol_type: str = "") -> tuple[Support, Speaks | None]:
    """Whether a client can speak the consumer protocol, and the row that says so. `software`: `name/version` as it was
    announced, empty if it was not."""
    name = recognise(software, client_id, protocol_type)
    row = SPEAKS.get(name)
    if row is None:
        return Support.UNKNOWN, None
    if row.preview is None:
        return Support.NO, row
    version = _version_of(software)
    if version is None:
        return Support.UNKNOWN, row
    if version < row.preview:
        return Support.NO, row
    if row.ready is None:
        return Support.ASKED, row
    return (Support.YES if version >= row.ready else Support.PREVIEW), row


def _version_of(software: str) -> tuple[int, int] | None:
    """A binding announces its own version and that of librdkafka, which is what counts."""
    inner = _RDKAFKA.search(software)
    found = _VERSION.search(inner[1] if inner is not None else software.partition("/")[2])
    return (int(found[1]), int(found[2])) if found is not None else None
