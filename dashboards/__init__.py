"""Pictures and alarms as code: Grafana dashboards and Prometheus rules.

In: names of series of `api.metrics` and of fields of the REST API. Out: `json/`, `prometheus/` and `README.md`, written
by `python -m dashboards.generate` and committed. Asks nobody anything; tests compare what is committed with what the
code gives, and put every question of a panel to a real API and a real Prometheus.

`sources` is what panels have in common, `panels` those over series, `answers` those over the REST API, `board` the
frame of a dashboard; `fleet`, `group`, `member`, `rebalances`, `truth` are the dashboards, `rules` the alerts.
"""
