"""Sentences of server.log about groups that have epochs: each as it was recorded, and ids that look like one."""

from __future__ import annotations

import gzip
import re

import pytest

from ingest.archives.ranges import tick
from ingest.dialects.epoch_sentences import SENTENCES
from ingest.dialects.sentence import Sentence
from ingest.dialects.server_log import ServerLog
from ingest.stamps import zone_named
from kardia.events import COORDINATOR_LINES, Event, Kind, lane_of, shard_of
from kardia.kafka.releases import version_of
from kardia.observe import Observer, ObserverSettings
from tests.support.stories import CORPORA, MODERN_STORIES

LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"

IGNORED = re.compile(
    r"Creating a simple consumer group|Computed new metadata hash|updated its subscribed |Configuring the topology"
    r"|Valid topic configuration found|initialized the topology|updated its member met|Dynamic member with unknown"
    r"|Unloading group metadata for generation"
)
"""Sentences of groups that tell nothing of members or epochs; the last is one of classic groups."""


def read(message: str, partition: int = 3) -> Event | str | list[Event]:
    prefix = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={partition}]"
    line = f"[2026-11-20 22:17:53,759] INFO {prefix} {message} ({LOGGER})".encode()
    return ServerLog(zone_named("UTC")).read(line, "b/server/x", 0, len(line))


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: f"{one.since}-{one.example[:70]}")
def test_each_sentence_is_read_as_it_was_recorded(sentence: Sentence) -> None:
    event = read(sentence.example)
    assert isinstance(event, Event)
    assert (event.detail or {})["what"] == sentence.read.what
    assert sentence.read.what in COORDINATOR_LINES
    assert event.group_id in sentence.example
    assert event.member_id in sentence.example
    assert version_of(sentence.since) >= version_of("3.7.0")


def test_what_stands_in_them() -> None:
    fenced = read(
        "[GroupId h08] Member oab1VRrxQeKoI6bq9b9VMw fenced from the group because it failed to transition from epoch "
        "2 within 8000ms."
    )
    assert isinstance(fenced, Event)
    assert (fenced.group_id, fenced.member_id) == ("h08", "oab1VRrxQeKoI6bq9b9VMw")
    assert (fenced.detail or {})["reason"] == "it failed to transition from epoch 2 within 8000ms"
    classic = read(
        "[GroupId h11] Member k11-b-99c240a0-e44a-427b-9d43-05c9f9f7b4b3 joins the consumer group using the classic "
        "protocol."
    )
    assert isinstance(classic, Event)
    assert classic.member_id == "k11-b-99c240a0-e44a-427b-9d43-05c9f9f7b4b3"
    assert (classic.detail or {})["reason"] == "classic"
    raised = read("[GroupId h08] Bumped group epoch to 4.")
    assert isinstance(raised, Event)
    assert raised.generation_id == 4, "Kafka 4.0 tells no hash"
    again = next(one for one in SENTENCES if one.read.what == "epoch_member_replaced")
    replaced = read(again.example)
    assert isinstance(replaced, Event)
    assert (replaced.member_id, replaced.group_instance_id) == ("HoDmCIcZQJqfC5WVPW5_NA", "i-a")
    assert (replaced.detail or {})["members"] == ["EBSO6lEDTMm1Ri0NuHieEA"]


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_every_sentence_of_a_recorded_group_with_epochs_is_read(name: str) -> None:
    dialect, begin = ServerLog(zone_named("UTC")), 0
    for path in sorted((CORPORA / name).glob("server*.log.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            begin += len(line) + 1
            if b"[GroupId" not in line or IGNORED.search(line.decode()):
                continue
            event = dialect.read(line, "b/server/x", begin - len(line) - 1, begin)
            assert isinstance(event, Event), line
            assert event.kind == Kind.COORDINATOR_LINE, line


@pytest.mark.parametrize(
    "member",
    [
        "a] Member b fenced from the group because the member session expired",
        "a joins the consumer group using the consumer protocol",
        "a left the consumer group",
        "x with instance id y",
    ],
)
def test_an_id_that_looks_like_a_sentence_speaks_for_nobody_else(member: str) -> None:
    """Either it is read as the id that it is, or it has more than one reading and is refused."""
    for message in (
        f"[GroupId g] Member {member} left the consumer group.",
        f"[GroupId g] Static member {member} with instance id i joins the consumer group using the consumer protocol.",
        f"[GroupId g] Member {member} fenced from the group because the member session expired.",
    ):
        event = read(message)
        assert isinstance(event, Event), message
        if event.kind == Kind.COORDINATOR_LINE:
            assert (event.group_id, event.member_id) == ("g", member), message
        else:
            assert (event.detail or {})["reason"] == "ambiguous"


def test_the_preview_does_not_say_who_was_replaced_and_the_observer_knows_it() -> None:
    """3.7: a static member that comes back under another member id, by the instance id that both have."""
    sentences = (
        "[GroupId h06] Bumped group epoch to 2.",
        "[GroupId h06] Static member EBSO6lEDTMm1Ri0NuHieEA with instance id i-a joins the consumer group.",
        "[GroupId h06] Static member HoDmCIcZQJqfC5WVPW5_NA with instance id i-a re-joins the consumer group.",
    )
    events = [event for event in map(read, sentences) if isinstance(event, Event)]
    shard, at = shard_of("h06"), events[0].logged_at_ms
    given = [event._replace(shard=shard, start=place, end=place + 1) for place, event in enumerate(events)]
    observer = Observer(ObserverSettings("c"), lane_of(shard))
    observer.step([*given, tick("b/server/x", 0, 3, at + 1_000, 3, 3, {}, at, {"last_line_at_ms": at + 1_000})])
    observer.finish()
    group = observer.groups["h06"]
    assert list(group.members) == ["HoDmCIcZQJqfC5WVPW5_NA"]
    assert group.instances == {"i-a": "HoDmCIcZQJqfC5WVPW5_NA"}
