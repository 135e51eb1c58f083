"""Sentences from rows made by hand: what the recordings do not hold. No table, no server, no clock."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.faults import FAULTS
from kardia.story import Material, NoSuchMember, explain, present, who_broke, why, words
from kardia.tables import END_CAUSES, TRIGGERS
from tests.story.rows import T, health, life, material, prediction, rebalance, transition, wait


def texts(found: Material, kind: str, **options: int | str) -> list[str]:
    return [one.text for one in explain(found, **options).sentences if one.kind == kind]  # type: ignore[arg-type]


def test_a_rebalance_that_interrupts_another_says_so() -> None:
    found = material(
        rebalances=[
            rebalance(0, None, "member_joined", "a", joined_at_ms=T + 5_000),
            rebalance(6_000, 9_000, "sync_timeout", "b", generation_before=4, generation_after=5),
        ]
    )
    first, second = texts(found, "rebalance_began")
    assert "interrupts" not in first
    assert "It interrupts the one before: that began at" in second
    assert "its assignment never came" in texts(found, "rebalance_ended")[0]


def test_that_a_member_left_is_told_and_why_is_what_is_not_sure() -> None:
    """A client that gives no reason, in server.log: the coordinator says that it left."""
    left = life("a", -9_000, 0, "left", certainty="unknown")
    found = material(lives=[left], rebalances=[rebalance(0, 1_000, "member_left", "a", certainty="inferred")])
    (told,) = texts(found, "rebalance_began")
    assert told.endswith(": a left.")
    assert "Not sure why" in " ".join(texts(found, "ended"))
    gone = material(rebalances=[rebalance(0, 1_000, "session_expired", "a", certainty="unknown")])
    assert "(Not sure.)" in texts(gone, "rebalance_began")[0]


def test_a_member_silent_since_the_rebalance_before_links_the_two() -> None:
    one = rebalance(0, 8_000, "member_joined", "a", stragglers=[wait("b", 7_900)])
    two = rebalance(18_000, 19_000, "session_expired", "b")
    silent = life("b", -50_000, 18_000, "session_expired")
    _, text = texts(material(rebalances=[one, two], lives=[silent]), "rebalance_began")
    assert "It had given no sign of life since the rebalance of" in text
    assert "which had waited 7.9 s for it" in text
    late = rebalance(28_000, 29_000, "session_expired", "b")
    lived = life("b", -50_000, 28_000, "session_expired")
    _, text = texts(material(rebalances=[one, late], lives=[lived]), "rebalance_began")
    assert "no sign of life" not in text, "it was heard for 10 s after the first"


def test_the_second_step_of_a_cooperative_assignor_is_linked() -> None:
    one = rebalance(0, 1_000, "member_joined", "a", protocol_name="cooperative-sticky")
    two = rebalance(1_030, 1_100, "leader_rejoined", "b", protocol_name="cooperative-sticky")
    assert "It follows 30 ms after the one before" in texts(material(rebalances=[one, two]), "rebalance_began")[1]
    eager = {**one, "protocol_name": "range"}
    assert "It follows" not in texts(material(rebalances=[eager, two]), "rebalance_began")[1]


def test_a_twin_that_stays_is_nobody_who_came_back() -> None:
    """Two processes with one client.id: the end of one and a new third are not one client's return."""
    same: dict[str, Any] = {"client_id": "app"}
    gone = life("m1", -60_000, 0, "session_expired", **same)
    stays = life("m2", -60_000, **same)
    new = life("m3", 5_000, **same)
    rows = [rebalance(0, 1_000, "session_expired", "m1"), rebalance(5_000, 6_000, "member_joined", "m3")]
    assert "came back" not in texts(material(rebalances=rows, lives=[gone, stays, new]), "rebalance_began")[1]
    assert "came back after 5 s" in texts(material(rebalances=rows, lives=[gone, new]), "rebalance_began")[1]


def test_those_who_were_waited_for_in_vain_are_named_first() -> None:
    row = rebalance(0, 60_010, "member_joined", "a", stragglers=[wait("z", 60_000, joined=False), wait("b", 2_000)])
    (text,) = texts(material(rebalances=[row]), "rebalance_ended")
    assert text.startswith("The rebalance took about 1 min. z (1 min) never came and was dropped. ")
    assert "b (" not in text, "who came after 2 s kept nobody waiting"


