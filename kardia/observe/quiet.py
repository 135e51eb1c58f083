"""Quiet stretches: heartbeats, fetches and commits of groups in which nothing else happens, many at a time.

What one of them does depends on nothing but the member's own state, so those of a quiet group need no place in the
order of everything. A stretch is applied here only if applying its requests one by one would say the same: the group
is Stable, nothing else of it is due, no silence in it is long enough to predict or to expire, nothing is predicted.
Everything else becomes single events again and goes the long way. A law in the tests compares both.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise

from kardia.events import Event, Kind
from kardia.model.libraries import LIBRARIES
from kardia.model.states import GroupState
from kardia.observe import deadlines, polls
from kardia.observe.facts import Facts
from kardia.observe.group import NEVER, Group, Member
from kardia.observe.identity import says_library
from kardia.observe.requests import CLASSIC, renew
from kardia.stretches import ARRIVED, BYTES, DECIDED, START, WIDTH, Stretch

_COMMIT, _FETCH, _TELEMETRY = int(Kind.COMMIT), int(Kind.FETCH), int(Kind.TELEMETRY)
_GROUP_RECORD, _OFFSET_RECORD = int(Kind.GROUP_RECORD), int(Kind.OFFSET_RECORD)
Due = tuple[float, str, Event]
"""(instant of its effect, broker, event)."""


class Held:
    """Stretches that wait for the clock of their broker, as events of a queue do."""

    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        """Hold nothing."""
        self._by_broker: dict[str, list[Stretch]] = {}

    def add(self, broker: str, stretch: Stretch) -> bool:
        """Hold a stretch; refused if its requests took effect in another order than they were logged in."""
        decided = stretch.column(DECIDED).tolist()
        if decided != sorted(decided):
            return False
        self._by_broker.setdefault(broker, []).append(stretch)
        return True

    def first_at(self) -> float | None:
        """Earliest instant of what is held."""
        return min(
            (stretch.numbers[DECIDED] for stretches in self._by_broker.values() for stretch in stretches), default=None
        )

    def due(self, limits: Mapping[str, float]) -> list[tuple[str, Stretch]]:
        """Take what took effect up to the limit of its broker: (broker, stretch). The rest stays."""
        taken: list[tuple[str, Stretch]] = []
        for broker, limit in limits.items():
            rest: list[Stretch] = []
            for stretch in self._by_broker.get(broker, ()):
                decided = stretch.column(DECIDED)
                count = len(decided) if decided[-1] <= limit else bisect_right(decided, limit)
                if count == len(decided):
                    taken.append((broker, stretch))
                elif count == 0:
                    rest.append(stretch)
                else:
                    head, numbers = stretch.head, stretch.numbers
                    taken.append((broker, Stretch(head, numbers[: count * WIDTH])))
                    rest.append(Stretch(head, numbers[count * WIDTH :]))
            if rest:
                self._by_broker[broker] = rest
            else:
                self._by_broker.pop(broker, None)
        return taken

    def events(self) -> Iterator[tuple[str, Event]]:
        """Everything that is held, one by one: (broker, event)."""
        for broker, stretches in self._by_broker.items():
            for stretch in stretches:
                for event in stretch.events():
                    yield broker, event


class _Quiet:
    """What is due for one member of a quiet group."""

    __slots__ = ("commits", "fetches", "heartbeats", "member")

    def __init__(self, member: Member) -> None:
        self.member = member
        self.heartbeats: list[Stretch] = []
        self.fetches: list[Stretch] = []
        self.commits: list[Due] = []


def apply(
    observer: Facts,
    due: list[tuple[str, Stretch]],
    ready: list[Due],
    now: Mapping[str, float],
    limits: Mapping[str, float],
) -> list[Due]:
    """Apply what is quiet; give what has to go the long way, in no order: the rest of `ready` and of the stretches.

    `due`: (broker, stretch) that took effect between `now` and `limits`, the clocks of the brokers before and after.
    """
    batch = _Batch(observer, due, ready, now, limits)
    batch.find_trouble()
    batch.apply()
    return batch.left()


class _Batch:
    """One move of the clocks."""

    def __init__(
        self,
        observer: Facts,
        due: list[tuple[str, Stretch]],
        ready: list[Due],
        now: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> None:
        self._observer = observer
        self._due = due
        self._ready = ready
        self._now = now
        self._limits = limits
        self._troubled: set[str] = set()
        self._clients: set[tuple[int, str, str]] = set()
        """Clients that may get another member in this move: their fetches are looked at one by one."""
        self._everything = False
        self._quiet: dict[str, dict[str, _Quiet]] = {}
        self._fetched: dict[int, list[tuple[Group, Member]]] = {}

    def find_trouble(self) -> None:
        """Find the groups that are not quiet, until no more are found."""
        for _, _, event in self._ready:
            self._look_at(event)
        for broker, limit in self._limits.items():
            if any(begin < limit for begin, _ in self._observer.unjudged.get(broker, ())):
                self._everything = True  # a restart may show
        if self._everything:
            return
        for place, (_, stretch) in enumerate(self._due):
            if stretch.head.kind == _FETCH:
                head = stretch.head
                client = (head.shard, head.client_id, head.client_host)
                self._fetched[place] = list(self._observer.clients.get(client, {}).values())
                if stretch.numbers[DECIDED] < self._now.get(self._due[place][0], NEVER):
                    self._clients.add(client)  # it comes late
        self._gather()
        for group_id, members in self._quiet.items():
            if group_id not in self._troubled and not self._is_quiet(self._observer.groups[group_id], members):
                self._troubled.add(group_id)
        self._spread()

    def _look_at(self, event: Event) -> None:
        """Note whom an event troubles. A commit of a member does not; neither does a record of one."""
        kind, group_id = event.kind, event.group_id
        if kind == _OFFSET_RECORD:
            return
        if kind == _TELEMETRY:
            self._look_at_telemetry(event)
            return
        if kind == _FETCH:
            self._clients.add((event.shard, event.client_id, event.client_host))
            found = self._observer.clients.get((event.shard, event.client_id, event.client_host))
            self._troubled.update(group.group_id for group, _ in (found or {}).values())
        elif not group_id:
            self._everything = True
        elif kind != _COMMIT or event.error_code != 0 or not event.member_id:
            self._troubled.add(group_id)
            self._clients.add((event.shard, event.client_id, event.client_host))
            if kind == _GROUP_RECORD:
                for entry in (event.detail or {}).get("members") or ():
                    self._clients.add((event.shard, entry[2], entry[3].lstrip("/")))
        else:
            group = self._observer.groups.get(group_id)
            member = group.members.get(event.member_id) if group is not None else None
            if member is None or says_library(member, event):
                self._troubled.add(group_id)
                self._clients.add((event.shard, event.client_id, event.client_host))

    def _look_at_telemetry(self, event: Event) -> None:
        """What a client says of its polls is kept apart from what its traffic shows, so that it troubles nobody unless
        it is the first that is heard of them."""
        group = self._observer.groups.get(event.group_id)
        member = group.members.get(event.member_id) if group is not None else None
        if member is not None and member.last_poll_at < 0:
            self._troubled.add(event.group_id)
            self._clients.add((event.shard, event.client_id, event.client_host))

    def _gather(self) -> None:
        """Sort what is due by group and member."""
        groups, troubled = self._observer.groups, self._troubled
        for place, (broker, stretch) in enumerate(self._due):
            head = stretch.head
            if head.kind == _FETCH:
                for group, member in self._fetched[place]:
                    if group.broker != broker:
                        troubled.add(group.group_id)
                    self._of(group, member).fetches.append(stretch)
                continue
            group_of = groups.get(head.group_id)
            member_of = group_of.members.get(head.member_id) if group_of is not None else None
            if group_of is None or member_of is None or group_of.broker != broker:
                troubled.add(head.group_id)
                self._clients.add((head.shard, head.client_id, head.client_host))
            elif (
                head.generation_id != group_of.generation
                or stretch.numbers[DECIDED] < self._now.get(broker, NEVER)
                or says_library(member_of, head)
            ):
                troubled.add(head.group_id)
            else:
                self._of(group_of, member_of).heartbeats.append(stretch)
        for moment in self._ready:
            event = moment[2]
            if event.kind == _COMMIT and event.group_id not in troubled:
                group = groups[event.group_id]
                if group.broker != moment[1] or moment[0] < self._now.get(moment[1], NEVER):
                    troubled.add(event.group_id)
                self._of(group, group.members[event.member_id]).commits.append(moment)

    def _of(self, group: Group, member: Member) -> _Quiet:
        members = self._quiet.setdefault(group.group_id, {})
        quiet = members.get(member.member_id)
        if quiet is None:
            quiet = members[member.member_id] = _Quiet(member)
        return quiet

    def _is_quiet(self, group: Group, members: dict[str, _Quiet]) -> bool:
        """Whether nothing can be said about a group while these requests are applied."""
        current = group.rebalance
        if group.state != GroupState.STABLE or group.protocol != CLASSIC or group.pending:
            return False
        if current is not None and not current.settled:
            return False
        if group.moved_at >= 0 or group.loading_since >= 0:
            return False
        limit = self._limits[group.broker] - deadlines.GRACE_MS
        for member in group.members.values():
            heard_at = member.armed_at
            quiet = members.get(member.member_id)
            if quiet is not None:
                if not self._goes_on(quiet):
                    return False
                heard_at = max(heard_at, *(stretch.numbers[DECIDED - WIDTH] for stretch in quiet.heartbeats), NEVER)
                heard_at = max(heard_at, *(at for at, _, _ in quiet.commits), NEVER)
            if member.overdue or (member.deadline >= 0 and heard_at + member.session_ms <= limit):
                return False
        return True

    def _goes_on(self, quiet: _Quiet) -> bool:
        """Whether a member is well and no silence between these requests is worth a word."""
        member, settings = quiet.member, self._observer.settings
        if member.unknown_since >= 0 or member.armed_at < 0:
            return False
        if max(member.session_prediction_at, member.poll_prediction_at, member.rebalance_prediction_at) >= 0:
            return False
        times = _decided(quiet.heartbeats)
        if times is None:
            return False
        times += [at for at, _, _ in quiet.commits]
        times.sort()
        early = settings.prediction_early_share * member.session_ms
        if member.session_ms >= 0 and _longest(member.armed_at, times) >= early:
            return False
        library = LIBRARIES[member.library]
        if library.poll_interval and member.rebalance_ms > 0 and member.last_poll_at >= 0:
            times = [event.arrived_at_ms for _, _, event in quiet.commits]
            if "fetch" in library.polled_by:
                for stretch in quiet.fetches:
                    times += stretch.column(ARRIVED)
            times.sort()
            if _longest(member.last_poll_at, times) >= settings.prediction_share * member.rebalance_ms:
                return False
        return True

    def _spread(self) -> None:
        """A client whose fetches are looked at one by one troubles every group it may speak for."""
        found = True
        while found:
            found = False
            for place, fetched in self._fetched.items():
                names = {group.group_id for group, _ in fetched}
                head = self._due[place][1].head
                touched = (head.shard, head.client_id, head.client_host) in self._clients
                if (touched or not names.isdisjoint(self._troubled)) and not names <= self._troubled:
                    self._troubled |= names
                    found = True

    def apply(self) -> None:
        """Apply what is due in the groups that are quiet."""
        if self._everything:
            return
        for group_id, members in self._quiet.items():
            if group_id not in self._troubled:
                group = self._observer.groups[group_id]
                for quiet in members.values():
                    _apply_one(self._observer, group, quiet)

    def left(self) -> list[Due]:
        """Events for the long way, not in order."""
        if self._everything:
            return self._ready + [moment for broker, stretch in self._due for moment in _single(broker, stretch)]
        troubled = self._troubled
        rest = [moment for moment in self._ready if moment[2].kind != _COMMIT or moment[2].group_id in troubled]
        for place, (broker, stretch) in enumerate(self._due):
            head = stretch.head
            if head.kind == _FETCH:
                alone = any(group.group_id in troubled for group, _ in self._fetched[place])
                alone = alone or (head.shard, head.client_id, head.client_host) in self._clients
            else:
                alone = head.group_id in troubled
            if alone:
                rest.extend(_single(broker, stretch))
        return rest


def _single(broker: str, stretch: Stretch) -> list[Due]:
    return [(event.decided_at_ms, broker, event) for event in stretch.events()]


def _decided(stretches: list[Stretch]) -> list[float] | None:
    """Instants of several stretches one after the other; None when they are not in order."""
    if not stretches:
        return []
    times = list(stretches[0].column(DECIDED))
    for stretch in stretches[1:]:
        times += stretch.column(DECIDED)
    return times if all(first <= second for first, second in pairwise(times)) else None


def _longest(before: float, times: list[float]) -> float:
    """Longest silence between the instants, with one before them."""
    longest = 0.0
    for at in times:
        if at - before > longest:
            longest = at - before
        if at > before:
            before = at
    return longest


def _apply_one(observer: Facts, group: Group, quiet: _Quiet) -> None:
    member = quiet.member
    heard = _decided(quiet.heartbeats) or []
    if heard:
        group.steady_at = max(group.steady_at, heard[-1])
        member.heard_on = quiet.heartbeats[-1].head.connection  # they are in order, see `_decided`
        member.throttled_ms = 0.0
    fetches = [(stretch, max(stretch.column(ARRIVED))) for stretch in quiet.fetches]
    member.fetched_at = max([member.fetched_at, *(fetched_at for _, fetched_at in fetches)])
    inside_poll = "fetch" in LIBRARIES[member.library].polled_by
    if LIBRARIES[member.library].taken_within_ms >= 0:
        _fetched_when_taken(observer, group, member, quiet.fetches)
    if not quiet.commits:
        _renew_all(observer, group, member, heard)
        for stretch, fetched_at in fetches:
            if inside_poll:
                _fetched_inside_poll(observer, group, member, fetched_at)
            elif member.data_since_commit_at < 0:
                _fetched_beside(observer, group, member, stretch)
        return
    moments: list[tuple[float, int, Event | None]] = [(at, 0, None) for at in heard]
    moments += [(at, 1, event) for at, _, event in quiet.commits]
    for stretch, fetched_at in fetches:
        if inside_poll:
            _fetched_inside_poll(observer, group, member, fetched_at)
        else:
            numbers = stretch.numbers
            brought = [place for place, size in enumerate(stretch.column(BYTES)) if size > 0]
            moments += [(numbers[place * WIDTH + DECIDED], 2, None) for place in brought]
    moments.sort(key=lambda moment: moment[:2])
    for at, what, event in moments:
        if what == 0:
            renew(observer, group, member, at)
        elif event is not None:
            observer.known = max(event.logged_at_ms, at + observer.settings.hold_ms)
            renew(observer, group, member, at)
            polls.on_commit(observer, group, member, event)
        else:
            _brought(observer, group, member, at)


def _renew_all(observer: Facts, group: Group, member: Member, heard: list[float]) -> None:
    """`requests.renew` for each instant; the same arithmetic without the calls."""
    if not heard:
        return
    last, habit, usual = member.armed_at, member.habit_ms, 0.7 * member.session_ms
    for at in heard:
        gap = at - last
        if gap > 0:
            if gap < usual:
                habit = max(habit * 0.97, gap)
            last = at
    member.armed_at, member.habit_ms = last, habit
    observer.watch_renewed(group, member)


def _fetched_inside_poll(observer: Facts, group: Group, member: Member, fetched_at: float) -> None:
    """Only the latest poll counts."""
    polls.polled(observer, group, member, "fetch", fetched_at, 0.0)


def _fetched_when_taken(observer: Facts, group: Group, member: Member, stretches: list[Stretch]) -> None:
    """Each FETCH tells of the answer before it on its connection."""
    fetches = [
        (
            numbers[at + DECIDED],
            numbers[at + START],
            stretch.head.connection,
            numbers[at + ARRIVED],
            numbers[at + BYTES],
        )
        for stretch in stretches
        for numbers in (stretch.numbers,)
        for at in range(0, len(numbers), WIDTH)
    ]
    for _, _, connection, arrived_at, size in sorted(fetches):
        polls.on_taken(observer, group, member, connection, arrived_at, size > 0)


def _fetched_beside(observer: Facts, group: Group, member: Member, stretch: Stretch) -> None:
    """The first answer with records after the last commit is what counts."""
    numbers = stretch.numbers
    for place, size in enumerate(stretch.column(BYTES)):
        if size > 0:
            _brought(observer, group, member, numbers[place * WIDTH + DECIDED])
            if member.data_since_commit_at >= 0:
                return


def _brought(observer: Facts, group: Group, member: Member, at: float) -> None:
    if member.data_since_commit_at < 0 and at > member.committed_at:
        member.data_since_commit_at = at
        observer.watch(group, member)
