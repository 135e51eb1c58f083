"""How a group that is unknown becomes known again: by a join phase that ends with the leader's full list."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from kardia.coordinator.classic import operations as ops
from kardia.follow.clues import Clue
from kardia.follow.model import Model, Seat
from kardia.follow.tolerances import GATHERED_MAX, INSTANT_MS
from kardia.kafka.states import ErrorCode

SESSION_MS, REBALANCE_MS = 10_000, 60_000
"""Of a member of which no request was seen, nor of any other."""


class Gathered:
    """JoinGroups of a group that is unknown, and the generation that it was last seen in."""

    def __init__(self) -> None:
        self._joins: deque[Clue] = deque(maxlen=GATHERED_MAX)
        self._generation_id = -1

    def take(self, clue: Clue) -> None:
        """One more request."""
        operation = clue.operation
        if isinstance(operation, ops.Join):
            self._joins.append(clue)
        elif isinstance(operation, ops.Heartbeat | ops.Sync | ops.Commit) and clue.error_code == ErrorCode.NONE:
            self._generation_id = max(self._generation_id, operation.generation_id)

    def clear(self) -> None:
        """The group is known."""
        self._joins.clear()
        self._generation_id = -1

    def forget_generation(self) -> None:
        """Another coordinator may be in an older one."""
        self._generation_id = -1

    def leader(self, at_ms: int) -> Clue | None:
        """The JoinGroup of the leader of a phase that has ended by an instant, the first such."""
        listed = (
            one
            for one in self._joins
            if one.members
            and not one.skips
            and one.error_code == ErrorCode.NONE
            and one.answered_at_ms <= at_ms
            and one.generation_id > self._generation_id
        )
        return min(listed, key=lambda one: one.answered_at_ms, default=None)

    def burst(self, leader: Clue) -> list[Clue]:
        """Who was answered with the leader."""
        return [
            one
            for one in self._joins
            if one.error_code == ErrorCode.NONE
            and one.generation_id == leader.generation_id
            and abs(one.answered_at_ms - leader.answered_at_ms) <= INSTANT_MS
        ]

    def put(self, model: Model, leader: Clue, seats: Mapping[str, Seat]) -> bool:
        """Put the group together as the phase left it; whether all of its members were seen to join."""
        burst = self.burst(leader)
        end_ms = min(one.answered_at_ms for one in burst)
        asked = {one.member_id: seat_of(one) for one in burst}
        name = leader.protocol_name
        like = next(iter(asked.values()))
        found = []
        for member_id, instance_id in leader.instances:
            seat = asked.get(member_id) or seats.get(member_id)
            guess = Seat(member_id, instance_id, like.session_timeout_ms, like.rebalance_timeout_ms, like.protocols)
            found.append((seat or guess)._replace(instance_id=instance_id))
        used = {one.operation.member_id for one in self._joins if isinstance(one.operation, ops.Join)}
        pending = [
            (one.member_id, one.at_ms + one.operation.session_timeout_ms)
            for one in self._joins
            if one.error_code == ErrorCode.MEMBER_ID_REQUIRED
            and isinstance(one.operation, ops.Join)
            and one.member_id not in used
            and one.at_ms <= end_ms < one.at_ms + one.operation.session_timeout_ms
        ]
        kind = leader.operation.protocol_type if isinstance(leader.operation, ops.Join) else "consumer"
        model.chosen.learn(leader.generation_id, leader.leader, name, end_ms)
        model.put(leader.generation_id, leader.leader, name, kind, found, pending, end_ms)
        return all(one.member_id in asked for one in found)


def seat_of(clue: Clue) -> Seat:
    """What a member asked for."""
    operation = clue.operation
    if not isinstance(operation, ops.Join):
        return Seat(clue.member_id, "", SESSION_MS, REBALANCE_MS, ())
    rebalance_ms = operation.session_timeout_ms if operation.version == 0 else operation.rebalance_timeout_ms
    return Seat(
        clue.member_id,
        operation.group_instance_id or "",
        operation.session_timeout_ms,
        rebalance_ms,
        operation.protocols,
    )
