"""Recorded stories told by `kardia explain`, against what the broker's own log and the driver say happened.

The truth is `expect.json` of each recording; instants may be off by 10 ms, as the tables promise.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kardia.story import words
from tests.story.conftest import STORIES, kardia, sentences
from tests.support.stories import Story

WITHIN_MS = 10
GROUPS = {"c01": "g01", "c04": "g04", "c05": "g05", "c06": "g06", "c09": "g09", "c10": "g10", "c13": "g13"}
ALL = [*GROUPS.items(), ("c04", "g04s")]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in found if one["kind"] == kind]


def near(found: list[dict[str, Any]], at_ms: float, within_ms: float = WITHIN_MS) -> list[dict[str, Any]]:
    return [one for one in found if abs(one["at_ms"] - at_ms) <= within_ms]


def expected(cluster: str, group: str, what: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Story(STORIES[cluster]).expect[what]
    return [row for row in rows if row["group"] == group]


@pytest.mark.parametrize(("cluster", "group"), ALL)
def test_every_eviction_and_leave_is_told_and_none_invented(tables: Path, cluster: str, group: str) -> None:
    ended = of_kind(sentences(tables, cluster, group), "ended")
    gone = {one["member_ids"][0]: one for one in ended if "was replaced" not in one["text"]}
    evictions = {row["member_id"]: row for row in expected(cluster, group, "evictions")}
    leaves = {row["member_id"]: row for row in expected(cluster, group, "leaves")}
    assert gone.keys() == evictions.keys() | leaves.keys()
    for member_id, row in (evictions | leaves).items():
        assert abs(gone[member_id]["at_ms"] - row["t"]) <= WITHIN_MS
        assert row["client_id"] in gone[member_id]["text"]


@pytest.mark.parametrize(("cluster", "group"), ALL)
def test_an_eviction_says_when_the_member_was_last_heard(tables: Path, cluster: str, group: str) -> None:
    for row in expected(cluster, group, "evictions"):
        (told,) = [
            one
            for one in of_kind(sentences(tables, cluster, group), "ended")
            if one["member_ids"] == [row["member_id"]]
        ]
        heard = re.search(r"last heard at (\d\d):(\d\d):(\d\d\.\d{3})Z", told["text"])
        assert heard is not None, told["text"]
        of_day_ms = (int(heard[1]) * 3_600 + int(heard[2]) * 60 + float(heard[3])) * 1_000
        assert abs(of_day_ms - row["last_contact"] % 86_400_000) <= WITHIN_MS
        assert f"its session of {row['session_ms'] // 1000} s expired" in told["text"]
        assert re.search(r"predicted at [\d:.]+Z, [\d.]+ m?s ahead", told["text"])


@pytest.mark.parametrize(("cluster", "group"), ALL)
def test_every_rebalance_is_told_with_trigger_length_and_straggler(tables: Path, cluster: str, group: str) -> None:
    found = sentences(tables, cluster, group)
    began, over = of_kind(found, "rebalance_began"), of_kind(found, "rebalance_ended")
    rows = expected(cluster, group, "rebalances")
    assert len(began) == len(over) == len(rows)
    for row in rows:
        (start,) = [one for one in began if f"(generation {row['from_gen']}" in one["text"]]
        assert abs(start["at_ms"] - row["t_start"]) <= 3 * WITHIN_MS
        # The broker's line about an assignment was written up to 26 ms after it came.
        ended = near(over, row["t_done"], 3 * WITHIN_MS)
        (end,) = [one for one in ended if f"eneration {row['to_gen']}" in one["text"]]
        if row["members"] == 0:
            assert "became empty" in end["text"]
            continue
        assert f"Generation {row['to_gen']}: {row['members']} member" in end["text"]
        took = re.match(r"The rebalance took (?:at (?:least|most) )?([\d.]+) (m?s)", end["text"])
        assert took is not None, end["text"]
        rounded_ms = 50 if took[2] == "s" else 0
        took_ms = float(took[1]) * (1_000 if took[2] == "s" else 1)
        assert abs(took_ms - (row["t_done"] - row["t_start"])) <= 3 * WITHIN_MS + rounded_ms
        if row["from_gen"] and len(row["joins"]) > 1:
            who = rf"{row['last_joiner']}( \(\w+)?"
            slow = rf"; (it waited for {who}|{who}.* slow to rejoin)"
            assert re.search(slow, end["text"]), end["text"]


def test_a_kill_is_an_expired_session_that_began_a_rebalance(tables: Path) -> None:
    found = sentences(tables, "c01", "g01")
    (ended,) = [one for one in of_kind(found, "ended") if "c01-b" in one["text"]]
    assert "was evicted: its session of 10 s expired" in ended["text"]
    # The broker's timer fired 2 ms after the deadline that its log shows; it tells no more than that it did in 71 ms.
    assert "It ended between 21:50:29.487Z and 21:50:29.558Z" in ended["text"]
    assert "This was predicted at 21:50:23.283Z, 6.2 s ahead, off by 4 ms to 75 ms." in ended["text"]
    assert ended["certainty"] == "exact"
    (began,) = near(of_kind(found, "rebalance_began"), ended["at_ms"])
    assert "the session of c01-b expired" in began["text"]
    assert began["certainty"] == "exact", "the eviction was confirmed, so the cause of the rebalance is"
    (over,) = [one for one in of_kind(found, "rebalance_ended") if "Generation 2:" in one["text"]]
    assert "; c01-a was slow to rejoin (2 s)." in over["text"]


def test_a_cascade_is_told_from_where_it_began(tables: Path) -> None:
    """c04-a gives up at its poll timeout and rejoins: one fault, two rebalances, and `why` of the second tells both."""
    began = of_kind(sentences(tables, "c04", "g04"), "rebalance_began")
    (back,) = [one for one in began if "c04-a" in one["text"] and "came back after" in one["text"]]
    at = words.instant(back["at_ms"] + 3_000)
    said = kardia("why", "g04", "--tables", tables, "--cluster", "c04", "--at", at, "-o", "json")
    assert said.code == 0, said.err
    told = [one for one in said.json()["sentences"] if one["kind"] == "rebalance_began"]
    assert [one["at_ms"] for one in told][-1] == back["at_ms"]
    assert "had not polled in time" in told[0]["text"]
    report = kardia("incident", "g04", "--tables", tables, "--cluster", "c04", "--from", words.instant(back["at_ms"]))
    began_at = words.instant(back["at_ms"])
    (line,) = [one for one in report.out.splitlines() if one.startswith(began_at) and "  member_joined  " in one]
    assert line.endswith(words.instant(told[0]["at_ms"]))


def test_a_kill_is_the_clients_fault_and_a_stall_the_applications(tables: Path) -> None:
    (killed,) = [one for one in of_kind(sentences(tables, "c01", "g01"), "ended") if "c01-b" in one["text"]]
    assert "Who broke it: the client; no request of it came any more, on any connection" in killed["text"]
    assert "while 2 other members at its address went on. (Inferred.)" in killed["text"]
    (stalled,) = [one for one in of_kind(sentences(tables, "c04", "g04"), "ended") if "c04-a" in one["text"]]
    assert "Who broke it: the application; its heartbeats went on" in stalled["text"]


def test_a_poll_timeout_is_told_in_the_clients_own_words_or_as_inferred(tables: Path) -> None:
    ended = {one["member_ids"][0][:5]: one for one in of_kind(sentences(tables, "c04", "g04"), "ended")}
    java, librdkafka = ended["c04-a"], ended["c04-b"]
    assert 'its own words: "consumer poll timeout has expired."' in java["text"]
    assert "its poll interval is 8 s" in java["text"]
    assert java["certainty"] == "exact"
    assert "Inferred" not in java["text"]
    assert "Inferred: it gave no reason" in librdkafka["text"]
    assert librdkafka["certainty"] == "inferred"


def test_the_last_sign_of_a_poll_is_the_one_that_the_client_remembers(tables: Path) -> None:
    stall = next(row for row in Story(STORIES["c04"]).expect["poll_stalls"] if row["client_id"] == "c04-a")
    ended = next(one for one in of_kind(sentences(tables, "c04", "g04"), "ended") if "c04-a" in one["text"])
    polled = re.search(r"Last sign of a poll: a FETCH at (\d\d):(\d\d):(\d\d\.\d{3})", ended["text"])
    assert polled is not None
    of_day_ms = (int(polled[1]) * 3_600 + int(polled[2]) * 60 + float(polled[3])) * 1_000
    assert stall["last_poll_start"] - WITHIN_MS <= of_day_ms + stall["t"] // 86_400_000 * 86_400_000
    assert of_day_ms + stall["t"] // 86_400_000 * 86_400_000 <= stall["last_poll_end"] + WITHIN_MS


def test_a_stalled_static_member_falls_silent_instead_of_leaving(tables: Path) -> None:
    (ended,) = of_kind(sentences(tables, "c04", "g04s"), "ended")
    assert "its session of 6 s expired" in ended["text"]
    assert "a static member does not leave then" in ended["text"]
    killed = next(one for one in of_kind(sentences(tables, "c06", "g06"), "ended") if "evicted" in one["text"])
    assert "a static member does not leave then" not in killed["text"], "it was closed, its application had polled"


def test_a_client_that_comes_back_is_linked_to_its_end(tables: Path) -> None:
    began = of_kind(sentences(tables, "c04", "g04"), "rebalance_began")
    (back,) = [one for one in began if "came back after 6.2 s" in one["text"]]
    assert "The same client had been c04-a (c18b9f7b) until 21:51:37.312Z" in back["text"]
    assert "(poll timeout; that began a rebalance too)" in back["text"]
    assert "(Inferred: same client.id and host.)" in back["text"]
    (static,) = [
        one for one in of_kind(sentences(tables, "c04", "g04s"), "rebalance_began") if "came back" in one["text"]
    ]
    assert "Inferred" not in static["text"], "a static id is the same by definition"


def test_leaves_are_told_with_their_reasons(tables: Path) -> None:
    texts = [one["text"] for one in of_kind(sentences(tables, "c05", "g05"), "ended")]
    assert sum('"the consumer unsubscribed from all topics"' in text for text in texts) == 1
    assert sum('"the consumer is being closed"' in text for text in texts) == 1
    assert sum("without giving a reason" in text and "Inferred" in text for text in texts) == 2
    assert not any("evicted" in text or "had not polled" in text for text in texts)


def test_static_restarts_need_no_rebalance(tables: Path) -> None:
    found = sentences(tables, "c06", "g06")
    replaced = [one for one in of_kind(found, "ended") if "its static id" in one["text"]]
    assert [one["member_ids"][0][:3] for one in replaced] == ["i-b", "i-c"]
    back = [one for one in of_kind(found, "joined") if "no rebalance was needed" in one["text"]]
    assert [one["at_ms"] for one in back] == [one["at_ms"] for one in replaced]


def test_a_slow_member_is_named_with_its_wait_and_what_it_cost(tables: Path) -> None:
    (over,) = [
        one for one in of_kind(sentences(tables, "c10", "g10"), "rebalance_ended") if "Generation 2:" in one["text"]
    ]
    assert "The rebalance took 12.8 s; c10-b was slow to rejoin (12.8 s)." in over["text"], "c10-a came after 1.6 s"
    report = kardia("incident", "g10", "--tables", tables, "--cluster", "c10", "-o", "json").json()
    (row,) = [one for one in report["rebalances"] if one["generation_after"] == 2]
    assert row["member_seconds_lost"] == 38, "three members, 12.8 s each"
    assert "Meanwhile 3 members had no partitions." in over["text"]


def test_a_story_without_faults_has_no_end_and_no_warning(tables: Path) -> None:
    for cluster in ("c09", "c10"):
        found = sentences(tables, cluster, GROUPS[cluster])
        assert not of_kind(found, "ended")
        assert not of_kind(found, "predicted")


def test_a_member_that_another_coordinator_waited_for_was_not_heard_there(tables: Path) -> None:
    """The killed coordinator's member was last heard before the kill; its timer was begun anew by the next broker."""
    ended = of_kind(sentences(tables, "m01", "gm1"), "ended")
    assert len(ended) == 2
    assert "last heard at 22:17:36.231Z" in ended[0]["text"]
    assert "a coordinator loaded the group at 22:17:47.309Z, and it did not come back" in ended[0]["text"]
    assert "Inferred" in ended[0]["text"]


