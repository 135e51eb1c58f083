"""What was read of a group's members, kept until Kafka's classes hold something else.

To read a value of Java costs a microsecond, and a member has some fifty. Members and their targets are values that
Kafka replaces as a whole and that are equal only if each of their fields is (`tests/truth/test_read_before.py`): one
question for equality spares reading them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.truth.oracle.jvm import each, jclass

_ENOUGH = 100_000
"""Texts of maps that are kept; then all are forgotten."""


class _Group(NamedTuple):
    """Kafka's maps by member id as they were, and what was read of them."""

    members: Any
    targets: Any
    read: dict[str, Any]


class Members:
    """Of every group the members that were read last."""

    def __init__(self, read: Callable[[str, Any, Any], Any]) -> None:
        """`read` makes a view of a member id, a member and its target."""
        self._read = read
        self._groups: dict[str, _Group] = {}
        self._map = jclass("java.util.HashMap")
        self._identity = jclass("java.lang.System").identityHashCode
        self._seen: dict[tuple[str, str], tuple[tuple[int, int], Any, Any]] = {}
        """By group and member: of which objects what was read, and these: held on to, they keep their identity."""

    def clear(self) -> None:
        """A new history."""
        self._groups.clear()
        self._seen.clear()

    def of(self, group_id: str, group: Any, target: Callable[[str], Any]) -> dict[str, Any]:
        """Views of a group's members by their ids. `target`: what a member is to have."""
        members, targets = group.members(), group.targetAssignment()
        before = self._groups.get(group_id)
        if before is not None and before.members.equals(members) and before.targets.equals(targets):
            return before.read
        found: dict[str, Any] = {}
        for member in each(members.values()):
            member_id = str(member.memberId())
            given = target(member_id)
            identity = (self._identity(member), self._identity(given))
            seen = self._seen.get((group_id, member_id))
            if seen is None or seen[0] != identity:
                seen = (identity, self._read(member_id, member, given), (member, given))
                self._seen[group_id, member_id] = seen
            found[member_id] = seen[1]
        self._groups[group_id] = _Group(self._map(members), self._map(targets), found)
        return found


class Texts:
    """What was read of maps, by their text in Java."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._read: dict[tuple[str, str], Any] = {}

    def of(self, given: Any, read: Callable[[Any], Any], of_what: str = "") -> Any:
        """What `read` makes of a map, by its text, which says all that is in it, and of what it is. A part without a
        text of its own shows as CLASS@NUMBER: then it is read."""
        text = (of_what, str(given))
        if "@" in text[1]:
            return read(given)
        found = self._read.get(text)
        if found is None:
            if len(self._read) >= _ENOUGH:
                self._read.clear()
            found = self._read[text] = read(given)
        return found
