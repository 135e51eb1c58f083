"""Panels in one style: a question as title, an explanation as description, queries against Prometheus.

Every query is scoped by `$cluster`, and by `$group` where it is about one; names of groups are quoted by Grafana itself
(`:doublequote`), because they may contain anything.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    DatasourceVariable,
    QueryVariable,
    TextBoxVariable,
    ThresholdsConfig,
)
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
CLUSTER = "cluster=${cluster:doublequote}"
GROUP = f"{CLUSTER},group=${{group:doublequote}}"
PAGE_OF_GROUP = "${page}/#/clusters/~/groups/~?cluster=${cluster:percentencode}&group=${group:percentencode}"

GREEN, YELLOW, ORANGE, PURPLE, BLUE = "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#0072B2"
"""Okabe and Ito's colours: told apart by all."""

STATUS_COLOURS = {"ok": GREEN, "late": YELLOW, "imminent": ORANGE, "overdue": PURPLE, "unknown": "#888888"}

Lines = timeseries.Panel


def query(expr: str, legend: str = "", *, instant: bool = False, ref: str = "A") -> prometheus.Dataquery:
    """One query."""
    made = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SOURCE)
    return made.instant().format(PromQueryFormat.TABLE) if instant else made.range()


def number(title: str, why: str, expr: str, *, alarm_from: float | None = None, unit: str = "short") -> stat.Panel:
    """One number, coloured once it is an alarm."""
    panel = (
        stat.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .decimals(0)
        .height(4)
        .span(3)
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.AREA)
        .with_target(query(expr))
    )
    return panel.thresholds(_from(alarm_from, BLUE, ORANGE))


def lines(title: str, why: str, *queries: tuple[str, str], unit: str = "short", span: int = 12) -> Lines:
    """Series over time."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .height(8)
        .span(span)
        .min(0)
        .line_width(1.5)
        .fill_opacity(8)
        .show_points(VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    for at, (expr, legend) in enumerate(queries):
        panel = panel.with_target(query(expr, legend, ref=chr(ord("A") + at)))
    return panel


def stacked(panel: Lines) -> Lines:
    """The same as parts of a whole."""
    return panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(35)


def ratio(panel: Lines) -> Lines:
    """The same as a part of a timeout: 0 to 1, in danger below a half."""
    steps = [Threshold(value=None, color=PURPLE), Threshold(value=0.2, color=ORANGE), Threshold(value=0.5, color=GREEN)]
    return panel.unit("percentunit").max(1).thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))


def worst(title: str, why: str, expr: str, legend: str) -> bargauge.Panel:
    """The worst few as bars."""
    steps = [Threshold(value=None, color=PURPLE), Threshold(value=0.2, color=ORANGE), Threshold(value=0.5, color=GREEN)]
    return (
        bargauge.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit("percentunit")
        .min(0)
        .max(1)
        .height(8)
        .span(12)
        .orientation(VizOrientation.HORIZONTAL)
        .thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .with_target(prometheus.Dataquery().expr(expr).legend_format(legend).ref_id("A").datasource(SOURCE).instant())
    )


def states(title: str, why: str, expr: str) -> statetimeline.Panel:
    """A band per state, filled while it holds."""
    mapping = ValueMap(
        options={"0": ValueMappingResult(text=" ", color="transparent"), "1": ValueMappingResult(text="■", color=BLUE)},
    )
    return (
        statetimeline.Panel()
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .height(7)
        .span(24)
        .mappings([mapping])
        .merge_values(True)
        .row_height(0.8)
        .show_value(VisibilityMode.NEVER)
        .with_target(query(expr, "{{state}}"))
    )


def datasource_variable() -> DatasourceVariable:
    """Which Prometheus."""
    return DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def page_variable() -> TextBoxVariable:
    """Where `kardia serve` is, as the reader's browser reaches it."""
    return TextBoxVariable("page").label("kardia serve").default_value("http://localhost:8765")


def values_variable(name: str, label: str, expr: str) -> QueryVariable:
    """Values of a label."""
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(expr)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )


def _from(alarm_from: float | None, calm: str, alarm: str) -> ThresholdsConfig:
    steps = [Threshold(value=None, color=calm)]
    if alarm_from is not None:
        steps.append(Threshold(value=alarm_from, color=alarm))
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
