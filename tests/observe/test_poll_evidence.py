"""Each client library row by row: which request shows a poll and how far off it may be, until when the next one is
due, and what is said of a zombie and of a consumer that is well and has nothing to do.

Method: one member, Stable from 3,010 ms with three partitions and a rebalance timeout of 60 s, heartbeats every 3 s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kardia.kafka.libraries import LIBRARIES, recognise, recognise_modern
from tests.support.scene import START, Scene
from tests.support.stories import named

NO, SINCE = -1, 9_000
"""A request that shows no poll; and one that may be a poll or none: then it is the last that is known, 9 s before."""


class Row(NamedTuple):
    """`fetch`, `taken` (a FETCH after an answer with records, both of three partitions), `own` (the commit 5 s after
    the last), `moved` (a commit of other offsets, at any time), `same` (of the same ones): error bound in ms, or NO.
    `joined`: whether the JoinGroup shows one. `due`: whether a deadline is said. `zombie`, `idle`, `paused`: what is
    said of one."""

    software: str
    client: str
    joined: bool
    fetch: int
    taken: int
    own: int
    moved: int
    same: int
    due: bool
    zombie: str
    idle: str
    paused: str


JAVA, STREAM, RDKAFKA = "apache-kafka-java/4.1.1", "orders-1-StreamThread-1-consumer", "librdkafka/2.16.0"
S, P, U = "stalled", "polls", "unknown"
PYTHON = "kafka-python/3.0.12"
# fmt: off
TABLE = {
    #                   software         client joined   fetch taken    own  moved   same    due zombie idle paused
    "java":         Row(JAVA,              "a",   True,     0,     0,     0, SINCE, SINCE,  True,   S,   P,   P),
    "kafka-python": Row(PYTHON,            "a",   True,     0,     0,     0, SINCE, SINCE,  True,   S,   P,   P),
    "streams":      Row(JAVA,              STREAM, True,    0,     0,    NO, 6_010,    NO,  True,   U,   P,   U),
    "librdkafka":   Row(RDKAFKA,           "a",  False,    NO,    NO, 5_000, 5_000,    NO,  True,   S,   U,   U),
    "aiokafka":     Row("aiokafka/0.14",   "a",  False,    NO,    NO, 5_000, 5_000,    NO, False,   S,   U,   U),
    "sarama":       Row("sarama/1.46",     "a",  False,    NO,    NO, 1_000, 1_000,    NO, False,   S,   U,   U),
    "franz-go":     Row("kgo/v1.20.5",     "a",  False,    NO,     0, 5_000, 5_000,    NO, False,   S,   U,   U),
    "kafka-go":     Row("kafka-go/0.4.49", "a",  False,    NO,    NO, 1_000, 1_000,    NO, False,   S,   U,   U),
    "kafkajs":      Row("kafkajs/2.2.4",   "a",   True,     0,     0,     0,     0,     0, False,   P,   P,   P),
    "unknown":      Row("my-own-client/1", "a",  False,    NO,    NO,    NO,    NO,    NO, False,   U,   U,   U),
}
# fmt: on
"""`zombie`: its handler hangs from 15 s, and what its library's own threads do goes on; of kafkajs, whose heartbeats
come from the loop that runs the handler, there is none. `idle`: it polls, and there is nothing to read. `paused`: it
polls and wants nothing. Java and kafka-python commit by themselves here, as they do unless told not to."""

BACKGROUND = ("librdkafka", "sarama", "kafka-go")
"""They fetch whatever the application does."""


def of_one(row: Row, end: int = 40_000, partitions: int = 3) -> Scene:
    """A group of one member."""
    scene = Scene(software=row.software)
    scene.joined(3_000, 1, {row.client: 0.0})
    scene.synced(3_010, row.client, partitions={row.client: partitions})
    scene.heartbeats(6_000, end, row.client)
    return scene


def health(scene: Scene, at: int, member: str = "a") -> dict[str, Any]:
    """Its last row at an instant."""
    scene.events.sort(key=lambda event: event.logged_at_ms)
    scene.events = [event._replace(start=100 * n, end=100 * n + 100) for n, event in enumerate(scene.events)]
    scene.position = 100 * len(scene.events)
    scene.tick(at + 100)
    return [row for row in named("health", scene.known().rows["health"]) if row["member_id"] == member][-1]


def evidence(row: dict[str, Any]) -> tuple[int, str, int]:
    """(last poll, what shows it, error bound)."""
    at = row["last_poll_at_ms"]
    return (at - int(START) if at else NO), row["poll_evidence"], row["poll_error_bound_ms"] or 0


@pytest.mark.parametrize("name", TABLE)
def test_the_table_has_the_library(name: str) -> None:
    assert recognise(TABLE[name].software, TABLE[name].client, "consumer") == name


def test_the_table_has_every_library_but_two_that_have_their_own_test() -> None:
    assert {*TABLE, "connect", "java-preview"} == {*LIBRARIES}


@pytest.mark.parametrize("name", TABLE)
def test_a_join_shows_a_poll_or_does_not(name: str) -> None:
    row = TABLE[name]
    expected = (3_010, "sync", 0) if row.joined else (NO, "none", 0)
    assert evidence(health(of_one(row, 14_000), 14_000, row.client)) == expected


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("kind", ["fetch", "taken"])
def test_a_fetch_shows_a_poll_or_does_not(name: str, kind: str) -> None:
    row = TABLE[name]
    scene, client = of_one(row, 14_000), row.client
    scene.fetch(9_000, client, data=100 if kind == "taken" else 0)
    scene.fetch(12_000, client)
    bound = getattr(row, kind)
    at, sign, error_ms = evidence(health(scene, 14_000, client))
    assert (at, sign, error_ms) == ((NO, "none", 0) if bound == NO else (12_000, "fetch", bound))


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("kind", ["own", "moved", "same"])
def test_a_commit_shows_a_poll_or_does_not(name: str, kind: str) -> None:
    """5 s after the assignment, or at times that are not a client's own."""
    row = TABLE[name]
    scene, client = of_one(row, 14_000), row.client
    if kind == "own":
        scene.commit(8_050, client, 10)
    else:
        scene.commit(6_000, client, 10)
        scene.commit(12_010, client, 11 if kind == "moved" else 10)
    bound, at = getattr(row, kind), 8_050 if kind == "own" else 12_010
    found = evidence(health(scene, 14_000, client))
    assert found[0] < at if bound == NO else found == (at, "commit", bound)


