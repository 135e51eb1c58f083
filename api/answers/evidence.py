"""On which rung of evidence a group stands: what is read of its broker, and which questions that answers."""

from __future__ import annotations

from typing import Any

from api.answers import answers
from api.present.current import ClusterView, GroupView
from kardia.events import ADMIN_BROKER, broker_of
from kardia.rungs import NEEDS_REQUESTS_REASON, RUNGS, Read, questions

OFFSETS = "offsets-topic"
"""Broker part of the source of records of `__consumer_offsets`, captured or followed."""

_SHOW_POLLS = frozenset({"fetch", "telemetry"})


def of(cluster: ClusterView, view: GroupView) -> dict[str, Any]:
    """The `evidence` object of an answer about a group."""
    read = read_of(cluster, view)
    spoken = answers.protocols(view)
    return {
        "rung": read.rung,
        "read": RUNGS[read.rung],
        "questions": [
            one._asdict()
            for one in questions(read, epochs=any(one != "classic" for one in spoken), share=spoken == ["share"])
        ],
    }


def read_of(cluster: ClusterView, view: GroupView) -> Read:
    """What is read of the broker of a group. One that is not known to have a broker stands on the records alone.

    A request log that ended while server.log went on is none any more: members say so in their health."""
    read = cluster.reach.streams()
    streams = read.get(_broker(view), frozenset())
    health = list(view.health.values())
    unread = any(reason == NEEDS_REQUESTS_REASON for row in health for reason in row.reasons or ())
    requests = "request" in streams and not unread
    return Read(
        requests=requests,
        polls=requests and any(row.poll_evidence in _SHOW_POLLS for row in health),
        server_log="server" in streams,
        offsets=OFFSETS in read,
        samples=ADMIN_BROKER in read,
        ends=_has_ends(cluster, view.group_id),
    )


def _has_ends(cluster: ClusterView, group_id: str) -> bool:
    """Whether ends are looked at, and can be seen of one partition at least that the group has a commit for."""
    lags = cluster.lags.groups.get(group_id)
    seen = lags is None or any(row.lag is not None for row in lags.rows.values())
    return seen and cluster.lags.known_to_ms is not None


def _broker(view: GroupView) -> str:
    """The broker that leads it, as its members' rows say; else whoever told of its last change."""
    lives = [*view.lives.values(), *view.ended.values()]
    latest = max((life for life in lives if life.broker), key=lambda life: int(life.known_at_ms), default=None)
    if latest is not None:
        return str(latest.broker)
    evidence = "" if view.state is None else str(view.state.evidence or "")
    source = evidence.rpartition("@")[0]
    of_log = source.count("/") >= 2 and broker_of(source) not in (OFFSETS, ADMIN_BROKER)
    return broker_of(source) if of_log else ""
