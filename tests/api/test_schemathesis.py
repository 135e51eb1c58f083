"""schemathesis against a real server over a recorded story: all checks, on data that fit the document and that do not.

Nothing here is random: examples are derived from the test's own name, so a finding is found again. What a JSON Schema
cannot say is said in `cannot_be`: there a refusal is right although each value by itself fits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.generation.modes import GenerationMode

from api.access.ids import from_segment, to_segment
from api.app import create_app
from api.routes.pulse import WIDTH_MAX_MS
from api.settings import ApiSettings
from api.shapes.described import describe
from kardia.instants import parse_instant
from tests.api.conftest import Api, Clock, running
from tests.api.recorded import CLUSTER, write
from tests.api.written import Tables
from tests.support.stories import Story

TOKEN = "a-token-for-schemathesis-" + "x" * 20
SETTINGS = ApiSettings(tables=Path("tables"), token_file=Path("tokens"))
DOCUMENT = describe(create_app(SETTINGS.model_copy(update={"token_file": None}), lambda: 0), SETTINGS)
Case = schemathesis.Case[Any]
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
# A URL beyond the bound is refused as such; the default list of refusals does not have it.
SCHEMA.config.checks.negative_data_rejection.expected_statuses.append("414")
ALL_CHECKS: list[Any] = CHECKS.get_all()
SEEN: dict[str, Counter[int]] = defaultdict(Counter)
"""Path -> how often each status was answered."""


class Served(NamedTuple):
    """A running server and the names that its story knows."""

    url: str
    names: dict[str, list[str]]
    newest_ms: int
    complete_ms: int


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("schemathesis")
    tables = Tables(folder / "tables")
    span = write(tables, Story("c04_mpi-4.1.2"))
    (folder / "tokens").write_text(f"{TOKEN}\n")
    settings = ApiSettings(tables=tables.root, refresh_ms=20, token_file=folder / "tokens", metrics_members_max=100)
    with running(settings, Clock(span.to_ms)) as url:
        api = Api(url, headers={"Authorization": f"Bearer {TOKEN}"})
        api.wait_for_batch(0)
        groups = [group["group_id"] for group in api.get(f"/api/v1/clusters/{CLUSTER}/groups")["groups"]]
        evicted = api.get(f"/api/v1/clusters/{CLUSTER}/groups/{groups[0]}/evictions")["evictions"]
        members = [to_segment(one["member_id"]) for one in evicted]
        complete_ms = api.get(f"/api/v1/clusters/{CLUSTER}")["freshness"]["complete_as_of_ms"]
        sources = api.get(f"/api/v1/clusters/{CLUSTER}")["cluster"]["sources"]
        newest_ms = max(source["complete_to_ms"] for source in sources)
        api.client.close()
        names = {"cluster": [CLUSTER], "group": groups, "consumer": groups, "member": members}
        yield Served(url, names, newest_ms, complete_ms)


def is_positive(case: Case) -> bool:
    """Whether every value fits its schema."""
    return case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE


def ask(case: Case, served: Served) -> None:
    """One request with all checks on its answer."""
    if is_positive(case):
        for name, known in served.names.items():
            # Two of three ask about what is there; else nothing but 404 would be seen.
            if name in case.path_parameters and len(case.path_parameters[name]) % 3:
                case.path_parameters[name] = known[len(case.path_parameters[name]) % len(known)]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    response = case.call(served.url, headers=headers)
    SEEN[case.path][response.status_code] += 1
    reason = cannot_be(case, served) if is_positive(case) else None
    # Why a check is left out is in `cannot_be`, and that it is refused is asserted in its place.
    excluded: list[Any] = [CHECKS.get_one("positive_data_acceptance")] if reason is not None else []
    case.validate_response(response, checks=ALL_CHECKS, excluded_checks=excluded, headers=headers)
    if reason is not None:
        assert response.status_code in (400, 404, 422, 501), (reason, response.text)


def cannot_be(case: Case, served: Served) -> str | None:
    """Why this question cannot be answered although every value fits its schema; None if it can."""
    query: dict[str, Any] = dict(case.query or {})
    if "cursor" in query:
        return "a cursor is made by the server; no schema tells one from other text"
    for name, segment in case.path_parameters.items():
        try:
            from_segment(segment, query.get(name))
        except ValueError as error:
            return f"{name} {error}"
    ends = [None if query.get(name) is None else parse_instant(str(query[name])) for name in ("from", "to")]
    from_ms, to_ms = ends
    if to_ms is None and from_ms is not None and case.path.endswith(("/incident", "/diff")):
        to_ms = max(served.newest_ms, from_ms)  # where the tables end
    widest_ms = WIDTH_MAX_MS if case.path.endswith("/pulse") else SETTINGS.range_max_ms
    if from_ms is not None and to_ms is not None and not from_ms <= to_ms <= from_ms + widest_ms:
        return "the range is none, or too wide"
    then = [None if query.get(name) is None else parse_instant(str(query[name])) for name in ("at", "known_at")]
    asked = [*then, *(ends if case.path.endswith("/diff") else [])]
    if any(at_ms is not None and at_ms > served.complete_ms for at_ms in asked):
        return "nothing is known of that instant yet"
    return None


BOUNDED = hypothesis.settings(derandomize=True, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))


@SCHEMA.parametrize()
@hypothesis.settings(BOUNDED, max_examples=25)
def test_nothing_is_found(case: Case, served: Served) -> None:
    ask(case, served)


@pytest.mark.long
@SCHEMA.parametrize()
@hypothesis.settings(BOUNDED, max_examples=400)
def test_nothing_is_found_with_many_more(case: Case, served: Served) -> None:
    ask(case, served)


def test_what_was_asked_reached_answers_and_refusals() -> None:
    """A generator that meets closed doors only would find nothing either. Runs last, about those that ran before."""
    for path, statuses in SEEN.items():
        assert statuses[200], path
        assert "{" not in path or statuses[400] + statuses[404] + statuses[422], path
        assert not set(statuses) & {500, 503, 504}, path
