"""Kafka's group coordinator as an executable model: operations at instants in, Kafka's answers out.

A new rule of the coordinator goes into the file of its request. `coordinator` hands each operation to `joins`, `syncs`,
`heartbeats`, `leaves`, `commits` or `removal_and_loading`; `rebalances` is what they share. `reactions`, `timers` and
`behaviour` are tables; `shard`, `group` and `records` hold the state. The observer does not run it, it only looks up
what differs between releases (`behaviour`): this is held against Kafka's own classes, and the observer against this.
Pure: reads no clock, no file, no socket. Each file names the methods of Kafka it follows: they are in
`GroupCoordinator.scala` and `GroupMetadata.scala` up to 3.9, in `GroupMetadataManager.java` and `ClassicGroup.java`
from 4.0.

These are groups of the classic protocol. Those of the consumer protocol have a room of their own, `consumer`, which
uses the timers, the happenings and some operations of this one.
"""
