"""The least rights that each part of Kardia needs, as lines of `kafka-acls.sh`. Data; tests take each one away.

Kafka implies DESCRIBE by READ and WRITE, and hides what may not be described. No right to a group is needed: the
offsets topic and the topic of events are read by assignment, and nothing is committed.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

OFFSETS = "__consumer_offsets"
OBSERVED, EVENTS = "observed", "events"


@dataclass(frozen=True)
class Right:
    """One operation on one resource."""

    resource: str
    """`topic`, `group` or `cluster`."""
    name: str
    operation: str
    """As kafka-acls.sh names it."""
    cluster: str
    """Which of the two clusters, where the topic of events is on brokers of its own."""
    needed_for: str
    """Part of Kardia, and what it lacks without the right."""

    def line(self, principal: str, bootstrap: str) -> str:
        """The command that gives it."""
        of = f"--{self.resource}" + (f" {shlex.quote(self.name)}" if self.name else "")
        return (
            f"kafka-acls.sh --bootstrap-server {bootstrap} --command-config ADMIN --add "
            f"--allow-principal {shlex.quote(principal)} --operation {self.operation} {of}"
        )


_CONFIGS = "collect, to see session timeouts of groups with epochs; doctor, to see settings and log levels"


def least(topic: str) -> tuple[Right, ...]:
    """All rights, for a topic of events of this name. What asks for less can do with less: see `needed_for`."""
    return (
        Right("topic", OFFSETS, "Read", OBSERVED, "collect and capture, to read the offsets topic"),
        Right("topic", topic, "Write", EVENTS, "collect, to send events"),
        Right("topic", topic, "Create", EVENTS, "collect, until the topic of events is there"),
        Right("topic", topic, "Read", EVENTS, "stream, to read events"),
        Right("topic", "*", "Describe", OBSERVED, "collect, to see where partitions end: lag"),
        Right("cluster", "", "DescribeConfigs", OBSERVED, _CONFIGS),
        Right("group", "*", "DescribeConfigs", OBSERVED, "collect, to see session timeouts that groups set"),
        Right("group", "*", "Describe", OBSERVED, "doctor, to count members; collect --admin, to sample groups"),
    )
