"""`python -m tests.night --minutes 60 --seed 7`: a night; exit status 1 with what was wrong.

Needs about 3 GiB of memory and a processor; ports are the system's choice, all on 127.0.0.1. `--json` prints the whole
result as JSON after the sentences; it is also in `result.json` of the directory, which is kept where it was named and
where something was wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from demo.broker import NEWEST, releases
from supervise.process import ProcessError, stoppable
from tests.night.faults import QUIET_BEGIN_S, QUIET_END_S, ROLES, ROLES_OF, SPARK
from tests.night.one_night import Options, play

MINUTES_MIN = (QUIET_BEGIN_S + QUIET_END_S) / 60 + 1


def main() -> int:
    """Play, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.night", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help=f"how long; {MINUTES_MIN:.1f} at least")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1, 100_000), help="default: a new one")
    parser.add_argument("--kafka", choices=releases(), default=NEWEST, help="release of the broker")
    parser.add_argument("--directory", type=Path, help="where all is kept; default: a new one, removed if all is well")
    parser.add_argument("--without-server-log", action="store_true", help="Kardia reads the request log alone")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="of the cluster; one falls at a time")
    parser.add_argument("--engine", choices=tuple(ROLES_OF), default=SPARK, help="what steps the lanes")
    parser.add_argument("--spare", action="append", choices=ROLES, default=[], help="a role that nothing befalls")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON as well")
    words = parser.parse_args()
    if words.minutes < MINUTES_MIN:
        parser.error(f"--minutes must be at least {MINUTES_MIN:.1f}: a night begins and ends with a quiet time")
    if words.directory and any(words.directory.glob("*")):
        parser.error(f"{words.directory} is not empty; name a folder that is, or none")
    directory = (words.directory or Path(tempfile.mkdtemp(prefix="kardia-night-"))).resolve()
    with stoppable():
        _say(f"Seed {words.seed}, {words.minutes:g} minutes.")
        options = Options(
            words.minutes,
            words.seed,
            words.kafka,
            directory,
            not words.without_server_log,
            words.brokers,
            tuple(words.spare),
            words.engine,
        )
        try:
            result = play(options, _say)
        except ProcessError as error:
            _say(f"The night could not be played to its end: {error}")
            return 1
        (directory / "result.json").write_text(json.dumps(result.as_json(), indent=1) + "\n", encoding="utf-8")
    for sentence in result.sentences():
        _say(sentence)
    if words.json:
        _say(json.dumps(result.as_json()))
    if not result.wrong and not words.directory:
        shutil.rmtree(directory)
    return 1 if result.wrong else 0


def _say(sentence: str) -> None:
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
