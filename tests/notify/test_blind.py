"""A recorded story of a killed consumer, told by the notifier while its log is away or a part of it is lost.

The member is killed, its danger is told, and before its session is over nothing more is read. Nobody may then be told
that the danger is over, nor that it goes on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from api.notify.conditions import find
from api.notify.lifecycle import Lifecycle
from tests.support.served import STEP_MS, Served, story_batches
from tests.support.stories import Story

STORY = "c01_kill-4.1.2"
SESSION = "KafkaGroupSessionTimeoutImminent"
TOLD_S, STALE_S = 37, 10
"""Second of the story at which the danger is told; silence of the feed after which it counts as stale."""

Told = list[tuple[int, str, bool]]
"""(second, what, whether it is told as unknown) of each notice about the session."""


def told(root: Path, blind: tuple[int, int] | None = None, gap_at: int | None = None) -> Told:
    """What is told second by second."""
    served, lifecycle, found = Served(root), Lifecycle(), Told()
    for second, batch in enumerate(story_batches(STORY, blind, gap_at)):
        served.take(batch)
        if served.store.current.batch_id >= 0:
            notices = lifecycle.step(served.now_ms, find(served.store))
            found += [
                (second, one.what, one.unknown_since_ms is not None) for one in notices if one.finding.alert == SESSION
            ]
    return found


def test_it_is_told_before_the_session_is_over(tmp_path: Path) -> None:
    first_ms = next(batch for batch in story_batches(STORY))[0]
    evicted_s = (Story(STORY).expect["evictions"][0]["t"] - first_ms) / STEP_MS
    assert told(tmp_path / "tables")[0] == (TOLD_S, "raised", False)
    assert TOLD_S < evicted_s < TOLD_S + STALE_S


@pytest.mark.parametrize("away_s", [11, 15, 20])
def test_while_the_log_is_away_it_is_unknown_and_not_over(tmp_path: Path, away_s: int) -> None:
    last_read_s = TOLD_S + 1
    found = told(tmp_path / "tables", blind=(last_read_s + 1, last_read_s + 1 + away_s))
    assert found[0] == (TOLD_S, "raised", False)
    for second, what, unknown in found[1:]:
        assert second > last_read_s + away_s, "nothing while the log is away, until the next refresh says so"
        assert (what, unknown) == ("refreshed", False), "the next one is in danger by then"


def test_what_a_gap_has_taken_is_unknown_at_once(tmp_path: Path) -> None:
    found = told(tmp_path / "tables", gap_at=TOLD_S + 1)
    assert found[:2] == [(TOLD_S, "raised", False), (TOLD_S + 1, "refreshed", True)]
    assert "resolved" not in [what for _, what, _ in found]
