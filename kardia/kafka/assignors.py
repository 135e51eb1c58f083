"""Classic assignors by what a rebalance does to the members of their groups, of the well-known libraries."""

from __future__ import annotations

EAGER = frozenset({"range", "roundrobin", "sticky", "RoundRobinAssigner"})
"""Assignors that stop everything: Java and librdkafka (first three), kafkajs."""

COOPERATIVE = frozenset({"cooperative-sticky", "stream"})
"""Assignors that keep what does not move (KIP-429): Java, librdkafka, franz-go; Kafka Streams."""
