"""Events to tables: the streaming job, offline replay, and the writers and the upkeep of the Delta tables.

    job        the running job: `preflight` before it, then the live query (`stream`) and the one of `archive`
    processor  Spark's side of a lane; `lane` is what it does with records, `safe_step` when one cannot be applied
    checkpoint state of the lanes, and the ways to begin them otherwise; `leases` one run at a time
    writers    rows into Delta tables, each batch once; `upkeep` keeps the tables small
    replay     archived logs into the same tables, without Spark or with it
    spark, jvm Spark's session and its Java

In comes the topic `kardia.events` (or archived logs), out go the tables of `kardia.tables`. What a heartbeat or a
timeout means is decided in `kardia.observe`; this folder moves events to it and its rows to disk, each exactly once,
whatever dies in between, and knows no rule of the coordinator.
"""
