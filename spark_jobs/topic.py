"""The topic `kardia.events` as the job reads it: Spark's Kafka source with measured settings, and one row per record.

It must not look into a record: that is done where the lane is stepped, so that a foreign record stops nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # its stub does not list it

from ingest.errors import AwayError, IngestError
from ingest.security.reach import allowed, connect
from ingest.wire.batches import CLUSTER_HEADER, FORMAT_HEADER
from spark_jobs.errors import RefusedError, TopicError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_RECORDS_PER_BATCH = 500
"""Records of one micro-batch, so at most 1.5 million events (a folded record holds 3,000 at most, another one 1,000):
enough to amortise the fixed 0.3 s of a batch, and few enough for two lanes of it to be decoded in 1.5 GB."""

MAX_RECORDS_PER_ARCHIVE_BATCH = 2_000
"""The same for the archive. Two minutes of live traffic are some batches, because a commit of delta-spark costs a
second of CPU whatever its size. A batch that is killed is repeated as it was planned, so that one must be done between
two kills, or none ever is: at most 6 million events, a minute of work in a backlog."""

METADATA_TIMEOUT_S = 30.0

EARLIEST = -2
"""Offset that means the first that a partition has."""

CONSUMER = {
    # After each poll Spark asks the broker for two offsets, and they queue behind the consumer's next fetch, which
    # waits for data up to this long: at Kafka's default of 500 it costs 85 ms per partition and batch. No idle traffic
    # comes of it, because Spark polls only inside a batch.
    "kafka.fetch.max.wait.ms": "5",
    # A poll unpacks its records, and what a batch does not take of them stays so: at most 50 MB a lane, of the
    # largest records. The rest of a fetch is kept as it came, compressed.
    "kafka.max.poll.records": "100",
    "kafka.max.partition.fetch.bytes": str(2 << 20),
    # A topic that somebody has deleted would come back with as many lanes as the brokers give to any topic.
    "kafka.allow.auto.create.topics": "false",
}


def lanes_of(bootstrap: str, topic: str, more: Mapping[str, str] | None = None) -> int:
    """Partitions of the topic; refuses if the broker or the topic is not there. `more`: settings of librdkafka."""
    try:
        # All topics: asking for one by name makes brokers create it, with a number of partitions of their own.
        admin, answer = connect(bootstrap, more, METADATA_TIMEOUT_S)
    except IngestError as error:
        kind = TopicError if isinstance(error, AwayError) else RefusedError
        raise kind(error.what, error.where, error.expected, error.next_step) from None
    found = answer.topics.get(topic)
    operations = allowed(admin, topic, METADATA_TIMEOUT_S)
    if operations is not None and AclOperation.READ not in operations:
        raise no_right(topic, bootstrap)  # before Spark is started, which would only find out then
    if found is None or found.error is not None or not found.partitions:
        raise TopicError(
            f"there is no topic {topic}",
            bootstrap,
            "the topic that `kardia collect` creates",
            "start the collector first, or correct --topic",
        )
    return len(found.partitions)


def records(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    *,
    max_records: int = MAX_RECORDS_PER_BATCH,
    fail_on_loss: bool = True,
    more: Mapping[str, str] | None = None,
    lanes: Sequence[int] | None = None,
    begins_at: Mapping[int, int] | None = None,
) -> DataFrame:
    """Stream of records with the columns the stateful operator takes (`processor.INPUT_COLUMNS`); of some `lanes` if
    they are given, of a new checkpoint from `begins_at` on. `more`: settings of Java's client, which Spark's plans
    show: no secret is among them (`ingest.security.for_java`)."""
    begin = {str(lane): (begins_at or {}).get(lane, EARLIEST) for lane in lanes or ()}
    reader = spark.readStream.format("kafka")
    options = {
        "kafka.bootstrap.servers": bootstrap,
        **({"subscribe": topic} if lanes is None else {"assign": json.dumps({topic: list(lanes)})}),
        "startingOffsets": json.dumps({topic: begin}) if begin else "earliest",
        "includeHeaders": "true",
        "failOnDataLoss": str(fail_on_loss).lower(),
        "maxOffsetsPerTrigger": str(max_records),
        **CONSUMER,
        **{f"kafka.{key}": value for key, value in (more or {}).items()},
    }
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.load().selectExpr(
        "partition AS lane",
        "offset",
        "unix_millis(timestamp) AS at_ms",
        _header(FORMAT_HEADER, "format"),
        "value",
        _header(CLUSTER_HEADER, "cluster"),
    )


def parts(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    lanes: int,
    number: int,
    *,
    max_records: int = MAX_RECORDS_PER_BATCH,
    fail_on_loss: bool = True,
    more: Mapping[str, str] | None = None,
    begins_at: Mapping[int, int] | None = None,
) -> list[DataFrame]:
    """The records in so many parts, of the same lanes in every run."""
    most = max(1, max_records // number)
    return [
        records(
            spark,
            bootstrap,
            topic,
            max_records=most,
            fail_on_loss=fail_on_loss,
            more=more,
            lanes=range(part, lanes, number),
            begins_at=begins_at,
        )
        for part in range(number)
    ]


def _header(key: str, name: str) -> str:
    """The first header of that key; a map of the headers would fail on a record that has one twice."""
    return f"get(filter(headers, h -> h.key = '{key}'), 0).value AS {name}"


def no_right(topic: str, where: str) -> RefusedError:
    """The principal may not read the topic."""
    return RefusedError(
        f"the topic {topic} may not be read by this principal",
        where,
        f"READ on Topic:{topic}, and nothing more",
        "grant it; `kardia doctor` prints the line",
    )
