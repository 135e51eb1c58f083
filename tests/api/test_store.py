"""The store beside a writer that appends, crashes, compacts, vacuums and starts anew: nothing is lost or doubled."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from api.answers import as_dicts, roster
from api.errors import RangeTooWide, TablesMissing, TablesNotRead, TableUnreadable
from api.files.reader import TableReader
from api.metrics.totals import state_label
from api.past import archive
from api.past.archive import HistoryPart
from api.past.cursor import Place
from api.settings import ApiSettings
from api.store import Store
from tests.api.conftest import Clock
from tests.api.written import NOW_MS, Tables, health, member, prediction, progress, rebalance, transition


def store_of(tables: Tables, **given: Any) -> Store:
    return Store(ApiSettings(tables=tables.root, **given), Clock())


def eviction(at: int, member_id: str = "m") -> tuple[str, tuple[Any, ...]]:
    return member("g", member_id, joined_at_ms=at - 1_000, ended_at_ms=at, end_cause="session_expired")


def counts(store: Store) -> tuple[int, int, int]:
    cluster = store.current.clusters["demo"]
    return cluster.evictions["session_expired"], cluster.rebalances["member_joined"], cluster.reach.ledger["events"]


def test_only_what_progress_covers_is_shown(tables: Tables) -> None:
    tables.create()
    tables.batch(0, member("g", "a"), progress(NOW_MS))
    tables.batch(1, member("g", "b"), progress(NOW_MS), only=("members",))
    store = store_of(tables)
    store.refresh()
    assert set(store.current.clusters["demo"].groups["g"].lives) == {"a"}
    tables.batch(1, progress(NOW_MS + 1))
    store.refresh()
    assert set(store.current.clusters["demo"].groups["g"].lives) == {"a", "b"}
    assert store.current.batch_id == 1


@pytest.mark.parametrize("looks", [1, 3], ids=["seen at the end", "seen in steps"])
def test_compaction_and_vacuum_double_nothing(tables: Tables, looks: int) -> None:
    tables.create()
    store = store_of(tables)
    for batch in range(6):
        at = NOW_MS + batch * 10
        tables.batch(batch, eviction(at, f"m{batch}"), rebalance("g", at, generation_before=batch), progress(at))
        if looks > 1 and batch % 2:
            store.refresh()
        if batch in (2, 4):
            for name in ("members", "rebalances", "progress"):
                tables.compact(name)
    for _ in range(2):
        store.refresh()
        assert counts(store) == (6, 6, 60)


def test_a_rebalance_under_way_is_shown_before_its_cause_is_known(tables: Tables) -> None:
    """Its transition is written when its JoinGroups are answered; members' health shows it at once, as provisional."""
    tables.create()
    store = store_of(tables)
    seen = []
    for batch, rows in enumerate(
        [
            [transition("g", 1, "Stable", at_ms=NOW_MS), member("g", "m")],
            [health("g", "m", at_ms=NOW_MS + 100, group_state="PreparingRebalance")],
            [health("g", "m", at_ms=NOW_MS + 200, group_state="PreparingRebalance")],
            [transition("g", 2, "PreparingRebalance", at_ms=NOW_MS + 50)],
            [transition("g", 3, "Stable", at_ms=NOW_MS + 300)],
        ]
    ):
        tables.batch(batch, *rows, progress(NOW_MS + batch))
        store.refresh()
        now = store.current.clusters["demo"].groups["g"].state_now
        assert now is not None
        seen.append((now.name, now.since_at_ms - NOW_MS, now.certainty))
    assert seen == [
        ("Stable", 0, "exact"),
        ("PreparingRebalance", 100, "provisional"),
        ("PreparingRebalance", 100, "provisional"),
        ("PreparingRebalance", 50, "exact"),
        ("Stable", 300, "exact"),
    ]


