"""Without the request log nothing of the fleet is invented on any rung, and what is said to be exact is true."""

from __future__ import annotations

import pytest

from tests.truth.fleet.rungs import RUNGS, broken, on_all_rungs, table
from tests.truth.fleet.scenarios import SCENARIOS


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2"])
def test_nothing_is_invented_and_exact_is_true_on_each_rung(version: str) -> None:
    found = on_all_rungs(version, 7, 6, SCENARIOS["server log"])
    assert {rung: broken(one) for rung, one in found.items()} == {rung: [] for rung in RUNGS}, table(found)
    evictions = found[4].counts["evictions"]
    assert found[3].counts["evictions: found"] > 0.9 * evictions > 0, "the sentences tell of them"
