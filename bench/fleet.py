"""A fleet of consumers as the request log of a broker shows it: lines of the shape that Kafka 4.1 writes, at any rate.

Every group forms once (JOIN, SYNC), then lives well at the defaults of the Java client: HEARTBEAT every 3 s, FETCH
every 0.5 s, OFFSET_COMMIT every 5 s: 13, 79 and 8 % of the lines. In recorded logs FETCH has more still. Shapes were
taken from recorded lines; the instants are given by the caller.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from bench import text

_END = (
    '"connection":"127.0.0.1:9092-{host}:{port}-{proc}-{port}","totalTimeMs":{total},"requestQueueTimeMs":0.151,'
    '"localTimeMs":{local},"remoteTimeMs":{remote},"throttleTimeMs":0,"responseQueueTimeMs":0.136,"sendTimeMs":0.075,'
    '"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT",'
    '"clientInformation":{{"softwareName":"apache-kafka-java","softwareVersion":"4.1.2"}}}} (kafka.request.logger)\n'
)
_HEAD = (
    '[{stamp}] DEBUG Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":{key},'
    '"requestApiVersion":{version},"correlationId":{number},"clientId":"{client}","requestApiKeyName":"{name}"}},'
)
HEARTBEAT = (
    _HEAD
    + (
        '"request":{{"groupId":"{group}","generationId":1,"memberId":"{member}","groupInstanceId":null}},'
        '"response":{{"throttleTimeMs":0,"errorCode":0}},'
    )
    + _END
)
FETCH = (
    _HEAD
    + (
        '"request":{{"maxWaitMs":500,"minBytes":1,"maxBytes":52428800,"isolationLevel":0,"sessionId":7,"sessionEpoch":{number},'
        '"topics":[{{"topicId":"5nBrKJUIQ2-WOq2rXDYDoQ","partitions":[{{"partition":0,"currentLeaderEpoch":0,"fetchOffset":12,'
        '"lastFetchedEpoch":-1,"logStartOffset":-1,"partitionMaxBytes":1048576}}]}}],"forgottenTopicsData":[],"rackId":""}},'
        '"response":{{"throttleTimeMs":0,"errorCode":0,"sessionId":7,"responses":[{{"topicId":"5nBrKJUIQ2-WOq2rXDYDoQ",'
        '"partitions":[{{"partitionIndex":0,"errorCode":0,"highWatermark":12,"lastStableOffset":12,"logStartOffset":0,'
        '"abortedTransactions":[],"preferredReadReplica":-1,"recordsSizeInBytes":110}}]}}]}},'
    )
    + _END
)
COMMIT = (
    _HEAD
    + (
        '"request":{{"groupId":"{group}","generationIdOrMemberEpoch":1,"memberId":"{member}","groupInstanceId":null,"topics":'
        '[{{"name":"orders","partitions":[{{"partitionIndex":0,"committedOffset":{number},"committedLeaderEpoch":0,'
        '"committedMetadata":""}}]}}]}},"response":{{"throttleTimeMs":0,"topics":[{{"name":"orders","partitions":'
        '[{{"partitionIndex":0,"errorCode":0}}]}}]}},'
    )
    + _END
)
JOIN = (
    _HEAD
    + (
        '"request":{{"groupId":"{group}","sessionTimeoutMs":45000,"rebalanceTimeoutMs":300000,"memberId":"{member}",'
        '"groupInstanceId":null,"protocolType":"consumer","protocols":[{{"name":"range",'
        '"metadata":"AAMAAAABAAZvcmRlcnP/////AAAAAP///////w=="}}],"reason":""}},"response":{{"throttleTimeMs":0,"errorCode":0,'
        '"generationId":1,"protocolType":"consumer","protocolName":"range","leader":"{leader}","skipAssignment":false,'
        '"memberId":"{member}","members":[{listed}]}},'
    )
    + _END
)
SYNC = (
    _HEAD
    + (
        '"request":{{"groupId":"{group}","generationId":1,"memberId":"{member}","groupInstanceId":null,"protocolType":"consumer",'
        '"protocolName":"range","assignments":[{assigned}]}},"response":{{"throttleTimeMs":0,"errorCode":0,"protocolType":"consumer",'
        '"protocolName":"range","assignment":"AAAAAAABAAZvcmRlcnMAAAABAAAAAf////8="}},'
    )
    + _END
)

_LISTED = '{{"memberId":"{name}","groupInstanceId":null,"metadata":"AAMAAAABAAZvcmRlcnP/////AAAAAP///////w=="}}'
_ASSIGNED = '{{"memberId":"{name}","assignment":"AAAAAAABAAZvcmRlcnMAAAABAAAAAf////8="}}'

EVERY_MS = (
    (HEARTBEAT, 12, 4, "HEARTBEAT", 3_000.0),
    (FETCH, 1, 16, "FETCH", 500.0),
    (COMMIT, 8, 9, "OFFSET_COMMIT", 5_000.0),
)
"""Template, API key, version, name and period of what a member sends while it is well."""

RATE = 1_500.0
"""Lines per second of the fleet that every stage measures."""

LINES_PER_MEMBER_AND_S = sum(1000 / period for *_, period in EVERY_MS)

FORMING_MS = 4_000.0
"""Time the groups take to form."""


def stamp_of(at_ms: float) -> str:
    """Stamp as log4j prints it, in UTC."""
    whole = int(at_ms)
    return datetime.fromtimestamp(whole // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f",{whole % 1000:03d}"


@dataclass(frozen=True)
class Member:
    """A consumer of the fleet."""

    group: str
    member: str
    client: str
    leader: str
    listed: str
    assigned: str
    host: str
    port: int
    proc: int


class Fleet:
    """Groups of members; the same seed gives the same fleet and the same lines."""

    def __init__(
        self, groups: int, members: int, seed: int = 7, *, as_text: bool = False, stretch: float = 1.0
    ) -> None:
        """Name every member. `as_text`: lines of a broker 2.7. `stretch`: how much longer all periods are."""
        self._random = random.Random(seed)
        every_ms = text.EVERY_MS if as_text else EVERY_MS
        self._every_ms = tuple(
            (template, key, version, name, period * stretch) for template, key, version, name, period in every_ms
        )
        self._forms = (text.JOIN, text.JOIN_VERSION, text.SYNC) if as_text else (JOIN, 9, SYNC)
        listed_as, assigned_as = (text.LISTED, text.ASSIGNED) if as_text else (_LISTED, _ASSIGNED)
        self.members: list[Member] = []
        for group in range(groups):
            names = [f"app-{group}-{number}-{self._random.getrandbits(128):032x}" for number in range(members)]
            listed = ",".join(listed_as.format(name=name) for name in names)
            assigned = ",".join(assigned_as.format(name=name) for name in names)
            for number, name in enumerate(names):
                self.members.append(
                    Member(
                        f"group-{group}",
                        name,
                        f"app-{group}-{number}",
                        names[0],
                        listed if number == 0 else "",
                        assigned if number == 0 else "",
                        f"10.{group >> 8 & 255}.{group & 255}.{number + 1}",
                        20_000 + number,
                        number % 8,
                    )
                )

    @staticmethod
    def for_rate(lines_per_s: float = RATE, members: int = 6, *, as_text: bool = False) -> Fleet:
        """A fleet that writes about so many lines per second."""
        return Fleet(max(1, round(lines_per_s / LINES_PER_MEMBER_AND_S / members)), members, as_text=as_text)

    def lines(self, start_ms: float) -> Iterator[tuple[float, bytes]]:
        """Lines without end, in order of their stamps: (instant, line)."""
        yield from self._forming(start_ms)
        heap: list[tuple[float, int, int]] = []
        for index in range(len(self.members)):
            for kind, (*_, period) in enumerate(self._every_ms):
                heap.append((start_ms + FORMING_MS + self._random.random() * period, index, kind))
        heapq.heapify(heap)
        number = 10
        while True:
            at_ms, index, kind = heap[0]
            template, key, version, name, period = self._every_ms[kind]
            number += 1
            yield at_ms, self._line(template, key, version, name, number, at_ms, self.members[index])
            heapq.heapreplace(heap, (at_ms + period, index, kind))

    def _forming(self, start_ms: float) -> Iterator[tuple[float, bytes]]:
        join, version, sync = self._forms
        step = (FORMING_MS - 1_000) / max(1, len(self.members))
        moments: list[tuple[float, bytes]] = []
        joined: dict[str, float] = {}
        for index, member in enumerate(self.members):
            joined[member.group] = start_ms + 500 + index * step
        for member in self.members:
            at_ms = joined[member.group]
            moments.append((at_ms, self._line(join, 11, version, "JOIN_GROUP", 5, at_ms, member, remote=300.0)))
            moments.append((at_ms + 5, self._line(sync, 14, 5, "SYNC_GROUP", 6, at_ms + 5, member)))
        yield from sorted(moments, key=lambda moment: moment[0])

    def _line(
        self,
        template: str,
        key: int,
        version: int,
        name: str,
        number: int,
        at_ms: float,
        member: Member,
        remote: float = 0.0,
    ) -> bytes:
        local = 0.3 + number * 37 % 700 / 1_000
        remote += number * 101 % 900 / 1_000
        return template.format(
            stamp=stamp_of(at_ms),
            key=key,
            version=version,
            name=name,
            number=number,
            total=round(0.362 + local + remote, 3),
            local=round(local, 3),
            remote=round(remote, 3),
            group=member.group,
            member=member.member,
            client=member.client,
            leader=member.leader,
            listed=member.listed,
            assigned=member.assigned,
            host=member.host,
            port=member.port,
            proc=member.proc,
        ).encode()
