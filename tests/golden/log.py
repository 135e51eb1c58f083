"""The request logs of a trace: its requests and answers as collectors would send them, batch by batch.

A line appears when a request is answered; its instants are those of the coordinator, to the ms. A request without
answer has no line. A tick every second says how far a log has been read, and that its broker was alive: other groups
are on it too. What leads the shard later has a log of its own; a broker that dies has a silent one. Then the log is
treated as the trace says: begun late, cut, delayed, doubled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ingest.wire.batches import FORMAT, encode_batch
from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.operations import Answer, Operation
from kardia.events import ALL_SHARDS, DEFAULT_LANES, Event, Kind, lane_of, shard_of
from kardia.kafka.releases import version_of
from kardia.trace import Trace
from kardia.trace.clients import GROUP
from kardia.trace.language import COORDINATOR
from kardia.trace.playing import Exchange
from spark_jobs.lane import Record

START_AT_MS = 1_800_000_000_000
"""Instant 0 of every trace on the broker's clock."""
TICK_MS = 1_000
TAIL_MS = 1_500
"""How long after its last line a trace is still read: longer than the observer waits for timers that fire late."""
CONNECTIONS_BEFORE = 100
"""What a broker has counted before the trace begins; from 0 again after a restart."""

LINE_BYTES = 100
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


class Line(NamedTuple):
    """A line of the request log of broker number `broker`."""

    exchange: Exchange
    logged_ms: int
    broker: int
    connection: int


def records(trace: Trace, exchanges: Iterable[Exchange], version: str) -> Iterator[Record]:
    """Records of the topic: the lines of each second of each broker, then a tick."""
    sent = list(_sent(trace, exchanges, version))
    again = sent if any(fault.kind == "twice" for fault in trace.log_faults) else []
    for offset, (at_ms, events) in enumerate([one for pair in sent for one in [pair] * (2 if again else 1)] + again):
        yield Record(offset, START_AT_MS + at_ms, FORMAT.encode(), encode_batch(events))


def _sent(trace: Trace, exchanges: Iterable[Exchange], version: str) -> Iterator[tuple[int, list[Event]]]:
    """What collectors send at which instant, each record once."""
    moves = [(step.at_ms, act.verb) for step in trace.steps for act in step.acts if act.who == COORDINATOR]
    begins_ms = max((fault.from_ms for fault in trace.log_faults if fault.kind == "begins"), default=0)
    late_ms = max((fault.late_ms for fault in trace.log_faults), default=0)
    written = sorted(
        (line for line in _lines(exchanges, moves) if line.logged_ms >= begins_ms), key=lambda line: line.logged_ms
    )
    waiting = sorted(
        ((line.logged_ms + late_ms * (number % 2), line) for number, line in enumerate(written)), key=lambda one: one[0]
    )
    last_ms = trace.steps[-1].at_ms + TAIL_MS
    brokers = range(1, 2 + sum(verb in ("moves", "loads") for _, verb in moves))
    position = dict.fromkeys(brokers, 0)
    for tick_ms in [*range(begins_ms + TICK_MS, last_ms, TICK_MS), last_ms]:
        now = [line for at_ms, line in waiting if at_ms <= tick_ms]
        waiting = waiting[len(now) :]
        for broker in brokers:
            events, previous_end, counted = [], position[broker], 0
            for line in now:
                if line.broker != broker:
                    continue
                fate = _fate(trace, line.logged_ms)
                counted += fate != "lost"
                if not fate:
                    events.append(_event(line, version, position[broker]))
                position[broker] += LINE_BYTES
            events += _gaps(trace, broker, position[broker], tick_ms)
            detail = {"events": counted, "previous_end": previous_end, **_alive(moves, broker, tick_ms)}
            yield tick_ms, [*events, _sign(Kind.TICK, broker, position[broker], tick_ms, detail)]


