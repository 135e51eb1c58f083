"""What the coordinator's sentences in server.log prove of groups that have epochs.

Where requests or records of the group are read they say nearly everything; a sentence adds why a member is gone, with
the very instant, which no record has and silence only suggests. It is the broker's own word: where something else had
been concluded, that is counted as a disagreement. Of a group of which neither is read the sentences are all there is:
who joined and ended, each new epoch with what came before it, the target assignment. When a member of a consumer group
has come to an epoch no sentence says, so that a rebalance is never told to be over, and whether the group is Stable is
`unknown`. Sources: `GroupMetadataManager.java` of 4.0 to 4.4; the words are in
`ingest/dialects/epoch_sentences.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from kardia.doubts import SURE, Doubt, Doubts, stands
from kardia.events import Event
from kardia.kafka.states import GroupState, ModernState
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.evidence import disagreements
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import ends, groups, removed, session_length
from kardia.observe.output.epoch_rows import epoch_row
from kardia.observe.sentences import fenced, lines, naming, reasons
from kardia.observe.state.entries import SaidEnd
from kardia.observe.state.group import Cause, Ended, Group, Member
from kardia.observe.state.modern import Bump
from kardia.tables import REFUSALS_MAX
from kardia.tolerances import BEGAN_WITHIN_MS

REASONS = (
    ("the member session expired", "session_expired"),
    ("it failed to transition from epoch ", "rebalance_timeout"),
    ("the classic member failed to join ", "join_timeout"),
    ("the member failed to sync ", "sync_timeout"),
)
"""Begin of the coordinator's reason for fencing a member -> cause of its end."""


PROTOCOLS = frozenset({"consumer", "share", "streams"})
"""What a sentence about a leave has for a reason, where it is none of a classic member with words of its own."""

MAX_BEGINS = 16
"""Epochs and conversions of a group whose sentences wait for their records."""

_BEGINS = frozenset({"epoch_raised", "upgraded", "downgraded"})


def on_line(facts: Facts, event: Event, at: float) -> bool:
    """A sentence. `at`: its stamp, epoch ms. False where it is none about a group that has epochs."""
    what = str((event.detail or {}).get("what"))
    if what == "preparing_rebalance":
        _begin_downgrade(facts, event, at)
    handler = _BY_SENTENCE.get(what)
    if handler is None:
        return False
    group = facts.groups.get(event.group_id)
    if facts.reads_requests(facts.broker, at) or facts.reads_records():
        if what in _BEGINS and facts.reads_records():
            _note_begin(new_coordinator.group_of(facts, event) if group is None else group, event, at, what)
        if group is not None:
            _beside(facts, group, event, at, what)
        return True
    group = naming.group_of(facts, event)
    if group.modern is None and lines.is_believed(facts, group, at, _LIKE.get(what, what)):
        handler(facts, group, event, at)
        group.said.shown_at_ms = group.said.state_at_ms = max(group.said.shown_at_ms, at)
    return True


# --- beside requests or records


def _beside(facts: Facts, group: Group, event: Event, at: float, what: str) -> None:
    """Why a member is gone; of all else the requests and records say more, and earlier."""
    fenced = _cause_of(event) if what == "epoch_member_fenced" else ""
    if not fenced and what != "epoch_member_left":
        return
    if not fenced and facts.reads_requests(facts.broker, at):
        _note_leave(facts, group, event, at)
        return  # with its requests a leave has its own reason
    if new_coordinator.is_overtaken(facts, group):
        if fenced:
            disagreements.tell(facts, group, disagreements.of_coordinator(group, event.member_id, fenced), event, at)
        return
    left = reasons.LeaveCause(fenced, SURE, "") if fenced else _why_it_left(event)
    member_id = _who(group, event)
    member, over = group.members.get(member_id), group.ended.get(member_id)
    if left.cause == "session_expired" and member is not None and facts.reads_requests(facts.broker, at):
        session_length.learn(facts, group, member, at)
    if member is not None and member.modern is not None:
        _end_held(facts, group, member, event, at, left)
    elif over is not None:
        if fenced:
            tell = disagreements.of_fencing(facts, group, member_id, left.cause, at)
            disagreements.tell(facts, group, tell, event, at)
        _correct_end(facts, group, over, at, left)


def _end_held(facts: Facts, group: Group, member: Member, event: Event, at: float, left: reasons.LeaveCause) -> None:
    """A sentence says why a member that is held is gone."""
    if groups.is_gone(member):
        removed.finish(facts, group, member, left.cause, left.words, left.doubts)
    elif facts.reads_records():
        # Its record says that it is gone, and not why.
        group.said.note_end(member.member_id, SaidEnd(left.cause, at, left.doubts))
    else:  # it was fenced: with its requests alone a leave has its own reason
        tell = disagreements.of_fencing(facts, group, member.member_id, left.cause, at)
        disagreements.tell(facts, group, tell, event, at)
        ends.remove_counted(facts, group, member, at, left.cause, "", SURE, told=True)


