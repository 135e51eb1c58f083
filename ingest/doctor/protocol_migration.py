"""What the move of the classic groups in a request log to the consumer protocol will meet: members in, findings out.

Reads the end of a log, as `logs` does, and takes from it who is a member of which group: JoinGroup says library,
timeouts and assignors, Heartbeat how often it comes. A member whose JoinGroup lies before that is known by less, and
the findings say so. What each thing means is decided in `kardia.protocol_migration`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from itertools import pairwise
from pathlib import Path
from statistics import median

from ingest.dialects.request_json import RequestJson
from ingest.doctor import Finding, Level
from ingest.doctor.logs import sample_of
from kardia.events import Event, Kind
from kardia.kafka.states import ErrorCode
from kardia.protocol_migration import Classic, Weight, meetings
from kardia.story import words

GROUPS_MAX, MEMBERS_MAX = 50, 1_000
"""Groups that are told about, and members of one that are kept: a client may choose as many names as it likes."""

BEATS_MIN, BEATS_MAX = 3, 20
"""Heartbeats of a member from which its interval is told, and that are kept for it."""

SILENT_MS = 60_000.0
"""Who was not heard for longer than that and its session before the end of the log is no member any more."""

EVERY = "every group that may move to the consumer protocol"
"""Subject of what is so for all of them."""

_OF_ALL = frozenset({"policy", "regex", "broker"})
"""Rules that say the same of every group."""

_LEVELS = {
    Weight.STOPS: Level.NOTE,
    Weight.CHANGES: Level.NOTE,
    Weight.FINE: Level.GOOD,
    Weight.UNKNOWN: Level.UNKNOWN,
}
"""Nothing of it is wrong today: the classic protocol goes on working."""


class Groups:
    """Who is a member of which classic group, by the lines of a log in their order."""

    def __init__(self) -> None:
        """Nobody yet."""
        self._members: dict[str, dict[str, Classic]] = {}
        self._beats: dict[tuple[str, str], list[float]] = {}
        self._heard: dict[tuple[str, str], float] = {}
        self._last_at_ms = 0.0
        self._newer: set[str] = set()
        self.left_out = 0
        """Groups beyond the bound."""

    def hear(self, event: Event) -> None:
        """Take a line."""
        self._last_at_ms = max(self._last_at_ms, event.logged_at_ms)
        if event.kind == Kind.MODERN_HEARTBEAT:
            self._newer.add(event.group_id)
        elif event.error_code == ErrorCode.NONE and event.kind == Kind.JOIN:
            self._joined(event)
        elif event.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS) and event.kind == Kind.HEARTBEAT:
            self._beat(event)
        elif event.kind == Kind.LEAVE:
            for member_id, _, _, error in (event.detail or {}).get("members", ()):
                if error == ErrorCode.NONE:
                    self._members.get(event.group_id, {}).pop(member_id, None)

    def members(self) -> dict[str, list[Classic]]:
        """Group -> its members; without those that speak the consumer protocol already."""
        found = {}
        for group_id in sorted(self._members.keys() - self._newer):
            alive = [one for one in self._members[group_id].values() if self._is_alive(group_id, one)]
            if alive:
                found[group_id] = [one._replace(heartbeat_ms=self._pause(group_id, one)) for one in alive]
        return found

    def _is_alive(self, group_id: str, member: Classic) -> bool:
        silent_ms = self._last_at_ms - self._heard.get((group_id, member.member_id), 0.0)
        return silent_ms <= max(member.session_ms, SILENT_MS)

    def _joined(self, event: Event) -> None:
        detail = event.detail or {}
        member_id = str(detail.get("assigned_member_id") or event.member_id)
        members = self._group(event.group_id)
        if members is None or (len(members) >= MEMBERS_MAX and member_id not in members):
            return
        if event.group_instance_id:  # it takes the place of the one before
            for other in [one for one in members.values() if one.instance_id == event.group_instance_id]:
                del members[other.member_id]
        self._heard[event.group_id, member_id] = event.logged_at_ms
        members[member_id] = Classic(
            member_id,
            event.client_id,
            event.software,
            event.group_instance_id,
            int(detail.get("session_timeout_ms", -1)),
            assignors=tuple(str(name) for name, _ in detail.get("protocols", ())),
            protocol_type=str(detail.get("protocol_type") or "consumer"),
        )

    def _beat(self, event: Event) -> None:
        members = self._group(event.group_id)
        if members is None or (len(members) >= MEMBERS_MAX and event.member_id not in members):
            return
        if event.member_id not in members:
            members[event.member_id] = Classic(
                event.member_id, event.client_id, event.software, event.group_instance_id
            )
        self._heard[event.group_id, event.member_id] = event.logged_at_ms
        beats = self._beats.setdefault((event.group_id, event.member_id), [])
        beats.append(event.arrived_at_ms)
        del beats[:-BEATS_MAX]

    def _group(self, group_id: str) -> dict[str, Classic] | None:
        members = self._members.get(group_id)
        if members is None and len(self._members) >= GROUPS_MAX:
            self.left_out += 1
            return None
        return self._members.setdefault(group_id, {})

    def _pause(self, group_id: str, member: Classic) -> float:
        beats = self._beats.get((group_id, member.member_id), [])
        pauses = [later - one for one, later in pairwise(beats)]
        return median(pauses) if len(pauses) >= BEATS_MIN else -1.0


def examine(
    paths: Iterable[Path], zone: tzinfo | None, settings: Mapping[str, str] | None, log_pattern: str = ""
) -> list[Finding]:
    """Findings about every classic group in the ends of these logs. `settings`: of a broker, None where they may not be
    read. A log that cannot be read shows no group; its own finding says why."""
    groups = Groups()
    for path in paths:
        try:
            sample_of(path, RequestJson(zone or UTC, log_pattern=log_pattern), str(path), groups.hear)
        except OSError:
            continue
    found: list[Finding] = []
    of_all: dict[str, Finding] = {}
    for group_id, members in groups.members().items():
        subject = f"group {words.name(group_id)}, if it moves to the consumer protocol"
        for one in meetings(members, settings):
            advice = (one.advice,) if one.advice else ()
            finding = Finding(_LEVELS[one.weight], subject, one.text, advice, one.certainty)
            if one.rule in _OF_ALL or (one.rule == "session" and one.weight is Weight.UNKNOWN):
                of_all[one.rule] = replace(finding, subject=EVERY)
            else:
                found.append(finding)
    found += of_all.values()
    if groups.left_out:
        sentence = f"Groups beyond the first {GROUPS_MAX} are left out here."
        found.append(Finding(Level.NOTE, EVERY, sentence))
    return found