@pytest.mark.parametrize("cause", END_CAUSES)
def test_every_end_names_the_member_and_doubts_are_said(cause: str) -> None:
    for certainty, doubt in (
        ("exact", ""),
        ("inferred", "(Inferred"),
        ("unknown", "(Not sure"),
        ("provisional", "(This"),
    ):
        found = material(lives=[life("app-7", 0, 30_000, cause, certainty=certainty)])
        (text,) = texts(found, "ended")
        assert "app-7" in text
        assert doubt in text
        if not doubt:
            assert "Inferred" not in text
            assert "Not sure" not in text


def test_an_epoch_that_nobody_asked_for_says_how_it_was_concluded() -> None:
    row = rebalance(0, 1_000, "topic_metadata", "", certainty="provisional")
    (text,) = texts(material(rebalances=[row]), "rebalance_began")
    assert text.endswith("(Concluded: nobody was seen to come, go or ask for other topics.)")


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_every_trigger_has_its_words(trigger: str) -> None:
    (text,) = texts(material(rebalances=[rebalance(0, 1_000, trigger, "app-7")]), "rebalance_began")
    assert text.startswith("A rebalance began (generation 3, 2 members): ")
    assert trigger not in text, "a code is no word"


def test_the_last_poll_is_told_with_its_sign_and_error_bound_where_a_health_row_has_them() -> None:
    over = health("a", 30_000, status="ended", poll_evidence="commit", poll_error_bound_ms=5_000)
    found = material(lives=[life("a", 0, 30_000, "poll_timeout")], health=[over])
    (text,) = texts(found, "ended")
    assert "Last sign of a poll: a commit at 08:53:48.000Z, the poll at most 5 s earlier" in text
    heard = material(lives=[life("a", 0, 30_000, "session_expired")], health=[over])
    assert "last heard at 08:53:49.000Z" in texts(heard, "ended")[0]


def test_warnings_that_did_not_strike_are_told_and_many_are_counted() -> None:
    lived = [life("a", 0)]
    one = prediction("a", "session", 5_000, 10_000, "averted", 6_000)
    (text,) = texts(material(lives=lived, predictions=[one]), "predicted")
    assert "its session timeout would be over at 08:53:30.000Z, in 5 s. It did not strike: it was heard at" in text
    many = [prediction("a", "poll", n * 1_000, n * 1_000 + 500, "averted", n * 1_000 + 400 - n) for n in range(20)]
    (text,) = texts(material(lives=lived, predictions=many), "predicted")
    assert text.startswith("20 warnings about a ")
    assert "narrowest margin was 100 ms" in text


def test_the_state_at_an_instant_knows_what_was_open_then() -> None:
    found = material(
        lives=[life("a", -60_000), life("b", -60_000, 10_000, "session_expired"), life("c", 20_000)],
        transitions=[transition(1, -50_000, "Stable"), transition(2, 10_000, "PreparingRebalance")],
        rebalances=[rebalance(10_000, 13_000, "session_expired", "b", stragglers=[wait("a", 2_900)])],
        predictions=[prediction("b", "session", 5_000, 10_000, "came_true", 10_000)],
        health=[health("b", 6_000, status="imminent", reasons=["silent for 6000 ms"])],
    )
    (state,) = texts(found, "state", at_ms=T + 8_000)
    assert "was Stable in generation 3" in state
    assert "2 members: a and b" in state
    warning, deadline = texts(found, "deadline", at_ms=T + 8_000)
    assert "its session timeout is over at 08:53:30.000Z (2 s left)" in warning
    assert "It struck at 08:53:30.000Z" in warning
    assert 'Status imminent: "silent for 6000 ms"' in deadline
    assert "last heard at 08:53:25.000Z or later" in deadline, "it may have been heard since it was seen"
    assert "(at least 7 s left of 10 s; last heard" in deadline
    exact = health("b", 6_000) | {"session_is_least": False, "poll_is_least": True}
    (told,) = texts(material(lives=found.lives, health=[exact]), "deadline", at_ms=T + 8_000)
    assert "its session ends at 08:53:35.000Z (7 s left of 10 s; last heard at 08:53:25.000Z)" in told
    assert "(at least 56 s left of 1 min; last sign of a poll: a FETCH at 08:53:24.000Z or later" in told
    over = texts(material(lives=found.lives, health=[health("b", -2_100)]), "deadline", at_ms=T + 8_000)[0]
    assert "how much is left is not known of 10 s" not in over
    assert "(how much is left is not known; last heard" in over
    (during,) = texts(found, "state", at_ms=T + 11_000)
    assert "1 member: a" in during
    assert "under way for 1 s and waited for a; it was over 2 s later (known from 08:53:33.000Z on)" in during


