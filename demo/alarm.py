"""`kardia demo --with-prometheus`: Prometheus, Alertmanager, the notifier and a receiver beside the pipeline.

At the end: who was told of which fault, how soon, and where the time went.

Puts `receiver`, `watching`, `told` and `alert_latency` together. What it reports it also leaves as JSON in
`alerts.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import HttpUrl

from demo import alert_latency, told, watching
from demo.alert_latency import ReadMark
from demo.narrator import clock
from demo.ports import free_ports
from demo.receiver import FROM_ALERTMANAGER, FROM_NOTIFIER, Message, Receiver
from demo.tables import Tables
from demo.told import Begun, Danger, Received, Span
from demo.watching import Programs, Watchers
from kardia.story import words
from supervise.supervisor import Role
from supervise.up_config import NotifySection

EARLIER_MS = 60_000
"""How long before the first fault the topic is read: the groups were there already."""


@dataclass(frozen=True)
class Delays:
    """One alert that was received, the fault it belongs to, and its instants (epoch ms; None where not known)."""

    alert: str
    group_id: str
    description: str
    incident_url: str
    fault: str
    begun_at_ms: int | None
    member_id: str
    evidence_at_ms: int | None
    published_at_ms: int | None
    committed_at_ms: int | None
    raised_at_ms: int | None
    pushed_at_ms: int | None
    received_at_ms: int
    prometheus_at_ms: int | None
    """When Prometheus' own rule fired; to the second."""

    @property
    def after_commit_ms(self) -> int | None:
        """From the commit of the evidence to the receiver."""
        return None if self.committed_at_ms is None else self.received_at_ms - self.committed_at_ms


class Alarm:
    """The parts of a run; a context manager. `news` gives what has arrived since it was asked last."""

    def __init__(self, programs: Programs, directory: Path) -> None:
        self.directory = directory
        self.receiver = Receiver(directory / "received.jsonl")
        self._metrics_port, prometheus_port, alertmanager_port = free_ports(3)
        self.watchers = Watchers(programs, prometheus_port, alertmanager_port)
        self._shown = 0
        self._fresh: list[Span] = []

    def __enter__(self) -> Alarm:
        self.receiver.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.receiver.__exit__()

    def section(self) -> NotifySection:
        """What the notifier is told."""
        return NotifySection(
            alertmanager=(HttpUrl(self.watchers.alertmanager_url),),
            webhook=(HttpUrl(self.receiver.url + FROM_NOTIFIER),),
            metrics_port=self._metrics_port,
        )

    def roles(self, api: str) -> list[Role]:
        """Prometheus and Alertmanager; `api` is where `kardia serve` answers."""
        return watching.roles(self.watchers, api, self.receiver.url + FROM_ALERTMANAGER, self.directory)

    def news(self) -> list[str]:
        """A sentence for each alert that Alertmanager has told of since the last call."""
        messages = self.receiver.messages
        fresh, self._shown = messages[self._shown :], len(messages)
        return [sentence for one in fresh if one.path == FROM_ALERTMANAGER for sentence in _sentences(one)]

    def dangers(self, tables: Tables, until_ms: int) -> list[Danger]:
        """What the tables say of timeouts that were near; remembers when they were fresh, up to `until_ms`."""
        committed = alert_latency.commits(tables.directory / "progress")
        self._fresh = told.fresh_spans(tables.rows("progress"), committed, until_ms)
        return told.dangers(tables.rows("predictions"), committed)

    def missing(self, found: Sequence[Danger]) -> list[Danger]:
        """What had to be told and has not been yet."""
        return told.missing(found, told.received(self.receiver.messages), self._fresh)

    def delays(self, found: Sequence[Danger], begun: Sequence[Begun], bootstrap: str, topic: str) -> list[Delays]:
        """Everything received, with its instants; written to `alerts.json` as well."""
        from_ms = min((begin.at_ms for begin in begun), default=0) - EARLIER_MS
        received = told.received(self.receiver.messages)
        to_ms = max((one.at_ms for one in received), default=from_ms) + EARLIER_MS
        read = alert_latency.read_marks(bootstrap, topic, from_ms)
        fired = alert_latency.firing_since_ms(self.watchers.prometheus_url, from_ms, to_ms)
        delays = [_delays(one, found, begun, read, fired) for one in received]
        shown = [asdict(one) for one in delays]
        (self.directory / "alerts.json").write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")
        return delays

    def faults(self, found: Sequence[Danger]) -> list[str]:
        """Sentences on what was not told, on what was told and is not so, and on times when nothing could be told."""
        received = told.received(self.receiver.messages)
        return [
            *(
                f"{danger.alert} of group {danger.group_id} ({danger.member_id}) was in the tables and was not received"
                for danger in told.missing(found, received, self._fresh)
            ),
            *(
                f"{one.alert} of group {one.group_id} was received, and no such timeout was near"
                for one in told.invented(found, received)
            ),
            *(
                f"the tables stood still for {(to_ms - from_ms) / 1_000:.1f} s from {clock(from_ms)} on, and what "
                "had to be told then was held back; the alerts about sources say which log was not read"
                for from_ms, to_ms in told.stood_still(self._fresh)
            ),
        ]


def _sentences(message: Message) -> list[str]:
    return [_sentence(alert) for alert in message.body["alerts"]]


def _sentence(alert: Mapping[str, Any]) -> str:
    """What it says when it begins; when it is over, only of whom: its last description is of before."""
    labels = alert["labels"]
    if alert["status"] == "resolved":
        whom = f" of group {words.name(labels['group'])}" if "group" in labels else ""
        return f"over: {labels['alertname']}{whom}."
    return f"alert: {labels['alertname']}. {alert['annotations'].get('description', '')}"


def _delays(
    one: Received,
    found: Sequence[Danger],
    begun: Sequence[Begun],
    read: Mapping[int, Sequence[ReadMark]],
    fired: Mapping[tuple[str, str], Sequence[int]],
) -> Delays:
    danger, begin = told.danger_of(one, found), told.fault_of(one, begun)
    own = [at_ms for at_ms in fired.get((one.alert, one.group_id), ()) if _during(at_ms, one)]
    return Delays(
        alert=one.alert,
        group_id=one.group_id,
        description=one.description,
        incident_url=one.incident_url,
        fault=begin.fault if begin else "",
        begun_at_ms=begin.at_ms if begin else None,
        member_id=danger.member_id if danger else "",
        evidence_at_ms=danger.evidence_at_ms if danger else None,
        published_at_ms=alert_latency.published_at_ms(read, one.group_id, danger.evidence_at_ms) if danger else None,
        committed_at_ms=danger.committed_at_ms if danger else None,
        raised_at_ms=one.raised_at_ms,
        pushed_at_ms=one.pushed_at_ms,
        received_at_ms=one.at_ms,
        prometheus_at_ms=min(own, default=None),
    )


def _during(at_ms: int, one: Received) -> bool:
    """Whether Prometheus fired while the alert lasted; its instants are of whole seconds."""
    began = min(one.at_ms, one.raised_at_ms or one.at_ms) - 1_000
    return began <= at_ms and (one.resolved_at_ms is None or at_ms <= one.resolved_at_ms)
