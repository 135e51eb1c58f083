"""Numbers in the records of groups that have epochs: what a record is about, by its type, and the states of members.

Source: `GroupCoordinatorRecordHelpers` and the schemas of the records, Kafka 4.0 to 4.4. Decides nothing.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.kafka.states import MemberState

EPOCH, MEMBER, COMPUTED = frozenset({3, 11, 17}), frozenset({5, 10, 19}), frozenset({6, 12, 20})
EXPRESSION = 16
TARGET, CURRENT = frozenset({7, 13, 21}), frozenset({8, 14, 22})

STATES: dict[str, dict[int, MemberState]] = {
    "consumer": {0: MemberState.STABLE, 1: MemberState.UNREVOKED, 2: MemberState.UNRELEASED},
    "share": {0: MemberState.STABLE},
    "streams": {1: MemberState.STABLE, 2: MemberState.UNREVOKED, 3: MemberState.UNRELEASED},
}
"""Numbers of the states of members, which differ by protocol."""


def type_of(event: Event) -> int:
    """Type of a record, -1 where it is none of these groups."""
    return int((event.detail or {}).get("record_type", -1))


def is_tombstone(event: Event) -> bool:
    """Whether a record takes back the one before it."""
    return bool((event.detail or {}).get("tombstone"))
