"""What differs between a group at two instants: its state, who came, who went, whose settings or health changed.

Pure: two views and the rows between them in, a plain dict out. Who came and went in between without being there at
either instant is told as well, because that is what a comparison of two pictures hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from api.answers import as_dicts
from api.present.current import GroupView
from api.present.freshness import Freshness

OF_GROUP = ("state", "state_cause", "state_certainty", "generation_id", "status")
OF_MEMBER = (
    "group_instance_id",
    "client_id",
    "client_host",
    "client_software_name",
    "client_software_version",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "broker",
    "status",
)


def between(
    before: GroupView, after: GroupView, told: tuple[Freshness, Freshness], lives: Iterable[Any], limit: int
) -> dict[str, Any]:
    """The differences; `lives` are the standing lives of the group that began by the second instant.

    At most `limit` members in each list; `left_off` counts the rest.
    """
    from_ms, to_ms = told[0].now_ms, told[1].now_ms
    then, now = (
        {(row.member_id, row.joined_at_ms): as_dicts.member(view, row, freshness) for row in view.lives.values()}
        for view, freshness in zip((before, after), told, strict=True)
    )
    ended = [row for row in lives if row.ended_at_ms is not None and from_ms < row.ended_at_ms <= to_ms]
    passing = [row for row in ended if row.joined_at_ms > from_ms]
    left_off: dict[str, int] = {}

    def cut(name: str, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        left_off[name] = max(0, len(found) - limit)
        return list(found[:limit])

    changed = []
    for key in sorted(then.keys() & now.keys()):
        fields = _changed(then[key], now[key], OF_MEMBER)
        if fields:
            changed.append({"href": now[key]["href"], "member_id": key[0], "changed": fields})
    return {
        "group": {
            "href": as_dicts.group_href(after.cluster_id, after.group_id),
            "cluster_id": after.cluster_id,
            "group_id": after.group_id,
            "changed": _changed(as_dicts.group(before, told[0]), as_dicts.group(after, told[1]), OF_GROUP),
            "members_before": len(then),
            "members_after": len(now),
        },
        "came": cut("came", [now[key] for key in sorted(now.keys() - then.keys(), key=_by_join)]),
        "went": cut("went", [as_dicts.eviction(row) for row in _by_end(ended) if row not in passing]),
        "came_and_went": cut("came_and_went", [as_dicts.eviction(row) for row in _by_end(passing)]),
        "changed": cut("changed", changed),
        "left_off": left_off,
    }


def _changed(before: dict[str, Any], after: dict[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "before": before[name], "after": after[name]} for name in names if before[name] != after[name]
    ]


def _by_join(key: tuple[str, int]) -> tuple[int, str]:
    return key[1], key[0]


def _by_end(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: (row.ended_at_ms, row.member_id))
