"""What is known of one broker, or one cluster of brokers of a release, for all groups that are followed there.

Its settings are found by the value that explains all answers; how its release answers is told from it beforehand.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field

from kardia.coordinator.classic.behaviour import Behaviour, behaviour_of
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.follow.surprises import Rules

SETTLED = 3
"""So many phases must have shown the initial delay before another value is no longer tried."""

PROPERTIES = {
    "initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "group_min_session_timeout_ms": "group.min.session.timeout.ms",
    "group_max_session_timeout_ms": "group.max.session.timeout.ms",
    "group_max_size": "group.max.size",
}
"""Settings that are found -> the broker's names for them."""

EXACTLY = "initial_rebalance_delay_ms"
"""The one setting of which answers show the value; of the others they show that it is so much at least, or at most."""

ASSUMED = CoordinatorSettings(appends_take_time=True)
"""Kafka's defaults, until answers show otherwise; records are stored when answers show that they are."""


@dataclass
class Broker:
    """Shared by the followers of its groups."""

    kafka_version: str
    settings: CoordinatorSettings = ASSUMED
    rules: Rules = field(default_factory=Rules)
    shown: Counter[str] = field(default_factory=Counter)
    """Setting -> how many answers have shown its value."""
    refuted: set[tuple[str, int]] = field(default_factory=set)
    """Settings with values that answers have shown to be untrue."""
    traces: int = 0
    """How many surprises were written as a trace."""
    silences: list[tuple[float, float]] = field(default_factory=list)
    """When its log was silent, for longer than any log of a broker that is well."""

    def __post_init__(self) -> None:
        self.behaviour: Behaviour = behaviour_of(self.kafka_version)

    def is_settled(self, setting: str) -> bool:
        """Whether so many answers have shown a setting that it is not tried with another value."""
        return self.shown[setting] >= SETTLED

    def found(self) -> dict[str, int]:
        """Property -> value, of those that answers have shown."""
        return {
            name: getattr(self.settings, setting) for setting, name in PROPERTIES.items() if self.shown[setting] > 0
        }

    def shown_as(self, name: str) -> str:
        """Whether answers have shown that a property is `=` its value in `found`, `<=` or `>=` it: a session timeout
        that was accepted, or was not, is a bound."""
        setting = next(one for one, known in PROPERTIES.items() if known == name)
        if setting == EXACTLY:
            return "="
        return "<=" if getattr(self.settings, setting) < getattr(ASSUMED, setting) else ">="

    def fits(self, name: str, value: int) -> bool:
        """Whether a property may have a value, by what answers have shown."""
        shown = self.found()[name]
        return {"=": value == shown, "<=": value <= shown, ">=": value >= shown}[self.shown_as(name)]

    def learn(self, settings: CoordinatorSettings) -> None:
        """Answers have shown other values than were assumed."""
        for setting in PROPERTIES:
            value = getattr(settings, setting)
            if value != getattr(self.settings, setting):
                self.refuted.add((setting, getattr(self.settings, setting)))
                self.settings = self.settings._replace(**{setting: value})
                self.shown[setting] = 1

    def refuted_values(self, setting: str) -> frozenset[int]:
        """Values that a setting does not have."""
        return frozenset(value for name, value in self.refuted if name == setting)

    def was_silent(self, from_ms: float, to_ms: float) -> None:
        """Nothing was logged between two lines."""
        if (from_ms, to_ms) not in self.silences:
            insort(self.silences, (from_ms, to_ms))
            del self.silences[:-64]

    def silent(self, from_ms: float, to_ms: float) -> list[tuple[int, int]]:
        """Its silences that ended in a stretch."""
        return [(int(begin), int(end)) for begin, end in self.silences if from_ms <= end <= to_ms]

    def stood_ms(self, from_ms: float, to_ms: float) -> int:
        """For how long its log was silent at most, within a stretch."""
        place = bisect_right(self.silences, (to_ms, to_ms))
        return int(
            max((end - begin for begin, end in self.silences[max(place - 4, 0) : place] if end >= from_ms), default=0)
        )
