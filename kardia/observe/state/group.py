"""What the observer holds: groups, members, an open rebalance. Plain data; `compact` has its form for the state store.

Nothing here decides anything. Instants are floats, epoch milliseconds on the broker's clock; NEVER stands for "not
known" and "does not happen".
"""

from __future__ import annotations

from msgspec import field

from kardia.doubts import Doubts
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.state.cause import NEVER, Cause
from kardia.observe.state.compact import Compact
from kardia.observe.state.entries import (
    BeginLine,
    Foretold,
    HandedOut,
    HeardLate,
    Kept,
    Left,
    NeverUsed,
    Previous,
    SaidEnd,
    SentBack,
    Stored,
    Waited,
)
from kardia.observe.state.modern import NO_PROOF, Bump, ModernGroup, ModernMember
from kardia.tolerances import CONFIGURED_MS, LOADS_WITHIN_MS, TELEMETRY_ERROR_MS

__all__ = [
    "LOADS_WITHIN_MS",
    "NEVER",
    "NO_SESSION",
    "TELEMETRY_ERROR_MS",
    "Cause",
    "Ended",
    "Group",
    "Join",
    "Member",
    "Rebalance",
    "Told",
]

NO_SESSION = -1
"""`session_ms` of a member of which no session runs, or none whose length is known."""


