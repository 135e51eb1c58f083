"""Partitions on their way in a group that has epochs: from whom, to whom. Reads the observer's state; decides nothing.

Target and current assignment side by side: what a member has and its target has not it is to give up, whether it has
been told so or not; what its target has and it has not it is to get, from whoever has it still. Targets are in records
only; without them there is what a member was told to give up, and not for whom. Nobody owns a partition of a share
group, so that one there comes from nobody. Sources: `CurrentAssignmentBuilder`, `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from kardia.observe.state.group import Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember, Partitions
from kardia.observe.state.partitions import named, together, without

MOVING_MAX = 50
"""Partitions that one row of a member tells of; its counts have all."""


ASSIGNED_CHARS_MAX = 1_000
"""Length of what one row says of the partitions of a member: some hundred of them, more where they are in a row."""


class Targets:
    """Whose target has which partition, of a group at an instant; looked for when it is first asked for."""

    def __init__(self, group: Group) -> None:
        """Look at nobody yet."""
        self._group = group
        self._owners: dict[str, str] | None = None

    def owner_of(self, name: str) -> str | None:
        """The member whose target has a partition, given as `topic id:number`."""
        if self._owners is None:
            self._owners = {
                name: member.member_id
                for member in self._group.members.values()
                if _is_there(member) and member.modern is not None and member.modern.target
                for name in named(member.modern.target)
            }
        return self._owners.get(name)


def moving(group: Group, member: Member, targets: Targets) -> list[dict[str, Any]] | None:
    """Entries of `health.moving` of a member; None where nothing is known to be on its way."""
    own, modern = member.modern, group.modern
    if own is None or modern is None or not _is_there(member):
        return None
    has = own.assigned if not own.revoking else together(own.assigned or {}, own.revoking)
    if not own.revoking and (own.target is None or has is None or has == own.target):
        return None
    gives = _gives_up(modern, own, has or {})
    gets = without(own.target, has) if own.target is not None and has is not None else {}
    entries = [_entry(modern, name, member.member_id, targets.owner_of(name)) for name in _first(gives)]
    for name in _first(gets):
        holder = group.members.get(modern.owners.get(name, "")) if name not in modern.unowned else None
        holder_id = holder.member_id if holder is not None and _is_there(holder) else None
        entries.append(_entry(modern, name, holder_id, member.member_id))
    return entries[:MOVING_MAX] or None


def assigned(group: Group, member: Member) -> tuple[str | None, str | None]:
    """What a member has and what it is to have, each by topic, as Kafka's tool shows it; None where not known."""
    own, modern = member.modern, group.modern
    if own is None or modern is None or not _is_there(member):
        return None, None
    has = own.assigned if not own.revoking else together(own.assigned or {}, own.revoking)
    return _told(modern, has), _told(modern, own.target)


def _told(modern: ModernGroup, partitions: Partitions | None) -> str | None:
    if partitions is None:
        return None
    topics = sorted((_topic(modern, topic), numbers) for topic, numbers in partitions.items() if numbers)
    text = ";".join(f"{topic}:{','.join(_runs(numbers))}" for topic, numbers in topics)
    return text if len(text) <= ASSIGNED_CHARS_MAX else text[: ASSIGNED_CHARS_MAX - 1] + "…"


def _runs(numbers: Iterable[int]) -> Iterator[str]:
    """Numbers in order as `0-3`, `7`."""
    for _, run in groupby(enumerate(sorted(numbers)), lambda one: one[1] - one[0]):
        first, *rest = (number for _, number in run)
        yield f"{first}-{rest[-1]}" if rest else str(first)


def _topic(modern: ModernGroup, topic: str) -> str:
    return f"subtopology-{topic}" if modern.protocol == "streams" else modern.topic_names.get(topic, topic)


def _is_there(member: Member) -> bool:
    """Not if a record says that it is a member no more, and nothing says yet why."""
    return member.modern is not None and member.modern.gone_at_ms < 0


def _gives_up(modern: ModernGroup, own: ModernMember, has: Partitions) -> Partitions:
    if modern.protocol == "share":
        return {}
    return together(without(has, own.target) if own.target is not None else {}, own.revoking)


def _first(partitions: Partitions) -> list[str]:
    return list(islice(named(partitions), MOVING_MAX))


def _entry(modern: ModernGroup, name: str, from_id: str | None, to_id: str | None) -> dict[str, Any]:
    topic, _, number = name.rpartition(":")
    return {
        "topic": _topic(modern, topic),
        "partition": int(number),
        "from_member_id": from_id,
        "to_member_id": to_id if to_id != from_id else None,
    }
