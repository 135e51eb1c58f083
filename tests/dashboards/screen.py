"""What a person sees on a dashboard: the values of a panel and their colours, as Grafana makes them of the panel's own
query, transformations, mappings and thresholds.

Reads `dashboards/json` and nothing of the code that wrote it; asks a real API and, where there is one, a real
Prometheus. Knows of Grafana what the panels use and refuses the rest: a mapping comes before a threshold, a text that
is not mapped has the colour of the lowest threshold, as a missing value has; a question that fails leaves no data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import httpx

from tests.api.conftest import Api
from tests.dashboards.questions import INFINITY, Rest, filled, panels
from tests.dashboards.scraping import Prometheus

NO_DATA = "no data"
"""What a panel shows that has nothing to show, unless it says something else itself."""


class Shown(NamedTuple):
    """A value on a screen."""

    text: str
    colour: str


class Screen:
    """A dashboard at an instant."""

    def __init__(self, uid: str, values: Mapping[str, str], api: Api, prometheus: Prometheus | None = None) -> None:
        self._panels = {where.removeprefix(f"{uid}: "): one for where, one in panels() if where.startswith(f"{uid}: ")}
        self._values = values
        self._api = api
        self._prometheus = prometheus

    def stat(self, title: str) -> Shown:
        """The one value of a stat."""
        panel = self._panels[title]
        assert panel["type"] == "stat"
        assert panel["options"]["reduceOptions"]["calcs"] == ["last"], title
        target = panel["targets"][0]
        if target["datasource"]["type"] == INFINITY:
            rows = self._rows(target)
            return judged(next(iter(rows[-1].values())) if rows else None, panel["fieldConfig"]["defaults"])
        found = self._series(target)
        assert len(found) <= 1, f"{title}: one number, not {len(found)}"
        return judged(found[0][1] if found else None, panel["fieldConfig"]["defaults"])

    def bars(self, title: str, label: str = "group") -> dict[str, Shown]:
        """Bars by a label."""
        panel = self._panels[title]
        assert (panel["type"], panel["options"]["displayMode"]) == ("bargauge", "basic")
        defaults = panel["fieldConfig"]["defaults"]
        return {labels[label]: judged(value, defaults) for labels, value in self._series(panel["targets"][0])}

    def column(self, title: str, key: str, name: str) -> dict[str, Shown]:
        """A column of a table, by the values of another one."""
        panel = self._panels[title]
        assert panel["type"] == "table"
        config = dict(panel["fieldConfig"]["defaults"])
        for override in panel["fieldConfig"]["overrides"]:
            if override["matcher"]["options"] == name:
                config |= {one["id"]: one["value"] for one in override["properties"]}
        return {str(row[key]): judged(row[name], config) for row in self._rows(panel["targets"][0])}

    def ends(self, title: str) -> dict[str, Shown]:
        """What a timeline ends with, by the name of its lane; a single band is called like its column."""
        panel = self._panels[title]
        assert panel["type"] == "state-timeline"
        rows, by, shown = self._drawn(panel)
        found: dict[str, Shown] = {}
        for row in rows:
            if row[shown] is not None:
                found[str(row[by]) if by else shown] = judged(row[shown], panel["fieldConfig"]["defaults"])
        return found

    def points(self, title: str) -> list[float]:
        """Values of all points of a picture over time."""
        panel = self._panels[title]
        assert panel["type"] == "timeseries"
        rows, _, shown = self._drawn(panel)
        return [row[shown] for row in rows if row[shown] is not None]

    def _drawn(self, panel: dict[str, Any]) -> tuple[list[dict[str, Any]], str, str]:
        """Rows that a picture draws, what it parts them by, and the column that it shows."""
        target = panel["targets"][0]
        if "panelId" in target:
            target = next(one for one in self._panels.values() if one.get("id") == target["panelId"])["targets"][0]
        rows, by = self._rows(target), ""
        names = [one["text"] for one in target["columns"]]
        for step in panel["transformations"]:
            options = step["options"]
            if step["id"] == "filterByValue":
                (only,) = options["filters"]
                assert (options["type"], only["config"]["id"]) == ("include", "equal")
                rows = [row for row in rows if row[only["fieldName"]] == only["config"]["options"]["value"]]
            elif step["id"] == "organize":
                names = [name for name in names if not options["excludeByName"].get(name)]
            else:
                assert step["id"] == "partitionByValues", step["id"]
                (by,) = options["fields"]
        (shown,) = [name for name in names if name not in ("time", by)]
        return rows, by, shown

    def _rows(self, target: dict[str, Any]) -> list[dict[str, Any]]:
        asked = Rest("screen", target)
        path, params = asked.asked(self._values)
        try:
            reply = self._api.client.get(path, params=params)
        except httpx.TimeoutException:
            return []
        if reply.status_code != httpx.codes.OK:
            return []
        return asked.rows(reply.json())

    def _series(self, target: dict[str, Any]) -> list[tuple[dict[str, str], float]]:
        assert self._prometheus is not None, "this panel asks Prometheus"
        found = self._prometheus.query(filled(target["expr"], self._values))
        return [(one["metric"], float(one["value"][1])) for one in found]


def judged(value: Any, config: Mapping[str, Any]) -> Shown:
    """Text and colour of a value."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    text = config.get("noValue") or NO_DATA if missing else str(value)
    result = _mapped(value, config.get("mappings", ()), missing=missing)
    text = result.get("text") or text
    if "color" in result:
        return Shown(text, result["color"])
    steps = config["thresholds"]["steps"]
    number = value if isinstance(value, int | float) and not missing else -math.inf
    reached = [step["color"] for step in steps if step["value"] is None or step["value"] <= number]
    return Shown(text, reached[-1])


def _mapped(value: Any, mappings: Iterable[dict[str, Any]], *, missing: bool) -> dict[str, str]:
    for one in mappings:
        kind, options = one["type"], one["options"]
        if kind == "value" and not missing and str(value) in options:
            return dict(options[str(value)])
        if kind == "regex" and not missing and re.search(options["pattern"], str(value)):
            return dict(options["result"])
        if kind == "special" and missing:
            assert options["match"] == "null+nan"
            return dict(options["result"])
        assert kind in ("value", "regex", "special"), kind
    return {}
