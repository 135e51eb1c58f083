"""Spark itself: its session, where it runs, and what of it must be kept in order. No event and no table is known here.

`session` starts it with the settings that were measured, `s3a` tells it of a store, `cluster` gives executors on other
machines what they need. `daemon` and `late_workers` are about its Python workers, `scratch` about temporary files.
What the JVM needs below it (Java, jars) is in `spark_jobs.jvm`.
"""
