"""What tests of protocols with epochs ask: agreement, mistakes that are noticed, a list of cells that is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.truth import run
from tests.truth.coverage import Cell, Verdict
from tests.truth.oracle.settings import CONSUMER_VERSIONS

PLANTED_IN = "4.4.0"
ENOUGH = "20000"
"""Operations within which a planted mistake must be noticed."""


def holds(protocol: str, versions: tuple[str, ...], operations: int, seed: int, *, every_cell: bool) -> None:
    """Releases agree with the model, and no situation is left out if that is asked."""
    results = run.agree(operations, seed, versions, protocol)
    assert [result.version for result in results] == list(versions)
    for result in results:
        assert result.operations >= operations
        assert not result.disagreements, "\n".join(result.disagreements)
        assert not (every_cell and result.verdict().missing), f"{result.version}: not reached"


def notices(protocol: str, mistakes: Iterable[str]) -> None:
    """Each mistake that is planted, and each row of the release table that is turned around, is noticed."""
    names = list(mistakes)
    caught = run.finish(run.start(PLANTED_IN, "--protocol", protocol, "--operations", ENOUGH, "--canaries", *names))
    assert set(caught) == set(names)
    assert {name for name, operations in caught.items() if operations < 0} == set()


def lists_cells_once(listed: Sequence[Any], judge: Callable[[Counter[Cell], str], Verdict], one_of_them: Cell) -> None:
    """No cell stands twice, and one that was not met is told."""
    cells = [one.cell for one in listed]
    assert len(cells) == len(set(cells))
    assert all(release in CONSUMER_VERSIONS for one in listed for release in one.releases)
    assert one_of_them in judge(Counter(), PLANTED_IN).missing
    assert one_of_them not in judge(Counter({one_of_them: 1}), PLANTED_IN).missing
