"""What Kafka's group coordinator does, as an executable model: operations at instants in, Kafka's answers out.

`coordinator` hands each operation to `joins`, `syncs`, `heartbeats`, `leaves`, `commits` or `lives`; `rebalances` is
what they share. `reactions`, `timers` and `behaviour` are tables; `shard`, `group` and `records` hold the state. The
observer does not run it: it is held against Kafka's own classes, and the observer is held against it. Pure: reads no
clock, no file, no socket. Each file names the methods of Kafka it follows: they are in `GroupCoordinator.scala` and
`GroupMetadata.scala` up to 3.9, in `GroupMetadataManager.java` and `ClassicGroup.java` from 4.0.

These are groups of the classic protocol. Those of the consumer protocol have a room of their own, `consumer`, which
uses the timers, the happenings and some operations of this one.
"""
