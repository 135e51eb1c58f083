"""Histories of consumer groups by their names, SEED:NUMBER, as those of classic groups."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.consumer.draw import SETTINGS, ConsumerArtist
from tests.truth.consumer.lockstep import ConsumerLockstep
from tests.truth.histories import Player


class ConsumerPlayer(Player):
    """Plays histories of consumer groups of one release in this process."""

    protocol = "consumer"
    settings = SETTINGS

    def artist(self, rng: random.Random, settings: Any) -> Any:
        """Who draws the moves of a history."""
        return ConsumerArtist(rng, settings)

    def lockstep(self, settings: Any) -> ConsumerLockstep:
        """Model and oracle of a configuration."""
        return ConsumerLockstep(self._version, settings, self._behaviour, self._on_step)
