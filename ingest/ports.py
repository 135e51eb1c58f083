"""What the collector needs from the world: a clock and a topic. The real ones are put together in the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ingest.offsets.committed import Committed, SavedCommitted
from ingest.tail.positions import Positions, SavedDirectory
from kardia.events import Event


class Clock(Protocol):
    """Two clocks: the wall clock of this host for instants, the monotonic one for durations."""

    def wall_ms(self) -> float:
        """Epoch milliseconds."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since some start."""
        ...


class Topic(Protocol):
    """The topic of events."""

    @property
    def in_flight(self) -> int:
        """Records sent and not acknowledged."""
        ...

    def send(self, lane: int, data: bytes, acknowledged: Callable[[], None]) -> None:
        """Send one record; `acknowledged` is called from `poll` when the topic has it."""
        ...

    def poll(self, timeout_s: float) -> None:
        """Let acknowledgements in. Raises `DeliveryError` when a record was refused for good."""
        ...


class Saves(Protocol):
    """Where a collector keeps what it goes on from (`ingest.tail.positions.Store`)."""

    directory: Path

    @property
    def save_ms(self) -> float:
        """So long after a save the next is due, as of now; a crash repeats about so much."""
        ...

    def save(self, positions: Positions) -> None:
        """Save positions, durably when this returns. Raises `OSError` when the disk does not take them."""
        ...

    def save_directory(self, directory: SavedDirectory) -> None:
        """Save the router's directory."""
        ...

    def save_committed(self, committed: SavedCommitted, number: int) -> None:
        """Save the partitions with commits, before the positions of the records that they were learned from."""
        ...


class Records(Protocol):
    """The offsets topic as a source of events."""

    def poll(self, wall_ms: float) -> list[Event]:
        """Events that have come; empty when there is nothing new."""
        ...

    @property
    def bootstrapped(self) -> bool:
        """Whether every partition has been read to its end once."""
        ...

    @property
    def complete_to_ms(self) -> float:
        """Instant up to which all records have been read, 0 while that is not known."""
        ...

    @property
    def position(self) -> int:
        """Sum of the next offsets: grows with every record."""
        ...

    def positions(self) -> dict[int, int]:
        """Next offset by partition."""
        ...

    def distrust(self, wall_ms: float) -> None:
        """This process was not run until now: what was known of the ends of the partitions is old."""
        ...


class Samples(Protocol):
    """Answers of the admin API about groups."""

    @property
    def source(self) -> str:
        """Source of its events."""
        ...

    def events(self, wall_ms: float) -> tuple[list[Event], float]:
        """Events that have come, and the instant up to which all are, 0 while that is not known."""
        ...


class Sessions(Protocol):
    """How long sessions of groups with epochs are, as the cluster is configured."""

    def heard(self, event: Event) -> None:
        """Note a record that may show a group of them."""
        ...

    def take(self) -> dict[str, Any] | None:
        """What a tick should tell now: `session_ms` and `group_session_ms`; None if there is nothing to tell."""
        ...


class Ends(Protocol):
    """Where partitions end that groups have commits for."""

    committed: Committed

    def take(self, complete_to_ms: float) -> list[tuple[int, Event]]:
        """Events by lane that are to be sent now, when all records up to an instant have been."""
        ...
