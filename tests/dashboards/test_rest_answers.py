"""Every question of a dashboard to the REST API is asked while a recorded story is replayed, and gets an answer.

A question must be answered with rows at some instant of the story, and each of its columns with a value; what the story
does not have stands in a list with the reason, and nothing else may. Links are followed to where they lead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.recorded import cut_short
from tests.dashboards.questions import BOARDS, FOLDER, Rest, filled, panels, rest
from tests.dashboards.replaying import STORY, Replay, replay
from tests.support.served import CLUSTER, Batch, story_batches, trace_batches
from tests.support.stories import Story

LONG_WAITS = ("kip62-rebalance-timeout", "rule-07-nothing-is-written-before-the-leader-syncs")
"""Golden traces: rebalances that last: one waits for a member, the other for the leader."""

IN_NONE = {
    "kardia-rebalances: Ledger A: broker took": "the broker of these histories was never slow",
}
"""Columns without a value, and why."""

ALL_EVERY = 10
"""Batches of a story between two rounds of all questions; those about the present of the cluster are asked always."""


class Asked:
    """What a question has been answered with so far."""

    def __init__(self, question: Rest) -> None:
        self.question = question
        self.rows = 0
        self.empty = {one["text"] for one in question.columns}

    @property
    def is_open(self) -> bool:
        """Whether something has not been seen yet."""
        return bool(self.empty)

    def ask(self, replaying: Replay, values: dict[str, str]) -> list[dict[str, Any]]:
        """Ask once, and note what came."""
        path, params = self.question.asked(values)
        rows = self.question.rows(replaying.api.get(path, **params))
        self.rows += len(rows)
        for row in rows:
            self.empty -= {name for name, value in row.items() if value is not None}
        return rows


def names_of(replaying: Replay, variable: str, values: dict[str, str]) -> list[str]:
    """Values of a variable as its own query gives them."""
    question = next(one for one in rest() if one.where.endswith(f": ${variable}"))
    return [row["__value"] for row in Asked(question).ask(replaying, values)]


def choices(replaying: Replay) -> Iterator[dict[str, str]]:
    """All that a person could choose from the variables."""
    for cluster in names_of(replaying, "cluster", {}):
        of_cluster = replaying.values() | {"cluster": cluster}
        for group in names_of(replaying, "group", of_cluster):
            of_group = of_cluster | {"group": group}
            for member in names_of(replaying, "member", of_group):
                yield of_group | {"member": member}


def ask_all(replaying: Replay, asked: list[Asked]) -> None:
    """Ask every question that is open about everything that can be chosen, each request once."""
    seen: set[tuple[int, str]] = set()
    for values in choices(replaying):
        for number, one in enumerate(asked):
            request = repr(one.question.asked(values))
            if one.is_open and (number, request) not in seen:
                seen.add((number, request))
                one.ask(replaying, values)


def ask_of_cluster(replaying: Replay, asked: list[Asked]) -> None:
    """Ask what is open about the cluster alone: it tells of the present, which passes."""
    values = replaying.values() | {"cluster": CLUSTER}
    for one in asked:
        if one.is_open and not one.question.uses("group"):
            one.ask(replaying, values)


def damaged(history: Iterator[Batch]) -> Iterator[Batch]:
    """The story, with a line in its log of which half was lost."""
    for second, (now_ms, rows) in enumerate(history):
        yield now_ms, {**rows, "rejected": [cut_short(Story(STORY), CLUSTER)]} if second == ALL_EVERY else rows


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Replay, list[Asked]]]:
    asked = [Asked(one) for one in rest()]
    for name in LONG_WAITS:
        with replay(tmp_path_factory.mktemp(name) / "tables", trace_batches(name)) as replaying:
            for _ in replaying.batches():
                ask_of_cluster(replaying, asked)
    with replay(tmp_path_factory.mktemp("story") / "tables", damaged(story_batches(STORY))) as replaying:
        for batch_id in replaying.batches():
            ask_of_cluster(replaying, asked)
            if batch_id % ALL_EVERY == 0:
                ask_all(replaying, asked)
        ask_all(replaying, asked)
        yield replaying, asked


def test_every_question_is_answered_and_every_column_has_a_value(replayed: tuple[Replay, list[Asked]]) -> None:
    _, asked = replayed
    assert len(asked) > 40
    found = {f"{one.question.where}: {name}" for one in asked for name in one.empty}
    assert found == set(IN_NONE)


def test_a_field_that_does_not_exist_is_noticed(replayed: tuple[Replay, list[Asked]]) -> None:
    replaying, asked = replayed
    values = next(choices(replaying))
    good = next(one.question for one in asked if "Who is next" in one.question.where)
    for change in (
        {"columns": [{"selector": "remaining_s", "text": "left", "type": "number"}]},
        {"columns": [{"selector": "remaining_ms", "text": "left", "type": "string"}]},
        {"columns": [{"selector": "href.0", "text": "left", "type": "string"}]},
        {"root_selector": "next_eviction"},
        {"url": "/api/v1/clusters/~/next"},
        {"url_options": {"params": [{"key": "clusters", "value": "test"}]}},
        {"url_options": {"params": [{"key": "cluster", "value": "${clusters}"}]}},
    ):
        with pytest.raises((AssertionError, KeyError, TypeError)):
            Asked(Rest("spoilt", {**good.target, **change})).ask(replaying, values)


def links() -> Iterator[tuple[str, str, set[str]]]:
    """(where, URL, columns of the table it is in) of every link."""
    for uid, board in BOARDS.items():
        for link in board["links"]:
            yield f"{uid}: {link['title']}", link["url"], set()
    for where, panel in panels():
        for override in panel["fieldConfig"]["overrides"]:
            for found in override["properties"]:
                if found["id"] == "links":
                    columns = {one["text"] for target in panel["targets"] for one in target["columns"]}
                    for link in found["value"]:
                        yield where, link["url"], columns


def test_every_link_leads_somewhere(replayed: tuple[Replay, list[Asked]]) -> None:
    replaying, _ = replayed
    values = next(choices(replaying))
    kinds = set()
    for where, url, columns in links():
        used = set(re.findall(r"\$\{__data\.fields\.(\w+)", url))
        assert used <= columns, f"{where}: no column {used - columns}"
        of_row = {f"__data.fields.{name}": values[name] for name in used}
        target = filled(url, values | of_row)
        if target.startswith("/d/"):
            uid, _, query = target.removeprefix("/d/").partition("?")
            variables = {one["name"] for one in BOARDS[uid]["templating"]["list"]}
            assert set(re.findall(r"var-(\w+)=", query)) <= variables, (where, target)
            kinds.add("dashboard")
            continue
        page, _, inside = target.partition("/#")
        reply = replaying.api.client.get(page)
        assert reply.status_code == 200, (where, target, reply.text)
        kinds.add(reply.headers["content-type"].split(";")[0])
        if inside:  # the page asks the API for the path behind the hash
            assert replaying.api.get(f"/api/v1{inside}")["group"]["group_id"] == values["group"], where
            kinds.add("group")
    assert kinds == {"dashboard", "text/html", "text/markdown", "group"}


def test_runbooks_that_are_named_exist() -> None:
    named = [name for _, panel in panels() for name in re.findall(r"docs/runbooks/\S+", panel["description"])]
    assert len(named) > 30
    for name in named:
        assert Path(FOLDER.parent / name).is_file(), name
