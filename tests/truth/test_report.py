"""What is kept of runs against Kafka's classes: the page and the list of runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.truth import report
from tests.truth.report import Played, Result


def _result(version: str, seed: int, operations: int, *disagreements: str) -> Result:
    return Result(version, seed, operations, operations // 50, 1.0, disagreements, Counter(), "share")


def test_the_same_histories_count_once(tmp_path: Path) -> None:
    kept = tmp_path / "played.jsonl"
    report.keep([_result("4.3.1", 1, 5000), _result("4.4.0", 1, 1000, "differ")], kept)
    report.keep([_result("4.4.0", 2, 2000), _result("4.3.1", 1, 100)], kept)
    assert report.played(kept) == [
        Played("share", "4.3.1", 1, 5000, 100, 0),
        Played("share", "4.4.0", 1, 1000, 20, 1),
        Played("share", "4.4.0", 2, 2000, 40, 0),
    ]
    assert report.sums(report.played(kept)).splitlines()[2:] == [
        "| share | 4.3.1 | 1 | 5,000 | 100 | 0 |",
        "| share | 4.4.0 | 2 | 3,000 | 60 | 1 |",
    ]


def test_the_page_has_what_was_kept() -> None:
    page = (report.ROOT / "docs" / "reference" / "truth.md").read_text(encoding="utf-8")
    assert report.sums(report.played()) == page.partition(report.SUM_BEGIN + "\n")[2].partition(report.SUM_END)[0]
