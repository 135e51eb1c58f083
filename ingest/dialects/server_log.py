"""The coordinator's INFO lines in `server.log`: what the request log cannot show (expiries, why a rebalance began).

    [2026-11-20 10:49:05,568] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=40] Member … has failed, …

Two coordinators, many releases: Scala (up to 3.9, prefix `[GroupCoordinator 1]: `) and Java (4.x, prefix with topic
and partition). A sentence is a row of a table: `classic_sentences`, `epoch_sentences` (groups that have epochs), and
`silent_sentences`, of which nothing follows. What it means is decided in `kardia/observe/sentences/`. A line that is
the coordinator's, at INFO or above, and in none of the tables is rejected as `unknown_sentence`: nobody guesses what it
may mean, and somebody sees it. All other lines are ignored, but those in which a broker that starts says how long
sessions are (`broker_settings`): the log is full of other things. Interprets nothing.

Group and member ids are not escaped by the broker, so a client may choose one that looks like the rest of a sentence.
Each pattern is therefore matched twice, with the shortest and with the longest ids that fit: if both say the same
there is no other reading. If not, the partition that the line names decides, where there are just the two; else the
line is rejected as `ambiguous`. Which groups are known from elsewhere does not decide: the first sentences about a
group come before any request of it is logged, and a new one named like the sentence of a known one would speak for
it. An id with a line break in it can forge a whole line of this log, which no reader can tell from a real one;
nothing that is decided on these lines alone is safe from the clients of a broker that logs so.

A line in another layout than Kafka's is brought into it first (`ingest.layouts`); one that names the coordinator's
classes and cannot be is rejected as `unknown_layout`.
Truth: log statements of Kafka 2.0 to 4.4 (`GroupCoordinator.scala`, `GroupMetadataManager.java` and neighbours).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from math import prod
from typing import NamedTuple

from ingest.dialects import MILLIS_NEEDED, UNNAMED, Asked, Listener, Reading, rejection
from ingest.dialects.broker_settings import HEAD, LoggedSettings
from ingest.dialects.classic_sentences import NUMBER
from ingest.dialects.classic_sentences import SENTENCES as CLASSIC
from ingest.dialects.epoch_sentences import SENTENCES as EPOCHS
from ingest.dialects.sentence import UUID, UUID_IN_BASE64, Pattern
from ingest.dialects.silent_sentences import is_silent, names_no_group
from ingest.layouts.recogniser import COORDINATOR_LOGGER, layouts
from ingest.stamps import Stamps
from kardia.events import ALL_SHARDS, DEFAULT_OFFSETS_PARTITIONS, Event, Kind, shard_of


class Said(NamedTuple):
    """One reading of a message."""

    what: str
    fields: dict[str, str]
    partition: int
    generation_id: int
    between: tuple[str, ...]


PATTERNS: tuple[Pattern, ...] = tuple(sentence.read for sentence in (*CLASSIC, *EPOCHS))
"""Every line that gives an event. Order matters only between patterns with the same words."""

_DELETED = re.compile(
    r"The following groups were deleted: (?P<groups>.*)\. A total of \d+ offsets were removed\.", re.DOTALL
)
_LOGGER = re.compile(r" \((?:[\w$]+\.)+[\w$]+\)?\Z")
_SHIPPED = re.compile(
    rb"\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}[,.][0-9]{3,9}[Z0-9:+-]{0,6}\]? [A-Z]{4,5} (?:\[Group|[A-Z])"
)
_SHIPPED_END = re.compile(rb" \((?:[\w$]+\.)+[\w$]+\)?\Z")
"""How a line of the coordinator begins and ends in the layout that Kafka ships."""
_END_BYTES = 256
_CLASSES = re.compile(rb"\[Group(?:Coordinator|MetadataManager)[ \]]|kafka\.coordinator\.group\.")
_FRAME = re.compile(rb"\s*(?:at |\.\.\. |Caused by: |Suppressed: |[\w.$]+(?:Exception|Error)\b)")
"""A line of a stack trace."""
_BEGUN = re.compile(
    rb"\[Group(?:Coordinator|MetadataManager)[ \]]|\b(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b", re.IGNORECASE
)
"""What the head of a line has in any layout, and the rest of a broken one has not."""
_RUNS = re.compile(r"[ \t]{2,}|\t")
_LEVEL = re.compile(r"\[?[^\]]{10,40}?\]? ?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ")
_NODE_ID = re.compile(
    r"\[(?:GroupCoordinator|GroupMetadataManager|ReplicaManager|KafkaServer|BrokerServer|BrokerLifecycleManager)"
    r"(?: id=| brokerId=| broker=| )(?P<id>[0-9]{1,10})[ \]]"
)
"""How components of a broker say its node id in front of their words, from 2.0 to 4.4."""
_HEAD_BYTES = 512
"""It stands in these."""
_COORDINATORS = re.compile(r" \((?:kafka|org\.apache\.kafka)\.coordinator\.group\.[\w$.]+\)?\Z")
"""Logger of the classes of the coordinator."""
_FINE = ("TRACE", "DEBUG")
"""Levels at which it tells what is not in the tables."""
_SCALA_PREFIX = re.compile(r"\[Group(?:Coordinator|MetadataManager)(?: brokerId=| )\d+\]:? ")
_JAVA_PREFIX = re.compile(
    rf"\[GroupCoordinator id=\d+(?: topic=__consumer_offsets partition=(?P<partition>{NUMBER}))?\] "
)
# Its client may have chosen that an id which ends in a UUID begins like one in base64: it is looked for first.
_MEMBERS = re.compile(rf"(.+?{UUID}|{UUID_IN_BASE64})(?:, |\Z)", re.DOTALL)
_REASON_MEMBER = re.compile(
    rf"(?:Adding new member |[Ll]eader |Updating metadata for (?:static )?member |because static member "
    # A client.id may hold a UUID of its own (Kafka Streams): the one that ends the member id is not gone on with.
    rf"|[Rr]emoving member |\(member: )(?P<member>.*?{UUID}|{UUID_IN_BASE64})(?![-\w])",
    re.DOTALL,
)
_METADATA = re.compile(
    r"MemberMetadata\(memberId=(?P<member>.*), groupInstanceId=(?P<instance>.*), clientId=(?P<client>.*), "
    rf"clientHost=(?P<host>.*), sessionTimeoutMs=(?P<session>{NUMBER}), rebalanceTimeoutMs=(?P<rebalance>{NUMBER}), "
    r"supportedProtocols=",
    re.DOTALL,
)
"""All that the Scala coordinator knows of a member."""
_METADATA_NAMES = (" clientId=", " clientHost=", " sessionTimeoutMs=", " rebalanceTimeoutMs=")
"""Each stands once in a sentence, or an id holds one of them and nothing of it is believed."""
_REASON_MEMBERS = re.compile(r"(?:request for |Removing (?:Hash)?(?:Set)?)[\[(](?P<members>.*)[\])]", re.DOTALL)
_INTEREST = (b"GroupCoordinator", b"GroupMetadataManager", b"ClassicGroup", b"coordinator.group")
_WORDS = tuple(dict.fromkeys(one.words for one in PATTERNS))
_MAX_REASON = 1_024
"""Characters of a reason kept: Kafka cuts a client's reason at 255, the rest is the coordinator's own text and ids."""
_MAX_MEMBERS = 1_000

_LAID_OUT = (
    "a stamp of date, time and milliseconds before the words, in a layout that is known; give yours with "
    "--log-pattern, as it stands in the broker's log4j file, e.g. '%d{ISO8601} %p %m (%c) [%t]%n'"
)
_REST = (
    "a whole line: this is the rest of one that was broken in two, by a terminal, a copy, or a line break in an id; "
    "give the file that the broker wrote"
)

_KNOWN = "a sentence of the coordinator of 2.0 to 4.4; this one has other words, or is broken in two"
_GROUP_NAMED = (
    "a sentence that names its group, as from 2.5 on; this one says of a static id that its seat was taken, or that "
    "who came with another member id was refused (FENCED_INSTANCE_ID), and not in which group"
)

MAX_NUMBER = 2**31 - 1
"""Highest generation and partition: both are an int32 in the coordinator. A higher one was written by a client."""


class ServerLog:
    """Dialect of `server.log`."""

    stream = "server"

    def __init__(
        self, zone: tzinfo, offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS, log_pattern: str = ""
    ) -> None:
        """`zone`: zone of the stamps. `offsets_partitions`: partitions of `__consumer_offsets` in this cluster.
        `log_pattern`: conversion pattern of its lines, tried before those that are known."""
        self.stamps = Stamps(zone)
        self._offsets_partitions = offsets_partitions
        self._layouts = layouts(log_pattern)
        self._settings = LoggedSettings()

    quiet = None
    slow = None
    """Its lines are rare: nothing is folded."""

    def stamp_ms(self, line: bytes) -> float | None:
        """Instant of the line's own stamp."""
        at_ms = self.stamps.at_ms(line)
        if at_ms is not None:
            return at_ms
        stamp = self._layouts.stamp(line)
        return None if stamp is None else self.stamps.at_ms(stamp)

    def broker_of(self, line: bytes) -> Listener | None:
        """The broker by its node id, as components say it in front of their words: at which address it listens no line
        tells."""
        head = line[:_HEAD_BYTES]
        if not _SHIPPED.match(head):
            head = self._layouts.shipped(head) or head
        text = head.decode("utf-8", "replace")
        level = _LEVEL.match(text)
        found = None if level is None else _NODE_ID.match(text, level.end())
        return None if found is None else Listener(f"{UNNAMED}-{int(found['id'])}", Asked.BY_CLIENTS)

    def read(self, line: bytes, source: str, start: int, end: int) -> Reading:
        """Read one line. See `ingest.dialects.Dialect`."""
        if not any(word in line for word in _INTEREST):
            if line[:1] == b"[" or line[:2] == b"20":
                self._settings.stamped(self.stamps.at_ms(line) if HEAD in line else None)
                return "not_a_coordinator_line"
            told = self._settings.read(line)
            if told is not None:
                return _configured(*told, source, start, end)
            return "continuation" if line.strip() else "blank"
        if _SHIPPED.match(line) and _SHIPPED_END.search(line, max(0, len(line) - _END_BYTES)):
            return self._read(line, line, "", source, start, end)
        laid = self._layouts.laid(line)
        if laid is None:
            if not _CLASSES.search(line) or _FRAME.match(line):
                return "continuation"  # a stack trace through the coordinator, or words about it
            if _SHIPPED_END.search(line.rstrip()) and not _BEGUN.search(line):
                return rejection("incomplete_line", _REST, line, source, start, end, None)
            return rejection("unknown_layout", _LAID_OUT, line, source, start, end, self.stamps.at_ms(line))
        if laid.logger and not COORDINATOR_LOGGER.fullmatch(laid.logger):
            return "not_a_coordinator_line"
        if not laid.has_millis:
            return rejection("bad_timestamp", MILLIS_NEEDED, line, source, start, end, None)
        logger = f" ({laid.logger.decode()})" if laid.logger else ""
        return self._read(line, laid._replace(logger=b"").line, logger, source, start, end)

    def _read(self, line: bytes, shipped: bytes, logger: str, source: str, start: int, end: int) -> Reading:
        """Read a line of the coordinator; `shipped` is it in the shipped layout, but for a `logger` that was found
        elsewhere."""
        at_ms = self.stamps.at_ms(shipped)
        if at_ms is None:
            return rejection("bad_timestamp", _LAID_OUT, line, source, start, end, None)
        self._settings.stamped()
        try:
            text = shipped.decode("utf-8")
        except UnicodeDecodeError:
            return rejection("bad_encoding", "UTF-8", line, source, start, end, at_ms)
        level = _LEVEL.match(text)
        if level is None:
            return "not_a_coordinator_line"
        logged = text[level.end() :]
        words = logged if logger else _LOGGER.sub("", logged)
        logged += logger
        prefix, message, partition = _taken_apart(words)
        if "The following groups were deleted: " in message:
            return self._deleted(message, source, start, end, at_ms)
        found = list(_readings(message, partition))
        if not found and _RUNS.search(words):  # blanks that whoever copied it has put in
            prefix, message, partition = _taken_apart(_RUNS.sub(" ", words))
            found = list(_readings(message, partition))
        if None in found:
            expected = "a sentence of ordinary length; in one so long an id may look like anything"
            return rejection("ambiguous", expected, line, source, start, end, at_ms)
        said = [one for one in found if one is not None]
        if not said:
            its_own = (prefix or _COORDINATORS.search(logged)) and level["level"] not in _FINE
            if not its_own or is_silent(message):
                return "not_a_coordinator_line"
            reason, expected = ("no_group", _GROUP_NAMED) if names_no_group(message) else ("unknown_sentence", _KNOWN)
            return rejection(reason, expected, line, source, start, end, at_ms)
        possible = [one for one in said if one.partition <= MAX_NUMBER and one.generation_id <= MAX_NUMBER]
        if not possible:
            expected = f"a generation and a partition of at most {MAX_NUMBER}"
            return rejection("out_of_range", expected, line, source, start, end, at_ms)
        chosen = said[0] if len(said) == 1 else self._decided(possible, message)
        if chosen is None:
            expected = "a sentence with one meaning; an id in it looks like a part of another one"
            return rejection("ambiguous", expected, line, source, start, end, at_ms)
        return _with_metadata(self._event(chosen, (source, start, end, at_ms)), message)

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


