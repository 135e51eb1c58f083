"""Which questions each rung of evidence answers, and that a higher one answers no less."""

from __future__ import annotations

from itertools import product

import pytest

from kardia.evidence_levels import RUNGS, Read, questions

ALL = [
    Read(*given)  # type: ignore[arg-type]  # six of its seven
    for given in product((False, True), repeat=6)
    if given[0] or not given[1]
]
DEGREES = ("no", "partly", "yes")


@pytest.mark.parametrize(
    ("read", "rung"),
    [
        (Read(), 0),
        (Read(offsets=True), 2),
        (Read(server_log=True), 3),
        (Read(server_log=True, offsets=True), 4),
        (Read(requests=True), 5),
        (Read(requests=True, server_log=True, offsets=True), 5),
        (Read(requests=True, polls=True), 6),
    ],
)
def test_the_number_of_each(read: Read, rung: int) -> None:
    assert read.rung == rung
    assert rung in RUNGS


def test_deadlines_faults_and_polls_take_the_request_log() -> None:
    for read in ALL:
        found = {one.question: one for one in questions(read)}
        for question in ("who is next?", "who broke it?"):
            assert (found[question].answered == "yes") is read.requests
            assert ("request log" in found[question].needs) is not read.requests
        assert (found["did it poll?"].answered == "yes") is read.polls


def test_how_far_it_is_behind_takes_commits_and_ends_and_nothing_else() -> None:
    for read in ALL:
        [lag] = [one for one in questions(read) if one.question == "how far is it behind?"]
        assert (lag.answered == "yes") is (read.offsets and read.ends)
        assert ("__consumer_offsets" in lag.needs) is not read.offsets
        assert ("Describe on the topics" in lag.needs) is (lag.answered == "no")


@pytest.mark.parametrize("epochs", [False, True])
def test_what_cannot_be_answered_says_what_it_needs(epochs: bool) -> None:
    for read in ALL:
        for one in questions(read, epochs=epochs):
            assert (one.answered == "yes") is (one.needs == "")
            assert one.needs == "" or one.needs.startswith("needs ")


@pytest.mark.parametrize("epochs", [False, True])
def test_more_evidence_answers_no_less(epochs: bool) -> None:
    for less, more in product(ALL, ALL):
        if all(not one or other for one, other in zip(less, more, strict=True)):
            for one, other in zip(questions(less, epochs=epochs), questions(more, epochs=epochs), strict=True):
                assert DEGREES.index(one.answered) <= DEGREES.index(other.answered), (less, more, one)