def test_a_live_story_counts_down_and_a_stale_one_does_not() -> None:
    rows = {"lives": [life("a", -60_000)], "transitions": [transition(1, -50_000, "Stable")]}
    live = material(**rows, health=[health("a", 0)], complete_to_ms=T + 100, now_ms=T + 200, stale=False)
    assert "(at least 8.8 s left of 10 s; last heard" in texts(live, "deadline")[0]
    assert not texts(live, "limit")
    stale = material(**rows, health=[health("a", 0)], complete_to_ms=T, now_ms=T + 7_200_000, stale=True)
    assert "(9 s left of 10 s; last heard" in texts(stale, "deadline")[0], "what was left when the tables end"
    assert texts(stale, "limit")[0] == "The logs were read up to 2025-10-09T08:53:20.000Z."
    row = health("a", 0, status="overdue") | {"session_is_least": False, "poll_is_least": False}
    overdue = material(**rows, health=[row], complete_to_ms=T + 9_400, now_ms=T + 9_500, stale=False)
    assert "over for 500 ms" in texts(overdue, "deadline")[0]


def test_limits_are_said() -> None:
    found = material(gaps=2, rejected=23, whole_from_ms=T, lives=[life("a", -60_000), life("b", 1_000)])
    assert [text.split(":")[0] for text in texts(found, "limit")] == [
        "No health row is near this instant",
        "The logs were read up to 2025-10-09T09",
        "The logs of this cluster had 2 gaps",
        "23 lines could not be read; what they say is missing here. `kardia rejected` shows why.",
        "What was before 2025-10-09T08",
    ]
    assert len(texts(found, "joined")) == 1, "what is not whole is not told"
    assert "No source says how far" in " ".join(texts(material(complete_to_ms=None), "limit"))


def test_a_story_is_bounded_and_says_what_it_left_out() -> None:
    found = material(lives=[life(f"m{n}", 2_000 * n, 2_000 * n + 1, "left") for n in range(0, 1_000, 2)])
    told = explain(found, sentences_max=50).sentences
    assert told[0].text == "950 earlier sentences left out; name a narrower time, or a higher limit."
    assert [one.at_ms for one in told] == sorted(one.at_ms for one in told)
    assert sum(one.kind in ("joined", "ended") for one in told) == 50
    assert len(max((one.text for one in told), key=len)) < 2_000


def test_a_window_begins_with_what_was_there() -> None:
    found = material(
        lives=[life("a", -60_000), life("b", -60_000, 10_000, "session_expired")],
        transitions=[transition(1, -50_000, "Stable"), transition(2, 10_000, "PreparingRebalance")],
        rebalances=[rebalance(10_000, 13_000, "session_expired", "b")],
    )
    told = explain(found, from_ms=T + 11_000, to_ms=T + 20_000).sentences
    assert [one.kind for one in told] == ["context", "rebalance_began", "rebalance_ended", "state", "limit"]
    assert told[1].text.startswith("(It began at 08:53:30.000Z.)")


def test_a_member_is_found_by_id_client_id_or_static_id() -> None:
    lives = [life("m1", 0, client_id="app", group_instance_id="s1"), life("m2", 0, client_id="app"), life("m3", 0)]
    found = material(lives=lives)
    assert len(texts(found, "joined", member="m1")) == 1
    assert texts(found, "joined", member="app") == ["app (m1) and app (m2) were first seen here, members already."]
    assert len(texts(found, "joined", member="s1")) == 1
    with pytest.raises(NoSuchMember):
        explain(found, member="nobody")


