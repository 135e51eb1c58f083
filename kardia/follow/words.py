"""Answers in the words of the protocol, for a surprise."""

from __future__ import annotations

from kardia.coordinator.classic.operations import Answer
from kardia.follow.clues import Clue
from kardia.follow.course import Contradiction
from kardia.kafka.states import ErrorCode

REQUESTS = {
    "Join": "JoinGroup",
    "Sync": "SyncGroup",
    "Heartbeat": "Heartbeat",
    "Leave": "LeaveGroup",
    "Commit": "OffsetCommit",
}


def request_word(clue: Clue) -> str:
    """Name of the request."""
    return REQUESTS[type(clue.operation).__name__]


def error_word(code: int) -> str:
    """A code with its name."""
    try:
        return f"{code} {ErrorCode(code).name}"
    except ValueError:
        return str(code)


def seen_words(found: Contradiction, clue: Clue) -> str:
    """What the log says."""
    if found.what in ("early", "late"):
        return f"{error_word(clue.error_code)} after {clue.answered_at_ms - clue.at_ms} ms"
    if clue.entries and any(clue.entries):
        return ", ".join(map(error_word, clue.entries))
    return _answer(clue.error_code, clue.generation_id, clue.leader, found.what, len(clue.members))


def predicted_words(found: Contradiction, clue: Clue) -> str:
    """What the model says."""
    answer = found.predicted
    if answer is None:
        return f"no answer within {max(found.at_ms - clue.at_ms, 0)} ms"
    if found.what in ("early", "late"):
        return f"{error_word(answer.error_code)} after {answer.at_ms - clue.at_ms} ms"
    if answer.left:
        return ", ".join(error_word(error) for _, _, error in answer.left)
    return _answer(answer.error_code, answer.generation_id, answer.leader, found.what, len(answer.members))


def _answer(code: int, generation_id: int, leader: str, what: str, members: int) -> str:
    told = error_word(code)
    if what == "generation":
        return f"{told}, generation {generation_id}"
    if what == "leader":
        return f"{told}, leader {leader}"
    return f"{told}, {members} members" if what == "members" else told


def rule_words(answer: Answer | None, what: str) -> str:
    """What the release answers, as a part of a rule: without ids, instants and numbers."""
    if answer is None:
        return "no answer yet"
    errors = tuple(error for _, _, error in answer.left) or (answer.error_code,)
    return f"{what}: {'/'.join(map(str, errors))}"
