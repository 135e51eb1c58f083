"""`__consumer_offsets`: records of the topic in, events out, live, from a capture, or from what Kafka's tools print.

`source` reads the topic, `complete_to` says up to when it has been read, `records` makes the events by the layouts of
`schema`; `dump` reads what `kafka-dump-log.sh` and the console consumer print; `capture` copies the topic into a file.
`committed` keeps which partitions groups have commits for. Read only: no group is joined and nothing is committed.
"""
