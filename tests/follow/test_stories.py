"""Recorded stories of real brokers: each answer of the healthy ones is predicted, and nearly all of the others."""

from __future__ import annotations

import pytest

from tests.truth.follow.measured import HEALTHY, of_story, stories, total


@pytest.mark.parametrize("name", HEALTHY)
def test_every_answer_of_a_healthy_broker_is_predicted(name: str) -> None:
    measured = of_story(name)
    assert measured.surprises == []
    assert measured.counts.predicted == measured.counts.answers > 0
    assert measured.invented == 0


def test_of_disturbed_brokers_nearly_all_is_predicted() -> None:
    whole = total("others", "disturbed", [of_story(name) for name in stories() if name not in HEALTHY])
    assert whole.counts.answers > 16_000
    assert whole.answers_share >= 0.999
    assert whole.windows_share >= 0.99