@pytest.mark.parametrize(("cluster", "group"), [*ALL, ("m01", "gm1"), ("m01", "hm1")])
def test_the_deadlines_of_whoever_is_there_at_the_end_are_told(tables: Path, cluster: str, group: str) -> None:
    """Also where the last samples are a moment younger than what is complete: those before them count then."""
    told = sentences(tables, cluster, group)
    (state,) = of_kind(told, "state")
    if "Empty" in state["text"] or "no member" in state["text"]:
        return
    assert not any("No health row" in one["text"] for one in told), state["text"]
    assert of_kind(told, "deadline")


def test_why_tells_the_turn_before_an_instant(tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c13", "-o", "json")
    evicted = next(row for row in Story(STORIES["c13"]).expect["evictions"])
    after = kardia("why", "g13", "--at", str(evicted["t"] + 3_000), *where).json()["sentences"]
    assert [one["kind"] for one in after] == ["ended", "rebalance_began", "rebalance_ended", "state"]
    assert "c13-b (6185f317) was evicted" in after[0]["text"]
    assert "confluent-kafka-python" in after[0]["text"], "who it is stands in the sentence itself"
    during = kardia("why", "g13", "--at", str(evicted["t"] + 500), *where).json()["sentences"]
    assert [one["kind"] for one in during] == ["ended", "rebalance_began", "state"]
    assert "PreparingRebalance" in during[-1]["text"]
    assert "waited for c13-a" in during[-1]["text"]
    before = kardia("why", "g13", "--at", str(evicted["t"] - 1_000), *where).json()["sentences"]
    assert "c13-c" in before[0]["text"]
    never = kardia("why", "g13", "--at", "1000", *where).json()["sentences"]
    assert "Nothing to explain" in never[0]["text"]


def test_a_group_of_the_consumer_protocol_is_told_in_epochs(tables: Path) -> None:
    found = sentences(tables, "m01", "hm1")
    began = [one["text"] for one in of_kind(found, "rebalance_began")]
    assert [text.partition(":")[0] for text in began] == [
        "A rebalance began (epoch 0 to 1)",
        "A rebalance began (epoch 1 to 2, 1 member)",
        "A rebalance began (epoch 2 to 3, 2 members)",
    ]
    assert "to give up 1 partition" in of_kind(found, "rebalance_ended")[1]["text"]
    assert "in epoch 3" in of_kind(found, "state")[-1]["text"]
