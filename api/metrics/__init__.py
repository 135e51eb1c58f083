"""Series for Prometheus, computed from the current view when they are asked for.

Nothing here is counted twice or kept: gauges, counters and histograms of the tables are read off the view, so a scrape
costs what the present groups cost and never what history costs. Three levels: the service and its feed (`service`), the
cluster as a whole (`clusters`), and each group (`groups`); members only when asked for (`members`). Group names are
chosen by strangers: `metrics_groups_max` bounds how many have series, `kardia_groups_without_series` says how many have
none, and the series of the cluster always count all of them. Names: prometheus.io/docs/practices/naming.
"""

from api.metrics.collector import TableMetrics
from api.metrics.requests import RequestMetrics

__all__ = ["RequestMetrics", "TableMetrics"]
