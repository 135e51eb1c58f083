"""One lane between two batches: records in, rows out, and the bytes that remember the rest. Pure; Spark calls it.

A record of the topic is a batch of events of this lane. What is not one (foreign bytes, null value, a newer format,
events of another lane) becomes a REJECTED event at its offset, and the lane goes on. Offsets are a chain: a jump means
that the topic lost records (retention, deletion) and becomes a GAP, whatever the cause and whoever was running. The
chain needs records without holes, which a topic has that is neither compacted nor written in transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ingest.errors import BatchError
from ingest.wire.batches import check_format, decode_folded
from ingest.wire.folded_batch import Batch
from kardia.events import ALL_SHARDS, FORMAT_VERSION, Event, Kind, broker_of, lane_of
from kardia.stretches import Stretch
from spark_jobs import safe_step
from spark_jobs.checkpoint import state_codec
from spark_jobs.errors import StateError
from spark_jobs.lane_model import LaneModel, ModelFactory, Rows

if TYPE_CHECKING:
    from kardia.follow.self_test import SelfTest
    from kardia.tables import Row

FINISH = b"kardia/finish"
"""Format of the record that ends the input of a replay; in a live topic it is as foreign as any other."""

ANEW = -2
"""`next_offset` of a lane whose topic was deleted and made again: before the first record of the new one lies a gap."""

EXCERPT_BYTES = 66
"""Bytes of a refused record shown, as Python prints bytes: at most 200 characters with the marks around them."""

_KINDS = frozenset(Kind)
_TICK = int(Kind.TICK)
_KIND, _SHARD = attrgetter("kind"), attrgetter("shard")


class Record(NamedTuple):
    """A record of the topic."""

    offset: int
    at_ms: int
    format: bytes | None
    value: bytes | None
    cluster: bytes | None = None
    """What its header says; None in archived files, which are of the cluster that is asked for."""


FOREIGN = "foreign_cluster"
"""Reason of a record that was sent for another cluster."""


def is_foreign(record: Record, cluster: str) -> bool:
    """Whether a record names another cluster than this one."""
    return bool(cluster) and record.cluster is not None and record.cluster != cluster.encode()


def _observer_in(blob: bytes, lane: int) -> bytes:
    if not blob:
        return safe_step.NEW
    return safe_step.snapshot_of(state_codec.decode(blob, f"lane {lane}").observer)


def joined(batches: Sequence[Batch]) -> tuple[list[Event], list[Stretch]]:
    """Events and stretches of the records of one step, in order. A collector that was killed sends again from an older
    position, with other cuts: where a record goes back behind one before it, everything is unfolded, and each event
    finds its place, or that it is a repeat, by itself."""
    if any(batch.stretches for batch in batches):
        to: dict[str, float] = {}
        for batch in batches:
            reach = batch.reach()
            if any(start < to.get(source, 0) for source, (start, _) in reach.items()):
                return [event for one in batches for event in one.unfolded()], []
            to.update({source: end for source, (_, end) in reach.items()})
    events = [event for batch in batches for event in batch.events]
    return events, [stretch for batch in batches for stretch in batch.stretches]


class Lane:
    """The model of one lane and its place in the topic."""

    def __init__(
        self, factory: ModelFactory, topic: str, lane: int, lanes: int, *, cluster: str = "", finishing: bool = False
    ) -> None:
        """Begin a lane that has read nothing; `finishing` lets a FINISH record end the input (replay only).

        Records that name another `cluster` are refused: groups of two clusters with one name would become one. Empty:
        any is taken.
        """
        self.cluster = cluster
        self.source = f"{topic}/topic/{lane}"
        self.lane = lane
        self.lanes = lanes
        self.finishing = finishing
        self.next_offset = -1
        self.last_logged_at_ms = -1.0
        self.sources: dict[str, str] = {}
        self._factory = factory
        self.model: LaneModel = factory.new(lane)
        self._self_test = factory.self_test()
        self.was_careful = False
        """Whether something could not be applied in the last step."""

    def load(self, blob: bytes) -> None:
        """Continue where the bytes of `save` stopped."""
        state = state_codec.decode(blob, f"lane {self.lane}")
        self.next_offset = state.next_offset
        self.last_logged_at_ms = state.last_logged_at_ms
        self.sources = state.sources
        try:
            self.model = self._factory.restore(self.lane, state.observer)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, msgspec.DecodeError) as error:
            # A snapshot is plain values, so one of another shape fails here in whatever way it differs.
            raise StateError(
                f"saved state does not fit this version of the observer: {type(error).__name__}: {error}",
                f"lane {self.lane}",
                "a snapshot that this version took",
                "run the version of Kardia that wrote it, or rebuild with a new checkpoint and --new-generation",
            ) from error

    def save(self) -> bytes:
        """Bytes of everything the lane remembers."""
        return state_codec.encode(
            state_codec.LaneState(self.next_offset, self.last_logged_at_ms, self.sources, self.model.snapshot())
        )

    def step(self, records: Iterable[Record], before: Callable[[], bytes] | None = None) -> Rows:
        """Take the records of one batch in any order and give the rows they cause.

        `before` gives the bytes of `save` after the batch before, none for a new lane: what to go back to when an event
        cannot be applied.
        """
        batches, finished = self.take(records)
        return self.apply(batches, finished=finished, before=before)

    def take(self, records: Iterable[Record]) -> tuple[list[Batch], bool]:
        """(What the records hold that were not read before; whether they end the input)."""
        batches: list[Batch] = []
        finished = False
        for record in sorted(records):
            if record.offset < self.next_offset:
                continue  # read in an earlier batch: a restarted source may repeat, the chain makes it harmless
            found = self._events_of(record)
            if self.next_offset not in (-1, record.offset):
                batches.append(Batch(self._gaps(record, found), []))
            self.next_offset = record.offset + 1
            if found is None:
                finished = True
                continue
            batches.append(found)
            self.last_logged_at_ms = max(self.last_logged_at_ms, found.logged_to())
            for event in found.events:
                if event.kind == _TICK:
                    self._note_source(event.source)
        return batches, finished

    def apply(
        self, batches: Sequence[Batch], *, finished: bool = False, before: Callable[[], bytes] | None = None
    ) -> Rows:
        """Step the model with what `take` gave."""
        kept = None if before is None else lambda: _observer_in(before(), self.lane)
        events, stretches = joined(batches)
        surprises = [] if self._self_test is None else self._self_test.step(events, stretches)
        if finished and self._self_test is not None:
            surprises += self._self_test.finish()
        model, rows = safe_step.step(
            self.model, self._factory, self.lane, events, stretches, finish=finished, before=kept
        )
        self.was_careful = model is not self.model
        self.model = model
        return rows if self._self_test is None else self._with_self_test(rows, surprises, self._self_test)

    @staticmethod
    def _with_self_test(rows: Rows, surprises: Sequence[Row], tested: SelfTest) -> Rows:
        """The rows of a step with surprises, and in its first row of `progress` what was counted since the last."""
        told = {**rows, "surprises": surprises}
        progress = rows.get("progress")
        if progress:
            counted = tuple(tested.take_counts().values())
            told["progress"] = [(*progress[0][: -len(counted)], *counted), *progress[1:]]
        return told

    def _events_of(self, record: Record) -> Batch | None:
        """Events of a record, folded as they came; None for the end of the input."""
        found = self._batch_of(record)
        return Batch([found], []) if isinstance(found, Event) else found

    def _batch_of(self, record: Record) -> Batch | Event | None:
        """The same; the refusal of a record that is none."""
        if self.finishing and record.format == FINISH:
            return None
        if is_foreign(record, self.cluster):
            return self._rejected(record, FOREIGN, f"records of the cluster {self.cluster}", record.cluster or b"")
        if record.value is None:
            return self._rejected(record, "not_an_event", "the record has no value")
        try:
            check_format(record.format)
        except BatchError as refusal:
            name, _, version = (record.format or b"").partition(b"/")
            newer = name == b"msgpack" and version.isdigit() and int(version) > FORMAT_VERSION
            return self._rejected(record, "unsupported_version" if newer else "not_an_event", str(refusal))
        try:
            batch = decode_folded(record.value)
        except BatchError as refusal:
            return self._rejected(record, "not_an_event", str(refusal))
        strange = set(map(_KIND, batch.events)) - _KINDS
        if strange:
            return self._rejected(record, "unsupported_version", f"events of unknown kinds {sorted(strange)}")
        heads = (stretch.head for stretch in batch.stretches)
        for shard in {*map(_SHARD, batch.events), *map(_SHARD, heads)}:
            if shard != ALL_SHARDS and lane_of(shard, self.lanes) != self.lane:
                return self._rejected(record, "not_an_event", f"events of shard {shard}, which is not of this lane")
        return batch

    def _rejected(self, record: Record, reason: str, why: str, shown: bytes | None = None) -> Event:
        shown = record.value if shown is None else shown
        excerpt = "" if shown is None else repr(shown[:EXCERPT_BYTES])[:200]
        return self._own(
            Kind.REJECTED,
            self.source,
            record.offset,
            record.offset + 1,
            self._now(record),
            {"reason": reason, "excerpt": excerpt, "expected": why[:400]},
        )

    def _gaps(self, record: Record, found: Batch | None) -> list[Event]:
        """One GAP for each broker this lane has heard of: what is lost may have been any of theirs."""
        all_found = () if found is None else found.unfolded()
        known_ms = [event.logged_at_ms for event in all_found if event.logged_at_ms >= 0]
        to_ms = min(known_ms, default=float(record.at_ms))
        from_ms = self.last_logged_at_ms if self.last_logged_at_ms >= 0 else to_ms
        detail = {"from_ms": from_ms, "to_ms": max(from_ms, to_ms), "reason": "topic_lost"}
        return [
            self._own(Kind.GAP, source, max(0, self.next_offset), record.offset, from_ms, detail)
            for source in self.sources.values() or (self.source,)
        ]

    def _note_source(self, source: str) -> None:
        """Keep one source per broker, of its request log if there is one: a GAP is counted there."""
        broker = broker_of(source)
        if source != self.sources.get(broker) and (broker not in self.sources or "/request/" in source):
            self.sources[broker] = source

    def _now(self, record: Record) -> float:
        """Instant for an event of the topic's own: it must not move the clock of the brokers' logs forward."""
        return self.last_logged_at_ms if self.last_logged_at_ms >= 0 else float(record.at_ms)

    def _own(self, kind: Kind, source: str, start: int, end: int, at_ms: float, detail: Mapping[str, object]) -> Event:
        return Event(int(kind), ALL_SHARDS, source, start, end, at_ms, at_ms, at_ms, at_ms, detail=dict(detail))
