"""A history by its name, SEED:NUMBER: drawn and played at once, played again, shrunk and printed.

What a history is depends on its name and on how Kafka's classes behave, on nothing else: member ids are drawn, and the
hash orders follow from them. `Player` keeps one coordinator per configuration and reuses it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kardia.coordinator.classic.operations import Operation, TxnEnd
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.consumer.operations import ConsumerOperation
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share.operations import ShareOperation
from kardia.coordinator.share.settings import ShareSettings
from kardia.coordinator.streams.operations import StreamsOperation
from kardia.coordinator.streams.settings import StreamsSettings
from tests.truth.draw import SETTINGS, Artist, subscription
from tests.truth.draw_old import OldArtist
from tests.truth.lockstep import Disagreement, Lockstep, Move
from tests.truth.oracle.clock import SpinError
from tests.truth.oracle.settings import OLD_VERSIONS

LENGTH = 60
"""Moves of a history: enough for a few generations, short enough that a new group is seen often."""

Settings = CoordinatorSettings | ConsumerSettings | ShareSettings | StreamsSettings


class Found(NamedTuple):
    """A disagreement, the history that shows it, and which of the drawn moves those are."""

    seed: int
    number: int
    settings: Settings
    moves: Sequence[Move]
    kept: Sequence[int]
    disagreement: Disagreement
    protocol: str = "classic"


class Player:
    """Plays histories of one release in this process, of groups of the classic protocol."""

    protocol = "classic"
    settings: Sequence[Settings] = SETTINGS
    """What brokers are configured with; a history has one of them."""

    def __init__(self, version: str, behaviour: Any = None, on_step: Callable[[Any], None] | None = None) -> None:
        """`behaviour` as for `Lockstep`."""
        self._version, self._behaviour, self._on_step = version, behaviour, on_step
        self._locksteps: dict[Settings, Lockstep] = {}
        self.operations = 0
        """Operations performed so far, without those of replays."""
        self.spins = 0
        """Histories that ended where Kafka's coordinator goes round in circles."""

    def draw(self, seed: int, number: int) -> Found | None:
        """Draw and play one history; None when all agrees."""
        moves, _, found = self.drawn(seed, number)
        self.operations += sum(move.operation is not None for move in moves)
        return found

    def artist(self, rng: random.Random, settings: Any) -> Any:
        """Who draws the moves of a history."""
        if self._version in OLD_VERSIONS:
            return OldArtist(rng, settings, self._version)
        return Artist(rng, settings)

    def lockstep(self, settings: Any) -> Lockstep:
        """Model and oracle of a configuration."""
        return Lockstep(self._version, settings, self._behaviour, self._on_step)

    def drawn(self, seed: int, number: int) -> tuple[list[Move], Settings, Found | None]:
        """The moves of a history, its configuration, and what was found; counts nothing."""
        rng = random.Random(f"{seed}:{number}")
        settings = rng.choice(self.settings)
        lockstep = self._begin(settings)
        artist = self.artist(rng, settings)
        moves: list[Move] = []
        try:
            for _ in range(LENGTH):
                moves.append(artist.move(lockstep.now_ms, lockstep.views.get, lockstep.loaded))
                lockstep.play(moves[-1])
        except Disagreement as disagreement:
            every = range(len(moves))
            return moves, settings, Found(seed, number, settings, moves, every, disagreement, self.protocol)
        except SpinError:
            self.spins += 1
        return moves, settings, None

    def play(self, settings: Settings, moves: Iterable[Move]) -> Disagreement | None:
        """Play given moves; None when all agrees."""
        lockstep = self._begin(settings)
        try:
            for move in moves:
                lockstep.play(move)
        except Disagreement as disagreement:
            return disagreement
        except SpinError:
            self.spins += 1
        return None

    def shrink(self, found: Found) -> Found:
        """Leave out moves as long as some disagreement remains: halves, quarters, ... until no single one can go."""
        if found.disagreement.refused:
            # With moves left out the model would be asked what it does not know for other reasons.
            return found
        moves, kept, last = list(found.moves), list(found.kept), found.disagreement
        chunk = max(1, len(kept) // 2)
        while True:
            removed = False
            start = 0
            while start < len(kept):
                fewer = kept[:start] + kept[start + chunk :]
                shown = self.play(found.settings, [moves[one] for one in fewer]) if _possible(moves, fewer) else None
                # With moves left out the model may be asked what it does not know; that is another matter.
                if shown is None or shown.refused is not last.refused:
                    start += chunk
                else:
                    kept, last, removed = fewer, shown, True
            if chunk == 1 and not removed:
                return found._replace(moves=[moves[one] for one in kept], kept=kept, disagreement=last)
            chunk = max(1, chunk // 2)

    def _begin(self, settings: Settings) -> Lockstep:
        lockstep = self._locksteps.get(settings)
        if lockstep is None:
            self._locksteps[settings] = lockstep = self.lockstep(settings)
        lockstep.begin()
        return lockstep


def _possible(moves: Sequence[Move], kept: Sequence[int]) -> bool:
    """Whether loads and unloads still alternate, the first is an unload, and transactions end in a loaded shard."""
    loaded = True
    for one in kept:
        operation = moves[one].operation
        if isinstance(operation, Load | Unload):
            if isinstance(operation, Load) is loaded:
                return False
            loaded = not loaded
        elif isinstance(operation, TxnEnd) and not loaded:
            return False
    return True


def replay_command(found: Found, version: str) -> str:
    """The command that plays exactly these moves again."""
    kept = ",".join(str(one) for one in found.kept)
    protocol = "" if found.protocol == "classic" else f" --protocol {found.protocol}"
    which = f"--seed {found.seed} --history {found.number}"
    return f"python -m tests.truth.run --version {version}{protocol} {which} --keep {kept}"


def text(found: Found, version: str) -> str:
    """The history and its disagreement for people."""
    start_ms = found.settings.started_at_ms
    names: dict[str, str] = {}
    changed = [
        f"{name}={value}"
        for name, value in found.settings._asdict().items()
        if value != type(found.settings)._field_defaults[name]
    ]
    lines = [f"Kafka {version} and the model disagree; {', '.join(changed)}", ""]
    for move in found.moves:
        at_ms = move.at_ms - start_ms
        order = "" if move.timers_first or move.operation is None else "  (before timers of this ms)"
        lines.append(f"  {at_ms:>9} ms  {_shown(move.operation) if move.operation else 'time passes'}{order}")
    disagreement = found.disagreement
    lines += ["", f"  {disagreement.at_ms - start_ms:>9} ms  {disagreement.doing}:"]
    lines += [f"                {part}" for part in disagreement.what.split("; ")]
    told = "\n".join(lines)
    for move in found.moves:
        if (new_id := getattr(move.operation, "new_id", "")) and new_id not in names:
            names[new_id] = f"{new_id[:-37]}#{len(names) + 1}"
    names |= {repr(subscription(*topics)): "+".join(topics) for topics in (("orders",), ("orders", "refunds"))}
    for long, short in names.items():
        told = told.replace(long, short)
    return f"{told}\n\nAgain: {replay_command(found, version)}\n"


def _shown(operation: Operation | ConsumerOperation | ShareOperation | StreamsOperation) -> str:
    """An operation without the fields that say nothing."""
    fields = operation._asdict()
    number = fields.pop("number")
    told = ", ".join(f"{name}={value!r}" for name, value in fields.items() if value not in (None, (), ""))
    return f"{type(operation).__name__} {number}({told})"
