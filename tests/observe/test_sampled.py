"""Samples of the admin API: what two answers prove of the time between them, alone and beside the sentences of
server.log, and that nothing is invented.

Answers go through `ingest.admin.samples` as a sampler gives them; sentences through the dialect of server.log. The laws
are those of the observer: any split into steps, with the state written down and read back in between, says the same.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.admin.samples import Answer, Changes, Entry, ReadSamples, Sample, is_sample, sample_event, sample_line
from kardia.events import ADMIN_BROKER, DEFAULT_OFFSETS_PARTITIONS, Event, Kind
from kardia.evidence_levels import GONE_REASON, TAKEN_REASON
from kardia.observe.members.lives import MAX_ENDED
from kardia.tables import Row
from tests.support.scene import SAME_IN_ANY_SPLIT
from tests.support.stories import named, standing
from tests.support.told import START, A, B, C, Told, run, ticks_of

TOOK_MS = 20


def entry(member: str, *partitions: int, instance: str = "") -> Entry:
    return member, instance, member[0], "10.0.0.9", [("orders", list(partitions))] if partitions else []


class Sampled(Told):
    """Answers about group `g`, and whatever sentences and records are read beside them."""

    def __init__(self, run: str = "a1") -> None:
        super().__init__()
        self.changes = Changes(run)
        self.samples: list[Sample] = []

    def answers(
        self,
        at_ms: int,
        state: str,
        *members: Entry,
        protocol: str = "classic",
        whole: bool = True,
        took_ms: int = TOOK_MS,
    ) -> None:
        """Asked at this instant, and answered a little later."""
        answer = Answer("g", state, protocol, "range", whole, list(members))
        sample = self.changes.note(answer, START + at_ms, START + at_ms + took_ms)
        if sample is not None:
            self.samples.append(sample)
            event = sample_event(sample, DEFAULT_OFFSETS_PARTITIONS)
            assert event is not None
            self.events.append(event)

    def ends_round(self, at_ms: int) -> None:
        """Everything has been asked."""
        sample = self.changes.round(START + at_ms, START + at_ms)
        event = sample_event(sample, DEFAULT_OFFSETS_PARTITIONS)
        self.samples.append(sample)
        self.events += [] if event is None else [event]

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        said = run([self.fed()])
        return {
            table: named(table, rows) if table == "transitions" else standing(table, rows)
            for table, rows in said.items()
            if table in SAME_IN_ANY_SPLIT
        }

    def fed(self) -> list[Event]:
        """All of it, with ticks that reach beyond."""
        ticks = ticks_of([event for event in self.events if event.kind != Kind.GROUP_SAMPLE])
        at = max(event.decided_at_ms for event in self.events) + 1_000
        sources = sorted({event.source for event in self.events if event.kind == Kind.GROUP_SAMPLE})
        end = len(self.changes.groups) + len(self.samples) + 10
        ticks = [one._replace(logged_at_ms=at) for one in ticks]
        return [
            *self.events,
            *ticks,
            *(Event(int(Kind.TICK), -1, source, 0, end, at, at, at, at, detail={}) for source in sources),
        ]

    def bounds(self, at_ms: int, bound_ms: int) -> tuple[int, int]:
        return at_ms - START, at_ms - START + bound_ms

    def lives(self) -> dict[str, tuple[Any, ...]]:
        """Member -> (end cause, certainty, bounds of the end), or of the begin while it is a member."""
        found: dict[str, tuple[Any, ...]] = {}
        for row in self.rows()["members"]:
            at_ms = row["joined_at_ms"] if row["ended_at_ms"] is None else row["ended_at_ms"]
            bounds = self.bounds(at_ms, row["at_bound_ms"])
            found[row["member_id"]] = (row["end_cause"], row["certainty"], *bounds)
        return found

    def moves(self) -> list[tuple[str, str, str, tuple[int, int]]]:
        """Rows of the group: state, cause, certainty, bounds."""
        return [
            (row["to_state"], row["cause"], row["certainty"], self.bounds(row["at_ms"], row["at_bound_ms"]))
            for row in self.rows().get("transitions", [])
            if row["entity"] == "group"
        ]


def test_the_first_answer_shows_how_it_is_and_nothing_before() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), entry(B, 1))
    assert told.lives() == {A: (None, "inferred", 0, 20), B: (None, "inferred", 0, 20)}
    assert told.moves() == [("Stable", "sampled", "inferred", (0, 20))]
    rows = told.rows()
    assert [row["entity"] for row in rows["transitions"]] == ["group"], "nobody is said to have joined then"
    assert {(row["client_id"], row["client_host"]) for row in rows["members"]} == {
        ("a", "10.0.0.9"),
        ("b", "10.0.0.9"),
    }


def test_an_answer_like_the_one_before_is_no_news() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0, 1), entry(B, 2))
    told.answers(10_000, "Stable", entry(B, 2), entry(A, 1, 0))
    assert len(told.samples) == 1


def test_who_comes_came_between_two_questions() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0, 1))
    told.answers(10_000, "Stable", entry(A, 0, 1))
    told.answers(20_000, "Stable", entry(A, 0), entry(B, 1))
    assert told.lives()[B] == (None, "inferred", 10_000, 20_020), "not since the last answer that was news"
    assert told.moves()[-1] == ("Stable", "rebalanced", "inferred", (10_000, 20_020))


def test_who_is_gone_left_or_was_evicted_which_is_not_said() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), entry(B, 1))
    told.answers(10_000, "PreparingRebalance", entry(A))
    assert told.lives()[B] == ("unknown", "unknown", 0, 10_020)  # it was there when it was first seen
    row = next(row for row in told.rows()["members"] if row["member_id"] == B)
    assert row["end_reason"] == GONE_REASON
    assert told.moves()[-1] == ("PreparingRebalance", "sampled", "inferred", (0, 10_020))
    assert not told.rows().get("rebalances")


def test_a_static_member_in_the_place_of_another_needs_no_rebalance() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0, instance="one"), entry(B, 1))
    told.answers(10_000, "Stable", entry(C, 0, instance="one"), entry(B, 1))
    assert told.lives()[A] == ("unknown", "unknown", 0, 10_020), "it may have been evicted before the other one came"
    row = next(row for row in told.rows()["members"] if row["member_id"] == A)
    assert row["end_reason"] == TAKEN_REASON
    assert [move[1] for move in told.moves()] == ["sampled"]


def test_other_partitions_of_the_same_members_are_a_rebalance() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), entry(B, 1))
    told.answers(10_000, "Stable", entry(A, 1), entry(B, 0))
    assert told.moves()[-1] == ("Stable", "rebalanced", "inferred", (0, 10_020))


def test_the_last_answer_is_the_last_word_however_long_the_first_one_took() -> None:
    """It was given after its question and before it came, so the next change may have been before it came."""
    told = Sampled()
    told.answers(0, "PreparingRebalance", entry(A), took_ms=9_000)
    told.answers(10_000, "Stable", entry(A, 0))
    assert [(move[0], move[3]) for move in told.moves()] == [
        ("PreparingRebalance", (0, 9_000)),
        ("Stable", (0, 10_020)),
    ]


def test_a_group_that_changed_its_protocol_is_not_said_to_have_rebalanced() -> None:
    """A static member that takes its seat with the other protocol begins nothing, and assignments read otherwise."""
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0, instance="one"), entry(B, 1), protocol="consumer")
    told.answers(10_000, "Stable", entry(C, 0, instance="one"), entry(B, 2), protocol="classic")
    assert [move[1] for move in told.moves()] == ["sampled"]
    told.answers(20_000, "Stable", entry(C, 1, instance="one"), entry(B, 2), protocol="classic")
    assert [move[1] for move in told.moves()] == ["sampled", "rebalanced"]


def test_what_is_shown_again_is_known_since_then_and_not_since_before_it_was_hidden() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0))
    told.changes = Changes("b2")
    told.ends_round(60_000)
    told.answers(70_000, "Stable", entry(A, 0))
    told.answers(80_000, "Empty")
    assert [(move[0], move[3]) for move in told.moves()] == [
        ("Stable", (0, 20)),
        ("Unknown", (60_000, 60_000)),
        ("Stable", (60_000, 70_020)),
        ("Empty", (70_000, 80_020)),
    ]


def test_a_group_that_is_dead_has_no_members_and_may_come_back() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0))
    told.answers(10_000, "Dead")
    told.answers(20_000, "Dead")
    assert len(told.samples) == 2
    told.answers(30_000, "Stable", entry(B, 0))
    assert told.lives()[A][:2] == ("unknown", "unknown")
    assert [move[0] for move in told.moves()] == ["Stable", "Dead", "Stable"]
    assert told.lives()[B][0] is None


def test_a_list_that_is_cut_ends_nobody() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), entry(B, 1))
    told.answers(10_000, "Stable", entry(A, 0), whole=False)
    assert told.lives()[B][0] is None


def test_a_sampler_that_starts_again_goes_on_from_when_the_group_was_last_asked_about() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), entry(B, 1))
    told.changes = Changes("b2")
    told.answers(60_000, "Stable", entry(A, 0))
    assert told.lives()[B] == ("unknown", "unknown", 0, 60_020)


def test_a_group_that_a_new_sampler_is_not_shown_is_unknown_and_nobody_is_said_to_be_gone() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0))
    told.ends_round(100)
    told.changes = Changes("b2")
    told.ends_round(60_000)
    assert told.moves()[-1][:3] == ("Unknown", "not listed", "unknown")
    assert told.lives()[A][0] is None
    told.ends_round(70_000)
    assert len(told.events) == 3, "later rounds are no events"


def test_a_state_without_a_word_is_unknown() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), protocol="consumer")
    told.answers(10_000, "Unknown", entry(A, 0), protocol="consumer")
    assert told.moves()[-1] == ("Unknown", "sampled", "unknown", (0, 10_020))
    assert [row["protocol"] for row in told.rows()["members"]] == ["consumer"]


def test_records_say_more_and_samples_add_nothing_beside_them() -> None:
    def story(*, sampled: bool) -> dict[str, list[Row]]:
        told = Sampled()
        told.record(0, 1, A, B)
        if sampled:
            told.answers(500, "Stable", entry(A, 0), entry(B, 1))
        told.record(5_000, 2, A)
        if sampled:
            told.answers(9_000, "Stable", entry(A, 0, 1))
        said = run([told.fed()])
        return {table: said[table] for table in ("members", "transitions", "rebalances")}

    assert story(sampled=True) == story(sampled=False)


def test_beside_sentences_samples_name_members_and_leave_what_was_told() -> None:
    told = Sampled()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.answers(10_000, "Stable", entry(A, 0), entry(B, 1))
    told.expires(15_000, B, 1)
    told.becomes(15_100, 2, 1)
    told.answers(20_000, "Stable", entry(A, 0, 1))
    lives = told.lives()
    assert lives[B] == ("session_expired", "exact", 15_000, 15_000)
    assert lives[A][0] is None
    assert len(told.rows()["rebalances"]) == 2
    assert all(move[1] != "sampled" for move in told.moves())


def test_beside_sentences_who_was_listed_last_is_gone_when_the_next_answer_lacks_it_however_soon_that_comes() -> None:
    """The broker stood still: the answer that listed B had been asked for long before, and the next came at once."""
    told = Sampled()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.answers(5_000, "Stable", entry(A, 0))
    told.answers(9_000, "Stable", entry(A, 0), entry(B, 1, instance="one"), took_ms=6_600)
    told.answers(15_610, "Stable", entry(A, 0), entry(C, 1, instance="one"))
    told.answers(20_000, "Stable", entry(A, 0), entry(C, 1, instance="one"))
    assert told.lives()[B] == ("unknown", "unknown", 9_000, 15_610 + TOOK_MS)


@pytest.mark.parametrize("off_ms", [-900, -300, 300, 900])
def test_clocks_that_differ_by_less_than_a_second_bring_nobody_back(off_ms: int) -> None:
    """The sample before and after an eviction, by a clock that is behind or ahead."""
    told = Sampled()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.answers(9_000 + off_ms, "Stable", entry(A, 0), entry(B, 1))
    told.expires(15_000, B, 1)
    told.becomes(15_100, 2, 1)
    told.joins(15_200, 2, C)
    told.becomes(15_300, 3, 2)
    # Really asked right before the eviction, and right after the second rebalance.
    told.answers(14_990 + off_ms, "Stable", entry(A, 0), entry(B, 1))
    told.answers(15_310 + off_ms, "Stable", entry(A, 0), entry(C, 1))
    rows = told.rows()["members"]
    assert sorted(row["member_id"] for row in rows) == sorted([A, B, C]), "one life each"
    assert told.lives()[B] == ("session_expired", "exact", 15_000, 15_000)
    assert told.lives()[C][0] is None


def test_of_many_that_were_evicted_at_once_none_is_brought_back_by_a_sample_of_a_moment_before() -> None:
    """More than are remembered, and the clock of whoever asks is 0.7 s ahead."""
    told, off_ms = Sampled(), 700
    many = [f"m{number}-00000000-0000-4000-8000-000000000009" for number in range(MAX_ENDED + 20)]
    told.joins(0, 0)
    told.becomes(3_000, 1, 1 + len(many))
    told.answers(9_000 + off_ms, "Stable", entry(A, 0), *(entry(one) for one in many))
    told.expires(15_000, many[0], 1)
    for place, one in enumerate(many[1:]):
        told.fails(15_001 + place, one)
    told.answers(14_990 + off_ms, "PreparingRebalance", entry(A, 0), *(entry(one) for one in many))
    told.becomes(16_000, 2, 1)
    told.answers(20_000 + off_ms, "Stable", entry(A, 0, 1))
    rows = told.rows()["members"]
    assert sorted(row["member_id"] for row in rows) == sorted([A, *many]), "one life each"
    assert {row["end_cause"] for row in rows if row["member_id"] != A} == {"session_expired"}


def test_a_recorded_file_gives_the_events_that_were_sent() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0), entry(B, 1))
    told.answers(10_000, "PreparingRebalance", entry(A))
    told.ends_round(20_050)
    told.ends_round(30_050)
    lines = [*map(sample_line, told.samples)]
    assert all(map(is_sample, lines))
    read = ReadSamples(lines, DEFAULT_OFFSETS_PARTITIONS)
    assert list(read) == told.events
    assert (read.rounds, read.known_to_ms) == (2, START + 31_050)
    assert {event.source for event in told.events} == {f"{ADMIN_BROKER}/samples/a1"}


def test_a_damaged_line_is_rejected_and_the_rest_is_read() -> None:
    told = Sampled()
    told.answers(0, "Stable", entry(A, 0))
    good = sample_line(told.samples[0])
    read = list(ReadSamples([b"{\n", good[:-9] + b"\n", good, b"\xff\n", b"[" * 100_000], DEFAULT_OFFSETS_PARTITIONS))
    assert [event.kind for event in read] == [Kind.REJECTED, Kind.REJECTED, *told_kinds(told), *[Kind.REJECTED] * 2]


def told_kinds(told: Sampled) -> list[int]:
    return [event.kind for event in told.events]


MEMBERS = (entry(A, 0), entry(B, 1), entry(C, 2, instance="one"), entry(f"d{A}", 2, instance="one"))
ANSWERS = st.lists(
    st.tuples(
        st.sampled_from(["Stable", "Stable", "PreparingRebalance", "Empty", "Dead"]),
        st.lists(st.sampled_from(MEMBERS), unique_by=lambda one: one[1] or one[0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(answers=ANSWERS, data=st.data())
def test_any_split_with_restarts_says_the_same_and_nothing_is_exact(answers: Any, data: st.DataObject) -> None:
    told = Sampled()
    for number, (state, members, again) in enumerate(answers):
        if again:
            told.changes = Changes(f"b{number}")
        told.answers(10_000 * (number + 1), state, *(() if state in ("Empty", "Dead") else members))
        told.ends_round(10_000 * (number + 1) + TOOK_MS)
    if not told.events:
        return  # nobody was ever there
    whole = run([told.fed()])
    events = told.fed()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(events)), max_size=4)))
    steps = [events[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    split = run(steps, restarts=True)
    for table in SAME_IN_ANY_SPLIT:
        assert whole.get(table, []) == split.get(table, []), table
    for table in ("members", "transitions"):
        for row in named(table, whole.get(table, [])):
            assert row["certainty"] != "exact", row
            assert (row.get("end_cause") or "unknown") == "unknown", row
    # Whoever was listed last is a member, and nobody else.
    # A group that a new sampler does not meet may be gone, or hidden: its members are not known to be none.
    hidden = {row["to_state"] for row in named("transitions", whole.get("transitions", []))[-1:]} == {"Unknown"}
    last = {one[0] for one in answers[-1][1]} if answers[-1][0] not in ("Empty", "Dead") else set()
    standing_now = {row["member_id"] for row in standing("members", whole.get("members", [])) if not row["ended_at_ms"]}
    assert standing_now == last or (hidden and standing_now >= last)
