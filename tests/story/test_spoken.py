"""Words of the right protocol: epochs where there are epochs, tasks of Kafka Streams, and no rejoining where nobody
rejoins. Rows made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.evidence_levels import Read, questions
from kardia.story import explain, spoken
from tests.story.rows import T, life, material, prediction, rebalance, transition, wait


def said(**rows: Any) -> str:
    return " ".join(one.text for one in explain(material(**rows)).sentences)


@pytest.mark.parametrize(("protocol", "unit"), [("share", "epoch"), ("streams", "epoch"), ("classic", "generation")])
def test_a_group_without_members_counts_what_it_counted_with_them(protocol: str, unit: str) -> None:
    left = life("a", 0, 5_000, "left", protocol=protocol)
    over = rebalance(5_000, 5_000, "member_left", "a", protocol=protocol, members_after=0)
    text = said(lives=[left], rebalances=[over], transitions=[transition(1, 5_000, "Empty", generation_id=6)])
    assert f"The group was Empty in {unit} 6" in text


def test_a_group_that_may_have_become_empty_later_is_told_so() -> None:
    """The sentence is as sure as the change, and is there where it is not known when the target was computed."""
    left = life("a", 0, 5_000, "session_expired", protocol="streams")
    known = {"protocol": "streams", "members_after": 0, "joined_at_ms": None, "certainty": "provisional"}
    over = rebalance(5_000, 5_000, "session_expired", "a", **known)
    emptied = transition(1, 5_000, "Empty", generation_id=6, certainty="inferred")
    for changes, sure in (([emptied], "inferred"), ([], "provisional")):
        told = explain(material(lives=[left], rebalances=[over], transitions=changes)).sentences
        assert [one.certainty for one in told if "became empty" in one.text] == [sure]


def test_a_group_that_stays_stable_is_in_its_last_epoch() -> None:
    """A share group is Stable all the while, so that its last change of state is epochs ago."""
    rows = [
        rebalance(at, at + 500, "member_joined", "a", protocol="share", generation_before=n, generation_after=n + 1)
        for n, at in enumerate((0, 1_000, 2_000))
    ]
    changes = [transition(1, 0, "Stable", generation_id=1)]
    found = material(lives=[life("a", 0, protocol="share")], rebalances=rows, transitions=changes)
    assert "Stable in epoch 3 since" in explain(found, at_ms=T + 3_000).sentences[0].text
    assert "Stable in epoch 1 since" in " ".join(one.text for one in explain(found, at_ms=T + 900).sentences)


def test_a_group_that_was_converted_counts_what_it_is() -> None:
    rows = [rebalance(0, 500, "member_joined", "a", protocol="consumer")]
    found = material(
        lives=[life("a", 0, 3_000, "left", protocol="consumer"), life("b", 0)],
        rebalances=rows,
        transitions=[transition(1, 3_000, "Stable", cause="downgraded", generation_id=4)],
    )
    assert (spoken.at(found, T + 1_000), spoken.at(found, T + 4_000)) == ("consumer", "classic")


@pytest.mark.parametrize(("protocol", "piece"), [("consumer", "partition"), ("streams", "task")])
def test_who_holds_on_has_not_given_up_and_is_not_said_not_to_have_rejoined(protocol: str, piece: str) -> None:
    held = [wait("b", 8_000) | {"joined": False, "partitions": 2}]
    rows = [
        rebalance(0, 8_000, "member_joined", "c", protocol=protocol, stragglers=held, partitions_moved=2),
        rebalance(8_000, 9_000, "rebalance_timeout", "b", protocol=protocol, generation_before=4, generation_after=5),
    ]
    gone = life("b", -9_000, 8_000, "rebalance_timeout", protocol=protocol, fault="application")
    text = said(lives=[gone, life("c", 0, protocol=protocol)], rebalances=rows)
    assert "rejoin" not in text
    assert (
        f"b was dropped: it had been told to give up {piece}s, and had not within its rebalance timeout of 1 min"
        in text
    )
    assert f"b had not given up its {piece}s in time and was dropped" in text
    assert f"b (8 s) had not given up 2 {piece}s and was dropped." in text
    assert f"2 {piece}s moved" in text
    assert f"the application, which did not give up {piece}s" in text


def test_a_classic_member_still_rejoins() -> None:
    gone = life("b", -9_000, 8_000, "rebalance_timeout")
    assert "had not rejoined" in said(lives=[gone], rebalances=[rebalance(8_000, 9_000, "rebalance_timeout", "b")])


def test_a_warning_about_partitions_that_were_given_up_says_that() -> None:
    taken = prediction("b", "rebalance", 4_000, 8_000, "averted", 6_000)
    text = said(lives=[life("b", 0, protocol="consumer")], predictions=[taken])
    assert "It did not strike: it gave its partitions up at" in text


def test_a_protocol_without_reasons_is_not_blamed_for_giving_none() -> None:
    assert "its protocol has no words for a reason" in said(lives=[life("a", 0, 5_000, "left", protocol="share")])
    assert "without giving a reason" in said(lives=[life("a", 0, 5_000, "left")])


def test_nobody_is_told_to_read_fetch_where_the_library_shows_no_polls_by_it() -> None:
    """FETCH was read already, and "needs FETCH" was said."""
    read = Read(requests=True, beside="librdkafka")
    found = {one.question: one for one in questions(read)}["did it poll?"]
    assert found.answered == "partly"
    assert "needs telemetry of clients" in found.needs
    assert "librdkafka fetches beside the application, so that FETCH shows no polls of it" in found.needs
    assert "needs FETCH" in {one.question: one for one in questions(Read(requests=True))}["did it poll?"].needs


def test_nobody_is_told_to_read_more_of_a_share_group_than_there_is() -> None:
    found = {one.question: one for one in questions(Read(requests=True), epochs=True, share=True)}
    assert "FETCH" not in found["did it poll?"].needs
    assert "__consumer_offsets" not in found["how far is it behind?"].needs
    assert {found[one].answered for one in ("did it poll?", "how far is it behind?")} == {"no"}
