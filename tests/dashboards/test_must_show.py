"""The table of `must_show`: each fault, played second by second, on all boards as they are at its moments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kardia.tables import MEMBERS
from tests.dashboards.must_show import FAULT_AT, MUST_SHOW, Is, Must
from tests.dashboards.replaying import replay
from tests.dashboards.screen import Screen, Shown
from tests.dashboards.test_boards_show import board
from tests.support.served import Batch, story_batches, trace_batches
from tests.support.stories import CORPORA

KEYS = {
    "Worst groups": "group",
    "Rebalances under way": "group",
    "What was said beforehand": "timeout",
    "Ledger": "waited for",
}
"""Column that names a row; in other tables the client does."""

HISTORIES = sorted({must.history for must in MUST_SHOW.values()})


def history_of(name: str) -> Iterator[Batch]:
    return story_batches(name) if (CORPORA / name).is_dir() else trace_batches(name)


def found_in(screen: Screen, one: Is, names: dict[str, str]) -> Shown | None:
    """What the panel shows of it; None for nothing."""
    row = one.row.format(**names)
    if one.column:
        cells = screen.column(one.panel, KEYS.get(one.panel, "client"), one.column)
        return cells.get(row) if row else next(iter(cells.values()), None)
    return screen.ends(one.panel).get(row) if row else screen.stat(one.panel)


@pytest.mark.parametrize("history", HISTORIES)
def test_each_fault_looks_as_it_must(tmp_path: Path, history: str) -> None:
    moments = {name: must for name, must in MUST_SHOW.items() if must.history == history}
    members: dict[str, str] = {}
    batches = list(history_of(history))
    for _, rows in batches:
        for row in rows.get("members", ()):
            named = dict(zip(MEMBERS.names, row, strict=True))
            members[named["member_id"]] = named["client_id"]
    with replay(tmp_path / "tables", iter(batches)) as replaying:
        for _ in replaying.batches():
            since_ms = replaying.now_ms - FAULT_AT[history]
            for name, must in list(moments.items()):
                if must.at_ms[0] <= since_ms < must.at_ms[1]:
                    _look(must, replaying, members)
                    del moments[name]
    assert moments == {}, "moments that never came"


def _look(must: Must, replaying: object, members: dict[str, str]) -> None:
    values = {"group": must.group}
    if must.member:
        values["member"] = next(one for one in members if one.startswith(must.member))
    names = {"who": must.who, "group": must.group}
    wrong = []
    for one in must.seen:
        screen = board(one.board, replaying, None, **values)  # type: ignore[arg-type]
        found = found_in(screen, one, names)
        if found != one.shown:
            wrong.append((one.board, one.panel, one.row, one.column, found, "instead of", one.shown))
    assert not wrong, must.moment
