"""Where partitions end that groups have commits for: asked of the admin API now and then, told by what changed.

One *look* is one call for all of them, high watermarks (as `read_uncommitted`), and more seldom one for the starts of
the logs. Each lane is told the ends that its groups want, in `ENDS` events: all of them first, then those that changed,
and a few of the others in turn, for whoever begins to read the topic in its midst. A thread asks, because an answer may
take its time; a look is given out only when all records up to it have been. Read only; needs Describe on the topics.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its stub

from ingest.clients.log import CLIENT_LOG
from ingest.metrics import Metrics
from ingest.offsets.committed import Committed, Partition
from ingest.security.reach import allowed, made
from kardia.events import ALL_SHARDS, Event, Kind

STREAM = "offsets-topic/ends"
"""BROKER/STREAM of the source."""

EVERY_S = 5.0
"""Burrow looks every 10 s, kafka-lag-exporter every 30. Lag is as of the last look, and a record is placed in time to
within that, or better."""

SHARE_MAX = 0.1
"""A look takes that share of the time at most: where there are tens of thousands of partitions it is more seldom ..."""

SLOWED_TO_S = 10.0
"""... down to this: one whose leaders do not answer takes long as well, and lag is not known after a minute."""

STARTS_EVERY_S = 60.0
"""Starts of logs move when segments are deleted."""

AGAIN_EVERY = 30
"""In so many looks each end is told again, changed or not."""

PORTION = 2_000
"""Ends in one event, some 60 KB."""

REFRESH_S = 10.0
"""All topics are looked up at most so often, and only when partitions were added, or are led by another broker."""

TIMEOUT_S = 10.0
KEPT_MS = 60_000.0
"""A look that is not given out for so long, because records are behind, is taken again."""

_GONE = (
    *(KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC),
    KafkaError._NOENT,  # of each, where no topic of a request may be described, or none is there
)
"""A topic that was deleted while its commits are not yet."""

_ELSEWHERE = (
    *(KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION),
    *(KafkaError.LEADER_NOT_AVAILABLE, KafkaError._UNKNOWN_PARTITION),
)
"""The library does not know who leads a partition by now, or that it is there: of itself it asks in minutes only."""

_NO_RIGHT = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]

End = tuple[int, int, int]
"""Log start offset or -1, high watermark, leader epoch or -1."""


class Look(NamedTuple):
    """What one look saw."""

    asked_ms: int
    answered_ms: int
    ends: dict[Partition, End]
    wanted: dict[Partition, tuple[int, ...]]
    """Every partition that was asked for, with the lanes that want it."""


class Telling:
    """What the lanes have been told, and what they are told next. Pure."""

    def __init__(self, name: str, lanes: int) -> None:
        """`name` is that of this run of the collector: another one begins anew."""
        self._name = name
        self._told: list[dict[Partition, End]] = [{} for _ in range(lanes)]
        self._next = [0] * lanes
        self._turn = 0

    def events(self, look: Look) -> list[tuple[int, Event]]:
        """Events of one look by lane. A lane without any groups that commit is told that too, once."""
        self._turn = (self._turn + 1) % AGAIN_EVERY
        per_lane: list[dict[Partition, End]] = [{} for _ in self._told]
        unreadable: list[list[Partition]] = [[] for _ in self._told]
        for number, (place, lanes) in enumerate(look.wanted.items()):
            end = look.ends.get(place)
            for lane in lanes:
                told = self._told[lane]
                if end is None:
                    if told.pop(place, None) is not None:
                        unreadable[lane].append(place)
                elif told.get(place) != end or number % AGAIN_EVERY == self._turn:
                    told[place] = per_lane[lane][place] = end
        for lane, told in enumerate(self._told):
            for place in [place for place in told if lane not in look.wanted.get(place, ())]:
                del told[place]  # nobody wants it any more; whoever does later is told anew
        return [
            (lane, event)
            for lane, (ends, lost) in enumerate(zip(per_lane, unreadable, strict=True))
            for event in self._of_lane(lane, look, ends, lost)
        ]

    def _of_lane(
        self, lane: int, look: Look, ends: dict[Partition, End], unreadable: list[Partition]
    ) -> Iterator[Event]:
        if not self._next[lane] and not ends:
            return  # nothing is wanted yet
        items = list(ends.items())
        portions = [items[at : at + PORTION] for at in range(0, len(items), PORTION)] or [[]]
        for number, portion in enumerate(portions):
            detail: dict[str, Any] = {"ends": _by_topic((place, [place[1], *end]) for place, end in portion)}
            if not self._next[lane]:
                detail["begins"] = True
            if number < len(portions) - 1:
                detail["more"] = True
            elif unreadable:
                detail["unreadable"] = _by_topic((place, place[1]) for place in unreadable)
            at, asked, answered = self._next[lane], float(look.asked_ms), float(look.answered_ms)
            self._next[lane] = at + 1
            yield Event(
                int(Kind.ENDS),
                ALL_SHARDS,
                f"{STREAM}/{self._name}.{lane}",
                at,
                at + 1,
                answered,
                asked,
                answered,
                answered,
                detail=detail,
            )


def _by_topic(entries: Iterable[tuple[Partition, Any]]) -> list[list[Any]]:
    found: dict[str, list[Any]] = {}
    for (topic, _), entry in entries:
        found.setdefault(topic, []).append(entry)
    return [[topic, values] for topic, values in found.items()]


class EndsSource:
    """Asks one cluster. `take` is for the collector's thread."""

    def __init__(
        self,
        bootstrap: str,
        committed: Committed,
        lanes: int,
        metrics: Metrics,
        settings: Mapping[str, Any] | None = None,
        say: Callable[[str], None] = lambda _: None,
        every_s: float = EVERY_S,
    ) -> None:
        """Begin to look, `every_s`."""
        self.committed = committed
        self._every_s = every_s
        own = {**(settings or {}), "bootstrap.servers": bootstrap}
        self._admin: AdminClient = made(AdminClient, own, logger=CLIENT_LOG)
        self._metrics, self._say, self._said = metrics, say, ""
        self._telling = Telling(f"{time.time_ns() // 1_000_000:x}", lanes)
        self._starts: dict[Partition, int] = {}
        self._starts_s = -STARTS_EVERY_S
        self._is_outdated = False
        """Whether the library's metadata are: it looks at them seldom by itself."""
        self._refreshed_s = -REFRESH_S
        self._look: Look | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ends", daemon=True)
        self._thread.start()

    def take(self, complete_to_ms: float) -> list[tuple[int, Event]]:
        """Events by lane of the last look, once; none while not all records up to it have been given out."""
        with self._lock:
            look = self._look
            if look is None or look.answered_ms > complete_to_ms:
                return []
            self._look = None
        return self._telling.events(look)

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        wait_s = self._every_s
        while not self._ended.wait(wait_s):
            held = self._look
            if held is not None and time.time() * 1000 - held.answered_ms < KEPT_MS:
                continue
            began_s = time.monotonic()
            try:
                look = self._ask()
            except (KafkaException, TimeoutError) as error:
                self._metrics.ends_errors.inc()
                why = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
                self._tell_trouble(
                    f"ends of partitions cannot be read: {why}. Expected: an answer to ListOffsets. "
                    "Next: see whether the brokers are reachable; lag is not known meanwhile"
                )
                continue
            if look is not None:
                with self._lock:
                    self._look = look
            wait_s = max(self._every_s, min(SLOWED_TO_S, (time.monotonic() - began_s) / SHARE_MAX))

    def _ask(self) -> Look | None:
        """One look; None if nothing is wanted, or nobody answered anything."""
        wanted = self.committed.wanted()
        if not wanted:
            return None
        now_s = time.monotonic()
        if self._is_outdated and now_s - self._refreshed_s >= REFRESH_S:
            # Of all topics: to ask for one by name might create it again where it has just been deleted.
            self._admin.list_topics(timeout=TIMEOUT_S)
            self._is_outdated, self._refreshed_s = False, now_s
        is_due = now_s - self._starts_s >= STARTS_EVERY_S
        lacking = list(wanted) if is_due else [place for place in wanted if place not in self._starts]
        if lacking:
            found, _ = self._listed(lacking, EARLIEST)
            self._starts = {place: start for place, start in self._starts.items() if not is_due and place in wanted} | {
                place: offset for place, (offset, _) in found.items()
            }
            self._starts_s = now_s if is_due else self._starts_s
        asked_ms = time.time_ns() // 1_000_000
        seen, errors = self._listed(wanted, LATEST)
        answered_ms = -(-time.time_ns() // 1_000_000)
        self._note(errors)
        if not seen and errors:
            return None
        ends = {place: (self._starts.get(place, -1), offset, epoch) for place, (offset, epoch) in seen.items()}
        return Look(asked_ms, max(asked_ms, answered_ms), ends, wanted)

    def _listed(
        self, places: Iterable[Partition], spec: OffsetSpec
    ) -> tuple[dict[Partition, tuple[int, int]], list[tuple[str, KafkaError]]]:
        """Offset and leader epoch of each partition, and why others have none."""
        asked = {TopicPartition(*place): spec for place in places}
        answers = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=TIMEOUT_S
        )
        found: dict[Partition, tuple[int, int]] = {}
        errors: list[tuple[str, KafkaError]] = []
        for one, future in answers.items():
            try:
                told = future.result(2 * TIMEOUT_S)
            except KafkaException as error:
                errors.append((one.topic, error.args[0]))
                if error.args[0].code() in _ELSEWHERE:
                    self._is_outdated = True
                continue
            if told.offset >= 0:
                epoch = told.leader_epoch
                found[one.topic, one.partition] = (told.offset, -1 if epoch is None else epoch)
        return found, errors

    def _note(self, errors: list[tuple[str, KafkaError]]) -> None:
        self._metrics.ends_asked.inc()
        self._metrics.ends_unread.set(len(errors) + self.committed.unasked + self.committed.refused)
        refused = [error for _, error in errors if error.code() in _NO_RIGHT]
        others = [error for _, error in errors if error.code() not in (*_NO_RIGHT, *_GONE)]
        hidden = [(topic, error) for topic, error in errors if error.code() == KafkaError._NOENT]
        if hidden and allowed(self._admin, hidden[0][0], TIMEOUT_S) == frozenset():
            refused += [error for _, error in hidden]
        if refused:
            self._tell_trouble(
                f"ends of partitions may not be read, {len(refused)} of them: {refused[0].str()}. Expected: Describe "
                "on the topics that groups read. Next: allow that (`kardia doctor` prints the line); their lag is not "
                "known"
            )
        elif others:
            self._tell_trouble(
                f"ends of partitions are not answered, {len(others)} of them: {others[0].str()}. Expected: a leader "
                "for each. Next: see which brokers are down; their lag is not known meanwhile"
            )
        elif self.committed.unasked or self.committed.refused:
            self._tell_trouble(
                f"{self.committed.unasked} partitions are not asked for and {self.committed.refused} commits not "
                "followed: there are more than one collector takes; their lag is not known"
            )

    def _tell_trouble(self, sentence: str) -> None:
        """Once, until something else is the matter."""
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)
