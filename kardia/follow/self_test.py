"""The self-test of a lane: its classic requests, as they come, put to the model of the release that its brokers run.

Events and stretches of a step in; rows of `surprises` out, and counts for `progress`. What it remembers is in memory
alone: after a restart each group is unknown until its next anchor, and a request that waited is not compared. Nothing
of the observer rests on it: what it cannot follow it says and leaves out. Bounded by `tolerances`: groups, requests
that wait, surprises of one group, traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kardia.events import ALL_SHARDS, Event, Kind, broker_of
from kardia.follow.clues import FOLLOWED
from kardia.follow.following import Following
from kardia.follow.releases import recognised
from kardia.follow.surprises import Counts, Surprise, SurpriseClass
from kardia.follow.tolerances import COMPARED_EVERY_MS, COUNTED_EVERY_MS, KNOWN_MAX
from kardia.stretches import END, LOGGED, WIDTH, Stretch
from kardia.tables import SELF_TEST, SURPRISE_CLASSES, Row

_JOIN, _TICK, _HEARTBEAT = int(Kind.JOIN), int(Kind.TICK), int(Kind.HEARTBEAT)

_TAKEN = FOLLOWED | {int(kind) for kind in (Kind.TICK, Kind.GAP, Kind.MODERN_HEARTBEAT)}
"""Kinds of events that say something of a classic group, or of a log."""


class SelfTest:
    """One lane."""

    def __init__(self, cluster_id: str, kafka_version: str = "") -> None:
        """`kafka_version`: of all brokers; empty: recognised for each from its lines."""
        self.counts: dict[str, int] = dict.fromkeys(SELF_TEST, 0)
        """Since they were taken last."""
        self._cluster_id, self._kafka_version = cluster_id, kafka_version
        self._followings: dict[str, Following] = {}
        """By release."""
        self._releases: dict[str, str] = {}
        """Broker -> its release."""
        self._followed_by: dict[str, str] = {}
        """Group -> release of the broker that answered last."""
        self._shards: dict[str, int] = {}
        self._ends: dict[str, float] = {}
        """Source -> up to where it was taken."""
        self._read_to: dict[str, float] = {}
        """Broker -> stamp of the last line that was taken."""
        self._compared_at_ms = self._counted_at_ms = -1.0
        self._counted: dict[str, int] = dict.fromkeys(SELF_TEST, 0)

    def step(self, events: Sequence[Event], stretches: Sequence[Stretch] = ()) -> list[Row]:
        """Take what a lane was given in one step; rows of `surprises`. Whatever it is given, it raises nothing."""
        try:
            self._take(events, stretches)
            at_ms = max(self._read_to.values(), default=-1.0)
            if not self._followings or at_ms - self._compared_at_ms < COMPARED_EVERY_MS:
                return []
            self._compared_at_ms = at_ms
            for following in self._followings.values():
                following.follow(self._read_to)
            return self._told(at_ms)
        except Exception as error:
            return [self._begun_anew(error)]

    def _begun_anew(self, error: Exception) -> Row:
        """All that is known is given up; the row that says so."""
        at_ms = int(max(self._read_to.values(), default=0.0))
        self._count()
        self._followings, self._counted = {}, dict.fromkeys(SELF_TEST, 0)
        seen, own = f"{type(error).__name__}: {str(error)[:200]}", SurpriseClass.OWN_MISTAKE
        return self._row(Surprise("", "", at_ms, "", "", seen, (), own, "the self-test begins anew"), "", at_ms)

    def finish(self) -> list[Row]:
        """No more comes."""
        for following in self._followings.values():
            following.finish()
        self._counted_at_ms = -1.0
        return self._told(max(self._read_to.values(), default=-1.0))

    def take_counts(self) -> dict[str, int]:
        """What became of the answers since this was last asked."""
        taken, self.counts = self.counts, dict.fromkeys(SELF_TEST, 0)
        return taken

    # --- taking

    def _take(self, events: Sequence[Event], stretches: Sequence[Stretch]) -> None:
        ends = dict(self._ends)
        for event in self._fresh([one for one in events if one.kind in _TAKEN]):
            ends[event.source] = max(event.end, ends.get(event.source, -1))
            following = self._of(event)
            if following is not None:
                following.take((event,))
        by_source: dict[str, list[Stretch]] = {}
        for stretch in stretches:
            if stretch.head.kind == _HEARTBEAT and stretch.numbers[END - WIDTH] > self._ends.get(
                stretch.head.source, -1
            ):
                by_source.setdefault(stretch.head.source, []).append(stretch)
        for source, some in by_source.items():
            ends[source] = max(ends.get(source, -1), *(one.numbers[END - WIDTH] for one in some))
            self._take_folded(broker_of(source), some)
        self._ends = ends
        while len(self._ends) > KNOWN_MAX:
            del self._ends[next(iter(self._ends))]

    def _take_folded(self, broker: str, stretches: list[Stretch]) -> None:
        following = self._of(stretches[0].head)
        if following is None:
            return
        last_ms = max(one.numbers[LOGGED - WIDTH] for one in stretches)
        self._read_to[broker] = max(last_ms, self._read_to.get(broker, -1.0))
        release = self._releases[broker]
        for one in stretches:
            if self._followed_by.get(one.head.group_id) != release:
                self._of(one.head)
        following.take_folded(stretches)

    def _fresh(self, events: Iterable[Event]) -> Iterator[Event]:
        """Without what was taken before: a collector that was killed sends it again. Of a tick its stamp is taken."""
        for event in events:
            if event.kind == _TICK:
                broker = broker_of(event.source)
                self._read_to[broker] = max(event.logged_at_ms, self._read_to.get(broker, -1.0))
                yield event
            elif event.end > self._ends.get(event.source, -1):
                yield event

    def _of(self, event: Event) -> Following | None:
        """Who follows the groups of a broker; None where nothing shows its release, and no request of it was read."""
        broker, group_id = broker_of(event.source), event.group_id
        release = self._releases.get(broker, "")
        if not release or event.kind == _JOIN:
            release = self._kafka_version or recognised((event,)) or release
            if not release:
                return None
            self._releases[broker] = release
        if group_id and event.shard != ALL_SHARDS:
            before = self._followed_by.get(group_id, release)
            if before != release:
                self._followings[before].forget(group_id)
            self._followed_by[group_id], self._shards[group_id] = release, event.shard
        if release not in self._followings:
            self._followings[release] = Following(release, begins=False, bounded=True)
        return self._followings[release]

    # --- telling

    def _told(self, at_ms: float) -> list[Row]:
        rows: list[Row] = []
        for release, following in self._followings.items():
            rows += [self._row(one, release, at_ms) for one in following.surprises]
            following.surprises = []
        if rows or at_ms - self._counted_at_ms >= COUNTED_EVERY_MS:
            self._counted_at_ms = at_ms
            self._count()
        return rows

    def _count(self) -> None:
        whole = Counts()
        for following in self._followings.values():
            whole.add(following.counts())
        found = {"answers": whole.answers, "predicted": whole.predicted}
        found |= {name: whole.surprising[name] for name in SURPRISE_CLASSES}
        for known in (self._followed_by, self._shards):
            if len(known) > KNOWN_MAX:
                known.clear()
        for name, count in found.items():
            self.counts[name] += count - self._counted[name]
        self._counted = found

    def _row(self, one: Surprise, release: str, at_ms: float) -> Row:
        """Row of `surprises`, in the order of its columns."""
        return (
            self._cluster_id,
            one.group_id,
            self._shards.get(one.group_id, -1),
            one.at_ms,
            int(at_ms),
            "exact",
            one.surprise_class.value,
            one.member_id or None,
            one.request,
            one.predicted,
            one.seen,
            list(one.tried),
            one.because,
            release,
            one.trace or None,
            one.source,
            one.start,
        )
