"""What a statement is in doubt for: a closed set, each with its sentence and with what a statement is worth under it.

This is the one table of certainty. Whoever decides says what is in doubt; how sure that leaves the statement follows
from here and is decided nowhere else. Doubts are kept as the bits of one number: none is 0, and what rests on several
things is in doubt for the doubts of all of them (`one | other`). A new doubt is a name, a row of `MEANINGS`, and a test
of a scene that raises it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from kardia.certainty import Certainty

Doubts = int
"""A set of `Doubt`, as bits."""

SURE: Doubts = 0
"""Nothing is in doubt: the broker's own words, or its own timer."""


class Doubt:
    """One thing that a statement may be in doubt for, a bit each. Saved state holds the numbers: they are never given
    again. Numbers and not members of an enumeration, so that state that is read has what was written."""

    # what follows from what was seen
    SILENCE = 1 << 0
    SEEN_LATER = 1 << 1
    THERE_BEFORE = 1 << 2
    BY_RULE = 1 << 3
    REASON_CONCLUDED = 1 << 4
    ORDER_OF_LINES = 1 << 5
    HANDLED_SLOWLY = 1 << 6
    EPOCH_COUNTED = 1 << 7
    SESSION_LEARNED = 1 << 8
    LOG_NOT_COMPLETE = 1 << 9
    SEAT_UNWATCHED = 1 << 10
    NOT_READY_UNSEEN = 1 << 11
    INFERRED_BEFORE = 1 << 44
    # what may be corrected
    STAMPS_TIED = 1 << 12
    TIMERS_TIED = 1 << 13
    TIMER_MAY_BE_LATE = 1 << 14
    LOAD_UNSEEN = 1 << 15
    RENEWAL_UNSURE = 1 << 16
    LINES_LOST = 1 << 17
    BROKER_SILENT = 1 << 18
    RESTART_UNJUDGED = 1 << 19
    OTHER_COORDINATOR = 1 << 20
    MAY_WAIT_UNSEEN = 1 << 21
    SEAT_MAY_BE_TAKEN = 1 << 22
    RECORDS_AWAITED = 1 << 23
    MEMBERS_UNKNOWN = 1 << 24
    ANOTHER_UNSURE = 1 << 25
    BEGIN_UNSEEN = 1 << 26
    LOADED_AGAIN = 1 << 27
    SESSION_GUESSED = 1 << 28
    EPOCH_UNSURE = 1 << 29
    MAY_BE_CLASSIC = 1 << 30
    DEADLINE_PASSED = 1 << 31
    TIMER_PASSED_UNSEEN = 1 << 32
    BY_ELIMINATION = 1 << 33
    ID_UNSURE = 1 << 34
    TARGET_MAY_BE_OLDER = 1 << 35
    STORED_LATE = 1 << 36
    CONNECTION_BROKE = 1 << 37
    POLLS_UNSEEN = 1 << 38
    HEARTBEAT_MAY_BE_LATE = 1 << 42
    PROVISIONAL_BEFORE = 1 << 43
    # where the evidence is missing
    NOT_SEEN = 1 << 39
    REASON_NOT_GIVEN = 1 << 40
    REQUESTS_NOT_READ = 1 << 41


class Meaning(NamedTuple):
    """What a doubt means."""

    worth: Certainty
    """How sure a statement is at most that is in doubt for this."""
    sentence: str
    """For people, without its full stop."""


