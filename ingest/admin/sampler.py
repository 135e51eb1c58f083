"""Asks a cluster now and then how its groups are, by the admin API: read only, and nothing is needed on a broker.

One round asks every broker for its groups and every coordinator about each of them; only what is other than the time
before is given on. A thread asks, because an answer may take its time and no line waits for it. The library asks with
one request per group: `REQUESTS_PER_S` bounds them, so that a round of many groups takes longer and not more. Groups
of the consumer protocol and classic groups of consumers are listed; the library has no words for share and Streams
groups of the newer protocols, nor for Kafka Connect's, and does not list them.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConsumerGroupDescription,
    MemberDescription,
)

from ingest.admin.samples import STREAM, Answer, Changes, Entry, Sample, sample_event
from ingest.clients.log import CLIENT_LOG
from ingest.security.reach import made
from kardia.events import DEFAULT_OFFSETS_PARTITIONS, Event

EVERY_S = 10.0
"""Seconds from one round to the next: changes are known to within so much. KMinion's default is of the same size; a
coordinator answers from memory."""

TIMEOUT_S = 10.0
"""For one answer."""

PORTION = 100
"""Groups that are asked about at the same time."""

REQUESTS_PER_S = 200.0
"""At most so many groups are asked about in a second: an idle broker answers thousands."""

MAX_GROUPS = 10_000
"""Groups that are asked about; of more those that come first by name, and it is said."""

_STATES: dict[Any, str] = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
}
"""The library's word -> Kafka's. For Assigning and Reconciling of the consumer protocol it has none."""

_NOT_THERE = frozenset({KafkaError.GROUP_ID_NOT_FOUND})
_NOT_NOW = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._TIMED_OUT,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors that say nothing about the group: it is asked about again in the next round, and the bounds are wider."""


class Sampler:
    """Asks one cluster. `take` and `events` are for the collector's thread."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, Any] | None = None,
        say: Callable[[str], None] = lambda _: None,
        every_s: float = EVERY_S,
        partitions: int = DEFAULT_OFFSETS_PARTITIONS,
    ) -> None:
        """Begin to ask at once, and again `every_s`. `partitions`: of `__consumer_offsets`."""
        self._every_s = every_s
        self._partitions = partitions
        self._say = say
        self._said: set[str] = set()
        own = {**(settings or {}), "bootstrap.servers": bootstrap}
        self._admin: AdminClient = made(AdminClient, own, logger=CLIENT_LOG)
        self.changes = Changes(f"{int(time.time() * 1000):x}{secrets.token_hex(2)}")
        self._taken: list[Sample] = []
        self._answered_at_ms = 0.0
        """End of the last round that was answered; 0 before the first."""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def take(self) -> list[Sample]:
        """What has become known since the last call."""
        with self._lock:
            taken, self._taken = self._taken, []
            return taken

    def events(self, wall_ms: float) -> tuple[list[Event], float]:
        """The same as events, and up to when all is said: what is answered after `wall_ms` takes effect after it. A
        cluster that does not answer any more says nothing further; 0 before the first round."""
        with self._lock:
            taken, self._taken = self._taken, []
            answered_at_ms = self._answered_at_ms
        events = [event for sample in taken if (event := sample_event(sample, self._partitions)) is not None]
        if not answered_at_ms:
            return events, 0.0
        return events, min(max(wall_ms, answered_at_ms), answered_at_ms + 2_000 * (self._every_s + TIMEOUT_S))

    @property
    def source(self) -> str:
        """Source of its events."""
        return f"{STREAM}/{self.changes.run}"

    def close(self) -> None:
        """Ask no more."""
        self._ended.set()
        self._thread.join(TIMEOUT_S)

    def _run(self) -> None:
        while not self._ended.is_set():
            began_s = time.monotonic()
            try:
                self._round()
            except KafkaException as error:
                self._tell(
                    f"groups cannot be sampled: {error.args[0].str()}. Expected: answers to ListGroups and "
                    "DescribeGroups. Next: check the cluster and the right Describe on Group:* (`kardia doctor` prints "
                    "the line); until then nothing is said about them"
                )
            self._ended.wait(max(0.0, self._every_s - (time.monotonic() - began_s)))

    def _round(self) -> None:
        asked_ms = time.time() * 1000
        result = self._admin.list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S + 1)
        listed = {one.group_id for one in result.valid}
        # One that is not listed any more may be gone, or may not be shown: its coordinator says which.
        names = sorted(listed | self.changes.groups)
        if len(names) > MAX_GROUPS:
            self._tell(f"there are more than {MAX_GROUPS} groups: those after the first {MAX_GROUPS} are not sampled")
        if not names:
            self._tell(
                "no group is listed. Expected: the groups of the cluster. Next: if it has any, grant Describe on "
                "Group:* (`kardia doctor` prints the line); Kafka hides those that may not be described"
            )
        whole = not result.errors and len(names) <= MAX_GROUPS
        for begin in range(0, min(len(names), MAX_GROUPS), PORTION):
            began_s = time.monotonic()
            portion = names[begin : begin + PORTION]
            whole = self._portion(portion) and whole
            if self._ended.wait(max(0.0, len(portion) / REQUESTS_PER_S - (time.monotonic() - began_s))):
                return
        now_ms = time.time() * 1000
        with self._lock:
            if whole:
                self._taken.append(self.changes.round(asked_ms, now_ms))
            if whole or result.valid:  # of a broker that is down nothing is said; it does not hold back what others say
                self._answered_at_ms = now_ms

    def _portion(self, names: list[str]) -> bool:
        """Ask about some groups; whether every one was answered."""
        asked_ms = time.time() * 1000
        answers = list(self._answers(names))
        answered_ms = time.time() * 1000
        with self._lock:
            for answer in answers:
                sample = self.changes.note(answer, asked_ms, answered_ms)
                if sample is not None:
                    self._taken.append(sample)
        return len(answers) == len(names)

    def _answers(self, names: list[str]) -> Iterator[Answer]:
        for group, future in self._admin.describe_consumer_groups(names, request_timeout=TIMEOUT_S).items():
            try:
                yield answer_of(future.result(TIMEOUT_S + 1))
            except KafkaException as error:
                code = error.args[0].code()
                if code in _NOT_THERE:
                    yield Answer(group, "Dead")
                elif code not in _NOT_NOW:
                    self._tell(
                        f"a group cannot be described: {error.args[0].str()}. Expected: an answer to DescribeGroups. "
                        "Next: grant Describe on Group:* (`kardia doctor` prints the line)"
                    )

    def _tell(self, sentence: str) -> None:
        """Once each."""
        if sentence not in self._said and len(self._said) < 100:
            self._said.add(sentence)
            self._say(sentence)


def answer_of(told: ConsumerGroupDescription) -> Answer:
    """The library's answer in our words."""
    return Answer(
        told.group_id,
        _STATES.get(told.state, "Unknown"),
        "consumer" if told.type == ConsumerGroupType.CONSUMER else "classic",
        told.partition_assignor or "",
        members=[_entry(member) for member in told.members or ()],
    )


def _entry(member: MemberDescription) -> Entry:
    topics: dict[str, list[int]] = {}
    for one in _partitions(member):
        topics.setdefault(one.topic, []).append(one.partition)
    host = (member.host or "").rpartition("/")[2]
    return member.member_id, member.group_instance_id or "", member.client_id or "", host, list(topics.items())


def _partitions(member: MemberDescription) -> Iterable[Any]:
    assignment = member.assignment
    return () if assignment is None else assignment.topic_partitions
