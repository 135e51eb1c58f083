"""What was told can be wrong in each of these ways, and is found; what is right is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo import server_log
from demo.receiver import FROM_NOTIFIER, Message
from demo.server_log import Fact
from demo.told import STALE_AFTER_MS, Danger
from kardia.instants import to_rfc3339
from tests.night.compare import INVENTED, MISSED, UNTRUE
from tests.night.table_polls import Looking
from tests.night.told import (
    FLOODED,
    MINUTE_MAX,
    RAISED_MAX,
    Notice,
    Told,
    compare_told,
    notices,
    outages,
    unsure_of,
)

BEGIN = 1_800_000_000_000
MEMBER = "app-1-12345678-1234-1234-1234-123456789abc"
EVICTED = BEGIN + 60_000
SESSION = "KafkaGroupSessionTimeoutImminent"


def message(at_ms: int, what: str, number: int = 1, alert: str = SESSION, **data: Any) -> Message:
    """What the receiver gets."""
    labels = {"alertname": alert, "group": "g", "cluster": "night"}
    body = {
        "id": f"{alert}-{number}",
        "type": f"io.kardia.alert.{what}",
        "data": {
            "labels": labels,
            "members": ["app-1 at 127.0.0.1"],
            "member_ids": [MEMBER],
            "told_at_ms": at_ms,
            "unknown_since_at_ms": None,
            "outcome": None,
            **data,
        },
    }
    return Message(at_ms + 20, FROM_NOTIFIER, body)


def outcome(how: str = "was evicted at", at_ms: int = EVICTED, cause: str = ": session_expired") -> str:
    """The sentence of a notice that is over."""
    return f"app-1 at 127.0.0.1 {how} {to_rfc3339(at_ms)}{cause}."


def story(*messages: Message) -> Told:
    """A member evicted at 60 s, its danger in the tables from 55 s on, everything awake."""
    return Told(
        notices=notices(messages),
        facts=[Fact(server_log.MEMBER_FAILED, EVICTED, "g", MEMBER)],
        dangers=[Danger("g", MEMBER, "session", BEGIN + 54_000, BEGIN + 55_000, EVICTED + 1_000)],
        awake=[(BEGIN, BEGIN + 600_000)],
        sessions_ms={"g": 8_000},
        until_ms=BEGIN + 600_000,
    )


RAISED = message(BEGIN + 55_100, "raised")
RESOLVED = message(BEGIN + 95_000, "resolved", 2, outcome=outcome())


def kinds(told: Told) -> set[str]:
    """What is wrong, in a word each."""
    return {one.what for one in compare_told(told).findings}


def test_who_might_wait_in_a_join_group_until_the_end_wakes_nobody() -> None:
    """As the tables have it in an open prediction; one that was sure for a moment had to be told."""
    silent = replace(story(), dangers=[])
    row = {"group_id": "g", "member_id": MEMBER, "kind": "session", "outcome": "open", "certainty": "provisional"}
    assert kinds(silent) == {MISSED}
    assert kinds(replace(silent, unsure=unsure_of([row]))) == set()
    assert kinds(replace(silent, unsure=unsure_of([row, {**row, "certainty": "inferred"}]))) == {MISSED}
    assert kinds(replace(silent, unsure=unsure_of([{**row, "member_id": "another"}]))) == {MISSED}


def test_what_was_told_in_time_and_with_its_outcome_is_right() -> None:
    said = compare_told(story(RAISED, RESOLVED, RESOLVED))
    assert said.findings == ()
    assert said.counts["evictions by session timeout: announced"] == 1
    assert said.counts["dangers that had to be told: told by name"] == 1
    assert said.counts["outcomes told"] == 1
    assert said.counts[f"told: {SESSION} resolved"] == 1


def test_silence_is_found_unless_nobody_could_tell() -> None:
    silent = story()
    assert [one.what for one in compare_told(silent).findings] == [MISSED, MISSED]
    blind = replace(silent, awake=[(BEGIN, BEGIN + 56_000)])
    assert kinds(blind) == set()
    assert compare_told(blind).counts["evictions by session timeout: while Kardia did not see or tell"] == 1
    away = replace(silent, dangers=[], outages=[(BEGIN, BEGIN + 53_000)])
    assert kinds(away) == set()
    assert kinds(replace(away, outages=[(BEGIN, BEGIN + 51_000)])) == {MISSED}
    assert kinds(replace(silent, dangers=[], gaps=[(EVICTED - 100, EVICTED + 100)])) == set()
    assert kinds(replace(silent, dangers=[], gaps=[(EVICTED + 100, EVICTED + 200)])) == {MISSED}


def test_an_alert_of_the_group_that_is_up_tells_of_a_further_member() -> None:
    other = message(BEGIN + 30_000, "raised", members=["app-2 at 127.0.0.1"])
    said = compare_told(story(other, RESOLVED))
    assert said.findings == ()
    assert said.counts["dangers that had to be told: told of the group"] == 1
    sooner = compare_told(story(message(BEGIN + 54_900, "raised"), RESOLVED))
    assert sooner.counts["dangers that had to be told: told by name"] == 1, "before the look that saw the danger"
    over = message(BEGIN + 40_000, "resolved", 2, members=["app-2 at 127.0.0.1"])
    assert kinds(story(other, over)) == {MISSED}
    assert kinds(replace(story(other), facts=[])) == set()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (outcome(at_ms=EVICTED + 1_400), set()),
        (outcome(at_ms=EVICTED + 1_600), {UNTRUE}),
        (outcome(cause=": rebalance_timeout"), {INVENTED}),
        (outcome("left at", cause=""), {INVENTED}),
        (outcome("is gone since", cause=": static_replaced"), {INVENTED}),
        (outcome("was heard again at", cause=""), set()),
        ("It is not known what became of app-1 at 127.0.0.1.", set()),
    ],
)
def test_an_outcome_is_held_against_the_brokers_log(text: str, what: set[str]) -> None:
    assert kinds(story(RAISED, message(BEGIN + 95_000, "resolved", 2, outcome=text))) == what


def test_a_flood_is_found() -> None:
    soon = message(BEGIN + 65_000, "refreshed", 3)
    assert kinds(story(RAISED, soon, RESOLVED)) == {FLOODED}
    another = message(BEGIN + 65_000, "refreshed", 3, member_ids=[MEMBER, "app-2"])
    assert kinds(story(RAISED, another, RESOLVED)) == set(), "somebody who was not named yet"
    assert kinds(story(RAISED, another, message(BEGIN + 70_000, "refreshed", 4), RESOLVED)) == {FLOODED}
    unknown = message(BEGIN + 65_000, "refreshed", 3, unknown_since_at_ms=BEGIN)
    assert kinds(story(RAISED, unknown, RESOLVED)) == set()
    over = message(BEGIN + 62_000, "refreshed", 3, outcome="app-1 was heard again at 2027-01-15T08:01:01.000Z.")
    assert kinds(story(RAISED, over, message(BEGIN + 70_000, "refreshed", 4), RESOLVED)) == {FLOODED}, "the first"
    late = message(BEGIN + 85_000, "refreshed", 3, outcome="app-1 was heard again at 2027-01-15T08:01:01.000Z.")
    back = message(BEGIN + 88_000, "refreshed", 4)
    assert kinds(story(RAISED, late, back, RESOLVED)) == set()
    assert kinds(story(RAISED, late, back, message(BEGIN + 90_000, "refreshed", 9), RESOLVED)) == {FLOODED}
    assert kinds(story(RAISED, message(BEGIN + 90_000, "raised", 3), RESOLVED)) == {FLOODED}
    flapping = [
        message(BEGIN + 50_000 * number + shift, what, 10 * number + shift, alert="KafkaGroupZombieMember")
        for number in range(RAISED_MAX + 1)
        for shift, what in ((0, "raised"), (1, "resolved"))
    ]
    assert kinds(story(RAISED, RESOLVED, *flapping)) == {FLOODED}
    assert kinds(story(RAISED, RESOLVED, *flapping[:-2])) == set()
    many = [Notice(str(n), BEGIN, BEGIN, "raised", ("a", str(n), ""), (), (), "", False) for n in range(MINUTE_MAX + 1)]
    calm = story(RAISED, RESOLVED)
    assert kinds(replace(calm, notices=[*calm.notices, *many])) == {FLOODED}
    assert kinds(replace(calm, notices=[*calm.notices, *many[2:]])) == set()


def test_an_outage_lasts_until_the_broker_is_well_again() -> None:
    steps = [(1, "kill"), (2, "freeze"), (9, "start"), (20, "freeze"), (21, "thaw"), (30, "stop")]
    done = [{"at_ms": 1_000 * at, "what": what, "whom": "broker"} for at, what in steps]
    assert outages([*done, {"at_ms": 5, "what": "kill", "whom": "serve"}]) == [(1_000, 14_000), (20_000, 26_000)]


def test_the_feed_is_fresh_again_at_half_its_bound_and_the_notifier_needs_a_moment(tmp_path: Path) -> None:
    looking = Looking(tmp_path)
    ages = [0, 0, STALE_AFTER_MS, STALE_AFTER_MS + 1, STALE_AFTER_MS, STALE_AFTER_MS // 2, 0]
    for second, age_ms in enumerate([STALE_AFTER_MS, *ages], 100):
        looking.note(1_000 * second, age_ms, notifier_awake=True)
    assert looking.awake == [(101_000, 103_000), (106_000, 107_000)]
    for second in range(108, 120):
        looking.note(1_000 * second, 0, notifier_awake=second != 110)
    assert looking.awake[1:] == [(106_000, 109_000), (115_000, 119_000)]


def test_a_feed_that_may_have_been_stale_unseen_is_fresh_again_at_half_of_the_bound(tmp_path: Path) -> None:
    looking = Looking(tmp_path)
    for second in (100, 101, 102):
        looking.note(1_000 * second, 900, notifier_awake=True)
    # Nobody looks for 20 s, as while a broker starts.
    for second, age_ms in ((122, 8_000), (123, 6_000), (124, 4_000), (125, 900)):
        looking.note(1_000 * second, age_ms, notifier_awake=True)
    assert looking.awake == [(100_000, 102_000), (124_000, 125_000)]
