"""On which rung of evidence a group stands: what is read of its broker, and which questions that answers."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import orjson

from api.answers import as_dicts
from api.present.current import ClusterView, GroupView
from kardia.events import ADMIN_BROKER, OFFSETS_BROKER
from kardia.evidence_levels import NEEDS_REQUESTS_REASON, RUNGS, Read, questions
from kardia.kafka.libraries import LIBRARIES, recognise

_SHOW_POLLS = frozenset({"fetch", "telemetry"})


class Shown(NamedTuple):
    """What the members of a group show of what is read."""

    unread: bool
    """Whether their health says that the request log is none any more."""
    polls: bool
    beside: str
    """The client library of all members, if their fetches show no polls."""


def of(cluster: ClusterView, view: GroupView) -> orjson.Fragment:
    """The `evidence` object of an answer about a group, as JSON."""
    spoken = as_dicts.protocols(view)
    return _encoded(read_of(cluster, view), any(one != "classic" for one in spoken), spoken == ["share"])


@lru_cache(256)
def _encoded(read: Read, epochs: bool, share: bool) -> orjson.Fragment:
    found = questions(read, epochs=epochs, share=share)
    told = {"rung": read.rung, "read": RUNGS[read.rung], "questions": [one._asdict() for one in found]}
    return orjson.Fragment(orjson.dumps(told))


def read_of(cluster: ClusterView, view: GroupView) -> Read:
    """What is read of the broker of a group. One that is not known to have a broker stands on the records alone.

    A request log that ended while server.log went on is none any more: members say so in their health."""
    read = cluster.reach.streams()
    streams = read.get(view.broker, frozenset())
    shown = view.remembered("evidence", _shown)
    requests = "request" in streams and not shown.unread
    return Read(
        requests=requests,
        polls=requests and shown.polls,
        server_log="server" in streams,
        offsets=OFFSETS_BROKER in read,
        samples=ADMIN_BROKER in read,
        ends=_has_ends(cluster, view.group_id),
        beside=shown.beside,
    )


def _shown(view: GroupView) -> Shown:
    return Shown(
        any(reason == NEEDS_REQUESTS_REASON for row in view.health.values() for reason in row.reasons or ()),
        any(row.poll_evidence in _SHOW_POLLS for row in view.health.values()),
        _fetches_beside(view),
    )


def _fetches_beside(view: GroupView) -> str:
    names = {recognise(row.client_software_name or "", row.client_id or "", "") for row in view.lives.values()}
    if len(names) != 1 or names <= {"unknown", "connect"} or LIBRARIES[min(names)].fetches_show_polls:
        return ""
    return min(names)


def _has_ends(cluster: ClusterView, group_id: str) -> bool:
    """Whether ends are looked at, and can be seen of one partition at least that the group has a commit for."""
    lags = cluster.lags.groups.get(group_id)
    seen = lags is None or any(row.lag is not None for row in lags.rows.values())
    return seen and cluster.lags.looked_ms is not None
