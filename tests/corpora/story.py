"""A story of groups with epochs: what is done when.

A step is a second and a line: `start NAME KIND GROUP [setting...]`, `do NAME ...` for a Java member, `say NAME ...` for
librdkafka and Streams, `kill`, `stop` and `cont` for one with a process of its own, `admin ...`, `breaks GROUP` and
`mends` for a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Step = str


@dataclass(frozen=True)
class Story:
    """A list of what is done when."""

    what: str
    steps: Sequence[tuple[float, Step]]
    lasts_s: float
    nodes: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
