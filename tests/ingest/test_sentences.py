"""The tables of the coordinator's sentences: each as it was recorded, all that jars log, and what is in no table."""

from __future__ import annotations

import gzip
import re
from collections import Counter

import pytest

from ingest.dialects.classic_sentences import SENTENCES
from ingest.dialects.sentence import Sentence
from ingest.dialects.server_log import PATTERNS, ServerLog
from ingest.dialects.silent_sentences import OF_NO_GROUP, SILENT, is_silent
from ingest.stamps import zone_named
from kardia.events import COORDINATOR_LINES, Event, Kind
from spark_jobs.jvm import jars
from tests.ingest.lines import START_MS, stamp
from tests.support.logged import LEVELS, logged
from tests.support.stories import CORPORA

JAVA = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
SCALA = "[GroupCoordinator 1]: "
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
PACKAGES = ("org/apache/kafka/coordinator/group/", "org/apache/kafka/coordinator/common/")
UUID = "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"


def read(message: str, logger: str = LOGGER, level: str = "INFO") -> object:
    line = f"{stamp(START_MS)} {level} {message} ({logger})".encode()
    return ServerLog(zone_named("UTC")).read(line, "b/server/i", 0, len(line))


def refusal(reading: object) -> str:
    assert isinstance(reading, Event), reading
    assert reading.kind == Kind.REJECTED, reading
    return str((reading.detail or {})["reason"])


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: f"{one.since}-{one.example[:60]}")
def test_each_sentence_is_read_as_it_was_recorded(sentence: Sentence) -> None:
    event = read(SCALA + sentence.example)
    assert isinstance(event, Event)
    assert event.kind == Kind.COORDINATOR_LINE
    assert (event.detail or {})["what"] == sentence.read.what
    assert sentence.read.what in COORDINATOR_LINES
    assert event.group_id in sentence.example
    assert event.member_id in sentence.example


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "assignment_received",
            "Assignment received from leader {} for group on for generation 9. The group has 1 members, 0 of which are "
            "static.",
        ),
        ("member_failed", "Member {} in group on has failed, removing it from the group."),
        (
            "member_left",
            "[Group on] Member {} has left group through explicit `LeaveGroup` request; client reason: the consumer is "
            "being closed",
        ),
        (
            "preparing_rebalance",
            "Preparing to rebalance group on in state PreparingRebalance with old generation 9 (reason: removing "
            "member {} on heartbeat expiration).",
        ),
        (
            "preparing_rebalance",
            "Preparing to rebalance group on in state PreparingRebalance with old generation 9 (reason: explicit "
            "`LeaveGroup` request for ({}) members.).",
        ),
    ],
)
def test_a_member_that_a_consumer_group_has_named_is_read_when_that_is_a_classic_one(what: str, message: str) -> None:
    """Its id is no more than a UUID in base64; the first line is a real broker's."""
    event = read(JAVA + message.format("4n-tTVUaSt-TeO5f9HgnZA"))
    assert isinstance(event, Event)
    assert event.kind == Kind.COORDINATOR_LINE, event.detail
    assert ((event.detail or {})["what"], event.member_id, event.group_id) == (what, "4n-tTVUaSt-TeO5f9HgnZA", "on")


@pytest.mark.parametrize(
    ("client_id", "message"),
    [
        ("{} in group orders", "Member {} in group real has failed, removing it from the group."),
        ("{} for group orders", "Assignment received from leader {} for group real for generation 9."),
        (
            "{} and more",
            "Preparing to rebalance group real in state PreparingRebalance with old generation 9 (reason: removing "
            "member {} on heartbeat expiration).",
        ),
    ],
)
def test_a_client_that_calls_itself_like_such_a_member_speaks_for_no_other_group(client_id: str, message: str) -> None:
    """What a client chooses stands before the UUID of its member id. The group `real` lies in partition 0."""
    member_id = client_id.format("A" * 22) + "-550e8400-e29b-41d4-a716-446655440000"
    event = read(JAVA.replace("partition=3", "partition=0") + message.format(member_id))
    assert isinstance(event, Event)
    assert (event.kind, event.group_id, event.member_id) == (Kind.COORDINATOR_LINE, "real", member_id)


@pytest.mark.parametrize("template", [template for some in SILENT.values() for template in some], ids=str)
def test_a_sentence_that_says_nothing_of_members_is_none_that_does(template: str) -> None:
    message = template.replace("{}", "x")
    assert is_silent(message)
    assert is_silent(template.replace("{}", "a: {}, b\n c"))
    assert read(JAVA + message) == "not_a_coordinator_line"
    assert not [one.what for one in PATTERNS if one.words in message and one.shortest.fullmatch(message)]


@pytest.mark.parametrize("template", OF_NO_GROUP)
def test_a_sentence_that_names_no_group_and_means_something_is_refused_and_says_so(template: str) -> None:
    """That of 2.3 about who is fenced is the only trace that server.log has of it."""
    reading = read(template.replace("{}", f"x-{UUID}"), logger="kafka.coordinator.group.GroupMetadata", level="ERROR")
    assert refusal(reading) == "no_group"
    assert isinstance(reading, Event)
    assert "names its group" in (reading.detail or {})["expected"]


