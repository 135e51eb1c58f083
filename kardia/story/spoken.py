"""What a group and its members speak, and the words that belong to that: epochs or generations, tasks or partitions.

A group without members speaks what it spoke last; one that changes its protocol, what it spoke at the instant.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS
from kardia.story.facts import Material, Row

CLASSIC = "classic"


def at(material: Material, at_ms: int) -> str:
    """What a group spoke at an instant: by the last rebalance, join or conversion up to it."""
    signs = [(row["started_at_ms"], row.get("protocol")) for row in material.rebalances]
    # A member of the classic protocol may be one of a consumer group.
    signs += [(life["joined_at_ms"], life["protocol"]) for life in material.lives if has_epochs(life["protocol"])]
    signs += [(row["at_ms"], CLASSIC) for row in material.transitions if row["cause"] == "downgraded"]
    known = [(since_ms, protocol) for since_ms, protocol in signs if protocol and since_ms <= at_ms]
    return str(max(known, key=lambda sign: sign[0])[1]) if known else CLASSIC


def has_epochs(protocol: str | None) -> bool:
    """Whether groups of a protocol have epochs."""
    return protocol in PROTOCOLS_WITH_EPOCHS


def unit(protocol: str | None) -> str:
    """What such a group counts."""
    return "epoch" if has_epochs(protocol) else "generation"


def piece(protocol: str | None) -> str:
    """What its members are given."""
    return "task" if protocol == "streams" else "partition"


def number_at(material: Material, at_ms: int, row: Row) -> int | None:
    """Generation or epoch of a group at an instant; `row` is its last change of state, which need not be one of it."""
    number: int | None = row["generation_id"]
    since = [
        one["generation_after"]
        for one in material.rebalances
        if has_epochs(one.get("protocol")) and row["at_ms"] <= one["started_at_ms"] <= at_ms and one["generation_after"]
    ]
    return max([*since, number], default=None) if number is not None and has_epochs(at(material, at_ms)) else number


def of(material: Material, member_id: str | None, at_ms: int) -> str:
    """What a member spoke at an instant; in a group with epochs one of the classic protocol keeps its own rules."""
    life = material.life_at(member_id, at_ms)
    return str(life["protocol"]) if life is not None and life["protocol"] else at(material, at_ms)


def heading(rows: Iterable[Row]) -> str:
    """What stands over the numbers of some rebalances."""
    units = sorted({unit(row.get("protocol")) for row in rows}, reverse=True)
    return " or ".join(units) or "generation"
