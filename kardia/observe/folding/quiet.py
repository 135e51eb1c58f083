"""Quiet stretches: heartbeats, fetches and commits of groups in which nothing else happens, many at a time.

What one of them does depends on nothing but the member's own state, so those of a quiet group need no place in the
order of everything. A stretch is applied here only if applying its requests one by one would say the same: the group
is Stable, nothing else of it is due, no silence in it is long enough to predict or to expire, nothing is predicted.
Everything else becomes single events again and goes the long way. A law in the tests compares both.
"""

from __future__ import annotations

from collections.abc import Mapping

from kardia.events import Event, Kind
from kardia.kafka.libraries import LIBRARIES
from kardia.kafka.states import GroupState
from kardia.observe.deadlines import member_deadlines
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.folding.folded import Due, Quiet, apply_one
from kardia.observe.members.identity import says_library
from kardia.observe.requests.member_requests import CLASSIC
from kardia.observe.state.group import NEVER, Group, Member
from kardia.stretches import ARRIVED, DECIDED, WIDTH, Stretch
from kardia.tolerances import GRACE_MS

_COMMIT, _FETCH, _TELEMETRY = int(Kind.COMMIT), int(Kind.FETCH), int(Kind.TELEMETRY)
_GROUP_RECORD, _OFFSET_RECORD = int(Kind.GROUP_RECORD), int(Kind.OFFSET_RECORD)


def apply(
    facts: Facts,
    due: list[tuple[str, Stretch]],
    ready: list[Due],
    now: Mapping[str, float],
    limits: Mapping[str, float],
) -> list[Due]:
    """Apply what is quiet; give what has to go the long way, in no order: the rest of `ready` and of the stretches.

    `due`: (broker, stretch) that took effect between `now` and `limits`, the clocks of the brokers before and after.
    """
    batch = _Batch(facts, due, ready, now, limits)
    batch.find_trouble()
    batch.apply()
    return batch.left()


class _Batch:
    """One move of the clocks."""

    def __init__(
        self,
        facts: Facts,
        due: list[tuple[str, Stretch]],
        ready: list[Due],
        now: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> None:
        self._observer = facts
        self._due = due
        self._ready = ready
        self._now = now
        self._limits = limits
        self._troubled: set[str] = set()
        self._clients: set[tuple[int, str, str]] = set()
        """Clients that may get another member in this move: their fetches are looked at one by one."""
        self._everything = False
        self._quiet: dict[str, dict[str, Quiet]] = {}
        self._fetched: dict[int, list[tuple[Group, Member]]] = {}

    def find_trouble(self) -> None:
        """Find the groups that are not quiet, until no more are found."""
        for _, _, event in self._ready:
            self._look_at(event)
        for broker, limit in self._limits.items():
            if any(begin < limit for begin, _, _ in self._observer.unjudged.get(broker, ())):
                self._everything = True  # a restart may show
        if self._everything:
            return
        for place, (_, stretch) in enumerate(self._due):
            if stretch.head.kind == _FETCH:
                head = stretch.head
                client = (head.shard, head.client_id, head.client_host)
                self._fetched[place] = self._observer.members_of(*client)
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
        if member is not None and member.last_poll_at_ms < 0:
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
                or (member_of.heard_on and head.connection != member_of.heard_on)
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

    def _of(self, group: Group, member: Member) -> Quiet:
        members = self._quiet.setdefault(group.group_id, {})
        quiet = members.get(member.member_id)
        if quiet is None:
            quiet = members[member.member_id] = Quiet(member)
        return quiet

    def _is_quiet(self, group: Group, members: dict[str, Quiet]) -> bool:
        """Whether nothing can be said about a group while these requests are applied."""
        current = group.rebalance
        if group.state != GroupState.STABLE or group.protocol != CLASSIC or group.pending:
            return False
        if current is not None and not current.settled:
            return False
        if group.moved_at_ms >= 0 or group.loading_since_at_ms >= 0:
            return False
        limit = self._limits[group.broker] - GRACE_MS
        for member in group.members.values():
            heard_at_ms = member.session_renewed_at_ms
            quiet = members.get(member.member_id)
            if quiet is not None:
                if not self._goes_on(quiet):
                    return False
                heard_at_ms = max(
                    heard_at_ms, *(stretch.numbers[DECIDED - WIDTH] for stretch in quiet.heartbeats), NEVER
                )
                heard_at_ms = max(heard_at_ms, *(at for at, _, _ in quiet.commits), NEVER)
            if member.overdue or (member.deadline >= 0 and heard_at_ms + member.session_ms <= limit):
                return False
        return True

    def _goes_on(self, quiet: Quiet) -> bool:
        """Whether a member is well and no silence between these requests has to be told."""
        member, settings = quiet.member, self._observer.settings
        if member.unknown_since_at_ms >= 0 or member.session_renewed_at_ms < 0:
            return False
        if max(member.session_prediction_at_ms, member.poll_prediction_at_ms, member.rebalance_prediction_at_ms) >= 0:
            return False
        quiet.put_in_order()
        if quiet.heard is None:
            return False
        times = sorted([*quiet.heard, *(at for at, _, _ in quiet.commits)])
        early = settings.prediction_early_share * member.session_ms
        if member.session_ms >= 0 and _longest(member.session_renewed_at_ms, times) >= early:
            return False
        library = LIBRARIES[member.library]
        foretold = library.poll_interval and not member.polls_in_secret
        if foretold and member.rebalance_ms > 0 and member.last_poll_at_ms >= 0:
            times = [event.arrived_at_ms for _, _, event in quiet.commits]
            if "fetch" in library.polled_by:
                for stretch in quiet.fetches:
                    times += stretch.column(ARRIVED)
            times.sort()
            unseen = member_deadlines.polls_unseen(member)  # then nothing is foretold before it is seen to poll again
            since = member.last_poll_at_ms if not unseen else times[0] if times else NEVER
            if since >= 0 and _longest(since, times) >= settings.prediction_share * member.rebalance_ms:
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
                    apply_one(self._observer, group, quiet)

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


def _longest(before: float, times: list[float]) -> float:
    """Longest silence between the instants, with one before them."""
    longest = 0.0
    for at in times:
        if at - before > longest:
            longest = at - before
        if at > before:
            before = at
    return longest
