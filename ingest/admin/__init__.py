"""What is asked of a cluster by its admin API now and then, read only: answers in, events and ticks out.

`partition_ends` asks where partitions end that groups have commits for, `sampler` how groups are (`samples` makes the
events), `session_config` how long sessions are configured. A thread of its own asks, so that no line waits for an
answer.
"""
