"""Panels over answers of the REST API: tables, single values, bands and swim lanes, marks in all panels.

The data source orders columns by name, so each table puts them in order again; what is a time, a number or a text is
said per column, because a column without a value in any row would otherwise be a text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import common, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    ValueMap,
    ValueMappingResult,
)

from dashboards.panels import Says, plot, titled
from dashboards.sources import NOTHING, REST, STATE_COLOURS, STATUS_COLOURS, Given, ask

CLOCK = "time:MM-DD HH:mm:ss.SSS"
"""Instants to the millisecond: a session of ten seconds is told in them."""


class Column(NamedTuple):
    """A column: its name in Grafana, where it stands in a row of the answer, and how it is shown."""

    name: str
    selector: str
    unit: str = ""
    link: str = ""
    width: int = 0
    colours: dict[str, str] | None = None

    @property
    def kind(self) -> str:
        """Type of the values, as the data source calls it."""
        if self.unit == CLOCK:
            return "timestamp_epoch"
        return "number" if self.unit else "string"

    def asked(self) -> dict[str, str]:
        """The column in a question."""
        return {"selector": self.selector, "text": self.name, "type": self.kind}


class Answer(Dataquery, Builder[Dataquery]):
    """A question to the API among the targets of a panel."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def to_json(self) -> dict[str, Any]:
        """What stands in the dashboard."""
        return self.fields

    def build(self) -> Dataquery:
        """Itself: there is nothing to build."""
        return self


def question(path: str, root: str, *columns: Column, ref: str = "A", given: Given = NOTHING) -> Answer:
    """A question to the API."""
    return Answer(ask(path, root, [one.asked() for one in columns], ref, given))


def mapped(colours: dict[str, str]) -> list[ValueMap]:
    """Texts in their colours."""
    return [ValueMap(options={text: ValueMappingResult(color=colour) for text, colour in colours.items()})]


def rows(
    says: Says, path: str, root: str, *columns: Column, span: int = 24, height: int = 8, given: Given = NOTHING
) -> Any:
    """A table. Texts are told to be texts: with another unit Grafana reads `007` as a number and shows and links 7."""
    panel = titled(table.Panel(), says, span, height, "string").datasource(REST).no_value("–").show_header(True)
    panel = panel.with_target(question(path, root, *columns, given=given))
    order = {"indexByName": {one.name: at for at, one in enumerate(columns)}, "excludeByName": {}, "renameByName": {}}
    panel = panel.with_transformation(DataTransformerConfig(id_val="organize", options=order))
    for one in columns:
        found: dict[str, Any] = {}
        if one.unit:
            found["unit"] = one.unit
        if one.width:
            found["custom.width"] = one.width
        if one.link:
            found["links"] = [{"title": "Open", "url": one.link, "targetBlank": one.link.startswith("${page}")}]
        if one.colours is not None:
            found["mappings"] = mapped(one.colours)
            found["custom.cellOptions"] = {"type": "color-text"}
        if found:
            properties = [DynamicConfigValue(id_val=name, value=value) for name, value in found.items()]
            panel = panel.override_by_name(one.name, properties)
    return panel


def value(says: Says, path: str, root: str, column: Column, thresholds: Any, *, span: int = 4) -> Any:
    """One value of one object."""
    panel = titled(stat.Panel(), says, span, 4, column.unit or "string").datasource(REST)
    if column.colours is not None:
        panel = panel.mappings(mapped(column.colours))
    return (
        panel.no_value("not known")
        .color_mode(BigValueColorMode.BACKGROUND_SOLID)
        .graph_mode(BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("/.*/").values(False))
        .thresholds(thresholds)
        .with_target(question(path, root, column))
    )


AT = Column("time", "at_ms", CLOCK)
LANE = Column("lane", "lane")


def _parted(panel: Any, by: str = "lane") -> Any:
    """A series per lane: the answer has one row per point."""
    options = {"fields": [by], "keepFields": False, "naming": {"asLabels": True}}
    panel = panel.with_transformation(DataTransformerConfig(id_val="partitionByValues", options=options))
    return panel.display_name(f"${{__field.labels.{by}}}")


def lanes(says: Says, path: str, *, height: int, given: Given = NOTHING) -> Any:
    """A swim lane per member, coloured by its status."""
    panel = _band(says, height, STATUS_COLOURS)
    found = Column("status", "status")
    return _parted(panel.with_target(question(path, "samples", AT, LANE, found, given=given)))


def states(says: Says, path: str, *, given: Given = NOTHING) -> Any:
    """The state of a group as a band: what it was when the picture begins, and every change since."""
    return _band(says, 5, STATE_COLOURS).with_target(
        question(path, "states", AT, Column("state", "state"), given=given)
    )


def _band(says: Says, height: int, colours: dict[str, str]) -> Any:
    panel = titled(statetimeline.Panel(), says, 24, height, "string").datasource(REST)
    return (
        panel.mappings(mapped(colours))
        .merge_values(True)
        .row_height(0.8)
        .fill_opacity(75)
        .line_width(0)
        .show_value(VisibilityMode.AUTO)
    )


def points(
    says: Says, path: str, root: str, at: Column, found: Column, by: Column, *, span: int = 24, given: Given = NOTHING
) -> Any:
    """A point per row, a colour per `by`."""
    panel = _history(says, path, root, (at, by, found), span, given).draw_style(GraphDrawStyle.POINTS)
    return _parted(panel.point_size(5).show_points(VisibilityMode.ALWAYS), by.name)


def courses(says: Says, path: str, root: str, found: Column, *, span: int = 12, given: Given = NOTHING) -> Any:
    """A line per lane."""
    panel = _history(says, path, root, (AT, LANE, found), span, given)
    return _parted(panel.show_points(VisibilityMode.NEVER).max(1))


def _history(says: Says, path: str, root: str, columns: tuple[Column, ...], span: int, given: Given) -> Any:
    panel = plot(titled(timeseries.Panel(), says, span, 8, columns[-1].unit)).datasource(REST)
    return panel.with_target(question(path, root, *columns, given=given))


def marks(name: str, colour: str, path: str, root: str, *columns: Column, given: Given = NOTHING) -> AnnotationQuery:
    """Marks in all panels; columns are called time, timeEnd, title, text as Grafana reads them."""
    made = AnnotationQuery().name(name).datasource(REST).enable(True).hide(False).icon_color(colour)
    target: Any = question(path, root, *columns, ref=name, given=given)
    return made.target(target)