class Member(Compact):
    """One life of a member, from the coordinator's ADD to its end."""

    member_id: str
    joined_at_ms: float
    instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    connection: str = ""
    software: str = ""
    library: str = "unknown"
    join_version: int = -1
    """API version of its JoinGroup; with that of its heartbeats it may tell the library of who announces none."""
    session_ms: int = -1
    rebalance_ms: int = -1
    generation_first: int = -1
    synced_generation: int = -1
    """Generation of its last SyncGroup that was answered with an assignment."""
    seen_joining: bool = False
    """Its own JoinGroup was seen; without it joined_at_ms is only when it was first noticed."""

    # the session
    session_renewed_at_ms: float = NEVER
    """Last renewal of the session timer."""
    heard_at_ms: float = NEVER
    """Last renewal in which it had a part, while its timer runs from a load, in which it had none; NEVER else."""
    renewed_before_join_at_ms: float = NEVER
    """Renewal in force before the last join completion: tells when a member that is missing from it had run out."""
    unknown_since_at_ms: float = NEVER
    """Set while a gap hides whether it was renewed."""
    rebalance_notified_at_ms: float = NEVER
    """When it was first told (27) of the rebalance under way; then it may be waiting in a JoinGroup, unseen."""
    heard_late: HeardLate | None = None
    """Its last heartbeat, where it is not known to the ms when that renewed."""
    usual_gap_max_ms: float = 0.0
    """Longest usual silence between two renewals, slowly forgotten."""

    connected_at_ms: float = NEVER
    """Since when it comes by another connection than that of its first JoinGroup; NEVER if it does not."""
    heard_on: str = ""
    """Connection of its last heartbeat."""
    heard_before_on: str = ""
    """Of its last heartbeat by another one: what waits there is answered still."""
    throttled_ms: float = 0.0
    """For that long a quota muted its connection after that heartbeat."""
    fetched_at_ms: float = NEVER
    """Arrival of the last FETCH of its client, from which any connection but the coordinator's shows that it lives."""

    # the application
    polled_at_ms: float = NEVER
    poll_evidence: str = "none"
    poll_error_ms: float = 0.0
    pushed_at_ms: float = NEVER
    """Arrival of its last telemetry that said when it polled; `pushed_ago_ms` before that, by its own clock."""
    pushed_ago_ms: float = 0.0
    pushed_poll_at_ms: float = NEVER
    """Last poll by its telemetry, kept apart from what its traffic shows: the surer one counts (`last_poll_at_ms`)."""
    last_commit_at_ms: float = NEVER
    """Arrival of its last commit, also of one that brought nothing new."""
    committed_at_ms: float = NEVER
    commit_mark: int = -1
    """Sum of the last committed offsets: changed means advanced."""
    data_since_commit_at_ms: float = NEVER
    """First answer with records after the last commit: data was there to consume and to commit."""
    brought: dict[str, bool] = field(default_factory=dict)
    """Connection -> whether its last FETCH was answered with records, for libraries that show when they are taken."""

    # what has been said
    timer_at_ms: float = NEVER
    overdue: bool = False
    session_prediction_at_ms: float = NEVER
    session_prediction_deadline_at_ms: float = NEVER
    poll_prediction_at_ms: float = NEVER
    poll_prediction_deadline_at_ms: float = NEVER
    rebalance_prediction_at_ms: float = NEVER
    rebalance_prediction_deadline_at_ms: float = NEVER
    fenced: bool = False
    """Whether it was told, after its life, that another process has its instance id."""
    health_at_ms: float = NEVER
    """Of its last row of health."""
    sample_due_at_ms: float = NEVER
    """When the next one is due as long as it is in good health; NEVER if it does not wait for that."""
    row_known: int = -1
    imminent: bool = False
    """Its open session prediction has outlived the early, provisional step."""
    returned_at_ms: float = NEVER
    """When it was found to be a member still, though taken for ended; its session was renewed at some time before."""
    asked_at_ms: float = NEVER
    """Last request of it that was answered and need not have renewed its session: it was not silent then, and may have
    joined right after."""
    doubtful_at_ms: float = NEVER
    """A renewal that may not have been one: its SyncGroup came in the instant in which the group became Stable."""
    joined_by: float | None = None
    """The latest that it can have become a member, as `Ended.by`."""
    modern: ModernMember | None = None
    """Of a member of a group that is one of the newer protocols."""
    refusals: int = 0
    """How often it was refused while it was a member, or somebody who asked for its static id, up to `REFUSALS_MAX`."""
    polls_in_secret: bool = False
    """It was a member past the end of its poll interval that had been foretold: its application polls where nothing
    shows it, as one does that has paused its partitions. Nothing is foretold of its polls any more."""

    @property
    def is_in_danger(self) -> bool:
        """Whether its health is written in every step."""
        return self.overdue or self.imminent or self.poll_prediction_at_ms >= 0 or self.rebalance_prediction_at_ms >= 0

    @property
    def by_telemetry(self) -> bool:
        """Whether its own telemetry shows a poll after the last one that its traffic shows."""
        return self.pushed_poll_at_ms - TELEMETRY_ERROR_MS > self.polled_at_ms

    @property
    def last_poll_at_ms(self) -> float:
        """Latest instant at which the application is known to have polled; NEVER if there is none."""
        pushed_at_ms, polled_at_ms = self.pushed_poll_at_ms, self.polled_at_ms
        return pushed_at_ms if pushed_at_ms - TELEMETRY_ERROR_MS > polled_at_ms else polled_at_ms  # `by_telemetry`

    @property
    def last_heard_at_ms(self) -> float:
        """Latest renewal of its session in which it had a part."""
        return self.heard_at_ms if self.heard_at_ms >= 0 else self.session_renewed_at_ms

    def begin_anew(self, at: float) -> None:
        """Its timer begins anew at a load."""
        if self.heard_at_ms < 0:
            self.heard_at_ms = self.session_renewed_at_ms
        self.session_renewed_at_ms = at

    @property
    def is_session_assumed(self) -> bool:
        """Whether nothing says how long its session is: then nothing is told that follows from what is held of it."""
        return self.modern is not None and self.modern.session_assumed and not self.modern.classic

    @property
    def renewed_unseen(self) -> bool:
        """Whether it is not known from when its session runs, and nothing was heard of it since."""
        return self.is_unsure(self.session_renewed_at_ms)

    def is_unsure(self, session_renewed_at_ms: float) -> bool:
        """Whether a renewal is none that was seen for sure: it was taken for ended then, or may have been told nothing
        new."""
        return session_renewed_at_ms >= 0 and session_renewed_at_ms in (self.returned_at_ms, self.doubtful_at_ms)

    def over_from(self, over_at: float) -> float:
        """The earliest that its session was over which ends at an instant by what counts as its last renewal."""
        heard = self.heard_late
        if heard is not None and abs(over_at - self.session_ms - heard.answered_at_ms) < 1.0:
            return over_at - heard.width_ms
        return over_at

    @property
    def deadline_from(self) -> float:
        """The earliest that `deadline` may be; NEVER when that is not known."""
        return self.over_from(self.deadline)

    @property
    def deadline(self) -> float:
        """When the coordinator evicts it if it stays silent; NEVER when that is not known."""
        if self.session_renewed_at_ms < 0 or self.session_ms < 0 or self.unknown_since_at_ms >= 0:
            return NEVER
        return self.session_renewed_at_ms + self.session_ms


