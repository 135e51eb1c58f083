"""What is held beyond the usual of groups of the newer protocols (consumer, share, streams): epochs and partitions.

A group of them has an epoch, its target assignment has one, each member has one; a heartbeat is answered at once, and
nobody waits for all. Plain data; `kardia.observe.modern` decides. Partitions are kept by the id of their topic, tasks
of Kafka Streams by their subtopology. Instants are floats, epoch milliseconds on the broker's clock.
"""

from __future__ import annotations

from msgspec import field

from kardia.doubts import SURE, Doubt, Doubts
from kardia.kafka.states import MemberState
from kardia.observe.state.cause import NEVER, Cause
from kardia.observe.state.compact import Compact
from kardia.tolerances import TWO_STAMPS_MS

Partitions = dict[str, list[int]]
"""Topic id -> partitions."""


SESSION_DOUBTS: dict[str, Doubts] = {
    "given": SURE,
    "seen": Doubt.SESSION_LEARNED,
    "logged": Doubt.SESSION_LEARNED,
    "shared": Doubt.SESSION_GUESSED,
}
"""What says how long a session is -> what is in doubt about that. The configuration, as it was given or as the cluster
was asked; an eviction of the group; the settings that its broker logged when it started, which a setting of the group's
own overrides; an eviction of another group of its partition of `__consumer_offsets`."""

NO_PROOF = frozenset({"", "shared"})
"""Where no more than that says it silence shows that a member is in danger, and never that it is gone."""


class ModernMember(Compact):
    """What a member of such a group has beyond `Member`."""

    epoch: int = -1
    """Member epoch by its last answer or record; -1 if not known."""
    classic: bool = False
    """It speaks the classic protocol to a consumer group."""
    state: str = MemberState.UNKNOWN
    assigned: Partitions | None = None
    """What it may read; None if not known."""
    revoking: Partitions = field(default_factory=dict)
    """What it was told to give up, and has not given up yet."""
    target: Partitions | None = None
    """What it is to have in the end; only records say it."""
    revoke_since_at_ms: float = NEVER
    """When it was told to give something up: its rebalance timeout runs since then."""
    revoke_by: float | None = None
    """The latest that this can have been, as `Ended.by`."""
    held_back: int = 0
    """Partitions that it had to give up since it came to its last epoch."""
    refused: str = ""
    """Last member id that was refused because this one has the instance id."""
    rejoin_since_at_ms: float = NEVER
    """When a member of the classic protocol was first answered 27: then its time to rejoin began, if it did not run."""
    sync_since_at_ms: float = NEVER
    """When its JoinGroup was answered, if it has not sent SyncGroup since."""
    watched_at_ms: float = NEVER
    """Begin of the last of these for which a timer was set."""
    interval_ms: int = -1
    """How often the broker wants a heartbeat, by its answers."""
    rack: str = ""
    topics: list[str] | None = None
    """Names to which it is subscribed; None if not known."""
    regex: str = ""
    away_since_at_ms: float = NEVER
    """When it left for a moment, as a static member (-2); it is a member until its session is over."""
    reached_at_ms: float = NEVER
    """When it came to its epoch."""
    only_topic: str | None = ""
    """The one topic to which it has subscribed ever since it joined; empty where there is more, or that is not known;
    None before it is told to what a new member subscribes."""
    gone_at_ms: float = NEVER
    """Instant of the record that says that it is a member no more, until it is concluded why."""
    session_assumed: bool = False
    """Nothing says how long its session is: what is held is what brokers have by default."""
    heard_from_ms: float = NEVER
    """Arrival of its last request that was handled so late that it is in doubt when that renewed its session."""
    unstored_at_ms: float = NEVER
    """When its last request was handled that was told, seconds later, that nothing could be stored in time."""

    def awaited_since(self) -> tuple[float, ...]:
        """Begins of what must be done within its rebalance timeout, NEVER where nothing is to do: to rejoin and to sync
        with the classic protocol, to give partitions up with the new one."""
        return (self.rejoin_since_at_ms, self.sync_since_at_ms) if self.classic else (self.revoke_since_at_ms,)


