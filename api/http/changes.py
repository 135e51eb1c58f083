"""Tells clients that follow `/api/v1/changes` that a batch has been folded: that something is new, not what.

Followers share one event, made anew at each batch; so a batch costs the same whoever follows, and a slow follower
misses batches in between instead of filling a queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable


class Changes:
    """The latest batch, and whoever waits for a later one. Used from the event loop only."""

    def __init__(self, followers_max: int) -> None:
        self._followers_max = followers_max
        self._batch_id = -1
        self._news = asyncio.Event()
        self.followers = 0

    @property
    def is_full(self) -> bool:
        """Whether as many follow as may."""
        return self.followers >= self._followers_max

    def announce(self, batch_id: int) -> None:
        """Wake all followers if the batch is another one."""
        if batch_id != self._batch_id:
            self._batch_id = batch_id
            self._news.set()
            self._news = asyncio.Event()

    async def follow(self, say: Callable[[int], str | None]) -> AsyncIterator[dict[str, str]]:
        """One event at once, then one per batch; those that passed while the follower was slow are left out. It ends
        when there is nothing to `say` to this follower any more."""
        self.followers += 1
        try:
            while True:
                news, batch_id = self._news, self._batch_id
                said = say(batch_id)
                if said is None:
                    return
                yield {"event": "batch", "id": str(batch_id), "data": said}
                if batch_id == self._batch_id:
                    await news.wait()
        finally:
            self.followers -= 1