class Ended(Compact):
    """A life that is over, kept as long as later evidence may correct or confirm it."""

    member: Member
    ended_at_ms: float
    cause: str
    reason: str
    doubts: Doubts
    by: float | None = None
    """The latest that it can have ended, by a timer that fired late, or in the handling of a request that took long:
    None at `ended_at_ms`, NEVER if nothing says so."""
    rivalled: bool = False
    """Whether something else may have ended it between the two: that it is gone then does not show why."""
    fault: str = ""
    """Who broke it, one of `FAULTS`; empty if nobody did."""
    fault_certainty: str = ""
    fault_signs: dict[str, int] = field(default_factory=dict)
    told: bool = False
    """Whether the coordinator said so itself, in server.log."""
    foretold: list[Foretold] = field(default_factory=list)
    """Predictions that its end decided, for an end that is taken back."""

    @property
    def began_at(self) -> float:
        """From when the session ran that expired: its last renewal. Its timer may have fired late."""
        began = self.ended_at_ms - self.member.session_ms
        return min(began, self.member.session_renewed_at_ms) if self.member.session_renewed_at_ms >= 0 else began


class Join(Compact):
    """A JoinGroup that was answered at the end of a join phase."""

    member_id: str
    asked_id: str
    instance_id: str
    client_id: str
    arrived_at_ms: float
    handled_at_ms: float
    reason: str
    is_new: bool
    replaces: str = ""
    replaces_surely: bool = True
    """Whether who is replaced was a member then; its session may have run out where that is not known."""
    since: float = NEVER
    """The earliest that a JoinGroup of this member may have taken effect, if its client came by another connection
    meanwhile: one that waits is never answered, and so not logged, once another one of the same member has come."""
    heard_before_ms: float = NEVER
    """When this member had been heard last, if it was by another connection: it may have joined by that one since, in a
    JoinGroup that waited and was never answered. NEVER if it was not."""
    begun_at_ms: float = NEVER
    """The earliest that it took effect, and `done_by` the latest, where a broker was slow to handle it (`handling`);
    None where it did so at the end of its handling, or most likely so (`Facts.loads_classes`)."""
    done_by: float | None = None
    first_seen: bool = False
    """Whether it may have been a member before: nothing of it had been read, and it asked with an id that was handed
    out where nothing was."""

    @property
    def may_be_earlier(self) -> bool:
        """Whether it took effect at the end of its handling most likely, and may have done so well before."""
        return self.done_by is None and 0 <= self.begun_at_ms < self.handled_at_ms

    @property
    def came_by(self) -> float:
        """The latest instant at which it took effect."""
        return self.handled_at_ms if self.done_by is None else max(self.done_by, self.handled_at_ms)

    @property
    def came(self) -> tuple[float, float | None]:
        """Between which instants it took effect; the second as `Ended.by`."""
        if self.since >= 0:
            return self.since, self.handled_at_ms if self.done_by is None else self.done_by
        return (self.handled_at_ms, None) if self.done_by is None else (self.begun_at_ms, self.done_by)


