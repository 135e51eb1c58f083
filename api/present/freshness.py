"""How far the tables reach: what every answer says about itself.

`complete_as_of` of a group is the least of the latest `complete_to_ms` over the lanes and the sources of the broker
that leads it, and over those that belong to no broker: everything that any of them said up to then is in the tables. A
log of another broker that ends, or is behind, says nothing of it and holds nothing back. That of a cluster is the least
of the brokers that lead a group; where none is known to, of all current sources. It never goes back while the server
runs: a source that appears late (a new broker) starts behind, but takes nothing away from what had been complete. Reads
no clock; `now_ms` is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

from kardia.events import ADMIN_BROKER, OFFSETS_BROKER
from kardia.instants import to_rfc3339
from kardia.tables import DISAGREEMENTS, SELF_TEST

BESIDE_BROKERS = (OFFSETS_BROKER, ADMIN_BROKER)
"""Broker part of sources that are no broker's log, and tell of the groups of all of them."""


class Freshness(NamedTuple):
    """What an answer rests on. `complete_as_of_ms` is None while no source has said anything."""

    complete_as_of_ms: int | None
    now_ms: int
    stale_after_ms: int
    batch_id: int
    in_tables: bool = True
    """Whether that batch is in the tables; where a process shows what it is about to write (`live`), it may not be."""

    def as_of(self, complete_as_of_ms: int | None) -> Freshness:
        """The same for something that is complete up to another instant."""
        return self._replace(complete_as_of_ms=complete_as_of_ms)

    @property
    def age_ms(self) -> int | None:
        """Wall clock of the server minus `complete_as_of`; not below 0, because two clocks differ a little."""
        return None if self.complete_as_of_ms is None else max(0, self.now_ms - self.complete_as_of_ms)

    @property
    def stale(self) -> bool:
        """Whether silence since `complete_as_of` may be the feed's and not the members'."""
        return self.age_ms is None or self.age_ms > self.stale_after_ms

    def left_ms(self, deadline_ms: int | None, *, is_least: bool) -> int | None:
        """What is left of a deadline at the instant of the answer; below 0 it has passed, and the outcome is not known
        yet. None while the feed is stale, and of a least deadline that has passed: it was renewed, or that is not read
        yet."""
        if deadline_ms is None or self.stale:
            return None
        left_ms = deadline_ms - self.now_ms
        return None if is_least and left_ms < 0 else left_ms

    def left_json(self, deadline_ms: int, *, is_least: bool) -> bytes:
        """The same as JSON."""
        left_ms = self.left_ms(deadline_ms, is_least=is_least)
        return b"null" if left_ms is None else b"%d" % left_ms

    def as_answer(self) -> dict[str, Any]:
        """The `freshness` object of an answer."""
        return {
            "complete_as_of_ms": self.complete_as_of_ms,
            "complete_as_of": to_rfc3339(self.complete_as_of_ms),
            "age_ms": self.age_ms,
            "stale": self.stale,
            "batch_id": self.batch_id,
            "in_tables": self.in_tables,
            "answered_at_ms": self.now_ms,
            "answered_at": to_rfc3339(self.now_ms),
        }


