"""The JSON of the dashboards: what Grafana's own types say about it, and what every panel must have.

The types are those of the `grafana-foundation-sdk`, which Grafana generates from its schemas: the JSON is read into
them, each value is held against the annotation of its field, and written again; what the types do not know is lost on
the way and so noticed. Grafana itself is not run here.
"""

from __future__ import annotations

import enum
import json
import re
import types
import typing
from typing import Any

import pytest
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from api.present.current import STATES
from dashboards import palette, rules
from dashboards.panels import RED
from dashboards.sources import INFINITY
from kardia.certainty import CERTAINTIES
from kardia.statuses import SHOWN
from kardia.tables import END_CAUSES, EVICTION_CAUSES, OUTCOMES, TRIGGERS
from tests.dashboards.questions import BOARDS, panels

plugins.register_default_plugins()


def misfits(value: Any, wanted: Any, path: str = "$") -> list[str]:
    """Places where a value is not of its annotated type, all the way down."""
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any or wanted is object:
        return misfits(value, type(value), path) if hasattr(value, "to_json") else []
    if origin in (typing.Union, types.UnionType):
        tried = [misfits(value, one, path) for one in inner if value is None or one is not type(None)]
        return min(tried, key=len)
    if origin is typing.Literal:
        return [] if value in inner else [f"{path}: {value!r}"]
    if origin is list and isinstance(value, list):
        return [found for at, one in enumerate(value) for found in misfits(one, inner[0], f"{path}[{at}]")]
    if origin is dict and isinstance(value, dict):
        return [found for key, one in value.items() for found in misfits(one, inner[1], f"{path}.{key}")]
    if isinstance(value, dict) and hasattr(wanted, "from_json"):  # the reader leaves some of them as they are
        made = wanted.from_json(value)
        lost = [] if written(made) == value else [f"{path}: {value!r} has fields that {wanted} does not know"]
        return [*lost, *misfits(made, wanted, path)]
    if not _is_of(value, origin or wanted):
        return [f"{path}: {value!r} is no {wanted}"]
    hints = typing.get_type_hints(type(value)) if hasattr(value, "to_json") else {}
    return [
        found
        for name, hint in hints.items()
        if hasattr(value, name)
        for found in misfits(getattr(value, name), hint, f"{path}.{name}")
    ]


def written(model: Any) -> Any:
    """The JSON of a model."""
    return json.loads(JSONEncoder().encode(model))


def _is_of(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return value in {one.value for one in wanted}
    if wanted in (int, float):
        return isinstance(value, int if wanted is int else (int, float)) and not isinstance(value, bool)
    return isinstance(value, wanted)


def read(board: dict[str, Any]) -> Any:
    """A dashboard in Grafana's types. Targets of marks are left out: the types know those of Grafana's own source only,
    and say themselves that any query may stand there."""
    copy = json.loads(json.dumps(board))
    for mark in copy["annotations"].get("list", ()):
        assert mark.pop("target")["datasource"]["type"] == mark["datasource"]["type"]
    return models.Dashboard.from_json(copy), copy


@pytest.mark.parametrize("uid", BOARDS)
def test_grafanas_own_types_take_it_as_it_is(uid: str) -> None:
    board, copy = read(BOARDS[uid])
    assert misfits(board, models.Dashboard) == []
    assert written(board) == copy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("refresh",), 5),
        (("graphTooltip",), 7),
        (("panels", 0, "gridPos", "w"), "wide"),
        (("panels", 0, "options", "colorMode"), "loud"),
        (("panels", 0, "fieldConfig", "defaults", "thresholds", "mode"), "some"),
        (("panels", 0, "colour"), "red"),
        (("templating", "list", 0, "type"), "guess"),
    ],
)
def test_what_the_types_do_not_allow_is_noticed(path: tuple[Any, ...], value: Any) -> None:
    spoilt = json.loads(json.dumps(BOARDS["kardia-fleet"]))
    place = spoilt
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        board, copy = read(spoilt)
        good = not misfits(board, models.Dashboard) and written(board) == copy
    except (ValueError, TypeError, AttributeError):
        good = False
    assert not good


def test_every_panel_has_a_title_a_question_something_to_do_and_a_unit() -> None:
    titles = [where for where, _ in panels()]
    assert len(titles) == len(set(titles)) > 50
    for where, panel in panels():
        asks, _, do = panel["description"].partition(RED)
        assert "?" in asks, f"{where} asks nothing"
        assert len(do) > 20, f"{where} does not say what to do"
        assert panel["fieldConfig"]["defaults"]["unit"], where
        assert panel["targets"], where
        refs = [one["refId"] for one in panel["targets"]]
        assert len(refs) == len(set(refs)), where
        assert {one["datasource"]["uid"] for one in panel["targets"]} == {panel["datasource"]["uid"]}, where


