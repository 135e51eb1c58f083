"""The story as data: it fits into two minutes, each fault stands alone, and timeouts keep librdkafka's rules."""

from __future__ import annotations

import pytest

from demo.scenario import FAULTS, MEMBERS, cues, is_played, length_s, members_of, played_on


def test_the_whole_story_takes_less_than_two_minutes() -> None:
    assert length_s(list(FAULTS)) < 110
    assert max(cue.at_s for cue in cues(list(FAULTS))) < length_s(list(FAULTS))


def test_it_has_every_fault_that_was_promised() -> None:
    promised = "join leave kill commit poll-timeout straggler static-restart static-expiry empty"
    with_epochs = "migration epoch-kill held-back"
    assert set(FAULTS) == {*promised.split(), *with_epochs.split()}
    assert set(FAULTS) - set(played_on("3.9.2")) == set(with_epochs.split())


def test_a_stretched_story_is_the_same_story() -> None:
    names = list(FAULTS)
    assert length_s(names, 3) == 3 * length_s(names)
    for one, other in zip(cues(names), cues(names, 3), strict=True):
        assert (other.at_s, other.step.seconds) == (3 * one.at_s, 3 * one.step.seconds)
        assert (other.fault, other.step.action, other.step.client_id) == (
            one.fault,
            one.step.action,
            one.step.client_id,
        )
    for plan, longer in zip(members_of(names), members_of(names, 3), strict=True):
        assert longer.session_timeout_ms == 3 * plan.session_timeout_ms
        assert longer.poll_interval_ms == 3 * plan.poll_interval_ms


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_stands_alone(name: str) -> None:
    fault = FAULTS[name]
    up = {plan.client_id for plan in members_of([name])}
    assert {MEMBERS[client].group_id for client in up} == {fault.group_id}
    for cue in cues([name]):
        assert cue.at_s >= 2
        assert MEMBERS[cue.step.client_id].group_id == fault.group_id
        assert is_played(cue.step, up), cue
        if cue.step.action == "start":
            up.add(cue.step.client_id)
        elif cue.step.action in ("leave", "kill"):
            up.remove(cue.step.client_id)
    assert length_s([name]) >= max(cue.at_s for cue in cues([name])) + 5


def test_in_the_whole_story_every_step_can_be_played() -> None:
    up = {plan.client_id for plan in members_of(list(FAULTS))}
    for cue in cues(list(FAULTS)):
        assert is_played(cue.step, up), cue
        if cue.step.action == "start":
            up.add(cue.step.client_id)
        elif cue.step.action in ("leave", "kill"):
            up.remove(cue.step.client_id)


def test_no_poll_interval_is_shorter_than_the_session() -> None:
    for plan in MEMBERS.values():
        assert plan.poll_interval_ms >= plan.session_timeout_ms
