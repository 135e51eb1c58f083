"""Optional parts of libraries that no question needs, kept from being loaded.

pyarrow loads pandas as soon as it makes its first scalar, only to know whether it was given one of pandas' series;
it loads numpy if it is there, for conversions that no answer makes; httpx loads a command line of its own. Both do
without where these cannot be imported. They were more than a third of the CPU time of `kardia groups --tables`. Not for
processes that start Spark: its Python needs pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

LEFT_OUT = ("numpy", "pandas", "httpx._main")

BY_READERS = ("pandas", "httpx._main")
"""Left out by who reads logs: folded requests are columns of numpy."""


class _LeftOut(MetaPathFinder):
    """First of the finders: says of a module that is left out that it is not there."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, _: Sequence[str] | None, __: ModuleType | None = None) -> None:
        """Raise ModuleNotFoundError, as libraries expect of what is not installed; of all else the next one knows."""
        if fullname in self._names:
            raise ModuleNotFoundError(f"{fullname} is left out: nothing here needs it", name=fullname)


def leave_out(names: Sequence[str] = LEFT_OUT) -> None:
    """From now on, for the whole process."""
    sys.meta_path.insert(0, _LeftOut(frozenset(names)))
