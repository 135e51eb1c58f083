"""What a night came to: sentences for people, JSON for machines. Decides nothing but whether anything is wrong."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from tests.night.compare import Comparison, Finding
from tests.night.faults import BROKER, EVENTS_TOPIC, LOGS, ROLES, SPARK
from tests.night.watch import Memory

BEFORE_MS = 30_000
"""So long before a finding is told what had been done."""

SHOWN_MAX = 40
"""Findings that are written out; JSON has all."""


@dataclass(frozen=True)
class Result:
    """Everything that a night showed."""

    seed: int
    minutes: float
    version: str
    server_log_followed: bool
    brokers: int
    spared: Sequence[str]
    engine: str
    done: Sequence[Mapping[str, Any]]
    comparison: Comparison
    memory: Sequence[Memory]
    log_bytes: Mapping[str, int]
    hours: float
    faults: Sequence[str]
    """What is wrong with the roles themselves: dead at the end, too large, too talkative, left behind."""

    @property
    def wrong(self) -> bool:
        """Whether anything is."""
        return bool(self.faults or self.comparison.findings)

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        findings = [asdict(one) | {"before": self.before(one)} for one in self.comparison.findings]
        kept = {
            name: getattr(self, name)
            for name in ("seed", "minutes", "version", "brokers", "spared", "engine", "server_log_followed", "hours")
        }
        return kept | {
            "wrong": self.wrong,
            "faults": list(self.faults),
            "findings": findings,
            "counts": dict(self.comparison.counts),
            "exact_instants_off_ms": _spread(self.comparison.errors_ms),
            "memory": [asdict(one) for one in self.memory],
            "log_bytes": dict(self.log_bytes),
            "done": [dict(one) for one in self.done],
        }

    def before(self, finding: Finding) -> list[str]:
        """What had been done shortly before, and at most 3 s after, what a finding is about."""
        return [
            f"{clock(one['at_ms'])} {one['what']} {one['whom']}"
            for one in self.done
            if finding.at_ms - BEFORE_MS <= one["at_ms"] <= finding.at_ms + 3_000
        ]

    def sentences(self) -> list[str]:
        """For people; the last line says what came of it."""
        lines = [f"Done to broker, roles and consumers: {_counted(self.done)}."]
        lines += [f"{name}: {count}" for name, count in sorted(self.comparison.counts.items())]
        off = _spread(self.comparison.errors_ms)
        if off:
            lines.append(
                f"{off['count']} instants said to be exact: outside of what was said by {off['median']:g} ms in the "
                f"median, {off['p99']:g} ms in 99 %, {off['max']:g} ms at most."
            )
        for one in self.memory:
            growth = "" if one.growth_mb_per_hour is None else f", growing by {one.growth_mb_per_hour:.0f} MB per hour"
            lines.append(f"Memory of {one.role}: at most {one.most_mb:.0f} MB in {one.lives} lives{growth}.")
        sizes = ", ".join(f"{name} {size / 1_000:.0f} kB" for name, size in self.log_bytes.items())
        lines.append(f"Logs after {self.hours:.2f} h: {sizes}.")
        for finding in self.comparison.findings[:SHOWN_MAX]:
            lines.append(f"{clock(finding.at_ms)} {finding.what}: group {finding.group_id}: {finding.told}")
            lines.append(f"    before: {'; '.join(self.before(finding)) or 'nothing'}")
        if len(self.comparison.findings) > SHOWN_MAX:
            lines.append(f"... and {len(self.comparison.findings) - SHOWN_MAX} findings more.")
        lines += list(self.faults)
        again = f"python -m tests.night --seed {self.seed} --minutes {self.minutes:g} --kafka {self.version}"
        again += "" if self.brokers == 1 else f" --brokers {self.brokers}"
        again += "" if self.server_log_followed else " --without-server-log"
        again += "" if self.engine == SPARK else f" --engine {self.engine}"
        again += "".join(f" --spare {role}" for role in self.spared)
        count = len(self.faults) + len(self.comparison.findings)
        said = f"{count} things are wrong" if count else "Nothing is wrong"
        return [*lines, f"{said}. To play it again: {again}"]


def clock(at_ms: int) -> str:
    """Time of day, UTC."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]


def _counted(done: Sequence[Mapping[str, Any]]) -> str:
    kinds: dict[str, int] = {}
    roles = (BROKER, EVENTS_TOPIC, *LOGS, *ROLES)
    for one in done:
        name = f"{one['what']} {one['whom'] if one['whom'] in roles else 'consumer'}"
        kinds[name] = kinds.get(name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in sorted(kinds.items())) or "nothing"


def _spread(errors_ms: Sequence[int]) -> dict[str, float]:
    if not errors_ms:
        return {}
    ranked = sorted(errors_ms)
    p99 = ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]
    return {"count": len(ranked), "median": statistics.median(ranked), "p99": p99, "max": ranked[-1]}