def _correct_end(facts: Facts, group: Group, over: Ended, at: float, left: reasons.LeaveCause) -> None:
    """A sentence says why a member is gone that has ended already; it counts where less was known."""
    agrees = over.cause == left.cause and not (over.told and over.doubts == SURE)
    if over.cause == "unknown" or (left.cause != "left" and (agrees or not stands(over.doubts))):
        ends.correct(facts, group, over, over.ended_at_ms if over.told else at, left.cause, left.doubts)
        over.told = True


def _note_leave(facts: Facts, group: Group, event: Event, at: float) -> None:
    """When a member left; why, its request says. Its records come with a later stamp where the machine was busy."""
    member = group.members.get(_who(group, event))
    if member is not None and member.modern is not None and facts.reads_records():
        group.said.note_end(member.member_id, SaidEnd("", at, SURE))


def _note_begin(group: Group, event: Event, at: float, what: str) -> None:
    """The record of it comes with a later stamp, much later in the first operation of a broker."""
    began = group.said.began
    began[str(event.generation_id) if what == "epoch_raised" else what] = at
    if len(began) > MAX_BEGINS:
        del began[next(iter(began))]


def _who(group: Group, event: Event) -> str:
    """Of whom a sentence tells: an admin who removes a static id names no member."""
    return event.member_id or group.instances.get(event.group_instance_id, "")


def _cause_of(event: Event) -> str:
    """Why a sentence says that a member was fenced, a cause of an end; empty where it is none that is known."""
    reason = str((event.detail or {}).get("reason", ""))
    return next((cause for words, cause in REASONS if reason.startswith(words)), "")


def is_session_end(event: Event) -> bool:
    """Whether a sentence says that a member was fenced because its session had ended."""
    return (event.detail or {}).get("what") == "epoch_member_fenced" and _cause_of(event) == "session_expired"


# --- alone


def _on_joined(facts: Facts, group: Group, event: Event, at: float) -> None:
    """It is said of every request with epoch 0 that is accepted, also of one whose member is there."""
    protocol = str((event.detail or {}).get("reason", ""))
    group.protocol = protocol if protocol != "classic" else "consumer"
    if event.member_id in group.members:
        return
    _named(facts, group, event, at, "member_joined")


def _named(facts: Facts, group: Group, event: Event, at: float, why: str) -> Member | None:
    member = naming.name(facts, group, event.member_id, at, why, SURE)
    if member is not None and member.joined_at_ms == at:
        member.instance_id = event.group_instance_id
        if member.instance_id:
            group.instances[member.instance_id] = member.member_id
        facts.index(group, member)
        facts.emit_member(group, member, at, SURE)
        group.said.cause = Cause(at, why, member.member_id, "", member.instance_id, named=True)
    return member


def _on_replaced(facts: Facts, group: Group, event: Event, at: float) -> None:
    replaced = [str(one) for one in (event.detail or {}).get("members") or ()]
    before = group.instances.get(event.group_instance_id, "")
    if not replaced and before not in ("", event.member_id):
        replaced = [before]  # up to 3.9 the sentence does not always say whom
    for old_id in replaced:
        naming.end(facts, group, old_id, at, "static_replaced", SURE)
    _named(facts, group, event, at, "static_replaced")


