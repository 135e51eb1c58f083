"""What must hold between tolerances, and between them and the settings: a rule that rests on one relies on the others.

Each is a chain from the nearest to the farthest: who changes one number sees here what it is measured against.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from kardia import tolerances
from kardia.follow import tolerances as follower
from kardia.observe import ObserverSettings
from kardia.tolerances import (
    ABSENT_MS,
    ANSWERED_WITHIN_MS,
    APART_MS,
    ASSIGNMENT_INTERVAL_MS,
    AT_ONCE_MS,
    AWAKE_MS,
    BUSY_MS,
    CLASSES_WITHIN_MS,
    CLOSED_AFTER_MS,
    COMMIT_ANSWERED_WITHIN_MS,
    CONTRADICTED_AFTER_MS,
    DID_NOT_WAIT_MS,
    EARLY_MS,
    ELECTION_STANDS_MS,
    FLUSHED_MS,
    GRACE_MS,
    HIDDEN_MS_MAX,
    IN_TIME_MS,
    JUDGED_WITHIN_MS,
    LATE_MS,
    LEAVE_DELAY_MS,
    LOADS_WITHIN_MS,
    LOG_OFF_MS,
    PRESUMED_AFTER_MS,
    RECORDS_WAITED_FOR_MS,
    RESYNCED_AFTER_MS,
    SENTENCES_APART_MS,
    SIGN_MS,
    STAMP_MS,
    STORED_AT_ONCE_MS,
    STORED_WITHIN_MS,
    TIMERS_NEAR_MS,
    TOLD_AFTER_MS,
    TWO_STAMPS_MS,
    UNSEEN_MS,
    WAITED_MS,
    YOUNG_MS,
)

SETTINGS = ObserverSettings("test")

_OF_FOLLOWER = (follower.ORDER_MS, follower.INSTANT_MS, follower.LOOK_MS, follower.LONG_AGO_MS, follower.LATE_MS)

CHAINS = {
    "stamps, a timer that seems early, an instant": (STAMP_MS, TWO_STAMPS_MS, EARLY_MS, AT_ONCE_MS),
    "an instant, timers in no order, a busy neighbour, a late timer": (AT_ONCE_MS, TIMERS_NEAR_MS, BUSY_MS, LATE_MS),
    "an answer at once, one that did not wait, one that waited, one that was stored late": (
        *(AT_ONCE_MS, DID_NOT_WAIT_MS, WAITED_MS, STORED_WITHIN_MS, ANSWERED_WITHIN_MS, HIDDEN_MS_MAX),
    ),
    "a commit, an answer that waited for its record": (COMMIT_ANSWERED_WITHIN_MS, STORED_AT_ONCE_MS, WAITED_MS),
    "sentences of one operation, records of one operation": (SENTENCES_APART_MS, CLOSED_AFTER_MS, TOLD_AFTER_MS),
    "a log that is silent, lines that a dead broker took along, a restart, a verdict": (
        *(SIGN_MS, FLUSHED_MS, PRESUMED_AFTER_MS, LOG_OFF_MS, JUDGED_WITHIN_MS),
    ),
    "a group nobody asked of, a broker that wakes, a load, an election": (
        *(ABSENT_MS, AWAKE_MS, LOADS_WITHIN_MS, ELECTION_STANDS_MS),
    ),
    "a target of before, an answer that contradicts, an epoch too many": (
        *(ASSIGNMENT_INTERVAL_MS, CONTRADICTED_AFTER_MS, RESYNCED_AFTER_MS),
    ),
    "one moment, classes, a young broker": (APART_MS, CLASSES_WITHIN_MS, YOUNG_MS),
    "what a candidate of the follower may reach": (TWO_STAMPS_MS, *_OF_FOLLOWER),
    "replays and clues of the follower": (follower.REPEATED, follower.CANDIDATES_MAX, follower.WINDOW_MAX),
    "a leave after its interval, a client that is well": (LEAVE_DELAY_MS, UNSEEN_MS),
    "answers of a burst, of a join phase, of a log": (
        *(STAMP_MS, SETTINGS.burst_ms, SETTINGS.settle_ms, SETTINGS.hold_ms, LATE_MS),
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_what_is_nearer_is_less(chain: str) -> None:
    assert all(near < far for near, far in pairwise(CHAINS[chain]))


def test_what_silence_shows_waits_for_a_late_timer() -> None:
    assert GRACE_MS >= LATE_MS


def test_timers_in_no_order_are_those_within_the_setting() -> None:
    assert SETTINGS.tolerance_ms == TIMERS_NEAR_MS


def test_a_request_in_time_is_more_than_an_instant_before_the_end() -> None:
    assert IN_TIME_MS >= AT_ONCE_MS


def test_a_lost_record_is_missed_before_a_silent_log_is_judged() -> None:
    assert RECORDS_WAITED_FOR_MS < PRESUMED_AFTER_MS


def test_no_value_has_two_names_without_a_reason() -> None:
    """A second name for a number is a second meaning: each pair with one value within 100 ms is named here."""
    small = {name: value for name, value in vars(tolerances).items() if name.isupper() and 0 < float(value) < 100}
    seen: dict[float, list[str]] = {}
    for name, value in small.items():
        seen.setdefault(float(value), []).append(name)
    twice = {tuple(sorted(names)) for names in seen.values() if len(names) > 1}
    assert twice == {("AT_ONCE_MS", "IN_TIME_MS")}
