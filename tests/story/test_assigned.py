"""Which partitions a member of a group with epochs has and is to have, as Kafka's tool shows it, everywhere."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from cli.asking.answers import TableAnswers
from cli.asking.questions import Questions
from cli.output import shown
from tests.api.written import Tables, health, member, progress, transition


def test_current_and_target_partitions_stand_beside_each_other(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    own = {"member_epoch": 3, "member_state": "unrevoked", "partitions": 2, "partitions_revoking": 0}
    told = {"partitions_target": 1, "assigned": "orders:0-1", "assigned_target": "payments:7", "generation_id": 4}
    rows = [transition("g", 1, "Reconciling"), member("g", "a", protocol="consumer"), health("g", "a", **own, **told)]
    tables.batch(0, *rows, progress(rows[-1][1][3]))
    with TableAnswers(tables.root) as answers:
        questions = Questions(answers, None)
        found, _ = questions.members("g")
        assert found[0]["assignment"]["assigned"] == "orders:0-1"
        console = Console(width=400, record=True, file=StringIO())
        console.print(shown.members(found, stale=False, verbose=True))
        console.print(shown.member(found[0], stale=False))
    said = console.export_text()
    assert "CURRENT PARTITIONS" in said
    assert "TARGET PARTITIONS" in said
    assert said.count("orders:0-1") == said.count("payments:7") == 2
