"""The coordinator's INFO lines in `server.log`: what the request log cannot show (expiries, why a rebalance began).

    [2026-11-20 10:49:05,568] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=40] Member … has failed, …

Two coordinators, many releases: Scala (up to 3.9, prefix `[GroupCoordinator 1]: `) and Java (4.x, prefix with topic
and partition). A new sentence is a row of the table of literal words, and what it means is decided in
`kardia/observe/evidence/records.py`; those about groups that have epochs are in `epoch_sentences`. Whatever does not
match is ignored, because the log is full of other things. Interprets nothing.

Group and member ids are not escaped by the broker, so a client may choose one that looks like the rest of a sentence.
Each pattern is therefore matched twice, with the shortest and with the longest ids that fit: if both say the same
there is no other reading. If not, the partition that the line names decides, where there are just the two; else the
line is rejected as `ambiguous`. Which groups are known from elsewhere does not decide: the first sentences about a
group come before any request of it is logged, and a new one named like the sentence of a known one would speak for
it. An id with a line break in it can forge a whole line of this log, which no reader can tell from a real one;
nothing that is decided on these lines alone is safe from the clients of a broker that logs so.
Truth: log statements of Kafka 2.0 to 4.4 (`GroupCoordinator.scala`, `GroupMetadataManager.java` and neighbours).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from math import prod
from typing import NamedTuple

from ingest.dialects import Reading, rejection
from ingest.dialects.epoch_sentences import SENTENCES
from ingest.dialects.sentence import Pattern, pattern
from ingest.stamps import Stamps
from kardia.events import DEFAULT_OFFSETS_PARTITIONS, Event, Kind, shard_of

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_MEMBER = rf"(?P<member>.*?{_UUID})"
_NUMBER = r"[0-9]+"
_GENERATION = rf"(?P<generation>{_NUMBER})"
_PARTITION = rf"(?: \(__consumer_offsets-(?P<partition>{_NUMBER})\))?"
_LEFT = "has left group"


class Said(NamedTuple):
    """One reading of a message."""

    what: str
    fields: dict[str, str]
    partition: int
    generation_id: int
    between: tuple[str, ...]


PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "preparing_rebalance",
        "Preparing to rebalance group ",
        r"(?=[\s\S]*\)\.?\Z)"  # looked at first: else each beginning is followed to the end, in vain
        rf"Preparing to rebalance group (?P<group>.*?) in state \w+ with old generation {_GENERATION}"
        rf"{_PARTITION} \(reason: (?P<reason>.*)\)\.?",
        " with old generation ",
    ),
    # 2.0 and 2.1 say neither the state nor the reason.
    pattern(
        "preparing_rebalance",
        "Preparing to rebalance group ",
        rf"Preparing to rebalance group (?P<group>.*) with old generation {_GENERATION}"
        rf" \(__consumer_offsets-(?P<partition>{_NUMBER})\)",
        " with old generation ",
    ),
    pattern(
        "stabilized",
        "Stabilized group ",
        rf"Stabilized group (?P<group>.*?) generation {_GENERATION}{_PARTITION}(?: with (?P<reason>\d+ members?))?\.?",
        " generation ",
    ),
    pattern(
        "assignment_received",
        "Assignment received from leader",
        rf"Assignment received from leader(?: {_MEMBER})? for group (?P<group>.*?) for generation {_GENERATION}"
        r"(?:\. The group has (?P<reason>\d+ members), \d+ of which are static)?\.?",
        " for group ",
        " for generation ",
    ),
    pattern(
        "member_failed",
        " has failed, removing it from the group",
        rf"Member {_MEMBER} in group (?P<group>.*) has failed, removing it from the group\.?",
        " in group ",
    ),
    pattern(
        "member_left",
        _LEFT,
        rf"\[Group (?P<group>.*?)\] Member {_MEMBER} has left group through explicit `LeaveGroup` request"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    pattern(
        "member_left",
        _LEFT,
        rf"Member MemberMetadata\(memberId={_MEMBER}, groupInstanceId=(?P<instance>.*?), clientId=.*\)"
        r" has left group (?P<group>.*?) through explicit `LeaveGroup`(?: request)?"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    pattern(
        "member_left",
        " has left, removing it from the group",
        rf"Member\[group\.instance\.id (?P<instance>.*?), member\.id {_MEMBER}\] in group (?P<group>.*)"
        r" has left, removing it from the group",
    ),
    pattern(
        "member_left",
        " has left, removing it from the group",
        rf"Member {_MEMBER} in group (?P<group>.*) has left, removing it from the group",
    ),
    pattern(
        "pending_member_removed",
        "ending member",
        rf"Pending member {_MEMBER} in group (?P<group>.*) has been removed after "
        r"(?P<reason>session timeout expiration)\.?",
    ),
    pattern(
        "pending_member_removed",
        _LEFT,
        rf"\[Group (?P<group>.*?)\] Pending member {_MEMBER} has left group through explicit `LeaveGroup` request"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    pattern(
        "pending_member_removed",
        _LEFT,
        rf"Pending member with memberId={_MEMBER} has left group (?P<group>.*?) through explicit `LeaveGroup` request"
        r"(?:; client reason: (?P<reason>.*))?",
    ),
    pattern(
        "pending_member_removed", " is leaving group ", rf"Pending member {_MEMBER} is leaving group (?P<group>.*)\."
    ),
    pattern(
        "group_empty",
        " is now empty",
        rf"Group (?P<group>.*) with generation {_GENERATION} is now empty{_PARTITION}\.?",
    ),
    pattern(
        "removed_not_joined",
        " dynamic members who haven't joined: ",
        r"Group (?P<group>.*?) removed? dynamic members who haven't joined: (?:Hash)?(?:Set)?[\[(](?P<members>.*)[\])]",
    ),
    pattern(
        "static_replaced",
        " with this groupInstanceId",
        r"Static member with groupInstanceId=(?P<instance>.*?) and unknown member id joins group (?P<group>.*?)"
        rf" in (?:state )?\w+(?: state)?\. Replacing previously mapped member {_MEMBER} with this groupInstanceId\.",
    ),
    # 2.5 to 2.7; 2.3 and 2.4 name no group, and so nobody's.
    pattern(
        "static_replaced",
        " with unknown member id rejoins, assigning new member id ",
        r"Static member (?P<instance>.*?) of group (?P<group>.*?) with unknown member id rejoins, assigning new member "
        rf"id .*, while old member id {_MEMBER} will be removed\.",
    ),
    pattern(
        "group_loaded",
        "Loaded classic group ",
        r"Loaded classic group (?P<group>.*) with (?P<reason>\d+ members)\.",
    ),
    pattern(
        "group_loaded",
        "Loading group metadata for ",
        rf"Loading group metadata for (?P<group>.*) with generation {_GENERATION}",
    ),
    pattern(
        "group_unloaded",
        "Unloading group metadata for ",
        rf"\[GroupId=(?P<group>.*)\] Unloading group metadata for generation {_GENERATION}\.",
    ),
    pattern(
        "group_unloaded",
        "Unloading group metadata for ",
        rf"Unloading group metadata for (?P<group>.*) with generation {_GENERATION}",
    ),
    pattern(
        "partition_loaded",
        "Finished loading o",
        rf"Finished loading of(?:fsets and group metadata| metadata) from __consumer_offsets-(?P<partition>{_NUMBER})"
        r" (?P<reason>(?:in|with) .*)",
    ),
    pattern(
        "partition_unloaded",
        "Started unloading metadata for ",
        rf"Started unloading metadata for __consumer_offsets-(?P<partition>{_NUMBER}) (?P<reason>.*)",
    ),
    pattern(
        "partition_unloaded",
        "Resigned as the group coordinator for ",
        rf"Resigned as the group coordinator for partition (?P<partition>{_NUMBER}) (?P<reason>.*)",
    ),
    pattern(
        "group_dead",
        " transitioned to Dead in generation ",
        rf"Group (?P<group>.*) transitioned to Dead in generation {_GENERATION}",
    ),
    # What has no name of its own: told as it stands, for people.
    pattern(
        "other",
        "failed to join before ",
        rf"(?P<reason>Group leader \[member(?:\.i|I)d: {_MEMBER}, .*?failed to join before .*)",
    ),
    *(sentence.read for sentence in SENTENCES),
)
"""Every line that gives an event. Order matters only between patterns with the same words."""

_DELETED = re.compile(
    r"The following groups were deleted: (?P<groups>.*)\. A total of \d+ offsets were removed\.", re.DOTALL
)
_LOGGER = re.compile(r" \((?:[\w$]+\.)+[\w$]+\)?\Z")
_LEVEL = re.compile(r"\[?[^\]]{10,40}?\]? ?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ")
_SCALA_PREFIX = re.compile(r"\[Group(?:Coordinator|MetadataManager)(?: brokerId=| )\d+\]:? ")
_JAVA_PREFIX = re.compile(
    rf"\[GroupCoordinator id=\d+(?: topic=__consumer_offsets partition=(?P<partition>{_NUMBER}))?\] "
)
_MEMBERS = re.compile(rf"(.+?{_UUID})(?:, |\Z)", re.DOTALL)
_REASON_MEMBER = re.compile(
    rf"(?:Adding new member |[Ll]eader |Updating metadata for (?:static )?member |because static member "
    # A client.id may hold a UUID of its own (Kafka Streams): the one that ends the member id is not gone on with.
    rf"|[Rr]emoving member |\(member: ){_MEMBER}(?![-\w])",
    re.DOTALL,
)
_REASON_MEMBERS = re.compile(r"(?:request for |Removing (?:Hash)?(?:Set)?)[\[(](?P<members>.*)[\])]", re.DOTALL)
_INTEREST = (b"GroupCoordinator", b"GroupMetadataManager", b"ClassicGroup", b"coordinator.group")
_WORDS = tuple(dict.fromkeys(one.words for one in PATTERNS))
_MAX_REASON = 1_024
"""Characters of a reason kept: Kafka cuts a client's reason at 255, the rest is the coordinator's own text and ids."""
_MAX_MEMBERS = 1_000

MAX_NUMBER = 2**31 - 1
"""Highest generation and partition: both are an int32 in the coordinator. A higher one was written by a client."""


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

    def broker_of(self, line: bytes) -> None:
        """`server.log` does not say at which address its broker listens."""

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
            partition = _number(java["partition"])
        else:
            message = _SCALA_PREFIX.sub("", message, count=1)
        if "The following groups were deleted: " in message:
            return self._deleted(message, source, start, end, at_ms)
        found = list(_readings(message, partition))
        if None in found:
            expected = "a sentence of ordinary length; in one so long an id may look like anything"
            return rejection("ambiguous", expected, line, source, start, end, at_ms)
        said = [one for one in found if one is not None]
        if not said:
            return "not_a_coordinator_line"
        possible = [one for one in said if one.partition <= MAX_NUMBER and one.generation_id <= MAX_NUMBER]
        if not possible:
            expected = f"a generation and a partition of at most {MAX_NUMBER}"
            return rejection("out_of_range", expected, line, source, start, end, at_ms)
        chosen = said[0] if len(said) == 1 else self._decided(possible, message)
        if chosen is None:
            expected = "a sentence with one meaning; an id in it looks like a part of another one"
            return rejection("ambiguous", expected, line, source, start, end, at_ms)
        return self._event(chosen, (source, start, end, at_ms))

    def _decided(self, possible: list[Said], message: str) -> Said | None:
        """The one reading whose group belongs to the partition that the line names, if there are only these two."""
        fitting = [one for one in possible if one.partition in (-1, self._shard(one.fields.get("group", "")))]
        if len(fitting) != 1 or fitting[0].partition < 0:
            return None
        between = fitting[0].between
        return fitting[0] if between and prod(map(message.count, between)) == 2 else None

    def _event(self, said: Said, place: tuple[str, int, int, float]) -> Event:
        what, fields, partition, generation_id, _ = said
        group_id = fields.get("group", "")
        reason = fields.get("reason", "")[:_MAX_REASON]
        members = [found[1] for found in _MEMBERS.finditer(fields.get("members", ""))][:_MAX_MEMBERS]
        if "other" in fields:
            members = [fields["other"]]
        member_id = fields.get("member", "")
        if what == "preparing_rebalance":
            named = _REASON_MEMBER.search(reason.partition("; client reason: ")[0])
            listed = _REASON_MEMBERS.search(reason)
            if named:
                member_id = named["member"]
            elif listed:
                members = [found[1] for found in _MEMBERS.finditer(listed["members"])][:_MAX_MEMBERS]
        if members and not member_id:
            member_id, *members = members
        source, start, end, at_ms = place
        return Event(
            int(Kind.COORDINATOR_LINE),
            self._shard(group_id) if group_id else partition,
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
            generation_id=generation_id,
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


def _readings(message: str, partition: int) -> Iterator[Said | None]:
    """What a message may say, the same only once; None where it is too long to be searched. `partition` is that of the
    prefix, which no client can write."""
    if not any(words in message for words in _WORDS):
        return
    known: list[tuple[str, dict[str, str]]] = []
    for one in PATTERNS:
        if one.words not in message:
            continue
        if len(message) > one.max_chars:
            yield None
            continue
        for expression in (one.shortest, one.longest):
            match = expression.fullmatch(message)
            if match is None:
                break  # then the other one does not match either
            fields = {name: text for name, text in match.groupdict().items() if text}
            told = (one.what, {name: text for name, text in fields.items() if name != "reason"})
            if told in known:
                continue
            known.append(told)
            named = partition if partition >= 0 else _number(fields.get("partition"))
            yield Said(one.what, fields, named, _number(fields.get("generation")), one.between)


def _number(text: str | None) -> int:
    """A number of the sentence: -1 where it has none, more than `MAX_NUMBER` where it cannot be one."""
    if not text:
        return -1
    return int(text) if len(text) <= len(str(MAX_NUMBER)) else MAX_NUMBER + 1


def _instance(text: str | None) -> str:
    if text is None or text in ("None", "null"):
        return ""
    return text[5:-1] if text.startswith("Some(") and text.endswith(")") else text