@pytest.mark.parametrize("name", TABLE)
def test_the_deadline_is_said_where_the_client_announces_its_poll_interval(name: str) -> None:
    """Others have none, or have it for themselves."""
    row = TABLE[name]
    scene = of_one(row, end=14_000)
    scene.commit(8_050, row.client, 10)
    scene.fetch(9_000, row.client)
    said = health(scene, 14_000, row.client)
    assert said["poll_interval_ms"] == (60_000 if row.due else None)
    if row.due:
        assert said["poll_deadline_at_ms"] == said["last_poll_at_ms"] + 60_000


@pytest.mark.parametrize("name", TABLE)
def test_a_zombie_is_told_from_who_has_nothing_to_do_where_that_can_be(name: str) -> None:
    row, client = TABLE[name], TABLE[name].client

    def working(scene: Scene, begin: int, end: int, *, data: int) -> Scene:
        for at in range(begin, end, 500):
            scene.fetch(at, client, data=data)
        for at in range(begin + 5_010, end, 5_000):
            if data or row.own == 0:  # who does not commit inside poll has nothing to commit
                scene.commit(at, client, at if data else 10)
        return scene

    zombie = working(of_one(row), 3_000, 15_000, data=100)
    if name in BACKGROUND or row.software == "my-own-client/1":
        for at in range(15_000, 40_000, 500):
            zombie.fetch(at, client, data=100)
    assert health(zombie, 40_000, client)["polling"] == row.zombie

    idle = working(of_one(row), 3_000, 40_000, data=0)
    assert health(idle, 40_000, client)["polling"] == row.idle

    paused = of_one(row)
    for at in range(8_010, 40_000, 5_000):
        if row.own == 0:
            paused.commit(at, client, 10)
    assert health(paused, 40_000, client)["polling"] == row.paused


