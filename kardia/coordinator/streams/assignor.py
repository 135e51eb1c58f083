"""What the assignor of streams groups gives to whom is asked for (`Choose`), as it goes by hashes, and held against the
laws that it keeps. Follows what `StickyTaskAssignor` promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kardia.coordinator.streams.group import NO_TASKS, Tasks
from kardia.coordinator.streams.operations import Task

Target = Mapping[str, Tasks]


class Worker(NamedTuple):
    """A member as the assignor sees it."""

    member_id: str
    process_id: str


class Work(NamedTuple):
    """All there is to do: how many tasks each subtopology has, and which of them keep a state."""

    tasks: Mapping[str, int]
    stateful: frozenset[str]
    standbys: int
    """Replicas of each task that keeps a state."""

    def every(self) -> list[Task]:
        """All tasks, in order."""
        return [(one, number) for one in sorted(self.tasks) for number in range(self.tasks[one])]


class Choose(Protocol):
    """Answers what Kafka leaves to hashes."""

    def assign(self, group_id: str, workers: Sequence[Worker], work: Work) -> Target:
        """What the assignor makes of these."""
        ...

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:
        """The order in which sessions are armed at one instant. All ids."""
        ...


class RoundRobin:
    """The default answer: tasks go round the members, standbys to the next ones of other processes."""

    def assign(self, group_id: str, workers: Sequence[Worker], work: Work) -> Target:  # noqa: ARG002
        """In order of tasks and ids."""
        active: dict[str, set[Task]] = {one.member_id: set() for one in workers}
        standby: dict[str, set[Task]] = {one.member_id: set() for one in workers}
        ordered = sorted(workers)
        for place, task in enumerate(work.every()):
            turn = place % len(ordered)
            active[ordered[turn].member_id].add(task)
            used, left = {ordered[turn].process_id}, work.standbys if task[0] in work.stateful else 0
            for one in (*ordered[turn + 1 :], *ordered[:turn]):
                if left and one.process_id not in used:
                    standby[one.member_id].add(task)
                    used.add(one.process_id)
                    left -= 1
        return {one: Tasks(frozenset(active[one]), frozenset(standby[one])) for one in active}

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:  # noqa: ARG002
        """By id."""
        return member_ids


def broken_law(workers: Sequence[Worker], work: Work, target: Target) -> str:
    """What a target does that the assignor never does; "" when it keeps all laws."""
    given: Counter[Task] = Counter()
    replicas: Counter[Task] = Counter()
    on: Counter[tuple[Task, str]] = Counter()
    for member_id, process_id in workers:
        part = target.get(member_id, NO_TASKS)
        given.update(part.active)
        replicas.update(part.standby)
        on.update((task, process_id) for task in (*part.active, *part.standby))
        if part.warmup:
            return f"{member_id} gets {sorted(part.warmup)} to warm up, which no release gives"
    every = work.every()
    if given != Counter(every):
        return f"{sorted(given.elements())} are active of {every}"
    for task, count in replicas.items():
        if task[0] not in work.stateful or count > work.standbys:
            return f"{task} has {count} standbys"
    twice = sorted(task for (task, _), count in on.items() if count > 1)
    return f"{twice} are twice in one process" if twice else ""
