"""A collector waits until the system tells of new lines, and looks by itself where nobody tells."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.collector import FLUSH_MS, REST_S, TICK_MS
from ingest.tail.notices import GATHER_BYTES, GATHER_FEW_S, GATHER_S, Notices, gather_s
from ingest.tail.positions import SAVE_MS
from tests.ingest.world import World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells in this way")

POLL_S = 0.01
LONG_S = 600.0
"""Nobody waits so long in a test: what was told ends a pause, or the test runs out of its time."""


@pytest.fixture
def notices() -> Iterator[Notices]:
    found = Notices(POLL_S)
    yield found
    found.close()


def append(path: Path) -> None:
    with path.open("a") as log:
        log.write("a line\n")


def test_a_write_ends_the_pause_and_is_told_once(tmp_path: Path, notices: Notices) -> None:
    log = tmp_path / "server.log"
    append(log)
    notices.follow([log])
    for _ in range(3):
        append(log)
    notices.wait(LONG_S)
    assert not notices.looked(found=True)
    began_s = time.monotonic()
    notices.wait(3 * POLL_S)
    assert time.monotonic() - began_s >= 3 * POLL_S  # nothing was left to be told


def test_what_is_written_soon_after_has_time_to_come(tmp_path: Path, notices: Notices) -> None:
    log = tmp_path / "server.log"
    append(log)
    notices.follow([log])
    append(log)
    began_s = time.monotonic()
    notices.wait(LONG_S, 2 * POLL_S)
    assert time.monotonic() - began_s >= 2 * POLL_S


def test_few_lines_have_longer_to_come_together() -> None:
    assert gather_s(0) == gather_s(GATHER_BYTES) == pytest.approx(GATHER_FEW_S)
    assert gather_s(10 * GATHER_BYTES) == pytest.approx(0.1)
    assert gather_s(1_000 * GATHER_BYTES) == GATHER_S


def test_a_file_that_appears_or_that_a_link_leads_to_is_told_of(tmp_path: Path, notices: Notices) -> None:
    (tmp_path / "pods").mkdir()
    real, link = tmp_path / "pods" / "0.log", tmp_path / "kafka.log"
    append(real)
    link.symlink_to(real)
    notices.follow([link, tmp_path / "later.log"])
    append(real)
    notices.wait(LONG_S)
    append(tmp_path / "later.log")
    notices.wait(LONG_S)
    (tmp_path / "later.log").rename(tmp_path / "later.log.1")
    notices.wait(LONG_S)
    assert notices.are_told


def test_lines_of_which_nobody_told_end_the_waiting_for_it(tmp_path: Path, notices: Notices) -> None:
    """As of a file system of another machine."""
    notices.follow([tmp_path / "server.log"])
    notices.wait(2 * POLL_S)
    assert not notices.looked(found=False)
    notices.wait(2 * POLL_S)
    assert notices.looked(found=True)
    assert not notices.are_told
    began_s = time.monotonic()
    notices.wait(LONG_S)  # looks are made by themselves
    assert time.monotonic() - began_s >= POLL_S
    assert not notices.looked(found=True)  # said once


def test_what_is_written_after_the_pause_or_before_a_file_was_known_is_no_sign(
    tmp_path: Path, notices: Notices
) -> None:
    log = tmp_path / "server.log"
    notices.follow([log])
    notices.wait(2 * POLL_S)
    append(log)
    assert not notices.looked(found=True)
    notices.hurry()
    notices.wait(LONG_S)
    assert not notices.looked(found=True)
    notices.wait(POLL_S)  # so long a look would have been made anyway
    assert not notices.looked(found=True)
    assert notices.are_told


def test_a_directory_that_is_not_there_is_looked_at(tmp_path: Path, notices: Notices) -> None:
    notices.follow([tmp_path / "nowhere" / "server.log"])
    assert not notices.are_told


def test_a_collector_rests_until_something_of_its_own_is_due(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        collector = world.collector
        world.write(3)
        world.step(10)
        world.topic.answering = False
        world.write(1)
        world.step()
        assert collector.rest_s(POLL_S) == POLL_S  # answers of the topic are asked for
        world.topic.answering = True
        world.step(2, each_s=0.0)
        assert collector.rest_s(POLL_S) == REST_S
        for _ in range(2):  # the first leaves at once, the second waits for others
            world.write(1)
            collector.step()
        assert collector.rest_s(POLL_S) == pytest.approx(FLUSH_MS / 1000)
        world.clock.now_s += FLUSH_MS / 1000
        collector.step()
        collector.step()
        assert collector.rest_s(POLL_S) == REST_S
        world.clock.now_s += TICK_MS / 1000 - 0.1
        assert collector.rest_s(POLL_S) == pytest.approx(0.1)
        world.clock.now_s += SAVE_MS / 1000
        assert collector.rest_s(POLL_S) == 0.0
