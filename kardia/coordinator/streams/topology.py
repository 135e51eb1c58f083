"""Whether the cluster's topics fit a topology, which topics the application lacks, and how many tasks there are.

Decides on values only. Follows `InternalTopicManager`, `RepartitionTopics`, `CopartitionedTopicsEnforcer` and
`ChangelogTopics`. Where Kafka walks through a hash map of subtopologies, this goes by their ids, which is the same for
the small numbers that clients give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.errors import RefusedError
from kardia.coordinator.streams.operations import Subtopology, Topology
from kardia.coordinator.streams.status import Status
from kardia.kafka.states import ErrorCode

Cluster = Mapping[str, Topic]
"""Topics by name."""


class Configured(NamedTuple):
    """A topology held against the topics of the cluster. `status` is None when all is there and fits."""

    status: Status | None
    tasks: Mapping[str, int] | None
    """How many tasks each subtopology has; None when that cannot be said."""
    missing: Mapping[str, int]
    """Topics of the application that do not exist, with the partitions they need."""

    @property
    def is_ready(self) -> bool:
        """Whether there are tasks to be assigned."""
        return self.status is None


class _UnfitError(Exception):
    """The topics of the cluster do not fit."""

    def __init__(self, status: Status) -> None:
        super().__init__(str(status))
        self.status = status


def required_topics(topology: Topology) -> set[str]:
    """Names of the topics that a topology reads from, and of its changelogs."""
    return {
        name for one in topology.subtopologies for name in (*_inputs(one), *(topic.name for topic in one.changelogs))
    }


def configure(topology: Topology, cluster: Cluster) -> Configured:
    """The topology as it can run in this cluster. Raises RefusedError for one that can run in none."""
    parts = sorted(topology.subtopologies)
    try:
        if any(name not in cluster for one in parts for name in one.sources):
            raise _UnfitError(Status.MISSING_SOURCE_TOPICS)
        decided = _decide(parts, cluster)
        tasks = {one.subtopology_id: max(_count(name, cluster, decided) for name in _inputs(one)) for one in parts}
        wanted = {
            topic.name: topic.partitions or decided[topic.name]
            for one in parts
            for topic in (*one.repartitions, *one.changelogs)
        }
        if any(cluster[name].partitions != partitions for name, partitions in wanted.items() if name in cluster):
            raise _UnfitError(Status.INCORRECTLY_PARTITIONED_TOPICS)
    except _UnfitError as unfit:
        return Configured(unfit.status, None, {})
    missing = {name: partitions for name, partitions in wanted.items() if name not in cluster}
    return Configured(Status.MISSING_INTERNAL_TOPICS if missing else None, tasks, missing)


def _inputs(one: Subtopology) -> tuple[str, ...]:
    return (*one.sources, *(topic.name for topic in one.repartitions))


def _count(name: str, cluster: Cluster, decided: Mapping[str, int]) -> int:
    """Partitions that a topic has, or is to have. Raises RefusedError when that is open: Kafka has no word for it."""
    if name in cluster:
        return cluster[name].partitions
    if name not in decided:
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return decided[name]


def _decide(parts: Iterable[Subtopology], cluster: Cluster) -> dict[str, int]:
    """How many partitions the topics of the application need."""
    parts = list(parts)
    decided = _repartitions(parts, cluster)
    fixed = {topic.name for one in parts for topic in one.repartitions if topic.partitions}
    flexible = {topic.name for one in parts for topic in one.repartitions if not topic.partitions}
    for one in parts:
        for together in one.copartitioned:
            decided |= _together(set(together), fixed, flexible, cluster, decided)
    for one in parts:
        if not _inputs(one):
            raise RefusedError(ErrorCode.STREAMS_INVALID_TOPOLOGY)
        most = max(_count(name, cluster, decided) for name in _inputs(one))
        decided |= {topic.name: most for topic in one.changelogs}
    return decided


def _repartitions(parts: list[Subtopology], cluster: Cluster) -> dict[str, int]:
    """What is written to has as many partitions as the largest of what is read to write it."""
    found = {topic.name: topic.partitions for one in parts for topic in one.repartitions if topic.partitions}
    while open_ones := [(one, name) for one in parts for name in one.sinks if name not in found]:
        known = len(found)
        for one, name in open_ones:
            counts = [found[topic.name] for topic in one.repartitions if topic.name in found]
            counts += [cluster[source].partitions for source in one.sources]
            if counts and name not in found:
                found[name] = max(counts)
        if len(found) == known:
            raise RefusedError(ErrorCode.STREAMS_INVALID_TOPOLOGY)
    if any(topic.name not in found for one in parts for topic in one.repartitions):
        raise RefusedError(ErrorCode.STREAMS_INVALID_TOPOLOGY)
    return found


def _together(
    names: set[str], fixed: set[str], flexible: set[str], cluster: Cluster, decided: Mapping[str, int]
) -> dict[str, int]:
    """Partitions of repartition topics that must have as many as what they are joined with."""
    counts = {name: _count(name, cluster, decided) for name in names}
    own = {name: count for name, count in counts.items() if name in fixed | flexible}
    others = {count for name, count in counts.items() if name not in own}
    if len(others) > 1:
        raise _UnfitError(Status.INCORRECTLY_PARTITIONED_TOPICS)
    if others:
        (number,) = others
    elif fixed and own:
        # Every topic with a fixed number counts, also those of other sets.
        numbers = {_count(name, cluster, decided) for name in fixed}
        if len(numbers) > 1:
            raise _UnfitError(Status.INCORRECTLY_PARTITIONED_TOPICS)
        (number,) = numbers
    else:
        number = max(own.values(), default=0)
    if any(count != number for name, count in own.items() if name in fixed):
        raise _UnfitError(Status.INCORRECTLY_PARTITIONED_TOPICS)
    return dict.fromkeys(own, number)