def test_the_state_of_a_group_is_not_known_while_its_coordinator_is_silent_beyond_a_deadline(tables: Tables) -> None:
    """A broker that lives evicts at the deadline, and says so; `overdue` in a Stable group is a broker that does not
    write. Every way out says it, and takes it back when it is heard again."""
    tables.create()
    store = store_of(tables)
    seen = []
    for batch, rows in enumerate(
        [
            [
                transition("g", 1, "Stable", at_ms=NOW_MS),
                member("g", "m"),
                health("g", "m", session_deadline_at_ms=NOW_MS + 70),
            ],
            [health("g", "m", at_ms=NOW_MS + 80, status="overdue", session_deadline_at_ms=NOW_MS + 70)],
            [health("g", "m", at_ms=NOW_MS + 90, session_deadline_at_ms=NOW_MS + 9_000)],
        ]
    ):
        tables.batch(batch, *rows, progress(NOW_MS + batch))
        store.refresh()
        view = store.current.clusters["demo"].groups["g"]
        answer = as_dicts.group(view, store.freshness(store.current.clusters["demo"]))
        listed = roster.page(store.current.clusters["demo"], "name", None, 9, None, "unknown")[0]
        assert answer["state"] == state_label(view) == view.state_name
        seen.append((answer["state"], answer["state_since_at_ms"] - NOW_MS, answer["state_cause"], len(listed)))
    assert [one[:2] for one in seen] == [("Stable", 0), ("Unknown", 70), ("Stable", 0)]
    assert [one[3] for one in seen] == [0, 1, 0]
    assert seen[1][2] == "coordinator_unheard"


def test_a_correction_supersedes_and_is_counted_once(tables: Tables) -> None:
    tables.create()
    first = rebalance("g", NOW_MS, trigger="unknown", certainty="provisional")
    again = rebalance("g", NOW_MS, trigger="member_left", known_at_ms=NOW_MS + 9_000)
    older = rebalance("g", NOW_MS, trigger="metadata_changed", known_at_ms=NOW_MS + 1_000)
    store = store_of(tables)
    for batch, row in enumerate((first, again, older)):
        tables.batch(batch, row, progress(NOW_MS))
        store.refresh()
    assert store.current.clusters["demo"].groups["g"].rebalance.trigger == "member_left"
    assert sum(store.current.clusters["demo"].rebalances.values()) == 1


def test_complete_as_of_is_the_least_over_lanes_and_sources_and_never_goes_back(tables: Tables) -> None:
    tables.create()
    store = store_of(tables, source_retired_ms=60_000)
    steps = [
        ([progress(NOW_MS + 500, lane=0), progress(NOW_MS + 400, lane=1)], NOW_MS + 400),
        ([progress(NOW_MS + 900, lane=1)], NOW_MS + 500),
        ([progress(NOW_MS + 100, lane=0, source="b2/request")], NOW_MS + 500),  # a new broker starts behind
        ([progress(NOW_MS + 800, lane=0), progress(NOW_MS + 700, lane=0, source="b2/request")], NOW_MS + 700),
        ([progress(NOW_MS + 90_000, lane=0), progress(NOW_MS + 90_000, lane=1)], NOW_MS + 90_000),  # b2 is retired
    ]
    for batch, (rows, expected) in enumerate(steps):
        tables.batch(batch, *rows)
        store.refresh()
        assert store.freshness(store.cluster("demo")).complete_as_of_ms == expected, batch


def test_a_group_is_complete_as_far_as_the_logs_of_its_own_broker(tables: Tables) -> None:
    """A broker whose log is read no further holds back its own groups, and the cluster as long as it leads one."""
    tables.create()
    store = store_of(tables)
    first, second = progress(NOW_MS, source="b1/request"), progress(NOW_MS + 9_000, source="b2/request")
    tables.batch(0, member("one", "a", broker="b1"), member("two", "b", broker="b2"), first, second)
    store.refresh()
    cluster = store.cluster("demo")
    told = {name: store.freshness(cluster, group=group).complete_as_of_ms for name, group in cluster.groups.items()}
    assert told == {"one": NOW_MS, "two": NOW_MS + 9_000}
    assert store.freshness(cluster).complete_as_of_ms == NOW_MS
    taken = member("one", "a", broker="b2", known_at_ms=NOW_MS + 10_000)
    tables.batch(1, taken, progress(NOW_MS + 10_000, source="b2/request"))
    store.refresh()
    cluster = store.cluster("demo")
    assert store.freshness(cluster, group=cluster.groups["one"]).complete_as_of_ms == NOW_MS + 10_000
    assert store.freshness(cluster).complete_as_of_ms == NOW_MS + 10_000


