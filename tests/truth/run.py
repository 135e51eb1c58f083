"""Plays random histories against Kafka's own classes and reports disagreements and coverage.

    python -m tests.truth.run --operations 1000000 --seed 1          each release in a process of its own
    python -m tests.truth.run --version 4.1.2 --json                 one release, here, for programs
    python -m tests.truth.run --version 4.1.2 --seed 1 --history 7   one history; --keep 0,3,5 only these moves of it
    python -m tests.truth.run --protocol consumer ...                 instead groups of: consumer, share, streams

Exit code 1 when there is a disagreement or a cell of the coverage is missing.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.truth.canaries import flipped
from tests.truth.coverage import Cell
from tests.truth.histories import Found, Player, text
from tests.truth.oracle import EVERY_VERSION, jvm
from tests.truth.protocols import PROTOCOLS
from tests.truth.report import Result, markdown, plain

ENOUGH = 3
"""Disagreements that are shrunk and told; after as many the run of a release ends."""

MANY = 500_000
"""Operations of a run that lasts: from some 200,000 on Java's slower compiler has paid."""

SAY_EVERY_S = 60.0
"""How often a run says on standard error how far it is."""

ROOT = Path(__file__).resolve().parents[2]


def play(version: str, seed: int, operations: int, protocol: str = "classic") -> Result:
    """Play histories of one release in this process until they hold so many operations."""
    jvm.start(version, lasts=operations >= MANY)
    gc.freeze()
    started = time.monotonic()
    kind = PROTOCOLS[protocol]
    coverage = kind.coverage()
    player = kind.player(version, on_step=coverage.see)
    shrinker = kind.player(version)
    told: list[str] = []
    number = 0
    say_at = started + SAY_EVERY_S
    while player.operations < operations and len(told) < ENOUGH:
        found = player.draw(seed, number)
        number += 1
        if found is not None:
            told.append(text(shrinker.shrink(found), version))
        if time.monotonic() >= say_at:
            say_at += SAY_EVERY_S
            far = f"{player.operations:,} of {operations:,} operations, {len(told)} disagreements"
            sys.stderr.write(f"{version}: {far}\n")
    seconds = time.monotonic() - started
    return Result(
        version, seed, player.operations, number, seconds, tuple(told), coverage.counts, protocol, player.spins
    )


def replay(version: str, seed: int, number: int, keep: Sequence[int] | None, protocol: str = "classic") -> Found | None:
    """Play one history again, or only some moves of it."""
    player = PROTOCOLS[protocol].player(version)
    moves, settings, found = player.drawn(seed, number)
    if keep is None:
        return found
    kept = [moves[one] for one in keep]
    disagreement = player.play(settings, kept)
    return Found(seed, number, settings, kept, keep, disagreement, protocol) if disagreement else None


def catch(version: str, seed: int, operations: int, name: str, protocol: str = "classic") -> int:
    """Operations until a canary's mistake is noticed, -1 if it is not within the number given."""
    kind = PROTOCOLS[protocol]
    if name in kind.switches:
        player = kind.player(version, flipped(kind.behaviour_of(version), name))
        return _until_found(player, seed, operations)
    with kind.mistakes[name]():
        return _until_found(kind.player(version), seed, operations)


def show(version: str, seed: int, operations: int, name: str, protocol: str = "classic") -> str:
    """The shrunk history that shows a planted mistake, "" if it is not noticed."""
    kind = PROTOCOLS[protocol]
    with kind.mistakes[name]():
        player = kind.player(version)
        number = 0
        while player.operations < operations:
            found = player.draw(seed, number)
            number += 1
            if found is not None:
                return text(player.shrink(found), version)
    return ""


def _until_found(player: Player, seed: int, operations: int) -> int:
    number = 0
    while player.operations < operations:
        if player.draw(seed, number) is not None:
            return player.operations
        number += 1
    return -1


def start(version: str, *options: str) -> subprocess.Popen[str]:
    """This program for one release in a process of its own, with JSON on its standard output."""
    command = [sys.executable, "-m", "tests.truth.run", "--version", version, "--json", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> Any:
    """What such a process has printed. Raises RuntimeError when it printed nothing."""
    said, _ = process.communicate()
    if not said:
        raise RuntimeError(f"{' '.join(str(part) for part in process.args)} ended with {process.returncode}")  # type: ignore[union-attr]
    return json.loads(said)


def _from_json(data: dict[str, Any]) -> Result:
    counts = Counter({Cell(*cell): count for *cell, count in data.pop("counts")})
    return Result(**{**data, "disagreements": tuple(data["disagreements"])}, counts=counts)


def _to_json(result: Result) -> str:
    counts = [[*cell, count] for cell, count in sorted(result.counts.items())]
    return json.dumps(result._asdict() | {"counts": counts})


def agree(
    operations: int, seed: int, versions: Sequence[str] = EVERY_VERSION, protocol: str = "classic"
) -> list[Result]:
    """Run the releases side by side, each in its own process, as many at once as there are cores, three at least."""

    def one(version: str) -> Result:
        options = ("--operations", str(operations), "--seed", str(seed), "--protocol", protocol)
        return _from_json(finish(start(version, *options)))

    with ThreadPoolExecutor(max(os.cpu_count() or 1, 3)) as pool:
        return list(pool.map(one, versions))


def main() -> int:
    """Read the command line and act."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.run", description="Kafka's own classes as the judge.")
    parser.add_argument("--operations", type=int, default=200_000, help="per release")
    parser.add_argument("--version", choices=EVERY_VERSION, help="one release only")
    parser.add_argument("--protocol", choices=tuple(PROTOCOLS), default="classic", help="of the groups")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--history", type=int, help="play this one history again")
    parser.add_argument("--keep", help="with --history: the numbers of the moves to play")
    parser.add_argument("--canaries", nargs="*", help="mistakes to plant, by name; all without a name")
    parser.add_argument("--shrink", help="a mistake to plant, by name, and to show in a short history")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--markdown", type=Path, help="write the part of this file between the marks of a run")
    given = parser.parse_args()
    write = sys.stdout.write
    kind = PROTOCOLS[given.protocol]
    version = given.version or kind.versions[-1]
    if version not in kind.versions:
        parser.error(
            f"--version {version}: no {given.protocol} groups in it; expected one of {', '.join(kind.versions)}"
        )
    if given.history is not None:
        keep = [int(one) for one in given.keep.split(",")] if given.keep else None
        found = replay(version, given.seed, given.history, keep, given.protocol)
        write(text(found, version) if found else "No disagreement.\n")
        return int(found is not None)
    if given.canaries is not None:
        names = given.canaries or [*kind.mistakes, *kind.switches]
        caught = {name: catch(version, given.seed, given.operations, name, given.protocol) for name in names}
        write(json.dumps(caught, indent=None if given.json else 1) + "\n")
        return 0
    if given.shrink is not None:
        told = show(version, given.seed, given.operations, given.shrink, given.protocol)
        write(json.dumps({"told": told}) + "\n" if given.json else told)
        return 0
    if given.version and given.json:
        write(_to_json(play(version, given.seed, given.operations, given.protocol)) + "\n")
        return 0
    versions = (given.version,) if given.version else kind.versions
    results = agree(given.operations, given.seed, versions, given.protocol)
    write(plain(results))
    if given.markdown:
        markdown(results, given.markdown)
    return int(not all(result.good() for result in results))


if __name__ == "__main__":
    sys.exit(main())
