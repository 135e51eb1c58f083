"""Applies many quiet requests of one member in one step: the same as one by one, and a law in the tests compares both.

Whether they are quiet is decided in `quiet`; nothing is decided here.
"""

from __future__ import annotations

from operator import itemgetter

from kardia.events import Event
from kardia.kafka.libraries import LIBRARIES
from kardia.observe.deadlines.handling import heard_late
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import habits, polls
from kardia.observe.requests.member_requests import renew
from kardia.observe.state.group import NEVER, Group, Member
from kardia.stretches import ARRIVED, BYTES, DECIDED, HANDLED, START, WIDTH, Stretch

Due = tuple[float, str, Event]
"""(instant of its effect, broker, event)."""

_IN_ORDER = itemgetter(0, 1)


class Quiet:
    """What is due for one member of a quiet group."""

    __slots__ = ("commits", "fetches", "heard", "heartbeats", "member")

    def __init__(self, member: Member) -> None:
        self.member = member
        self.heartbeats: list[Stretch] = []
        self.heard: list[float] | None = []
        """Instants of the heartbeats once `put_in_order` was called; None when they are not in order."""
        self.fetches: list[Stretch] = []
        self.commits: list[Due] = []

    def put_in_order(self) -> None:
        """Line up the heartbeats of all stretches."""
        times = [at for stretch in self.heartbeats for at in stretch.column(DECIDED)]
        self.heard = times if times == sorted(times) else None


def apply_one(facts: Facts, group: Group, quiet: Quiet) -> None:
    member = quiet.member
    heard = quiet.heard or []
    if heard:
        group.steady_at_ms = max(group.steady_at_ms, heard[-1])
        member.heard_on = quiet.heartbeats[-1].head.connection  # they are in order, see `heard`
        member.throttled_ms = 0.0
        numbers = quiet.heartbeats[-1].numbers
        member.heard_late = heard_late(numbers[ARRIVED - WIDTH], numbers[HANDLED - WIDTH], numbers[DECIDED - WIDTH])
    fetches = [(stretch, max(stretch.column(ARRIVED))) for stretch in quiet.fetches]
    member.fetched_at_ms = max([member.fetched_at_ms, *(fetched_at_ms for _, fetched_at_ms in fetches)])
    inside_poll = "fetch" in LIBRARIES[member.library].polled_by
    if LIBRARIES[member.library].taken_within_ms >= 0:
        _fetched_when_taken(facts, group, member, quiet.fetches)
    if not quiet.commits:
        _renew_all(facts, group, member, heard)
        for stretch, fetched_at_ms in fetches:
            if inside_poll:
                _fetched_inside_poll(facts, group, member, fetched_at_ms)
            elif member.data_since_commit_at_ms < 0:
                _fetched_beside(facts, group, member, stretch)
        return
    moments: list[tuple[float, int, Event | None]] = [(at, 0, None) for at in heard]
    moments += [(at, 1, event) for at, _, event in quiet.commits]
    for stretch, fetched_at_ms in fetches:
        if inside_poll:
            _fetched_inside_poll(facts, group, member, fetched_at_ms)
        else:
            numbers = stretch.numbers
            brought = [place for place, size in enumerate(stretch.column(BYTES)) if size > 0]
            moments += [(numbers[place * WIDTH + DECIDED], 2, None) for place in brought]
    moments.sort(key=_IN_ORDER)
    heard = []
    for at, what, event in moments:
        if what == 0:
            heard.append(at)
            continue
        _renew_all(facts, group, member, heard)
        heard.clear()
        if event is not None:
            facts.known = max(event.logged_at_ms, at + facts.settings.hold_ms)
            renew(facts, group, member, at)
            polls.on_commit(facts, group, member, event)
        else:
            _brought(facts, group, member, at)
    _renew_all(facts, group, member, heard)


def _renew_all(facts: Facts, group: Group, member: Member, heard: list[float]) -> None:
    """`requests.renew` for each instant; the same arithmetic without the calls."""
    if not heard:
        return
    last, habit, usual = member.session_renewed_at_ms, member.usual_gap_max_ms, habits.USUAL * member.session_ms
    for at in heard:
        gap = at - last
        if gap > 0:
            if habit < gap < usual:
                habit = habits.after(facts, group.broker, member, habit, last, at)
            elif gap < usual:
                habit = max(habit * habits.FORGETS, gap)
            last = at
    member.session_renewed_at_ms, member.usual_gap_max_ms = last, habit
    member.heard_at_ms = NEVER
    facts.watch_renewed(group, member)


def _fetched_inside_poll(facts: Facts, group: Group, member: Member, fetched_at_ms: float) -> None:
    """Only the latest poll counts."""
    polls.polled(facts, group, member, "fetch", fetched_at_ms, 0.0)


def _fetched_when_taken(facts: Facts, group: Group, member: Member, stretches: list[Stretch]) -> None:
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
    for _, _, connection, arrived_at_ms, size in sorted(fetches):
        polls.on_taken(facts, group, member, connection, arrived_at_ms, size > 0)


def _fetched_beside(facts: Facts, group: Group, member: Member, stretch: Stretch) -> None:
    """The first answer with records after the last commit is what counts."""
    numbers = stretch.numbers
    for place, size in enumerate(stretch.column(BYTES)):
        if size > 0:
            _brought(facts, group, member, numbers[place * WIDTH + DECIDED])
            if member.data_since_commit_at_ms >= 0:
                return


def _brought(facts: Facts, group: Group, member: Member, at: float) -> None:
    if member.data_since_commit_at_ms < 0 and at > member.committed_at_ms:
        member.data_since_commit_at_ms = at
        facts.watch(group, member)
