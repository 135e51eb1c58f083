"""The coordinator of groups of the classic protocol, as an executable model: JoinGroup, SyncGroup, Heartbeat,
LeaveGroup.

A new rule goes into the file of its request. `coordinator` hands each operation to `joins`, `syncs`, `heartbeats`,
`leaves`, `commits` or `removal_and_loading`; `rebalances` is what they share. `reactions` and `behaviour` are tables;
`shard`, `group` and `records` hold the state; `stores` is what waits until a record is stored.

Requests, acts of the cluster and the passing of time go in; answers, views and happenings come out.
`coordinator.Coordinator` is the entrance. Each file names the methods of Kafka it follows: they are in
`GroupCoordinator.scala` and `GroupMetadata.scala` up to 3.9, in `GroupMetadataManager.java` and `ClassicGroup.java`
from 4.0.
"""
