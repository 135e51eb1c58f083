"""Settings of the brokers that their answers show, beside what the brokers say of themselves.

The classic requests at the end of the request logs are put to the model of their release (`kardia.follow`): a setting
is found where one value of it explains all answers that turn on it. A broker whose answers show another value than it
is configured to is a finding: it was not restarted since its file was changed, or another file is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path

from ingest.dialects.request_json import RequestJson
from ingest.doctor import Finding, Level
from ingest.doctor.logs import sample_of
from kardia.events import Event
from kardia.follow import Following
from kardia.follow.broker import Broker
from kardia.follow.clues import FOLLOWED
from kardia.follow.releases import recognised

SUBJECT = "settings that the answers show"

UNSAID = "nobody was asked how they are configured; --bootstrap-server asks"


def examine(
    paths: Iterable[Path], zone: tzinfo | None, settings: Mapping[str, str] | None, log_pattern: str = ""
) -> list[Finding]:
    """Findings about the request logs of one cluster. `settings`: of a broker, None where they may not be read. A log
    that cannot be read shows nothing; its own finding says why."""
    events: list[Event] = []

    def hear(event: Event) -> None:
        if event.kind in FOLLOWED:
            events.append(event)

    for number, path in enumerate(paths):
        try:
            sample_of(path, RequestJson(zone or UTC, log_pattern=log_pattern), f"log-{number}/request/0", hear)
        except OSError:
            continue
    release = recognised(events)
    if not release:
        return []
    following = Following(release, begins=False, bounded=True)
    following.take(events)
    following.finish()
    return [_finding(following.broker, name, settings) for name in following.broker.found()]


def _finding(broker: Broker, name: str, settings: Mapping[str, str] | None) -> Finding:
    shown, said = f"{name}{broker.shown_as(name)}{broker.found()[name]}", (settings or {}).get(name, "")
    if not said.isdigit():
        return Finding(Level.NOTE, SUBJECT, f"{shown}; {UNSAID}.", certainty="inferred")
    if broker.fits(name, int(said)):
        return Finding(Level.GOOD, SUBJECT, f"{shown}; the brokers say {said}.", certainty="inferred")
    remedy = (
        "Was a broker restarted since its file was changed? A setting that needs a restart is told as the file has it;",
        "compare: kafka-configs.sh --describe --all --entity-type brokers --entity-name ID",
    )
    return Finding(Level.BAD, SUBJECT, f"{shown}, and the brokers say {said}.", remedy, certainty="inferred")
