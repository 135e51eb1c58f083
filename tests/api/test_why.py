"""The route `why` tells what the terminal tells, now and of an instant; who is predicted to go is not ok."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from api.shapes import report_models
from cli.main import app
from tests.api.conftest import Api, Serve
from tests.api.test_incident import HOSTILE, story
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, transition

GROUP = "/api/v1/clusters/demo/groups/orders"


def told(api: Api, **params: Any) -> list[str]:
    found = api.get(f"{GROUP}/why", **params)
    report_models.Why.model_validate(found, strict=True)
    return [one["text"] for one in found["sentences"]]


def test_the_sentences_are_those_of_the_terminal(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    sentences = told(api)
    printed = CliRunner(env={"COLUMNS": "4000"}).invoke(app, ["why", "orders", "--api", api.url])
    assert printed.exit_code == 0, printed.output
    for text in sentences:
        assert " ".join(text.split()) in " ".join(printed.output.split())
    assert any("session" in text for text in sentences)
    assert HOSTILE not in " ".join(sentences), "ids of strangers are escaped"


def test_of_an_instant_it_tells_what_had_happened_by_then(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    assert told(api) != told(api, at=NOW_MS - 60_000)
    assert max(one["at_ms"] for one in api.get(f"{GROUP}/why", at=NOW_MS - 60_000)["sentences"]) <= NOW_MS - 60_000
    refused = api.client.get(f"{GROUP}/why", params={"at": NOW_MS + 60_000})
    assert refused.json()["code"] == "beyond_complete"


def test_who_is_predicted_to_go_has_one_word_in_every_answer(tables: Tables, serve: Serve) -> None:
    """Its health row says ok and is older than the prediction: a list said ok, the next one predicted."""
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "m"),
        health("orders", "m"),
        prediction("orders", "m", "session"),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    [group] = api.get("/api/v1/clusters/demo/groups")["groups"]
    [one] = api.get(f"{GROUP}/members")["members"]
    [following, *_] = api.get("/api/v1/clusters/demo/next-evictions")["next_evictions"]
    words = {found["shown"] for found in (group, api.get(GROUP)["group"], one, following)}
    assert words == {"late"}
