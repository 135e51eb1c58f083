"""Kafka's group coordinator as an executable model: operations at instants in, Kafka's answers out.

A room for each kind of group: `classic`, `consumer` (KIP-848), `share` (KIP-932) and `streams` (KIP-1071); a new rule
goes into the room of its groups, and what differs between releases is a row of `behaviour` there. What they share is
here: `timers` and `happenings` are tables, `switches` what a difference between releases is, `operations` what the
cluster does to any of them, `errors`, and `stepped` the shard of groups with epochs. `consumer` uses `classic`, because
members of the classic protocol may be in its groups.

The observer does not run it, it only looks up what differs between releases: this is held against Kafka's own classes,
and the observer against this. Pure: reads no clock, no file, no socket. Each file names the methods of Kafka it
follows.
"""
