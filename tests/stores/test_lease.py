"""One run at a time on a folder of a store: the newer one goes on, the older one stops, a dead one is waited for.

Goal: of several that begin, one is left; nobody goes on who cannot be sure; whoever died is waited for no longer than
has to be. Method: leases in a real object store with short times; a process that is killed for a dead one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from demo.object_store import ObjectStore
from spark_jobs.checkpoint import kardia_files
from spark_jobs.errors import CheckpointError, LeaseError
from spark_jobs.leases import store_lease
from spark_jobs.leases.disk_lease import held
from spark_jobs.leases.store_lease import FOLDER, StoreLease, guarded
from stores.locations import Folder, Store

ROLE = "run on this checkpoint"
BEAT_S, EXPIRES_S = 0.2, 8.0
"""So long because a machine on which much else runs takes a second for a sign of life."""


def lease(place: Store, machine: str = "", expires_s: float = EXPIRES_S) -> StoreLease:
    return StoreLease(place, ROLE, beat_s=BEAT_S, expires_s=expires_s, machine=machine)


def until(reached: object, within_s: float = 20.0) -> None:
    end_s = time.monotonic() + within_s
    while not reached():  # type: ignore[operator]
        assert time.monotonic() < end_s
        time.sleep(0.02)


def lost(one: StoreLease) -> bool:
    try:
        one.check()
    except LeaseError as error:
        return "another run has begun" in str(error)
    return False


def silent(one: StoreLease) -> bool:
    try:
        one.check()
    except LeaseError as error:
        return "has not taken a sign of life" in str(error)
    return False


def test_the_newer_one_waits_until_the_older_one_has_stopped(place: Store) -> None:
    older = lease(place, "a").take()
    older.check()
    with ThreadPoolExecutor(1) as threads:
        newer = threads.submit(lease(place, "b").take)
        until(lambda: lost(older))
        assert not newer.done(), "it may still write"
        older.release()
        found = newer.result(20)
    found.check()
    assert found.number == older.number + 1
    found.release()


def test_of_many_that_begin_at_once_one_is_left(place: Store) -> None:
    lease(place).take().release()
    start = threading.Barrier(4)

    losers: list[int] = []

    def run(number: int) -> bool:
        """Whether it is left when all others have stopped."""
        start.wait()
        one = lease(place, f"machine {number}", 40.0)
        try:
            one.take()
            until(lambda: len(losers) == 3 or lost(one), 60.0)
            one.check()
        except LeaseError:
            losers.append(number)
            return False
        finally:
            one.release()
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(run, range(4))) == [False, False, False, True]


def test_whoever_died_elsewhere_is_waited_for_and_no_longer(place: Store) -> None:
    dead = lease(place, "elsewhere").take()
    dead._stop.set()
    dead._thread.join()
    began_s = time.monotonic()
    with lease(place, "here") as found:
        assert time.monotonic() - began_s >= EXPIRES_S - BEAT_S
        found.check()


DIES = (
    "import os, signal, sys; from stores.locations import Store; from spark_jobs.leases.store_lease import StoreLease; "
    "StoreLease(Store(sys.argv[1], sys.argv[2]), 'x').take(); os.kill(os.getpid(), signal.SIGKILL)"
)


def test_a_process_of_this_machine_that_was_killed_is_not_waited_for(place: Store, in_environment: ObjectStore) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DIES, place.bucket, place.prefix],
        env={**os.environ, **in_environment.environ},
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with StoreLease(place, ROLE, beat_s=BEAT_S, expires_s=300.0) as found:
        found.check()


def test_whoever_cannot_say_that_it_lives_stops_before_others_think_it_dead(
    place: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_folder: Folder, name: str, _content: bytes) -> None:
        raise CheckpointError("the store cannot be reached", name, "a store", "look at the network")

    with lease(place) as found:
        monkeypatch.setattr(kardia_files, "write", refuse)
        began_s = time.monotonic()
        until(lambda: silent(found))
        assert time.monotonic() - began_s < EXPIRES_S


def test_an_older_run_that_does_not_stop_is_said_and_nothing_is_begun(
    place: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_lease, "GIVES_WAY_S", 0.5)
    with lease(place, "a"):
        with pytest.raises(LeaseError, match="lives as run on this checkpoint and does not stop"):
            lease(place, "b").take()
        assert [name for name in kardia_files.names(place / FOLDER) if name.startswith("alive")] == ["alive-1"]


def test_a_step_of_a_batch_is_not_begun_without_the_lease(place: Store) -> None:
    steps: list[str] = []
    older = lease(place, "a").take()
    step = guarded(lambda name, _batch: steps.append(name), [older])
    step("events:before", 1)
    with ThreadPoolExecutor(1) as threads:
        newer = threads.submit(lease(place, "b").take)
        until(lambda: older._newer)
        step("events:written", 1)
        with pytest.raises(LeaseError, match="another run has begun"):
            step("marks:before", 1)
        older.release()
        newer.result(20).release()


def test_a_run_takes_it_for_tables_and_checkpoint(place: Store) -> None:
    with held(place, ROLE) as found:
        assert isinstance(found, StoreLease)
        assert "alive-1" in kardia_files.names(place / FOLDER)
    assert "alive-1" not in kardia_files.names(place / FOLDER)
