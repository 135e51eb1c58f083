"""Positions: a crash at every byte and between every step of a save, foreign and newer files, two collectors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import PositionsError, PositionsLockedError, PositionsUnreadableError
from ingest.tail.identity import Saved
from ingest.tail.positions import VERSION, Positions, SavedDirectory, Store, sealed

ENTRY = Saved("a1", 1, 2, 10, "ff", 123, 64, "ee", 5, 6.5, 123)


def some(number: int) -> Positions:
    return Positions(number, "k", {"/x": "b:1"}, {"/x": [ENTRY]}, {3: number})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "positions")
    yield store
    store.close()


def files(store: Store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.directory.iterdir() if path.name != "lock"}


def put(store: Store, contents: dict[str, bytes]) -> None:
    for path in store.directory.iterdir():
        if path.name != "lock":
            path.unlink()
    for name, data in contents.items():
        (store.directory / name).write_bytes(data)


def test_a_first_start_has_none(store: Store) -> None:
    assert store.load() == Positions()
    assert store.load_directory() == SavedDirectory()
    assert not store.notes


def test_what_was_saved_is_loaded(store: Store) -> None:
    positions = some(0)
    store.save(positions)
    assert positions.number == 1
    assert store.load() == positions
    store.save_directory(SavedDirectory(entries=[("c\n", "h", [1, 2])]))
    assert store.load_directory().entries == [("c\n", "h", [1, 2])]


def two_saves(store: Store) -> tuple[Positions, Positions, dict[str, bytes]]:
    first, second = some(0), some(0)
    store.save(first)
    second.number, second.offsets = 1, {3: 77}
    store.save(second)
    return first, second, files(store)


def test_a_crash_at_every_byte_of_a_write_leaves_the_one_before(store: Store) -> None:
    """Step 1 of the save: `positions.new` is torn at every length; `positions` is the good one."""
    _, second, before = two_saves(store)
    third = some(2)
    store.save(third)
    whole = (store.directory / "positions").read_bytes()
    for cut in range(len(whole)):
        put(store, {**before, "positions.new": whole[:cut]})
        assert store.load() == second, cut
    put(store, {**before, "positions.new": whole})
    assert store.load() == third  # complete before the rename: it is the newest


def test_a_crash_between_the_renames_leaves_one_to_go_on_from(store: Store) -> None:
    _, second, before = two_saves(store)
    third = some(2)
    store.save(third)
    whole = (store.directory / "positions").read_bytes()
    put(store, {"positions.old": before["positions"], "positions.new": whole})  # between steps 3 and 4
    assert store.load() == third
    assert any("interrupted" in note for note in store.notes)
    put(store, {"positions.old": before["positions"]})
    assert store.load() == second


def test_a_torn_last_save_falls_back_and_says_so(store: Store) -> None:
    first, _, before = two_saves(store)
    put(store, {**before, "positions": before["positions"][:-3]})
    assert store.load() == first
    assert any("torn" in note for note in store.notes)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_flipped_bit_is_believed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = Store(tmp_path_factory.mktemp("p"))
    first, second, before = two_saves(store)
    whole = bytearray(before["positions"])
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    put(store, {**before, "positions": bytes(whole)})
    loaded: Positions | None = None
    refusal = ""
    try:
        loaded = store.load()
    except PositionsError as error:
        refusal = error.what  # the bit was in the version number
    store.close()
    assert loaded in (first, second) if loaded is not None else "version" in refusal


def test_nothing_readable_is_an_error_and_not_a_start_from_zero(store: Store) -> None:
    put(store, {"positions": b"", "positions.old": b"garbage"})
    with pytest.raises(PositionsUnreadableError, match="none of"):
        store.load()


def test_a_newer_version_is_refused_by_its_number(store: Store) -> None:
    put(store, {"positions": sealed(b"{}").replace(b" %d " % VERSION, b" %d " % (VERSION + 1), 1)})
    with pytest.raises(PositionsError, match=f"version {VERSION + 1}.*version {VERSION} or older"):
        store.load()


def test_a_lost_directory_of_clients_is_only_a_note(store: Store) -> None:
    put(store, {"directory": b"garbage"})
    assert store.load_directory() == SavedDirectory()
    assert len(store.notes) == 1


def test_positions_are_readable_by_their_owner_only(store: Store) -> None:
    store.save(some(0))
    assert (store.directory / "positions").stat().st_mode & 0o077 == 0


def test_a_second_collector_is_told_who_holds_them(tmp_path: Path) -> None:
    held = Store(tmp_path / "p")
    program = f"from ingest.tail.positions import Store; from pathlib import Path; Store(Path({str(tmp_path / 'p')!r}))"
    second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=240)
    assert second.returncode != 0
    assert f"process {os.getpid()}" in second.stderr
    with pytest.raises(PositionsLockedError):
        Store(tmp_path / "p")
    held.close()
    Store(tmp_path / "p").close()
