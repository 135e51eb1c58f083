"""A collector that meets a layout that it does not know says so once, with the first line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.lines import START_MS, stamp
from tests.ingest.world import World

LOGGER = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
KNOWN = f"{stamp(START_MS)} INFO [GroupCoordinator id=1] Starting up. ({LOGGER})"
WORDS = "Stabilized group {} generation 1 (__consumer_offsets-1) with 1 members"
UNKNOWN_LAYOUT = f"20:51 on the 20th [GroupCoordinator 1]: {WORDS}"
WHOLE_SECONDS = f"[2026-11-20 10:47:18] INFO [GroupCoordinator 1]: {WORDS} (kafka.coordinator.group.GroupCoordinator)"


@pytest.mark.parametrize(
    ("line", "reason", "advice"),
    [
        (UNKNOWN_LAYOUT, "unknown_layout", "--log-pattern"),
        (WHOLE_SECONDS, "bad_timestamp", "%d{ISO8601}"),
    ],
)
def test_it_is_said_once_with_its_first_line(tmp_path: Path, line: str, reason: str, advice: str) -> None:
    with World(tmp_path, server=True, requests=False) as world:
        for number in range(3):
            with world.server_path.open("a") as log:
                log.write(f"{KNOWN}\n{line.format(f'g{number}')}\n")
            world.drain()
        (said,) = [one for one in world.said if reason in one]
    assert str(world.server_path) in said
    assert line.format("g0") in said
    assert advice in said
    assert "kardia rejected" in said


def test_a_log_that_is_understood_says_nothing(tmp_path: Path) -> None:
    with World(tmp_path, server=True, requests=False) as world:
        world.server_path.write_text(f"{KNOWN}\n")
        world.drain()
        assert world.said == []
