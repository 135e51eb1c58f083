"""What several tests of the demo need: the server.log of a recorded story as the demo reads it, and how a run ended."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from zoneinfo import ZoneInfo

import psutil

from demo import server_log
from demo.server_log import Fact
from demo.show import VERDICT
from tests.support.stories import NOISE_GROUPS, Story


def facts_of(story: Story) -> list[Fact]:
    """Facts in the server.log of a story, within its scored time."""
    expect = story.expect
    with gzip.open(story.folder / "server.log.gz", "rt", encoding="utf-8", errors="replace") as lines:
        return [
            fact
            for fact in server_log.facts(lines, ZoneInfo(story.zone))
            if expect["start_ms"] <= fact.at_ms <= expect["end_ms"] and fact.group_id not in NOISE_GROUPS
        ]


def ends_well(running: subprocess.Popen[bytes], directory: Path) -> None:
    """A run that was asked to stop ends, and nothing was wrong in it. That something was predicted too late is no fault
    here: how soon depends on the machine, and is what the benchmarks measure."""
    ended = running.wait(240)
    said = json.loads((directory / VERDICT).read_text("utf-8"))
    assert said["wrong"] == []
    assert ended == bool(said["late"])
    assert said["instants"] > 0


def alive(family: list[psutil.Process]) -> list[psutil.Process]:
    """Those of a family that still run; a number that was given to another process since does not count."""
    return [one for one in family if one.is_running() and not _is_zombie(one)]


def _is_zombie(one: psutil.Process) -> bool:
    try:
        return bool(one.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
