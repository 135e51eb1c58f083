"""An event that the observer raises at stops nothing: it is left out and told, and everything else is as without it.

Goal: after such an event the state is whole, and of the groups it does not concern every row is the same. Method:
events that really raise (a JoinGroup whose timeout is a word, a tick whose numbers are words) put into a recorded
story, step by step as the job has it, beside the story without them; defects of timers and samples, made by hand; then
the same through a lane of the job, a replay with its processes, and the tables.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from ingest.archives.ranges import plan
from ingest.dialects.quiet_lines import QuietLines
from ingest.dialects.request_json import RequestJson
from ingest.errors import BatchError
from ingest.offsets import records as offsets_records
from ingest.wire.batches import decode_batch, encode_batch
from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.observe.careful import MAX_OF_GROUP, REASON, Careful
from kardia.observe.state.group import Group, Member
from kardia.observe.timers import expiry
from kardia.tables import MEMBERS, REJECTED, Row
from spark_jobs import safe_step
from spark_jobs.errors import NotAppliedError
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import LaneModel, ObserverFactory
from spark_jobs.replay.run import Inputs, Told, replay
from spark_jobs.replay.worker import Worker
from spark_jobs.schemas import to_tables
from tests.ingest.lines import line
from tests.spark_jobs.support import CLUSTER, STORY, requests_in, story_messages
from tests.spark_jobs.support import rows as rows_in
from tests.support.stories import Story, lanes_of, read_live, stamps_of

FACTORY = ObserverFactory(ObserverSettings(CLUSTER))
TABLES = ("transitions", "rebalances", "members", "predictions", "health")
GROUP_ID = 1
"""Place of the group in every row."""


@cache
def busiest() -> int:
    """The lane with most events of the story."""
    return max(range(6), key=lambda lane: len(lanes_of(STORY)[lane]))


@cache
def story_steps() -> list[list[Event]]:
    """That lane, a second at a time."""
    return [list(step) for step in read_live(lanes_of(STORY)[busiest()], 1_000, stamps_of(STORY))]


@cache
def its_shard() -> int:
    """A shard of that lane."""
    return next(event.shard for step in story_steps() for event in step if event.shard >= 0)


class Run:
    """The story through the guard, the state kept as bytes between two steps, as the job keeps it."""

    def __init__(self, steps: Sequence[list[Event]], *, care: bool = True) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.went_back = 0
        model: LaneModel = FACTORY.new(busiest())
        state = safe_step.NEW
        for number, step in enumerate(steps):

            def before(state: bytes = state) -> bytes:
                self.went_back += 1
                return state

            last = number == len(steps) - 1
            model, rows = safe_step.step(model, FACTORY, busiest(), step, finish=last, before=before if care else None)
            state = safe_step.kept(model)
            for name, found in rows.items():
                self.rows.setdefault(name, []).extend(found)

    def but(self, *groups: str) -> dict[str, list[Row]]:
        return {name: [row for row in self.rows[name] if row[GROUP_ID] not in groups] for name in TABLES}

    def rejected(self) -> list[dict[str, Any]]:
        return [dict(zip(REJECTED.names, row, strict=True)) for row in self.rows["rejected"]]


@pytest.fixture(scope="module")
def plain() -> Run:
    return Run(story_steps())


def poison(kind: Kind, near: Event, **changes: Any) -> Event:
    """An event that raises, at the place of another one; of a group that is in nothing else."""
    values: dict[str, Any] = {"group_id": "poison", "member_id": "m-poison", "shard": its_shard(), "kind": int(kind)}
    return near._replace(start=near.end, end=near.end, **{**values, "detail": None, **changes})


def with_it(make: Callable[[Event], Event], every: int = 1) -> list[list[Event]]:
    """The story with an event put behind one in the middle of each so-many-th step."""
    steps = []
    for number, step in enumerate(story_steps()):
        near = next((event for event in step[len(step) // 2 :] if event.source.split("/")[1] == "request"), None)
        if number % every or near is None or near.kind >= Kind.TICK:
            steps.append(step)
        else:
            at = step.index(near) + 1
            steps.append([*step[:at], make(near), *step[at:]])
    return steps


JOINED = {"session_timeout_ms": "soon", "assigned_member_id": "m-poison"}

RAISING: dict[str, Callable[[Event], Event]] = {
    "join": lambda near: poison(Kind.JOIN, near, detail=JOINED, generation_id=3),
    "leave": lambda near: poison(Kind.LEAVE, near, detail={"members": [[]]}),
    "record": lambda near: poison(Kind.GROUP_RECORD, near, detail={"members": 3}),
}


@pytest.mark.parametrize("name", RAISING)
def test_all_other_rows_are_as_without_it(plain: Run, name: str) -> None:
    run = Run(with_it(RAISING[name], every=4))
    assert run.went_back > 5
    assert run.but("poison") == plain.but()
    told = run.rejected()
    assert {row["reason"] for row in told} == {REASON}
    assert all("please report it" in row["expected"] for row in told)
    assert len({(row["source"], row["start"]) for row in told}) == run.went_back


def test_without_care_it_is_an_error_of_the_job() -> None:
    with pytest.raises(NotAppliedError, match=r"could not be applied.*lane"):
        Run(with_it(RAISING["join"], every=4), care=False)


def test_nothing_is_gone_back_for_when_nothing_raises(plain: Run) -> None:
    assert plain.went_back == 0
    assert not plain.rows["rejected"]


def test_a_tick_that_says_nonsense_is_left_out(plain: Run) -> None:
    def lying(near: Event) -> Event:
        detail = {"lines": "many", "events": 0, "previous_end": 0}
        return poison(Kind.TICK, near, group_id="", member_id="", shard=-1, detail=detail)

    run = Run(with_it(lying, every=10))
    assert run.went_back
    assert run.but() == plain.but()
    assert {row["excerpt"] for row in run.rejected()} == {"tick"}


def test_of_its_own_group_nothing_is_known_until_it_is_heard_again(plain: Run) -> None:
    """It may have been what kept a member alive: nobody is evicted for it, and the group's state is unknown."""
    groups = {row[GROUP_ID] for row in plain.rows["members"]}
    victim = max(groups, key=lambda one: sum(row[GROUP_ID] == one for row in plain.rows["health"]))
    member = next(row for row in plain.rows["members"] if row[GROUP_ID] == victim)[MEMBERS.names.index("member_id")]
    steps = with_it(lambda near: _commit_of(near, victim, str(member)), every=20)
    run = Run(steps)
    assert run.went_back
    assert run.but(victim) == plain.but(victim)
    assert any("unknown" in row for row in run.rows["transitions"] if row[GROUP_ID] == victim)
    ends, plainly = (
        {
            (row["member_id"], row["ended_at_ms"])
            for row in (dict(zip(MEMBERS.names, values, strict=True)) for values in one.rows["members"])
            if row["group_id"] == victim and row["end_cause"] == "session_expired" and row["certainty"] == "exact"
        }
        for one in (run, plain)
    )
    assert ends <= plainly


