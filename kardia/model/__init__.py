"""What Kafka's group coordinator does: tables that say it, and a coordinator that does it.

In come operations at instants (`operations`), out go answers and what can be seen of a group. `coordinator` hands each
to `joins`, `syncs`, `heartbeats`, `leaves`, `commits` or `lives`; `rebalances` is what they share. `states`,
`reactions`, `timers`, `behaviour` and `sessions` are tables; `shard`, `group` and `records` hold the state.
`libraries` is about clients. Pure: reads no clock, no file, no socket. Each file names the methods of Kafka it follows:
they are in `GroupCoordinator.scala` and `GroupMetadata.scala` up to 3.9, in `GroupMetadataManager.java` and
`ClassicGroup.java` from 4.0.
"""
