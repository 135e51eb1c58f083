"""A wheel of this folder, and what its user does with it: installs it into an empty home, asks it something."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from cli.extras import SOURCE_ONLY
from cli.main import VERBS
from scripts import install

STORY = install.ROOT / "tests" / "corpora" / "c01_kill-4.1.2"
SHOWN = tuple(verb for verb in VERBS if verb not in SOURCE_ONLY)
"""Verbs of the wheel."""


def built(folder: Path) -> Path:
    """The wheel."""
    options = ["--build-constraints", str(install.BUILD_LOCK), "--out-dir", str(folder)]
    install.run([*install.install_uv(), "build", "--wheel", *options, str(install.ROOT)], "building the wheel")
    (found,) = folder.glob("*.whl")
    return found


def environment(home: Path) -> dict[str, str]:
    """Of a user whose home is empty, and who has set nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KARDIA", "VIRTUAL"))}
    return kept | {"HOME": str(home), "COLUMNS": "100"}


def locked_versions(into: Path) -> Path:
    """The versions of the lock without hashes: pip takes none for constraints beside a wheel of one's own."""
    versions = re.findall(r"^[^\s#][^\\\n]*", install.REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    constraints = into / "constraints.txt"
    constraints.write_text("\n".join(versions) + "\n", encoding="utf-8")
    return constraints


def with_uv(wheel: Path, extra: str, into: Path) -> Path:
    """The wheel with an extra in an environment of its own, by uv out of its cache; the `kardia` of it."""
    uv = install.install_uv()
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(into)], check=True)
    locks = ["--constraints", str(install.REQUIREMENTS), "--python", str(into / "bin" / "python")]
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([*uv, "pip", "install", "--quiet", *locks, what], check=True)
    return into / "bin" / "kardia"


def megabytes(made: Path) -> float:
    """Size of the files of an environment; a file that has two names in it is one."""
    files = {found.st_ino: found.st_size for found in (path.lstat() for path in made.rglob("*"))}
    return sum(files.values()) / 1e6


def ask(command: list[str], home: Path) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment(home), cwd=home, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(command: list[str], home: Path) -> str:
    """The one sentence of a command that ends with status 2."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment(home), cwd=home, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr


def replay_and_ask(kardia: list[str], home: Path) -> None:
    """A story that ends with an eviction goes into tables, and comes out of them."""
    tables = str(home / "tables")
    ask([*kardia, "replay", "--tables", tables, "--request-log", str(STORY / "kafka-request.log.gz")], home)
    found = json.loads(ask([*kardia, "groups", "--tables", tables, "-o", "json"], home))
    assert found
    assert "Usage: kardia replay" in ask([*kardia, "replay", "--help"], home)


def answers_every_help(kardia: list[str], home: Path) -> None:
    """Each verb that the wheel has."""
    for verb in SHOWN:
        assert re.search(rf"Usage: kardia {verb}\b", ask([*kardia, verb, "--help"], home))
