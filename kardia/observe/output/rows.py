"""Rows of the tables from what the observer holds. Only puts values into columns; decides nothing.

Each function returns one row in the column order of its table (`kardia.tables`), without `batch_id`.
"""

from __future__ import annotations

from typing import Any

from kardia.doubts import Doubts, certainty_of, names_of
from kardia.kafka.assignors import COOPERATIVE
from kardia.kafka.libraries import LIBRARIES
from kardia.observe.clients.application import UNKNOWN
from kardia.observe.deadlines.member_deadlines import polls_unseen
from kardia.observe.deadlines.waiting import awaited
from kardia.observe.output.in_motion import assigned, moving
from kardia.observe.output.status import GroupAt
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member, Rebalance
from kardia.tables import Row
from kardia.tolerances import LEAVE_DELAY_MS, TELEMETRY_ERROR_MS


def instant(at: float) -> int:
    """Milliseconds as a whole number. A line's stamp is cut, not rounded, to 1 ms; rounding here takes the middle."""
    return int(at + 0.5)


def bound(at: float, by: float | None) -> int | None:
    """How much later than `at` it may have been. `by`: the latest instant, None if it is `at`, NEVER if not known."""
    if by is None:
        return 0
    return max(0, instant(by) - instant(at)) if by >= 0 else None


def known(at: float) -> int | None:
    """An instant, or None when it is not known."""
    return int(at + 0.5) if at >= 0 else None


def in_doubt(doubts: Doubts) -> list[str] | None:
    """Column `doubts`."""
    return list(names_of(doubts)) if doubts else None


def _timeout(value: int) -> int | None:
    return value if value >= 0 else None


def poll_interval(member: Member) -> int | None:
    """max.poll.interval.ms of a member whose library announces it as its rebalance timeout, else None; of a worker of
    Kafka Connect as well, whose polls show in rebalances alone."""
    library = LIBRARIES[member.library]
    told = library.poll_interval and library.shows_between
    return member.rebalance_ms if told and member.rebalance_ms > 0 else None


def last_poll(member: Member) -> tuple[float, str, float]:
    """(latest instant of the last poll, what shows it, how much earlier it may have been). Where only its heartbeats
    show it, because it would have left otherwise, it is not known until when the next one is due."""
    if polls_unseen(member):
        return member.session_renewed_at_ms, "heartbeat", member.rebalance_ms + LEAVE_DELAY_MS
    if member.by_telemetry:
        return member.last_poll_at_ms, "telemetry", TELEMETRY_ERROR_MS
    return member.last_poll_at_ms, member.poll_evidence, member.poll_error_ms


def software(member: Member) -> tuple[str | None, str | None]:
    """Name and version of the client library as it announced them."""
    if not member.software:
        return None, None
    name, _, version = member.software.partition("/")
    return name or None, version or None


def broken_row(cluster: str, group: Group, at: float, known_at_ms: int, kafka_version: str, sentence: str) -> Row:
    """Row of `surprises`: the observer holds a group as none can be."""
    why = "what the observer holds of the group cannot be"
    about = (cluster, group.group_id, group.shard, instant(at), known_at_ms, "exact", "own_mistake", None)
    return (*about, "", "", sentence, None, why, kafka_version, None, "", -1)


def member_row(
    cluster: str, group: Group, member: Member, over: Ended | None, at: float, known_at_ms: int, doubts: Doubts
) -> Row:
    """Row of `members`."""
    name, version = software(member)
    return (
        cluster,
        group.group_id,
        group.shard,
        instant(at),
        known_at_ms,
        certainty_of(doubts),
        member.member_id,
        member.instance_id or None,
        "classic" if member.modern is not None and member.modern.classic else group.protocol,
        member.client_id or None,
        member.client_host or None,
        name,
        version,
        group.shown_session_ms(member),
        _timeout(member.rebalance_ms),
        instant(member.joined_at_ms),
        instant(over.ended_at_ms) if over else None,
        over.cause if over else None,
        (over.reason or None) if over else None,
        group.broker or None,
        _timeout(member.generation_first),
        (over.fault or None) if over else None,
        (over.fault_certainty or None) if over else None,
        [f"{key}={value}" for key, value in over.fault_signs.items()] if over and over.fault else None,
        bound(over.ended_at_ms, over.by) if over else bound(member.joined_at_ms, member.joined_by),
        (member.modern.rack or None) if member.modern is not None else None,
        _subscription(member),
        in_doubt(doubts),
    )