def test_tables_that_are_not_there_are_named_and_found_later(tables: Tables) -> None:
    store = store_of(tables)
    with pytest.raises(TablesNotRead) as not_read:
        store.require("members")  # nobody has looked: nothing can be said of what is there
    assert not_read.value.members["tables"] == ["progress", "members"]
    store.refresh()
    with pytest.raises(TablesMissing) as caught:
        store.require("members", "health")
    assert caught.value.members["tables"] == ["progress", "members", "health"]
    tables.create("progress", "members", "transitions")
    tables.batch(0, member("g", "a"), progress(NOW_MS))
    store.refresh()
    store.require("members")
    with pytest.raises(TablesMissing):
        store.require("members", "health")
    tables.create("health", "rebalances", "predictions")
    tables.batch(1, health("g", "a"), progress(NOW_MS))
    store.refresh()
    store.require("members", "health", "rebalances", "predictions")
    assert set(store.current.clusters["demo"].groups["g"].health) == {"a"}


def test_a_table_with_a_torn_log_is_named_and_the_others_still_answer(tables: Tables) -> None:
    tables.create()
    tables.batch(0, member("g", "a"), progress(NOW_MS))
    entry = tables.root / "rebalances" / "_delta_log" / f"{0:020d}.json"
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    store = store_of(tables)
    store.refresh()
    store.require("members")
    with pytest.raises(TableUnreadable):
        store.require("rebalances")
    entry.write_bytes(whole)
    store.refresh()
    store.require("rebalances")


def test_tables_made_anew_start_a_new_view(tables: Tables) -> None:
    tables.create()
    tables.batch(7, eviction(NOW_MS), progress(NOW_MS))
    store = store_of(tables)
    store.refresh()
    assert counts(store)[0] == 1
    shutil.rmtree(tables.root)
    tables.create()
    tables.batch(0, member("h", "a"), progress(NOW_MS))
    store.refresh()
    assert set(store.current.clusters["demo"].groups) == {"h"}
    assert store.current.batch_id == 0


