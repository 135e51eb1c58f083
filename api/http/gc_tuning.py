"""Garbage collection and thread switching of `kardia serve`, set so that answers wait for neither.

Rows that are kept are hundreds of thousands of objects without cycles. The collector of cycles would walk through all
of them every few seconds, for tenths of a second; what has survived a run is therefore excluded from the next ones
(`freeze`), and still freed when it is replaced. Until then each new row is walked through once: as the collector is set
by default, that took more than half of the time in which new rows are folded. The thread that reads files gives the
interpreter up after half a millisecond instead of five: an answer needs it back about three times.
"""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.000_5
YOUNG_MAX = 5_000
"""Objects that are made before a walk through them begins by itself: a millisecond."""

OLDER_WALKS = 1_000
"""Walks through the young before one through those that survived: never, between two looks."""

LOOKS_BETWEEN_WALKS = 3_600
"""An hour of one batch per second. Then all is walked through once, for cycles that were frozen with the rest."""


class Pauses:
    """Keeps the pauses of this process short; `shown` is called after each look that showed something."""

    def __init__(self) -> None:
        self._looks = 0

    def begin(self) -> None:
        """Before the first look."""
        sys.setswitchinterval(SWITCH_S)
        gc.set_threshold(YOUNG_MAX, OLDER_WALKS, OLDER_WALKS)

    def shown(self) -> None:
        """New rows are there, old ones have gone."""
        self._looks += 1
        if self._looks % LOOKS_BETWEEN_WALKS == 0:
            gc.unfreeze()
            gc.collect()
        else:
            gc.collect(0)
        gc.freeze()
