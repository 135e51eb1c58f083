"""Follows one group from anchor to anchor: predicts, compares, and explains what contradicts or says that it cannot.

An anchor is an instant at which the group's state is known again: a join phase that ends with the leader's full list,
or a group that begins. What is between the last one and now is the window; it is gone through again with each candidate
when an answer contradicts. All that stand are kept, and each further clue is put to all of them; one that contradicts
goes while another stands. At an anchor they become one again, and what they share is said of the window. Where none
stands it is a surprise, and the group is unknown until the next anchor.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kardia.coordinator.classic import operations as ops
from kardia.events import Event
from kardia.follow.anchors import Gathered, seat_of
from kardia.follow.broker import Broker
from kardia.follow.candidates import Evidence
from kardia.follow.clues import Clue, Heard, Lost, Moved
from kardia.follow.course import Contradiction, Course
from kardia.follow.ends import End, ends_of
from kardia.follow.explaining import explained
from kardia.follow.model import NEVER_MS, Chosen, Model
from kardia.follow.plan import Plan
from kardia.follow.shown import ITEMS_MAX, Seen, trace_of
from kardia.follow.standing import Standing, apart
from kardia.follow.surprises import Counts, Surprise, SurpriseClass
from kardia.follow.tolerances import LATE_MS, LOOK_MS, ORDER_MS, TRACES_MAX, WINDOW_MAX
from kardia.follow.words import predicted_words, request_word, rule_words, seen_words
from kardia.kafka.states import GroupState

ABOUT_SETTINGS = frozenset({26, 81})
"""Answers that turn on a setting of the broker."""


@dataclass
class Quiet:
    """Requests of a Stable group that were only looked at: they renew sessions and change nothing else."""

    to_ms: int = -1
    """Until then nothing else can come; -1 while something is under way."""
    generation_id: int = -1
    heard_at_ms: int = -1
    count: int = 0


class Follower:
    """One group. Clues come in the order in which they took effect."""

    def __init__(self, group_id: str, broker: Broker, *, begins: bool = True, tells_ends: bool = True) -> None:
        """`begins`: the log may have all of the group's life; then its first JoinGroup finds no group."""
        self.group_id, self.broker, self.begins, self._tells_ends = group_id, broker, begins, tells_ends
        self.counts = Counts()
        self.surprises: list[Surprise] = []
        """Not taken yet."""
        self.ends: list[End] = []
        """Who went and why, up to the last anchor, in all courses that stood there; not taken yet."""
        self.possible: list[End] = []
        """The same of what only some of them had: no more than that it may have been."""
        self._standing: list[Standing] = []
        """Courses that give all answers since the anchor, the one of the smallest assumption first; empty while the
        group is unknown."""
        self._chosen = Chosen()
        self._gathered = Gathered()
        self._waiting: deque[Clue | Moved | Lost] = deque()
        """Clues of the last instants: another one may come before them after all."""
        self._evidence = Evidence()
        self._unknown_because = "the log begins in the middle"
        self.anchored_at_ms = -1
        """The last anchor: what is said of instants before it is said for good."""
        self._surprised = False
        self._signs = ""
        """Why evidence may be missing in this window; empty where nothing shows it."""
        self._lacking = False
        """Requests may be missing in this window."""
        self._moved_at_ms = -1
        """When the coordinator gave the group up, while nobody has answered since."""
        self._stuck: Contradiction | None = None
        """Not explained yet: a little more is read before."""
        self._quiet = Quiet()
        self._heard: dict[str, tuple[Event, float]] = {}
        """Member -> its request, and when the last one like it took effect."""

    @property
    def course(self) -> Course | None:
        """The first of those that stand; None while the group is unknown."""
        return self._standing[0].course if self._standing else None

    # --- taking

    def hear(self, event: Event, last_ms: float, count: int = 1) -> bool:
        """Take requests answered 0 that only renew a session, at the price of a look; False where they may do more.

        All are as `event` but for their instants, of which `last_ms` is the last.
        """
        quiet, at_ms = self._quiet, int(last_ms)
        if self._waiting:
            self._go_on(at_ms)
        if at_ms >= quiet.to_ms or self._waiting:
            if not self._heard or self._waiting or quiet.to_ms < 0:
                return False
            self._flush()
            if at_ms >= quiet.to_ms:
                return False
        if event.generation_id != quiet.generation_id:
            return False
        member_id = event.member_id
        if member_id not in self._heard and not self._holds(member_id, event.group_instance_id):
            return False
        self._heard[member_id] = event, last_ms
        quiet.heard_at_ms = max(at_ms, quiet.heard_at_ms)
        quiet.count += count
        return True

    @property
    def heard(self) -> int:
        """Requests that were only looked at, and are in no count yet."""
        return self._quiet.count

    def has_members(self) -> bool:
        """Whether the group is known to have members, or somebody waits."""
        group = self.course.model.group if self.course is not None else None
        return bool(self._waiting) or (group is not None and bool(group.members))

    def _holds(self, member_id: str, instance_id: str) -> bool:
        for one in self._standing:
            group = one.course.model.group
            member = None if group is None else group.members.get(member_id)
            if member is None or (instance_id and instance_id != member.group_instance_id):
                return False
        return bool(self._standing)

    def take(self, item: Clue | Moved | Lost) -> None:
        """Take a clue; it is compared when no other can come before it."""
        self._waiting.append(item)
        self._go_on(item.at_ms)

    def _go_on(self, to_ms: int) -> None:
        """Apply what nothing can come before any more, of what is known up to an instant."""
        while True:
            stuck = self._stuck
            if stuck is not None:
                if stuck.at_ms + LOOK_MS >= to_ms:
                    return
                self._stuck = None
                self._explain(stuck)
                self._settle()
            elif self._waiting and self._waiting[0].at_ms + ORDER_MS < to_ms:
                self._apply(self._waiting.popleft())
            else:
                return

    def finish(self) -> None:
        """No more comes: compare what is held back, and what waits."""
        self._signs = self._signs or "the log ends"
        self._go_on(NEVER_MS)
        self._flush()
        while self._ends_otherwise():
            stuck = self._parted()
            if stuck is not None:
                self._explain(stuck)
            self._settle()
        self._count_window()

    def _ends_otherwise(self) -> bool:
        """Let all who wait be answered; whether a course then parts from the log."""
        for one in self._standing:
            waits = one.course.open.values()
            if waits:
                last_ms = max(clue.answered_at_ms for clue in waits)
                one.found = one.course.go_on(max(last_ms + LATE_MS, one.course.model.now_ms))
        return any(one.found is not None for one in self._standing)

    # --- one clue

    def _apply(self, item: Clue | Moved | Lost) -> None:
        self._flush()
        if isinstance(item, Lost):
            self._pass_over(item)
            return
        if self.course is None:
            self._look_for_anchor(item)
        if isinstance(item, Moved):
            self._move(item)
            return
        self.counts.answers += 1
        if self.course is None:
            self._gathered.take(item)
            self.counts.unknown[self._unknown_because] += 1
            self._note(item)
            return
        for one in self._standing:
            if one.course.model.shard.settings is not self.broker.settings:
                one.course.model.shard.settings = self.broker.settings
        if self._moved_at_ms >= 0:
            self._evidence.loads, self._evidence.has_loaded = ((self._moved_at_ms, item.at_ms),), True
            self._moved_at_ms = -1
        self._stuck = self._step(item)
        self._note(item)
        if self._stuck is not None:
            self._quiet.to_ms = -1
            return
        if self.broker.rules.broken:
            rests_on = self._standing[0].course.model.rests_on(item.member_id)
            self.broker.rules.keeps((rests_on, f"error: {item.error_code}"))
        self._settle()

    def _step(self, item: Clue | Moved | Lost) -> Contradiction | None:
        """Put an item to all courses that stand; where the first of them parted from the log, if all have."""
        for one in self._standing:
            one.step(item)
        return self._parted()

    def _parted(self) -> Contradiction | None:
        """Let go what has parted from the log while something stands; where the first has, if nothing does."""
        stand = [one for one in self._standing if one.found is None]
        if stand or not self._standing:
            self._standing = stand
            return None
        latest_ms = max(one.found.at_ms for one in self._standing if one.found is not None)
        first = self._standing[0].found
        return None if first is None else first._replace(at_ms=latest_ms)

    def _pass_over(self, item: Lost) -> None:
        """A part of the log is lost: a group in which nothing was under way is taken to have gone on."""
        self._signs, self._lacking = self._signs or item.why, True
        calm = [one for one in self._standing if one.course.is_calm()]
        if not calm or self._stuck is not None:
            self._lose(item.why)
            return
        self._standing = calm
        self.broker.was_silent(item.from_ms, item.at_ms)
        found = self._step(item)
        self._settle()
        if found is not None:
            self._lose(item.why)

    def _move(self, item: Moved) -> None:
        """The coordinator has given the group up; whoever loads it finds its last record."""
        self._signs = self._signs or item.why
        self._gathered.forget_generation()
        if not self._standing:
            return
        if not all(one.course.model.knows_record for one in self._standing):
            self._lose(item.why)
            return
        if self._standing[0].course.model.shard.loaded:
            self._moved_at_ms = item.from_ms
        self._stuck = self._step(item)
        self._quiet.to_ms = -1

    def _note(self, clue: Clue) -> None:
        evidence = self._evidence
        if clue.member_id:
            evidence.connections[clue.member_id] = clue.connection
        if isinstance(clue.operation, ops.Join) and clue.error_code == 0:
            evidence.seats[clue.member_id] = seat_of(clue)
        while len(evidence.connections) > WINDOW_MAX:
            del evidence.connections[next(iter(evidence.connections))]
        while len(evidence.seats) > WINDOW_MAX:
            del evidence.seats[next(iter(evidence.seats))]

    def _settle(self) -> None:
        """After a clue: whether this is an anchor, and until when nothing but renewals can come."""
        quiet = self._quiet
        quiet.to_ms = -1
        if not self._standing:
            return
        if self._is_listed():
            group = self._standing[0].course.model.group
            if group is not None and group.from_empty:
                self.broker.shown["initial_rebalance_delay_ms"] += 1
            self._count_window()
            self._rest(at_anchor=True)
        elif len(self._standing[0].plan.items) > WINDOW_MAX:
            self._rest(at_anchor=False)
        groups = [one.course.model.group for one in self._standing if one.course.is_calm()]
        generations = {one.generation_id for one in groups if one is not None}
        if len(groups) == len(self._standing) and len(generations) == 1:
            quiet.to_ms = min(one.course.model.next_deadline_at_ms() for one in self._standing)
            quiet.generation_id = generations.pop()

    def _is_listed(self) -> bool:
        """Whether a join phase has ended with the leader's list, and did in all that stand."""
        courses = [one.course for one in self._standing]
        if not any(one.listed for one in courses):
            return False
        return all(one.listed or not any(clue.members for clue in one.open.values()) for one in courses)

    def _flush(self) -> None:
        """Put to the model what was only looked at."""
        if not self._heard or self.course is None:
            return
        quiet = self._quiet
        heard = tuple(
            (member_id, int(last_ms), int(last_ms + (one.arrived_at_ms - one.handled_at_ms)))
            for member_id, (one, last_ms) in self._heard.items()
        )
        item = Heard(quiet.heard_at_ms, heard, quiet.generation_id)
        self.counts.answers += quiet.count
        self._heard, quiet.count = {}, 0
        for one in self._standing:
            one.step(item)
        found = self._standing[0].found
        if found is not None:
            raise AssertionError(f"group {self.group_id!r}: {found}; a request was taken for one that only renews")
        self._settle()

    # --- anchors

    def _rest(self, *, at_anchor: bool) -> None:
        """The window begins here: say what all courses share of the one that is over."""
        if self._tells_ends:
            ends, replays = ends_of(self._standing, self.broker)
            self.ends += ends.sure
            self.possible += ends.possible
            self.counts.replays += replays
        self._standing = apart(self._standing, at_anchor=at_anchor)
        for one in self._standing:
            one.rest()
        self._evidence.assumed = False
        self._evidence.loads, self._evidence.has_loaded = (), False
        self.anchored_at_ms = self._standing[0].course.model.now_ms

    def _model(self, at_ms: int) -> Model:
        broker = self.broker
        model = Model(self.group_id, broker.behaviour, broker.settings, self._chosen, at_ms)
        model.silences = broker.silences
        return model

    def _look_for_anchor(self, item: Clue | Moved) -> None:
        leader = self._gathered.leader(item.at_ms)
        if leader is not None:
            model = self._model(leader.at_ms)
            if not self._gathered.put(model, leader, self._evidence.seats):
                self._signs = self._signs or "a member was not seen to join"
            self._begin(model)
        elif self._begins_with(item):
            self._begin(self._model(item.at_ms - 1))
            self._evidence.assumed = True

    def _begin(self, model: Model) -> None:
        self._count_window()
        self._gathered.clear()
        course = Course(model)
        self._standing = [Standing(course, course, Plan())]
        self._rest(at_anchor=True)

    def _begins_with(self, item: Clue | Moved) -> bool:
        """Whether a group that nothing is known of begins with a clue: with no group, its answer would be the same."""
        if not self.begins or not isinstance(item, Clue) or self.counts.answers:
            return False
        if isinstance(item.operation, ops.Join) and not item.operation.member_id:
            return True
        return Course(self._model(item.at_ms - 1)).step(item) is None

    def _lose(self, why: str) -> None:
        """The group is unknown from here on, and nobody's mistake."""
        self._signs = self._signs or why
        self._forget(why)

    def _forget(self, because: str) -> None:
        course = self.course
        self._standing = []
        self._unknown_because = because
        self._quiet.to_ms = -1
        self._gathered.clear()
        if course is None:
            return
        for clue in course.open.values():
            self._gathered.take(clue)
            self.counts.unknown[because] += 1

    def _count_window(self) -> None:
        """A window is over."""
        self.counts.windows += 1
        self.counts.unexplained += self._surprised
        self._surprised, self._signs, self._lacking = False, "", False

    # --- contradictions

    def _explain(self, found: Contradiction) -> None:
        """Try the candidates upon all courses that stood until now; they have all parted from the log."""
        evidence, last = self._evidence, self._standing
        at_ms = max((one.plan.items[-1].at_ms for one in last if one.plan.items), default=found.at_ms)
        silent = self.broker.silent(self.anchored_at_ms, at_ms)
        if silent and not evidence.loads:
            evidence.loads = silent[-2:]
        evidence.stood_ms = self.broker.stood_ms(at_ms - 5 * LATE_MS, at_ms + LATE_MS)
        evidence.refuted_delays = self.broker.refuted_values("initial_rebalance_delay_ms")
        evidence.settings_open = not self.broker.is_settled("initial_rebalance_delay_ms")
        tries = explained(last, evidence, self._waiting, lacking=self._lacking)
        self.counts.replays += len(tries.tried)
        if not tries.standing:
            self._surprise(found, tuple(tries.tried))
            return
        self._standing = tries.standing
        self.counts.explained[tries.names[0]] += 1
        settings = tries.standing[0].plan.settings
        if settings is not None:
            self.broker.learn(settings)

    def _surprise(self, found: Contradiction, tried: tuple[str, ...]) -> None:
        clue = found.clue
        if isinstance(clue, Heard):
            raise AssertionError(f"group {self.group_id!r}: {found}; a request was taken for one that only renews")
        surprise_class, because = self._classed(found, clue)
        first = self._standing[0]
        first.course.open.pop(clue.number, None)
        self.surprises.append(
            Surprise(
                self.group_id,
                clue.member_id,
                clue.at_ms if found.what not in ("early", "late") else clue.answered_at_ms,
                request_word(clue),
                predicted_words(found, clue),
                seen_words(found, clue),
                tuple(dict.fromkeys(tried)),
                surprise_class,
                because,
                self._shown(found, clue),
                clue.source,
                clue.start,
            )
        )
        self.counts.surprising[surprise_class] += 1
        self._surprised = True
        self._forget("after a surprise")
        last = first.plan.items[-1] if first.plan.items else None
        if isinstance(last, Clue) and last.number != clue.number:
            self._again(last)

    def _again(self, item: Clue) -> None:
        """What came when the surprise was seen is looked at once more, where the group is known again by then."""
        self._look_for_anchor(item)
        if self._standing and self._standing[0].step(item) is None:
            return
        self._standing = []
        self._gathered.take(item)
        self.counts.unknown["after a surprise"] += 1

    def _shown(self, found: Contradiction, clue: Clue) -> str:
        """As a trace, where the window is short enough and not so many have been shown."""
        base, items = self._standing[0].base, self._standing[0].plan.items
        if len(items) > ITEMS_MAX or self.broker.traces >= TRACES_MAX:
            return ""
        self.broker.traces += 1
        settings, at_ms = base.model.shard.settings, base.model.now_ms
        version = self.broker.kafka_version
        return trace_of(Seen(version, settings, base.model.group, at_ms, items, found, clue))

    def _classed(self, found: Contradiction, clue: Clue) -> tuple[SurpriseClass, str]:
        """By the rules of `surprises`, in their order."""
        if self._signs:
            return SurpriseClass.EVIDENCE_MISSING, self._signs
        predicted = found.predicted
        codes = {clue.error_code, 0 if predicted is None else predicted.error_code}
        group = None if self.course is None else self.course.model.group
        from_empty = group is not None and group.from_empty and group.state is not GroupState.STABLE
        if codes & ABOUT_SETTINGS or (found.what in ("early", "late") and from_empty):
            return SurpriseClass.SETTINGS_UNKNOWN, "no one value of a setting explains all answers"
        rests_on = "" if self.course is None else self.course.model.rests_on(clue.member_id)
        rule = (rests_on, rule_words(predicted, found.what))
        if self.broker.rules.breaks(rule):
            times = self.broker.rules.broken[rule]
            step = rests_on.replace("_", " ")
            return SurpriseClass.BROKER_NOT_AS_RELEASE, f"{times} answers after '{step}' are not those of the release"
        return SurpriseClass.OWN_MISTAKE, "nothing shows yet whose mistake it is"
