"""A member that Kafka's classes say is equal is equal in every field that is read of it.

Goal: a view that is kept while `equals` says so is never an old one (`oracle/read_before.py`). Method: two members that
are built alike differ for `equals` as soon as one field of one of them is another, field by field.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from tests.truth.oracle import VERSIONS, jvm

GROUP = "org.apache.kafka.coordinator.group."
METADATA = GROUP + "generated.ConsumerGroupMemberMetadataValue$ClassicMemberMetadata"
NOT_READ = {"ShareGroupMember.instanceId"}
"""No member of a share group has one."""


def unnoticed(version: str) -> list[str]:
    """CLASS.FIELD of what `equals` does not look at. Starts Java in this process."""
    jvm.start(version)
    found: list[str] = []
    for name in ("modern.consumer.ConsumerGroupMember", "modern.share.ShareGroupMember"):
        kind = jvm.jclass(GROUP + name).class_
        build = jvm.jclass(f"{GROUP}{name}$Builder")
        for one in (*kind.getDeclaredFields(), *kind.getSuperclass().getDeclaredFields()):
            one.setAccessible(True)
            changed = build("member").build()
            one.set(changed, _other(one.getType()))
            if changed.equals(build("member").build()):
                found.append(f"{name.rsplit('.', 1)[-1]}.{one.getName()}")
    assignment, maps = jvm.jclass(GROUP + "modern.Assignment"), jvm.jclass("java.util.Map")
    if assignment(maps.of()).equals(assignment(maps.of("topic", "partitions"))):
        found.append("Assignment.partitions")
    return found


def values_of_streams(version: str) -> list[bool]:
    """Whether what is read of a streams group is records: never changed, and their `equals` is made of every part."""
    jvm.start(version)
    names = (
        "StreamsGroupMember",
        "TasksTuple",
        "topics.ConfiguredTopology",
        *(("TasksTupleWithEpochs",) if version == VERSIONS[-1] else ()),
    )
    return [bool(jvm.jclass(f"{GROUP}streams.{name}").class_.isRecord()) for name in names]


def _other(kind: Any) -> Any:
    """A value of a type that no member has who has just been built."""
    if kind.isEnum():
        return list(kind.getEnumConstants())[-1]
    makers: dict[str, Callable[[], Any]] = {
        "int": lambda: jvm.jclass("java.lang.Integer")(77),
        "String": lambda: "another",
        "Set": lambda: jvm.jclass("java.util.Set").of("another"),
        "Map": lambda: jvm.jclass("java.util.Map").of("another", "value"),
        "ClassicMemberMetadata": lambda: jvm.jclass(METADATA)(),
    }
    return makers[str(kind.getSimpleName())]()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_equal_members_are_equal_in_every_field(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert set(process.submit(unnoticed, version).result(timeout=120)) == NOT_READ
        assert all(process.submit(values_of_streams, version).result(timeout=120))
