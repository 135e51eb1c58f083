"""The request log of a trace: its requests and answers as a collector would send them, batch by batch.

A line appears when a request is answered; its instants are those of the coordinator, to the ms. A request without
answer has no line. A tick every second says that the log has been read, and that the broker was alive: other groups
are on it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ingest.wire import FORMAT, encode_batch
from kardia.events import ALL_SHARDS, DEFAULT_LANES, Event, Kind, lane_of, shard_of
from kardia.model import operations as ops
from kardia.model.operations import Answer, Operation
from kardia.trace.clients import GROUP
from kardia.trace.playing import Exchange
from spark_jobs.lane import Record

START_AT_MS = 1_800_000_000_000
"""Instant 0 of every trace on the broker's clock."""
TICK_MS = 1_000
TAIL_MS = 500
"""How long after its last line a trace is still read: longer than the observer waits for answers of one instant."""

LINE_BYTES = 100
SOURCE = "10.0.0.1:9092/request/one"
SHARD = shard_of(GROUP)
LANE = lane_of(SHARD, DEFAULT_LANES)
KINDS = {
    ops.Join: Kind.JOIN,
    ops.Sync: Kind.SYNC,
    ops.Heartbeat: Kind.HEARTBEAT,
    ops.Leave: Kind.LEAVE,
    ops.Commit: Kind.COMMIT,
    ops.TxnCommit: Kind.TXN_COMMIT,
    ops.DeleteGroups: Kind.DELETE_GROUPS,
}


def records(exchanges: Iterable[Exchange], version: str, end_ms: int) -> Iterator[Record]:
    """Records of the topic: the lines of each second, then a tick."""
    lines = sorted(
        (one for one in exchanges if one.answer is not None and not one.unanswered and type(one.operation) in KINDS),
        key=_logged_ms,
    )
    position = 0
    last_ms = end_ms + TAIL_MS
    for offset, tick_ms in enumerate([*range(TICK_MS, last_ms, TICK_MS), last_ms]):
        previous_end, events = position, []
        while lines and _logged_ms(lines[0]) <= tick_ms:
            events.append(_event(lines.pop(0), version, position))
            position += LINE_BYTES
        detail = {"events": len(events), "previous_end": previous_end, "last_line_at_ms": float(START_AT_MS + tick_ms)}
        at_ms = (float(START_AT_MS + tick_ms),) * 4
        tick = Event(int(Kind.TICK), ALL_SHARDS, SOURCE, position, position, *at_ms, detail=detail)
        yield Record(offset, START_AT_MS + tick_ms, FORMAT.encode(), encode_batch([*events, tick]))


def _logged_ms(exchange: Exchange) -> int:
    assert exchange.answer is not None
    return exchange.answer.at_ms + exchange.taking_ms


def _event(exchange: Exchange, version: str, position: int) -> Event:
    operation, answer = exchange.operation, exchange.answer
    assert answer is not None
    handled_ms, logged_ms = float(START_AT_MS + exchange.at_ms), float(START_AT_MS + _logged_ms(exchange))
    asked = operation._asdict()
    is_join = isinstance(operation, ops.Join)
    return Event(
        int(KINDS[type(operation)]),
        SHARD,
        SOURCE,
        position,
        position + LINE_BYTES,
        logged_ms,
        handled_ms,
        handled_ms,
        logged_ms,
        GROUP,
        asked.get("member_id", ""),
        asked.get("group_instance_id") or "",
        exchange.who,
        "10.0.0.9",
        # A Scala broker prints no number of the processor in the connection; that is how the two are told apart.
        f"10.0.0.1:9092-10.0.0.9:4000{'' if version.startswith('3.') else '-2'}-{exchange.who}",
        "apache-kafka-java/4.1.1",
        asked.get("version", 0),
        answer.error_code,
        answer.generation_id if is_join else asked.get("generation_id", -1),
        _detail(operation, answer),
    )


def _detail(operation: Operation, answer: Answer) -> dict[str, Any]:
    if isinstance(operation, ops.Join):
        return {
            "session_timeout_ms": operation.session_timeout_ms,
            "rebalance_timeout_ms": operation.rebalance_timeout_ms,
            "protocol_type": operation.protocol_type,
            "protocols": [[name, data.hex()] for name, data in operation.protocols],
            "reason": operation.reason or "",
            "assigned_member_id": answer.member_id,
            "leader": answer.leader,
            "protocol_name": answer.protocol_name or "",
            "members": [[member_id, instance_id or ""] for member_id, instance_id, _ in answer.members],
            "skip_assignment": answer.skip_assignment,
        }
    if isinstance(operation, ops.Sync):
        return {"protocol_name": "", "assignments": [[one, []] for one, _ in operation.assignments], "assignment": []}
    if isinstance(operation, ops.Leave):
        entries = zip(operation.members, answer.left, strict=True)
        return {
            "members": [
                [asked.member_id, asked.group_instance_id or "", asked.reason or "", error]
                for asked, (_, _, error) in entries
            ]
        }
    if isinstance(operation, ops.Commit | ops.TxnCommit):
        return {"offsets": [[operation.topic, operation.partition, operation.offset, answer.error_code]]}
    return {}
