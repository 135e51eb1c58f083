"""What people have instead of a broker's log, known by its look, and what to do to get an answer all the same.

Each kind of output is a row: words that only it has, what it is, and why it cannot serve. The next step is the same
for most: the cluster itself tells more.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD_BYTES = 256 * 1024

CAPTURE = "`kardia capture --bootstrap-server BROKER --out offsets.jsonl` reads what the coordinator stored"
SAMPLES = (
    "`kardia capture --admin --bootstrap-server BROKER --out samples.jsonl` records how groups are, and "
    "`kardia doctor --bootstrap-server BROKER` says what else this cluster can tell"
)
_OWN_SIDE = "which tells one client's side only; the coordinator's is in server.log and the request log of the brokers"


class Foreign(NamedTuple):
    """A kind of output."""

    example: str
    """A line of it."""
    look: re.Pattern[bytes]
    what: str
    why: str
    step: str = f"{CAPTURE}, {SAMPLES}"


KINDS: tuple[Foreign, ...] = (
    Foreign(
        "%4|1625755725.261|SESSTMOUT|rdkafka#consumer-1| [thrd:main]: Consumer group session timed out",
        re.compile(rb"(?m)^.{0,200}?%[0-7]\|[0-9]{9,}\.[0-9]{3}\|[A-Z0-9_]{2,20}\|"),
        "a log of librdkafka",
        _OWN_SIDE,
    ),
    Foreign(
        "[2025-10-29 19:06:45,377] INFO [Worker clientId=c, groupId=g] (Re-)joining group "
        "(org.apache.kafka.connect.runtime.distributed.WorkerCoordinator:611)",
        re.compile(rb"\[(?:Consumer|Worker|Producer|AdminClient) (?:instanceId=[^,\]]{1,200}, )?clientId="),
        "a log of Kafka's Java client",
        _OWN_SIDE,
    ),
    Foreign(
        "2019-05-27 08:40:34,176 - kafka.coordinator - DEBUG - Received successful heartbeat response for group g",
        re.compile(
            rb"[ :-]{1,6}(?:aio)?kafka\.(?:coordinator|consumer|client|conn|cluster)(?:\.(?!group\.)[\w.]{1,60})?"
            rb"[ :-]{1,6}(?:(?:DEBUG|INFO|WARNING|ERROR)\b|[A-Z])"
        ),
        "a log of kafka-python or aiokafka",
        _OWN_SIDE,
    ),
    Foreign(
        "[sarama]2018/01/18 04:38:29 client/coordinator requesting coordinator for consumergroup g from 10.0.0.1:9092",
        re.compile(rb"(?i)\[sarama\]|\bclient/(?:coordinator|metadata|brokers?|seedbrokers) |kafka server: [A-Z]"),
        "a log of sarama",
        _OWN_SIDE,
    ),
    Foreign(
        '{"level":"DEBUG","timestamp":"2022-05-17T13:39:51.294Z","logger":"kafkajs","message":"[Connection] Response"}',
        re.compile(rb'"logger" ?: ?"kafkajs"|\[ConsumerGroup\] |\[Runner\] '),
        "a log of kafkajs",
        _OWN_SIDE,
    ),
    Foreign(
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID",
        re.compile(
            rb"(?m)\b(?:CURRENT-OFFSET|LOG-END-OFFSET|CONSUMER-ID|COORDINATOR \(ID\)|#MEMBERS|TARGET-EPOCH)\b"
            rb"|^(?:Warning: )?Consumer group '[^'\n]{1,300}' (?:is rebalancing|has no active members)"
        ),
        "output of kafka-consumer-groups.sh --describe",
        "which shows one moment and says neither when it was nor since when it is so",
        SAMPLES,
    ),
    Foreign(
        "% Reached end of topic __consumer_offsets [12] at offset 4",
        re.compile(
            rb"(?m)^% (?:Reached end of topic|Auto-selecting|ERROR: |Waiting for group|Group \S{1,300} rebalanced)"
            rb"|^Metadata for (?:all topics|\S{1,300}) \(from broker"
            rb'|"topic" ?: ?"[^"]{1,249}" ?, ?"partition" ?: ?[0-9]+ ?, ?"offset"'
        ),
        "output of kcat",
        "whose text loses the bytes of records and says nothing of members",
        f"{CAPTURE}, {SAMPLES}",
    ),
)

_UNDATED = re.compile(
    rb"\[Group(?:Coordinator|MetadataManager)[ \]]|\[Group(?:Id)? [^\]\n]{1,300}\] |Preparing to rebalance group |"
    rb"Stabilized group |Assignment received from leader|has failed, removing it from the group|"
    rb" joins the consumer group |Bumped group epoch to "
)
"""Words of the coordinator."""
UNDATED = (
    "words of a broker's coordinator without the time before them: without times nothing can be told; copy the lines "
    "with their stamps, or the log itself"
)


def foreign(head: bytes) -> str:
    """What a file is that no reader takes, with the next step; "" if it is not known either."""
    looked = head[:HEAD_BYTES]
    for kind in KINDS:
        if kind.look.search(looked):
            return f"{kind.what}, {kind.why}; {kind.step}"
    return UNDATED if _UNDATED.search(looked) else ""
