"""One step of a member towards its target: what it keeps, gives up, gets, and waits for. Decides on values only.

Follows `CurrentAssignmentBuilder`. `owned` is what the heartbeat reports as owned: None reports nothing, and what has
to be given up counts as owned still. A process never has a task twice, whichever of its members has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from kardia.coordinator.streams.behaviour import StreamsBehaviour
from kardia.coordinator.streams.group import NOTHING_HELD, Held, Member, MemberState, Processes, Tasks
from kardia.coordinator.streams.operations import Task


class Aim(NamedTuple):
    """Where a member is to go, and what is known on the way."""

    epoch: int
    target: Tasks
    owned: Tasks | None
    processes: Processes


def reconcile(member: Member, aim: Aim, behaviour: StreamsBehaviour) -> Member:
    """The member after this heartbeat."""
    if member.reached(aim.epoch):
        return member
    if member.state is not MemberState.UNREVOKED:
        return _next(member, aim, member.epoch, behaviour)
    if _holds(aim, member.pending.plain()):
        return member
    return _next(member, aim, member.epoch + 1, behaviour)


def _holds(aim: Aim, tasks: Tasks) -> bool:
    """Whether it has not been said that these are given up."""
    return aim.owned is None or any(own & part for own, part in zip(aim.owned, tasks, strict=True))


def _next(member: Member, aim: Aim, epoch: int, behaviour: StreamsBehaviour) -> Member:
    step = _Step(member, aim, behaviour.keeps_replicas_in_place)
    if behaviour.keeps_replicas_in_place:
        step.change_roles()
    revoked = Held(
        {task: since for task, since in member.assigned.active.items() if task not in aim.target.active},
        frozenset(step.revoked_standby),
        frozenset(step.revoked_warmup),
    )
    must_revoke = bool(revoked) and _holds(aim, revoked.plain())
    if behaviour.keeps_replicas_in_place:
        step.keep_until_active(must_revoke)
    active = {task: since for task, since in member.assigned.active.items() if task in aim.target.active}
    kept = Held(active, frozenset(step.standby), frozenset(step.warmup))
    if must_revoke:
        return _at(member, epoch, MemberState.UNREVOKED, kept, revoked)
    since = aim.epoch if behaviour.counts_the_epoch_of_a_task else 0
    gets = Held(
        active | dict.fromkeys(step.free_active, since),
        kept.standby | step.free_standby,
        kept.warmup | step.free_warmup,
    )
    state = MemberState.UNRELEASED if step.waits else MemberState.STABLE
    return _at(member, aim.epoch, state, gets, NOTHING_HELD)


def _at(member: Member, epoch: int, state: MemberState, assigned: Held, pending: Held) -> Member:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, pending=pending)


class _Step:
    """What of the target is kept, given up, and free to be got, by role."""

    def __init__(self, member: Member, aim: Aim, in_place: bool) -> None:
        self._member, self._target = member, aim.target
        self._processes = aim.processes
        self._in_place = in_place
        has = member.assigned
        self.standby, self.warmup = set(has.standby & aim.target.standby), set(has.warmup & aim.target.warmup)
        self.revoked_standby, self.revoked_warmup = set(has.standby - self.standby), set(has.warmup - self.warmup)
        self.waits = False
        self.free_active = self._free(aim.target.active.difference(has.active), self._active_is_taken)
        self.free_standby = self._free(aim.target.standby - self.standby, self._standby_is_taken)
        self.free_warmup = self._free(aim.target.warmup - self.warmup, self._warmup_is_taken)

    def _free(self, wanted: Iterable[Task], is_taken: Callable[[Task], bool]) -> set[Task]:
        wanted = set(wanted)
        free = {task for task in wanted if not is_taken(task)}
        self.waits = self.waits or len(free) < len(wanted)
        return free

    def _replica_elsewhere(self, task: Task) -> tuple[bool, bool]:
        """Whether its process has the task as a standby, and as a warmup; from 4.4, other than by the member."""
        process_id, has = self._member.process_id, self._member.assigned
        standby, warmup = (process_id in processes for processes in self._processes.replicas(task))
        if self._in_place:
            return standby and task not in has.standby, warmup and task not in has.warmup
        return standby, warmup

    def _active_is_taken(self, task: Task) -> bool:
        return task in self._processes.active or any(self._replica_elsewhere(task))

    def _standby_is_taken(self, task: Task) -> bool:
        process_id = self._member.process_id
        runs = self._processes.active.get(task) == process_id
        if self._in_place:
            runs = runs and task not in self._member.assigned.active
        standby, _ = self._processes.replicas(task)
        return runs or process_id in standby or self._replica_elsewhere(task)[1]

    def _warmup_is_taken(self, task: Task) -> bool:
        process_id = self._member.process_id
        _, warmup = self._processes.replicas(task)
        runs = self._processes.active.get(task) == process_id
        return runs or self._replica_elsewhere(task)[0] or process_id in warmup

    def change_roles(self) -> None:
        """From 4.4: an active task becomes a standby, and replicas change their kind, at once."""
        has = self._member.assigned
        for task in self.free_standby.intersection(has.active):
            self.free_standby.discard(task)
            self.standby.add(task)
        for task in self.free_warmup & has.standby:
            self.free_warmup.discard(task)
            self.warmup.add(task)
            self.revoked_standby.discard(task)
        for task in self.free_standby & has.warmup:
            self.free_standby.discard(task)
            self.standby.add(task)
            self.revoked_warmup.discard(task)
        # What becomes active is not given up before.
        self.revoked_standby -= self._target.active
        self.revoked_warmup -= self._target.active

    def keep_until_active(self, must_revoke: bool) -> None:
        """From 4.4: a replica that is to become active stays until it does."""
        granted = set() if must_revoke else self.free_active
        has = self._member.assigned
        self.standby |= (has.standby & self._target.active) - granted
        self.warmup |= (has.warmup & self._target.active) - granted
