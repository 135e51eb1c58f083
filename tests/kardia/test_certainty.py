"""The order of the four certainties, and that no code compares them as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from kardia.certainty import CERTAINTIES, Certainty, stands, weaker

ROOT = Path(__file__).parents[2]
ROOMS = ("kardia", "ingest", "spark_jobs", "api", "dashboards", "demo")


def test_the_order() -> None:
    order: list[Certainty] = ["exact", "inferred", "provisional", "unknown"]
    for (place, first), (other, second) in product(enumerate(order), repeat=2):
        assert weaker(first, second) == order[max(place, other)]
    assert [stands(one) for one in order] == [True, True, False, False]


def test_what_rests_on_more_is_never_surer() -> None:
    for first, second, third in product(CERTAINTIES, repeat=3):
        both = weaker(first, second)
        assert weaker(first) == weaker(first, first) == first
        assert both == weaker(second, first)
        assert weaker(both, third) == weaker(first, weaker(second, third)) == weaker(first, second, third)
        assert weaker(both, first) == both
        assert stands(both) == (stands(first) and stands(second))


def test_another_word_is_refused() -> None:
    with pytest.raises(KeyError):
        weaker("exact", "sure")  # type: ignore[arg-type]


def comparisons(source: str) -> Iterator[int]:
    """Lines in which `max`, `min` or `sorted` is given one of the four words: their letters would decide."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        words = (one.value for one in node.args if isinstance(one, ast.Constant))
        if node.func.id in ("max", "min", "sorted") and any(word in CERTAINTIES for word in words):
            yield node.lineno


def test_letters_decide_nowhere() -> None:
    assert list(comparisons("how = max(sure, 'provisional')")) == [1]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in comparisons(path.read_text(encoding="utf-8"))
    ]
    assert found == []
