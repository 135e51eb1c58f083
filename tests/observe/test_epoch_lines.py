"""Sentences of server.log about groups that have epochs, beside their requests, beside their records, and alone.

Instants in ms from the start of a scene. Members a and b are settled at epoch 2; b was last heard at 4,100.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Kind
from tests.support.modern_scene import ModernScene, both, pair, rebalances, since_start
from tests.support.scene import Known
from tests.support.stories import named

EXPIRED = "the member session expired"
SLOW = "it failed to transition from epoch 2 within 8000ms"


def line(scene: ModernScene, at: float, what: str, member: str = "", reason: str = "", epoch: int = -1) -> None:
    """A sentence of the broker of the scene."""
    detail: dict[str, Any] = {"what": what, "reason": reason, "members": []}
    nobody = {"client_id": "", "client_host": "", "connection": "", "software": ""}
    scene._event(Kind.COORDINATOR_LINE, at, member_id=member, generation_id=epoch, detail=detail, **nobody)
    event = scene.events[-1]
    scene.events[-1] = event._replace(source=event.source.replace("/request/", "/server/"))


def disagreed(known: Known) -> list[tuple[str, str | None, str, str]]:
    rows = named("disagreements", known.rows["disagreements"])
    return [(row["kind"], row["member_id"], row["told"], row["concluded"]) for row in rows]


def test_beside_requests_the_line_makes_an_eviction_exact_and_says_its_cause() -> None:
    scene = pair()
    scene.beats(6_200, 20_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (14_102, "session_expired", "exact")}
    assert disagreed(known) == []


def test_it_tells_how_long_a_session_was_that_nobody_knows() -> None:
    scene = pair(given_ms=-1)
    scene.beats(6_200, 20_000, 2, "a")
    line(scene, 14_102, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(20_000)
    assert scene.known().ended() == {"b": (14_102, "session_expired", "exact")}


def test_a_line_that_says_another_cause_is_believed_and_counted() -> None:
    """A leave was answered, and long after it the line says that its session had expired."""
    scene = pair()
    scene.goes(5_000, "b")
    scene.beats(6_200, 20_000, 2, "a")
    line(scene, 9_000, "epoch_member_fenced", "b", EXPIRED)
    scene.tick(20_000)
    assert disagreed(scene.known()) == [("another_cause", "b", "session_expired", "left")]


def test_a_line_long_before_the_deadline_is_another_instant() -> None:
    scene = pair()
    scene.beats(6_100, 8_000, 2, "a", "b")
    line(scene, 9_000, "epoch_member_fenced", "b", EXPIRED)
    scene.beats(10_000, 20_000, 3, "a")
    scene.tick(20_000)
    known = scene.known()
    assert disagreed(known) == [("another_instant", "b", "session_expired", "member")]
    assert known.ended()["b"] == (9_000, "session_expired", "exact")


def test_a_record_that_says_who_is_gone_has_its_cause_from_the_line_whichever_comes_first() -> None:
    for line_first in (True, False):
        scene = both()
        scene.beats(6_200, 20_000, 2, "a")
        if line_first:
            line(scene, 14_099, "epoch_member_fenced", "b", SLOW)
        scene.record_gone(14_100, "b", 3)
        if not line_first:
            line(scene, 14_101, "epoch_member_fenced", "b", SLOW)
        scene.record_current(14_600, "a", 3, 0, (0, 1))
        scene.tick(20_000)
        known = scene.known()
        assert known.ended() == {"b": (14_100, "rebalance_timeout", "exact")}, line_first
        assert rebalances(known)[-1][2:] == ("rebalance_timeout", "b"), line_first


def test_the_end_of_one_life_is_not_that_of_the_next() -> None:
    """A line whose record never came: the member joined again, and left an hour later."""
    scene = both()
    line(scene, 14_100, "epoch_member_fenced", "b", SLOW)
    scene.beats(6_200, 20_000, 2, "a")
    scene.record_gone(19_000, "b", 3)
    scene.tick(26_000)
    assert scene.known().ended()["b"][1] != "rebalance_timeout"


def test_alone_they_tell_who_joined_and_ended_and_each_epoch_with_what_began_it() -> None:
    scene = ModernScene()
    line(scene, 1_000, "epoch_member_joined", "a", "consumer")
    line(scene, 1_001, "epoch_raised", epoch=1)
    line(scene, 1_002, "target_computed", epoch=1)
    line(scene, 2_000, "epoch_member_joined", "b", "consumer")
    line(scene, 2_000, "epoch_raised", epoch=2)
    line(scene, 2_001, "target_computed", epoch=2)
    line(scene, 3_000, "epoch_member_joined", "b", "consumer")
    line(scene, 9_000, "epoch_member_fenced", "a", EXPIRED)
    line(scene, 9_001, "epoch_raised", epoch=3)
    line(scene, 12_000, "epoch_raised", epoch=4)
    scene.tick(20_000)
    of_server = [event._replace(source=event.source.replace("/request/", "/server/")) for event in scene.events]
    known = scene._fed([of_server])
    assert known.ended() == {"a": (9_000, "session_expired", "exact")}
    assert known.alive() == {"b"}
    told = [
        (row["generation_after"], since_start(row["started_at_ms"]), row["trigger"], row["trigger_member_id"])
        for row in known.rebalances()
    ]
    assert told == [
        (1, 1_001, "member_joined", "a"),
        (2, 2_000, "member_joined", "b"),
        (3, 9_001, "session_expired", "a"),
        (4, 12_000, "unknown", None),
    ]
    assert [row["completed_at_ms"] for row in known.rebalances()] == [None] * 4, "no line says who has come to it"
    assert known.states()[-1][1] == "Assigning"


def test_a_classic_member_of_a_consumer_group_says_itself_why_it_left() -> None:
    """Its leave has a sentence of its own, which was read as none."""
    for words, expected in (
        ("the consumer is being closed", ("left", "exact")),
        ("consumer poll timeout has expired.", ("poll_timeout", "exact")),
        ("not provided", ("left", "unknown")),
    ):
        scene = ModernScene()
        line(scene, 1_000, "epoch_member_joined", "a", "consumer")
        line(scene, 1_001, "epoch_raised", epoch=1)
        line(scene, 2_000, "epoch_member_joined", "b", "classic")
        line(scene, 2_001, "epoch_raised", epoch=2)
        line(scene, 9_000, "epoch_member_left", "b", words)
        line(scene, 9_001, "epoch_raised", epoch=3)
        scene.tick(20_000)
        of_server = [event._replace(source=event.source.replace("/request/", "/server/")) for event in scene.events]
        known = scene._fed([of_server])
        assert known.ended() == {"b": (9_000, *expected)}, words
        trigger = "poll_timeout" if expected[0] == "poll_timeout" else "member_left"
        assert known.rebalances()[-1]["trigger"] == trigger
