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
from tests.dashboards.replaying import STORY, Replay, replay, with_lag
from tests.support.served import CLUSTER, Batch, story_batches, trace_batches
from tests.support.stories import Story, doctored, lanes_of, observe, surprises

LONG_WAITS = ("kip62-rebalance-timeout", "rule-07-nothing-is-written-before-the-leader-syncs")
"""Golden traces: rebalances that last: one waits for a member, the other for the leader."""

IN_NONE = {
    "kardia-rebalances: Ledger A: broker took": "the broker of these histories was never slow",
    "kardia-group: Members over time A: silence": "these replays keep no archive, and a sample makes no gap",
    "kardia-member: Status over time A: silence": "the same",
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
    """All that a person could choose from the variables. Clusters and groups are those that have series, which is
    tested where a Prometheus has them."""
    for found in replaying.api.get("/api/v1/clusters")["clusters"]:
        of_cluster = replaying.values() | {"cluster": found["cluster_id"]}
        path = f"/api/v1/clusters/{found['cluster_id']}/groups"
        for one in replaying.api.get(path, sort="worst", limit=1000)["groups"]:
            of_group = of_cluster | {"group": one["group_id"]}
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
    """The story, with lag, half of a line of its log, lines of server.log that say otherwise, and surprises."""
    odd = {
        "rejected": [cut_short(Story(STORY), CLUSTER)],
        "disagreements": observe(doctored(STORY))["disagreements"],
        "surprises": surprises(lanes_of(STORY)),
    }
    for second, (now_ms, rows) in enumerate(with_lag(history)):
        yield now_ms, {**rows, **odd} if second == ALL_EVERY else rows


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Replay, list[Asked]]]:
    asked = [Asked(one) for one in rest()]
    for name in LONG_WAITS:
        with replay(tmp_path_factory.mktemp(name) / "tables", trace_batches(name)) as replaying:
            for batch_id in replaying.batches():
                ask_of_cluster(replaying, asked)
                if batch_id % ALL_EVERY == 0:
                    ask_all(replaying, asked)
    with replay(tmp_path_factory.mktemp("story") / "tables", damaged(story_batches(STORY))) as replaying:
        for batch_id in replaying.batches():
            ask_of_cluster(replaying, asked)
            if batch_id % ALL_EVERY == 0:
                ask_all(replaying, asked)
        ask_all(replaying, asked)
        yield replaying, asked


def test_every_question_is_answered_and_every_column_has_a_value(replayed: tuple[Replay, list[Asked]]) -> None:
    _, asked = replayed
    assert len(asked) > 25
    found = {f"{one.question.where}: {name}" for one in asked for name in one.empty}
    assert found == set(IN_NONE)


def test_a_field_that_does_not_exist_is_noticed(replayed: tuple[Replay, list[Asked]]) -> None:
    replaying, asked = replayed
    values = next(choices(replaying))
    good = next(one.question for one in asked if "Who is next" in one.question.where)
    for change in (
        {"columns": [{"selector": "remaining_s", "text": "left", "type": "number"}]},
        {"columns": [{"selector": "left_ms", "text": "left", "type": "string"}]},
        {"columns": [{"selector": "href.0", "text": "left", "type": "string"}]},
        {"root_selector": "following"},
        {"url": "/api/v1/boards/cluster/~"},
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
                    columns = {one["text"] for target in panel["targets"] for one in target.get("columns", ())}
                    for link in found["value"]:
                        yield where, link["url"], columns
        for link in panel["fieldConfig"]["defaults"].get("links", ()):
            yield where, link["url"], set()


OF_GRAFANA = {"__url_time_range": "from=now-1h&to=now", "datasource": "p1", "kardia": "k1"}
"""What Grafana fills in."""


def test_every_link_leads_somewhere(replayed: tuple[Replay, list[Asked]]) -> None:
    replaying, _ = replayed
    values = OF_GRAFANA | next(choices(replaying))
    kinds = set()
    for where, url, columns in links():
        used = set(re.findall(r"\$\{__data\.fields\.(\w+)", url))
        assert used <= columns, f"{where}: no column {used - columns}"
        of_row = {f"__data.fields.{name}": values[name] for name in used}
        of_row |= {f"__field.labels.{name}": values[name] for name in ("cluster", "group")}
        target = filled(url, values | of_row)
        if target.startswith("/d/"):
            uid, _, query = target.removeprefix("/d/").partition("?")
            variables = {one["name"] for one in BOARDS[uid]["templating"]["list"]}
            carried = re.findall(r"var-(\w+)=", query)
            if query:  # a link at the top of a dashboard is told to carry all there is
                assert carried[:3] == ["datasource", "kardia", "page"], (where, target)
                assert set(carried) == variables, (where, target)
                assert "from=now-1h&to=now" in query, (where, target)
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
    named = [
        name for _, panel in panels() for name in re.findall(r"\]\(\$\{page\}(/runbooks/\S+)\)", panel["description"])
    ]
    assert len(named) > 30
    for name in named:
        assert Path(FOLDER.parent / f"docs{name}").is_file(), name


def test_links_at_the_top_carry_the_time_and_all_variables() -> None:
    for uid, board in BOARDS.items():
        for link in board["links"]:
            if link["url"].startswith("/d/"):
                assert link["keepTime"], (uid, link)
                assert link["includeVars"], (uid, link)


def test_a_value_that_a_list_lacks_is_never_taken_for_another() -> None:
    """Grafana holds a value against its list whenever it asks for the list, and takes the first of it, or all where
    there is such an entry, for one that it lacks."""
    for uid, board in BOARDS.items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                assert variable["refresh"] == 1, (uid, variable["name"], "asked for once")
                if variable["name"] != "cluster":
                    assert variable["includeAll"], (uid, variable["name"])
                    one = not variable.get("multi")
                    assert (variable["allValue"] == "(not in the list)") == one, (uid, variable["name"])


def test_what_series_have_can_be_chosen_while_the_api_hangs() -> None:
    for uid, board in BOARDS.items():
        asked = {
            one["name"]: one["datasource"]["type"] for one in board["templating"]["list"] if one["type"] == "query"
        }
        assert asked.pop("member", "yesoreyeram-infinity-datasource") == "yesoreyeram-infinity-datasource"
        assert set(asked.values()) == {"prometheus"}, uid
