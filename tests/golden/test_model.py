"""Every trace by Kardia's model of the coordinator, in every release it is written for."""

from __future__ import annotations

import pytest

from kardia.trace import Trace, play
from tests.golden import cases, name_of


@pytest.mark.parametrize(("trace", "version"), cases(), ids=name_of)
def test_the_model_does_what_the_trace_says(trace: Trace, version: str) -> None:
    differences = play(trace, version).differences
    assert not differences, "\n" + "\n".join(differences)
