"""Which shards a client's FETCH concerns: a directory of (client id, address) -> shards, learned from group traffic.

FETCH and PUSH_TELEMETRY name no group. A client that has spoken for a group from the same address under the same
client id is taken for its author; where several groups qualify the event goes to all their shards and the observer
decides. Bounded: the clients heard from longest ago are forgotten first. Reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kardia.events import Event, Kind, for_shard

ClientKey = tuple[str, str]
"""client.id and address."""

MAX_CLIENTS = 200_000
"""Clients remembered, about 60 MB. A cluster of 1,000 nodes has tens of thousands; a client that makes a new id for
every run fills it with what will not come back."""

MAX_SHARDS = 50
"""Shards one client may speak for. Libraries with a fixed client id (`rdkafka`, `sarama`) behind one address add up."""

UNROUTED = (int(Kind.FETCH), int(Kind.TELEMETRY))
"""Kinds of events that name no group; of a PUSH_TELEMETRY that could be read the shard is known all the same."""

_TEACHING = frozenset(
    int(kind)
    for kind in (Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE, Kind.COMMIT, Kind.TXN_COMMIT, Kind.MODERN_HEARTBEAT)
)


class Directory:
    """The directory. Iteration order of the dictionary is the order of last use."""

    __slots__ = ("_fresh", "_max_clients", "_shards", "forgotten")

    def __init__(self, max_clients: int = MAX_CLIENTS) -> None:
        """An empty directory of at most `max_clients`."""
        self._max_clients = max_clients
        self._shards: dict[ClientKey, tuple[int, ...]] = {}
        self._fresh: dict[ClientKey, tuple[int, ...]] | None = None
        self.forgotten = 0
        """Clients dropped because the directory was full."""

    def __len__(self) -> int:
        return len(self._shards)

    def learn(self, event: Event) -> None:
        """Take note of a request that names its group, or of the members of a group's record."""
        kind = event[0]
        if kind in _TEACHING:
            if event.client_id or event.client_host:
                self.add((event.client_id, event.client_host), event.shard)
        elif kind == Kind.GROUP_RECORD:
            for member in (event.detail or {}).get("members", ()):
                self.add((member[2], member[3]), event.shard)

    def add(self, client: ClientKey, shard: int) -> None:
        """A client speaks for a group of this shard."""
        known = self._shards
        shards = known.pop(client, ())
        if shard not in shards:
            shards = (*shards[-(MAX_SHARDS - 1) :], shard)
            if self._fresh is not None:
                self._fresh[client] = shards
        known[client] = shards
        if len(known) > self._max_clients:
            known.pop(next(iter(known)))
            self.forgotten += 1

    def shards_of(self, client: ClientKey) -> tuple[int, ...]:
        """Shards a client is known to speak for, in the order they were learned."""
        return self._shards.get(client, ())

    def merge(self, entries: Iterable[tuple[str, str, Iterable[int]]]) -> None:
        """Add what another reader learned."""
        for client_id, host, shards in entries:
            for shard in shards:
                self.add((client_id, host), shard)

    def fresh(self) -> list[tuple[str, str, list[int]]]:
        """What has been learned since the last call; of the first one nothing."""
        fresh, self._fresh = self._fresh or {}, {}
        return [(client_id, host, list(shards)) for (client_id, host), shards in fresh.items()]

    def entries(self) -> Iterator[tuple[str, str, list[int]]]:
        """Everything known, for saving; the order is that of last use."""
        for (client_id, host), shards in self._shards.items():
            yield client_id, host, list(shards)

    def route(self, event: Event) -> list[Event]:
        """Copies of an event that names no group, one for each shard its client may speak for."""
        return [for_shard(event, shard) for shard in self.shards_of((event.client_id, event.client_host))]
