"""A coordinator to talk to in the words of the protocol; the scenarios are written in it.

    group = Context("3.9.2")
    first = group.join("A", version=3)       # waits
    group.at(3_000)                          # time passes, timers fire
    assert first.answer.generation_id == 1

Member ids are the names themselves, so a test says who is who. Every request is sent at the context's instant, after
the timers that are due then; `just_before` lets requests at an instant come before its timers.
"""

from __future__ import annotations

import struct
from typing import Any

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.choices import Choose
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import (
    Answer,
    Commit,
    DeleteGroups,
    Heartbeat,
    Join,
    Leave,
    Leaving,
    MemberView,
    OffsetDelete,
    Operation,
    Stored,
    Sync,
    TxnCommit,
    TxnEnd,
    View,
)
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload

SCALA = ("2.8.2", "3.3.2", "3.9.2")
JAVA = ("4.0.2", "4.4.0")
BOTH = SCALA + JAVA
OLD = ("2.2.2", "2.4.1", "2.6.0")
EVERY = ("2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.6.1", "2.8.0", *BOTH, "3.0.0", "4.1.2")

GROUP = "g"
RANGE = (("range", b"sub"),)
OTHER = (("range", b"other"),)
D, S, R = 3_000, 10_000, 300_000
"""Initial rebalance delay, session timeout and rebalance timeout unless a test says otherwise, ms."""


class Request:
    """A request that was sent; its answer, once there is one."""

    def __init__(self, context: Context, number: int) -> None:
        self._context = context
        self.number = number

    @property
    def waits(self) -> bool:
        """Not answered yet, or never to be."""
        return self.number not in self._context.answers

    @property
    def answer(self) -> Answer:
        """The answer; the test fails when there is none."""
        assert not self.waits, f"request {self.number} has no answer at {self._context.now_ms}"
        return self._context.answers[self.number]

    @property
    def error(self) -> int:
        """The error code of the answer."""
        return self.answer.error_code