def test_an_eviction_inside_a_rebalance_is_why() -> None:
    found = material(
        lives=[life("b", -60_000, 8_000, "rebalance_timeout")],
        rebalances=[rebalance(0, 8_010, "member_joined", "a")],
        transitions=[transition(1, 8_010, "Stable")],
    )
    told = why(found).sentences
    assert [one.kind for one in told] == ["rebalance_began", "ended", "rebalance_ended", "state", "limit"]
    assert "had not rejoined the rebalance within the rebalance timeout" in told[1].text


@pytest.mark.parametrize("later_ms", [0, 1, 37, -3])
def test_the_eviction_that_began_a_rebalance_is_why(later_ms: int) -> None:
    """server.log has a line for each, with stamps of their own: they are one operation all the same."""
    found = material(
        lives=[life("a", -60_000, 5_000, "session_expired"), life("a", 6_000, client_id="other")],
        rebalances=[
            rebalance(
                5_000 + later_ms, 8_010, "session_expired", "a", reason="removing member a on heartbeat expiration"
            )
        ],
        transitions=[transition(1, 8_010, "Stable")],
    )
    told = why(found).sentences
    assert sorted(one.kind for one in told[:2]) == ["ended", "rebalance_began"]
    assert [one.kind for one in told[2:]] == ["rebalance_ended", "state", "limit"]
    assert not any("Its own words" in one.text for one in told)


def test_an_end_of_another_cause_or_long_before_began_no_rebalance() -> None:
    for ended_ms, cause in ((4_990, "member_left"), (1_000, "session_expired")):
        found = material(
            lives=[life("a", -60_000, ended_ms, cause)],
            rebalances=[rebalance(5_000, 8_010, "session_expired", "a")],
            transitions=[transition(1, 8_010, "Stable")],
        )
        assert "ended" not in [one.kind for one in why(found).sentences]


def test_a_timer_is_evidence_without_a_line_and_a_transition_with_one() -> None:
    found = material(
        lives=[life("a", 0, 10_000, "session_expired")],
        transitions=[
            transition(1, 0, "Member", "a"),
            transition(2, 10_000, "Absent", "a", evidence="member timer", cause="session_expired"),
        ],
    )
    joined, ended = (one.evidence[0] for one in explain(found).sentences if one.kind in ("joined", "ended"))
    assert (joined.seq, joined.source, joined.start) == (1, "b1/request/abc", 100)
    assert (ended.seq, ended.shown_by, ended.source, ended.start) == (2, "member timer", None, None)


def test_a_rebalance_under_way_says_whom_it_waits_for_and_until_when_at_the_latest() -> None:
    """As far as it is known by then; a row from before the rebalance went on says nothing any more."""
    given = {"awaited_since_at_ms": T + 10_000, "awaited_until_at_ms": T + 70_000}
    known = material(
        transitions=[
            transition(1, 0, "Stable"),
            transition(2, 10_000, "PreparingRebalance"),
            transition(3, 22_000, "CompletingRebalance"),
        ],
        lives=[life("a", 0), life("b", 0)],
        health=[health("a", 20_000), health("b", 20_000, group_state="PreparingRebalance", **given)],
    )
    told = present.state(known, T + 21_000).text
    assert "The rebalance waited for b since " in told
    assert f"until {words.clock(T + 70_000, T)} at the latest" in told
    assert "The rebalance waited" not in present.state(known, T + 22_000).text


def test_a_rebalance_under_way_is_told_with_what_began_it_before_the_table_has_its_row() -> None:
    lives_ = [life("a", 0), life("b", 0, 10_000, "left")]
    changes = [transition(1, 0, "Stable"), transition(2, 10_000, "PreparingRebalance", cause="member_left")]
    known = material(transitions=changes, lives=lives_, complete_to_ms=T + 14_000)
    for told in (why(known), explain(known)):
        said = [one.text for one in told.sentences]
        assert sum(one.startswith("A rebalance began (generation 3, 2 members): b") for one in said) == 1
        assert any("A rebalance had been under way for 4 s." in one for one in said)
    cut_short = rebalance(5_000, None, "member_joined", "a", joined_at_ms=T + 6_000)
    known = material(transitions=changes, lives=lives_, rebalances=[cut_short], complete_to_ms=T + 14_000)
    assert sum(one.kind == "rebalance_began" for one in explain(known).sentences) == 2
    row = rebalance(10_000, 15_000, "member_left", "b")
    over = material(transitions=changes, lives=lives_, rebalances=[row], complete_to_ms=T + 16_000)
    assert sum(one.kind == "rebalance_began" for one in explain(over).sentences) == 1
    stable = [*changes, transition(3, 15_000, "Stable")]
    settled = material(transitions=stable, lives=lives_, complete_to_ms=T + 16_000)
    assert not any(one.kind == "rebalance_began" for one in explain(settled).sentences)


