"""Counts the lines of code that run, as a measure of work that is the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self


class Lines:
    """Counts, inside `with`, the lines of a folder's files that run."""

    def __init__(self, folder: Path, *, besides: tuple[str, ...] = ()) -> None:
        """`besides`: names of files that do not count."""
        self._folder = str(folder)
        self._besides = besides
        self.done = 0

    def __enter__(self) -> Self:
        self.done = 0
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        return self._line if name.startswith(self._folder) and not name.endswith(self._besides) else None

    def _line(self, _frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
        self.done += 1
        return self._line
