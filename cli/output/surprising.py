"""What `kardia surprises` reads and shows: the classic requests of request logs, put to the model of their release."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.output.telling import wrapped
from ingest.archives.found import gather
from ingest.archives.planning import plan
from ingest.archives.ranges import parse_pieces
from ingest.errors import SettingsError
from kardia.events import Event
from kardia.follow import Counts, Following, Surprise
from kardia.follow.releases import recognised
from kardia.follow.tolerances import HELD_MS
from kardia.story import words


@dataclass
class Told:
    """What was found."""

    kafka_version: str = ""
    is_recognised: bool = False
    counts: Counts = field(default_factory=Counts)
    groups: dict[str, Counts] = field(default_factory=dict)
    surprises: list[Surprise] = field(default_factory=list)
    settings: dict[str, int] = field(default_factory=dict)
    settings_shown: list[str] = field(default_factory=list)
    """The same with what was shown of each: that it is so much, at least, or at most."""
    left_out: int = 0
    """Groups with epochs."""


def followed(
    files: Sequence[Path],
    request_logs: Sequence[Path],
    *,
    message_field: str,
    kafka_version: str,
    zone: str,
    log_pattern: str,
) -> Told:
    """Read the logs in the order of time and follow their groups. Raises IngestError, and ValueError for a release that
    is none."""
    if not (files or request_logs):
        raise SettingsError(
            "nothing was named to read", "the command line", "files or folders of request logs", "name them"
        )
    with tempfile.TemporaryDirectory() as scratch:
        found = gather(
            files,
            request_logs,
            (),
            (),
            zone=zone,
            message_field=message_field,
            scratch=Path(scratch),
            log_pattern=log_pattern,
        )
        following: Following | None = None
        told = Told(kafka_version, not kafka_version)
        waiting: list[Event] = []
        for piece in plan(found.request_logs, zone=zone, log_pattern=log_pattern):
            for parsed in parse_pieces(piece):
                events = [event for lane in parsed.events for event in lane]
                events += parsed.ticks()[:1]
                if following is None:
                    told.kafka_version = told.kafka_version or recognised(events)
                    waiting += events
                    if not told.kafka_version:
                        continue
                    following, events = Following(told.kafka_version), waiting
                following.take(events)
                following.advance(piece.first_at_ms - HELD_MS)
    if following is None:
        return told
    following.finish()
    told.counts, told.settings = following.counts(), following.broker.found()
    broker = following.broker
    told.settings_shown = [f"{name}{broker.shown_as(name)}{value}" for name, value in told.settings.items()]
    told.groups = {group_id: one.counts for group_id, one in sorted(following.followers.items())}
    told.surprises = sorted(following.surprises, key=lambda one: (one.at_ms, one.group_id))
    told.left_out = len(following.left_out)
    return told


def as_json(told: Told, limit: int) -> dict[str, Any]:
    """For other programs."""
    return {
        "kafka_version": told.kafka_version,
        "kafka_version_recognised": told.is_recognised,
        **_counts(told.counts),
        "settings_found": told.settings,
        "groups_with_epochs_left_out": told.left_out,
        "groups": [{"group_id": group_id, **_counts(counts)} for group_id, counts in told.groups.items()],
        "surprises": [
            {
                "group_id": one.group_id,
                "member_id": one.member_id,
                "at_ms": one.at_ms,
                "request": one.request,
                "predicted": one.predicted,
                "seen": one.seen,
                "class": one.surprise_class.value,
                "because": one.because,
                "tried": list(one.tried),
                "trace": one.trace,
            }
            for one in told.surprises[:limit]
        ],
    }


def _counts(counts: Counts) -> dict[str, Any]:
    return {
        "answers": counts.answers,
        "predicted": counts.predicted,
        "surprising": {str(name): number for name, number in sorted(counts.surprising.items())},
        "unknown": dict(sorted(counts.unknown.items())),
        "explained_by": dict(sorted(counts.explained.items())),
    }


def show(told: Told, *, traces: bool, limit: int) -> None:
    """For people."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for number, text in enumerate(sentences(told)):
        console.print(wrapped(console, text), style="bold" if not number else "")
    for one in told.surprises[:limit]:
        console.print()
        for text in sentences_of(one, told.kafka_version):
            console.print(wrapped(console, text))
        if traces and one.trace:
            console.print()
            for line in one.trace.splitlines():
                console.print(f"    {words.escaped(line)}")
    if len(told.surprises) > limit:
        console.print(f"\n{len(told.surprises) - limit:,} more surprises; --limit shows them.")


def sentences(told: Told) -> list[str]:
    """The whole, in short sentences."""
    counts = told.counts
    if not counts.answers:
        more = f" of {told.left_out:,} groups with epochs nothing is predicted" if told.left_out else ""
        return [f"No answer to a classic request was found;{more or ' the logs have none'}."]
    number = len(told.surprises)
    where = ""
    if number:
        instants = [words.instant(one.at_ms) for one in told.surprises]
        where = f", {'at' if number == 1 else 'the first at'} {instants[0]}"
    first = f"{counts.predicted:,} answers predicted, {number:,} surprise{'' if number == 1 else 's'}{where}."
    how = "recognised" if told.is_recognised else "as named"
    found = [first, f"The release is taken to be Kafka {told.kafka_version} ({how})."]
    if told.settings:
        shown = ", ".join(told.settings_shown)
        found.append(f"The answers show that the brokers have {shown}.")
    for why, times in counts.unknown.most_common():
        found.append(f"{times:,} answers were of groups that were unknown: {why}.")
    if counts.explained.total():
        by = ", ".join(f"{name} ({times:,})" for name, times in counts.explained.most_common())
        found.append(f"What the log does not show was tried where an answer contradicted: {by}.")
    if told.left_out:
        found.append(f"{told.left_out:,} groups with epochs are left out.")
    classes = Counter(one.surprise_class.value for one in told.surprises)
    if classes:
        found.append("Surprises: " + ", ".join(f"{times:,} {name}" for name, times in classes.most_common()) + ".")
    return found


def sentences_of(one: Surprise, kafka_version: str) -> list[str]:
    """One surprise, in short sentences."""
    who = f", member {words.quoted(one.member_id)}" if one.member_id else ""
    tried = f" Tried: {', '.join(one.tried)}." if one.tried else ""
    return [
        f"{words.instant(one.at_ms)} group {words.quoted(one.group_id)}{who}",
        f"  {one.request} was answered {words.escaped(one.seen)}. Kafka {kafka_version} answers "
        f"{words.escaped(one.predicted)}.",
        f"  {one.surprise_class.value}: {one.because}.{tried}",
    ]
