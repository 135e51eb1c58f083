"""A step of a lane that no event can stop: an ordinary one, and, only when that raises, a careful one. Pure.

The ordinary step costs nothing more. When it raises, its observer is thrown away, because it is half changed; the state
before the step is taken from whoever keeps it (the state store of the live job, or the worker of a replay that is run
again with care), and `kardia.observe.careful` leaves out what cannot be applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kardia.events import Event
from kardia.observe.careful import Careful, run_of, step_with_care
from kardia.stretches import Stretch
from spark_jobs.errors import NotAppliedError
from spark_jobs.lane_model import LaneModel, ModelFactory, ObserverFactory, Rows

NEW = b""
"""State of a lane that has seen nothing."""

Before = Callable[[], bytes]
"""Gives the state before a step, as `kept` made it."""


def kept(model: LaneModel) -> bytes:
    """The state of a model, apart from it: a snapshot shares its lists with the model."""
    return msgspec.msgpack.encode(model.snapshot())


def step(
    model: LaneModel,
    factory: ModelFactory,
    lane: int,
    events: list[Event],
    stretches: Sequence[Stretch] = (),
    *,
    finish: bool = False,
    before: Before | None = None,
) -> tuple[LaneModel, Rows]:
    """Step a model: what goes on from here, and the rows. Without `before`, what raises is a `NotAppliedError`."""
    try:
        rows = model.step(events, stretches)
        if finish:
            last = model.finish()
            rows = {name: [*rows.get(name, ()), *last.get(name, ())] for name in rows.keys() | last.keys()}
        return model, rows
    except Exception as error:
        if before is None or not isinstance(factory, ObserverFactory):
            raise not_applied(lane, error) from error
        state = before()
        careful, rows = step_with_care(lambda: _careful(factory, lane, state), run_of(events, stretches, finish=finish))
        restored = factory.restore(lane, msgspec.msgpack.decode(kept(careful)))
        restored.files_forgotten = careful.files_forgotten
        return restored, rows


def _careful(factory: ObserverFactory, lane: int, state: bytes) -> Careful:
    return factory.careful(lane, None if state == NEW else msgspec.msgpack.decode(state))


def not_applied(lane: int, error: Exception) -> NotAppliedError:
    """What a step raised, as an error of the job."""
    return NotAppliedError(
        f"an event could not be applied: {type(error).__name__}: {error}",
        f"lane {lane}",
        "events that the observer can apply",
        "this is a defect of Kardia: report it with the lines around the event",
    )


def snapshot_of(value: Any) -> bytes:
    """A snapshot that was read from the state store, as `kept` gives one."""
    return msgspec.msgpack.encode(value)