def _subscription(member: Member) -> list[str] | None:
    """Topics of a member that has epochs, or its regular expression."""
    own = member.modern
    if own is None or (own.topics is None and not own.regex):
        return None
    return [*(own.topics or ()), *([own.regex] if own.regex else [])]


def rebalance_row(
    cluster: str,
    group: Group,
    rebalance: Rebalance,
    stragglers: list[dict[str, Any]],
    known_at_ms: int,
    doubts: Doubts,
    slow_ms: int | None,
    withdrawn: bool = False,
) -> Row:
    """Row of `rebalances`; the rebalance has a cause and a start."""
    cause = rebalance.cause or Cause(NEVER, "unknown")
    is_over = rebalance.joined_at_ms >= 0 or rebalance.assigned_at_ms >= 0
    return (
        cluster,
        group.group_id,
        group.shard,
        instant(rebalance.started_at_ms),
        known_at_ms,
        certainty_of(doubts),
        instant(rebalance.started_at_ms),
        known(rebalance.joined_at_ms),
        known(rebalance.assigned_at_ms),
        cause.trigger,
        cause.member_id or None,
        cause.client_id or None,
        cause.instance_id or None,
        cause.reason or None,
        rebalance.generation_before,
        rebalance.generation_after if rebalance.generation_after >= 0 else None,
        rebalance.members_before if rebalance.members_before >= 0 else None,
        members_after(group, rebalance),
        stragglers,
        rebalance.leader or None,
        rebalance.protocol_name or None,
        known(rebalance.caused_by),
        lost_s(rebalance),
        int(rebalance.partitions_stopped_ms / 1000 + 0.5) if rebalance.partitions_stopped_ms >= 0 else None,
        slow_ms,
        bound(rebalance.started_at_ms, cause.by),
        _over_bound(rebalance) if is_over else None,
        withdrawn or None,
        "classic",
        None,
        rebalance.began_unseen or None,
        in_doubt(doubts),
    )


def _over_bound(rebalance: Rebalance) -> int | None:
    """How much later than is said a rebalance that is over may have been so."""
    if rebalance.assigned_by is not None:
        return bound(rebalance.assigned_at_ms, rebalance.assigned_by)
    return bound(max(rebalance.joined_at_ms, 0.0), rebalance.over_by)


def members_after(group: Group, rebalance: Rebalance) -> int | None:
    """Members of the new generation. None while the join phase lasts, or where nothing says how many there are."""
    if rebalance.unrequested:
        return _timeout(rebalance.size)
    if rebalance.joined_at_ms < 0:
        return None
    if rebalance.assigned_at_ms >= 0 and rebalance.assigned_at_ms == rebalance.joined_at_ms and not rebalance.leader:
        return 0
    return len(rebalance.listed) if rebalance.listed is not None else len(group.members)


def lost_s(rebalance: Rebalance) -> int | None:
    """Seconds without an assignment, over the members of the new generation: from the start, or from the JoinGroup of a
    member that came later, to the leader's assignment. None while it lasts, or where the start is not known, or who
    joined when. With a cooperative assignor nobody stands still."""
    if rebalance.assigned_at_ms < 0 or rebalance.started_at_ms < 0 or (rebalance.unrequested and rebalance.size):
        return None
    if rebalance.began_unseen:
        return None
    if rebalance.protocol_name in COOPERATIVE:
        return 0
    since = {join.member_id: join.handled_at_ms for join in rebalance.joins if join.is_new}
    begins = [max(since.get(join.member_id, 0.0), rebalance.started_at_ms) for join in rebalance.joins]
    return int(sum(rebalance.assigned_at_ms - begin for begin in begins) / 1000 + 0.5)


