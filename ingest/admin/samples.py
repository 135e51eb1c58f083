"""Answers of the admin API about groups: as lines of a file, as events, and which of them are news. Pure.

`Changes` keeps what was answered last and gives a `Sample` where something is other now. A line holds one sample, with
the run of the sampler and its number in it, so that a recorded file gives the events that were sent while it was made.
A round in which everything was asked is a line as well: up to then nothing else was seen.

The instant of an event is that of the answer. It takes effect `CLOCKS_APART_MS` later: whoever asks has another clock
than the brokers, and what they write themselves about the same moment comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from ingest.dialects import excerpt
from ingest.offsets.records import MAX_AT_MS, MAX_MEMBERS
from kardia.events import ADMIN_BROKER, ALL_SHARDS, CLOCKS_APART_MS, Event, Kind, shard_of

STREAM = f"{ADMIN_BROKER}/samples"
"""`BROKER/STREAM` of these events."""

Topics = list[tuple[str, list[int]]]
Entry = tuple[str, str, str, str, Topics]
"""Member id, static id or empty, client.id, address, partitions by topic."""

_At = Annotated[float, Meta(ge=-1, le=MAX_AT_MS)]
_Number = Annotated[int, Meta(ge=0, le=2**53)]
_Run = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]


class Answer(msgspec.Struct, frozen=True):
    """How a group is, as its coordinator says."""

    group: str
    state: str
    protocol: str = "classic"
    assignor: str = ""
    whole: bool = True
    """Whether all members are listed."""
    members: list[Entry] = []


class Sample(msgspec.Struct, frozen=True):
    """An answer that is news, or the end of a round (`answer` is None)."""

    run: _Run
    """Which sampler, since its start."""
    number: _Number
    """Place among all samples of the run."""
    since_ms: _At
    """When the group was asked about the time before, -1 for the first time."""
    asked_ms: _At
    answered_ms: _At
    answer: Answer | None = None
    is_first: bool = False
    """Of the end of a round: whether it is the first of its run. Every group that is shown was answered about in it."""


_line = msgspec.json.Encoder()
_sample = msgspec.json.Decoder(Sample)


class Changes:
    """What was answered last of each group, in one run of a sampler."""

    def __init__(self, run: str) -> None:
        """`run`: hexadecimal digits, other than those of any run before."""
        self.run = run
        self._number = 0
        self._last: dict[str, tuple[float, Answer]] = {}
        self._is_first = True

    @property
    def groups(self) -> frozenset[str]:
        """Groups that are held to exist."""
        return frozenset(self._last)

    def note(self, answer: Answer, asked_ms: float, answered_ms: float) -> Sample | None:
        """Take an answer; a sample if it is other than the last one. A group that is Dead is asked about no more."""
        answer = _ordered(answer)
        answered_ms = max(asked_ms, answered_ms)
        since_ms, before = self._last.get(answer.group, (-1.0, None))
        if answer.state == "Dead":
            if before is None:
                return None
            del self._last[answer.group]
        else:
            self._last[answer.group] = asked_ms, answer
        if answer == before:
            return None
        return self._told(min(since_ms, answered_ms), asked_ms, answered_ms, answer)

    def round(self, asked_ms: float, answered_ms: float) -> Sample:
        """Everything was asked between these instants."""
        told = self._told(-1.0, asked_ms, max(asked_ms, answered_ms), None)
        told, self._is_first = msgspec.structs.replace(told, is_first=self._is_first), False
        return told

    def _told(self, since_ms: float, asked_ms: float, answered_ms: float, answer: Answer | None) -> Sample:
        self._number += 1
        return Sample(self.run, self._number - 1, since_ms, asked_ms, answered_ms, answer)


def _ordered(answer: Answer) -> Answer:
    """The same for the same members and partitions, in whatever order they were answered."""
    members = [
        (*entry[:4], sorted((topic, sorted(partitions)) for topic, partitions in entry[4]))
        for entry in sorted(answer.members)[:MAX_MEMBERS]
    ]
    whole = answer.whole and len(answer.members) <= MAX_MEMBERS
    return msgspec.structs.replace(answer, members=members, whole=whole)


def sample_line(sample: Sample) -> bytes:
    """A line of a recorded file."""
    return _line.encode(sample) + b"\n"


def is_sample(line: bytes) -> bool:
    """Whether a line is one of these."""
    try:
        _sample.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def known_to_ms(sample: Sample) -> float:
    """The instant up to which everything is said once this sample is: that at which the last one takes effect."""
    return sample.answered_ms + CLOCKS_APART_MS


def sample_event(sample: Sample, partitions: int) -> Event | None:
    """The event of a sample; None of the end of a round but the first of its run, which is for all shards: groups of
    which it said nothing are not shown any more. `partitions`: of `__consumer_offsets`."""
    answer = sample.answer
    if answer is None and not sample.is_first:
        return None
    at, source = known_to_ms(sample), f"{STREAM}/{sample.run}"
    place = (source, sample.number, sample.number + 1, sample.answered_ms, sample.asked_ms, at, at)
    if answer is None:
        return Event(int(Kind.GROUP_SAMPLE), ALL_SHARDS, *place, detail={"asked_ms": sample.asked_ms})
    detail = {
        "since_ms": sample.since_ms,
        "asked_ms": sample.asked_ms,
        "state": answer.state,
        "protocol": answer.protocol,
        "assignor": answer.assignor,
        "whole": answer.whole,
        "members": [[*entry[:4], [[topic, numbers] for topic, numbers in entry[4]]] for entry in answer.members],
    }
    return Event(int(Kind.GROUP_SAMPLE), shard_of(answer.group, partitions), *place, answer.group, detail=detail)


class ReadSamples:
    """Reads a recorded file: events by iteration, then how far they go."""

    def __init__(self, lines: Iterable[bytes], partitions: int) -> None:
        """`partitions`: of `__consumer_offsets`."""
        self._lines = lines
        self._partitions = partitions
        self.rounds = 0
        self.first_at_ms = 0.0
        self.known_to_ms = 0.0
        """Up to when everything is said; 0 while there is nothing."""

    def __iter__(self) -> Iterator[Event]:
        at_byte = 0
        for line in self._lines:
            start, at_byte = at_byte, at_byte + len(line)
            if not line.strip():
                continue
            try:
                sample = _sample.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                detail = {"reason": "bad_json", "excerpt": excerpt(line.strip()), "expected": str(error)[:200]}
                source = f"{STREAM}/file"
                yield Event(int(Kind.REJECTED), ALL_SHARDS, source, start, at_byte, 0.0, 0.0, 0.0, 0.0, detail=detail)
                continue
            self.first_at_ms = self.first_at_ms or sample.answered_ms
            self.known_to_ms = max(self.known_to_ms, known_to_ms(sample))
            event = sample_event(sample, self._partitions)
            self.rounds += sample.answer is None
            if event is not None:
                yield event