def _commit_of(near: Event, group_id: str, member_id: str) -> Event:
    return poison(Kind.COMMIT, near, group_id=group_id, member_id=member_id, detail={"offsets": 3})


def test_many_of_one_group_cost_a_bounded_number_of_steps(plain: Run) -> None:
    steps = list(story_steps())
    number = next(at for at, step in enumerate(steps) if len(step) > 30)
    near = next(event for event in steps[number] if event.kind < Kind.TICK)
    leave = RAISING["leave"](near)
    many = [leave._replace(start=near.end + one, end=near.end + one) for one in range(500)]
    attempts = 0

    class Counting(ObserverFactory):
        def careful(self, lane: int, state: Any) -> Careful:
            nonlocal attempts
            attempts += 1
            return super().careful(lane, state)

    model: LaneModel = FACTORY.new(busiest())
    for step in steps[:number]:
        model.step(step)
    state = safe_step.kept(model)
    at = steps[number].index(near) + 1
    events = [*steps[number][:at], *many, *steps[number][at:]]
    tick = events[-1]._replace(logged_at_ms=near.logged_at_ms + 60_000)
    _, rows = safe_step.step(model, Counting(FACTORY.settings), busiest(), [*events, tick], before=lambda: state)
    assert attempts <= MAX_OF_GROUP + 2
    assert len(rows["rejected"]) == len(many)


