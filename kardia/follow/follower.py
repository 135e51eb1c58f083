"""Follows one group from anchor to anchor: predicts, compares, and explains what contradicts or says that it cannot.

An anchor is an instant at which the group's state is known again: a join phase that ends with the leader's full list,
or a group that begins. What is between the last one and now is the window; it is gone through again with each candidate
when an answer contradicts. After a surprise the group is unknown until the next anchor.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.happenings import Happening
from kardia.events import Event
from kardia.follow.anchors import Gathered, seat_of
from kardia.follow.broker import Broker
from kardia.follow.candidates import Candidate, Case, Evidence, candidates
from kardia.follow.clues import Clue, Heard, Lost, Moved
from kardia.follow.course import Contradiction, Course
from kardia.follow.model import NEVER_MS, Chosen, Model
from kardia.follow.plan import Plan, replayed
from kardia.follow.shown import ITEMS_MAX, Seen, trace_of
from kardia.follow.surprises import Counts, Surprise, SurpriseClass
from kardia.follow.tolerances import CANDIDATES_MAX, LATE_MS, LOOK_MS, ORDER_MS, TRACES_MAX, WINDOW_MAX
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

    def __init__(self, group_id: str, broker: Broker, *, begins: bool = True) -> None:
        """`begins`: the log may have all of the group's life; then its first JoinGroup finds no group."""
        self.group_id, self.broker, self.begins = group_id, broker, begins
        self.counts = Counts()
        self.surprises: list[Surprise] = []
        """Not taken yet."""
        self.ends: list[Happening] = []
        """Who went and why, as the model says, up to the last anchor; not taken yet."""
        self.course: Course | None = None
        self._base: Course | None = None
        """The group as it was at the anchor."""
        self._plan = Plan()
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
        self._moved_at_ms = -1
        """When the coordinator gave the group up, while nobody has answered since."""
        self._stuck: Contradiction | None = None
        """Not explained yet: a little more is read before."""
        self._quiet = Quiet()
        self._heard: dict[str, int] = {}

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
        self._heard[member_id] = at_ms
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
        group = self.course.model.group if self.course is not None else None
        member = None if group is None else group.members.get(member_id)
        return member is not None and (not instance_id or instance_id == member.group_instance_id)

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
        while self.course is not None and self.course.open:
            last_ms = max(clue.answered_at_ms for clue in self.course.open.values())
            found = self.course.go_on(max(last_ms + LATE_MS, self.course.model.now_ms))
            if found is None:
                break
            self._explain(found)
            self._settle()
        self._count_window()

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
        course = self.course
        if course.model.shard.settings is not self.broker.settings:
            course.model.shard.settings = self.broker.settings
        if self._moved_at_ms >= 0:
            self._evidence.loads = ((self._moved_at_ms, item.at_ms),)
            self._moved_at_ms = -1
        found = course.step(item)
        self._plan = self._plan.adding(item)
        if found is not None:
            self._stuck = found._replace(at_ms=max(found.at_ms, item.at_ms))
            self._quiet.to_ms = -1
            self._note(item)
            return
        if self.broker.rules.broken:
            self.broker.rules.keeps((course.model.rests_on(item.member_id), f"error: {item.error_code}"))
        self._note(item)
        self._settle()

    def _pass_over(self, item: Lost) -> None:
        """A part of the log is lost: a group in which nothing was under way is taken to have gone on."""
        self._signs = self._signs or item.why
        course = self.course
        if course is None or not course.is_calm() or self._stuck is not None:
            self._lose(item.why)
            return
        self.broker.was_silent(item.from_ms, item.at_ms)
        found = course.step(item)
        self._plan = self._plan.adding(item)
        self._settle()
        if found is not None:
            self._lose(item.why)

    def _move(self, item: Moved) -> None:
        """The coordinator has given the group up; whoever loads it finds its last record."""
        self._signs = self._signs or item.why
        self._gathered.forget_generation()
        course = self.course
        if course is None:
            return
        if not course.model.knows_record:
            self._lose(item.why)
            return
        if course.model.shard.loaded:
            self._moved_at_ms = item.from_ms
        found = course.step(item)
        self._plan = self._plan.adding(item)
        self._quiet.to_ms = -1
        if found is not None:
            self._stuck = found._replace(at_ms=max(found.at_ms, item.at_ms))

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
        course, quiet = self.course, self._quiet
        quiet.to_ms = -1
        if course is None:
            return
        group = course.model.group
        if course.listed:
            course.listed = False
            if group is not None and group.from_empty:
                self.broker.shown["initial_rebalance_delay_ms"] += 1
            self._count_window()
            self._rest_on(course)
        elif len(self._plan.items) > WINDOW_MAX:
            self._rest_on(course)
        if course.is_calm() and group is not None:
            quiet.to_ms = course.model.next_deadline_at_ms()
            quiet.generation_id = group.generation_id

    def _flush(self) -> None:
        """Put to the model what was only looked at."""
        if not self._heard or self.course is None:
            return
        quiet = self._quiet
        item = Heard(quiet.heard_at_ms, tuple(self._heard.items()), quiet.generation_id)
        self.counts.answers += quiet.count
        self._heard, quiet.count = {}, 0
        found = self.course.step(item)
        self._plan = self._plan.adding(item)
        if found is not None:
            raise AssertionError(f"group {self.group_id!r}: {found}; a request was taken for one that only renews")
        self._settle()

    # --- anchors

    def _rest_on(self, course: Course) -> None:
        """The window begins here."""
        self.ends += course.model.ends
        course.model.ends.clear()
        self._base, self._plan = course.copy(), Plan()
        self._evidence.assumed = False
        self._evidence.loads = ()
        self.anchored_at_ms = course.model.now_ms

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
        self.course = Course(model)
        self._rest_on(self.course)

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
        self.course = None
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
        self._surprised, self._signs = False, ""

    # --- contradictions

    def _explain(self, found: Contradiction) -> None:
        """Try the candidates; then candidates upon those that came as far as this contradiction."""
        base, course = self._base, self.course
        assert base is not None  # noqa: S101  whoever has a course has a base
        assert course is not None  # noqa: S101
        evidence = self._evidence
        evidence.following = tuple(one for one in self._waiting if isinstance(one, Clue))
        at_ms = self._plan.items[-1].at_ms if self._plan.items else found.at_ms
        silent = self.broker.silent(self.anchored_at_ms, at_ms)
        if silent and not evidence.loads:
            evidence.loads = silent[-2:]
        evidence.stood_ms = self.broker.stood_ms(at_ms - 5 * LATE_MS, at_ms + LATE_MS)
        evidence.refuted_delays = self.broker.refuted_values("initial_rebalance_delay_ms")
        evidence.settings_open = not self.broker.is_settled("initial_rebalance_delay_ms")
        tried: list[str] = []
        to_try: deque[tuple[Plan, Course, Contradiction]] = deque([(self._plan, course, found)])
        while to_try:
            plan, there, contradiction = to_try.popleft()
            for one in candidates(Case(plan, there, contradiction, evidence)):
                if len(tried) >= CANDIDATES_MAX:
                    break
                tried.append(one.name)
                self.counts.replays += 1
                after, again, place = replayed(base, one.plan)
                if again is None:
                    self._adopt(one, after)
                    return
                if place >= len(one.plan.items) - 1 and again != contradiction:
                    to_try.append((one.plan, after, again))
        self._surprise(found, tuple(tried))

    def _adopt(self, one: Candidate, course: Course) -> None:
        taken = len(one.plan.items) - len(self._plan.items)
        if taken > 0:
            numbers = {item.number for item in one.plan.items[-taken - 4 :] if isinstance(item, Clue)}
            before = len(self._waiting)
            self._waiting = deque(
                item for item in self._waiting if not isinstance(item, Clue) or item.number not in numbers
            )
            self.counts.answers += before - len(self._waiting)
        self.course, self._plan = course, one.plan
        self.counts.explained[one.name] += 1
        if one.plan.settings is not None:
            self.broker.learn(one.plan.settings)

    def _surprise(self, found: Contradiction, tried: tuple[str, ...]) -> None:
        clue = found.clue
        if isinstance(clue, Heard):
            raise AssertionError(f"group {self.group_id!r}: {found}; a request was taken for one that only renews")
        surprise_class, because = self._classed(found, clue)
        course = self.course
        if course is not None:
            course.open.pop(clue.number, None)
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
        last = self._plan.items[-1] if self._plan.items else None
        if isinstance(last, Clue) and last.number != clue.number:
            self._again(last)

    def _again(self, item: Clue) -> None:
        """What came when the surprise was seen is looked at once more, where the group is known again by then."""
        self._look_for_anchor(item)
        if self.course is not None and self.course.step(item) is None:
            self._plan = self._plan.adding(item)
            return
        self.course = None
        self._gathered.take(item)
        self.counts.unknown["after a surprise"] += 1

    def _shown(self, found: Contradiction, clue: Clue) -> str:
        """As a trace, where the window is short enough and not so many have been shown."""
        base = self._base
        if base is None or len(self._plan.items) > ITEMS_MAX or self.broker.traces >= TRACES_MAX:
            return ""
        self.broker.traces += 1
        settings, at_ms = base.model.shard.settings, base.model.now_ms
        items = self._plan.items
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
