"""Panels over series of Prometheus, in one style; and what every panel says about itself.

A panel has a title, the question it answers, and what to do when it is red: that text is the panel's description in
Grafana and its line in `README.md`. Colours are thresholds of the numbers on the axis, never the only sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphTresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Threshold, ThresholdsMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.rules import RUNBOOKS
from dashboards.sources import BLUE, GREEN, ORANGE, PURPLE, SERIES

RED = "\n\nWhen it is red: "
"""Between what a panel answers and what to do; `readme.py` parts the description there."""


class Says(NamedTuple):
    """What a panel says about itself; `runbook` is the name of a file."""

    title: str
    asks: str
    do: str
    runbook: str = ""

    @property
    def description(self) -> str:
        """The panel's description."""
        more = f" Runbook: {RUNBOOKS}/{self.runbook}" if self.runbook else ""
        return f"{self.asks}{RED}{self.do}{more}"


def titled(panel: Any, says: Says, span: int, height: int, unit: str) -> Any:
    """A panel with what every panel must have."""
    return panel.title(says.title).description(says.description).span(span).height(height).unit(unit)


def query(expr: str, legend: str = "", *, instant: bool = False, ref: str = "A") -> prometheus.Dataquery:
    """One query."""
    made = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SERIES)
    return made.instant().format(PromQueryFormat.TIME_SERIES) if instant else made.range()


def steps(*colours: tuple[float | None, str]) -> ThresholdsConfig:
    """Colours from values on; the first has None."""
    found = [Threshold(value=value, color=colour) for value, colour in colours]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


HEADROOM = steps((None, PURPLE), (0.2, ORANGE), (0.5, GREEN))
"""What is left of a timeout: below a half is unusual."""


def alarm(at: float | None, *, below: bool = False) -> ThresholdsConfig:
    """Calm, and an alarm from a value on; with `below`, up to it. None: never."""
    if at is None:
        return steps((None, BLUE))
    return steps((None, ORANGE), (at, BLUE)) if below else steps((None, BLUE), (at, ORANGE))


def number(
    says: Says, expr: str, thresholds: ThresholdsConfig, *, unit: str = "none", span: int = 4, decimals: int = 0
) -> Any:
    """One number with its past behind it, coloured once it is an alarm."""
    panel = titled(stat.Panel(), says, span, 4, unit)
    return (
        panel.datasource(SERIES)
        .decimals(decimals)
        .no_value("nothing yet")
        .color_mode(BigValueColorMode.BACKGROUND_SOLID)
        .graph_mode(BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .thresholds(thresholds)
        .with_target(query(expr))
    )


def lines(says: Says, *queries: tuple[str, str], unit: str = "short", span: int = 12, height: int = 8) -> Any:
    """Series over time."""
    panel = (
        plot(titled(timeseries.Panel(), says, span, height, unit)).datasource(SERIES).show_points(VisibilityMode.NEVER)
    )
    for at, (expr, legend) in enumerate(queries):
        panel = panel.with_target(query(expr, legend, ref=chr(ord("A") + at)))
    return panel


def plot(panel: Any) -> Any:
    """How a picture over time looks."""
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    return panel.min(0).line_width(1.5).fill_opacity(8).legend(legend.show_legend(True))


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


def bars(says: Says, expr: str, legend: str, thresholds: ThresholdsConfig, *, unit: str, span: int = 8) -> Any:
    """The worst few, one bar each."""
    panel = titled(bargauge.Panel(), says, span, 8, unit)
    if unit == "percentunit":
        panel = panel.max(1)
    return (
        panel.datasource(SERIES)
        .min(0)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .thresholds(thresholds)
        .with_target(query(expr, legend, instant=True))
    )
