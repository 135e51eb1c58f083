"""Laws of the coordinator under histories nobody thought of.

Hypothesis makes a list of steps; a step waits and then does one thing with whatever members there are. After every step
the laws are checked against what the requests themselves say (who was answered what, when), not against the model's
own timers. The canary at the end breaks the model on purpose and must be caught.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from kardia.coordinator.classic.operations import Join, View
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.kafka.states import LEGAL_MOVES, GroupState
from tests.coordinator.context import GROUP, Context, Request

VERSIONS = ("2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.1.2")
MAX_SIZE = 5
SESSION_MS, REBALANCE_MS, DELAY_MS = 6_000, 9_000, 1_000
PROTOCOLS = ((("range", b"1"),), (("range", b"2"),), (("range", b"1"), ("sticky", b"1")))

WAITS = (0, 0, 0, 1, 100, 500, 500, 1_000, 1_000, 2_000, 3_000, 5_999, 9_000, 300_000)
ACTIONS = (
    *("join", "join", "ask", "use", "static", "rejoin", "rejoin", "rejoin"),
    *("sync", "sync", "lead", "lead", "heartbeat", "heartbeat", "heartbeat"),
    *("leave", "admin", "commit", "txn", "stale", "move", "delete", "nothing"),
)


class Step(NamedTuple):
    """Wait, then act on the `who`-th of whoever fits; `flavour` picks protocols and instances."""

    wait_ms: int
    action: str
    who: int
    flavour: int


TO_STABLE = [
    Step(0, "join", 0, 0),
    Step(0, "static", 0, 0),
    Step(500, "static", 0, 1),
    Step(2_000, "sync", 1, 0),
    Step(0, "sync", 2, 0),
    Step(0, "lead", 0, 0),
]
STEPS = st.builds(
    list[Step].__add__,
    st.sampled_from(([], TO_STABLE, TO_STABLE)),
    st.lists(
        st.builds(Step, st.sampled_from(WAITS), st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 2)),
        min_size=5,
        max_size=40,
    ),
)
"""Two histories of three begin with a Stable group of one dynamic and two static members."""
HISTORIES = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class History(Context):
    """A context that plays steps and remembers what proves that a member lived."""

    def __init__(self, version: str) -> None:
        super().__init__(version, initial_rebalance_delay_ms=DELAY_MS, group_max_size=MAX_SIZE)
        self.alive_at_ms: dict[str, int] = {}
        """Member to the last instant at which a Heartbeat or OffsetCommit of it was accepted."""
        self._names = 0
        self._noises = 0

    def play(self, step: Step) -> Request | None:
        """Let the time pass, do the thing; returns the JoinGroup or SyncGroup if it was one."""
        self.sleep(step.wait_ms)
        view = self.coordinator.view(GROUP)
        members = [] if view is None else [member.member_id for member in view.members]
        pending = [] if view is None else [member_id for member_id, _ in view.pending]
        generation = 0 if view is None else view.generation_id
        common = {"session": SESSION_MS, "rebalance": REBALANCE_MS, "protocols": PROTOCOLS[step.flavour]}
        action = step.action
        if action in {"join", "ask", "static"}:
            self._names += 1
            instance = f"i{step.flavour}" if action == "static" else None
            version = 3 if action == "join" else 9
            return self.join(f"m{self._names:03}", version=version, instance=instance, **common)  # type: ignore[arg-type]
        if action == "use" and pending:
            return self.rejoin(pending[step.who % len(pending)], **common)
        if action == "move":
            self.move()
            self.alive_at_ms.clear()
        elif action == "delete":
            self.delete()
        elif members and view is not None:
            member = view.members[step.who % len(members)]
            member_id, instance = member.member_id, member.group_instance_id
            if action == "rejoin":
                return self.rejoin(member_id, instance=instance, **common)
            if action == "sync":
                return self.sync(member_id, generation, instance=instance)
            if action == "lead" and view.leader is not None:
                return self.sync(view.leader, generation, {one: one.encode() for one in members})
            self._play_at_once(action, member_id, generation, instance)
        return None

    def _play_at_once(self, action: str, member_id: str, generation: int, instance: str | None) -> None:
        """What a member does that is answered at once."""
        if action == "heartbeat":
            self._lives(member_id, self.heartbeat(member_id, generation, instance) in {0, 27})
        elif action == "commit":
            self._lives(member_id, self.commit(member_id, generation, instance) == 0)
        elif action == "txn":
            self.txn_commit(member_id, generation, instance)
        elif action == "stale":
            self.heartbeat(member_id, generation + 1, instance)
        elif action == "leave":
            self.leave((member_id, instance))
        elif action == "admin":
            self.leave(("", instance), (member_id, None))

    def noise(self) -> None:
        """A member joins another group; its requests are numbered downwards from -1."""
        self._noises += 1
        number, name = -self._noises, f"o{self._noises}"
        timeouts = (SESSION_MS, REBALANCE_MS)
        self.send(Join(number, 3, "other", "", None, "c", "/h", *timeouts, "consumer", PROTOCOLS[0], None, name))

    def settle(self) -> bool:
        """Let what is in progress come to an end and everybody sync; whether the group is Stable then."""
        for _ in range(10):
            view = self.coordinator.view(GROUP)
            if view is None or not view.members:
                return False
            if view.state == "CompletingRebalance":
                self.sync_all(view.generation_id)
            if view.state == "Stable":
                return True
            self.sleep(max(view.join_deadline_at_ms - self.now_ms, 0))
        return False

    def _lives(self, member_id: str, accepted: bool) -> None:
        view = self.coordinator.view(GROUP)
        # Before 2.6.1 a Heartbeat while Completing is answered 27 and proves nothing.
        if accepted and view is not None and (view.state != "CompletingRebalance" or self.version >= "2.8"):
            self.alive_at_ms[member_id] = self.now_ms


def played(version: str, steps: list[Step]) -> Iterator[tuple[History, View | None]]:
    """The history after each step, with the view of before it."""
    history = History(version)
    for step in steps:
        before = history.coordinator.view(GROUP)
        history.play(step)
        yield history, before


def lives(history: History) -> list[tuple[int, int, str]]:
    """Happenings in order as (life, instant, kind): a new life begins when a group is created or loaded."""
    history.happened("")
    numbered, life = [], 0
    for one in history.happenings:
        life += one.kind in {"created", "loaded"}
        numbered.append((life, one.at_ms, one.kind))
    return numbered


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_generations_grow_by_one_within_a_life(version: str, steps: list[Step]) -> None:
    history = History(version)
    for step in steps:
        history.play(step)
    lives(history)
    generation = 0
    for one in history.happenings:
        if one.kind in {"created", "loaded"}:
            generation = -1 if one.kind == "loaded" else 0
        elif one.kind == "generation":
            assert generation == -1 or int(one.detail) == generation + 1
            generation = int(one.detail)


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_states_change_only_along_legal_moves(version: str, steps: list[Step]) -> None:
    history = History(version)
    for step in steps:
        history.play(step)
    history.happened("")
    for one in history.happenings:
        if one.kind == "state":
            before, after = one.detail.split(":")[0].split(" to ")
            assert GroupState(after) in LEGAL_MOVES[GroupState(before)]


def evicted_too_early(version: str, steps: list[Step]) -> list[tuple[str, int]]:
    """Members whose session expired less than a session timeout after they were last accepted."""
    early, seen = [], 0
    for history, _ in played(version, steps):
        evicted = history.happened("session_expired")
        new, seen = evicted[seen:], len(evicted)  # An evicted member may come back by a load and be accepted again.
        for at_ms, member_id in new:
            alive_at_ms = history.alive_at_ms.get(member_id)
            if alive_at_ms is not None and at_ms < alive_at_ms + SESSION_MS:
                early.append((member_id, at_ms))
    return early


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_nobody_is_evicted_within_a_session_timeout_of_its_last_accepted_request(
    version: str, steps: list[Step]
) -> None:
    assert evicted_too_early(version, steps) == []


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_what_can_be_seen_fits_together(version: str, steps: list[Step]) -> None:
    for history, _ in played(version, steps):
        view = history.coordinator.view(GROUP)
        if view is None:
            continue
        ids = [member.member_id for member in view.members]
        assert ids == sorted(ids)
        assert list(view.pending) == sorted(view.pending)
        assert list(view.pending_sync) == sorted(view.pending_sync)
        assert (view.leader in ids) if ids else view.leader is None
        assert not set(ids) & {member_id for member_id, _ in view.pending}
        assert (view.state == "Empty") <= (not ids)
        assert (view.join_deadline_at_ms >= 0) == (view.state == "PreparingRebalance")
        assert (view.sync_deadline_at_ms >= 0) == (view.pending_sync != ())
        for member in view.members:
            assert not (member.waits_for_join and view.state != "PreparingRebalance")
            assert not (member.waits_for_sync and view.state != "CompletingRebalance")
            # 2.4 times a new member not before it is heard once more after its JoinGroup's answer.
            forgotten = version.startswith("2.4.") and member.session_deadline_at_ms == -1
            if not (member.waits_for_join or member.waits_for_sync or forgotten):
                assert history.now_ms < member.session_deadline_at_ms <= history.now_ms + SESSION_MS
        for deadline_at_ms in (view.join_deadline_at_ms, view.sync_deadline_at_ms):
            assert deadline_at_ms == -1 or deadline_at_ms >= history.now_ms


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_deadlines_never_come_nearer(version: str, steps: list[Step]) -> None:
    """With one session timeout for all: of a member in its session, and of a rebalance in progress."""
    for history, before in played(version, steps):
        after = history.coordinator.view(GROUP)
        if before is None or after is None:
            continue
        ends = {one.member_id: one.session_deadline_at_ms for one in before.members if not one.is_new}
        for one in after.members:
            held = ends.get(one.member_id, -1)
            assert one.session_deadline_at_ms == -1 or one.session_deadline_at_ms >= held
        same_phase = before.state == after.state == "PreparingRebalance" and before.generation_id == after.generation_id
        if same_phase and not history.happened("loaded"):
            assert after.join_deadline_at_ms >= before.join_deadline_at_ms


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_a_stable_group_survives_a_move_and_a_second_move_changes_nothing(version: str, steps: list[Step]) -> None:
    history = History(version)
    for step in steps:
        history.play(step)
    assume(history.settle())
    before = history.view
    assume(
        len(before.members) <= MAX_SIZE
    )  # an overfull group (old releases let it grow) is prepared when it is loaded
    once = history.move().view
    assert (once.state, once.generation_id) == ("Stable", before.generation_id)
    if version >= "2.8":  # Before 2.6.1 a replaced static member is not recorded and comes back under its old id.
        assert once.leader == before.leader
        assert [one.member_id for one in once.members] == [one.member_id for one in before.members]
    assert (once.pending, once.pending_sync, once.sync_deadline_at_ms) == ((), (), -1)
    assert {one.session_deadline_at_ms for one in once.members} == {history.now_ms + SESSION_MS}
    assert history.move().view == once


LAST_BUT_A_PENDING_ID = [Step(0, "join", 0, 0), Step(0, "ask", 0, 0), Step(1_000, "nothing", 0, 0)]
"""A member in CompletingRebalance and a pending id. When the member leaves, the rebalance that begins waits for the
pending id, and for as long as the members ask, of whom there is none: its timer is due in the instant it is armed."""


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS, st.lists(st.integers(0, 5_000), min_size=1, max_size=6))
@example([*LAST_BUT_A_PENDING_ID, Step(0, "leave", 0, 0)], [0])
@example([*LAST_BUT_A_PENDING_ID, Step(0, "leave", 0, 0)], [0, 0])
@example([*LAST_BUT_A_PENDING_ID, Step(0, "leave", 0, 0)], [0, 1])
def test_time_may_pass_in_one_piece_or_in_many(version: str, steps: list[Step], pieces: list[int]) -> None:
    """A piece may be 0 ms, and there is one at least: an instant is over when the timers due in it have fired, and what
    is seen after a request and before them is no different amount of time but an earlier moment of the same instant."""
    whole, parts = History(version), History(version)
    for step in steps:
        for one in (whole, parts):
            one.play(step)
    whole.sleep(sum(pieces))
    for piece in pieces:
        parts.sleep(piece)
    assert whole.coordinator.view(GROUP) == parts.coordinator.view(GROUP)
    assert whole.answers == parts.answers
    assert lives(whole) == lives(parts)


@pytest.mark.parametrize("version", VERSIONS)
@HISTORIES
@given(STEPS)
def test_another_group_of_the_shard_is_not_felt(version: str, steps: list[Step]) -> None:
    alone, neighbour = History(version), History(version)
    for step in steps:
        alone.play(step)
        neighbour.noise()
        neighbour.play(step)
        assert alone.coordinator.view(GROUP) == neighbour.coordinator.view(GROUP)
    assert alone.answers == {number: answer for number, answer in neighbour.answers.items() if number > 0}


class TestTheCanary:
    """A model whose heartbeats do nothing must not pass for a coordinator."""

    STEPS = (
        Step(0, "join", 0, 0),
        Step(1_000, "lead", 0, 0),
        Step(3_000, "heartbeat", 0, 0),
        Step(3_000, "nothing", 0, 0),
    )

    def test_passes_while_the_model_is_whole(self) -> None:
        assert evicted_too_early("4.1.2", list(self.STEPS)) == []

    def test_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        deaf = {state: reaction._replace(arms=False) for state, reaction in REACTIONS["Heartbeat"].items()}
        monkeypatch.setitem(REACTIONS, "Heartbeat", deaf)
        assert evicted_too_early("4.1.2", list(self.STEPS)) == [("m001", 7_000)]
