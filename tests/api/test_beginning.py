"""A first view is taken in pieces: it is the view of whoever was there from the first batch, and no piece is large."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import beginning
from api.errors import TableUnreadable
from api.files import pieces
from api.files.follower import Follower
from api.files.pieces import Span, ends
from api.present import folding
from api.settings import ApiSettings
from api.store import VIEWED, Store
from tests.api.conftest import Clock
from tests.api.written import NOW_MS, Tables, health, lag, member, prediction, progress, rebalance, transition

BATCHES = 12


def write(tables: Tables, store: Store | None = None) -> None:
    """A group that loses a member and rebalances in each batch; two sources, one of which meets gaps, and a commit of
    upkeep in the middle."""
    tables.create()
    for batch in range(BATCHES):
        at = NOW_MS + batch * 1_000
        tables.batch(
            batch,
            member("g", f"m{batch}", joined_at_ms=at, at_ms=at),
            member("g", f"m{batch - 1}", joined_at_ms=at - 1_000, ended_at_ms=at, end_cause="session_expired"),
            health("g", f"m{batch}", at_ms=at),
            prediction("g", f"m{batch}", "session", predicted_at_ms=at, known_at_ms=at),
            prediction("g", f"m{batch - 1}", "session", predicted_at_ms=at - 1_000, outcome="hit", known_at_ms=at),
            transition("g", 2 * batch, "PreparingRebalance", at_ms=at),
            transition("g", 2 * batch + 1, "Stable", at_ms=at + 500),
            rebalance("g", at, generation_before=batch, generation_after=batch + 1),
            lag("g", 0, batch, at_ms=at),
            progress(at, gaps=int(batch % 5 == 2), late=batch),
            progress(at - 300, lane=1, source="b2/request", rejected=1, divergences=2, another_generation=2),
        )
        if batch == BATCHES // 2:
            for name in ("members", "health", "progress"):
                tables.compact(name)
        if store is not None:
            store.refresh()


def store_of(tables: Tables) -> Store:
    return Store(ApiSettings(tables=tables.root), Clock())


def described(store: Store) -> Any:
    """All that the first question could find."""
    cluster = store.current.clusters["demo"]
    group, reach = cluster.groups["g"], cluster.reach
    return (
        (store.current.batch_id, group.lives, group.ended, group.health, group.predictions, group.rebalance),
        (group.state, list(group.steps), list(group.recent), dict(group.rebalances), dict(group.evictions)),
        (dict(cluster.rebalances), dict(cluster.evictions), dict(cluster.predictions), cluster.rebalance_ms.sum_ms),
        (
            reach.ledger,
            reach.disagreements,
            reach.self_tested,
            reach.last_gap_at_ms,
            reach.sources(),
            reach.complete_as_of_ms,
        ),
        {name: dict(standing._closed) for name, standing in store.current.standing.items()},
    )


@pytest.mark.parametrize("rows_at_once", [1, 10, 1_000_000], ids=["a batch", "some batches", "all"])
def test_whoever_begins_late_sees_what_one_sees_who_was_there(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    early = store_of(tables)
    write(tables, early)
    monkeypatch.setattr(beginning, "ROWS_AT_ONCE", rows_at_once)
    late = store_of(tables)
    late.refresh()
    assert described(late) == described(early)
    tables.batch(BATCHES, member("g", "last"), progress(NOW_MS + BATCHES * 1_000))
    for store in (early, late):
        store.refresh()
    assert described(late) == described(early)


def test_no_piece_of_a_history_is_large(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tables)
    found: list[int] = []
    fold = folding.after

    def counted(view: Any, rows: Any, batch_id: int) -> Any:
        found.append(sum(map(len, rows.values())))
        return fold(view, rows, batch_id)

    monkeypatch.setattr(beginning, "after", counted)
    monkeypatch.setattr(beginning, "ROWS_AT_ONCE", 20)
    store = store_of(tables)
    store.refresh()
    _ledger, *folded = found
    assert sum(folded) > 5 * 20
    assert max(folded) <= 20 + 10  # a batch of ten rows is never cut
    assert not any(follower.waiting for name, follower in store._followers.items() if name != "progress")


def test_a_ledger_comes_added_up(tables: Tables) -> None:
    write(tables)
    follower = store_of(tables)._followers["progress"]
    follower.look(-1)
    assert len(follower.waiting) == 3  # of two sources, and of one of them the batches that met gaps


def test_what_is_committed_while_one_begins_is_seen_at_the_next_look(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tables)
    store = store_of(tables)
    past, late = Follower.past, [member("g", "late"), progress(NOW_MS + BATCHES * 1_000)]

    def meanwhile(self: Follower, *given: Any) -> list[Any]:
        if late:
            tables.batch(BATCHES, *late)
            late.clear()
        return past(self, *given)

    monkeypatch.setattr(Follower, "past", meanwhile)
    store.refresh()
    assert store.current.batch_id == BATCHES - 1
    assert store.is_behind()
    store.refresh()
    assert store.current.batch_id == BATCHES
    assert "late" in store.current.clusters["demo"].groups["g"].lives


@pytest.mark.parametrize("name", [name for name in VIEWED if name != "lag"])
def test_a_table_that_fails_half_way_is_left_out_whole_and_comes_whole_later(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    early = store_of(tables)
    write(tables, early)
    monkeypatch.setattr(beginning, "ROWS_AT_ONCE", 10)
    late = store_of(tables)
    past, asked = Follower.past, 0

    def failing(self: Follower, *given: Any) -> list[Any]:
        nonlocal asked
        if self is late._followers[name]:
            asked += 1
            if asked == 3:
                raise TableUnreadable([name])
        return past(self, *given)

    monkeypatch.setattr(Follower, "past", failing)
    late.refresh()
    assert [type(error) for error in late.troubles(name)] == [TableUnreadable]
    assert not late.troubles(*(other for other in VIEWED if other != name))
    assert late.current.batch_id == BATCHES - 1
    late.refresh()
    assert not late.troubles()
    assert dict(late.current.clusters["demo"].evictions) == dict(early.current.clusters["demo"].evictions)
    assert late.current.clusters["demo"].reach.ledger == early.current.clusters["demo"].reach.ledger


_SPANS = st.lists(
    st.builds(
        lambda first, more, rows: Span(first, first + more, rows), *(st.integers(0, 500),) * 2, st.integers(1, 300)
    )
)


@given(_SPANS, st.integers(0, 1_200), st.integers(1, 200))
def test_pieces_are_of_about_so_many_rows_and_leave_no_batch_out(spans: list[Span], up_to: int, rows: int) -> None:
    found = ends(spans, up_to, rows)
    assert found[-1] == up_to
    assert all(before < after for before, after in pairwise([-1, *found]))
    for above, end in pairwise([-1, *found]):
        of_piece = sum(_within(span, above + 1, min(end, up_to)) for span in spans)
        if of_piece > rows + 1e-3:  # one batch that has more
            having = {one for one in range(above + 1, end + 1) if any(_within(span, one, one) for span in spans)}
            assert len(having) == 1


def _within(span: Span, first: int, last: int) -> float:
    """Rows of a file from one batch to another."""
    each = span.rows / (span.last - span.first + 1)
    return each * max(0, min(last, span.last) - max(first, span.first) + 1)


def test_a_month_without_rows_is_one_piece() -> None:
    assert ends([], 5_000_000, 10) == [5_000_000]
    assert ends([Span(0, 0, 3), Span(4_999_999, 5_000_000, 4)], 5_000_000, pieces.ROWS_AT_ONCE) == [5_000_000]
