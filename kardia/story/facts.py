"""What comes in and what goes out: standing rows of one group as a `Material`, sentences as a `Story`. Plain values.

Rows are mappings by column name (`kardia.tables`); of rows with the same key only the one that stands. Who is called
how is settled here once, so that one member has one name throughout a story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from kardia.story import words
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import LATE_MS

Row = Mapping[str, Any]

ENDS_THAT_BEGIN = {
    "session_expired": ("session_expired",),
    "rebalance_timeout": ("rebalance_timeout",),
    "sync_timeout": ("sync_timeout",),
    **dict.fromkeys(("member_left", *LEAVE_CAUSES[1:]), LEAVE_CAUSES),
}
"""Trigger of a rebalance -> causes of the end of a membership that it may follow from: what a leave was for is known of
the one or the other first."""

KINDS = (
    "context",
    "predicted",
    "ended",
    "joined",
    "rebalance_began",
    "rebalance_ended",
    "disagreement",
    "state",
    "deadline",
    "limit",
)
"""Of a sentence, in the order in which sentences about the same instant are told. context: what was there before;
disagreement: server.log says otherwise than the requests;
state and deadline: what was so at the instant asked about; limit: what is not known or was left out."""


class Evidence(NamedTuple):
    """What a sentence rests on: a row of a table, and the line of the log that settled it, if it was one."""

    table: str
    seq: int | None
    """Number of the transition within its group."""
    shown_by: str
    """The evidence as the table has it."""
    source: str | None = None
    """BROKER/STREAM/INCARNATION of the line."""
    start: int | None = None
    """First byte of the line."""
    end: int | None = None
    """Byte after the line, where the archive has the event."""
    event: str | None = None
    """Kind of the event, where the archive has it."""
    client_id: str | None = None
    logged_at_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """One or two sentences about one thing that was so at an instant."""

    at_ms: int
    kind: str
    text: str
    certainty: str = "exact"
    member_ids: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "at": words.instant(self.at_ms),
            "at_ms": self.at_ms,
            "kind": self.kind,
            "text": self.text,
            "certainty": self.certainty,
            "member_ids": list(self.member_ids),
            "evidence": [found._asdict() for found in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class Story:
    """Sentences in the order of their instants."""

    cluster_id: str
    group_id: str
    member_id: str | None
    from_ms: int | None
    to_ms: int | None
    sentences: tuple[Sentence, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "cluster_id": self.cluster_id,
            "group_id": self.group_id,
            "member_id": self.member_id,
            "from": None if self.from_ms is None else words.instant(self.from_ms),
            "to": None if self.to_ms is None else words.instant(self.to_ms),
            "sentences": [sentence.as_json() for sentence in self.sentences],
        }


@dataclass(frozen=True)
class Material:
    """Everything the tables say about one group, as far as it was read."""

    cluster_id: str
    group_id: str
    transitions: tuple[Row, ...] = ()
    """By `seq`."""
    rebalances: tuple[Row, ...] = ()
    """By `started_at_ms`."""
    lives: tuple[Row, ...] = ()
    """Rows of `members` by `joined_at_ms`."""
    predictions: tuple[Row, ...] = ()
    """By `predicted_at_ms`."""
    health: tuple[Row, ...] = ()
    """Of each member the latest row at or before the instant asked about."""
    complete_to_ms: int | None = None
    """Everything logged up to then is in the tables."""
    now_ms: int | None = None
    """Wall clock of whoever asks."""
    stale: bool = True
    """Whether the tables are so far behind `now_ms` that silence since is the feed's: no countdowns then."""
    whole_from_ms: int | None = None
    """Rows about what was before it were not read, because there were too many; None: all were."""
    gaps: int = 0
    """Gaps that the logs of the cluster had."""
    disagreements: tuple[Row, ...] = ()
    """By `at_ms`."""
    rejected: int = 0
    """Lines of the cluster's logs that could not be understood."""
    names: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def by_member(self) -> dict[str, Row]:
        """Latest life of each member id."""
        return {life["member_id"]: life for life in self.lives}

    @cached_property
    def _lives_of_client(self) -> Counter[str]:
        return Counter(life["client_id"] or "" for life in self.by_member.values())

    def who(self, member_id: str | None, client_id: str | None = None) -> str:
        """How a member is called: its client.id, with the head of its UUID where the client.id is not its alone."""
        if not member_id:
            return words.name(client_id) if client_id else "an unknown member"
        known = self.names.get(member_id)
        if known is None:
            life = self.by_member.get(member_id)
            client = (life["client_id"] if life else None) or client_id
            if not client:
                known = words.called(member_id)
            elif self._lives_of_client[client] > 1:
                known = words.told_apart(client, member_id)
            else:
                known = words.name(client)
            self.names[member_id] = known
        return known

    def introduced(self, member_id: str | None, client_id: str | None = None) -> str:
        """A member with all that tells who it is, in brackets: what of its id its name does not say, library, host,
        timeouts in force. What is not known is not told."""
        who = self.who(member_id, client_id)
        known = words.short_id(member_id) if member_id else ""
        about = words.clauses(("" if known in who else known, self.identity(member_id)))
        if not about:
            return who
        return f"{who[:-1]}, {about})" if who.endswith(f"({known})") else f"{who} ({about})"

    def identity(self, member_id: str | None) -> str:
        """What is known of a member beside its name and id: static id, library, host, timeouts in force."""
        life = self.by_member.get(member_id or "")
        if life is None:
            return ""
        library = " ".join(
            words.name(part) for part in (life["client_software_name"], life["client_software_version"]) if part
        )
        host = life["client_host"]
        static = life["group_instance_id"]
        session_ms, rebalance_ms = life["session_timeout_ms"], life["rebalance_timeout_ms"]
        return words.clauses(
            (
                f"static id {words.name(static)}" if static else "",
                " ".join((library, f"at {words.name(host)}" if host else "")).strip(),
                f"session timeout {words.span(session_ms)}" if session_ms is not None else "",
                f"rebalance timeout {words.span(rebalance_ms)}" if rebalance_ms is not None else "",
            )
        )

    def life_at(self, member_id: str | None, at_ms: int) -> Row | None:
        """The life of a member id that an instant lies in; the latest that began before it."""
        found = [life for life in self.lives if life["member_id"] == member_id and life["joined_at_ms"] <= at_ms]
        return found[-1] if found else None

    def end_that_began(self, rebalance: Row) -> Row | None:
        """The life whose end began a rebalance; None if no end did.

        They are one operation of the coordinator. By requests both have its instant; where server.log is read each may
        have the stamp of a line of its own, and either line may be the later one.
        """
        began_ms, causes = rebalance["started_at_ms"], ENDS_THAT_BEGIN.get(rebalance["trigger"], ())
        found = [
            life
            for life in self.lives
            if life["member_id"] == rebalance["trigger_member_id"]
            and life["ended_at_ms"] is not None
            and life["end_cause"] in causes
            and abs(began_ms - life["ended_at_ms"]) <= LATE_MS
        ]
        return min(found, key=lambda life: abs(began_ms - int(life["ended_at_ms"])), default=None)

    def known_to(self, asked_ms: int | None) -> int:
        """The latest instant for which a state can be told: as far as all is read, and not after the one asked about.

        Beyond it there may be rows, but not all of them; the clock of whoever asks says nothing about the group.
        """
        reached_ms = self.complete_to_ms
        if reached_ms is None:
            reached_ms = max((int(row["at_ms"]) for rows in (self.health, self.transitions) for row in rows), default=0)
        return reached_ms if asked_ms is None else min(asked_ms, reached_ms)

    def transition(self, at_ms: int, to_state: str, member_id: str | None = None) -> Row | None:
        """The transition of the group, or of a member, into a state at an instant."""
        for row in self.transitions:
            if row["at_ms"] == at_ms and row["to_state"] == to_state and row["member_id"] == member_id:
                return row
        return None