@pytest.mark.parametrize("what", ["timer", "sample"])
def test_a_defect_that_is_no_events_concerns_its_group_alone(
    plain: Run, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    victim = plain.rows["health"][0][GROUP_ID]
    others = {row[GROUP_ID] for row in plain.rows["members"]} - {victim}

    def on_timer(observer: Any, group: Group, member: Member, now: float) -> None:
        if group.group_id == victim:
            raise ZeroDivisionError
        real_timer(observer, group, member, now)

    def sampled(observer: Any, group: Group, looked_at: dict[str, bool], clock: float) -> None:
        if group.group_id == victim:
            raise ZeroDivisionError
        real_sample(observer, group, looked_at, clock)

    real_timer, real_sample = expiry.on_member_timer, Observer._sample_group
    if what == "timer":
        monkeypatch.setattr(expiry, "on_member_timer", on_timer)
    else:
        monkeypatch.setattr(Observer, "_sample_group", sampled)
    run = Run(story_steps())
    assert run.went_back
    assert run.but(victim) == plain.but(victim)
    assert others or len(plain.but(victim)["members"]) == 0
    assert all(what in row["source"] or "member" in row["source"] for row in run.rejected())
    assert run.rejected()


# --- through the job and a replay


def test_a_lane_goes_on_from_its_saved_bytes() -> None:
    values = [value for partition, value, _ in story_messages() if partition == busiest()]
    records = [Record(offset, 0, b"msgpack/1", value) for offset, value in enumerate(values)]
    with_requests = [number for number, value in enumerate(values) if requests_in(value)]
    half = with_requests[len(with_requests) // 2] + 1
    bad = RAISING["join"](requests_in(values[half - 1])[-1])
    poisoned = [
        *records[:half],
        Record(half, 0, b"msgpack/1", encode_batch([bad])),
        *(record._replace(offset=record.offset + 1) for record in records[half:]),
    ]

    def run(given: list[Record]) -> tuple[dict[str, list[Row]], Lane]:
        lane = Lane(FACTORY, "kardia.events", busiest(), 6)
        rows: dict[str, list[Row]] = {}
        blob = b""
        for record in given:
            for name, found in lane.step([record], lambda blob=blob: blob).items():  # type: ignore[misc]
                rows.setdefault(name, []).extend(found)
            blob = lane.save()
        return rows, lane

    plainly, _ = run(records)
    rows, lane = run(poisoned)
    assert {name: rows[name] for name in TABLES} == {name: plainly[name] for name in TABLES}
    assert lane.next_offset == len(poisoned)
    assert [row[REJECTED.names.index("reason")] for row in rows["rejected"]] == [REASON]


@cache
def defect() -> str:
    """A group that commits."""
    return next(event.group_id for lane in lanes_of(STORY) for event in lane if event.kind == Kind.COMMIT)


class _Raising(Observer):
    """An observer with a defect: it raises at every commit of one group."""

    def _handle(self, event: Event, at: float) -> None:
        if event.kind == Kind.COMMIT and event.group_id == defect():
            raise ZeroDivisionError("a defect")
        super()._handle(event, at)


class _RaisingCareful(Careful, _Raising):
    pass


@dataclass(frozen=True)
class DefectiveFactory(ObserverFactory):
    """Makes such observers, in the processes of a replay as well."""

    def new(self, lane: int) -> LaneModel:
        return _Raising(self.settings, lane=lane)

    def restore(self, lane: int, state: Any) -> LaneModel:
        return _Raising.restore(self.settings, lane, state)

    def careful(self, lane: int, state: Any) -> Careful:
        if state is None:
            return _RaisingCareful(self.settings, lane)
        return _RaisingCareful.restore(self.settings, lane, state)


def test_a_replay_is_run_again_with_care_and_what_it_had_written_is_taken_back(tmp_path: Path) -> None:
    """What was in the tables before it stays."""
    story = Story(STORY)
    inputs = Inputs([story.folder / "kafka-request.log.gz"], [], [story.folder / "offsets.jsonl.gz"])
    plainly, tables = tmp_path / "plain", tmp_path / "tables"
    replay(inputs, plainly, FACTORY, workers=1)
    shutil.copytree(plainly, tables)
    replay(inputs, plainly, FACTORY, workers=1, append=True)
    said: list[str] = []
    summary = replay(
        inputs, tables, DefectiveFactory(FACTORY.settings), workers=1, append=True, told=Told(again=said.append)
    )
    assert len(said) == 1
    assert "ZeroDivisionError: a defect" in said[0]
    assert summary.not_applied > 0
    columns = ("batch_id",)

    def rows(directory: Path, name: str) -> list[Any]:
        found = [row for row in rows_in(directory, name) if row["group_id"] != defect()]
        return sorted(str({key: value for key, value in row.items() if key not in columns}) for row in found)

    for name in TABLES:
        assert rows(tables, name) == rows(plainly, name), name
    assert {row["reason"] for row in rows_in(tables, "rejected")} == {REASON}
    assert len(rows_in(tables, "rejected")) == summary.not_applied


def test_a_row_that_does_not_fit_its_table_is_told_and_the_batch_goes_on(plain: Run) -> None:
    good = {name: list(rows) for name, rows in plain.rows.items()}
    at = MEMBERS.names.index("session_timeout_ms")
    bad = [(*row[:at], 2**70, *row[at + 1 :]) for row in good["members"][:2]]
    bad.append(good["members"][2][:-1])
    found = to_tables({**good, "members": [*bad, *good["members"]]}, 7)
    whole = to_tables(good, 7)
    assert {name: table for name, table in found.items() if name != "rejected"} == whole
    told = found["rejected"].to_pylist()
    assert {row["reason"] for row in told} == {REASON}
    assert len({(row["source"], row["start"]) for row in told}) == 3
    assert "members.session_timeout_ms" in told[0]["expected"]


@pytest.mark.parametrize("field", ["logged_at_ms", "arrived_at_ms", "handled_at_ms", "decided_at_ms"])
@pytest.mark.parametrize("at_ms", [nan, inf, -inf, 1e14, -1e14])
def test_instants_that_are_none_are_no_batch(field: str, at_ms: float) -> None:
    """They would stand in the order of everything, or carry a clock where it never comes back from."""
    at = 1_795_000_000_000.0
    good = Event(int(Kind.HEARTBEAT), its_shard(), "b/request/x", 0, 1, at, at, at, at, "g")
    assert decode_batch(encode_batch([good])) == [good]
    with pytest.raises(BatchError, match="no instants of a log"):
        decode_batch(encode_batch([good, Event(**{**good._asdict(), field: at_ms})]))


def test_a_line_that_a_dialect_raises_at_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the reading of single lines nor the folding of blocks stops at one line."""
    path = tmp_path / "kafka-request.log"
    lines = [line(number) for number in range(200)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    real_read, real_fold = RequestJson.read, QuietLines.fold

    def read(dialect: RequestJson, given: bytes, source: str, start: int, end: int) -> Any:
        if given == lines[100]:
            raise ZeroDivisionError
        return real_read(dialect, given, source, start, end)

    def fold(quiet: QuietLines, given: bytes, *rest: Any) -> Any:
        if lines[100] in given:
            raise ZeroDivisionError
        return real_fold(quiet, given, *rest)

    (piece,) = plan([path], [])
    monkeypatch.setattr(RequestJson, "read", read)
    monkeypatch.setattr(QuietLines, "fold", fold)
    worker = Worker(FACTORY, tmp_path, "w", [0], 1)
    parsed = worker.parse(piece)
    assert sum(one.events for one in parsed.pieces) == 200
    assert [one.rejected for one in parsed.pieces] == [{REASON: 1}]
    assert sorted(str(found) for found in tmp_path.glob("w-*")) == sorted(one.path for one in parsed.pieces)


def test_a_record_that_is_raised_at_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_records, "group_event", lambda *_: 1 // 0)
    event = offsets_records.record_event(3, 17, 1e12, b"\x00\x02\x00\x01g", None)
    assert event is not None
    assert (event.kind, event.start, event.end, (event.detail or {})["reason"]) == (Kind.REJECTED, 17, 18, REASON)
