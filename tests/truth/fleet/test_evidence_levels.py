"""Without the request log nothing of the fleet is invented on any rung, and what is said to be exact is true; what
samples of the admin API say was between the instants that they say, and higher rungs lose nothing by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.stories import named, standing
from tests.truth.fleet.evidence_levels import ASKERS, SAMPLED, broken, on_all_rungs, table
from tests.truth.fleet.report import INVENTED
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS
from tests.truth.fleet.seen import Seen, observe


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2"])
def test_nothing_is_invented_and_exact_is_true_on_each_rung(version: str) -> None:
    found = on_all_rungs(version, 7, 6, SCENARIOS["server log"])
    assert {rung: broken(one) for rung, one in found.items()} == {rung: [] for rung in found}, table(found)
    evictions = found["4: `server.log` and `__consumer_offsets`"].counts["evictions"]
    assert found["3: `server.log`"].counts["evictions: found"] > 0.9 * evictions > 0, "the sentences tell of them"
    for rung in SAMPLED:
        counts = found[rung].counts
        assert counts["evictions: within their bounds"] == counts["evictions"] > 0, f"{rung}: each is between two"
        assert counts["evictions: found"] == 0, "no sample tells who was evicted"
        assert counts["rebalances: shown by samples"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["failover", "asleep", "migration, moves"])
def test_samples_of_upset_brokers_invent_nothing(scenario: str) -> None:
    found = on_all_rungs("4.1.2", 11, 6, SCENARIOS[scenario])
    assert {rung: broken(found[rung]) for rung in SAMPLED} == {rung: [] for rung in SAMPLED}, table(found)
    assert not any(text.startswith(INVENTED) for one in found.values() for text in one.problems)


@pytest.mark.slow
@pytest.mark.parametrize("requests", [True, False])
def test_beside_records_and_requests_samples_add_and_change_nothing(requests: bool) -> None:
    run = play("4.1.2", 3, 5, SCENARIOS["records"], ASKERS)
    run = replace(run, scenario=replace(run.scenario, requests=requests))

    def said(seen: Seen) -> list[list[dict[str, Any]]]:
        rows = seen.rows
        return [
            standing("members", rows["members"]),
            standing("rebalances", rows["rebalances"]),
            named("transitions", rows["transitions"]),
        ]

    assert said(observe(run, samples="ahead")) == said(observe(run))