# --- what the table does not show


def test_who_commits_as_it_likes_may_have_paused() -> None:
    """Java whose application commits: silence of its fetches is that of a zombie, of a pause or of work on a batch."""
    scene = of_one(TABLE["java"])
    for at in range(3_500, 15_000, 500):
        scene.fetch(at, "a", data=100)
    for at in range(4_000, 15_000, 2_000):
        scene.commit(at, "a", at)
    said = health(scene, 40_000)
    assert (evidence(said), said["polling"]) == ((14_500, "fetch", 0), "unknown")


@pytest.mark.parametrize(("lost", "foretold"), [(False, [45_000]), (True, [45_000, 195_000])])
def test_who_has_paused_for_longer_than_its_interval_is_foretold_once(lost: bool, foretold: list[int]) -> None:
    """Not where a part of the log was lost meanwhile: a sign of its polls may have stood there."""
    scene = of_one(TABLE["java"], 320_000)
    for at in range(3_500, 320_000, 500):
        if not (15_000 < at < 120_000 or 165_000 < at < 270_000):
            scene.fetch(at, "a", data=100)
    scene.events.sort(key=lambda event: event.logged_at_ms)
    scene.events = [event._replace(start=100 * n, end=100 * n + 100) for n, event in enumerate(scene.events)]
    if lost:
        place = next(n for n, event in enumerate(scene.events) if event.logged_at_ms > START + 40_000)
        later, scene.events = scene.events[place:], scene.events[:place]
        scene.position = 100 * place
        scene.gap(39_500, 40_000)
        scene.events += later
    scene.position = scene.events[-1].end
    scene.tick(320_100)
    rows = named("predictions", scene.known().rows["predictions"])
    assert sorted({row["predicted_at_ms"] - int(START) for row in rows if row["kind"] == "poll"}) == foretold


def test_who_commits_record_by_record_need_not_poll() -> None:
    """The last FETCH came at 9 s: the poll was between it and the last commit."""
    scene = of_one(TABLE["java"])
    scene.fetch(9_000, "a", data=100)
    for at in range(10_000, 39_000, 1_500):
        scene.commit(at, "a", at)
    said = health(scene, 40_000)
    assert (evidence(said), said["polling"]) == ((38_500, "commit", 29_500), "unknown")


def test_a_commit_of_a_member_bounds_its_poll_by_the_poll_interval() -> None:
    """It is a member still: it has not given up."""
    scene = of_one(TABLE["java"], end=90_000)
    for at in range(10_000, 89_000, 1_500):
        scene.commit(at, "a", at)
    assert evidence(health(scene, 89_000)) == (88_000, "commit", 60_600)


def test_a_fetch_that_another_may_have_sent_is_not_said_to_be_a_poll() -> None:
    """Both have the same client.id at the same address, as with kafka-python when it is given none."""
    scene = Scene(software=PYTHON)
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0})
    scene.events = [event._replace(client_id="c") for event in scene.events]
    scene.synced(3_010, "a", "b", partitions={"a": 1, "b": 1})
    scene.heartbeats(6_000, 20_000, "a", "b")
    for at in range(4_000, 20_000, 500):
        scene.fetch(at, "c", data=100)
    scene.events = [event._replace(client_id="c") for event in scene.events]
    for member in ("a", "b"):
        said = health(scene, 20_000, member)
        assert (evidence(said), said["polling"]) == ((19_500, "fetch", 16_490), "unknown")


def test_aiokafka_with_one_partition_fetches_when_its_records_are_taken() -> None:
    """With several it goes on fetching the others, which may be idle."""
    for partitions, expected in ((1, (12_000, "fetch", 1_000)), (2, (NO, "none", 0))):
        scene = of_one(TABLE["aiokafka"], 14_000, partitions)
        scene.fetch(9_000, "a", data=100)
        scene.fetch(12_000, "a")
        assert evidence(health(scene, 14_000)) == expected


