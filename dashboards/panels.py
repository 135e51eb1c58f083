"""Panels over series of Prometheus, in one style; and what every panel says about itself.

A panel has a title, the question it answers, and what to do when it is red: that text is the panel's description in
Grafana and its line in `README.md`. Colours are thresholds of the numbers on the axis, never the only sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import DashboardLink, ThresholdsConfig
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    GraphTresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.palette import alarm, missing
from dashboards.sources import SERIES, or_blind, while_seen

RED = "\n\nWhen it is red: "
"""Between what a panel answers and what to do; `readme.py` parts the description there."""


UNKNOWN = "not known"
"""What a panel says where there is no value."""

RUNBOOKS = "docs/runbooks"
"""Where a panel's runbook lies in the repository; `generate` puts the address in its place at which it is served."""

NO_COLOURS: dict[str, str] = {}


class Says(NamedTuple):
    """What a panel says about itself; `runbook` is the name of a file."""

    title: str
    asks: str
    do: str
    runbook: str = ""

    @property
    def description(self) -> str:
        """The panel's description."""
        more = f" [Runbook]({RUNBOOKS}/{self.runbook})" if self.runbook else ""
        return f"{self.asks}{RED}{self.do}{more}"


def titled(panel: Any, says: Says, span: int, height: int, unit: str) -> Any:
    """A panel with what every panel must have."""
    return panel.title(says.title).description(says.description).span(span).height(height).unit(unit)


def query(expr: str, legend: str = "", *, instant: bool = False, ref: str = "A") -> prometheus.Dataquery:
    """One query."""
    made = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SERIES)
    return made.instant().format(PromQueryFormat.TIME_SERIES) if instant else made.range()


def number(
    says: Says,
    expr: str,
    thresholds: ThresholdsConfig,
    *,
    unit: str = "none",
    span: int = 4,
    decimals: int = 0,
    always: bool = False,
) -> Any:
    """One number with its past behind it, coloured once it is an alarm; grey where nobody knows it now. `always`: it is
    about blindness itself, or not about what Kardia sees."""
    panel = titled(stat.Panel(), says, span, 4, unit)
    return (
        panel.datasource(SERIES)
        .decimals(decimals)
        .no_value(UNKNOWN)
        .mappings([missing(UNKNOWN)])
        .color_mode(BigValueColorMode.BACKGROUND_SOLID)
        .graph_mode(BigValueGraphMode.AREA)
        # The last one, be it none: the last that is not null is what was known before the feed ended.
        .reduce_options(common.ReduceDataOptions().calcs(["last"]).values(False))
        .thresholds(thresholds)
        .with_target(query(expr if always else or_blind(expr)))
    )


def lines(
    says: Says,
    *queries: tuple[str, str],
    unit: str = "short",
    span: int = 12,
    height: int = 8,
    colours: dict[str, str] = NO_COLOURS,
    always: bool = False,
) -> Any:
    """Series over time; they end where Kardia is blind, unless they are about that (`always`). Those that mean
    something have the colour of it."""
    panel = (
        plot(titled(timeseries.Panel(), says, span, height, unit)).datasource(SERIES).show_points(VisibilityMode.NEVER)
    )
    for at, (expr, legend) in enumerate(queries):
        panel = panel.with_target(query(expr if always else while_seen(expr), legend, ref=chr(ord("A") + at)))
    return coloured(panel, colours)


def plot(panel: Any) -> Any:
    """How a picture over time looks."""
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.BOTTOM)
    legend = legend.calcs(["last", "max"]).show_legend(True)
    return panel.min(0).thresholds(alarm(None)).line_width(1.5).fill_opacity(8).legend(legend)


def stacked(panel: Any) -> Any:
    """The same as parts of a whole."""
    return panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(35)


def coloured(panel: Any, colours: dict[str, str]) -> Any:
    """Series in fixed colours by name, so that a colour means the same everywhere."""
    for name, colour in colours.items():
        fixed = DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_name(name, [fixed])
    return panel


def bounded(panel: Any, thresholds: ThresholdsConfig) -> Any:
    """Thresholds as lines in the picture."""
    style = common.GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
    return panel.thresholds(thresholds).thresholds_style(style)


def bars(says: Says, expr: str, legend: str, thresholds: ThresholdsConfig, link: str, *, unit: str) -> Any:
    """The worst few, one bar each, in the one colour of its value; a click opens the group."""
    panel = titled(bargauge.Panel(), says, 8, 8, unit)
    if unit == "percentunit":
        panel = panel.max(1)
    return (
        panel.datasource(SERIES)
        .min(0)
        .no_value("none, or not known")
        .mappings([missing("none, or not known")])
        .data_links([DashboardLink("Open").url(link)])
        .display_mode(BarGaugeDisplayMode.BASIC)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["last"]).values(False))
        .thresholds(thresholds)
        .with_target(query(while_seen(expr), legend, instant=True))
    )
