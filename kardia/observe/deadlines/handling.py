"""Between which instants a request took effect, where the line tells when it was handled and when it was answered.

The Scala coordinator does what is asked for in the handler's thread: between arrival and the end of the handling. The
Java coordinator does it in a thread of its own, which may be busy with another append: between arrival and answer, and
what writes a record is answered only when that is stored. Mostly all of this is an instant. Arithmetic only.
Sources: `KafkaApis`, `CoordinatorRuntime.scheduleWriteOperation`.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.kafka.sessions import Coordinator
from kardia.observe.state.entries import HeardLate
from kardia.tolerances import AT_ONCE_MS, LATE_MS, STAMP_MS


def taken_at(event: Event) -> float:
    """When a handler took a request: it arrived so much earlier as it stood in the queue, which few say."""
    detail = event.detail
    return event.arrived_at_ms if not detail else event.arrived_at_ms + float(detail.get("queued_ms", 0.0))


def was_slow(taken_at_ms: float, handled_at_ms: float) -> bool:
    """Whether a broker took so long to handle a request that it is not sure when it took effect."""
    return handled_at_ms - taken_at_ms > AT_ONCE_MS - STAMP_MS


def is_late(taken_at_ms: float, handled_at_ms: float, decided_at_ms: float) -> bool:
    """Whether a heartbeat was handled or answered so late that it is not sure when it took effect."""
    return was_slow(taken_at_ms, handled_at_ms) or decided_at_ms - handled_at_ms > AT_ONCE_MS - STAMP_MS


def heard_at(taken_at_ms: float, handled_at_ms: float, decided_at_ms: float) -> float:
    """What counts as when a heartbeat took effect. A Java coordinator that was busy takes it late: 6.9 and 7.9 ms in
    recordings, and the session ran from the answer. One that takes it at once answers when that is stored which was
    written before, which may last for seconds. Within ms nothing shows which of the two it was (`heard_late`)."""
    if was_slow(taken_at_ms, handled_at_ms):
        return taken_at_ms
    return handled_at_ms if is_late(taken_at_ms, handled_at_ms, decided_at_ms) else decided_at_ms


def heard_late(taken_at_ms: float, handled_at_ms: float, decided_at_ms: float) -> HeardLate | None:
    """Between which instants a heartbeat renewed; None where that is one, or where its answer waited for so long that
    it is in doubt that it did."""
    since = taken_at_ms if was_slow(taken_at_ms, handled_at_ms) else handled_at_ms
    if decided_at_ms - since <= STAMP_MS or decided_at_ms - handled_at_ms > AT_ONCE_MS - STAMP_MS:
        return None
    return HeardLate(since, decided_at_ms)


def took_effect(event: Event, coordinator: Coordinator, *, waited: bool = False) -> tuple[float, float | None]:
    """The earliest instant at which a request took effect, and the latest: None where that is the same. `waited`: its
    answer had to wait for others, as in a rebalance, and tells no more than that; where the handler was slow, the
    coordinator's own thread may have been slower, as much as a timer may be late."""
    slow = event.handled_at_ms - event.arrived_at_ms > AT_ONCE_MS
    taken_at_ms = taken_at(event)
    begun_at_ms = taken_at_ms if event.handled_at_ms - taken_at_ms > AT_ONCE_MS else event.handled_at_ms
    done_at = event.handled_at_ms
    if coordinator is Coordinator.JAVA and (slow or not waited):
        done_at = max(done_at, event.decided_at_ms)
        done_at = min(done_at, event.handled_at_ms + LATE_MS) if waited else done_at
    if done_at - begun_at_ms <= AT_ONCE_MS:
        return event.handled_at_ms, None
    return begun_at_ms, done_at


def told_between(event: Event) -> tuple[float, float | None]:
    """Between which instants that happened which an answer that waited tells of; the second None where that is one. The
    answer is made by another thread than what it tells of, and after it. A broker that sends it late was late to make
    it, by no more than that in every recording: 22 ms of 51, 11 of 35, and nothing of 2."""
    sent_after_ms = event.logged_at_ms - event.decided_at_ms
    if sent_after_ms <= AT_ONCE_MS:
        return event.decided_at_ms, None
    return event.decided_at_ms - sent_after_ms, event.decided_at_ms