def test_a_file_vacuumed_under_a_read_is_read_again_from_its_successor(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.create("members")
    for batch in range(3):
        tables.batch(batch, eviction(NOW_MS + batch, f"m{batch}"))
    reader = TableReader(tables.root, "members")
    newest, old = reader._newest, [DeltaTable(tables.root / "members")]
    monkeypatch.setattr(reader, "_newest", lambda: old.pop() if old else newest())
    tables.compact("members")  # what is opened first names the old files only
    part = HistoryPart(None, None, 10, True, Place(9, ()))
    page = archive.evictions(reader, "demo", "g", part, frozenset(["session_expired"]), 100)
    assert [row.member_id for row in page.rows] == ["m2", "m1", "m0"]


def test_rows_that_come_while_a_scan_starts_again_are_shown_with_their_batch(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan that lost a file moves its table on; what it passes over belongs to a batch that is not trusted yet."""
    tables.create()
    tables.batch(0, member("g", "m0"), progress(NOW_MS))
    store = store_of(tables)
    store.refresh()
    tables.batch(1, member("g", "m1"), progress(NOW_MS + 1))
    store.refresh()
    tables.batch(2, member("g", "m2"), progress(NOW_MS + 2))
    reader = store._followers["members"].reader
    file_rows = reader.file_rows
    lost: list[str] = []

    def losing(name: str) -> Any:
        if not lost:
            lost.append(name)
            tables.batch(3, member("g", "m3"), progress(NOW_MS + 3), only=("members",))
            raise FileNotFoundError("vacuumed")
        return file_rows(name)

    monkeypatch.setattr(reader, "file_rows", losing)
    store.refresh()
    assert lost
    tables.batch(3, progress(NOW_MS + 3))
    store.refresh()
    assert set(store.current.clusters["demo"].groups["g"].lives) == {"m0", "m1", "m2", "m3"}


def test_predictions_are_open_until_their_outcome_and_scored_once(tables: Tables) -> None:
    tables.create()
    store = store_of(tables)
    tables.batch(0, member("g", "a"), prediction("g", "a", "session"), progress(NOW_MS))
    store.refresh()
    assert set(store.current.clusters["demo"].groups["g"].predictions) == {("a", "session")}
    done = prediction("g", "a", "session", outcome="averted", outcome_at_ms=NOW_MS, known_at_ms=NOW_MS + 1)
    for batch in (1, 2):
        tables.batch(batch, done, progress(NOW_MS))
        store.refresh()
    assert not store.current.clusters["demo"].groups["g"].predictions
    assert store.current.clusters["demo"].predictions == {("session", "averted"): 1}


def test_a_fold_that_fails_shows_nothing_and_the_next_look_counts_nothing_twice(
    tables: Tables,
) -> None:
    tables.create()
    store = store_of(tables)
    tables.batch(0, member("g", "a"), progress(NOW_MS))
    store.refresh()
    shown = store.current
    tables.batch(1, *(eviction(NOW_MS, name) for name in ("a", "b")), progress(NOW_MS))
    taking = store.take_in(store.look())
    next(taking)
    next(taking)
    del taking  # as an exception in the middle would leave it
    assert store.current is shown
    assert described(store)[0] == 0
    store.refresh()
    late = store_of(tables)
    late.refresh()
    assert described(store) == described(late)
    assert dict(store.current.clusters["demo"].evictions) == {"session_expired": 2}


def test_a_member_that_comes_back_lives_again_and_an_old_end_does_not_end_it(tables: Tables) -> None:
    tables.create()
    store = store_of(tables)
    tables.batch(0, member("g", "a", joined_at_ms=NOW_MS), progress(NOW_MS))
    tables.batch(1, member("g", "a", joined_at_ms=NOW_MS + 50, known_at_ms=NOW_MS + 50), progress(NOW_MS))
    tables.batch(2, member("g", "a", joined_at_ms=NOW_MS, ended_at_ms=NOW_MS + 40, end_cause="left"), progress(NOW_MS))
    store.refresh()
    assert store.current.clusters["demo"].groups["g"].lives["a"].joined_at_ms == NOW_MS + 50


def test_old_health_rows_are_not_read_at_start(tables: Tables) -> None:
    tables.create()
    old = NOW_MS - 20_000
    tables.batch(
        0,
        member("g", "a"),
        member("g", "b"),
        health("g", "a", at_ms=old - 1),
        health("g", "b", at_ms=old),
        progress(NOW_MS),
    )
    store = store_of(tables, health_lookback_ms=20_000)
    store.refresh()
    assert set(store.current.clusters["demo"].groups["g"].health) == {"b"}


def test_a_cluster_that_is_behind_keeps_its_health_beside_one_that_is_not(tables: Tables) -> None:
    """Another cluster's news, or another broker's, says nothing about when its members were sampled last."""
    tables.create()
    hour_ms = 3_600_000
    tables.batch(
        0,
        member("g", "a"),
        health("g", "a", at_ms=NOW_MS),
        health("g", "b", at_ms=NOW_MS - 20_001),
        progress(NOW_MS),
        member("g", "c", cluster_id="behind"),
        health("g", "c", at_ms=NOW_MS - hour_ms, cluster_id="behind"),
        health("g", "d", at_ms=NOW_MS - hour_ms - 20_001, cluster_id="behind"),
        progress(NOW_MS - hour_ms, cluster_id="behind"),
        member("g", "b"),
        member("g", "d", cluster_id="behind"),
        member("h", "e", cluster_id="two-logs"),
        health("h", "e", at_ms=NOW_MS - 60_000, cluster_id="two-logs"),
        progress(NOW_MS, cluster_id="two-logs"),
        progress(NOW_MS - 60_000, source="b2/request", cluster_id="two-logs"),
    )
    store = store_of(tables, health_lookback_ms=20_000)
    store.refresh()
    found = {
        name: {one for group in view.groups.values() for one in group.health}
        for name, view in store.current.clusters.items()
    }
    assert found == {"demo": {"a"}, "behind": {"c"}, "two-logs": {"e"}}


def test_one_cluster_is_shown_where_one_is_asked_for(tables: Tables) -> None:
    tables.create()
    tables.batch(
        0,
        member("g", "a"),
        progress(NOW_MS),
        member("g", "b", cluster_id="other"),
        progress(NOW_MS, cluster_id="other"),
    )
    store = store_of(tables, cluster="other")
    store.refresh()
    assert set(store.current.clusters) == {"other"}
    assert store.current.batch_id == 0


def test_a_question_that_reads_too_much_is_refused_at_the_bound(tables: Tables) -> None:
    tables.create("rebalances")
    tables.batch(0, *(rebalance("g", NOW_MS + at) for at in range(5)))
    reader = TableReader(tables.root, "rebalances")
    reader.refresh()
    part = HistoryPart(None, None, 10, True, Place(0, ()))
    assert len(archive.rebalances(reader, "demo", "g", part, 5).rows) == 5
    with pytest.raises(RangeTooWide):
        archive.rebalances(reader, "demo", "g", part, 4)


STEPS = st.lists(st.sampled_from(["write", "half", "look", "compact", "clean"]), min_size=1, max_size=14)


@settings(max_examples=12, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 99))
def test_any_order_of_writes_looks_and_compactions_ends_in_the_same_view(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    """Law: the view of a reader that looked in between equals the view of one that comes at the end."""
    tables = Tables(tmp_path_factory.mktemp("law") / "tables")
    tables.create()
    watching = store_of(tables)
    batch, half = 0, False

    def rows(number: int) -> list[tuple[str, tuple[Any, ...]]]:
        at = NOW_MS + number
        name = f"m{(number + seed) % 3}"
        return [
            member(
                "g", name, joined_at_ms=NOW_MS, known_at_ms=at, ended_at_ms=at if number % 2 else None, end_cause="left"
            ),
            rebalance("g", NOW_MS + number // 2, known_at_ms=at, completed_at_ms=at if number % 2 else None),
            transition("g", number + 1, "Stable" if number % 2 else "Empty"),
            health("g", name, at_ms=at),
            progress(at),
        ]

    for step in [*steps, "write"]:
        if step == "write":
            if half:  # the job starts again and finishes the batch it had begun
                tables.batch(batch, *rows(batch), only=("rebalances", "transitions", "health", "progress"))
            else:
                tables.batch(batch, *rows(batch))
            batch, half = batch + 1, False
        elif step == "half" and not half:
            tables.batch(batch, *rows(batch), only=("members",))
            half = True
        elif step == "compact":
            tables.compact("members")
            tables.compact("rebalances")
        elif step == "clean":
            tables.clean("members")
            tables.clean("transitions")
        elif step == "look":
            watching.refresh()
    watching.refresh()
    late = store_of(tables)
    late.refresh()
    assert described(watching) == described(late)


def described(store: Store) -> Any:
    group = store.current.clusters["demo"].groups["g"]
    return store.current.batch_id, group.lives, group.rebalance, group.state, counts(store), dict(group.rebalances)


def test_a_reader_keeps_up_while_a_writer_commits_and_compacts(tables: Tables) -> None:
    """Sixty commits and three compactions beside a reader that never stops looking."""
    tables.create()
    store = store_of(tables)

    def write() -> None:
        for batch in range(60):
            tables.batch(batch, eviction(NOW_MS + batch, f"m{batch}"), progress(NOW_MS + batch))
            if batch % 20 == 19:
                tables.compact("members")

    writer = threading.Thread(target=write)
    writer.start()
    seen = [-1]
    while writer.is_alive():
        store.refresh()
        assert store.current.batch_id >= seen[-1]
        seen.append(store.current.batch_id)
        if store.current.clusters:
            assert counts(store)[0] == store.current.batch_id + 1
    writer.join()
    store.refresh()
    assert counts(store)[0] == 60
    assert len(set(seen)) > 5, "the reader did not look while the writer wrote"
    assert DeltaTable(tables.root / "members").version() >= 60
