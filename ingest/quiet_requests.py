"""Quiet requests in columns, in the order of the log: who sent each of them, and its numbers.

They say the same as stretches (`kardia.stretches`), but all at once: whoever cuts, routes or encodes a hundred thousand
requests does it by a few operations on columns. It must not know about lines or bytes on the way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kardia.events import Event, Kind, for_shard
from kardia.stretches import BEFORE, BEHIND, BYTES, END, EXACT_MAX, INSTANTS, START, WIDTH, Stretch

_FETCH = int(Kind.FETCH)

Numbers = np.ndarray[Any, np.dtype[np.float64]]
"""`kardia.stretches.FIELDS` of some requests, a row each; or one of the columns."""
Places = np.ndarray[Any, np.dtype[np.int64]]
"""Numbers of lines in a block, bytes in it, or numbers of senders."""


class Rows(NamedTuple):
    """Requests in the order of their positions; those of one line, sent for several shards, stand side by side."""

    heads: list[Event]
    """Who sent them, how: a request of each sender. Its position, instants and size say nothing here."""
    senders: Places
    """Of each request the number of its head."""
    numbers: Numbers

    @classmethod
    def of(cls, stretches: Iterable[Stretch]) -> Rows:
        """The requests of stretches."""
        found = list(stretches)
        if not found:
            return NONE
        senders = np.repeat(np.arange(len(found)), [len(stretch) for stretch in found])
        data = b"".join([stretch.numbers.tobytes() for stretch in found])
        numbers = np.frombuffer(data, np.float64).reshape(-1, WIDTH)
        in_order = np.argsort(numbers[:, START], kind="stable")
        return cls([stretch.head for stretch in found], senders[in_order], numbers[in_order])

    def stretches(self) -> list[Stretch]:
        """The same requests by sender, in the order of their first ones."""
        counts = self.counts()
        numbers = self.numbers[np.argsort(self.senders, kind="stable")]
        ends = np.cumsum(counts)
        begins = ends - counts
        of_first = numbers[np.minimum(begins, max(0, len(numbers) - 1)), START]
        in_order = np.argsort(of_first, kind="stable")
        in_order = in_order[counts[in_order] > 0]
        return [
            Stretch(self.heads[place], array("d", numbers[begin:end].tobytes()))
            for place, begin, end in zip(
                in_order.tolist(), begins[in_order].tolist(), ends[in_order].tolist(), strict=True
            )
        ]

    def events(self) -> list[Event]:
        """The same requests one by one, in their order: for those of many senders, who have one or two each. So nothing
        is made for a head (`kardia.stretches.unfolding`), and whole numbers are made in columns."""
        numbers = self.numbers
        starts, ends, sizes = (
            np.minimum(numbers[:, field], EXACT_MAX).astype(np.int64).tolist() for field in (START, END, BYTES)
        )
        rows = zip(self.senders.tolist(), starts, ends, numbers[:, INSTANTS].tolist(), sizes, strict=True)
        heads, new = self.heads, tuple.__new__
        return [
            new(
                Event,
                (
                    *(head := heads[sender])[BEFORE],
                    start,
                    end,
                    *instants,
                    *head[BEHIND],
                    {"bytes": size} if head[0] == _FETCH else None,
                ),
            )
            for sender, start, end, instants, size in rows
        ]

    def counts(self) -> Places:
        """How many requests each head has."""
        return np.bincount(self.senders, minlength=len(self.heads))

    def part(self, chosen: Any) -> Rows:
        """Some of the requests, given as an index of their rows, and only the heads that have any of them."""
        senders = self.senders[chosen]
        used = np.flatnonzero(np.bincount(senders, minlength=len(self.heads)))
        number_of = np.empty(len(self.heads), np.int64)
        number_of[used] = np.arange(len(used))
        return Rows([self.heads[place] for place in used.tolist()], number_of[senders], self.numbers[chosen])

    def by_source(self) -> dict[str, Rows]:
        """The requests of each source."""
        sources = {head.source: None for head in self.heads}
        if len(sources) == 1:
            return dict.fromkeys(sources, self)
        source_of = np.array([head.source for head in self.heads], object)
        return {source: self.part(np.flatnonzero((source_of == source)[self.senders])) for source in sources}

    def for_shards(self, shards: Sequence[Sequence[int]]) -> Rows:
        """The requests of each head once for each of its shards, `shards` having them by head."""
        copies = np.array([len(of_head) for of_head in shards], np.int64)
        heads = [
            head if head.shard == shard else for_shard(head, shard)
            for head, of_head in zip(self.heads, shards, strict=True)
            for shard in of_head
        ]
        first = np.cumsum(copies) - copies
        if copies.max(initial=0) <= 1:
            chosen = np.flatnonzero(copies[self.senders])
            return Rows(heads, first[self.senders[chosen]], self.numbers[chosen])
        times = copies[self.senders]
        chosen = np.repeat(np.arange(len(times)), times)
        which = np.arange(len(chosen)) - np.repeat(np.cumsum(times) - times, times)
        return Rows(heads, first[self.senders[chosen]] + which, self.numbers[chosen])


NONE = Rows([], np.empty(0, np.int64), np.empty((0, WIDTH)))