class Rebalance(Compact):
    """A rebalance under way, or just completed and not yet settled."""

    generation_before: int
    started_at_ms: float
    """NEVER until the cause is known."""
    cause: Cause | None = None
    rebalance_notified_at_ms: float = NEVER
    """First answer 27: it had begun by then."""
    told_start: float = NEVER
    """Start as the row of `transitions` says, if it was written before the join phase ended."""
    told_from: str = GroupState.UNKNOWN
    """State before it, as that row says."""
    joined_at_ms: float = NEVER
    generation_after: int = -1
    assigned_at_ms: float = NEVER
    assigned_by: float | None = None
    """The latest that it was, where the broker was slow to handle the leader's SyncGroup; as `Ended.by`."""
    joins: list[Join] = field(default_factory=list)
    refused: list[Join] = field(default_factory=list)
    """JoinGroups that waited in it and were refused in the end."""
    partitions_stopped_ms: float = NEVER
    """Partition-milliseconds without a reader, once it is over; NEVER where the assignments are not known."""
    sync_within_ms: int = -1
    """Time for SyncGroup: the highest rebalance timeout of its members when its join phase ended; then it is fixed."""
    sync_over_at_ms: float = NEVER
    """When the time for SyncGroup of the generation before was over, unless this rebalance began first."""
    never_synced: str = ""
    """Old id of a static member that was replaced before it had synced: the coordinator still waits for it."""
    leader: str = ""
    protocol_name: str = ""
    listed: dict[str, str] | None = None
    """Members in the leader's answer: member id -> instance id."""
    members_before: int = -1
    left_after: list[Left] = field(default_factory=list)
    """Who left right after the join phase ended."""
    caused_by: float = NEVER
    """Start of the rebalance before, where this one began because of it."""
    removed: list[Waited] = field(default_factory=list)
    """Members that did not rejoin in time."""
    blocked: list[Waited] = field(default_factory=list)
    """Ids that were handed out, and that nobody joined with."""
    over_by: float | None = None
    """The latest that the join phase can have ended, as `Ended.by`: nobody was left to be answered."""
    sent_back: SentBack | None = None
    """The first SyncGroup that it sent back after it had waited."""
    settled: bool = False
    row_known: int = -1
    contested: bool = False
    """Whether a member of which it is not sure when it ended may have begun it before the cause that is named."""
    unrequested: bool = False
    """Whether only sentences or records tell of it (`sentences`): who joined when is not known then."""
    size: int = -1
    """Members of the new generation, as far as one of those says so."""
    began_unseen: bool = False
    """Whether it had begun before anything that was read: `started_at_ms` is only when it was first seen to be under
    way."""
    joining: list[Waited] = field(default_factory=list)
    """Who has joined in it, as sentences beside its requests say, before a JoinGroup of it was answered; `waited_ms` is
    how long after its begin."""


MAX_SAID_ENDS = 1_000
"""Ends of a group that are remembered until they are seen otherwise."""


class Told(Compact):
    """What sentences and records told of a group: where its requests are not read all of it (`sentences`), beside them
    what the requests will show (`ends`, `began`, `unfinished`)."""

    kept: Kept | None = None
    """What it is after a load; None where that is not known."""
    shown_at_ms: float = NEVER
    """Last sentence or record that showed it as it is held."""
    listed_at_ms: float = NEVER
    """Last record that listed its members, or none."""
    sampled_at_ms: float = NEVER
    """When it was last asked about, if samples of the admin API are read."""
    sampled_by: str = ""
    """Source of the last of them."""
    assigned: dict[str, str] = field(default_factory=dict)
    """Member id -> its partitions as the last sample says, as a digest."""
    ends: dict[str, SaidEnd] = field(default_factory=dict)
    """Members that a sentence has ended, until what shows it beside the sentence is read: of a group that has epochs
    their records, of a classic one the answers of the join phase."""
    began: dict[str, float] = field(default_factory=dict)
    """Epochs by number, and conversions by name, of which a sentence was read and the record was not -> its stamp."""
    unfinished: Rebalance | None = None
    """The rebalance that was open when the group became a consumer group, until it is told: answers to JoinGroups that
    waited may show that it began earlier."""
    cause: Cause | None = None
    """What the next epoch begins with, where sentences alone tell of the group."""
    bump: Bump | None = None
    """The last epoch of such a group."""
    state_at_ms: float = NEVER
    """The last sentence or record that says in which state it is: a rebalance that is not seen to begin began since
    then. Those about a member do not, for they stand before or behind the begin of the rebalance that they lead to."""

    def note_end(self, member_id: str, end: SaidEnd) -> None:
        """Remember why a member is gone; the oldest is forgotten where there are too many."""
        self.ends[member_id] = end
        if len(self.ends) > MAX_SAID_ENDS:
            del self.ends[next(iter(self.ends))]

    def end_of(self, member_id: str, cause: str, at: float, within_ms: float) -> SaidEnd | None:
        """What was said of the end of a member, if it ended by that cause, and near that instant."""
        said = self.ends.get(member_id)
        return said if said is not None and said.cause == cause and abs(said.at_ms - at) <= within_ms else None


