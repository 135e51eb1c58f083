"""Saves the whole state of an observer as plain values, and makes an observer of them again.

What is kept under its own name is a table with the types that it is read back as. The rest is said in place: groups
bring an index with them, the lives in a group bring their ids, sources belong to streams, and what waits is held in two
forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from kardia.events import Event
from kardia.kafka.sessions import Coordinator
from kardia.observe.facts.facts import Timer
from kardia.observe.intake.intake import COUNTS, Intake, Stream
from kardia.observe.state.compact import Compact
from kardia.observe.state.entries import Elected, Silence, Unjudged
from kardia.observe.state.group import Ended, Group, Member

KEPT: dict[str, Any] = {
    "coordinator": Coordinator,
    "coordinator_known": bool,
    "timers": dict[str, list[Timer]],
    "told_session_ms": dict[str, int],
    "told_group_session_ms": dict[str, dict[str, int]],
    "began_at": float,
    "known": float,
    "has_forgotten": bool,
    "empty_since": dict[str, float],
    "deleted_since": dict[str, float],
    "silences": dict[str, list[Silence]],
    "unjudged": dict[str, list[Unjudged]],
    "outlived": dict[str, list[Silence]],
    "pauses": dict[str, list[Silence]],
    "doubted": dict[str, Silence],
    "elected": dict[str, Elected],
    "restarted_at": dict[str, float],
    "blind_to": dict[str, float],
    "last_sign_at": dict[str, float],
    "queued": dict[str, list[float]],
    "samples_left": float,
    "sampled_at": float,
    "late": int,
    "divergences": int,
    "not_modelled": int,
    "forgotten": int,
}
"""Attribute of an observer -> its type."""


_IDS: dict[str, tuple[Any, Callable[[Any], str]]] = {
    "members": (list[Member], attrgetter("member_id")),
    "ended": (list[Ended], attrgetter("member.member_id")),
}
"""Field of a group that is stored without its keys: they stand in the values already, and are long."""

_PLACES = [(place, _IDS[name][1]) for place, name in enumerate(Group.__struct_fields__) if name in _IDS]
_encoder = msgspec.msgpack.Encoder()


@cache
def _decode_groups() -> Callable[[bytes], list[Any]]:
    """Made when the first snapshot is read: whoever reads none, as a replay, need not wait for it."""
    stored = msgspec.defstruct(
        "StoredGroup",
        [(at.name, _IDS[at.name][0] if at.name in _IDS else at.type) for at in msgspec.structs.fields(Group)],
        bases=(Compact,),
    )
    return msgspec.msgpack.Decoder(list[stored]).decode  # type: ignore[valid-type]


def _stored(group: Group) -> list[Any]:
    values = list(msgspec.structs.astuple(group))
    for place, _ in _PLACES:
        values[place] = list(values[place].values())
    return values


def _restored(stored: Any) -> Group:
    values = list(msgspec.structs.astuple(stored))
    for place, id_of in _PLACES:
        values[place] = {id_of(value): value for value in values[place]}
    return Group(*values)


def snapshot(intake: Intake) -> dict[str, Any]:
    """Everything held, as plain values: lists, dictionaries, strings, numbers; groups, which are nearly all of it, as
    the bytes of them. It shares its lists with the observer."""
    queues = {broker: [[at, list(event)] for at, event in queue] for broker, queue in intake.queues.items()}
    for broker, event in intake.held.events():
        queues[broker].append([event.decided_at_ms, list(event)])
    return {name: getattr(intake, name) for name in KEPT} | {
        "groups": _encoder.encode([_stored(group) for group in intake.groups.values()]),
        "disagreed": intake.disagreed,
        "lag": intake.lag.snapshot(),
        "sources": {name: [source.end, source.tick_end] for name, source in intake.sources.items()},
        "streams": {
            name: [
                stream.complete_to,
                stream.alive_to,
                stream.since_tick,
                stream.begins_at,
                stream.ends_at,
                stream.heard_from,
                stream.usual_gap_ms,
                stream.untold(),
            ]
            for name, stream in intake.streams.items()
        },
        "slow": {broker: list(windows.values()) for broker, windows in intake.slow.items()},
        "queues": queues,
    }


def restore(intake: Intake, state: dict[str, Any]) -> None:
    """Give a new observer what a snapshot holds. One of another version is refused: something in it is not there, or
    does not have the shape of what it is to become (KeyError, ValueError, TypeError, `msgspec.DecodeError`)."""
    for group in map(_restored, _decode_groups()(state["groups"])):
        intake.groups[group.group_id] = group
        for member in group.members.values():
            intake.index(group, member)
        intake.samples.restore(group)
    for name, kind in KEPT.items():
        setattr(intake, name, msgspec.convert(state[name], kind))
    intake.disagreed |= state["disagreed"]
    intake.lag.restore(state["lag"])
    for broker, queue in state["queues"].items():
        intake.queues[broker] = [(at, Event(*event)) for at, event in queue]
    for name, (complete_to, alive_to, since_tick, begins_at, ends_at, heard_from, gap_ms, untold) in state[
        "streams"
    ].items():
        stream = intake.streams[name] = Stream(complete_to, alive_to, since_tick)
        stream.begins_at, stream.ends_at, stream.usual_gap_ms = begins_at, ends_at, gap_ms
        stream.heard_from = heard_from
        for count, value in zip(COUNTS, untold, strict=True):
            setattr(stream, count, value)
        stream.touched = bool(stream.touched)
    for name, (end, tick_end) in state["sources"].items():
        intake.new_source(name, end, tick_end)
    for broker, windows in state["slow"].items():
        intake.note_slow(broker, windows)