def test_a_reason_for_fencing_that_is_not_known_is_refused() -> None:
    """Its member is gone by it, and of what cause nobody has said yet."""
    assert refusal(read(JAVA + "[GroupId g] Member m fenced from the group because it sang.")) == "unknown_sentence"


@pytest.mark.parametrize(
    "message",
    [
        JAVA + "Member x in group g was let go.",
        SCALA + "Preparing to rebalance group orders",  # the rest of the id stands in the next line
        "[GroupMetadataManager brokerId=1] Moved group g to a better place",
    ],
)
def test_what_looks_like_the_coordinators_and_is_in_no_table_is_refused(message: str) -> None:
    assert refusal(read(message)) == "unknown_sentence"
    assert refusal(read(message, level="ERROR")) == "unknown_sentence"
    assert read(message, level="DEBUG") == "not_a_coordinator_line", "at which it tells much that is not in the tables"


def test_the_logger_tells_it_as_well() -> None:
    assert refusal(read("Something new about group g.", logger="kafka.coordinator.group.GroupMetadata")) == (
        "unknown_sentence"
    )
    assert read("GroupCoordinator is a word", logger="kafka.server.KafkaServer") == "not_a_coordinator_line"


def test_no_recorded_line_is_unknown_but_those_that_an_id_cuts_in_two() -> None:
    """The broker writes a name with a line break as it is."""
    refused: Counter[str] = Counter()
    for path in sorted(CORPORA.glob("*/server.log.gz")):
        dialect = ServerLog(zone_named("UTC"))
        for line in gzip.decompress(path.read_bytes()).splitlines():
            reading = dialect.read(line, "b/server/i", 0, len(line))
            if isinstance(reading, Event) and (reading.detail or {}).get("reason") == "unknown_sentence":
                refused[path.parent.name] += 1
    assert set(refused) == {"o25_odd-2.3.1"}
    assert refused.total() < 15


@pytest.mark.parametrize(
    "release",
    [
        "broker-4.4.0",
        "broker-3.9.2",  # its coordinator in Java is the preview of KIP-848, as of 3.7 and 3.8
        *(
            pytest.param(f"coordinator-{one}", marks=pytest.mark.long)
            for one in ("3.7.2", "3.8.1", "4.0.2", "4.1.2", "4.2.1", "4.3.1")
        ),
    ],
)
def test_everything_that_the_coordinators_classes_log_is_in_a_table(release: str) -> None:
    """Of a release to come this says which sentences are new."""
    found = {
        one
        for jar in jars.ensure(release)
        for one in logged(jar, *PACKAGES)
        if LEVELS.index(one.level) >= LEVELS.index("info") and (one.class_name, one.sentence) not in PUT_TOGETHER
    }
    assert len(found) > 80
    unknown = [one for one in sorted(found) if not (_is_read(one.sentence) or is_silent(filled(one.sentence)))]
    assert unknown == []


PUT_TOGETHER = {
    ("GroupCoordinatorShard", ", "),  # the groups that were deleted, joined by commas
    ("GroupMetadataManager", "[GroupId {}] {}."),  # that a target assignment failed
    ("GroupMetadataManager", "consumer"),  # a name that is put into the sentence before it
    ("ClassicGroup", "consumer"),
    ("ClassicGroup", "None"),
    ("ClassicGroup", ". Consumer group coordinator is not aware of the subscribed topics."),  # 3.7 to 3.9
    ("GroupMetadataManager", "."),
}
"""What stands last before the call of the logger and is not the sentence."""

EXPECTED_WORDS = {
    "reason: {}": "reason: x",
    "because {}.": "because the member session expired.",
    "using the {} protocol": "using the classic protocol",
    "state={}, assignedPartitions": "state=STABLE, assignedPartitions",
    "state={}, assignedTasks": "state=STABLE, assignedTasks",
    "haven't joined: {}": f"haven't joined: [x-{UUID}]",
    "'{}' assignor": "'uniform' assignor",
    "in state {} with old": "in state Stable with old",
    "group {} in {} state": "group g in Stable state",
    "unloading metadata for {} ": "unloading metadata for __consumer_offsets-3 ",
    "of metadata from {} ": "of metadata from __consumer_offsets-3 ",
}
"""What stands in a sentence where it is not a number and not the id of a member."""


def filled(sentence: str) -> str:
    """A sentence with something put in."""
    for words, instead in EXPECTED_WORDS.items():
        sentence = sentence.replace(words, instead)
    sentence = re.sub(
        r"(generation|epoch|epoch to|epoch=|previousEpoch=|hash|in|within|with) ?\{\}", _numbered, sentence
    )
    sentence = re.sub(r"\{\} (?=members|of which are static|offsets were)", "2 ", sentence)
    return re.sub(r"%[sd]|\{\}", f"x-{UUID}", sentence)


def _numbered(found: re.Match[str]) -> str:
    return found[0].replace("{}", "7")


def _is_read(sentence: str) -> bool:
    message = filled(sentence)
    return any(one.words in message and one.longest.fullmatch(message) for one in PATTERNS)