def test_a_rebalance_that_only_members_have_been_told_of_is_one_that_goes_on() -> None:
    """Whoever began it waits in a JoinGroup, which is logged when the join phase is over: no change tells it before."""
    given = {"group_state": "PreparingRebalance", "awaited_since_at_ms": T + 9_000, "awaited_until_at_ms": T + 69_000}
    changes = [transition(1, 0, "Stable", known_at_ms=T)]
    rows = [
        health("a", 8_000, known_at_ms=T + 8_000),
        health("a", 20_000, known_at_ms=T + 20_000, group_state="PreparingRebalance"),
        health("b", 20_000, known_at_ms=T + 20_000, **given),
    ]
    known = material(transitions=changes, lives=[life("a", 0), life("b", 0)], health=rows)
    told = present.state(known, T + 21_000)
    assert f"was PreparingRebalance in generation 3 since {words.clock(T + 9_000, T)} or before" in told.text
    assert "The rebalance waited for b since " in told.text
    assert told.certainty == "provisional"
    assert "was Stable" in present.state(known, T + 8_500).text
    assert "was Stable" in present.state(known, T + 60_000).text, "it was seen too long ago"
    later = [*changes, transition(2, 19_000, "CompletingRebalance", known_at_ms=T + 30_000)]
    over = material(transitions=later, lives=[life("a", 0), life("b", 0)], health=rows)
    assert "was CompletingRebalance" in present.state(over, T + 21_000).text, "what became known later counts"


def test_whom_a_rebalance_waited_for_is_told_by_its_ledger_once_it_is_over() -> None:
    """By then b seemed to be waited for; it had asked already, unseen, and a was."""
    given = {"awaited_since_at_ms": T + 10_000, "awaited_until_at_ms": T + 70_000}
    known = material(
        transitions=[transition(1, 0, "Stable"), transition(2, 10_000, "PreparingRebalance")],
        lives=[life("a", 0), life("b", 0)],
        rebalances=[rebalance(10_000, 24_000, "member_joined", "b", stragglers=[wait("a", 13_000)])],
        health=[health("b", 20_000, group_state="PreparingRebalance", **given)],
    )
    told = present.state(known, T + 20_500).text
    assert "and waited for a;" in told
    assert "waited for b" not in told


def test_a_zombie_is_called_one_only_where_that_is_known() -> None:
    for polling, said in (("stalled", True), ("polls", False), ("unknown", False)):
        known = material(
            transitions=[transition(1, 0, "Stable")],
            lives=[life("a", 0)],
            health=[health("a", 20_000, polling=polling)],
        )
        told = present.present(known, T + 20_000, None, live=False)
        assert any("does not poll" in sentence.text for sentence in told) == said


