"""What the job needs of an observer: the methods of `kardia.observe.Observer`. The benchmarks put one in its place that
does nothing.

A factory travels to Spark's workers and to the processes of replay by pickle, so it holds settings, never an observer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kardia.events import Event
from kardia.stretches import Stretch
from kardia.tables import Row

if TYPE_CHECKING:
    from kardia.follow.self_test import SelfTest
    from kardia.observe import ObserverSettings
    from kardia.observe.careful import Careful

Rows = Mapping[str, Sequence[Row]]
"""Rows per live table."""


class LaneModel(Protocol):
    """The model of one lane."""

    files_forgotten: int
    """Files of rotated logs whose positions were forgotten in the last step; a repeat of theirs would count anew."""

    def step(self, events: list[Event], stretches: Sequence[Stretch] = (), /) -> Rows:
        """Take the events of one batch, folded or not, give the rows they cause."""

    def finish(self) -> Rows:
        """Take that no more input will come; give the rows still held."""

    def snapshot(self) -> Any:
        """Give everything it remembers as plain values."""


class ModelFactory(Protocol):
    """Makes the model of a lane, new or from what a snapshot remembers."""

    def new(self, lane: int) -> LaneModel:
        """Make the model of a lane that has seen nothing."""

    def restore(self, lane: int, state: Any) -> LaneModel:
        """Make the model a snapshot was taken of."""

    def self_test(self) -> SelfTest | None:
        """Make what is put beside the model of a lane to test its release; None without."""


@dataclass(frozen=True)
class ObserverFactory:
    """The factory of production."""

    settings: ObserverSettings
    tests_itself: bool = False

    def self_test(self) -> SelfTest | None:
        """Make what puts the classic requests of a lane to the model of their release."""
        if not self.tests_itself:
            return None
        from kardia.follow.self_test import SelfTest

        return SelfTest(self.settings.cluster_id, self.settings.kafka_version)

    def new(self, lane: int) -> LaneModel:
        """Make an observer that has seen nothing."""
        from kardia.observe import Observer

        return Observer(self.settings, lane=lane)

    def restore(self, lane: int, state: Any) -> LaneModel:
        """Make the observer a snapshot was taken of."""
        from kardia.observe import Observer

        return Observer.restore(self.settings, lane, state)

    def regrouped(self, states: Sequence[Any], lanes: int, *, accept_loss: bool) -> list[LaneModel]:
        """Make the observers of another number of lanes of the snapshots of all. `UnevenError` if they do not fit."""
        from kardia.observe import Observer
        from kardia.observe.lanes import regrouped

        before = [Observer.restore(self.settings, lane, state) for lane, state in enumerate(states)]
        return list(regrouped(before, self.settings, lanes, accept_loss=accept_loss))

    def careful(self, lane: int, state: Any) -> Careful:
        """Make the observer that names what cannot be applied; `state` None: of a lane that has seen nothing."""
        from kardia.observe.careful import Careful

        if state is None:
            return Careful(self.settings, lane)
        return Careful.restore(self.settings, lane, state)
