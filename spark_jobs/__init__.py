"""Events to tables: the streaming job, offline replay, and the writers and the upkeep of the Delta tables.

In comes the topic `kardia.events` (or archived logs), out go the tables of `kardia.tables`. What a heartbeat or a
timeout means is decided in `kardia.observe`; this folder moves events to it and its rows to disk, each exactly once,
whatever dies in between, and knows no rule of the coordinator.
"""