def _on_left(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A poll interval that ran out is a leave as well: which of the two, takes the request log, or the words of a
    member that speaks the classic protocol."""
    left = _why_it_left(event)
    _over(facts, group, event, at, left.cause, left.doubts, left.words)


def _why_it_left(event: Event) -> reasons.LeaveCause:
    words = str((event.detail or {}).get("reason", ""))
    return reasons.why_it_left("" if words in PROTOCOLS else words)


def _on_fenced(facts: Facts, group: Group, event: Event, at: float) -> None:
    _over(facts, group, event, at, _cause_of(event), SURE)


def _over(facts: Facts, group: Group, event: Event, at: float, cause: str, doubts: Doubts, words: str = "") -> None:
    member_id = _who(group, event)
    if not member_id:
        return
    member = group.members.get(member_id)
    naming.end(facts, group, member_id, at, cause, doubts, words)
    instance_id = member.instance_id if member is not None else event.group_instance_id
    if group.protocol != "consumer":
        group.said.cause = None  # its epoch has no line, and the next one that has is another
        return
    trigger = ends.TRIGGERS_BY_END.get(cause, "unknown")
    of_epoch: Doubts = SURE if doubts == SURE else Doubt.REASON_CONCLUDED
    group.said.cause = Cause(at, trigger, member_id, "", instance_id, words, of_epoch, named=True)


def _on_instance_in_use(facts: Facts, group: Group, event: Event, at: float) -> None:
    """Somebody asked for a static id that a member has, and was refused."""
    owners = [group.members[one] for one in (event.detail or {}).get("members") or () if one in group.members]
    for owner in owners:
        if owner.refusals < REFUSALS_MAX:
            owner.refusals += 1
            facts.emit_transition(group, at, owner.member_id, "Member", "Member", "static_id_asked_for", SURE)
    facts.emit_transition(group, at, event.member_id, "Absent", "Absent", "instance_id_in_use", SURE)


def _on_away(facts: Facts, group: Group, event: Event, at: float) -> None:
    facts.emit_transition(group, at, event.member_id, "Member", "Member", "static_left", SURE)


def _on_raised(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A new epoch; what was told just before is why. Of an epoch that a fencing made in a share or streams group no
    sentence tells: the next one names a higher number."""
    cause, group.said.cause = group.said.cause, None
    streams = bool(event.member_id)
    protocol = "streams" if streams else group.protocol if group.protocol != "classic" else "consumer"
    group.protocol = protocol
    if cause is None or not 0 <= at - cause.at <= BEGAN_WITHIN_MS or cause.trigger == "static_replaced":
        cause = Cause(at, "unknown", doubts=Doubt.NOT_SEEN, named=True)
    bump = Bump(event.generation_id - 1, event.generation_id, at, cause)
    cause.at = at
    group.generation, group.said.bump = event.generation_id, bump
    _tell(facts, group, bump)
    facts.set_state(group, at, ModernState.ASSIGNING, cause.trigger, SURE)


def _on_computed(facts: Facts, group: Group, event: Event, at: float) -> None:
    bump = group.said.bump
    if bump is not None and bump.epoch == event.generation_id and bump.computed_at_ms < 0:
        bump.computed_at_ms = at
        _tell(facts, group, bump)
    group.generation = max(group.generation, event.generation_id)
    if group.protocol == "share":
        facts.set_state(group, at, ModernState.STABLE, "assignment", Doubt.BY_RULE)
    else:
        facts.set_state(group, at, GroupState.UNKNOWN, "assignment", Doubt.NOT_SEEN)  # who has come to it is not told


def _tell(facts: Facts, group: Group, bump: Bump) -> None:
    bump.row_known = facts.known_at_ms(group, bump.row_known)
    settings = facts.settings
    facts.rows["rebalances"].append(
        epoch_row(
            settings.cluster_id,
            group,
            bump,
            bump.cause,
            bump.row_known,
            bump.cause.doubts,
            settings.straggler_ms,
            False,
            False,
            bump.computed_at_ms,
        )
    )


def _on_upgraded(facts: Facts, group: Group, event: Event, at: float) -> None:
    before = group.told_state
    group.protocol = str((event.detail or {}).get("reason", "consumer"))
    group.rebalance = group.said.kept = None
    facts.tell_group(group, at, before, "upgraded", SURE)


def _begin_downgrade(facts: Facts, event: Event, at: float) -> None:
    """With the begin of its first rebalance a group becomes a classic one: that it has become one is said after it."""
    reason = str((event.detail or {}).get("reason", ""))
    if not reason.startswith(reasons.DOWNGRADED) or facts.reads_requests(facts.broker, at) or facts.reads_records():
        return
    group = naming.group_of(facts, event)
    if group.modern is None and lines.is_believed(facts, group, at, "downgraded"):
        _on_downgraded(facts, group, event, at)


def _on_downgraded(facts: Facts, group: Group, _event: Event, at: float) -> None:
    if group.protocol == "classic" and group.rebalance is not None:
        return  # the begin of its first rebalance has told it
    before, group.protocol = group.told_state, "classic"
    group.said.bump = group.said.cause = None
    facts.tell_group(group, at, before, "downgraded", SURE)


def _on_loaded(facts: Facts, group: Group, _event: Event, at: float) -> None:
    group.loaded_at_ms = group.load_told_at_ms = at
    group.said.bump = group.said.cause = None
    facts.tell_group(group, at, group.told_state, "coordinator_loaded", SURE)


def _on_unloaded(facts: Facts, group: Group, _event: Event, at: float) -> None:
    group.said.bump = group.said.cause = None
    lines.lose(facts, group, at, "coordinator_unloaded")


def _nothing(_facts: Facts, _group: Group, _event: Event, _at: float) -> None:
    """A member that asked in vain, or one that has come to an epoch, which nothing here counts."""


_LIKE = {"epoch_group_loaded": "group_loaded", "epoch_group_unloaded": "group_unloaded"}

_BY_SENTENCE: dict[str, Callable[[Facts, Group, Event, float], None]] = {
    "epoch_raised": _on_raised,
    "target_computed": _on_computed,
    "epoch_member_joined": _on_joined,
    "epoch_member_replaced": _on_replaced,
    "epoch_member_left": _on_left,
    "epoch_member_away": _on_away,
    "epoch_member_fenced": _on_fenced,
    "epoch_member_reached": _nothing,
    "instance_in_use": _on_instance_in_use,
    "epoch_instance_fenced": fenced.tell,
    "upgraded": _on_upgraded,
    "downgraded": _on_downgraded,
    "epoch_group_loaded": _on_loaded,
    "epoch_group_unloaded": _on_unloaded,
}
"""What each sentence does of a group that only sentences tell of."""
