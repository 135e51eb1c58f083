"""Saves the whole state of an observer as plain values, and makes an observer of them again.

What is kept under its own name is a table with the types that it is read back as. The rest is said in place: groups
bring an index with them, the lives in a group bring their ids, sources belong to streams, and what waits is held in two
forms.

A release reads what the one before has kept. What is not there (a name, or the end of an array) is as in a new
observer: each field that is added has a default, and in a `Compact` or a named tuple it comes after those before. What
takes more is a step of `spark_jobs.checkpoint.state_codec`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from kardia.events import Event
from kardia.kafka.sessions import Coordinator
from kardia.observe.facts.groups_of_lane import Timer
from kardia.observe.intake.each_once import COUNTS, Intake, Stream
from kardia.observe.modern.session_length import DEFAULT_MS
from kardia.observe.state.compact import Compact
from kardia.observe.state.entries import Elected, Loading, Silence, Unjudged
from kardia.observe.state.group import Ended, Group, Member

KEPT: dict[str, Any] = {
    "coordinator": Coordinator,
    "coordinator_known": bool,
    "timers": dict[str, list[Timer]],
    "told_session_ms": dict[str, int],
    "told_group_session_ms": dict[str, dict[str, int]],
    "logged_session_ms": dict[str, dict[str, int]],
    "shown_session_ms": dict[str, dict[str, int]],
    "shared_session_ms": dict[str, dict[str, int]],
    "loading": dict[str, Loading],
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
    "process_known_from": dict[str, float],
    "asked_from": dict[str, float],
    "restarted_at": dict[str, float],
    "blind_to": dict[str, float],
    "unlogged_since": dict[str, float],
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

OF_STREAM = (
    *("complete_to", "alive_to", "since_tick", "begins_at", "ends_at", "heard_from", "usual_gap_ms"),
    *("gap_from", "gap_to"),
)
"""Attributes of a `Stream` that are kept beside `COUNTS`, which no row of `progress` has told yet."""


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
        [_stored_field(at) for at in msgspec.structs.fields(Group)],
        bases=(Compact,),
    )
    return msgspec.msgpack.Decoder(list[stored]).decode  # type: ignore[valid-type]


def _stored_field(at: msgspec.structs.FieldInfo) -> Any:
    """Name, type and default of a field of a group, as it is stored."""
    if at.name in _IDS:
        return at.name, _IDS[at.name][0], msgspec.field(default_factory=list)
    if at.default_factory is not msgspec.NODEFAULT:
        return at.name, at.type, msgspec.field(default_factory=at.default_factory)
    return (at.name, at.type) if at.required else (at.name, at.type, at.default)


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
        "sources": {
            name: {"end": at.end, "tick_end": at.tick_end, "since_tick": at.since_tick}
            for name, at in intake.sources.items()
        },
        "streams": {
            name: {field: getattr(stream, field) for field in (*OF_STREAM, *COUNTS)}
            for name, stream in intake.streams.items()
        },
        "slow": {broker: list(windows.values()) for broker, windows in intake.slow.items()},
        "queues": queues,
    }


def restore(intake: Intake, state: dict[str, Any]) -> None:
    """Give a new observer what a snapshot holds. What is none is refused: something in it is not there, or does not
    have the shape of what it is to become (KeyError, ValueError, TypeError, `msgspec.DecodeError`)."""
    for group in map(_restored, _decode_groups()(state["groups"])):
        intake.groups[group.group_id] = group
        for member in group.members.values():
            intake.index(group, member)
            own, modern = member.modern, group.modern
            assumed = own is not None and not own.classic and modern is not None and not modern.session_from
            if own is not None and assumed and member.session_ms == DEFAULT_MS:
                own.session_assumed = True  # states of before do not say it
        intake.samples.restore(group)
    for name, kind in KEPT.items():
        if name in state:
            setattr(intake, name, msgspec.convert(state[name], kind))
    intake.disagreed |= state["disagreed"]
    intake.lag.restore(state["lag"])
    for broker, queue in state["queues"].items():
        intake.queues[broker] = [(at, Event(*event)) for at, event in queue]
    for name, kept in state["streams"].items():
        stream = intake.streams[name] = Stream(alive_to=kept["alive_to"])
        for field, value in kept.items():
            setattr(stream, field, value)
    for name, source in state["sources"].items():
        intake.new_source(name, **source)
    for broker, windows in state["slow"].items():
        intake.note_slow(broker, windows)