def _with_metadata(event: Event, message: str) -> Event:
    """The event with what its sentence tells of the member beside its id, if it is one that does."""
    if any(message.count(one) != 1 for one in _METADATA_NAMES):
        return event
    found = _METADATA.search(message)
    if found is None or found["member"] != event.member_id:
        return event
    timeouts = {f"{name}_timeout_ms": _number(found[name]) for name in ("session", "rebalance")}
    if max(timeouts.values()) > MAX_NUMBER:
        return event
    detail = (event.detail or {}) | timeouts
    instance_id = event.group_instance_id or _instance(found["instance"])
    client_id, host = found["client"], found["host"].lstrip("/")
    return event._replace(client_id=client_id, client_host=host, group_instance_id=instance_id, detail=detail)


def _taken_apart(words: str) -> tuple[bool, str, int]:
    """Whether words begin as those of the coordinator's components, what follows, and the partition that is named."""
    java = _JAVA_PREFIX.match(words)
    prefix = java or _SCALA_PREFIX.match(words)
    partition = _number(java["partition"]) if java else -1
    return prefix is not None, words[prefix.end() :] if prefix else words, partition


def _configured(at_ms: float, session_ms: dict[str, int], source: str, start: int, end: int) -> Event:
    """How long sessions are, as the broker has it: of no group, for all lanes."""
    detail = {"what": "configured", "reason": "", "members": [], "session_ms": session_ms}
    place = (source, start, end, at_ms, at_ms, at_ms, at_ms)
    return Event(int(Kind.COORDINATOR_LINE), ALL_SHARDS, *place, detail=detail)


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
    if text is None or text in ("None", "null", "Some(null)"):
        return ""
    return text[5:-1] if text.startswith("Some(") and text.endswith(")") else text