@pytest.mark.parametrize("name", BACKGROUND)
def test_who_commits_every_half_minute_is_not_stalled_between(name: str) -> None:
    """Records come all the time. Each commit may be of what was consumed right after the one before."""
    scene = of_one(TABLE[name], 70_000)
    for at in range(3_500, 70_000, 500):
        scene.fetch(at, "a", data=100)
    scene.commit(33_000, "a", 10)
    scene.commit(63_000, "a", 20)
    for at, expected in ((60_000, "unknown"), (70_000, "unknown")):
        until = Scene(software=TABLE[name].software)
        until.events = [event for event in scene.events if event.logged_at_ms <= START + at]
        said = health(until, at)
        assert said["polling"] == expected
    assert evidence(said) == (63_000, "commit", 29_500)


def test_a_connect_worker_shows_its_tick_when_it_joins() -> None:
    """Its commits and fetches are not those of its group."""
    scene = of_one(TABLE["java"], 14_000)
    scene.events = [
        event._replace(detail=event.detail | {"protocol_type": "connect"}) if event.generation_id == 1 and event.detail
        else event
        for event in scene.events
    ]  # fmt: skip
    scene.fetch(9_000, "a")
    scene.commit(12_000, "a", 10)
    said = health(scene, 14_000)
    assert (evidence(said), said["polling"]) == ((3_010, "sync", 0), "unknown")


@pytest.mark.parametrize(("version", "expected"), [("3.9.2", "java-preview"), ("4.1.1", "java")])
def test_javas_preview_of_the_consumer_protocol_fetches_in_the_background(version: str, expected: str) -> None:
    assert recognise_modern(f"apache-kafka-java/{version}", "a") == expected
    assert not LIBRARIES["java-preview"].polled_by


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("rdkafka", "librdkafka"),
        ("sarama", "sarama"),
        ("kgo", "franz-go"),
        ("kafka-python-2.0.2", "kafka-python"),
        ("aiokafka-0.8.1", "aiokafka"),
        ("me@here (github.com/segmentio/kafka-go)", "kafka-go"),
        ("orders-kafka-python", "unknown"),
        ("sarama-to-java", "unknown"),
    ],
)
def test_who_announces_nothing_is_known_by_the_default_id_only_if_that_is_all_of_it(client: str, expected: str) -> None:
    assert recognise("", client, "consumer") == expected


@pytest.mark.parametrize(
    ("software", "expected"), [(JAVA, "stalled"), (PYTHON, "stalled"), (RDKAFKA, "unknown"), ("kgo/v1.20.5", "unknown")]
)
def test_who_rejoins_only_inside_poll_and_does_not_is_stalled(software: str, expected: str) -> None:
    """b joins at 12 s; a is told at 12.5 s, heartbeats on and does not rejoin."""
    scene = Scene(software=software)
    scene.joined(3_000, 1, {"a": 0.0})
    scene.synced(3_010, "a", partitions={"a": 3})
    scene.heartbeats(6_000, 12_000, "a")
    scene.heartbeats(12_500, 17_000, "a", error=27)
    early = health(scene, 17_000)["polling"]
    scene.events = [event for event in scene.events if event.group_id or event.client_id]
    scene.heartbeats(18_500, 26_000, "a", error=27)
    assert (early, health(scene, 26_000)["polling"]) == ("unknown", expected)


# --- a leave without a reason