class Context:
    """One coordinator, one group unless a request says otherwise."""

    def __init__(self, version: str, choose: Choose | None = None, **settings: Any) -> None:
        settings.setdefault("group_min_session_timeout_ms", 1)
        self.version = version
        self.settings = CoordinatorSettings(**settings)
        self.coordinator = Coordinator(behaviour_of(version), self.settings, choose)
        self.answers: dict[int, Answer] = {}
        self.happenings: list[Happening] = []
        self._requests = 0
        self._at_ms = 0

    def reconfigure(self, **settings: Any) -> None:
        """The broker came back with other settings; nothing but them has changed."""
        self.settings = self.settings._replace(**settings)
        self.coordinator._shard.settings = self.settings

    # -- time -----------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return self._at_ms

    def at(self, at_ms: int) -> Context:
        """Let time pass to an instant; timers due at it have fired."""
        self._keep(self.coordinator.advance(at_ms))
        self._at_ms = at_ms
        return self

    def just_before(self, at_ms: int) -> Context:
        """Let time pass to an instant whose timers have not fired yet."""
        self._keep(self.coordinator.advance(at_ms - 1))
        self._at_ms = at_ms
        return self

    def sleep(self, ms: int) -> Context:
        return self.at(self._at_ms + ms)

    # -- requests -------------------------------------------------------------------------------------------------

    def send(self, operation: Operation) -> Request:
        """Any operation, at this instant."""
        answers = self.coordinator.perform(operation, self._at_ms)
        self._keep(answers)
        return Request(self, operation.number)

    def join(
        self,
        new_id: str,
        member_id: str = "",
        version: int = 9,
        instance: str | None = None,
        session: int = S,
        rebalance: int = R,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        group: str = GROUP,
    ) -> Request:
        """JoinGroup. `new_id` is the id handed out if one is; `member_id` the one asked with."""
        return self.send(
            Join(
                self._number(),
                version,
                group,
                member_id,
                instance,
                "client",
                "/10.0.0.1",
                session,
                rebalance,
                protocol_type,
                protocols,
                None,
                new_id,
            )
        )

    def rejoin(self, member_id: str, **options: object) -> Request:
        """JoinGroup with a member id."""
        return self.join("", member_id=member_id, **options)  # type: ignore[arg-type]

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Request:
        given = tuple((assignments or {}).items())
        return self.send(
            Sync(self._number(), 5, GROUP, generation, member_id, instance, protocol_type, protocol_name, given)
        )

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> int:
        """Heartbeat; returns its error code."""
        return self.send(Heartbeat(self._number(), 4, GROUP, generation, member_id, instance)).error

    def leave(self, *members: str | tuple[str, str | None]) -> list[int]:
        """LeaveGroup of member ids, or of pairs of member id and instance id; returns the error of each."""
        entries = tuple(Leaving(*((one, None) if isinstance(one, str) else one), None) for one in members)
        request = self.send(Leave(self._number(), 5, GROUP, entries))
        assert request.error == 0
        return [error for _, _, error in request.answer.left]

    def commit(
        self,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        topic: str = "orders",
        too_large: bool = False,
        version: int = 8,
        group: str = GROUP,
    ) -> int:
        """OffsetCommit of partition 0; returns its error code."""
        return self.send(
            Commit(self._number(), version, group, generation, member_id, instance, topic, 0, 7, too_large)
        ).error

    def txn_commit(
        self,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        producer: int = 1,
        topic: str = "orders",
        group: str = GROUP,
    ) -> int:
        """TxnOffsetCommit of partition 0; returns its error code."""
        return self.send(
            TxnCommit(self._number(), 3, group, producer, 0, generation, member_id, instance, topic, 0, 8)
        ).error

    def end_transaction(self, commits: bool = True, producer: int = 1) -> int:
        """The marker of a transaction; returns its error code."""
        return self.send(TxnEnd(self._number(), producer, commits)).error

    def delete_offsets(self, *topics: str, group: str = GROUP) -> tuple[int, list[int]]:
        """OffsetDelete of partition 0 of each topic; returns its error code and those of the topics, sorted by name."""
        answer = self.send(OffsetDelete(self._number(), group, tuple((topic, 0) for topic in topics))).answer
        return answer.error_code, [error for _, error in answer.parts]

    def delete(self, group: str = GROUP) -> int:
        """DeleteGroups; returns the error code."""
        return self.send(DeleteGroups(self._number(), (group,))).error

    def store(self, *requests: Request, error: int = 0) -> None:
        """The records of these requests are stored, or could not be."""
        for request in requests:
            self.send(Stored(self._number(), GROUP, request.number, error))

    def move(self) -> Context:
        """The coordinator moves: unloaded and loaded in one instant."""
        self.send(Unload(self._number()))
        self.send(Load(self._number()))
        return self

    def unload(self) -> None:
        self.send(Unload(self._number()))

    def load(self) -> None:
        self.send(Load(self._number()))

    # -- looking --------------------------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        view = self.coordinator.view(GROUP)
        assert view is not None, f"no group at {self._at_ms}"
        return view

    @property
    def gone(self) -> bool:
        return self.coordinator.view(GROUP) is None

    @property
    def state(self) -> str:
        return self.view.state

    @property
    def generation(self) -> int:
        return self.view.generation_id

    @property
    def members(self) -> list[str]:
        return [member.member_id for member in self.view.members]

    def member(self, member_id: str) -> MemberView:
        return next(member for member in self.view.members if member.member_id == member_id)

    def deadline(self, member_id: str) -> int:
        """When the member's session ends, -1 while nothing counts."""
        return self.member(member_id).session_deadline_at_ms

    def happened(self, kind: str) -> list[tuple[int, str]]:
        """Instant and member id of everything of a kind so far."""
        self.happenings += self.coordinator.take_happenings()
        return [(one.at_ms, one.member_id) for one in self.happenings if one.kind == kind]

    # -- short cuts -----------------------------------------------------------------------------------------------

    def stable(self, *member_ids: str, instances: bool = False, session: int = S, rebalance: int = R) -> Context:
        """Bring a new group to Stable in generation 1 with these members (the first leads), at now + D.

        With `instances` they are static, each under its own name in lower case.
        """
        for member_id in member_ids:
            instance = member_id.lower() if instances else None
            self.join(member_id, version=5 if instances else 3, instance=instance, session=session, rebalance=rebalance)
        self.sleep(self.settings.initial_rebalance_delay_ms)
        while self.state != "CompletingRebalance":  # Additions during the delay have extended it.
            self.sleep(self.settings.initial_rebalance_delay_ms)
        self.sync_all(1)
        return self

    def sync_all(self, generation: int) -> None:
        """Everybody syncs, the leader last."""
        leader = self.view.leader
        assert leader is not None
        for member_id in [one for one in self.members if one != leader]:
            self.sync(member_id, generation)
        self.sync(leader, generation, {member_id: member_id.encode() for member_id in self.members})
        assert self.state == "Stable"

    def _number(self) -> int:
        self._requests += 1
        return self._requests

    def _keep(self, answers: list[Answer]) -> None:
        for answer in answers:
            assert answer.number not in self.answers, f"request {answer.number} is answered twice"
            self.answers[answer.number] = answer


def subscription(*topics: str) -> bytes:
    """A consumer protocol subscription of version 0."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)