FAULT_TOLD = {
    (
        "client_silent",
        "fetched_at_ms={T}",
        "host_heard=2",
        "elsewhere_heard=1",
    ): "no request of it came any more, on any "
    "connection (last FETCH at 08:53:20.000Z), while 3 other members, 2 of them at its address went on. (Inferred.)",
    ("client_silent", "fetches_of_others=1"): "its fetches cannot be told from those of 1 other member. (Inferred.)",
    (
        "client_silent",
        "back_at_ms={T}",
        "back_on_same_connection=1",
    ): "It came back at 08:53:20.000Z under its old id over the same connection: its process had lived.",
    ("client_silent", "broker_ms=900", "broker_queue_ms=880", "broker_local_ms=20", "broker_remote_ms=0"): "The broker "
    "took up to 900 ms for a request meanwhile (queue 880 ms, handler 20 ms).",
    (
        "host_silent",
        "host_silent=2",
        "elsewhere_heard=1",
    ): "2 other members at its address fell silent at the same moment, "
    "and nobody there was heard again, while 1 other member elsewhere went on.",
    ("heartbeats_stopped", "fetched_at_ms={T}"): "its fetches went on until 08:53:20.000Z, so the client lived.",
    ("connection_lost", "fetched_at_ms={T}"): "the connection to the coordinator was lost",
    ("application", "heard_at_ms={T}"): "the application, which did not poll in time; its heartbeats went on until",
    (
        "broker_slow",
        "arrived_at_ms={T}",
        "handled_at_ms={T}",
    ): "a request had arrived at 08:53:20.000Z, in time, and was",
    (
        "broker_slow",
        "broker_ms=9000",
        "broker_queue_ms=9000",
    ): "the broker; it took up to 9 s for a request (queue 9 s).",
    ("broker_slow", "throttle_ms=9000"): "a quota of the broker, which muted its connection for 9 s",
    (
        "coordinator_moved",
        "loaded_at_ms={T}",
        "fetched_at_ms={T}",
    ): "a coordinator loaded the group at 08:53:20.000Z, and",
    (
        "unknown",
        "log_silent_ms=9000",
        "broker_ms=800",
    ): "Cause unknown: the broker itself wrote no log for 9 s and the broker took up to 800 ms for a request.",
    (
        "unknown",
        "loaded_at_ms={T}",
    ): "Cause unknown: nobody was heard after a coordinator had loaded the group.",
    ("unknown",): "Cause unknown.",
}


@pytest.mark.parametrize("found", FAULT_TOLD)
def test_who_broke_it_is_told_with_what_shows_it(found: tuple[str, ...]) -> None:
    fault, *signs = found
    certainty = "unknown" if fault == "unknown" else "inferred"
    given = {"fault": fault, "fault_certainty": certainty, "fault_signs": [sign.format(T=T) for sign in signs]}
    gone = life("a", -50_000, 10_000, "session_expired", **given)
    (text,) = texts(material(lives=[gone]), "ended")
    assert FAULT_TOLD[found] in text
    assert text.count("Who broke it") + text.count("Cause unknown") == 1


def test_who_broke_it_may_be_told_later() -> None:
    given = {"fault": "unknown", "fault_certainty": "unknown", "fault_signs": [], "certainty": "provisional"}
    (text,) = texts(material(lives=[life("a", -50_000, 10_000, "session_expired", **given)]), "ended")
    assert "Cause unknown yet." in text


@pytest.mark.parametrize("late_ms", [0, 150, 900])
def test_a_timer_that_a_load_began_anew_and_that_fired_late_was_not_begun_by_the_member(late_ms: int) -> None:
    """It was heard half a second before the load: its session ran from the load, however late its end was seen."""
    signs = [f"heard_at_ms={T - 500}", f"loaded_at_ms={T}"]
    gone = life("a", -50_000, 10_000 + late_ms, "session_expired", fault="client_silent", fault_signs=signs)
    over = health("a", 10_000 + late_ms, status="ended", last_heard_at_ms=T - 500)
    (text,) = texts(material(lives=[gone], health=[over]), "ended")
    assert (
        "a coordinator loaded the group at 08:53:20.000Z, and it did not come back within its session of 10 s" in text
    )
    assert "and then silent for its session timeout" not in text


def test_there_are_words_for_every_fault_and_none_for_who_left() -> None:
    assert set(who_broke._VERDICTS) == set(FAULTS) == {found[0] for found in FAULT_TOLD}
    (text,) = texts(material(lives=[life("a", 0, 10_000, "left")]), "ended")
    assert "Who broke it" not in text


def test_signs_that_are_none_are_left_out() -> None:
    """Tables may be newer than whoever reads them, or damaged."""
    signs = ["heard_at_ms=12", "new_key=1", "broker_ms=x", "broker_ms", "back_at_ms=-1", "log_silent_ms=\u0663"]
    assert who_broke.signs_of({"fault_signs": signs}) == {"heard_at_ms": 12}


