"""Small records inside the observer's state: ids that were handed out, ends, waits, silences of a log.

Values that do not change, by names; nothing here decides anything. Instants are floats, epoch milliseconds on the
broker's clock; NEVER (see `group`) stands for "not known" and "does not happen".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kardia.doubts import Doubts


class HandedOut(NamedTuple):
    """An id that the coordinator handed out with the answer 79, and that nobody has joined with yet."""

    until_at_ms: float
    """When the coordinator gives it up: the session timeout of the JoinGroup that got it, after its answer."""
    client_id: str
    client_host: str
    handed_out_at_ms: float
    connection: str
    """By which connection it was asked for."""


class NeverUsed(NamedTuple):
    """An id that was handed out, was never used, and is pending no more."""

    member_id: str
    client_id: str
    handed_out_at_ms: float
    ended_at_ms: float


class Left(NamedTuple):
    """A LeaveGroup that counts later than it came: of an id of which no JoinGroup was answered yet, or of a member that
    is in the generation that began in the same instant."""

    member_id: str
    left_at_ms: float
    cause: str
    reason: str
    doubts: Doubts
    by: float | None
    """The latest that it can have left, as `Ended.by`."""


class SentBack(NamedTuple):
    """A SyncGroup that waited, and was answered 27 in the instant in which a rebalance began."""

    handled_at_ms: float
    at_ms: float


class HeardLate(NamedTuple):
    """A heartbeat that was answered some ms after it had been taken: it renewed at some instant between the two."""

    taken_at_ms: float
    answered_at_ms: float
    """What counts as when it renewed."""

    @property
    def width_ms(self) -> float:
        return self.answered_at_ms - self.taken_at_ms


class Waited(NamedTuple):
    """For whom a join phase waited in vain."""

    member_id: str
    client_id: str
    waited_ms: int


class Foretold(NamedTuple):
    """A prediction that the end of a life decided."""

    kind: str
    """`session`, `poll` or `rebalance`."""
    predicted_at_ms: float
    deadline_at_ms: float


class BeginLine(NamedTuple):
    """The coordinator's own line, in server.log, that it begins to prepare a rebalance."""

    generation_before: int
    began_at_ms: float
    reason: str
    named: list[str]
    """Ids of whom it names as the cause, in its order; the Java coordinator may name several."""


class Stored(NamedTuple):
    """The last record that the coordinator stored of a group, which is what it loads; see `loads`."""

    generation: int
    leader: str
    member_ids: list[str]


class Loading(NamedTuple):
    """Whom a load has named so far in records of a group; the sentence about the group says if that was the last."""

    shard: int
    generation: int
    entries: dict[str, list[Any]]
    """Static id, or member id where there is none -> as a record has a member; the last one in a seat counts."""


class SaidEnd(NamedTuple):
    """Why a member is gone, as a sentence says; what shows it beside the sentence is not read yet."""

    cause: str
    """Empty where its request says more."""
    at_ms: float
    doubts: Doubts


class Kept(NamedTuple):
    """What the coordinator's sentences said last of what it stored of a group, which is what it loads."""

    generation: int
    is_empty: bool


class Previous(NamedTuple):
    """What the rebalance before leaves for the one that may follow from it."""

    started_at_ms: float
    joining_ms: int
    """How long its join phase lasted, to the next ms: a group that does nothing keeps it, in few bytes."""
    assigned_at_ms: float
    """NEVER if its assignment did not come."""
    generation_after: int
    dropped_clients: list[str]
    """client.ids of whom it dropped, and of whose end it began with."""

    @property
    def joined_at_ms(self) -> float:
        """When its join phase ended."""
        return self.started_at_ms + self.joining_ms


class Silence(NamedTuple):
    """A time in which a broker's whole log has no line."""

    begin_at_ms: float
    """The last line before it."""
    end_at_ms: float
    """The first line after it."""


class Elected(NamedTuple):
    """A shard was taken with the highest epoch of a leader so far."""

    epoch: int
    at_ms: float
    behind: list[str]
    """Brokers that took it after that with a lower one."""
    broker: str
    """Who took it with that one."""


class Unjudged(NamedTuple):
    """A silence after which nothing has shown yet whether the broker was restarted in it. See `restarts`."""

    begin_at_ms: float
    end_at_ms: float
    reconnected_at_ms: float
    """First request since by another connection than before it; NEVER if there is none."""

    @property
    def silence(self) -> Silence:
        """The silence itself."""
        return Silence(self.begin_at_ms, self.end_at_ms)


class DueEnd(NamedTuple):
    """The end of a silent member that is gone, as its timers have it; ends sort by their instants."""

    at_ms: float
    """The earliest that the timer fired."""
    member_id: str
    cause: str
    tied: bool = False
    """Whether another timer was due so near that it may have been that one. Filled by `phases.all_ends` alone."""