def test_each_dashboard_begins_with_a_row_that_answers_at_a_glance_and_nothing_overlaps() -> None:
    for uid, board in BOARDS.items():
        first = [panel for panel in board["panels"] if panel["gridPos"]["y"] == 0]
        assert {panel["type"] for panel in first} == {"stat"}, uid
        assert 4 <= len(first) <= 6, uid
        assert sum(panel["gridPos"]["w"] for panel in first) == 24, uid
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
            assert not cells & taken, (uid, panel["title"])
            assert all(x < 24 for x, _ in cells), (uid, panel["title"])
            taken |= cells


def test_dashboards_are_read_only_and_do_not_ask_more_often_than_every_five_seconds() -> None:
    for uid, board in BOARDS.items():
        assert board["uid"] == uid
        assert board["editable"] is False
        seconds = re.fullmatch(r"(\d+)s", board["refresh"])
        assert seconds, board["refresh"]
        assert int(seconds[1]) >= 5


def test_colours_are_those_that_all_can_tell_apart() -> None:
    for where, panel in panels():
        text = json.dumps(panel["fieldConfig"])
        used = set(re.findall(r'"(?:color|fixedColor)": "([^"]+)"', text))
        assert used <= palette.COLOURS, (where, used - palette.COLOURS)


def test_every_status_state_certainty_and_outcome_has_a_colour() -> None:
    assert set(palette.STATUS) == {*SHOWN, "no members"}
    assert set(palette.STATE) >= set(STATES)
    assert set(palette.CERTAINTY) == set(CERTAINTIES)
    assert set(palette.OUTCOME) == set(OUTCOMES) - {"open"}
    assert set(palette.TRIGGER) == set(TRIGGERS)
    assert set(palette.CAUSE) == set(EVICTION_CAUSES)
    assert set(palette.END) == {*END_CAUSES, "still a member"}


def test_no_eviction_and_nothing_unknown_is_green_and_nothing_missing_an_alarm() -> None:
    assert palette.WELL not in palette.CAUSE.values()
    for colours in (palette.STATUS, palette.CERTAINTY, palette.OUTCOME, palette.END, palette.TRIGGER):
        assert colours["unknown"] == palette.BLIND
    for where, panel in panels():
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["thresholds"]["steps"], f"{where}: Grafana's own thresholds are green, and red from 80 on"
        if panel["type"] in ("stat", "bargauge", "state-timeline"):
            missing = [one["options"] for one in defaults["mappings"] if one["type"] == "special"]
            assert [(one["match"], one["result"]["color"]) for one in missing] == [("null+nan", palette.BLIND)], where
        if panel["type"] in ("stat", "bargauge"):
            assert panel["options"]["reduceOptions"]["calcs"] == ["last"], f"{where}: goes on with what was"
        if panel["type"] == "bargauge":
            assert panel["options"]["displayMode"] == "basic", (
                f"{where}: a gradient begins with the colour of the worst"
            )
            assert defaults["links"], f"{where}: a bar can be clicked"


NARROW_PX = 1_230
"""What a window of 1,280 px leaves for panels."""


def test_titles_and_the_columns_that_matter_are_seen_in_a_narrow_window() -> None:
    for where, panel in panels():
        wide_px = NARROW_PX * panel["gridPos"]["w"] / 24
        assert len(panel["title"]) * 7 + 40 <= wide_px, f"{where}: the title is cut"
        if panel["type"] == "table" and panel["targets"][0].get("columns"):
            widths = {
                override["matcher"]["options"]: found["value"]
                for override in panel["fieldConfig"]["overrides"]
                for found in override["properties"]
                if found["id"] == "custom.width"
            }
            names = [one["text"] for one in panel["targets"][0]["columns"]]
            taken = 0
            for name in names[:5]:
                taken += widths.get(name, 100)
            assert taken <= wide_px, f"{where}: {names[:5]} do not fit"


def test_a_dashboard_asks_for_its_points_once() -> None:
    for uid in ("kardia-group", "kardia-member"):
        urls = [
            target["url"]
            for where, panel in panels()
            if where.startswith(f"{uid}:")
            for target in panel["targets"]
            if target.get("url", "").endswith(("/points", "/lanes", "/pulse"))
        ]
        assert urls == ["/api/v1/clusters/~/groups/~/points"], uid


def test_texts_are_shown_as_texts_and_numbers_have_a_unit() -> None:
    """With any other unit Grafana reads a text that looks like a number as one: group `007` would be shown, and linked,
    as 7, version 4.10 as 4.1."""
    seen = set()
    for where, panel in panels():
        if panel["type"] not in ("table", "stat", "state-timeline"):
            continue
        config = panel["fieldConfig"]
        units = {
            override["matcher"]["options"]: found["value"]
            for override in config["overrides"]
            for found in override["properties"]
            if found["id"] == "unit"
        }
        steps = panel.get("transformations") or ()
        left_out = {name for step in steps for name in step["options"].get("excludeByName", ())}
        for column in [one for target in panel["targets"] for one in target.get("columns", ())]:
            if column["text"] in left_out:
                continue
            unit = units.get(column["text"], config["defaults"]["unit"])
            is_time = panel["type"] == "state-timeline" and column["type"] == "timestamp_epoch"  # it is the axis
            assert is_time or (unit == "string") == (column["type"] == "string"), (where, column)
            seen.add(column["type"])
    assert seen == {"string", "number", "timestamp_epoch"}


