"""Whom a load names. The coordinator of 2.8 to 3.9 tells the members of every record of a group that it reads, also of
generations before, and then which generation the group is in; that of 2.5 to 2.7 tells the static ones.

Two lives of a group that both were in that generation cannot be told apart, so that who is named is `provisional`.
Source: `GroupMetadata.loadGroup`, `GroupMetadataManager.doLoadGroupsAndOffsets`.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Event
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.entries import Loading
from kardia.observe.state.group import Group

MAX_NAMED = 10_000
"""Members of one generation that are held of a group; `naming.MAX_NAMED` are held of it in the end."""

MAX_GROUPS = 10_000
"""Groups whose records are read and that are not loaded yet; the first are forgotten first."""


def note(facts: Facts, event: Event) -> None:
    """A record of a group names a member."""
    known = facts.loading.get(event.group_id)
    if known is None or known.generation != event.generation_id:
        facts.loading.pop(event.group_id, None)
        known = facts.loading[event.group_id] = Loading(event.shard, event.generation_id, {})
        if len(facts.loading) > MAX_GROUPS:
            del facts.loading[next(iter(facts.loading))]
    if len(known.entries) < MAX_NAMED:
        known.entries[event.group_instance_id or event.member_id] = _entry(event)


def _entry(event: Event) -> list[Any]:
    detail = event.detail or {}
    timeouts = [int(detail.get(f"{name}_timeout_ms", -1)) for name in ("session", "rebalance")]
    return [event.member_id, event.group_instance_id, event.client_id, event.client_host, *timeouts, []]


def take(facts: Facts, group: Group, generation: int) -> list[list[Any]]:
    """A group is loaded in a generation: its members as a record has them, if any of that was read."""
    known = facts.loading.pop(group.group_id, None)
    return list(known.entries.values()) if known is not None and known.generation == generation else []


def forget(facts: Facts, shard: int) -> None:
    """A shard is loaded: of whatever was read of it and not loaded, nothing is left."""
    for group_id in [name for name, one in facts.loading.items() if one.shard == shard]:
        del facts.loading[group_id]
