"""How long a session of a newer protocol is: no request and no record says it, so it is taken from what does.

In this order (`state.modern.SESSION_DOUBTS` says what is in doubt about each): the configuration, as it was given or as
the cluster was asked for it; the last eviction of the group itself; the settings that its broker logged when it
started, which a configuration of the group's own overrides; evictions of other groups of its shard, as long as all
agree; those of any group of its broker, or of all brokers alike, as who reads their logs has told
(`ingest.session_lengths`). Each stands until somebody of the group is silent for longer and stays a member. Where
nothing says it the default of brokers is held, as what lets a member count as overdue; it is told to nobody, and ends
nobody. Sources: `GroupMetadataManager.consumerGroupSessionTimeoutMs`, and those of share and streams groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from kardia.doubts import Doubt, Doubts
from kardia.events import ALL_SHARDS, Event
from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import NEVER, Ended, Group, Member
from kardia.observe.state.modern import ModernGroup
from kardia.tolerances import AT_ONCE_MS, BUSY_MS, LATE_MS, SECOND_MS, TIMERS_NEAR_MS

DEFAULT_MS = 45_000
"""`group.consumer.session.timeout.ms`, `group.share.session.timeout.ms`, `group.streams.session.timeout.ms` of a broker
that was not told otherwise."""


DIFFERENT = 0
"""Groups of a shard have shown different lengths: none serves another group."""


# --- what is in force


def arm(group: Group, member: Member) -> None:
    """The session timeout in force of a member: its own if it speaks the classic protocol, else that of its group."""
    own, modern = member.modern, group.modern
    if own is not None and modern is not None and not own.classic:
        member.session_ms, own.session_assumed = of_group(modern), not modern.session_from


def of_group(modern: ModernGroup) -> int:
    """How long a session is that begins now; the default of brokers where nothing says it."""
    return modern.session_ms if modern.session_from else DEFAULT_MS


def arm_all(facts: Facts, group: Group, doubts: Doubts = Doubt.SESSION_LEARNED) -> None:
    """It is known now how long the sessions are that run already, or it is not any more."""
    for member in group.members.values():
        arm(group, member)
        if member.modern is not None and not member.modern.classic:
            facts.emit_member(group, member, member.joined_at_ms, doubts)
            facts.say_again(group, member)
            # Of who is past it already it was not foretold.
            if member.session_prediction_at_ms >= 0 and facts.known < member.deadline and not member.is_session_assumed:
                member.session_prediction_deadline_at_ms = member.deadline
                facts.emit_prediction(group, member, "session", "open", NEVER)
            facts.watch(group, member)


# --- what says it


def configure(facts: Facts, group: Group, modern: ModernGroup) -> bool:
    """Take how long sessions are from whatever says it best; whether nothing did before."""
    found_ms, source = _told(facts, group, modern)
    if found_ms <= 0:
        return False
    was_known = modern.session_from not in ("", "shared")
    modern.session_ms, modern.session_from = found_ms, source
    return not was_known


def _told(facts: Facts, group: Group, modern: ModernGroup) -> tuple[int, str]:
    protocol = modern.protocol
    given_ms = facts.settings.session_ms_of(protocol)
    if given_ms <= 0:
        of_cluster = facts.told_session_ms.get(protocol, -1)
        given_ms = facts.told_group_session_ms.get(group.group_id, {}).get(protocol, of_cluster)
    if given_ms > 0:
        return given_ms, "given"
    if modern.session_from in ("given", "seen"):
        return -1, ""
    of_all_ms = _of_broker(facts.shown_session_ms, group, protocol)
    shared_ms = facts.shared_session_ms.get(str(group.shard), {}).get(protocol, of_all_ms)
    logged_ms = _of_broker(facts.logged_session_ms, group, protocol)
    for found_ms, source in ((logged_ms, "logged"), (shared_ms, "shared")):
        if found_ms > modern.session_least_ms:
            return found_ms, source
    return -1, ""


def _of_broker(told: Mapping[str, Mapping[str, int]], group: Group, protocol: str) -> int:
    """As it is told of the group's broker, or else of all brokers alike; -1 if neither."""
    own_ms = told.get(group.broker, {}).get(protocol, -1)
    of_all = {one.get(protocol, -1) for one in told.values()}
    return own_ms if own_ms >= 0 or len(of_all) != 1 else of_all.pop()


def on_logged(facts: Facts, event: Event) -> None:
    """A broker that starts has logged its settings, one in a line."""
    told = {name: int(ms) for name, ms in ((event.detail or {}).get("session_ms") or {}).items()}
    known = facts.logged_session_ms.setdefault(facts.broker, {})
    known |= {name: ms for name, ms in told.items() if name in PROTOCOLS_WITH_EPOCHS and ms > 0}
    take_up(facts)


def on_shown(facts: Facts, event: Event) -> None:
    """Who reads the logs of a broker has seen an eviction that shows it, or one that contradicts those before."""
    protocol, session_ms = (event.detail or {})["session_shown"]
    facts.shown_session_ms.setdefault(facts.broker, {})[str(protocol)] = int(session_ms)
    _withdraw_shared(facts, ALL_SHARDS, str(protocol))
    take_up(facts)


