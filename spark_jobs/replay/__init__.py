"""Replay: archived logs through the same observer and writer into the same tables, without Spark, Kafka or Java.

    plan -> parse pieces in parallel -> spill by lane -> portions in order of time -> step lanes in parallel -> tables

`pieces` is what one parsed piece looks like on disk, `portions` decides what is fed when, `worker` is a process that
parses and steps, `pool` moves commands between them, `run` puts it together. Memory holds one portion, whatever the
size of the logs; the spill holds what has been parsed ahead of its time (an archive .gz has no ranges).
"""
