"""What the broker itself says happened: facts from the coordinator's lines of server.log. The verdict's only truth.

Reads the lines of the Scala coordinator (2.x, 3.x) and of the Java coordinator (4.x) and knows nothing of Kardia's own
reading of such lines (`ingest`), on purpose: else a mistake there would not show here. Stamps of the log have no zone;
the demo's broker writes UTC. Patterns from Kafka's sources (`GroupCoordinator.scala`, `GroupMetadataManager.java`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

REBALANCE_STARTED = "rebalance_started"
GENERATION_STARTED = "generation_started"
ASSIGNED = "assigned"
MEMBER_ADDED = "member_added"
MEMBER_FAILED = "member_failed"
MEMBER_LEFT = "member_left"
STATIC_REPLACED = "static_replaced"
STATIC_REVERTED = "static_reverted"
GROUP_EMPTY = "group_empty"
NOT_JOINED = "not_joined"
NOT_SYNCED = "not_synced"
LOADED = "loaded"
EPOCH_BEGAN = "epoch_began"
NOT_MOVED_ON = "not_moved_on"
UPGRADED = "upgraded"
DOWNGRADED = "downgraded"


@dataclass(frozen=True)
class Fact:
    """One thing the broker said. `generation` is the old one of a start, else the new one, or the new group epoch; -1
    where there is none, and `members` where it counts none (before 2.8)."""

    what: str
    at_ms: int
    group_id: str
    member_id: str = ""
    generation: int = -1
    members: int = -1
    reason: str = ""


_STAMP = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] \w+ \[Group(?:Coordinator|MetadataManager)[^\]]*\]:? ?(.*)"
)

_LINES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        REBALANCE_STARTED,
        re.compile(
            r"Preparing to rebalance group (?P<group>.+?)(?: in state \w+)? with old generation (?P<generation>\d+) "
            r"(?:\(__consumer_offsets-\d+\) )?(?:\(reason: (?P<reason>.*)\)\.? )?\("
        ),
    ),
    (
        GENERATION_STARTED,
        re.compile(
            r"Stabilized group (?P<group>.+?) generation (?P<generation>\d+) "
            r"(?:\(__consumer_offsets-\d+\) )?(?:with (?P<members>\d+) members|\()"
        ),
    ),
    (
        ASSIGNED,
        re.compile(
            r"Assignment received from leader (?:(?P<member>.+?) )?for group (?P<group>.+?) "
            r"for generation (?P<generation>\d+)(?:\.| \()"
        ),
    ),
    (
        MEMBER_FAILED,
        re.compile(r"Member (?P<member>\S+) in group (?P<group>.+?) has failed, removing it from the group"),
    ),
    (
        MEMBER_LEFT,
        re.compile(
            r"\[Group (?P<group>.+?)\] Member (?P<member>\S+) has left group through explicit `LeaveGroup` request; "
            r"client reason: (?P<reason>.*?) \("
        ),
    ),
    (
        MEMBER_LEFT,
        re.compile(
            r"Member MemberMetadata\(memberId=(?P<member>[^,]+), .*\) has left group (?P<group>.+?) through explicit "
            r"`LeaveGroup`; client reason: (?P<reason>.*?) \("
        ),
    ),
    # 2.4 to 2.8, and before.
    (
        MEMBER_LEFT,
        re.compile(r"Member\[group\.instance\.id .*?, member\.id (?P<member>\S+)\] in group (?P<group>.+?) has left, "),
    ),
    (MEMBER_LEFT, re.compile(r"Member (?P<member>\S+) in group (?P<group>.+?) has left, removing it from the group")),
    (
        GROUP_EMPTY,
        re.compile(r"Group (?P<group>.+?) with generation (?P<generation>\d+) is now empty"),
    ),
    # Groups with epochs (4.0 on). Who is there already and joins anew has the line of a join as well.
    (EPOCH_BEGAN, re.compile(r"\[GroupId (?P<group>.+?)\] Bumped group epoch to (?P<generation>\d+)[ .]")),
    (
        MEMBER_ADDED,
        re.compile(
            r"\[GroupId (?P<group>.+?)\] (?:Static m|M)ember (?P<member>\S+) (?:with instance id \S+ )?"
            r"joins the consumer group using the \w+ protocol"
        ),
    ),
    (
        MEMBER_FAILED,
        re.compile(
            r"\[GroupId (?P<group>.+?)\] Member (?P<member>\S+) fenced from the group because the member session "
            r"expired"
        ),
    ),
    (
        NOT_MOVED_ON,
        re.compile(
            r"\[GroupId (?P<group>.+?)\] Member (?P<member>\S+) fenced from the group because it failed to transition "
            r"from epoch"
        ),
    ),
    (
        MEMBER_LEFT,
        re.compile(
            r"\[GroupId (?P<group>.+?)\] (?:Static m|M)ember (?P<member>\S+) (?:with instance id \S+ )?"
            r"left the consumer group"
        ),
    ),
    # One that speaks the classic protocol.
    (
        MEMBER_LEFT,
        re.compile(
            r"\[GroupId (?P<group>.+?)\] (?:Dynamic|Static) member (?P<member>\S+)(?: with instance id \S+)? has left "
            r"group through explicit `LeaveGroup` request; client reason: (?P<reason>.*?) \("
        ),
    ),
    (
        STATIC_REPLACED,
        re.compile(
            r"\[GroupId (?P<group>.+?)\] Static member with instance id \S+ re-joins the consumer group using the \w+ "
            r"protocol\. Created a new member \S+ to replace the existing member (?P<member>\S+?)\. \("
        ),
    ),
    (UPGRADED, re.compile(r"\[GroupId (?P<group>.+?)\] Converted the classic group to a consumer group")),
    (DOWNGRADED, re.compile(r"\[GroupId (?P<group>.+?)\] Converted the consumer group to a classic group")),
    (LOADED, re.compile(r"Loading group metadata for (?P<group>.+) with generation \d+")),
    (LOADED, re.compile(r"Loaded classic group (?P<group>.+) with \d+ members")),
    (
        STATIC_REPLACED,
        re.compile(
            r"Static member with groupInstanceId=\S+ and unknown member id joins group (?P<group>.+?) in \w+ state\. "
            r"Replacing previously mapped member (?P<member>\S+) with this"
        ),
    ),
    # Who took the seat could not be stored, and the member before has it again.
    (
        STATIC_REVERTED,
        re.compile(
            r"Failed to persist metadata for group (?P<group>.+?) static member \S+ with group instance id \S+ due to "
            r".*Reverting to old member id (?P<member>\S+?)\. \("
        ),
    ),
    # 2.5 to 2.7; 2.3 and 2.4 name no group.
    (
        STATIC_REPLACED,
        re.compile(
            r"Static member Some\(\S+\)(?: of group (?P<group>.+?))? with unknown member id rejoins, assigning new "
            r"member id \S+, while old member (?:id )?(?P<member>\S+) will be removed"
        ),
    ),
    (
        MEMBER_ADDED,
        re.compile(
            r"Static Member with unknown member id joins group (?P<group>.+?) in \w+ state\. "
            r"Created a new member id (?P<member>\S+) for this member and add to the group"
        ),
    ),
    (
        MEMBER_ADDED,
        re.compile(
            r"Pending dynamic member with id (?P<member>\S+) joins group (?P<group>.+?) in \w+ state\. "
            r"Adding to the group"
        ),
    ),
    (
        MEMBER_ADDED,
        re.compile(
            r"Static member with groupInstanceId=\S+ and unknown member id joins group (?P<group>.+?) in \w+ state\. "
            r"Created a new member id (?P<member>\S+) for this member and add(?:ed)? to the group"
        ),
    ),
)

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SEVERAL = re.compile(rf"[^\s,(\[][^,]*?{_UUID}")
_ABSENT = re.compile(r"Group (?P<group>.+?) removed? dynamic members who haven't joined: (?P<members>.*) \(")
"""One line for all that were put out of a group because they did not join again in time."""

_DEAD = re.compile(r"Group (?P<group>.+) is dead, skipping rebalance stage")
"""After a line about members that did not join: it was a timer of a coordinator that does not hold the group any more,
and put nobody out (Kafka up to 3.9)."""

_SILENT_AT_SYNC = re.compile(r"Removing (?P<members>.*) on pending sync request expiration")
"""Of the reason of a rebalance: members that joined and did not fetch their assignment in time."""

_ADDED_BY_SCALA = re.compile(
    r"Adding new member (?P<member>\S+)(?: with group instance id None| with group instanceid \S+|$)"
)
"""Of the reason of a rebalance; 2.3 and 2.4 write `instanceid` and have no other line for a static member, 2.2 names
none."""


def facts(lines: Iterable[str], zone: tzinfo = UTC) -> Iterator[Fact]:
    """Facts in the order of the log; lines that say nothing about a member or a group are passed over."""
    absent: list[Fact] = []
    for line in lines:
        stamped = _STAMP.match(line)
        if stamped is None:
            continue
        dead = _DEAD.search(stamped[3])
        yield from (fact for fact in absent if dead is None or dead["group"] != fact.group_id)
        absent = []
        for what, pattern in _LINES:
            found = pattern.search(stamped[3])
            if found is None:
                continue
            parts = found.groupdict()
            fact = Fact(
                what,
                _at_ms(stamped[1], stamped[2], zone),
                parts["group"] or "",
                parts.get("member") or "",
                int(parts.get("generation") or -1),
                int(parts.get("members") or -1),
                (parts.get("reason") or "").rstrip("."),
            )
            yield fact
            # The Scala coordinator has no line of its own for a dynamic member: the rebalance that it starts names it.
            # One that joins while the group rebalances already is counted by the line of the generation only.
            added = _ADDED_BY_SCALA.search(fact.reason) if what == REBALANCE_STARTED else None
            if added is not None:
                yield Fact(MEMBER_ADDED, fact.at_ms, fact.group_id, added["member"])
            silent = _SILENT_AT_SYNC.search(fact.reason) if what == REBALANCE_STARTED else None
            for member_id in _ids(silent["members"]) if silent is not None else ():
                yield Fact(NOT_SYNCED, fact.at_ms, fact.group_id, member_id)
            break
        late = _ABSENT.search(stamped[3])
        if late is not None:
            at_ms = _at_ms(stamped[1], stamped[2], zone)
            absent = [Fact(NOT_JOINED, at_ms, late["group"], member_id) for member_id in _ids(late["members"])]
    yield from absent


def read(path: Path, zone: tzinfo = UTC) -> list[Fact]:
    """All facts of one file as it is now."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return list(facts(file, zone))


def _ids(several: str) -> list[str]:
    """Member ids of a list as Java or Scala write it."""
    return [found[0] for found in _SEVERAL.finditer(re.split(r"[\[(]", several, maxsplit=1)[-1])]


def _at_ms(second: str, millis: str, zone: tzinfo) -> int:
    at = datetime.strptime(second, "%Y-%m-%d %H:%M:%S").replace(tzinfo=zone)
    return int(at.timestamp()) * 1000 + int(millis)
