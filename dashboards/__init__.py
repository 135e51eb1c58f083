"""Pictures and alarms as code: Grafana dashboards and Prometheus rules over the series of `api.metrics`.

In: nothing but names of series. Out: `json/` and `prometheus/`, written by `python -m dashboards.generate` and
committed. Asks nobody anything; a test compares what is committed with what the code gives.
"""
