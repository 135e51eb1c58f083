"""A mistake in the model must be noticed by some trace, or the traces prove nothing."""

from __future__ import annotations

import pytest

from kardia.trace import play
from tests.golden import cases
from tests.truth import canaries


def _noticed() -> bool:
    for trace, version in cases():
        try:
            if play(trace, version).differences:
                return True
        except ValueError:  # The mistake made the model contradict itself.
            return True
    return False


@pytest.mark.parametrize("mistake", canaries.PLANTED)
def test_a_planted_mistake_is_noticed(mistake: str) -> None:
    with canaries.EVERY[mistake]():
        assert _noticed()


def test_nothing_is_noticed_without_one() -> None:
    assert not _noticed()
