"""All commits and ends of one lane. Events in, rows of the table `lag` out, by what changed and within a budget.

The ends come as looks (`ENDS`): which of them changed, and that all others did not. Looks of one collector are a chain:
where a link is missing, what was not told since is not known. A partition is written by the look that finds its commit,
its end or its state changed, as many a second as the budget allows, the one written longest ago first; a quiet one
every `REPEAT_MS`, so that a reader that begins anew finds it without reading all history. Commits between two looks
wait for the next one: a commit of now beside an end of before would give a lag that never was. The row that a look
leaves behind says as of when all the others hold: of the look, unless the budget left something unwritten. Where nobody
ever looks, as in a replay, commits are written by themselves, with the same budget. They are those of the records, and
where none are read those of the requests; who committed only a request says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf
from operator import itemgetter
from typing import Any

from kardia.events import Event
from kardia.lag.commits import AT, NOBODY, OFFSET, OK, STOP, By, Commits, status, stops_ms
from kardia.lag.ends import PartitionEnd
from kardia.tables import Row

REPEAT_MS = 3_600_000
"""A partition of which nothing changes is written that often."""

BURST_MS = 30_000
"""So much of the budget may be saved up: a cluster whose partitions all change at once, as when it is first read."""

URGENT_SHARE = 10
"""What must not wait, as a status that changes, may be written up to so many times the budget ahead of it."""

COMMITS_MAX = 100_000
"""Groups' partitions of one lane, some 300 bytes each. One more puts the one out that was written longest ago."""

UNLOOKED_MS = 30_000
"""Who has seen commits for so long and no look takes it that nobody looks: a collector looks every five seconds."""

COMMITS_EVERY_MS = 10_000
"""Then changed commits are written that often, as often as looks come where they take long."""

ASKED_MAX = 5_000
"""Requests to commit that wait, some 1 kB each; one more and the one that has waited longest is taken in."""

LOOKED = "looked"
"""State of the row that a look leaves behind, whatever it saw."""

HELD_MAX = 20_000
"""Partitions of one group of which is remembered who has them."""

HOLDERS_MAX = 20_000
"""Groups of which that is remembered; the one heard first goes first."""

FEEDS_MAX = 8
"""Chains of looks that are remembered: those of collectors that ended go first."""

CLOCKS_MS = 5_000
"""A commit is stamped by a broker, a look by a collector: so far their clocks may be apart."""

_PLACE_OF, _ERROR_OF = itemgetter(0, 1), itemgetter(3)
"""Parts of an offset as `Kind.COMMIT` has it."""

Place = tuple[str, str, int]
"""Group, topic, partition."""


@dataclass(slots=True)
class Feed:
    """A chain of looks by one collector."""

    number: int
    next: int
    """Position of the next event of it."""
    asked_ms: int
    """When the last complete look was asked."""


@dataclass(slots=True)
class Holders:
    """Who has which partition of a classic group, by its last record."""

    members: dict[tuple[str, int], tuple[str, str]]
    """Partition -> member id, client.id."""


