"""After every step of every observer in every test: what holds of a group is asked (`kardia.observe.state.invariants`).

Of the first groups of an observer, and not of very large ones: a test of a hundred thousand members measures a bound,
and has small companions that are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from kardia.observe import Observer
from kardia.observe.state.group import Group
from kardia.observe.state.invariants import broken

GROUPS_MAX, MEMBERS_MAX = 40, 200


class BrokenError(AssertionError):
    """A group is held as none can be."""


def ask(groups: Iterable[Group]) -> None:
    """Raise `BrokenError` with the first sentence that is broken."""
    for group in islice(groups, GROUPS_MAX):
        if len(group.members) <= MEMBERS_MAX:
            for sentence in broken(group):
                raise BrokenError(f"group {group.group_id!r}: {sentence}")


@pytest.fixture(scope="session", autouse=True)
def groups_are_whole() -> Iterator[None]:
    """Ask after each step and at the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("step", "finish"):
            patch.setattr(Observer, name, _asking(getattr(Observer, name)))
        yield


def _asking(method: Any) -> Any:
    def asking(observer: Observer, *args: Any, **kwargs: Any) -> Any:
        rows = method(observer, *args, **kwargs)
        ask(observer.groups.values())
        return rows

    return asking
