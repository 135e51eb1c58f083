"""Make the rows of all cases, and tell which are not those that were agreed on: `make rows`.

Where a digest differs, the rows of before are made by the commit that has the digests, in a work tree of its own, and
the difference is told in sentences. Ends with 1 if there is any. `--accept` writes the digests of now.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.rows import cases
from tests.rows.compared import differences

ROOT = Path(__file__).resolve().parents[2]
DIGESTS = Path(__file__).with_name("digests.json")
SHOWN = 20
"""Sentences of one case."""
SAY_EVERY = 100
"""Cases from one word on standard error to the next."""


def agreed() -> dict[str, str]:
    """Digest of each case, as agreed on."""
    found: dict[str, str] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return found


def digest(name: str) -> str:
    """That of the rows of a case now."""
    return cases.digest_of(cases.rows_of(name))


def digests_of(names: Sequence[str], processes: int) -> dict[str, str]:
    """Digests of the rows of now."""
    found: dict[str, str] = {}
    with ProcessPoolExecutor(processes) as pool:
        for name, one in zip(names, pool.map(digest, names, chunksize=4), strict=True):
            found[name] = one
            if len(found) % SAY_EVERY == 0:
                sys.stderr.write(f"{len(found):,} of {len(names):,} cases\n")
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S607


@contextmanager
def _tree_of_before() -> Iterator[Path]:
    """The sources that the digests were made with."""
    commit = _git("log", "-1", "--format=%H", "--", str(DIGESTS))
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def told(names: Sequence[str]) -> dict[str, list[str]]:
    """What is different in these cases, in sentences; one that says so where the sources of before are not at hand."""
    try:
        with _tree_of_before() as tree:
            before: dict[str, list[str]] = json.loads(
                subprocess.run(
                    [sys.executable, "-m", "tests.rows", "--print", *names],
                    cwd=tree,
                    check=True,
                    capture_output=True,
                    env={**os.environ, "PYTHONPATH": str(tree)},
                ).stdout
            )
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error)
        sys.stderr.write(f"the rows of before cannot be made, so only cases are told: {said!r}\n")
        return {name: ["(nothing to compare with)"] for name in names}
    return {name: differences(before[name], cases.rows_of(name)) for name in names}


def report(names: Sequence[str], found: dict[str, str]) -> list[str]:
    """What differs from what was agreed on, in sentences."""
    known = agreed()
    other = [name for name in names if name in known and known[name] != found[name]]
    lines = [f"{name}: is a new case" for name in names if name not in known]
    for name, sentences in told(other).items() if other else ():
        if not sentences:
            continue  # only columns that came since, all of them null
        lines.append(f"{name}: rows differ")
        lines += [f"  {sentence}" for sentence in sentences[:SHOWN]]
        if len(sentences) > SHOWN:
            lines.append(f"  and {len(sentences) - SHOWN} more")
    return lines


def main() -> int:
    """Make, compare, tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.rows", description=__doc__)
    parser.add_argument("--accept", action="store_true", help="the rows of now are what is agreed on")
    parser.add_argument("--print", action="store_true", help="print the rows of the named cases as JSON")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("cases", nargs="*", help="names of cases, or how they begin; all if none is given")
    options = parser.parse_args()
    if options.print:
        json.dump({name: cases.rows_of(name) for name in options.cases}, sys.stdout)
        return 0
    names = [name for name in cases.names() if not options.cases or name.startswith(tuple(options.cases))]
    found = digests_of(names, options.processes)
    lines = report(names, found)
    if not options.cases:
        lines += [f"{name}: is no case any more" for name in agreed().keys() - set(names)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if options.accept:
        kept = agreed() if options.cases else {}
        text = json.dumps(kept | found, indent=0, sort_keys=True)
        DIGESTS.write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{len(found):,} cases are what is agreed on from now on\n")
        return 0
    sys.stdout.write(f"{len(names):,} cases, {'all as they were' if not lines else 'not all as they were'}\n")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
