"""What the committed dashboards ask: every query of every panel, mark and variable, with its variables filled in.

Reads `dashboards/json` as Grafana would and nothing of the code that wrote it. Selectors of the Infinity data source
are GJSON; here they are walked as plain dotted paths, and anything else is refused, so that both mean the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from dashboards import generate

FOLDER = Path(generate.__file__).parent
INFINITY = "yesoreyeram-infinity-datasource"
BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "json").glob("*.json"))
}
FORMATS: dict[str | None, Callable[[str], str]] = {
    None: str,
    "raw": str,
    "percentencode": lambda text: quote(text, safe=""),
    "regex": lambda text: re.sub(r"([\\^$*+?.()|\[\]{}/])", r"\\\1", text),
}
DRAWN = "-- Dashboard --"
"""Data source of panels that draw what another panel of the dashboard was given."""


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, panel) of all panels, those inside of closed rows too; rows are headings and no panels."""
    for uid, board in BOARDS.items():
        for outer in board["panels"]:
            for panel in (outer, *outer.get("panels", ())):
                if panel["type"] != "row":
                    yield f"{uid}: {panel['title']}", panel


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with its variables; an unknown one is an error, as is a format that Grafana does not have."""

    def one(match: re.Match[str]) -> str:
        return FORMATS[match[2]](values[match[1]])

    text = re.sub(r"\$\{(\w+):queryparam\}", lambda match: f"var-{match[1]}={quote(values[match[1]], safe='')}", text)
    text = re.sub(r"\$\{([\w.]+)(?::(\w+))?\}", one, text)
    assert "$" not in text, text
    return text


class Series(NamedTuple):
    """A PromQL expression and the legend of its series."""

    where: str
    expr: str
    legend: str


class Rest(NamedTuple):
    """A question to the REST API."""

    where: str
    target: dict[str, Any]

    def uses(self, variable: str) -> bool:
        """Whether a variable is filled in."""
        return f"${{{variable}" in json.dumps(self.target["url_options"])

    def asked(self, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """(path, parameters) of the request. The data source takes spaces off both ends of each value."""
        params = self.target["url_options"]["params"]
        return self.target["url"], {one["key"]: filled(one["value"], values).strip(" ") for one in params}

    def rows(self, answer: Any) -> list[dict[str, Any]]:
        """Rows of an answer, columns by their names in Grafana."""
        root = selected(answer, self.target["root_selector"])
        rows = root if isinstance(root, list) else [root]
        return [{one["text"]: typed(selected(row, one["selector"]), one) for one in self.columns} for row in rows]

    @property
    def columns(self) -> list[dict[str, str]]:
        """Columns as the data source is told."""
        found: list[dict[str, str]] = self.target["columns"]
        return found


def selected(value: Any, path: str) -> Any:
    """What a path leads to. A field that does not exist is an error; below null there is nothing, as in GJSON."""
    assert re.fullmatch(r"[a-z_0-9.]*", path), f"not a plain path: {path}"
    for step in filter(None, path.split(".")):
        if value is None:
            return None
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            assert step in value, f"no field {step} of {path} in {sorted(value)}"
            value = value[step]
    return value


def typed(value: Any, column: dict[str, str]) -> Any:
    """A value that is what its column says; the data source makes null of any other."""
    wanted = {"string": (str, bool), "number": (int, float), "timestamp_epoch": (int,)}[column["type"]]
    assert value is None or isinstance(value, wanted), f"{column} is {value!r}"
    return value


def rest() -> list[Rest]:
    """All questions to the API: panels, marks, variables."""
    found = []
    for where, panel in panels():
        found += [Rest(f"{where} {one['refId']}", one) for one in panel["targets"] if _is_rest(one)]
    for uid, board in BOARDS.items():
        marks = board["annotations"].get("list", ())
        found += [Rest(f"{uid}: mark {one['name']}", one["target"]) for one in marks if _is_rest(one["target"])]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query" and "infinityQuery" in variable["query"]:
                found.append(Rest(f"{uid}: ${variable['name']}", variable["query"]["infinityQuery"]))
    return found


def series() -> list[Series]:
    """All PromQL."""
    return [
        Series(f"{where} {one['refId']}", one["expr"], one.get("legendFormat", ""))
        for where, panel in panels()
        for one in panel["targets"]
        if not _is_rest(one) and not is_drawn(one)
    ]


def is_drawn(target: dict[str, Any]) -> bool:
    """Whether a target asks nobody."""
    return bool(target["datasource"]["uid"] == DRAWN)


def _is_rest(target: dict[str, Any]) -> bool:
    kind = target["datasource"]["type"]
    assert kind in (INFINITY, "prometheus", "datasource"), kind
    return bool(kind == INFINITY)
