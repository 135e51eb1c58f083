"""Which rules a group follows: those of its requests where they are read, else those of sentences and records.

Decided by broker: a request log shows the groups that its broker leads. Records of `__consumer_offsets` of a group that
no broker has spoken of follow its requests if any request log is read at all. A stream of requests that begins to be
read later takes its groups over from there on; what was said before stands. Where one ends and server.log goes on, the
sentences take them over. Samples of the admin API count where neither requests nor records are read. Groups of the
newer protocols follow `modern`, whose records say nearly everything.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.evidence import offsets, records, restarts
from kardia.observe.facts.groups_of_lane import BESIDE_LOGS, Facts
from kardia.observe.modern import operations, session_length, sessions
from kardia.observe.sentences import epochs, lines, sampled, stored, told_begin
from kardia.observe.timers import expiry

_LOADS = frozenset({"group_loaded", "member_loaded", "epoch_group_loaded", "partition_loaded"})
"""Sentences of a broker that holds a group from then on, unless it is behind."""


def on_coordinator_line(facts: Facts, event: Event, at: float) -> None:
    """A sentence of server.log. `at`: its stamp, epoch ms."""
    what = (event.detail or {}).get("what")
    if what == "partition_elected":
        new_coordinator.note_elected(facts, event, at)
        return
    if what == "configured":
        session_length.on_logged(facts, event)
        return
    if what in _LOADS and new_coordinator.is_behind(facts, event.shard):
        return
    if epochs.on_line(facts, event, at):
        return
    group = facts.groups.get(event.group_id)
    if facts.reads_requests(facts.broker, at) or (group is not None and group.modern is not None):
        records.on_coordinator_line(facts, event, at)
        told_begin.on_line(facts, event, at)
    else:
        lines.on_line(facts, event, at)


def on_group_record(facts: Facts, event: Event, at: float) -> None:
    """A GroupMetadata record. `at`: its time stamp, epoch ms."""
    offsets.on_group_record(facts, event)
    group = facts.groups.get(event.group_id)
    if facts.reads_requests(group.broker if group is not None else "", at) or operations.may_convert(facts, event):
        operations.on_group_record(facts, event, at)
    else:
        stored.on_group_record(facts, event, at)


def on_sample(facts: Facts, event: Event, _at: float) -> None:
    """What the admin API answered about a group. Where requests or records are read they say more, and earlier."""
    if not event.group_id:
        sampled.on_first_round(facts, event)
        return
    group = facts.groups.get(event.group_id)
    if facts.reads_records() or (group is not None and group.modern is not None):
        return
    if not facts.reads_requests(group.broker if group is not None else "", event.logged_at_ms):
        sampled.on_sample(facts, event)


def on_tick(facts: Facts, event: Event, at: float) -> None:
    """A tick that tells the configuration of the cluster, of a broker's process, or of an eviction that it saw."""
    detail = event.detail or {}
    if "process" in detail:
        restarts.on_told(facts, event, at)
    elif "session_shown" in detail:
        session_length.on_shown(facts, event)
    else:
        sessions.on_told(facts, event, at)


def on_gap(facts: Facts, event: Event, at: float) -> None:
    """A part of a log is lost, from or up to `at`, epoch ms; or a request log ends there."""
    if (event.detail or {}).get("reason") == "log_ends":
        for group in facts.groups.values():
            if group.broker == facts.broker and group.modern is None:
                lines.take_over(facts, group, event, at)
        return
    expiry.on_gap(facts, event, at)
    broker = "" if facts.broker in BESIDE_LOGS else facts.broker
    if facts.reads_requests(broker, at):
        return
    for group in facts.groups.values():
        if group.broker == broker and group.modern is None:
            lines.lose(facts, group, at, "gap")
