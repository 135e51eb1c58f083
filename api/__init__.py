"""From the tables to answers: REST, `/metrics` and the page.

In: the Delta tables that `kardia.tables` describes, read with delta-rs. Out: JSON with its freshness, Prometheus
series, one page. This package writes no table, starts no Spark, speaks to no Kafka, and makes no outgoing call.
"""
