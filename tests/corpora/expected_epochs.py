"""What brokers say happened to groups with epochs, as `expect.json` of a recorded story. Reads server.log alone, with
patterns of its own: a mistake of the product's dialect would not show with those of `ingest`.

In share and streams groups the epoch that a fencing or a leave makes has no sentence: it is not among the rebalances.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from demo import server_log

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] \w+ \[GroupCoordinator[^\]]*\] (.*)")
_GROUP = re.compile(r"\[GroupId (?P<group>[^\]]*)\](?:\[MemberId (?P<owner>[^\]]*)\])? (?P<rest>.*)")
_EVICTED = re.compile(
    r"(?:Streams m|Static m|M)ember (?P<member>\S+) (?:with instance id \S+ )?fenced from the group because "
    r"(?P<why>the member session expired|it failed to transition|the .*?)[.( ]"
)
_LEFT = re.compile(
    r"(?:Static m|Dynamic m|M)ember (?P<member>\S+) (?:with instance id \S+ )?"
    r"(?:(?P<why>(?:temporarily )?left the \w+ group|left the \w+ group temporarily)|has left group through explicit "
    r"`LeaveGroup` request; client reason: (?P<reason>.*?) \()"
)
_EPOCH = re.compile(r"Bumped (?:streams )?group epoch to (?P<epoch>\d+)")
_TARGET = re.compile(r"Computed a new target assignment for epoch (?P<epoch>\d+)")
_REACHED = re.compile(r"Member (?P<member>\S+) new assignment state: epoch=(?P<epoch>-?\d+)")
_TASKS = re.compile(r"Member's new assignment state: epoch=(?P<epoch>-?\d+)")
_CONVERTED = re.compile(r"Converted (?P<what>the (?:empty )?(?:classic|consumer|streams|share) group to a \w+ group)")


class Said(NamedTuple):
    """A sentence about a group with epochs."""

    at_ms: int
    group_id: str
    owner: str
    rest: str
    broker: int


def sentences(log: Path, broker: int) -> Iterator[Said]:
    """All that concern a group."""
    for line in log.read_text(errors="replace").splitlines():
        stamped = _STAMP.match(line)
        about = _GROUP.match(stamped[3]) if stamped else None
        if stamped and about:
            second = datetime.strptime(stamped[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
            at_ms = int(second.timestamp()) * 1000 + int(stamped[2])
            yield Said(at_ms, about["group"], about["owner"] or "", about["rest"], broker)


def expectation(logs: Sequence[Path]) -> dict[str, Any]:
    """Evictions, leaves, epochs, conversions, and what is told of groups while they are classic ones."""
    said = sorted((one for number, log in enumerate(logs, 1) for one in sentences(log, number)), key=lambda one: one[0])
    evictions: list[dict[str, Any]] = []
    leaves: list[dict[str, Any]] = []
    rebalances: list[dict[str, Any]] = []
    open_epochs: dict[tuple[str, int], dict[str, Any]] = {}
    for one in said:
        base = {"group": one.group_id, "broker": one.broker}
        if found := _EVICTED.search(one.rest):
            evictions.append(base | {"member_id": found["member"], "t": one.at_ms, "why": found["why"]})
        elif found := _LEFT.search(one.rest):
            why = found["why"] or found["reason"]
            leaves.append(base | {"member_id": found["member"], "t": one.at_ms, "why": why, "kind": "leave848"})
        elif found := _EPOCH.search(one.rest):
            epoch = int(found["epoch"])
            new = {"kind": "modern", "to_gen": epoch, "t_start": one.at_ms, "members_at_epoch": {}}
            rebalances.append(base | new)
            open_epochs[one.group_id, epoch] = rebalances[-1]
        elif found := _TARGET.search(one.rest):
            if (one.group_id, int(found["epoch"])) in open_epochs:
                open_epochs[one.group_id, int(found["epoch"])].setdefault("t_target", one.at_ms)
        elif found := _REACHED.search(one.rest) or _TASKS.search(one.rest):
            member = found.groupdict().get("member") or one.owner
            if (one.group_id, int(found["epoch"])) in open_epochs:
                reached = open_epochs[one.group_id, int(found["epoch"])]["members_at_epoch"]
                reached.setdefault(member, one.at_ms)
        elif found := _CONVERTED.search(one.rest):
            rebalances.append(base | {"kind": "conversion", "t_start": one.at_ms, "reason": found["what"]})
    add_classic(logs, evictions, leaves, rebalances)
    return {
        "evictions": sorted(evictions, key=lambda one: one["t"]),
        "leaves": sorted(leaves, key=lambda one: one["t"]),
        "rebalances": sorted(rebalances, key=lambda one: one["t_start"]),
    }


def add_classic(
    logs: Sequence[Path],
    evictions: list[dict[str, Any]],
    leaves: list[dict[str, Any]],
    rebalances: list[dict[str, Any]],
) -> None:
    """What the coordinator says of a group that is a classic one then."""
    known = {(one["group"], one["member_id"], one["t"]) for one in (*evictions, *leaves)}
    for number, log in enumerate(logs, 1):
        for fact in server_log.facts(log.read_text(errors="replace").splitlines(), UTC):
            base = {"group": fact.group_id, "broker": number}
            if (fact.group_id, fact.member_id, fact.at_ms) in known:
                continue
            if fact.what == server_log.MEMBER_FAILED:
                evictions.append(
                    base | {"member_id": fact.member_id, "t": fact.at_ms, "why": "the member session expired"}
                )
            elif fact.what in (server_log.NOT_JOINED, server_log.NOT_SYNCED):
                joined = fact.what == server_log.NOT_SYNCED
                why = f"it had not {'synced in time' if joined else 'joined when the join phase was over'}"
                evictions.append(base | {"member_id": fact.member_id, "t": fact.at_ms, "why": why})
            elif fact.what == server_log.MEMBER_LEFT:
                leaves.append(
                    base | {"member_id": fact.member_id, "t": fact.at_ms, "why": fact.reason, "kind": "leave"}
                )
            elif fact.what == server_log.REBALANCE_STARTED:
                rebalances.append(
                    base
                    | {"kind": "classic", "from_gen": fact.generation, "t_start": fact.at_ms, "reason": fact.reason}
                )
