"""The zombie told from the idle but healthy consumer, library by library; unknown where nothing shows it."""

from __future__ import annotations

import pytest

from kardia.events import Kind
from kardia.kafka.libraries import recognise, recognise_by_versions
from tests.support.scene import Scene
from tests.support.stories import named

JAVA, PYTHON, RDKAFKA, FRANZ, SARAMA, KAFKAJS, KAFKA_GO = (
    "apache-kafka-java/4.1.1",
    "kafka-python/3.0.12",
    "confluent-kafka-python/2.16.1-rdkafka-2.16.0",
    "kgo/v1.20.5",
    "sarama/1.46",
    "kafkajs/2.2.4",
    "kafka-go/0.4.49",
)
AIOKAFKA, NOBODY = "aiokafka/0.12", "my-own-client/1"


def group_of_one(software: str, *, partitions: int = 3) -> Scene:
    """Member a, alone, Stable since 3,010 ms; its heartbeats go on to 30 s."""
    scene = Scene(software=software)
    scene.joined(3_000, 1, {"a": 0.0})
    scene.synced(3_010, "a", partitions={"a": partitions})
    return scene


def polling(scene: Scene) -> str:
    """What its last health row says at 30 s."""
    scene.events.sort(key=lambda event: event.logged_at_ms)
    scene.events = [
        event._replace(start=100 * place, end=100 * place + 100) for place, event in enumerate(scene.events)
    ]
    scene.position = 100 * len(scene.events)
    scene.tick(30_100)
    (row,) = named("health", scene.known().rows["health"])[-1:]
    return str(row["polling"])


def fetches(scene: Scene, begin: int, end: int, *, data: int = 0) -> None:
    """A FETCH twice a second."""
    for at in range(begin, end, 500):
        scene.fetch(at, "a", data=data)


@pytest.mark.parametrize("software", [JAVA, PYTHON, KAFKAJS])
def test_a_library_that_fetches_inside_poll_polls_while_it_fetches_also_on_an_idle_topic(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 30_000)
    assert polling(scene) == "polls"


@pytest.mark.parametrize("software", [JAVA, PYTHON])
def test_and_is_stalled_when_its_fetches_and_its_own_commits_stop(software: str) -> None:
    """It commits by itself 5 s after its assignment."""
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    scene.commit(8_020, "a", 10)
    assert polling(scene) == "stalled"


@pytest.mark.parametrize("software", [JAVA, PYTHON])
def test_but_not_if_its_application_commits_for_it_may_have_paused_then(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    for at in range(4_000, 12_000, 1_000):
        scene.commit(at, "a", at)
    assert polling(scene) == "unknown"


def test_kafkajs_heartbeats_in_the_loop_that_runs_its_handlers() -> None:
    scene = group_of_one(KAFKAJS)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    assert polling(scene) == "polls"


@pytest.mark.parametrize("software", [JAVA, PYTHON])
def test_but_not_if_it_never_commits_for_it_may_work_off_what_it_fetched(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    assert polling(scene) == "unknown"


@pytest.mark.parametrize("software", [RDKAFKA, SARAMA, KAFKA_GO])
def test_a_library_that_fetches_beside_is_stalled_when_data_came_and_no_commit_follows(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 30_000, data=100)
    scene.commit(8_000, "a", 10)
    assert polling(scene) == "stalled"


@pytest.mark.parametrize("software", [RDKAFKA, SARAMA, KAFKA_GO])
def test_and_nothing_is_known_of_it_on_an_idle_topic(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 30_000)
    scene.commit(8_000, "a", 10)
    assert polling(scene) == "unknown"


@pytest.mark.parametrize("software", [RDKAFKA, SARAMA, KAFKA_GO])
def test_and_it_polls_while_its_commits_advance(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 30_000, data=100)
    for at in range(8_000, 30_000, 1_000):
        scene.commit(at, "a", at)
    assert polling(scene) == "polls"


@pytest.mark.parametrize("software", [FRANZ, AIOKAFKA])
def test_a_library_that_fetches_when_the_last_records_are_taken_is_stalled_when_they_are_not(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    assert polling(scene) == "stalled"


@pytest.mark.parametrize("software", [FRANZ, AIOKAFKA])
def test_and_nothing_is_known_of_it_when_there_is_nothing_to_take(software: str) -> None:
    scene = group_of_one(software)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 8_000, data=100)
    fetches(scene, 8_000, 30_000)
    assert polling(scene) == "unknown"


@pytest.mark.parametrize("software", [JAVA, RDKAFKA, FRANZ])
def test_nothing_is_known_of_a_member_without_partitions(software: str) -> None:
    scene = group_of_one(software)
    scene.joined(4_000, 2, {"a": 3_500.0, "b": 3_600.0}, leader="b")
    scene.synced(4_010, "b", "a", partitions={"b": 3, "a": 0})
    scene.heartbeats(6_000, 30_001, "b", "a")
    assert polling(scene) == "unknown"


def test_nothing_is_known_of_a_library_that_is_not_known() -> None:
    scene = group_of_one(NOBODY)
    scene.heartbeats(6_000, 30_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    scene.commit(11_000, "a", 10)
    assert polling(scene) == "unknown"


def test_a_member_that_is_silent_altogether_is_no_zombie() -> None:
    """Its heartbeats have stopped as well: a matter of its session, not of its polls."""
    scene = group_of_one(JAVA)
    scene.heartbeats(6_000, 21_001, "a")
    fetches(scene, 3_500, 12_000, data=100)
    scene.commit(11_000, "a", 10)
    assert polling(scene) == "unknown"


def test_a_library_that_announces_nothing_is_known_by_its_versions_where_no_other_speaks_them() -> None:
    assert recognise_by_versions(5, 1) == "aiokafka"
    assert recognise_by_versions(5, 3) == "unknown"
    assert recognise("", "c18-ak", "consumer") == "unknown"


def test_a_worker_of_kafka_connect_is_never_said_not_to_poll() -> None:
    """It polls its group to take part in rebalances, and its requests show nothing of that in between."""
    scene = Scene()
    scene.joined(1_000, 1, {"w": 900}, rebalance_ms=20_000)
    for place, event in enumerate(scene.events):
        if event.kind == Kind.JOIN:
            scene.events[place] = event._replace(detail=(event.detail or {}) | {"protocol_type": "connect"})
    scene.synced(1_100, "w")
    scene.heartbeats(3_000, 18_000, "w")
    scene.heartbeats(18_100, 19_000, "w", error=27)
    scene.tick(19_500)
    known = scene.known_step_by_step()
    rows = named("health", known.rows["health"])
    assert rows
    assert {row["poll_deadline_at_ms"] for row in rows} == {None}
    assert {row["polling"] for row in rows} == {"unknown"}
    assert not [one for one in known.predictions() if one[1] == "poll"]