def transition_row(
    cluster: str,
    group: Group,
    at: float,
    known_at_ms: int,
    doubts: Doubts,
    member_id: str | None,
    from_state: str,
    to_state: str,
    cause: str,
    evidence: str,
    by: float | None,
) -> Row:
    """Row of `transitions`. What happened before a join phase ended belongs to the generation before it."""
    current = group.rebalance
    before = current is not None and at < current.joined_at_ms
    generation = current.generation_before if current is not None and before else group.generation
    return (
        cluster,
        group.group_id,
        group.shard,
        instant(at),
        known_at_ms,
        certainty_of(doubts),
        group.seq,
        "group" if member_id is None else "member",
        member_id,
        from_state,
        to_state,
        cause,
        evidence,
        generation if generation >= 0 else None,
        bound(at, by),
        in_doubt(doubts),
    )


def health_row(
    cluster: str,
    group_at: GroupAt,
    member: Member,
    known_at_ms: int,
    doubts: Doubts,
    status: str,
    reasons: list[str],
    polling: str = UNKNOWN,
) -> Row:
    """Row of `health`."""
    group, now = group_at.group, group_at.now
    interval = poll_interval(member)
    since, until = awaited(group, member, now, group_at.longest_ms) if status != "ended" else (NEVER, NEVER)
    polled_at_ms, evidence, error_ms = last_poll(member)
    abandoned, told = group_at.pending()
    polled = polled_at_ms >= 0
    assumed = member.is_session_assumed
    return (
        cluster,
        group.group_id,
        group.shard,
        instant(now),
        known_at_ms,
        certainty_of(doubts),
        member.member_id,
        member.instance_id or None,
        member.client_id or None,
        str(group.state),
        group.generation if group.generation >= 0 else None,
        None if assumed else _timeout(member.session_ms),
        interval,
        known(member.last_heard_at_ms),
        None if assumed else known(member.deadline),
        known(polled_at_ms),
        evidence,
        int(error_ms) if polled else None,
        instant(polled_at_ms + interval) if polled and interval and evidence != "heartbeat" else None,
        status,
        reasons,
        abandoned,
        known(since),
        known(until),
        polling,
        told,
        *_epoch_columns(member),
        moving(group, member, group_at.targets) if status != "ended" else None,
        *(assigned(group, member) if status != "ended" else (None, None)),
        in_doubt(doubts),
    )


def _epoch_columns(member: Member) -> tuple[int | str | None, ...]:
    """Columns of `health` about a member that has an epoch."""
    own = member.modern
    if own is None:
        return None, None, None, None, None
    counted = (None if one is None else sum(map(len, one.values())) for one in (own.assigned, own.revoking, own.target))
    state = "away" if own.away_since_at_ms >= 0 else str(own.state)
    return (own.epoch if own.epoch >= 0 else None, state, *counted)


def prediction_row(
    cluster: str,
    group: Group,
    member: Member,
    known_at_ms: int,
    doubts: Doubts,
    kind: str,
    predicted_at: float,
    deadline: float,
    outcome: str,
    outcome_at: float,
) -> Row:
    """Row of `predictions`."""
    true = outcome == "came_true"
    return (
        cluster,
        group.group_id,
        group.shard,
        instant(predicted_at),
        known_at_ms,
        certainty_of(doubts),
        member.member_id,
        member.client_id or None,
        kind,
        instant(predicted_at),
        known(deadline),
        outcome,
        known(outcome_at),
        instant(outcome_at) - instant(predicted_at) if true else None,
        instant(outcome_at) - instant(deadline) if true and deadline >= 0 else None,
        in_doubt(doubts),
    )