class Group(Compact):
    """Everything held about one group."""

    group_id: str
    shard: int
    broker: str = ""
    protocol: str = "classic"
    state: str = GroupState.UNKNOWN
    told_state: str = GroupState.UNKNOWN
    """State that the last row of `transitions` says; behind `state` while the cause of a rebalance is not known."""
    sampled_state: str = GroupState.UNKNOWN
    """State at the last rows of `health`: when it changes, all members are written again."""
    generation: int = -1
    leader: str = ""
    protocol_name: str = ""
    protocol_type: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    pending: dict[str, HandedOut] = field(default_factory=dict)
    """Ids handed out and not used yet."""
    pending_over: list[NeverUsed] = field(default_factory=list)
    """Ids that are pending no more, until the rebalance that waited for them is told."""
    gap_at_ms: float = NEVER
    """End of the last gap of the log: a renewal before it need not be the last, an id handed out may have been used."""
    handed_out_at_ms: float = NEVER
    """When the last id was handed out: whoever got it may wait in its first JoinGroup, unseen."""
    held: dict[str, int] = field(default_factory=dict)
    """Member id -> partitions assigned to it, in the generation `held_in`."""
    held_in: int = -1
    partitions: int = 0
    """Partitions assigned, and those that a cooperative assignor has taken from one member and not given to another."""
    ended: dict[str, Ended] = field(default_factory=dict)
    rebalance: Rebalance | None = None
    previous: Previous | None = None
    """Of the rebalance before it."""
    stable_at_ms: float = NEVER
    steady_at_ms: float = NEVER
    """Latest instant at which an answer showed that no rebalance was under way."""
    membership_complete: bool = False
    """All members are known: a leader's list or a record has been seen."""
    seq: int = 0
    known_at_ms: float = 0.0
    unsynced_at_ms: float = NEVER
    """When the time for SyncGroup was over, if that may have begun the rebalance under way."""
    deferred: list[Event] = field(default_factory=list)
    """Events that wait for the rest of a join burst, in their order."""
    begin_lines: list[BeginLine] = field(default_factory=list)
    """The last of them, if server.log is read, the latest last."""
    loaded_at_ms: float = NEVER
    load_told_at_ms: float = NEVER
    """When the coordinator last said itself, in server.log, that it had loaded the group."""
    broke_at_ms: float = NEVER
    """Last line of its broker before it was restarted, if it was: since then at the earliest sessions run anew."""
    moved_at_ms: float = NEVER
    """When its broker last answered that it does not lead the group; its next answer shows that it loaded it again."""
    empty_at_ms: float = NEVER
    """Instant of the last record that says the group has no members."""
    empty_by: str = ""
    """That record, as evidence."""
    empty_in: int = -1
    """Its generation, until it is concluded what it says of the members."""
    deserted_at_ms: float = NEVER
    """When the last member ended or was due, until an answer or its absence shows whether the group is Empty."""
    loading_since_at_ms: float = NEVER
    """First answer after a move that a coordinator gives while it still loads, too: a heartbeat answered 0."""
    loaded_by: float = NEVER
    """First answer after a move that one that still loads does not give: sessions that run from the load began by
    then."""
    unproven_at_ms: float = NEVER
    """The last of them. What seems renewed up to then need not have been."""
    asked_ms: int = -1
    """Highest rebalance timeout of ids handed out since the last join phase ended."""
    heard_at_ms: float = NEVER
    """Last answer of its coordinator that was looked at by itself; `steady_at_ms` may be later."""
    stored: Stored | None = None
    """Its last record; None where that is not known. See `loads`."""
    taken_back: Stored | None = None
    """Its generation that a load took back, as no answer had shown that its assignment was stored."""
    left_pending: dict[str, Left] = field(default_factory=dict)
    """Ids that left before any JoinGroup of theirs was answered."""
    upgrade_refused: str = ""
    """Last member id that asked to join it, a classic group, with the consumer protocol, and was refused."""
    rejected_at_ms: float = NEVER
    """When a full group last refused somebody that it knew, and forgot it: the Java coordinator does not look then if
    the join phase is over, so that all who are left may wait in their JoinGroups until its time is over."""
    release: str = ""
    """Release of its broker, or an older one that answers alike, where its lines are text (2.0 to 2.7); else empty."""
    deserted_by: str = ""
    """The evidence of `deserted_at_ms`; the same whether the group's record comes before or after the wait is over."""
    told: Told | None = None
    """Where its requests are not read: what sentences and records told of it."""
    modern: ModernGroup | None = None
    """None: a group of the classic protocol, or one of which nothing shows yet what it is."""
    operation: list[Event] = field(default_factory=list)
    """Records of one operation of a coordinator of the newer protocols, until all of them have come."""

    @property
    def said(self) -> Told:
        """What was told of it, made when it is first asked for: few groups have any."""
        if self.told is None:
            self.told = Told()
        return self.told

    def last_in_seat(self, instance_id: str) -> Ended | None:
        """The life with a static id that ended last."""
        lives = (over for over in self.ended.values() if over.member.instance_id == instance_id)
        return max(lives, key=lambda over: over.ended_at_ms, default=None)

    def latest_deadline(self, member: Member) -> float:
        """The latest that a member's session may end if it stays silent: one that runs from a load began by the first
        answer that shows that it was over. NEVER when that is not known."""
        if member.deadline < 0 or member.session_renewed_at_ms > self.unsure_to:
            return member.deadline
        loaded_by = self.loaded_by if self.loading_since_at_ms < 0 else self.loading_since_at_ms + LOADS_WITHIN_MS
        return max(member.session_renewed_at_ms, loaded_by) + member.session_ms

    def is_session_known(self, member: Member) -> bool:
        """Whether it is known how long the session of a member is; else it is that of other groups, or the default of
        brokers, or nothing."""
        own, modern = member.modern, self.modern
        return member.session_ms >= 0 and (
            own is None or own.classic or (modern is not None and modern.session_from not in NO_PROOF)
        )

    def shown_session_ms(self, member: Member) -> int | None:
        """How long the session of a member is, if that is known to the ms: one that was learned from how long somebody
        was silent before an eviction is, where that is a number that people configure."""
        if not self.is_session_known(member):
            return None
        own, modern = member.modern, self.modern
        learned = own is not None and not own.classic and modern is not None and modern.session_from == "seen"
        return None if learned and member.session_ms % CONFIGURED_MS else member.session_ms

    @property
    def is_undone(self) -> bool:
        """Whether the rebalance that is under way was lost with its coordinator, which has not answered since: the
        group is again as it was stored, or whatever became of it. No timer of that rebalance fires."""
        return self.moved_at_ms >= 0 and self.state in (GroupState.PREPARING, GroupState.COMPLETING)

    @property
    def may_be_classic(self) -> bool:
        """Of a consumer group whose records are not read: whether only members of the classic protocol are left. It is
        a classic one then, unless the broker does not allow that, and who is silent may wait in a JoinGroup."""
        return self.modern is not None and not self.modern.by_records and self.is_left_to_classic

    @property
    def is_left_to_classic(self) -> bool:
        """Of a consumer group: whether only members of the classic protocol are left. Its last change made it a classic
        one, unless the broker does not allow that (`group.consumer.migration.policy`)."""
        if self.modern is None or self.modern.protocol != "consumer" or not self.members:
            return False
        return all(member.modern is not None and member.modern.classic for member in self.members.values())

    def may_turn_classic(self, at: float) -> bool:
        """Whether it may have become a classic group by an instant, unseen, so that the sessions of its classic members
        began anew: no member of the consumer protocol is left whose timers are not over. Where records are read they
        say it."""
        modern = self.modern
        if modern is None or modern.by_records or not modern.mixed:
            return False
        others = (member for member in self.members.values() if member.modern is None or not member.modern.classic)
        return not any(member.deadline > at and not _had_to_give_up_by(member, at) for member in others)

    @property
    def unsure_to(self) -> float:
        """A session that seems to run since then or before runs from a load, whose instant is known within bounds."""
        return max(self.loaded_at_ms, self.unproven_at_ms)


def _had_to_give_up_by(member: Member, at: float) -> bool:
    """Whether a member's time to give partitions up was over by an instant."""
    own = member.modern
    return own is not None and own.revoke_since_at_ms >= 0 and own.revoke_since_at_ms + member.rebalance_ms <= at
