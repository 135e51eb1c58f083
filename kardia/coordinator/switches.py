"""One difference between releases of Kafka as a value, and which of them hold for one release.

The rows themselves are in `behaviour` of each kind of group. Reads nothing, decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kardia.kafka.releases import Span, Version, version_of


class Switch(NamedTuple):
    """One difference between releases. `spans`: the releases in which it holds, oldest first."""

    name: str
    spans: tuple[Span, ...]
    meaning: str
    source: str

    def holds(self, version: Version) -> bool:
        """Whether the release behaves so."""
        return any(span.first <= version < span.end for span in self.spans)


def flags_of(switches: Mapping[str, Switch], version: Version) -> dict[str, bool]:
    """What holds for one release."""
    return {name: switch.holds(version) for name, switch in switches.items()}


def flags_since(switches: Mapping[str, Switch], kafka_version: str, first: Version) -> dict[str, bool]:
    """The same, of groups that brokers have since a release. ValueError for one that is older."""
    version = version_of(kafka_version)
    if version < first:
        since_when = ".".join(map(str, first))
        raise ValueError(
            f"kafka_version {kafka_version}: expected {since_when} or newer; older brokers have no such groups"
        )
    return flags_of(switches, version)
