"""Has the topic lost records that were not read? Compared at start, before Spark asks for them.

Retention or a deletion may remove records that the job has not read yet. By default the job refuses with partition and
range; with `--accept-loss` it reads on from what there is, for this one run, and each lane finds the jump in its chain
of offsets by itself and turns it into a GAP event (`lane`): so the gap is in the tables exactly once, however often
the batch is repeated. Spark's `failOnDataLoss=false` alone would be silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from ingest.clients.log import CLIENT_LOG
from ingest.wire.topic_id import TopicWatch, topic_id
from spark_jobs.errors import TopicError, TopicLossError

TIMEOUT_S = 30.0


class Loss(NamedTuple):
    """Offsets that are gone, end exclusive."""

    partition: int
    start: int
    end: int


def find_losses(
    bootstrap: str, topic: str, unread: Mapping[int, int], more: Mapping[str, str] | None = None
) -> list[Loss]:
    """Unread offsets the broker no longer has. `unread` is the next offset to read per partition."""
    own = {**(more or {}), "bootstrap.servers": bootstrap, "group.id": "kardia-topic-check"}
    consumer = Consumer(own, logger=CLIENT_LOG)
    try:
        losses = []
        for partition, offset in sorted(unread.items()):
            beginning, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
            if beginning > offset:
                losses.append(Loss(partition, offset, beginning))
            elif end < offset:
                raise TopicError(
                    f"partition {partition} of {topic} ends at {end}, but {offset} has been read: its brokers have "
                    "lost records that they had acknowledged",
                    bootstrap,
                    "the records this checkpoint has read; offsets only grow",
                    "see whether a replica that was behind became the leader (unclean.leader.election.enable); then "
                    "begin a new checkpoint with --new-generation",
                )
        return losses
    except KafkaException as error:
        raise _unreadable(topic, bootstrap, error) from error
    finally:
        consumer.close()


def ends_of(bootstrap: str, topic: str, lanes: int, more: Mapping[str, str] | None = None) -> dict[int, int]:
    """Where each partition of a topic ends: the offset of the next record."""
    own = {**(more or {}), "bootstrap.servers": bootstrap, "group.id": "kardia-topic-check"}
    consumer = Consumer(own, logger=CLIENT_LOG)
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)[1]
            for number in range(lanes)
        }
    except KafkaException as error:
        raise _unreadable(topic, bootstrap, error) from error
    finally:
        consumer.close()


def id_of(bootstrap: str, topic: str, more: Mapping[str, str] | None = None) -> str:
    """Id of a topic (`ingest.wire.topic_id`)."""
    return topic_id(AdminClient({**(more or {}), "bootstrap.servers": bootstrap}, logger=CLIENT_LOG), topic, TIMEOUT_S)


def watch(bootstrap: str, topic: str, known: str, more: Mapping[str, str] | None = None) -> TopicWatch:
    """Looks again and again whether it is still the topic whose id is known."""
    return TopicWatch(AdminClient({**(more or {}), "bootstrap.servers": bootstrap}, logger=CLIENT_LOG), topic, known)


def made_again(topic: str, where: str) -> TopicError:
    """What ends a job that runs when its topic is made again."""
    return TopicError(
        f"the topic {topic} was deleted and made again while it was read",
        where,
        "the topic that was there when the job began: offsets begin anew in another one",
        "start again: the new one is read from its beginning, and a gap is told before it",
    )


def _unreadable(topic: str, bootstrap: str, error: KafkaException) -> TopicError:
    return TopicError(
        f"the offsets of {topic} cannot be read: {error.args[0].str()}",
        bootstrap,
        "a reachable broker that lets this job read the topic",
        "check --bootstrap-server, the network and the permissions",
    )


def refuse(topic: str, losses: list[Loss]) -> TopicLossError:
    """Refusal of a start over a loss."""
    ranges = ", ".join(f"partition {loss.partition}: offsets {loss.start}–{loss.end - 1}" for loss in losses)
    return TopicLossError(
        f"{topic} has lost records that were not read yet ({ranges}): retention or a deletion removed them",
        topic,
        "every record from the last committed offset on",
        "raise retention.ms of the topic or run the job more often; pass --accept-loss to read on from the first "
        "record there is: every group of these lanes is then marked unknown across the gap",
    )
