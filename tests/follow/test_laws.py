"""Laws: the model's own traffic is predicted whole; steps, the quiet path and a short window change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardia.events import Event
from kardia.follow import Counts, Follower, Following, Surprise, follower
from kardia.follow.clues import FOLLOWED
from tests.follow.traffic import Traffic
from tests.truth.follow.measured import meta_of, once

VERSIONS = ("2.3.1", "3.9.2", "4.4.0")


def followed(version: str, events: Sequence[Event], cuts: Sequence[int] = ()) -> tuple[Counts, list[Surprise], Any]:
    """What comes of events that are taken in steps."""
    following = Following(version, keeps_ends=True)
    ordered = sorted(events, key=lambda one: (one.handled_at_ms, one.source, one.start))
    for begin, end in zip((0, *cuts), (*cuts, len(ordered)), strict=True):
        step = ordered[begin:end]
        following.take(step)
        if step:
            following.advance(step[-1].handled_at_ms - 1)
    following.finish()
    ends = sorted(following.ends, key=lambda one: (one.group_id, one.at_ms, one.member_id))
    return following.counts(), following.surprises, (ends, sorted(following.possible))


@settings(deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(VERSIONS))
def test_traffic_of_the_model_is_predicted_whole(seed: int, version: str) -> None:
    traffic = Traffic(version, seed)
    counts, surprises, _ = followed(version, traffic.events)
    assert surprises == []
    assert counts.predicted == counts.answers == len(traffic.events)


@settings(deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(VERSIONS))
def test_what_is_said_of_who_went_is_true(seed: int, version: str) -> None:
    traffic = Traffic(version, seed)
    went = {(one.member_id, one.kind): one.at_ms for one in traffic.coordinator.take_happenings()}
    _, _, (ends, possible) = followed(version, traffic.events)
    assert possible == []
    for end in ends:
        assert end.from_ms <= went[end.member_id, end.kind] <= end.to_ms
        assert end.from_ms <= end.at_ms <= end.to_ms


@settings(deadline=None)
@given(st.integers(0, 10**9), st.lists(st.integers(0, 60), max_size=6))
def test_any_split_into_steps_says_the_same(seed: int, cuts: list[int]) -> None:
    events = Traffic("3.9.2", seed).events
    inside = sorted(cut for cut in cuts if cut <= len(events))
    assert followed("3.9.2", events, inside) == followed("3.9.2", events)


@pytest.mark.parametrize("name", ["c09_join-3.9.2", "d03_stand_still-3.9.2", "o04_mpi-2.3.1"])
def test_any_split_of_a_story_says_the_same(name: str) -> None:
    version, events = meta_of(name)["broker_version"], [one for one in once(name) if one.kind in FOLLOWED]
    whole = followed(version, events)
    for every in (1, 7, 40):
        assert followed(version, events, range(every, len(events), every)) == whole


@pytest.mark.parametrize("name", ["c04_mpi-4.1.2", "c13_commit-3.9.2", "d01_kill_long-3.9.2"])
def test_the_quiet_path_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    version, events = meta_of(name)["broker_version"], once(name)
    quick = followed(version, events)
    monkeypatch.setattr(Follower, "hear", lambda *_: False)
    slow = followed(version, events)
    assert (quick[0].predicted, quick[1], quick[2]) == (slow[0].predicted, slow[1], slow[2])


def test_a_window_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "WINDOW_MAX", 20)
    monkeypatch.setattr(Follower, "hear", lambda *_: False)
    events = [one for one in once("c04_mpi-3.9.2") if one.group_id == "g04"]
    following = Following("3.9.2")
    following.take(events)
    following.advance(float("inf"))
    assert len(following.followers["g04"]._standing[0].plan.items) <= 21
    following.finish()
    assert following.counts().predicted == following.counts().answers