@pytest.mark.parametrize(
    ("software", "silent_ms", "expected"),
    [
        # at once, at the end of the poll interval of 60 s, and long after: it has polled since, unseen
        ("apache-kafka-java/3.1.0", 400, ("left", "inferred")),
        ("apache-kafka-java/3.1.0", 60_040, ("poll_timeout", "inferred")),
        ("apache-kafka-java/3.1.0", 75_000, ("left", "unknown")),
        (PYTHON, 60_040, ("poll_timeout", "inferred")),
        (PYTHON, 75_000, ("left", "unknown")),
        # librdkafka on an idle topic: nothing shows a poll
        (RDKAFKA, 400, ("left", "unknown")),
        # an interval that is not on the wire
        ("aiokafka/0.14", 75_000, ("left", "unknown")),
        ("my-own-client/1", 400, ("left", "unknown")),
        # never of themselves
        ("sarama/1.40", 75_000, ("left", "inferred")),
        ("kafkajs/2.2.4", 75_000, ("left", "inferred")),
        ("kgo/v1.14.0", 75_000, ("left", "inferred")),
        ("kafka-go/0.4.49", 75_000, ("left", "inferred")),
    ],
)
def test_a_leave_without_a_reason_is_a_close_or_the_end_of_the_poll_interval(
    software: str, silent_ms: int, expected: tuple[str, str]
) -> None:
    scene = Scene(software=software)
    scene.joined(3_000, 1, {"a": 0.0})
    scene.synced(3_010, "a", partitions={"a": 3})
    scene.fetch(10_000, "a")
    scene.heartbeats(12_000, 10_000 + silent_ms, "a")
    scene.leave(10_000 + silent_ms, "a")
    scene.tick(90_000)
    assert scene.known().ended()["a"][1:] == expected


# --- telemetry


def test_one_long_poll_on_an_idle_topic_is_no_stall() -> None:
    """The client counts from the begin of its poll, which may wait for a minute; what it fetches meanwhile shows that,
    and where fetches are not logged nothing does."""
    for fetches, expected in ((True, "polls"), (False, "unknown")):
        scene = of_one(TABLE["java"], 30_000)
        for at in range(4_000, 30_000, 500) if fetches else ():
            scene.fetch(at, "a")
        scene.telemetry(28_000, "a", 20.0)
        assert health(scene, 30_000)["polling"] == expected


# --- what heartbeats show of who gives up at its poll interval


@pytest.mark.parametrize("software", [JAVA, PYTHON, RDKAFKA])
@pytest.mark.parametrize("partitions", [0, 3])
def test_who_heartbeats_longer_than_it_may_without_a_poll_has_polled_unseen(software: str, partitions: int) -> None:
    """A member without partitions, one that has paused, one on an idle topic, one whose fetches are not logged."""
    scene = Scene(software=software)
    scene.joined(3_000, 1, {"a": 0.0})
    scene.synced(3_010, "a", partitions={"a": partitions, "b": 1})
    scene.commit(4_000, "a", 10)
    scene.heartbeats(6_000, 100_001, "a")
    said = health(scene, 100_000)
    assert evidence(said) == (99_000, "heartbeat", 60_600)
    assert (said["poll_deadline_at_ms"], said["status"], said["polling"]) == (None, "ok", "unknown")


def test_a_prediction_that_its_heartbeats_outlive_did_not_strike() -> None:
    scene = of_one(TABLE["java"], 100_001)
    scene.fetch(5_000, "a", data=100)
    said = health(scene, 100_000)
    assert (said["status"], evidence(said)) == ("ok", (99_000, "heartbeat", 60_600))
    assert scene.known().predictions() == [("a", "poll", "averted")]


def foretold(scene: Scene) -> list[tuple[int, str]]:
    """Poll timeouts that were foretold: (when, outcome)."""
    rows = named("predictions", scene.known().rows["predictions"])
    return [(row["predicted_at_ms"] - int(START), row["outcome"]) for row in rows if row["kind"] == "poll"]


def test_of_who_was_not_heard_since_a_gap_no_poll_timeout_is_foretold() -> None:
    """It may have polled in the gap, and health says that it is unknown; a coordinator that loads the group changes
    nothing about that. When it is heard again, and shows no poll, it is."""
    scene = of_one(TABLE["java"], end=20_000)
    scene.fetch(20_500, "a")
    scene.gap(21_000, 40_000)
    scene.loaded(45_000)
    scene.group_loaded(45_000, 1)
    scene.tick(58_000)
    assert foretold(scene) == []
    scene.heartbeat(59_000, "a")
    scene.tick(60_000)
    assert [outcome for _, outcome in foretold(scene)] == ["open"]