class LagBook:
    """Commits and ends of one lane."""

    def __init__(self, cluster_id: str, lane: int, rows_per_s: float) -> None:
        self._cluster_id, self._lane = cluster_id, lane
        self._rows_per_s = rows_per_s
        self.groups: dict[str, dict[tuple[str, int], Commits]] = {}
        self.shards: dict[str, int] = {}
        self.ends: dict[tuple[str, int], PartitionEnd] = {}
        self._readers: dict[tuple[str, int], dict[str, None]] = {}
        """Groups that have a commit on a partition, in the order of their first."""
        self._holders: dict[str, Holders] = {}
        """By group, of classic groups that have a commit."""
        self._feeds: dict[str, Feed] = {}
        """By source, the one heard last at the end."""
        self._feeds_met = 0
        self._dirty: dict[Place, int] = {}
        """What has changed and is not written yet, and the last look that had not seen the change, epoch ms; -1: there
        was none. The row that is written of it holds up to then."""
        self._by_told: dict[Place, None] = {}
        """Everything, the one written longest ago first."""
        self._checks: list[tuple[int, Place]] = []
        """What is looked at again then, though nothing of it changes, because time alone may change what is said; the
    earliest first."""
        self._left = 0.0
        self._filled_ms = -1
        self._asked: dict[tuple[str, str, str, tuple[tuple[str, int], ...]], tuple[int, int, Any]] = {}
        """Group, member, client.id and partitions of a request to commit -> when, shard, and its offsets as
        `Kind.COMMIT` has them; the one that waits longest first."""
        self._unlooked_ms = -1
        """Since when commits are known and no look has come."""

    # --- what comes

    def commit(self, event: Event) -> Iterator[Row]:
        """A record of a commit, or its tombstone: gives the row of one that is gone."""
        detail = event.detail or {}
        group_id, topic, partition = event.group_id, str(detail.get("topic", "")), int(detail.get("partition", -1))
        if partition < 0:
            return
        place = (topic, partition)
        if detail.get("tombstone"):
            yield from self._leave(group_id, place, int(event.logged_at_ms), "gone")
            return
        yield from self._take(group_id, event.shard, place, int(detail.get("offset", -1)), int(event.logged_at_ms))

    def asked(self, event: Event, at_ms: int, *, has_records: bool) -> list[Row]:
        """A request to commit, accepted at an instant: of each member and set of partitions the newest is kept, until
        it is its turn to be written. Who commits often costs no more than who does not."""
        offsets = (event.detail or {}).get("offsets") or ()
        if any(map(_ERROR_OF, offsets)):
            offsets = [one for one in offsets if not _ERROR_OF(one)]
        if not offsets:
            return []
        key = (event.group_id, event.member_id, event.client_id, tuple(map(_PLACE_OF, offsets)))
        known = self._asked.get(key)
        if known is None or known[0] <= at_ms:
            self._asked[key] = (at_ms, event.shard, offsets)
        return self._take_asked(1, has_records=has_records) if len(self._asked) > ASKED_MAX else []

    def deleted(self, group_id: str, at_ms: int) -> list[Row]:
        """A request to delete a group was accepted, and no records tell that its commits are gone."""
        for key in [key for key in self._asked if key[0] == group_id]:
            del self._asked[key]
        return [
            row for place in list(self.groups.get(group_id, ())) for row in self._leave(group_id, place, at_ms, "gone")
        ]

    def _take_asked(self, most: float, *, has_records: bool) -> list[Row]:
        """Take in requests of so many partitions, those that have waited longest. What is committed the records say,
        where they are read; who does it, only these. A topic has its id for a name where a request has no other."""
        rows: list[Row] = []
        while self._asked and most > 0:
            key = next(iter(self._asked))
            at_ms, shard, offsets = self._asked.pop(key)
            group_id, by, held = key[0], By(key[1], key[2]), self.groups.get(key[0], {})
            most -= len(offsets)
            for topic, partition, offset, _ in offsets:
                known = held.get((topic, partition))
                if not has_records:
                    if known is not None and at_ms < known.at_ms:
                        continue  # read late
                    rows += self._take(group_id, shard, (topic, partition), offset, at_ms)
                    held = self.groups[group_id]
                    known = held[topic, partition]
                if known is not None and (at_ms, offset) >= (known.by_at_ms, known.by_offset):
                    known.by, known.by_offset, known.by_at_ms = by, offset, at_ms
        return rows

    def _take(self, group_id: str, shard: int, place: tuple[str, int], offset: int, at_ms: int) -> Iterator[Row]:
        held = self.groups.setdefault(group_id, {})
        commits = held.get(place)
        if commits is None:
            if len(self._by_told) >= COMMITS_MAX:
                yield from self._put_one_out(at_ms)
            commits = self.groups.setdefault(group_id, held)[place] = Commits(offset, at_ms)
            self.shards[group_id] = shard
            self._readers.setdefault(place, {})[group_id] = None
            self._by_told[(group_id, *place)] = None
        end = self._known_end(place)
        commits.take(offset, at_ms, -1 if end is None else max(0, end - offset))
        self._note((group_id, *place))

    def assigned(self, event: Event) -> None:
        """A record of a classic group: who has which partition from here on. One whose assignment cannot be read, as
        of a Connect cluster, says nothing."""
        detail = event.detail or {}
        group_id, entries = event.group_id, detail.get("members") or ()
        if detail.get("tombstone"):
            changed = self._holders.pop(group_id, None) is not None
        else:
            found = Holders({})
            for member_id, _, client_id, _, _, _, assignment in entries:
                for topic, partitions in assignment:
                    for partition in partitions:
                        if len(found.members) < HELD_MAX:
                            found.members[topic, partition] = (member_id, client_id)
            if entries and not found.members:
                changed = self._holders.pop(group_id, None) is not None
            else:
                changed = self._holders.get(group_id) != found
                self._holders[group_id] = found
        if changed:
            for place in self.groups.get(group_id, ()):
                self._note((group_id, *place))
        if group_id not in self.groups and len(self._holders) > HOLDERS_MAX:
            del self._holders[next(iter(self._holders))]

    def look(self, event: Event) -> list[Row]:
        """Ends of partitions, as they were somewhere between `arrived_at_ms` and `logged_at_ms`: rows that are due."""
        detail = event.detail or {}
        asked_ms, answered_ms = int(event.arrived_at_ms), int(event.logged_at_ms)
        feed = self._feeds.pop(event.source, None)
        if feed is None or feed.next != event.start or detail.get("begins"):
            self._feeds_met += 1
            feed = Feed(self._feeds_met, event.start, -1)
        self._feeds[event.source] = feed
        while len(self._feeds) > FEEDS_MAX:
            del self._feeds[next(iter(self._feeds))]
        feed.next = event.end
        for topic, partitions in detail.get("ends", ()):
            for partition, start, end, epoch in partitions:
                self._see((topic, partition), feed, (start, end, epoch), asked_ms, answered_ms)
        for topic, partitions in detail.get("unreadable", ()):
            for partition in partitions:
                found = self.ends.get((topic, partition))
                if found is not None and found.feed >= 0:
                    found.feed = -1
                    self._changed((topic, partition))
        if detail.get("more"):
            return []
        self._take_asked(inf, has_records=True)
        is_first = feed.asked_ms < 0
        feed.asked_ms = asked_ms
        if is_first:
            # What only chains before this one told is known no more.
            for place, seen in self.ends.items():
                if seen.feed != feed.number:
                    self._changed(place)
        due = list(self._due(answered_ms))
        as_of_ms = min((at for at in self._dirty.values() if at >= 0), default=answered_ms)
        looked = (self._cluster_id, "", -1, as_of_ms, answered_ms, "exact", "", self._lane, LOOKED, *[None] * 13)
        return [*due, (*looked, asked_ms, *[None] * 5)]

    def tell(self, now_ms: int, *, has_records: bool, is_last: bool = False) -> list[Row]:
        """Commits that have changed, where nobody looks at ends. `is_last`: nothing will come any more."""
        if self._feeds_met or not (self.groups or self._asked):
            return []
        if self._unlooked_ms < 0:
            self._unlooked_ms = now_ms
        since_ms = max(self._unlooked_ms + UNLOOKED_MS, self._filled_ms + COMMITS_EVERY_MS)
        if now_ms < since_ms and not is_last:
            return []
        most = inf if is_last else self._rows_per_s * COMMITS_EVERY_MS / 1_000
        return [*self._take_asked(most, has_records=has_records), *self._due(now_ms)]

    def _see(
        self, place: tuple[str, int], feed: Feed, told: tuple[int, int, int], asked_ms: int, answered_ms: int
    ) -> None:
        if place not in self._readers:
            return  # of groups of other lanes, or of one that has taken its commit back
        seen = self.ends.get(place)
        if seen is None:
            seen = self.ends[place] = PartitionEnd()
        elif seen.feed == feed.number:
            seen.unchanged(feed.asked_ms)  # until the look before this one
        start, end, epoch = told
        is_new = (seen.end, seen.start, seen.feed) != (end, start, feed.number)
        seen.see(end, asked_ms, answered_ms, start, epoch)
        seen.feed = feed.number
        if is_new:
            self._changed(place)

    def _changed(self, place: tuple[str, int]) -> None:
        for group_id in self._readers.get(place, ()):
            self._note((group_id, *place))

    def _note(self, one: Place) -> None:
        """Something about a partition has changed since the last look."""
        self._dirty.setdefault(one, self._filled_ms)

    def _asked_ms(self, seen: PartitionEnd) -> int:
        """When the last look was asked that covered a partition; -1 where no chain covers it now."""
        if not self._feeds:
            return -1
        return max((feed.asked_ms for feed in self._feeds.values() if feed.number == seen.feed), default=-1)

    def _known_end(self, place: tuple[str, int]) -> int | None:
        seen = self.ends.get(place)
        return None if seen is None or self._asked_ms(seen) < 0 else seen.end

    def _leave(self, group_id: str, place: tuple[str, int], at_ms: int, state: str) -> Iterator[Row]:
        """A commit is gone: deleted with its group or by an administrator, expired, or its topic was deleted."""
        held = self.groups.get(group_id, {})
        commits = held.pop(place, None)
        if commits is None:
            return
        one = (group_id, *place)
        shard = self.shards.get(group_id, -1)
        self._dirty.pop(one, None)
        self._by_told.pop(one, None)
        readers = self._readers.get(place, {})
        readers.pop(group_id, None)
        if not readers:
            self._readers.pop(place, None)
            self.ends.pop(place, None)
        if not held:
            self.groups.pop(group_id, None)
            self.shards.pop(group_id, None)
            self._holders.pop(group_id, None)
        at_ms = max(at_ms, commits.told_at_ms + 1)
        yield (self._cluster_id, group_id, shard, at_ms, at_ms, "exact", *place, state, *[None] * 19)

    def _put_one_out(self, at_ms: int) -> Iterator[Row]:
        group_id, topic, partition = next(iter(self._by_told))
        yield from self._leave(group_id, (topic, partition), at_ms, "forgotten")

    # --- what is written

    def _due(self, now_ms: int) -> Iterator[Row]:
        most = self._rows_per_s * BURST_MS / 1_000
        passed_ms = 0 if self._filled_ms < 0 else max(0, now_ms - self._filled_ms)
        self._left = most if self._filled_ms < 0 else min(most, self._left + self._rows_per_s * passed_ms / 1_000)
        self._filled_ms = now_ms
        least = -URGENT_SHARE * most
        repeated, again = dict.fromkeys(self._repeated(now_ms)), list(self._checked(now_ms))
        for one in [*self._dirty, *repeated, *again]:
            if self._left < least:
                return
            commits = self._commits_of(one)
            if commits is None or now_ms <= commits.told_at_ms:
                continue  # a second collector looks at the same time
            row, told = self._row(one, commits, now_ms)
            is_due = one in self._dirty or one in repeated
            if told == commits.told and (not is_due or self._left < 1):
                continue
            commits.told_at_ms, commits.told = now_ms, told
            self._left -= 1
            self._dirty.pop(one, None)
            self._by_told.pop(one)
            self._by_told[one] = None
            yield row

    def _commits_of(self, one: Place) -> Commits | None:
        return self.groups.get(one[0], {}).get((one[1], one[2]))

    def _checked(self, now_ms: int) -> Iterator[Place]:
        """What may have stopped by now, or may turn out to be beyond the end."""
        while self._checks and self._checks[0][0] < now_ms:
            at_ms, one = heappop(self._checks)
            commits = self._commits_of(one)
            if commits is not None and commits.checked_at_ms == at_ms:
                commits.checked_at_ms = -1
                yield one

    def _repeated(self, now_ms: int) -> Iterator[Place]:
        """What was written so long ago that it is written again."""
        for one in list(self._oldest(now_ms)):
            if one not in self._dirty:
                yield one

    def _oldest(self, now_ms: int) -> Iterator[Place]:
        for one in self._by_told:
            told_at_ms = self.groups[one[0]][one[1], one[2]].told_at_ms
            if told_at_ms >= 0 and now_ms - told_at_ms < REPEAT_MS:
                return
            yield one

    def _row(self, one: Place, commits: Commits, now_ms: int) -> tuple[Row, str]:
        """The row of one partition, and what of it must not wait if it changes."""
        group_id, topic, partition = one
        seen = self.ends.get((topic, partition))
        asked_ms = -1 if seen is None else self._asked_ms(seen)
        window = commits.window
        from_ms = window[0][AT]
        state, end, start, lag, came, produced = "no_end", None, None, None, None, None
        if seen is not None and asked_ms >= 0:
            seen.unchanged(asked_ms)
            end, start = seen.end, seen.start if seen.start >= 0 else None
        if seen is not None and end is not None:
            beyond = commits.offset > end and commits.at_ms + CLOCKS_MS < asked_ms
            state = "beyond_end" if beyond else "known"
            if commits.offset > end and not beyond:
                self._check_at(one, commits, commits.at_ms + CLOCKS_MS)
            lag = None if beyond else max(0, end - commits.offset)
            came = seen.came(commits.offset) if lag else None
            since = seen.end_at(from_ms)
            produced = None if since is None else end - since
            if start is not None and commits.offset < start and not beyond:
                state = "below_start"
        shown = OK
        if lag:
            behind_ms = None if came is None else came.from_ms
            shown = status(window, lag, commits.at_ms, behind_ms, now_ms)
            if shown != STOP:
                self._check_at(one, commits, stops_ms(window, commits.at_ms, behind_ms))
        read = commits.offset - window[0][OFFSET]
        held = self._held(group_id, (topic, partition))
        by = commits.by if commits.by_offset == commits.offset else NOBODY
        row = (
            self._cluster_id,
            group_id,
            self.shards[group_id],
            now_ms,
            now_ms,
            "unknown" if lag is None else "exact" if commits.at_ms < asked_ms - CLOCKS_MS else "inferred",
            topic,
            partition,
            state,
            commits.offset,
            commits.at_ms,
            start,
            end,
            lag,
            None if came is None else came.from_ms,
            None if came is None else came.at_ms,
            None if came is None else came.to_ms,
            from_ms,
            len(window),
            produced,
            read,
            shown if lag is not None else None,
            asked_ms if asked_ms >= 0 else None,
            *held,
            by.member_id or None,
            by.client_id or None,
        )
        return row, f"{state}/{shown}/{bool(lag)}/{held[1]}"

    def _check_at(self, one: Place, commits: Commits, at_ms: int) -> None:
        """Look at a partition again then at the latest. An entry for later that is there stays and does not count; it
        is no further ahead than a window of ten commits is wide, so some ten of a partition are all there can be."""
        if 0 <= commits.checked_at_ms <= at_ms:
            return
        commits.checked_at_ms = at_ms
        heappush(self._checks, (at_ms, one))

    def _held(self, group_id: str, place: tuple[str, int]) -> tuple[str | None, str | None, str | None]:
        """Whether somebody has a partition, and who."""
        holders = self._holders.get(group_id)
        if holders is None:
            return None, None, None
        member = holders.members.get(place)
        return ("nobody", None, None) if member is None else ("member", *member)

    # --- keep and restore

    def snapshot(self) -> list[Any]:
        """Everything held, as plain values."""
        return [
            [
                [group_id, self.shards[group_id], [[*place, *_plain_commits(one)] for place, one in held.items()]]
                for group_id, held in self.groups.items()
            ],
            [
                [*place, seen.start, seen.epoch, seen.feed, [value for run in seen.runs for value in run]]
                for place, seen in self.ends.items()
            ],
            [[source, feed.number, feed.next, feed.asked_ms] for source, feed in self._feeds.items()],
            [self._feeds_met, self._left, self._filled_ms, self._unlooked_ms],
            [[at_ms, *one] for at_ms, one in self._checks],
            [[*one, at_ms] for one, at_ms in self._dirty.items()],
            [list(one) for one in self._by_told],
            [[*place, list(groups)] for place, groups in self._readers.items()],
            [
                [group_id, [[*place, *member] for place, member in holders.members.items()]]
                for group_id, holders in self._holders.items()
            ],
            [[*key[:3], *one] for key, one in self._asked.items()],
        ]

    def restore(self, state: list[Any]) -> None:
        """Take what a snapshot holds into a new book."""
        groups, ends, feeds, counts, checks, dirty, by_told, readers, holders, *asked = state
        for group_id, shard, held in groups:
            self.shards[group_id] = shard
            self.groups[group_id] = {(one[0], one[1]): _commits_of(one[2:]) for one in held}
        for topic, partition, start, epoch, feed, runs in ends:
            threes = [list(runs[at : at + 3]) for at in range(0, len(runs), 3)]
            self.ends[topic, partition] = PartitionEnd(threes, start, epoch, feed)
        for source, number, following, asked_ms in feeds:
            self._feeds[source] = Feed(number, following, asked_ms)
        self._feeds_met, self._left, self._filled_ms, *unlooked = counts
        self._unlooked_ms = unlooked[0] if unlooked else -1
        self._checks = [(at_ms, (group_id, topic, partition)) for at_ms, group_id, topic, partition in checks]
        heapify(self._checks)
        # Before the instant was kept: up to the look before it held in any case.
        self._dirty = {
            (group_id, topic, partition): at_ms[0] if at_ms else self._filled_ms
            for group_id, topic, partition, *at_ms in dirty
        }
        self._by_told = dict.fromkeys(_places(by_told))
        for topic, partition, names in readers:
            self._readers[topic, partition] = dict.fromkeys(names)
        for group_id, partitions in holders:
            self._holders[group_id] = Holders({(one[0], one[1]): (one[2], one[3]) for one in partitions})
        for group_id, member_id, client_id, at_ms, shard, offsets in asked[0] if asked else ():
            places = tuple(map(_PLACE_OF, offsets))
            self._asked[group_id, member_id, client_id, places] = (at_ms, shard, offsets)


def _places(plain: Iterable[Any]) -> Iterator[Place]:
    return ((group_id, topic, partition) for group_id, topic, partition in plain)


def _plain_commits(one: Commits) -> list[Any]:
    return [
        one.offset,
        one.at_ms,
        one.told_at_ms,
        one.told,
        one.checked_at_ms,
        [value for entry in one.window for value in entry],
        [*one.by, one.by_offset, one.by_at_ms],
    ]


def _commits_of(plain: list[Any]) -> Commits:
    offset, at_ms, told_at_ms, told, checked_at_ms, values, *by = plain
    window = [list(values[at : at + 3]) for at in range(0, len(values), 3)]
    *who, by_offset, by_at_ms = by[0] if by else (*NOBODY, -1, -1)
    return Commits(offset, at_ms, window, told_at_ms, told, checked_at_ms, By(*who), by_offset, by_at_ms)
