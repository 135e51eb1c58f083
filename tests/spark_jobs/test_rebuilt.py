"""Files of a lane's state that are damaged, with a real broker and real Spark state: the lane is there again, and no
row is there twice.

Method: a recorded story in two parts. Between them files of Spark's state are damaged; what the tables hold in the end
is compared with a run that nothing befell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from demo.broker import Broker
from kardia.tables import LIVE_TABLES
from spark_jobs import checkpoint
from tests.spark_jobs.support import LANES, SLICES, produce, run_stream, story_messages, stream_command, told_rows

pytestmark = [pytest.mark.slow]

FIRST = SLICES // 2


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _damage(home: Path, kind: Callable[[Path], None]) -> int:
    """Of one partition of the state of one part; the number of files."""
    found = checkpoint.load(home / "checkpoint" / "live")
    assert found is not None
    state = home / "checkpoint" / "live" / found.name / "state" / "0"
    partition = max(
        (one for one in state.iterdir() if one.name.isdigit()), key=lambda one: sum(1 for _ in one.rglob("*"))
    )
    files = [one for one in partition.rglob("*") if one.suffix in (".zip", ".changelog")]
    for path in files:
        kind(path)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return len(files)


@pytest.mark.parametrize("kind", [_torn, Path.unlink], ids=["torn", "gone"])
def test_a_lane_whose_files_are_damaged_is_built_again(
    kafka: Broker, tmp_path: Path, kind: Callable[[Path], None], request: pytest.FixtureRequest
) -> None:
    topic = f"rebuilt.{request.node.callspec.id}"
    kafka.create_topic(topic, LANES)
    produce(kafka.bootstrap, topic, story_messages(end=FIRST))
    whole, broken = (stream_command(kafka.bootstrap, topic, tmp_path / name, "--once", "--no-archive") for name in "ab")
    for command in (whole, broken):
        assert run_stream(command).returncode == 0
    produce(kafka.bootstrap, topic, story_messages(begin=FIRST))
    assert run_stream(whole).returncode == 0

    assert _damage(tmp_path / "b", kind) > 0
    refused = run_stream(broken)
    assert refused.returncode != 0
    assert "the lane is built again" in refused.stderr, refused.stderr[-3_000:]
    done = run_stream(broken)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "built again from all that it ever read" in done.stderr
    assert told_rows(tmp_path / "b" / "tables", LIVE_TABLES) == told_rows(tmp_path / "a" / "tables", LIVE_TABLES)