def test_ids_that_nobody_used_are_told_while_it_lasts_and_after_it() -> None:
    unused = [{"member_id": "app-77", "client_id": "app", "since_at_ms": T + 9_000, "until_at_ms": T + 54_000}]
    changes = [transition(1, 0, "Stable"), transition(2, 10_000, "PreparingRebalance")]
    rows = [health("a", 20_000, pending=unused, pending_members=1)]
    known = material(transitions=changes, lives=[life("a", 0)], health=rows)
    since, until = words.clock(T + 9_000, T), words.clock(T + 54_000, T)
    expected = f"It waited for ids that were handed out and not used (app, at {since}), until {until} at the latest."
    assert expected in present.state(known, T + 21_000).text
    steady = material(transitions=changes[:1], lives=[life("a", 0)], health=rows)
    assert "handed out" not in present.state(steady, T + 21_000).text, "a stable group waits for nobody"
    waits = [wait("app-77", 44_000, joined=False, pending=True), wait("b", 900)]
    over = rebalance(10_000, 54_100, "member_joined", "b", stragglers=waits)
    (text,) = texts(material(rebalances=[over]), "rebalance_ended")
    assert "It waited for an id that was handed out and never used: app-77 (44 s)." in text
    assert "b (" not in text, "who came after 900 ms kept nobody waiting"
    assert "in vain" not in text, "nobody was dropped"


def test_why_tells_the_rebalances_that_the_last_one_follows_from() -> None:
    """A cascade is told from where it began, three turns at most; what came before it for itself is not."""
    rows = [rebalance(0, 1_000, "member_joined", "z")]
    for at in (10_000, 20_000, 30_000, 40_000):
        because = None if at == 10_000 else T + at - 10_000
        rows.append(rebalance(at, at + 1_000, "sync_timeout", "a", caused_by_started_at_ms=because))
    told = [one for one in why(material(rebalances=rows[:3])).sentences if one.kind == "rebalance_began"]
    assert [one.at_ms - T for one in told] == [10_000, 20_000]
    assert f"It follows from the rebalance that began at {words.clock(T + 10_000, T)}." in told[1].text
    told = [one for one in why(material(rebalances=rows)).sentences if one.kind == "rebalance_began"]
    assert [one.at_ms - T for one in told] == [20_000, 30_000, 40_000]


def test_a_rebalance_says_that_the_broker_was_slow_and_that_a_coordinator_had_loaded_the_group() -> None:
    loaded = transition(1, 8_800, "Stable", cause="coordinator_loaded")
    row = rebalance(10_000, 12_000, "metadata_changed", "a", broker_slow_ms=1_700)
    known = material(transitions=[loaded], rebalances=[row])
    assert "It came 1.2 s after a coordinator had loaded the group." in texts(known, "rebalance_began")[0]
    assert "The broker took up to 1.7 s for a request meanwhile." in texts(known, "rebalance_ended")[0]
    before = rebalance(9_000, 9_500, "member_left", "b")
    later = material(transitions=[loaded], rebalances=[before, row])
    assert "loaded" in texts(later, "rebalance_began")[0]
    assert "loaded" not in texts(later, "rebalance_began")[1], "another one lies between"


def after_the_end(**given: Any) -> Material:
    """Complete up to 30 s, asked at 31 s; a rebalance to generation 4 has begun meanwhile and is half read."""
    known: dict[str, Any] = {
        "transitions": [transition(1, 0, "Stable"), transition(2, 30_400, "Stable", generation_id=4)],
        "rebalances": [rebalance(-2_000, 0, "member_joined", "a")],
        "lives": [life("a", -9_000), life("b", 30_300)],
        "complete_to_ms": T + 30_000,
        "now_ms": T + 31_000,
        "stale": False,
    }
    return material(**(known | given))


def test_a_story_of_the_present_closes_where_all_is_known_and_not_at_the_clock() -> None:
    for told in (why(after_the_end()), explain(after_the_end())):
        (state,) = [one for one in told.sentences if one.kind == "state"]
        assert state.at_ms == T + 30_000
        assert "Stable in generation 3" in state.text
        assert "1 member: a." in state.text


def test_what_is_known_of_after_the_end_is_told_behind_it() -> None:
    later = after_the_end(rebalances=[rebalance(30_200, None, "member_joined", "b", joined_at_ms=None)])
    for told in (why(later), explain(later)):
        kinds = [one.kind for one in told.sentences]
        assert kinds.index("state") < kinds.index("rebalance_began")
        assert [one.at_ms for one in told.sentences] == sorted(one.at_ms for one in told.sentences)