class Reached(Compact):
    """A member that has come to an epoch that is not over yet."""

    member_id: str
    client_id: str
    at_ms: float
    held_back: int
    """Partitions that it had to give up first."""
    since_ms: float
    """Since when it was waited for: the begin of the epoch, or when it joined, if that was later."""
    by_ms: float | None = None
    """The latest that it can have ended, of one that ended instead (`Ended.by`)."""


class Bump(Compact):
    """A rebalance of such a group: from a new group epoch to the moment at which every member has come to it."""

    epoch_before: int
    epoch: int
    started_at_ms: float
    cause: Cause
    members_before: int = -1
    computed_at_ms: float = NEVER
    """When the target assignment of this epoch, or of a later one, was computed: at the latest, where an answer shows
    it."""
    is_computed_then: bool = False
    """It was then and not before: a record says so, or no answer can have kept it hidden."""
    spare: int = 0
    """Epochs of it beside the one that its cause made: several that an answer showed at once."""
    completed_at_ms: float = NEVER
    """When the last member came to it."""
    reached: list[Reached] = field(default_factory=list)
    dropped: list[Reached] = field(default_factory=list)
    """Members that ended before they came to it: `at_ms` is when."""
    members_after: int = -1
    moved: int = -1
    """Partitions that came to another member than before; -1 if not known."""
    stopped_ms: float = -1.0
    """Partition-milliseconds in it without an owner; -1 if not known."""
    completed_by: float | None = None
    """The latest that it can have been over, where the last who was waited for left by a request that waited."""
    row_known: int = -1
    target_told: bool = False
    """The row was told since the target was computed."""


class ModernGroup(Compact):
    """What such a group has beyond `Group`, whose `generation` is its epoch."""

    protocol: str = "consumer"
    epoch_sure: bool = False
    """The group epoch was seen in a record, or counted from one: another one in an answer is news."""
    assignment_epoch: int = -1
    """Epoch of the target assignment; -1 if not known."""
    session_ms: int = -1
    """Session timeout of members of the newer protocols; -1 if nothing says it."""
    session_from: str = ""
    """What says it, a key of `SESSION_DOUBTS`; empty: nothing does."""
    first: Bump | None = None
    """The first epoch of a group that began while nothing of it was known, until a second one."""
    bumps: list[Bump] = field(default_factory=list)
    """Rebalances that are not over, the oldest first."""
    unowned: dict[str, float] = field(default_factory=dict)
    """Partition, as `topic id:number`, that had an owner and has none -> since when."""
    owners: dict[str, str] = field(default_factory=dict)
    """Partition -> who had it last."""
    topic_names: dict[str, str] = field(default_factory=dict)
    """Topic id -> its name, as far as members that have one topic show it."""
    record_at_ms: float = NEVER
    """Instant of the last record about the group."""
    by_records: bool = False
    """Records of the group are read: what they do not say did not happen up to `record_at_ms`."""
    mixed: bool = False
    """Members of the classic protocol were in it."""
    resolves: bool = False
    """Somebody joined by a regular expression whose resolution, which makes an epoch, has not been seen."""
    unstored: dict[str, float] = field(default_factory=dict)
    """Who joined, and was not answered as it was not stored in time -> when that was handled."""
    lower_at_ms: float = NEVER
    """Last instant at which an answer showed that the group epoch was not higher than what is held."""
    since_at_ms: float = NEVER
    """When it became a group of its protocol, if that was seen: whatever made an epoch of it came after that."""
    session_least_ms: int = -1
    """Somebody was silent for so long and is a member still: a session is longer, whatever others say."""

    @property
    def session_doubts(self) -> Doubts:
        """What is in doubt about how long a session is."""
        return SESSION_DOUBTS.get(self.session_from, Doubt.SESSION_GUESSED)

    def may_hold_back(self, own: ModernMember, heard_at_ms: float) -> bool:
        """Whether a member may have been told to give partitions up by an answer that is not known: it was heard after
        the target of a later epoch was there, and did not come to that. Since when its time runs is not known then."""
        told = own.classic or own.away_since_at_ms >= 0 or own.revoke_since_at_ms >= 0
        if told or self.by_records or own.epoch < 0:
            return False
        later = (bump.computed_at_ms for bump in self.bumps if bump.epoch > own.epoch)
        return any(0 <= computed_at_ms < heard_at_ms - TWO_STAMPS_MS for computed_at_ms in later)
