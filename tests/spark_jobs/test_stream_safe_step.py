"""Events that raise, through real Spark: neither the live query nor the archive stops, also where it was killed.

`test_guard` has what an event may do to the observer; here is the way that the state before a batch takes through the
state store of Spark, in a job that is killed in the batch of such an event and begins anew.
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from demo.broker import Broker
from ingest.wire.batches import encode_batch
from kardia.events import Event, Kind, event_id, lane_of
from kardia.observe.careful import REASON
from spark_jobs.writers.faults import VARIABLE
from tests.spark_jobs.support import (
    HEADERS,
    LANES,
    STORY,
    Message,
    lanes_say,
    produce,
    requests_in,
    rows,
    run_stream,
    said,
    story_messages,
    stream_command,
)
from tests.support.stories import lanes_of

pytestmark = pytest.mark.slow

TOPIC = "raising.events"
POISON = "poison"
TOLD = ("transitions", "rebalances", "members", "predictions")

RAISING: list[dict[str, Any]] = [
    {"kind": int(Kind.JOIN), "detail": {"session_timeout_ms": "soon", "assigned_member_id": "m"}, "generation_id": 3},
    {"kind": int(Kind.LEAVE), "detail": {"members": [[]]}},
    {"kind": int(Kind.GROUP_RECORD), "detail": {"members": 3}},
]
"""The observer raises at these."""

STRANGE: list[dict[str, Any]] = [
    {"kind": int(Kind.HEARTBEAT), "generation_id": 2**40},
    {"kind": int(Kind.HEARTBEAT), "detail": {"throttle_ms": msgspec.msgpack.Ext(1, b"x")}},
]
"""Tables have no room for these."""


def poisoned() -> tuple[list[Message], list[Event]]:
    """The story with such events at several places, and these events."""
    shard = next(event.shard for lane in lanes_of(STORY) for event in lane if event.shard >= 0)
    lane = lane_of(shard, LANES)
    messages = story_messages()
    with_requests = [
        number for number, message in enumerate(messages) if message[0] == lane and requests_in(message[1])
    ]
    found: list[Event] = []
    for number, changes in reversed(list(enumerate([*RAISING, *STRANGE]))):
        at = with_requests[(number + 1) * len(with_requests) // (len(RAISING) + len(STRANGE) + 1)]
        near = requests_in(messages[at][1])[-1]
        event = near._replace(start=near.end, group_id=POISON, member_id="m", shard=shard, detail=None)
        found.insert(0, event._replace(**changes))
        messages.insert(at + 1, (lane, encode_batch(found[:1]), HEADERS))
    return messages, found


def test_events_that_raise_stop_neither_query_and_change_no_other_row(kafka: Broker, tmp_path: Path) -> None:
    messages, events = poisoned()
    kafka.create_topic(TOPIC, LANES)
    produce(kafka.bootstrap, TOPIC, messages)
    command = stream_command(kafka.bootstrap, TOPIC, tmp_path, "--once")
    killed = run_stream(command, {VARIABLE: "progress:before@1", "KARDIA_STREAM_MAX_RECORDS": "100"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    done = run_stream(command, {"KARDIA_STREAM_MAX_RECORDS": "100"})
    assert done.returncode == 0, done.stderr[-4000:]
    assert "events could not be applied and were left out" in done.stderr

    tables = tmp_path / "tables"
    for name, wanted in lanes_say(TOLD).items():
        of_story = [row for row in rows(tables, name) if row["group_id"] != POISON]
        assert Counter(said(row) for row in of_story) == wanted, name
    told = rows(tables, "rejected")
    assert {row["reason"] for row in told} == {REASON}
    assert {row["source"] for row in told} >= {event.source for event in events[: len(RAISING)]}

    archived = Counter(row["event_id"] for row in rows(tables, "events"))
    known = {event_id(event) for lane in lanes_of(STORY, server_log=True) for event in lane}
    ids = {event_id(event) for event in events}
    assert ids <= set(archived)
    assert set(archived) <= known | ids
    assert max(archived.values()) == 1
    shown = {row["event_id"]: row["detail"] for row in rows(tables, "events")}
    assert all("does_not_fit" in shown[event_id(event)] for event in events[len(RAISING) :])
