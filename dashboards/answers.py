"""Panels over answers of the REST API: tables, single values, bands and chart rows, marks in all panels.

The data source orders columns by name, so each table puts them in order again; what is a time, a number or a text is
said per column, because a column without a value in any row would otherwise be a text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import common, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, FieldColor
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    RegexMap,
)

from dashboards.palette import BLIND, STATE, STATUS, alarm, mapped, missing, steps
from dashboards.panels import UNKNOWN, Says, coloured, plot, titled
from dashboards.sources import NOTHING, REST, Given, ask

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
    words: tuple[Any, ...] = ()
    """What stands for what in a text that begins in one of several ways."""
    wraps: bool = False
    """Whether a long text goes on in the next line, instead of being cut."""

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


def rows(
    says: Says,
    path: str,
    root: str,
    *columns: Column,
    span: int = 24,
    height: int = 8,
    given: Given = NOTHING,
    newest_first: str = "",
) -> Any:
    """A table. Texts are told to be texts: with another unit Grafana reads `007` as a number and shows and links 7."""
    panel = titled(table.Panel(), says, span, height, "string").datasource(REST).no_value("–").show_header(True)
    panel = panel.with_target(question(path, root, *columns, given=given))
    order = {"indexByName": {one.name: at for at, one in enumerate(columns)}, "excludeByName": {}, "renameByName": {}}
    panel = panel.with_transformation(DataTransformerConfig(id_val="organize", options=order))
    if newest_first:
        sort = {"sort": [{"field": newest_first, "desc": True}]}
        panel = panel.with_transformation(DataTransformerConfig(id_val="sortBy", options=sort))
    # Without thresholds of its own Grafana colours any text that is to be coloured green, and numbers from 80 on red.
    panel = panel.thresholds(alarm(None)).color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    for one in columns:
        found: dict[str, Any] = {}
        if one.unit:
            found["unit"] = one.unit
        if one.width:
            found["custom.width"] = one.width
        if one.link:
            found["links"] = [{"title": "Open", "url": one.link, "targetBlank": one.link.startswith("${page}")}]
        if one.colours is not None:
            found["mappings"] = [mapped(one.colours), missing(UNKNOWN)]
            found["custom.cellOptions"] = {"type": "color-text"}
        if one.words:
            found["mappings"] = [*one.words, missing(UNKNOWN)]
            found["custom.cellOptions"] = {"type": "color-text"}
        if one.wraps:
            found["custom.cellOptions"] = {"type": "auto", "wrapText": True}
        if found:
            properties = [DynamicConfigValue(id_val=name, value=value) for name, value in found.items()]
            panel = panel.override_by_name(one.name, properties)
    return panel


def value(says: Says, path: str, root: str, column: Column, thresholds: Any, *told: RegexMap, span: int = 4) -> Any:
    """One value of one object; `told` are colours of texts."""
    panel = titled(stat.Panel(), says, span, 4, column.unit or "string").datasource(REST)
    return (
        panel.no_value(UNKNOWN)
        .mappings([*([mapped(column.colours)] if column.colours is not None else ()), *told, missing(UNKNOWN)])
        .color_mode(BigValueColorMode.BACKGROUND_SOLID)
        .graph_mode(BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["last"]).fields("/.*/").values(False))
        .thresholds(thresholds)
        .with_target(question(path, root, column))
    )


AT = Column("time", "at_ms", CLOCK)
CHART_ROW = Column("lane", "lane")
POINT = (
    Column("kind", "kind"),
    AT,
    CHART_ROW,
    Column("state", "state"),
    Column("status", "shown"),
    Column("silence", "gap_ratio", "percentunit"),
    Column("session left", "session_headroom_ratio", "percentunit"),
    Column("poll left", "poll_headroom_ratio", "percentunit"),
    Column("evidence", "evidence"),
    Column("error bound", "error_bound_ms", "ms"),
)
"""Columns of the points of a group. A dashboard asks for them once: the other panels draw what one was given."""

ASKS_ID = 100
"""Number of the panel that asks for the points of its dashboard."""

DASHBOARD = DataSourceRef(type_val="datasource", uid="-- Dashboard --")


def _drawn(panel: Any, kind: str, *shown: str, by: str = "", asks: Answer | None = None) -> Any:
    """The points of one kind, with the columns that are shown, a series for each value of `by`."""
    if asks is None:
        given = Answer({"datasource": DASHBOARD.to_json(), "panelId": ASKS_ID, "refId": "A", "withTransforms": False})
        panel = panel.datasource(DASHBOARD).with_target(given)
    else:
        panel = panel.id(ASKS_ID).datasource(REST).with_target(asks)
    wanted = [{"fieldName": "kind", "config": {"id": "equal", "options": {"value": kind}}}]
    only = {"filters": wanted, "type": "include", "match": "all"}
    panel = panel.with_transformation(DataTransformerConfig(id_val="filterByValue", options=only))
    left_out = {one.name: True for one in POINT if one.name not in (AT.name, by, *shown)}
    order = {"excludeByName": left_out, "indexByName": {}, "renameByName": {}}
    panel = panel.with_transformation(DataTransformerConfig(id_val="organize", options=order))
    if by:
        options = {"fields": [by], "keepFields": False, "naming": {"asLabels": True}}
        panel = panel.with_transformation(DataTransformerConfig(id_val="partitionByValues", options=options))
        panel = panel.display_name(f"${{__field.labels.{by}}}")
    return panel


def chart_rows(says: Says, path: str, *, height: int, given: Given = NOTHING) -> Any:
    """A chart row per member, coloured by its status. This is the panel that asks for all points."""
    asks = question(path, "points", *POINT, given=given)
    return _drawn(_band(says, height, STATUS), "sample", "status", by="lane", asks=asks)


def states(says: Says) -> Any:
    """The state of a group as a band: what it was when the picture begins, and every change since."""
    return _drawn(_band(says, 4, STATE), "state", "state")


def _band(says: Says, height: int, colours: dict[str, str]) -> Any:
    panel = titled(statetimeline.Panel(), says, 24, height, "string")
    return (
        panel.mappings([mapped(colours), missing(UNKNOWN)])
        .thresholds(steps((None, BLIND)))
        .merge_values(True)
        .row_height(0.85)
        .fill_opacity(75)
        .line_width(0)
        .show_value(VisibilityMode.AUTO)
    )


def points(says: Says, kind: str, shown: str, by: str, unit: str, *, span: int = 24) -> Any:
    """A point per row, a colour per `by`."""
    panel = plot(titled(timeseries.Panel(), says, span, 8, unit)).draw_style(GraphDrawStyle.POINTS)
    return _drawn(panel.point_size(5).show_points(VisibilityMode.ALWAYS), kind, shown, by=by)


def courses(says: Says, shown: str, *, span: int = 12) -> Any:
    """A line per lane, of what was left at the samples of members."""
    panel = plot(titled(timeseries.Panel(), says, span, 8, "percentunit")).show_points(VisibilityMode.NEVER)
    return _drawn(panel.max(1), "sample", shown, by="lane")


def history(
    says: Says, path: str, root: str, at: Column, found: Column, by: Column, *, span: int, given: Given = NOTHING
) -> Any:
    """A point per row of a history of its own, a colour per `by`."""
    panel = plot(titled(timeseries.Panel(), says, span, 8, found.unit)).draw_style(GraphDrawStyle.POINTS)
    panel = panel.datasource(REST).with_target(question(path, root, at, by, found, given=given))
    options = {"fields": [by.name], "keepFields": False, "naming": {"asLabels": True}}
    panel = panel.with_transformation(DataTransformerConfig(id_val="partitionByValues", options=options))
    panel = panel.display_name(f"${{__field.labels.{by.name}}}")
    return coloured(panel.point_size(6).show_points(VisibilityMode.ALWAYS), by.colours or {})


def marks(name: str, colour: str, path: str, root: str, *columns: Column, given: Given = NOTHING) -> AnnotationQuery:
    """Marks in all panels; columns are called time, timeEnd, title, text as Grafana reads them."""
    made = AnnotationQuery().name(name).datasource(REST).enable(True).hide(False).icon_color(colour)
    target: Any = question(path, root, *columns, ref=name, given=given)
    return made.target(target)
