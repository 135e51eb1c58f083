"""Histories of share groups by their names, SEED:NUMBER, as those of classic groups."""

from __future__ import annotations

import random
from typing import Any

from tests.truth.histories import Player
from tests.truth.share.draw import SETTINGS, ShareArtist
from tests.truth.share.lockstep import ShareLockstep


class SharePlayer(Player):
    """Plays histories of share groups of one release in this process."""

    protocol = "share"
    settings = SETTINGS

    def artist(self, rng: random.Random, settings: Any) -> Any:
        """Who draws the moves of a history."""
        return ShareArtist(rng, settings)

    def lockstep(self, settings: Any) -> ShareLockstep:
        """Model and oracle of a configuration."""
        return ShareLockstep(self._version, settings, self._behaviour, self._on_step)