MEANINGS: dict[Doubts, Meaning] = {
    Doubt.SILENCE: Meaning("inferred", "nothing was heard of it up to its deadline, and nothing has denied that since"),
    Doubt.SEEN_LATER: Meaning("inferred", "what came later shows it; no line says it itself"),
    Doubt.THERE_BEFORE: Meaning("inferred", "it was there before anything of it was read"),
    Doubt.BY_RULE: Meaning("inferred", "it is what a coordinator of its release does; no line says it itself"),
    Doubt.REASON_CONCLUDED: Meaning(
        "inferred", "its client gave no reason; this one follows from what was seen of its polls, or from who asked"
    ),
    Doubt.ORDER_OF_LINES: Meaning(
        "inferred", "two lines of server.log that stand beside each other are taken for cause and effect"
    ),
    Doubt.HANDLED_SLOWLY: Meaning(
        "inferred", "its broker took long to handle the request, which may have taken effect earlier"
    ),
    Doubt.EPOCH_COUNTED: Meaning("inferred", "its epoch is counted; no answer and no record has its number yet"),
    Doubt.SESSION_LEARNED: Meaning(
        "inferred", "how long its session is was learned from an eviction, or from what its broker logged at its start"
    ),
    Doubt.LOG_NOT_COMPLETE: Meaning(
        "inferred", "its broker may yet log an answer to what it was asked before that instant"
    ),
    Doubt.SEAT_UNWATCHED: Meaning(
        "inferred", "it is a static member: since it was heard last another process may have taken its place"
    ),
    Doubt.NOT_READY_UNSEEN: Meaning(
        "inferred",
        "a streams group may be not ready instead, if its topology is not valid: nothing that is read says so",
    ),
    Doubt.INFERRED_BEFORE: Meaning("inferred", "a release before this one has concluded it, and kept no reason"),
    Doubt.STAMPS_TIED: Meaning(
        "provisional", "something else stands within the width of a time stamp: which of the two came first is not seen"
    ),
    Doubt.TIMERS_TIED: Meaning(
        "provisional", "two timers were due so near each other that either may have been the first"
    ),
    Doubt.TIMER_MAY_BE_LATE: Meaning("provisional", "its timer may have fired late, after something else"),
    Doubt.LOAD_UNSEEN: Meaning(
        "provisional", "its session runs from a load of its group, of which the instant is known within bounds only"
    ),
    Doubt.RENEWAL_UNSURE: Meaning(
        "provisional", "what is taken for the last renewal of its session need not have been one"
    ),
    Doubt.LINES_LOST: Meaning(
        "provisional", "lines were not read, lost or of before the log begins, in which something else may have stood"
    ),
    Doubt.BROKER_SILENT: Meaning(
        "provisional", "its broker logged nothing around then: it may have been down or have stood still"
    ),
    Doubt.RESTART_UNJUDGED: Meaning(
        "provisional", "its broker may have been started again, which nothing has shown yet; sessions would run anew"
    ),
    Doubt.OTHER_COORDINATOR: Meaning(
        "provisional", "another broker may have led its group by then, which nothing has shown yet"
    ),
    Doubt.MAY_WAIT_UNSEEN: Meaning(
        "provisional", "a JoinGroup or SyncGroup may be waiting, which no line shows before it is answered"
    ),
    Doubt.SEAT_MAY_BE_TAKEN: Meaning(
        "provisional", "another process may have taken its static id, in a JoinGroup that is not answered yet"
    ),
    Doubt.RECORDS_AWAITED: Meaning(
        "provisional", "a request or a record about it waits for the rest of what the coordinator has written"
    ),
    Doubt.MEMBERS_UNKNOWN: Meaning(
        "provisional", "not all members of its group are known: somebody who was not seen may have gone first"
    ),
    Doubt.ANOTHER_UNSURE: Meaning(
        "provisional", "another member may have gone first, of which it is not sure when it ended"
    ),
    Doubt.BEGIN_UNSEEN: Meaning("provisional", "something that was not seen may have begun it before"),
    Doubt.LOADED_AGAIN: Meaning(
        "provisional", "a coordinator has loaded its group, and what had not been stored before that never was"
    ),
    Doubt.SESSION_GUESSED: Meaning(
        "provisional",
        "how long its session is, is concluded from evictions, other groups or defaults; it may differ",
    ),
    Doubt.EPOCH_UNSURE: Meaning(
        "provisional", "which epoch this made is not sure: not every change of a group shows in its answers"
    ),
    Doubt.MAY_BE_CLASSIC: Meaning("provisional", "its group may have become a classic one, unseen"),
    Doubt.DEADLINE_PASSED: Meaning(
        "provisional", "its deadline has passed, and nothing has shown yet what its broker did then"
    ),
    Doubt.TIMER_PASSED_UNSEEN: Meaning("provisional", "another timer was due by which it may be gone already, unseen"),
    Doubt.BY_ELIMINATION: Meaning("provisional", "it is what is left, as nothing that was seen explains it"),
    Doubt.ID_UNSURE: Meaning("provisional", "its request was answered under another member id than it has, or none"),
    Doubt.TARGET_MAY_BE_OLDER: Meaning(
        "provisional", "the answer may have the epoch of an older target: one is computed once in a while"
    ),
    Doubt.STORED_LATE: Meaning(
        "provisional", "what the coordinator wrote was stored late or not at all, which may have undone it"
    ),
    Doubt.CONNECTION_BROKE: Meaning(
        "provisional", "its client came by another connection: a request by the one before may have no line"
    ),
    Doubt.POLLS_UNSEEN: Meaning("provisional", "it may have polled where nothing shows it"),
    Doubt.HEARTBEAT_MAY_BE_LATE: Meaning(
        "provisional", "less than half of its session has passed in silence: its heartbeat may only be late"
    ),
    Doubt.PROVISIONAL_BEFORE: Meaning(
        "provisional", "a release before this one has concluded it, and did not keep what was in doubt"
    ),
    Doubt.NOT_SEEN: Meaning("unknown", "nothing that was read shows it"),
    Doubt.REASON_NOT_GIVEN: Meaning("unknown", "its client gave no reason, and nothing that was seen shows one"),
    Doubt.REQUESTS_NOT_READ: Meaning("unknown", "only its requests would show it, and they are not read"),
}
"""Doubt -> what it means. A test holds that no doubt lacks its row."""


NAMES: dict[str, Doubts] = {name.lower(): doubt for name, doubt in vars(Doubt).items() if name.isupper()}
"""Name of a doubt as rows have it -> the doubt."""

BY_NAME: dict[str, Meaning] = {name: MEANINGS[doubt] for name, doubt in NAMES.items()}
"""Name of a doubt as rows have it -> what it means."""


def _all_worth(worth: Certainty) -> Doubts:
    return sum(doubt for doubt, meaning in MEANINGS.items() if meaning.worth == worth)


_UNKNOWN, _PROVISIONAL = _all_worth("unknown"), _all_worth("provisional")
_CORRECTED = _UNKNOWN | _PROVISIONAL


def certainty_of(doubts: Doubts) -> Certainty:
    """How sure a statement is that is in doubt for these: what the weakest of them leaves it worth."""
    if not doubts:
        return "exact"
    if doubts & _UNKNOWN:
        return "unknown"
    return "provisional" if doubts & _PROVISIONAL else "inferred"


def stands(doubts: Doubts) -> bool:
    """Whether what is in doubt for these is not expected to be corrected: it is exact or inferred."""
    return not doubts & _CORRECTED


def meanings_of(names: Iterable[str] | None) -> list[Meaning]:
    """What names of doubts mean, as a row has them; names that a later release has given are passed over."""
    return [BY_NAME[name] for name in names or () if name in BY_NAME]


@lru_cache(maxsize=4096)
def names_of(doubts: Doubts) -> tuple[str, ...]:
    """Names of doubts as rows have them, in a fixed order."""
    return tuple(name for name, doubt in NAMES.items() if doubts & doubt)
