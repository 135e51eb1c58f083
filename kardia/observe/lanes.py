"""Observers of so many lanes, made into observers of another number: every group whole, in the lane of its shard.

Possible where all lanes have read the same of every log and no silence of a broker waits to be judged; anything else is
an `UnevenError`. What is known of a group goes with it. What is known of a broker, from whatever lane, goes into all:
every silence that any of them still holds against a deadline, and what any of them has seen the broker outlive. So
nothing is said more surely than before, except where another lane had the evidence. Reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify
from typing import NamedTuple, TypeVar

from kardia.events import ALL_SHARDS, Event, Kind, broker_of, lane_of
from kardia.instants import to_rfc3339
from kardia.lag import lanes as lag_lanes
from kardia.observe.intake.each_once import COUNTS, Stream
from kardia.observe.observer import Observer
from kardia.observe.state.entries import Elected, Silence
from kardia.observe.state.group import NEVER
from kardia.observe.state.settings import ObserverSettings
from kardia.tolerances import JUDGED_WITHIN_MS

NAMED = 3
"""Differences of lanes that a refusal names."""

K = TypeVar("K")
V = TypeVar("V")


class UnevenError(ValueError):
    """The lanes are not at one point; the text says where they differ."""


class Uneven(NamedTuple):
    """What is not known in every lane of a time of a log."""

    what: str
    stream: str
    """BROKER/STREAM."""
    from_ms: float
    to_ms: float


def regrouped(
    before: Sequence[Observer], settings: ObserverSettings, lanes: int, *, accept_loss: bool = False
) -> list[Observer]:
    """New observers, `lanes` of them, that go on where those before stand; these must not be used any more.

    Raises an `UnevenError` where those before are not at one point. With `accept_loss` what they differ in is a gap:
    every group is unknown across it.
    """
    found = uneven(before)
    if found and not accept_loss:
        raise UnevenError("; ".join(one.what for one in found[:NAMED]))
    made = [Observer(settings, lane) for lane in range(lanes)]
    for observer in made:
        _take_brokers(observer, before)
        _take_sources(observer, before)
    for old in before:
        _give_groups(old, made)
        _give_queues(old, made)
    for observer in made:
        for one in found:
            _lose(observer, one)
        for timers in observer.timers.values():
            heapify(timers)
        for kept in (observer.empty_since, observer.deleted_since):
            left = sorted(kept.items(), key=lambda one: one[1])  # whoever was left longest is forgotten first
            kept.clear()
            kept.update(left)
    _take_counts(made[0], before)
    books = lag_lanes.regrouped([old.lag.snapshot() for old in before], lanes)
    for observer, book in zip(made, books, strict=True):
        observer.lag.restore(book)
    return made


def uneven(lanes: Sequence[Observer]) -> list[Uneven]:
    """Where lanes are not at one point.

    A log is read to the same instant in all of them: a collector that was stopped in order has sent each lane its last
    tick. And no silence of a broker waits for a sign of whether it was restarted, which each lane looks for by itself.
    """
    found = []
    for name in sorted({name for lane in lanes for name in lane.streams}):
        ends = [lane.streams[name].complete_to if name in lane.streams else NEVER for lane in lanes]
        if max(ends) >= 0 and min(ends) != max(ends):
            behind = ends.index(min(ends))
            said = f"{name} is read to {_text(max(ends))}, in lane {behind} to {_text(min(ends))}"
            found.append(Uneven(said, name, max(0.0, min(ends)), max(ends)))
    silent: dict[str, Uneven] = {}
    for lane in lanes:
        for broker, pending in lane.unjudged.items():
            now = lane.clock_of(broker)
            for silence in pending:
                if now <= silence.end_at_ms + JUDGED_WITHIN_MS:
                    said = (
                        f"the log of {broker} was silent until {_text(silence.end_at_ms)}, and for "
                        f"{JUDGED_WITHIN_MS / 1_000:.0f} s more it may show that the broker was restarted"
                    )
                    silent[broker] = Uneven(said, f"{broker}/request", silence.begin_at_ms, now)
    return [*found, *silent.values()]


def _text(at_ms: float) -> str:
    return to_rfc3339(at_ms) or "nothing"


def _lose(observer: Observer, lost: Uneven) -> None:
    """Have a gap wait for its time, as one that a collector tells: it counts from its begin, and at its end."""
    at = lost.to_ms
    detail = {"from_ms": lost.from_ms, "to_ms": at, "reason": "topic_lost"}
    names = [name for name, source in observer.sources.items() if source.stream is observer.streams.get(lost.stream)]
    name = names[-1] if names else f"{lost.stream}/"
    gap = Event(int(Kind.GAP), ALL_SHARDS, name, 0, 0, at, at, at, at, detail=detail)
    observer.streams[lost.stream].gaps += observer.lane == 0
    observer.streams[lost.stream].note_gap_of(lost.from_ms, at)
    observer.queues[broker_of(name)] += [(lost.from_ms, gap), (at, gap)]


def _take_brokers(observer: Observer, before: Sequence[Observer]) -> None:
    """What is known of brokers, and of the cluster as a whole."""
    observer.coordinator_known = any(old.coordinator_known for old in before)
    known = [old.coordinator for old in before if old.coordinator_known]
    observer.coordinator = known[0] if known else observer.coordinator
    for name in ("silences", "outlived", "pauses", "unjudged", "queued"):
        setattr(observer, name, _joined(getattr(old, name) for old in before))
    elections: Iterable[Mapping[str, Elected]] = (old.elected for old in before)
    observer.elected = _best(elections, lambda one, other: one if one.epoch >= other.epoch else other)
    observer.restarted_at = _latest(old.restarted_at for old in before)
    observer.blind_to = _latest(old.blind_to for old in before)
    observer.unlogged_since = _latest(old.unlogged_since for old in before)
    observer.last_sign_at = _latest(old.last_sign_at for old in before)
    observer.take_clocks(_latest(old.clocks() for old in before))
    doubted: Iterable[Mapping[str, Silence]] = (old.doubted for old in before)
    observer.doubted = _best(doubted, lambda one, other: one if one.end_at_ms >= other.end_at_ms else other)
    for broker, silences in observer.outlived.items():
        # One lane saw the same process go on, another that it was restarted: then nothing is sure of it.
        restarted_at = observer.restarted_at.get(broker, NEVER)
        observer.outlived[broker] = [one for one in silences if one.end_at_ms != restarted_at]
    for old in before:
        for broker, windows in old.slow.items():
            observer.note_slow(broker, list(windows.values()))
        observer.told_session_ms |= old.told_session_ms
        observer.told_group_session_ms |= old.told_group_session_ms
        observer.logged_session_ms |= old.logged_session_ms
        observer.shown_session_ms |= old.shown_session_ms
        for broker in old.timers:
            observer.timers.setdefault(broker, [])
    observer.began_at = min((old.began_at for old in before if old.began_at >= 0), default=NEVER)
    observer.has_forgotten = any(old.has_forgotten for old in before)
    observer.known = max(old.known for old in before)
    observer.sampled_at = max(old.sampled_at for old in before)
    observer.samples_left = min(old.samples_left for old in before)


def _take_sources(observer: Observer, before: Sequence[Observer]) -> None:
    """How far every file is read: all that lies before the last tick has come to the lane that it is for."""
    for old in before:
        for name, stream in old.streams.items():
            found = observer.streams.setdefault(name, Stream())
            found.complete_to = max(found.complete_to, stream.complete_to)
            found.alive_to = max(found.alive_to, stream.alive_to)
            found.last_line_at = max(found.last_line_at, stream.last_line_at)
            found.since_tick = max(found.since_tick, stream.since_tick)
            found.begins_at = max(found.begins_at, stream.begins_at)
            found.heard_from = max(found.heard_from, stream.heard_from)
            found.ends_at = max(found.ends_at, stream.ends_at)
            found.usual_gap_ms = max(found.usual_gap_ms, stream.usual_gap_ms)
        for broker in old.queues:
            observer.queues.setdefault(broker, [])
    for old in before:
        for name, source in old.sources.items():
            known = observer.sources.get(name) or observer.new_source(name)
            known.base = known.end = max(known.end, source.end)
            known.tick_end = max(known.tick_end, source.tick_end)
            known.since_tick = max(known.since_tick, source.since_tick)


def _give_groups(old: Observer, made: Sequence[Observer]) -> None:
    """Groups of a lane, with their timers and what else is kept by group or shard."""
    place = {group_id: lane_of(group.shard, len(made)) for group_id, group in old.groups.items()}
    for shard, session_ms in old.shared_session_ms.items():
        made[lane_of(int(shard), len(made))].shared_session_ms[shard] = session_ms
    for group_id, loading in old.loading.items():
        made[lane_of(loading.shard, len(made))].loading[group_id] = loading
    for group_id, group in old.groups.items():
        made[place[group_id]].groups[group_id] = group
    for broker, timers in old.timers.items():
        for timer in timers:
            if timer[1] in place:
                made[place[timer[1]]].timers[broker].append(timer)
    for group_id in old.awaiting & place.keys():
        made[place[group_id]].awaiting.add(group_id)
    for name in ("empty_since", "deleted_since"):
        for group_id, at in getattr(old, name).items():
            getattr(made[place[group_id]], name)[group_id] = at


def _give_queues(old: Observer, made: Sequence[Observer]) -> None:
    """What waits for the clocks."""
    for broker, queue in old.queues.items():
        for at, event in queue:
            for observer in made if event.shard == ALL_SHARDS else [made[lane_of(event.shard, len(made))]]:
                _queue(observer.queues[broker], at, event)


def _queue(queue: list[tuple[float, Event]], at: float, event: Event) -> None:
    """Have an event wait, once: what is for all lanes waits in each of those before."""
    if event.shard != ALL_SHARDS or (at, event) not in queue:
        queue.append((at, event))


def _take_counts(observer: Observer, before: Sequence[Observer]) -> None:
    """What no row of `progress` has told yet, once."""
    for old in before:
        for name in ("late", "divergences", "not_modelled", "forgotten"):
            setattr(observer, name, getattr(observer, name) + getattr(old, name))
        for kind, count in old.disagreed.items():
            observer.disagreed[kind] += count
        for name, stream in old.streams.items():
            for count_name in COUNTS:
                found = observer.streams[name]
                setattr(found, count_name, getattr(found, count_name) + getattr(stream, count_name))
            observer.streams[name].note_gap_of(stream.gap_from, stream.gap_to)
    for stream in observer.streams.values():
        stream.touched = bool(stream.touched)


def _joined(found: Iterable[Mapping[str, list[V]]]) -> dict[str, list[V]]:
    """Everything that any lane has in its lists, once, in the order of its instants."""
    joined: dict[str, dict[V, None]] = {}
    for one in found:
        for broker, values in one.items():
            joined.setdefault(broker, {}).update(dict.fromkeys(values))
    return {broker: sorted(values) for broker, values in joined.items()}  # type: ignore[type-var]


def _latest(found: Iterable[Mapping[K, float]]) -> dict[K, float]:
    return _best(found, max)


def _best(found: Iterable[Mapping[K, V]], choose: Callable[[V, V], V]) -> dict[K, V]:
    best: dict[K, V] = {}
    for one in found:
        for key, value in one.items():
            best[key] = choose(best[key], value) if key in best else value
    return best