def test_why_warns_of_tables_that_are_behind_as_explain_does() -> None:
    behind = after_the_end(now_ms=T + 60_000, stale=True)
    for told in (why(behind), explain(behind)):
        assert told.sentences[-1].text == "The logs were read up to 2025-10-09T08:53:50.000Z."


def test_a_story_that_is_to_end_later_than_what_is_known_ends_there_and_says_so() -> None:
    known = after_the_end()
    later_ms = T + 86_400_000
    for told in (why(known, at_ms=later_ms), explain(known, to_ms=later_ms), explain(known, at_ms=later_ms)):
        (state,) = [one for one in told.sentences if one.kind == "state"]
        assert state.at_ms == T + 30_000
        assert told.sentences[-1].text == "Nothing is known beyond 2025-10-09T08:53:50.000Z: this ends there."


def test_a_fenced_duplicate_is_told_as_two_processes_and_not_as_a_restart() -> None:
    taken = life("m1", 0, 10_000, "static_replaced", group_instance_id="s1")
    other = life("m2", 10_000, group_instance_id="s1")
    took = transition(3, 10_000, "Member", "m2", cause="static_replaced")
    restart = material(lives=[taken, other], transitions=[took])
    assert "its static id s1 came back under a new member id" in texts(restart, "ended")[0]
    refused = transition(4, 10_700, "Absent", "m1", from_state="Absent", cause="fenced")
    twice = material(lives=[taken, other], transitions=[took, refused])
    assert "no restart: m1 lived, went on sending, and was fenced at 08:53:30.700Z" in texts(twice, "ended")[0]
    assert "Two processes have one static id." in texts(twice, "ended")[0]
    assert "took over a static id that another process still used" in texts(twice, "joined")[1]


def test_of_a_member_that_its_end_alone_shows_only_that_is_told() -> None:
    found = material(lives=[life("a", 5_000, 5_000, "session_expired")])
    kinds = [one.kind for one in explain(found).sentences if one.at_ms == T + 5_000]
    assert kinds == ["ended"]


def test_who_takes_over_in_the_instant_of_an_end_is_told_behind_it() -> None:
    found = material(lives=[life("a", 0, 5_000, "left"), life("b", 5_000)])
    told = [(one.kind, one.member_ids) for one in explain(found).sentences if one.at_ms == T + 5_000]
    assert told == [("ended", ("a",)), ("joined", ("b",))]


def test_where_nothing_is_known_of_a_group_nobody_is_said_to_be_absent() -> None:
    known_nobody = texts(material(lives=[], transitions=[]), "state", at_ms=T)
    assert known_nobody == ["Nothing is known of the group at this instant."]
    known_one = texts(material(lives=[life("a", -60_000)], transitions=[]), "state", at_ms=T)
    assert known_one == ["Nothing is known of the state of the group at this instant; 1 member: a."]


@pytest.mark.parametrize(
    ("read", "is_told"),
    [
        ({"fault_signs": ["heard_at_ms=1"]}, True),
        ({"fault_signs": []}, False),
        ({"fault_signs": ["heard_at_ms=1"], "session_timeout_ms": None}, False),
    ],
    ids=["its requests", "sentences and records", "sentences alone"],
)
def test_nobody_is_told_that_nothing_was_predicted_where_nothing_could_be(read: dict[str, Any], is_told: bool) -> None:
    gone = life("a", 0, 9_000, "session_expired", **read)
    assert any("had not been predicted" in text for text in texts(material(lives=(gone,)), "ended")) is is_told


@pytest.mark.parametrize("cause", ["session_expired", "rebalance_timeout", "sync_timeout", "left", "static_replaced"])
def test_bounds_of_an_end_are_a_late_timers_only_where_a_timer_ended_it(cause: str) -> None:
    (told,) = texts(material(lives=[life("a", -9_000, 0, cause, at_bound_ms=400)]), "ended")
    assert "It ended between" in told
    assert ("timers of a broker may fire late" in told) is (cause not in ("left", "static_replaced"))