def columns_of(where: str, panel: dict[str, Any]) -> set[str]:
    """Columns that a panel is given: of its own question, or of the panel whose answer it draws."""
    target = panel["targets"][0]
    if "panelId" in target:
        uid = where.partition(":")[0]
        asked = [one for at, one in panels() if at.startswith(f"{uid}:") and one.get("id") == target["panelId"]]
        target = asked[0]["targets"][0]
    return {one["text"] for one in target.get("columns", ())}


def test_transformations_and_overrides_name_fields_that_the_questions_have() -> None:
    for where, panel in panels():
        columns = columns_of(where, panel)
        for step in panel.get("transformations") or ():
            options = step["options"]
            named = {
                "organize": [*options.get("indexByName", ()), *options.get("excludeByName", ())],
                "partitionByValues": options.get("fields", []),
                "sortBy": [one["field"] for one in options.get("sort", ())],
                "filterByValue": [one["fieldName"] for one in options.get("filters", ())],
            }[step["id"]]
            assert set(named) <= columns, (where, step)
        words = (palette.STATUS, palette.CERTAINTY, palette.OUTCOME, palette.CAUSE, palette.TRIGGER)
        known = columns.union(*words)
        for override in panel["fieldConfig"]["overrides"]:
            assert override["matcher"]["id"] == "byName"
            assert override["matcher"]["options"] in known, where


def test_marks_have_the_fields_that_grafana_reads() -> None:
    found = [mark for board in BOARDS.values() for mark in board["annotations"].get("list", ())]
    assert {mark["name"] for mark in found} == {"Evictions", "Rebalances", "Blind", "Alerts"}
    for mark in found:
        if mark["datasource"]["type"] == INFINITY:
            names = {one["text"] for one in mark["target"]["columns"]}
            assert {"time", "text"} <= names <= {"time", "timeEnd", "title", "text"}
        else:
            assert mark["expr"] == mark["target"]["expr"]
    for uid, board in BOARDS.items():
        assert {"Blind", "Alerts"} <= {mark["name"] for mark in board["annotations"]["list"]}, uid


def test_alerts_lead_to_a_dashboard_with_its_variables() -> None:
    uid, _, query = rules.DASHBOARD.removeprefix("/d/").partition("?")
    variables = {one["name"] for one in BOARDS[uid]["templating"]["list"]}
    assert set(re.findall(r"var-(\w+)=", query)) == {"cluster", "group"} <= variables


def test_dashboards_lead_to_one_another() -> None:
    reached = {uid: set(re.findall(r"/d/([\w-]+)", json.dumps(board))) for uid, board in BOARDS.items()}
    for uid in BOARDS:
        seen, waiting = set[str](), {uid}
        while waiting:
            seen |= waiting
            waiting = set().union(*(reached[one] for one in waiting)) - seen
        assert seen == set(BOARDS), uid


def test_what_a_night_on_call_looks_for_is_there() -> None:
    """Firing alerts and their marks, evictions by group, several clusters, bars that lead on, values beside names, rows
    that are closed, the broker of an eviction, and what Kardia itself costs."""
    found = dict(panels())
    for title in ("fleet: Firing alerts", "fleet: Evictions by group", "truth: CPU of kardia serve"):
        assert f"kardia-{title}" in found
    assert {"kardia-truth: Memory of kardia serve", "kardia-truth: Batch time of the job"} <= set(found)
    columns = {one["text"] for one in found["kardia-group: Evictions"]["targets"][0]["columns"]}
    assert {"coordinator", "who broke it"} <= columns
    for uid, board in BOARDS.items():
        assert "Alerts" in {mark["name"] for mark in board["annotations"]["list"]}, uid
    several = {one["name"]: (one["multi"], one["includeAll"]) for one in _variables("kardia-fleet") if "multi" in one}
    assert several["cluster"] == several["group"] == (True, True)
    assert any(one["type"] == "row" and one["collapsed"] for one in BOARDS["kardia-group"]["panels"])
    for where, panel in found.items():
        if panel["type"] == "bargauge":
            assert panel["fieldConfig"]["defaults"]["links"], where
        if panel["type"] == "timeseries" and panel["options"]["legend"]["showLegend"]:
            assert "last" in panel["options"]["legend"]["calcs"], where


def _variables(uid: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = BOARDS[uid]["templating"]["list"]
    return found
