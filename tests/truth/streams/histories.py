"""Histories of streams groups by their names, SEED:NUMBER, as those of classic groups."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.histories import Player
from tests.truth.streams.draw import SETTINGS, StreamsArtist
from tests.truth.streams.lockstep import StreamsLockstep


class StreamsPlayer(Player):
    """Plays histories of streams groups of one release in this process."""

    protocol = "streams"
    settings = SETTINGS

    def artist(self, rng: random.Random, settings: Any) -> Any:
        """Who draws the moves of a history."""
        return StreamsArtist(rng, settings, self._version)

    def lockstep(self, settings: Any) -> StreamsLockstep:
        """Model and oracle of a configuration."""
        return StreamsLockstep(self._version, settings, self._behaviour, self._on_step)
