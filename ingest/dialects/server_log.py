"""The coordinator's INFO lines in `server.log`: what the request log cannot show (expiries, why a rebalance began).

    [2026-11-20 10:49:05,568] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=40] Member … has failed, …

Two coordinators, many releases: Scala (up to 3.9, prefix `[GroupCoordinator 1]: `) and Java (4.x, prefix with topic
and partition). Lines are recognised by the literal words of a table; whatever does not match is ignored, because the
log is full of other things. Interprets nothing.

Group and member ids are not escaped by the broker. A pattern therefore takes the shortest group that fits, anchors
members on their trailing UUID, and where the line names its partition a reading whose group hashes to that partition
is preferred. An id with a line break in it can forge a whole line of this log, which no reader can tell from a real
one; nothing that is decided on these lines alone is safe from the clients of a broker that logs so.
Truth: log statements of Kafka 2.3 to 4.4 (`GroupCoordinator.scala`, `GroupMetadataManager.java` and neighbours).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import NamedTuple

from ingest.dialects import Reading, rejection
from ingest.stamps import Stamps
from kardia.events import DEFAULT_OFFSETS_PARTITIONS, Event, Kind, shard_of

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_MEMBER = rf"(?P<member>.*?{_UUID})"
_PARTITION = r"(?: \(__consumer_offsets-(?P<partition>\d+)\))?"
_LEFT = "has left group"


class Pattern(NamedTuple):
    """One line of the table: what it is, words that must be in the line, and the expression of the whole message."""

    what: str
    words: str
    expression: re.Pattern[str]


def _pattern(what: str, words: str, expression: str) -> Pattern:
    return Pattern(what, words, re.compile(expression, re.DOTALL))


PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        "preparing_rebalance",
        "Preparing to rebalance group ",
        r"Preparing to rebalance group (?P<group>.*?) in state \w+ with old generation (?P<generation>\d+)"
        rf"{_PARTITION} \(reason: (?P<reason>.*)\)\.?",
    ),
    _pattern(
        "stabilized",
        "Stabilized group ",
        rf"Stabilized group (?P<group>.*?) generation (?P<generation>\d+){_PARTITION}(?: with \d+ members?)?\.?",
    ),
    _pattern(
        "assignment_received",
        "Assignment received from leader",
        rf"Assignment received from leader(?: {_MEMBER})? for group (?P<group>.*?) for generation (?P<generation>\d+)"
        r"(?:\. The group has \d+ members, \d+ of which are static)?\.?",
    ),
    _pattern(
        "member_failed",
        " has failed, removing it from the group",
        rf"Member {_MEMBER} in group (?P<group>.*) has failed, removing it from the group\.?",
    ),
    _pattern(
        "member_left",
        _LEFT,
        rf"\[Group (?P<group>.*?)\] Member {_MEMBER} has left group through explicit `LeaveGroup` request"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    _pattern(
        "member_left",
        _LEFT,
        rf"Member MemberMetadata\(memberId={_MEMBER}, groupInstanceId=(?P<instance>.*?), clientId=.*\)"
        r" has left group (?P<group>.*?) through explicit `LeaveGroup`(?: request)?"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    _pattern(
        "member_left",
        " has left, removing it from the group",
        rf"Member\[group\.instance\.id (?P<instance>.*?), member\.id {_MEMBER}\] in group (?P<group>.*)"
        r" has left, removing it from the group",
    ),
    _pattern(
        "member_left",
        " has left, removing it from the group",
        rf"Member {_MEMBER} in group (?P<group>.*) has left, removing it from the group",
    ),
    _pattern(
        "pending_member_removed",
        "ending member",
        rf"Pending member {_MEMBER} in group (?P<group>.*) has been removed after "
        r"(?P<reason>session timeout expiration)\.?",
    ),
    _pattern(
        "pending_member_removed",
        _LEFT,
        rf"\[Group (?P<group>.*?)\] Pending member {_MEMBER} has left group through explicit `LeaveGroup` request"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    _pattern(
        "pending_member_removed",
        _LEFT,
        rf"Pending member with memberId={_MEMBER} has left group (?P<group>.*?) through explicit `LeaveGroup` request"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    _pattern(
        "pending_member_removed", " is leaving group ", rf"Pending member {_MEMBER} is leaving group (?P<group>.*)\."
    ),
    _pattern(
        "group_empty",
        " is now empty",
        rf"Group (?P<group>.*) with generation (?P<generation>\d+) is now empty{_PARTITION}\.?",
    ),
    _pattern(
        "removed_not_joined",
        " dynamic members who haven't joined: ",
        r"Group (?P<group>.*?) removed? dynamic members who haven't joined: (?:Hash)?(?:Set)?[\[(](?P<members>.*)[\])]",
    ),
    _pattern(
        "static_replaced",
        " with this groupInstanceId",
        r"Static member with groupInstanceId=(?P<instance>.*?) and unknown member id joins group (?P<group>.*?)"
        rf" in (?:state )?\w+(?: state)?\. Replacing previously mapped member {_MEMBER} with this groupInstanceId\.",
    ),
    _pattern(
        "group_loaded",
        "Loaded classic group ",
        r"Loaded classic group (?P<group>.*) with (?P<reason>\d+ members)\.",
    ),
    _pattern(
        "group_loaded",
        "Loading group metadata for ",
        r"Loading group metadata for (?P<group>.*) with generation (?P<generation>\d+)",
    ),
    _pattern(
        "group_unloaded",
        "Unloading group metadata for ",
        r"\[GroupId=(?P<group>.*)\] Unloading group metadata for generation (?P<generation>\d+)\.",
    ),
    _pattern(
        "group_unloaded",
        "Unloading group metadata for ",
        r"Unloading group metadata for (?P<group>.*) with generation (?P<generation>\d+)",
    ),
    _pattern(
        "partition_loaded",
        "Finished loading o",
        r"Finished loading of(?:fsets and group metadata| metadata) from __consumer_offsets-(?P<partition>\d+)"
        r" (?P<reason>(?:in|with) .*)",
    ),
    _pattern(
        "partition_unloaded",
        "Started unloading metadata for ",
        r"Started unloading metadata for __consumer_offsets-(?P<partition>\d+) (?P<reason>.*)",
    ),
    _pattern(
        "partition_unloaded",
        "Resigned as the group coordinator for ",
        r"Resigned as the group coordinator for partition (?P<partition>\d+) (?P<reason>.*)",
    ),
    _pattern(
        "group_dead",
        " transitioned to Dead in generation ",
        r"Group (?P<group>.*) transitioned to Dead in generation (?P<generation>\d+)",
    ),
    # The newer protocols and what has no name of its own: told as it stands, for people.
    _pattern(
        "other",
        " consumer group",
        r"\[GroupId (?P<group>.*?)\] (?P<reason>(?:Static member|Member) (?P<member>[A-Za-z0-9_-]{22})\b.*"
        r"(?:joins|left) the consumer group.*)",
    ),
    _pattern(
        "other",
        " fenced from the group because ",
        r"\[GroupId (?P<group>.*?)\] (?P<reason>Member (?P<member>[A-Za-z0-9_-]{22}) fenced from the group because .*)",
    ),
    _pattern(
        "other",
        "failed to join before ",
        rf"(?P<reason>Group leader \[member(?:\.i|I)d: {_MEMBER}, .*?failed to join before .*)",
    ),
)
"""Every line that gives an event. Order matters only between patterns with the same words."""

_DELETED = re.compile(
    r"The following groups were deleted: (?P<groups>.*)\. A total of \d+ offsets were removed\.", re.DOTALL
)
_LOGGER = re.compile(r" \((?:[\w$]+\.)+[\w$]+\)?\Z")
_LEVEL = re.compile(r"\[?[^\]]{10,40}?\]? ?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ")
_SCALA_PREFIX = re.compile(r"\[Group(?:Coordinator|MetadataManager)(?: brokerId=| )\d+\]:? ")
_JAVA_PREFIX = re.compile(r"\[GroupCoordinator id=\d+(?: topic=__consumer_offsets partition=(?P<partition>\d+))?\] ")
_MEMBERS = re.compile(rf"(.+?{_UUID})(?:, |\Z)", re.DOTALL)
_REASON_MEMBER = re.compile(
    rf"(?:Adding new member |[Ll]eader |Updating metadata for (?:static )?member |because static member "
    rf"|[Rr]emoving member |\(member: ){_MEMBER}",
    re.DOTALL,
)
_REASON_MEMBERS = re.compile(r"(?:request for |Removing (?:Hash)?(?:Set)?)[\[(](?P<members>.*)[\])]", re.DOTALL)
_INTEREST = (b"GroupCoordinator", b"GroupMetadataManager", b"ClassicGroup", b"coordinator.group")
_WORDS = tuple(dict.fromkeys(pattern.words for pattern in PATTERNS))
_MAX_REASON = 1_024
"""Characters of a reason kept: Kafka cuts a client's reason at 255, the rest is the coordinator's own text and ids."""
_MAX_MEMBERS = 1_000


class ServerLog:
    """Dialect of `server.log`."""

    stream = "server"

    def __init__(self, zone: tzinfo, offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS) -> None:
        """`zone`: zone of the stamps. `offsets_partitions`: partitions of `__consumer_offsets` in this cluster."""
        self.stamps = Stamps(zone)
        self._offsets_partitions = offsets_partitions

    quiet = None
    slow = None
    """Its lines are rare: nothing is folded."""

    def stamp_ms(self, line: bytes) -> float | None:
        """Instant of the line's own stamp."""
        return self.stamps.at_ms(line)

    def broker_of(self, line: bytes) -> str:  # noqa: ARG002
        """`server.log` does not say at which address its broker listens."""
        return ""

    def read(self, line: bytes, source: str, start: int, end: int) -> Reading:
        """Read one line. See `ingest.dialects.Dialect`."""
        if not any(word in line for word in _INTEREST):
            if line[:1] == b"[" or line[:2] == b"20":
                return "not_a_coordinator_line"
            return "continuation" if line.strip() else "blank"
        at_ms = self.stamps.at_ms(line)
        if at_ms is None:
            return "continuation"  # a stack trace through the coordinator, or the rest of an id with a line break
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            return rejection("bad_encoding", "UTF-8", line, source, start, end, at_ms)
        level = _LEVEL.match(text)
        if level is None:
            return "not_a_coordinator_line"
        message = _LOGGER.sub("", text[level.end() :])
        partition = -1
        java = _JAVA_PREFIX.match(message)
        if java:
            message = message[java.end() :]
            partition = int(java["partition"] or -1)
        else:
            message = _SCALA_PREFIX.sub("", message, count=1)
        if "The following groups were deleted: " in message:
            return self._deleted(message, source, start, end, at_ms)
        for match, what in _matches(message):
            return self._event(match, what, partition, (source, start, end, at_ms))
        return "not_a_coordinator_line"

    def _event(self, match: re.Match[str], what: str, partition: int, place: tuple[str, int, int, float]) -> Event:
        fields = match.groupdict()
        if fields.get("partition"):
            partition = int(fields["partition"])
        group_id = fields.get("group") or ""
        if group_id and partition >= 0 and self._shard(group_id) != partition:
            # The shortest group does not belong to the partition that the line names: perhaps a longer one does.
            longer = _greedy(match)
            if longer is not None and self._shard(longer["group"]) == partition:
                fields, group_id = longer.groupdict(), longer["group"]
        reason = (fields.get("reason") or "")[:_MAX_REASON]
        members = [found[1] for found in _MEMBERS.finditer(fields.get("members") or "")][:_MAX_MEMBERS]
        member_id = fields.get("member") or ""
        if what == "preparing_rebalance":
            named = _REASON_MEMBER.search(reason.partition("; client reason: ")[0])
            listed = _REASON_MEMBERS.search(reason)
            if named:
                member_id = named["member"]
            elif listed:
                members = [found[1] for found in _MEMBERS.finditer(listed["members"])][:_MAX_MEMBERS]
        if members and not member_id:
            member_id, *members = members
        shard = partition
        if group_id:
            shard = self._shard(group_id)
        source, start, end, at_ms = place
        return Event(
            int(Kind.COORDINATOR_LINE),
            shard,
            source,
            start,
            end,
            at_ms,
            at_ms,
            at_ms,
            at_ms,
            group_id=group_id,
            member_id=member_id,
            group_instance_id=_instance(fields.get("instance")),
            generation_id=int(fields.get("generation") or -1),
            detail={"what": what, "reason": reason, "members": members},
        )

    def _deleted(self, message: str, source: str, start: int, end: int, at_ms: float) -> Reading:
        match = _DELETED.fullmatch(message)
        if match is None:
            return "not_a_coordinator_line"
        names = match["groups"].split(", ")[: max(end - start, 1)]
        last = len(names) - 1
        return [
            Event(
                int(Kind.COORDINATOR_LINE),
                self._shard(name),
                source,
                start + at,
                end if at == last else start + at + 1,
                at_ms,
                at_ms,
                at_ms,
                at_ms,
                group_id=name,
                detail={"what": "group_dead", "reason": "deleted by request", "members": []},
            )
            for at, name in enumerate(names)
        ]

    def _shard(self, group_id: str) -> int:
        return shard_of(group_id, self._offsets_partitions)


def _matches(message: str) -> Iterator[tuple[re.Match[str], str]]:
    if not any(words in message for words in _WORDS):
        return
    for pattern in PATTERNS:
        if pattern.words in message:
            match = pattern.expression.fullmatch(message)
            if match is not None:
                yield match, pattern.what


def _greedy(match: re.Match[str]) -> re.Match[str] | None:
    expression = match.re.pattern.replace("(?P<group>.*?)", "(?P<group>.*)")
    if expression == match.re.pattern:
        return None
    return re.fullmatch(expression, match.string, re.DOTALL)


def _instance(text: str | None) -> str:
    if text is None or text in ("None", "null"):
        return ""
    return text[5:-1] if text.startswith("Some(") and text.endswith(")") else text