class Reach:
    """Latest `complete_to_ms` and counts per lane and source of one cluster, folded from `progress`."""

    def __init__(self, source_retired_ms: int) -> None:
        self._retired_ms = source_retired_ms
        self._complete_to_ms: dict[tuple[int, str], int] = {}
        self._high_ms: int | None = None
        self._of_broker: dict[str, int] = {}
        """Broker -> up to where its logs are complete, and what belongs to no broker."""
        self._streams: dict[str, frozenset[str]] | None = None
        self.last_gap_at_ms: int | None = None
        """Up to when the source had been read that met the latest gap."""
        self.ledger: dict[str, int] = dict.fromkeys(LEDGER, 0)
        self.disagreements: dict[str, int] = dict.fromkeys(DISAGREEMENTS, 0)
        """Of the ledger's `divergences` those of server.log, by kind."""
        self.self_tested: dict[str, int] = dict.fromkeys(SELF_TEST, 0)
        """Answers that were put to the model, and what became of them."""

    def copied_on_write(self) -> Reach:
        """The same, for more rows to be folded into."""
        other = copy(self)
        other._complete_to_ms, other.ledger = self._complete_to_ms.copy(), self.ledger.copy()
        other.disagreements, other.self_tested = self.disagreements.copy(), self.self_tested.copy()
        return other

    def fold(self, rows: Iterable[Any]) -> None:
        """Take rows of `progress` in; each row is given once."""
        self._streams = None
        for row in rows:
            place = (row.lane, row.source)
            self._complete_to_ms[place] = max(row.complete_to_ms, self._complete_to_ms.get(place, row.complete_to_ms))
            if row.gaps:
                self.last_gap_at_ms = max(row.complete_to_ms, self.last_gap_at_ms or 0)
            for name in LEDGER:
                self.ledger[name] += getattr(row, name) or 0
            for kind in DISAGREEMENTS:
                self.disagreements[kind] += getattr(row, kind) or 0
            for name in SELF_TEST:
                self.self_tested[name] += getattr(row, name) or 0

    def settle(self, led: Mapping[str, int]) -> None:
        """Say how far everything is complete, after a batch; `led`: broker -> groups that it leads."""
        newest_ms = self.newest_ms
        if newest_ms is None:
            return
        least: dict[str, int] = {}
        for (_, source), at_ms in self._complete_to_ms.items():
            if at_ms >= newest_ms - self._retired_ms:
                broker = source.rpartition("/")[0]
                least[broker] = min(at_ms, least.get(broker, at_ms))
        beside = [least.pop(broker) for broker in BESIDE_BROKERS if broker in least]
        self._of_broker = {broker: min(at_ms, *beside) if beside else at_ms for broker, at_ms in least.items()}
        leading = [self._of_broker[broker] for broker, count in led.items() if count > 0 and broker in self._of_broker]
        least_ms = min(leading or [*self._of_broker.values(), *beside])
        self._high_ms = least_ms if self._high_ms is None else max(self._high_ms, least_ms)

    def complete_of(self, broker: str) -> int | None:
        """The instant up to which everything is there about a group that the broker leads; empty, or a broker of which
        nothing is read now: about the cluster."""
        return self._of_broker.get(broker, self._high_ms)

    @property
    def complete_as_of_ms(self) -> int | None:
        """The instant up to which everything is there."""
        return self._high_ms

    @property
    def newest_ms(self) -> int | None:
        """The farthest that any source has been read."""
        return max(self._complete_to_ms.values(), default=None)

    def sources(self) -> dict[str, int]:
        """Least `complete_to_ms` over the lanes, per source."""
        least: dict[str, int] = {}
        for (_, source), at_ms in self._complete_to_ms.items():
            least[source] = min(at_ms, least.get(source, at_ms))
        return least

    def streams(self) -> dict[str, frozenset[str]]:
        """Broker -> its streams that are read: request, server. Counted once per batch; two threads find the same."""
        found = self._streams
        if found is None:
            named: dict[str, set[str]] = {}
            for source in self.live_sources():
                broker, _, stream = source.rpartition("/")
                named.setdefault(broker, set()).add(stream)
            found = self._streams = {broker: frozenset(streams) for broker, streams in named.items()}
        return found

    def live_sources(self) -> dict[str, int]:
        """`sources` without those that are so far behind that they count as retired."""
        newest_ms = self.newest_ms
        return {
            source: at_ms
            for source, at_ms in self.sources().items()
            if newest_ms is not None and at_ms >= newest_ms - self._retired_ms
        }


LEDGER = (
    *("events", "duplicates", "late", "lines", "ignored", "rejected", "gaps", "divergences", "not_modelled"),
    "forgotten",
)
"""Columns of `progress` that count; their sums are the ledger of the pipeline."""
