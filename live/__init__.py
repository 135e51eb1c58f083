"""Kardia as one process: `kardia collect`, `stream`, `serve` and `notify` in one, without a topic and without Java.

    logs, offsets topic, admin API -> ingest's collector -> engine: lanes, rows, batches -> tables
                                                                 `-> ahead -> view -> API, page, metrics, notifier

`engine` is the topic of the collector and the place of its positions: it steps the same lanes as the job, shows their
rows at once (`ahead`, `view`) and puts them, the state and the positions into one file for each batch (`files`) before
the tables get them. `state` says whether state and tables belong together, `run` puts everything together.
"""
