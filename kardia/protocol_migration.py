"""What the move of a classic group to the consumer protocol will meet, said before anybody moves: rules, no input.

In: the members of one group as their JoinGroups show them, and the broker's settings as far as they are known. Out:
`Meeting`s, each with how sure it is. What no line shows (a subscription by a regular expression that the client
resolves, data that an assignor sends along) is `unknown`, not left out. Sources: `GroupMetadataManager.
validateOnlineUpgrade`, `ConsumerGroup.fromClassicGroup`, `GroupCoordinatorConfig`, and Kafka's page on the protocol.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kardia.certainty import Certainty
from kardia.kafka.newer_protocol import BUILT_IN, COOPERATIVE, Support, support_of
from kardia.story import words

POLICY, SESSION_MS = "group.consumer.migration.policy", "group.consumer.session.timeout.ms"
HEARTBEAT_MS, MAX_SIZE = "group.consumer.heartbeat.interval.ms", "group.consumer.max.size"
SETTINGS = (POLICY, SESSION_MS, HEARTBEAT_MS, MAX_SIZE, "group.consumer.assignors")
"""Settings of a broker that have a say in it."""

BEFORE_4 = "inter.broker.protocol.version"
"""A setting that Kafka 4.0 removed."""

UPGRADES = ("upgrade", "bidirectional")
"""Policies that let a classic group become a consumer group while it has members."""

NEARLY = 0.2
"""Heartbeats come at an interval as that differs by less: a thread wakes late."""


class Weight(StrEnum):
    """What a meeting means for the move."""

    STOPS = "stops"
    CHANGES = "changes"
    FINE = "fine"
    UNKNOWN = "unknown"


class Classic(NamedTuple):
    """A member that speaks the classic protocol, as far as it was seen."""

    member_id: str
    client_id: str
    software: str
    """`name/version` as announced; empty if it was not."""
    instance_id: str = ""
    session_ms: int = -1
    heartbeat_ms: float = -1.0
    """Median pause between its heartbeats; -1 if too few were seen."""
    assignors: tuple[str, ...] = ()
    protocol_type: str = "consumer"


class Meeting(NamedTuple):
    """One thing that the move will meet."""

    weight: Weight
    rule: str
    text: str
    certainty: Certainty = "exact"
    member_ids: tuple[str, ...] = ()
    advice: str = ""


def meetings(members: Sequence[Classic], settings: Mapping[str, str] | None) -> list[Meeting]:
    """Everything that the move of a group with these members will meet. `settings`: of the broker, by name; None where
    they may not be read."""
    if not members:
        return []
    foreign = sorted({one.protocol_type for one in members if one.protocol_type not in ("consumer", "")})
    if foreign:
        text = (
            f"Its members speak {words.listing([words.name(one) for one in foreign])} inside the classic protocol: it"
        )
        return [Meeting(Weight.STOPS, "not_a_consumer", f"{text} stays a classic group.", "exact", _ids(members))]
    return [
        *_clients(members),
        *_assignors(members),
        *_sessions(members, settings),
        *_heartbeats(members, settings),
        *_static(members),
        *_policy(settings),
        *_size(members, settings),
        Meeting(
            Weight.UNKNOWN,
            "regex",
            "Whether a member subscribes by a regular expression is not known: a classic client resolves it by itself, "
            "and sends names. The consumer protocol has the broker resolve expressions, of RE2 and no other kind.",
            "unknown",
        ),
    ]


def _clients(members: Sequence[Classic]) -> list[Meeting]:
    """By library, version and what that can do."""
    by: defaultdict[tuple[Support, str, str, str], list[Classic]] = defaultdict(list)
    for one in members:
        can, row = support_of(one.software, one.client_id, one.protocol_type)
        by[can, one.software, row.needs if row else "", row.source if row else ""].append(one)
    found = []
    for (can, software, needs, source), some in sorted(by.items()):
        who = words.count(len(some), "member") + f" ({_names(some)})"
        what = f"announced {words.name(software)}" if software else "announced no library"
        where = f" Source: {source}" if source else ""
        if can is Support.YES:
            text = f"{who} {what}: it can speak the consumer protocol as soon as group.protocol=consumer is set."
            found.append(Meeting(Weight.FINE, "client_can", text + where, "exact", _ids(some)))
        elif can is Support.UNKNOWN:
            text = f"{who} {what}: whether it can speak the consumer protocol is not known."
            found.append(Meeting(Weight.UNKNOWN, "client_unknown", text + where, "unknown", _ids(some)))
        elif can is Support.ASKED:
            text = f"{who} {what}: it has the consumer protocol where its application asks for it."
            found.append(Meeting(Weight.CHANGES, "client_asks", text + where, "exact", _ids(some)))
        else:
            has = "as a preview only" if can is Support.PREVIEW else "not"
            text, advice = f"{who} {what}: it has the consumer protocol {has}.", f"Needed: {needs}."
            found.append(Meeting(Weight.STOPS, "client_too_old", text + where, "exact", _ids(some), advice))
    return found


def _assignors(members: Sequence[Classic]) -> list[Meeting]:
    """Names in JoinGroup that no assignor of the broker replaces."""
    known = [one for one in members if one.assignors]
    own = {name for one in known for name in one.assignors} - BUILT_IN
    found = []
    if own:
        some = [one for one in known if own & set(one.assignors)]
        offered = words.listing([words.name(one) for one in sorted(own)])
        text = (
            f"{_names(some)} offer the assignor {offered}, which is none of Kafka's own. Then the broker assigns "
            "(group.consumer.assignors: uniform and range), and does not know it. From 4.0 on it refuses the move of a "
            "group whose assignor sends data along with its assignments."
        )
        advice = "Do without it, or bring it to the broker as a ConsumerGroupPartitionAssignor."
        found.append(Meeting(Weight.STOPS, "custom_assignor", text, "inferred", _ids(some), advice))
    eager = [one for one in known if COOPERATIVE not in one.assignors and not own & set(one.assignors)]
    if eager:
        text = (
            f"{_names(eager)} give up everything in each rebalance today (eager). Then they give up what moves and no "
            "more: code that takes onPartitionsRevoked for all partitions has to be looked at."
        )
        found.append(Meeting(Weight.CHANGES, "eager", text, "exact", _ids(eager)))
    if len(known) < len(members):
        rest = [one for one in members if not one.assignors]
        text = f"Which assignors {_names(rest)} offer is not known: no JoinGroup of theirs was read."
        found.append(Meeting(Weight.UNKNOWN, "assignor_unknown", text, "unknown", _ids(rest)))
    return found


def _sessions(members: Sequence[Classic], settings: Mapping[str, str] | None) -> list[Meeting]:
    """The broker decides then how long a session is."""
    told = _number(settings, SESSION_MS)
    known = [one for one in members if one.session_ms > 0]
    if told is None:
        text = f"Sessions are then as long as the broker says ({SESSION_MS}), which was not read."
        return [Meeting(Weight.UNKNOWN, "session", text, "unknown")]
    other = [one for one in known if one.session_ms != told]
    if not other:
        return []
    lengths = words.listing([words.span(one) for one in sorted({one.session_ms for one in other})])
    text = (
        f"{_names(other)} have a session timeout of {lengths}; then it is the broker's, {words.span(told)} "
        f"({SESSION_MS}): evictions come that much later or earlier."
    )
    advice = "Set consumer.session.timeout.ms of the group if another one is needed."
    return [Meeting(Weight.CHANGES, "session", text, "exact", _ids(other), advice)]


def _heartbeats(members: Sequence[Classic], settings: Mapping[str, str] | None) -> list[Meeting]:
    told = _number(settings, HEARTBEAT_MS)
    if told is None:
        return []
    other = [one for one in members if one.heartbeat_ms > 0 and abs(one.heartbeat_ms - told) > NEARLY * told]
    if not other:
        return []
    seen = words.listing([words.span(ms) for ms in sorted({round(one.heartbeat_ms, -2) for one in other})])
    text = (
        f"{_names(other)} send a heartbeat every {seen}; then it is every {words.span(told)}, as the broker says "
        f"({HEARTBEAT_MS})."
    )
    return [Meeting(Weight.CHANGES, "heartbeat", text, "inferred", _ids(other))]


def _static(members: Sequence[Classic]) -> list[Meeting]:
    static = [one for one in members if one.instance_id]
    if not static:
        return []
    text = (
        f"{_names(static)} have a static id and keep it. A second process with the same one is refused then "
        "(UNRELEASED_INSTANCE_ID) as long as the first lives, where it replaces it today."
    )
    return [Meeting(Weight.CHANGES, "static", text, "exact", _ids(static))]


def _policy(settings: Mapping[str, str] | None) -> list[Meeting]:
    policy = (settings or {}).get(POLICY)
    if settings is not None and BEFORE_4 in settings:
        text = "The broker is older than 4.0, where the consumer protocol is not meant for production."
        return [Meeting(Weight.STOPS, "broker", text, "exact", (), "Needed: brokers of 4.0 or later.")]
    if policy is None:
        text = f"Whether the broker lets a group move while it has members is not known: {POLICY} was not read."
        return [Meeting(Weight.UNKNOWN, "policy", text, "unknown")]
    if policy.lower() in UPGRADES:
        return [Meeting(Weight.FINE, "policy", f"{POLICY}={policy}: the group may move while it consumes.")]
    text = (
        f"{POLICY}={policy}: the broker refuses the first member of the consumer protocol (GROUP_ID_NOT_FOUND) as long "
        "as the group has classic members."
    )
    advice = f"Set {POLICY}=bidirectional on the brokers, or stop all members first."
    return [Meeting(Weight.STOPS, "policy", text, "exact", (), advice)]


def _size(members: Sequence[Classic], settings: Mapping[str, str] | None) -> list[Meeting]:
    most = _number(settings, MAX_SIZE)
    if most is None or len(members) <= most:
        return []
    text = f"It has {len(members)} members, a consumer group may have {most} ({MAX_SIZE}): the broker refuses the move."
    return [Meeting(Weight.STOPS, "too_many", text, "exact", (), f"Raise {MAX_SIZE}.")]


def _number(settings: Mapping[str, str] | None, name: str) -> int | None:
    text = (settings or {}).get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _ids(members: Iterable[Classic]) -> tuple[str, ...]:
    return tuple(one.member_id for one in members)


def _names(members: Iterable[Classic]) -> str:
    """Names of the clients, each once."""
    return words.listing(
        [words.name(one) for one in dict.fromkeys(member.client_id or member.member_id for member in members)]
    )
