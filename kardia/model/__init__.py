"""What Kafka's group coordinator does, as data: states and legal moves, timers, renewals, differences between versions.

Pure tables and small functions; reads no clock. The source of each rule is named beside it: "spec" with a section is
Kafka's behaviour as found in its sources (`GroupCoordinator.scala` and `GroupMetadata.scala` up to 3.9,
`GroupMetadataManager.java` and `ClassicGroup.java` from 4.0).
"""