def _lines(exchanges: Iterable[Exchange], moves: list[tuple[int, str]]) -> Iterator[Line]:
    """What brokers write: each request on the one that led the shard when it was handled."""
    clients: dict[str, int] = {}
    for one in exchanges:
        if one.answer is None or one.unanswered or type(one.operation) not in KINDS:
            continue
        number = clients.setdefault(one.who, len(clients))
        broker, restarted = 1, False
        for at_ms, verb in moves:
            if at_ms <= one.at_ms:
                broker += verb in ("moves", "loads")
                restarted |= verb == "restarts"
        logged_ms = one.answer.at_ms + one.taking_ms
        if any(verb == "dies" and one.at_ms < at_ms <= logged_ms for at_ms, verb in moves):
            continue  # it waits when its broker dies
        yield Line(one, logged_ms, broker, number + (0 if restarted else CONNECTIONS_BEFORE))


def _fate(trace: Trace, logged_ms: int) -> str:
    """Which kind of loss a line falls into; empty: none."""
    found = (fault.kind for fault in trace.log_faults if fault.from_ms <= logged_ms < fault.to_ms)
    return next(found, "")


def _gaps(trace: Trace, broker: int, position: int, tick_ms: int) -> Iterator[Event]:
    """What the collector says to have lost, with the tick that covers the end of it."""
    for fault in trace.log_faults:
        if fault.kind == "lost" and tick_ms - TICK_MS < fault.to_ms <= tick_ms:
            instants = {"from_ms": float(START_AT_MS + fault.from_ms), "to_ms": float(START_AT_MS + fault.to_ms)}
            yield _sign(Kind.GAP, broker, position, fault.to_ms, {**instants, "reason": "lost_lines"})


def _alive(moves: list[tuple[int, str]], broker: int, tick_ms: int) -> dict[str, Any]:
    """Until when a broker's log was alive, by a tick: always, except while the first broker is dead."""
    died_ms = next((at_ms for at_ms, verb in moves if verb == "dies" and broker == 1), tick_ms)
    back_ms = next((at_ms for at_ms, verb in moves if verb == "restarts"), tick_ms + 1)
    if not died_ms <= tick_ms < back_ms:
        silent = died_ms < back_ms <= tick_ms < back_ms + TICK_MS
        silences = [[float(START_AT_MS + died_ms), float(START_AT_MS + back_ms)]] if silent else []
        return {"last_line_at_ms": float(START_AT_MS + tick_ms), "silences": silences}
    return {"last_line_at_ms": float(START_AT_MS + died_ms)}


def _source(broker: int) -> str:
    return f"10.0.0.{broker}:9092/request/one"


def _sign(kind: Kind, broker: int, position: int, at_ms: int, detail: dict[str, Any]) -> Event:
    instants = (float(START_AT_MS + at_ms),) * 4
    return Event(int(kind), ALL_SHARDS, _source(broker), position, position, *instants, detail=detail)


def _event(line: Line, version: str, position: int) -> Event:
    exchange = line.exchange
    operation, answer = exchange.operation, exchange.answer
    assert answer is not None
    handled_ms, logged_ms = float(START_AT_MS + exchange.at_ms), float(START_AT_MS + line.logged_ms)
    asked = operation._asdict()
    is_join = isinstance(operation, ops.Join)
    # A Scala broker prints no number of the processor in the connection; that is how the two are told apart.
    processor = "" if version.startswith(("2.", "3.")) else "-2"
    return Event(
        int(KINDS[type(operation)]),
        SHARD,
        _source(line.broker),
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
        f"10.0.0.{line.broker}:9092-10.0.0.9:4000{processor}-{line.connection}",
        "apache-kafka-java/4.1.1",
        asked.get("version", 0),
        answer.error_code,
        answer.generation_id if is_join else asked.get("generation_id", -1),
        _detail(operation, answer) | _release(operation, version),
    )


def _release(operation: Operation, version: str) -> dict[str, Any]:
    """What a JoinGroup line before 2.8 shows of its release by the names of its fields (docs/request-logging.md)."""
    known = version_of(version)[:2]
    if not isinstance(operation, ops.Join) or known >= (2, 8):
        return {}
    return {"release": next(f"2.{minor}" for minor in (6, 5, 4, 3, 0) if known >= (2, minor))}


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