def take_up(facts: Facts, shard: int = ALL_SHARDS) -> None:
    """Something new says how long sessions are: those of groups of which nothing did before ran with it already."""
    for group in facts.groups.values():
        if shard in (ALL_SHARDS, group.shard) and group.modern is not None and configure(facts, group, group.modern):
            arm_all(facts, group)


# --- what evictions show


def learn(facts: Facts, group: Group, member: Member, ended_at_ms: float) -> None:
    """The session of a member of which every heartbeat was read has ended at an instant: that is how long it is. One
    that was handled late began at any instant since it arrived."""
    modern, own, heard_at_ms = group.modern, member.modern, member.session_renewed_at_ms
    if modern is None or own is None or own.classic or modern.session_from == "given":
        return
    in_doubt = member.doubtful_at_ms == heard_at_ms
    since = own.heard_from_ms if in_doubt else heard_at_ms
    if since < 0 or heard_at_ms == member.returned_at_ms or member.unknown_since_at_ms >= 0:
        return
    if heard_at_ms <= max(group.unsure_to, group.gap_at_ms) or facts.is_broken(group.broker, since, ended_at_ms):
        return
    seconds_ms = seconds_between(since, heard_at_ms, ended_at_ms)
    if seconds_ms <= 0:
        return  # of a late timer, or of a session that is no whole number of seconds: which, it does not show
    if (modern.session_from, modern.session_ms) == ("seen", seconds_ms):
        return
    modern.session_ms, modern.session_from = seconds_ms, "seen"
    arm_all(
        facts,
        group,
        Doubt.SESSION_LEARNED if ended_at_ms - since - seconds_ms <= TIMERS_NEAR_MS else Doubt.SESSION_GUESSED,
    )
    _share(facts, group, modern.protocol, seconds_ms)


def seconds_between(since: float, heard_at_ms: float, ended_at_ms: float) -> int:
    """The whole number of seconds, in ms, that fits between the longest and the shortest that a session can have been
    which began at an instant from `since` to `heard_at_ms`; 0 where none fits, or several do."""
    at_most_ms, at_least_ms = ended_at_ms - since, ended_at_ms - heard_at_ms - BUSY_MS
    seconds_ms = int((at_most_ms + AT_ONCE_MS) // SECOND_MS * SECOND_MS)
    fits = seconds_ms > 0 and seconds_ms - SECOND_MS < at_least_ms <= seconds_ms
    return seconds_ms if fits else 0


def _share(facts: Facts, group: Group, protocol: str, session_ms: int) -> None:
    """It is a setting of the cluster, as a rule: what one group has shown serves the others until one contradicts."""
    of_shard = facts.shared_session_ms.setdefault(str(group.shard), {})
    known_ms = of_shard.get(protocol, session_ms)
    of_shard[protocol] = session_ms if known_ms == session_ms else DIFFERENT
    if known_ms != session_ms:
        _withdraw_shared(facts, group.shard, protocol)
    take_up(facts, group.shard)


def _withdraw_shared(facts: Facts, shard: int, protocol: str) -> None:
    """What other groups have shown is not so any more: groups of a shard that it served go by what is left."""
    for group in facts.groups.values():
        modern = group.modern
        if (
            shard in (ALL_SHARDS, group.shard)
            and modern is not None
            and (modern.session_from, modern.protocol) == ("shared", protocol)
            and _told(facts, group, modern)[0] != modern.session_ms
        ):
            _forget(facts, group, modern)


def _forget(facts: Facts, group: Group, modern: ModernGroup) -> None:
    modern.session_ms, modern.session_from = -1, ""
    configure(facts, group, modern)
    arm_all(facts, group)


def unlearn(facts: Facts, group: Group, over: Ended) -> None:
    """What was taken for the end of a session was none: no session is known to be that long by it."""
    modern, silent_ms = group.modern, over.ended_at_ms - over.member.session_renewed_at_ms
    if modern is None or modern.session_from != "seen" or not 0 <= silent_ms - modern.session_ms <= BUSY_MS:
        return
    of_shard = facts.shared_session_ms.get(str(group.shard), {})
    if of_shard.get(modern.protocol) == modern.session_ms:
        del of_shard[modern.protocol]
        _withdraw_shared(facts, group.shard, modern.protocol)
    _forget(facts, group, modern)


def note_silence(facts: Facts, group: Group, since: float, at: float) -> None:
    """Somebody who was not heard between two instants is a member still: a session is longer than that, unless its
    broker stood still or another one has loaded the group meanwhile."""
    modern = group.modern
    if modern is None or modern.session_from in ("", "given") or at - since <= modern.session_ms + LATE_MS:
        return
    if since <= max(group.unsure_to, group.gap_at_ms) or facts.is_broken(group.broker, since, at):
        return
    modern.session_least_ms = max(modern.session_least_ms, int(at - since))
    if modern.session_from == "shared":
        facts.shared_session_ms.setdefault(str(group.shard), {})[modern.protocol] = DIFFERENT
        _withdraw_shared(facts, group.shard, modern.protocol)
    else:
        _forget(facts, group, modern)
