"""What a host gets that installs Kardia: each extra, by pip, pipx and uv, out of the wheel, and how large it is.

The quick tests install with uv, which links what is in its cache; the long ones as a user does, into an empty home.
An installed environment is counted in bytes of its files, as `du --apparent-size` does, without Python itself.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from scripts import install
from tests.notify.conftest import until
from tests.setup import installing
from tests.setup.installing import ask, environment, megabytes, refusal, replay_and_ask
from tests.setup.test_pages import commands
from tests.setup.test_readme import INSTALLED

README = (install.ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow

MB_MAX = {"": 40, "collect": 150, "live": 520}
"""Extra -> megabytes (10^6 bytes) at most. Arrow and delta-rs are two thirds of `live`."""

EVERY_MODULE = """
import importlib, pathlib, sys
root = pathlib.Path(importlib.import_module("kardia").__file__).parents[1]
for path in sorted(path for room in {rooms} for path in (root / room).rglob("*.py")):
    name = ".".join(part for part in path.relative_to(root).with_suffix("").parts if part != "__init__")
    if not name.endswith(("__main__", "ingest.dialects.compiled", "live.mover", "live.moves")):
        importlib.import_module(name)
"""


def imports(kardia: Path, rooms: tuple[str, ...], home: Path) -> None:
    """Every module of some rooms is loaded."""
    ask([str(kardia.parent / "python"), "-c", EVERY_MODULE.format(rooms=rooms)], home)


def test_the_base_asks_a_server_and_says_what_else_needs(wheel: Path, tmp_path: Path) -> None:
    kardia = installing.with_uv(wheel, "", tmp_path / "base")
    assert megabytes(tmp_path / "base") <= MB_MAX[""]
    asked = subprocess.run(
        [kardia, "groups", "--api", "http://127.0.0.1:1"], capture_output=True, text=True, check=False
    )
    assert "http://127.0.0.1:1 cannot be asked" in asked.stderr
    for words in (["live", "--tables", "t"], ["groups", "--tables", "."], ["doctor"]):
        said = refusal([str(kardia), *words], tmp_path)
        assert re.search(r"needs \w+ and \d+ more, which is not installed; .*'kafka-kardia\[\w+\]'", said)


def test_a_collector_is_small(wheel: Path, tmp_path: Path) -> None:
    kardia = installing.with_uv(wheel, "collect", tmp_path / "collect")
    assert megabytes(tmp_path / "collect") <= MB_MAX["collect"]
    imports(kardia, ("kardia", "ingest", "supervise", "cli/verbs", "cli/asking"), tmp_path)
    assert "server.log" in ask([str(kardia), "doctor", "--server-log", str(_log(tmp_path, "server.log"))], tmp_path)


def test_one_process_runs_with_its_extra_alone(wheel: Path, tmp_path: Path) -> None:
    """From the logs to an answer over HTTP, to an ordered end, to an answer out of the tables; and a replay."""
    kardia = installing.with_uv(wheel, "live", tmp_path / "live")
    assert megabytes(tmp_path / "live") <= MB_MAX["live"]
    imports(kardia, ("kardia", "ingest", "stores", "api", "live", "supervise", "cli"), tmp_path)
    for name in ("kafka-request.log", "server.log"):
        _log(tmp_path, name)
    said, tables = tmp_path / "said", tmp_path / "kardia-tables"
    [readme] = [shlex.split(one) for one in commands(README) if one.startswith("kardia live --tables")]
    given = [word.replace("/var/log/kafka", str(tmp_path)) for word in readme[1:]]
    command = [str(kardia), *given, "--port", "0"]
    with said.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, env=environment(tmp_path), cwd=tmp_path)
    try:
        address = until(lambda: re.search(r"live: (http://\S+) over", said.read_text()), "the address")[1]
        until(lambda: running.poll() is None and _groups(address), "a group")
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 0, said.read_text()
    finally:
        running.kill()
        running.wait()
    assert json.loads(ask([str(kardia), "groups", "--tables", str(tables), "-o", "json"], tmp_path))
    replay_and_ask([str(kardia)], tmp_path)
    assert "kafka-kardia[spark]" in refusal(
        [str(kardia), "stream", "--tables", "t", "--checkpoint", "c", "--bootstrap-server", "127.0.0.1:1"], tmp_path
    )


def _log(home: Path, name: str) -> Path:
    path = home / name
    path.write_bytes(gzip.decompress((installing.STORY / f"{name}.gz").read_bytes()))
    return path


def _groups(address: str) -> bool:
    try:
        url = f"{address.rstrip('/')}/api/v1/clusters/kafka/groups"
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the address that was printed
            return bool(json.load(answer)["groups"])
    except OSError:
        return False


def as_the_page_says(way: str, wheel: Path, home: Path, programs: dict[str, list[str]], **more: str) -> Path:
    """Run the line of README, in a folder with the wheel in `dist`; the folder of programs that it may use."""
    (home / "dist").mkdir()
    (home / "dist" / wheel.name).symlink_to(wheel)
    found = home / "programs"
    found.mkdir()
    for name, command in programs.items():
        (found / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (found / name).chmod(0o755)
    names = ("PIPX_", "UV_TOOL")
    kept = {name: value for name, value in environment(home).items() if not name.startswith(names)}
    done = subprocess.run(
        ["/bin/sh", "-c", INSTALLED.replace("pipx install", way)],
        env=kept | more | {"PATH": f"{found}:/usr/bin:/bin"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return found


@pytest.mark.long
def test_it_is_installed_with_pipx_into_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    """By pip, as pipx does where no uv is on the path; in the versions of the lock."""
    constraints = str(installing.locked_versions(tmp_path))
    pipx = [sys.executable, "-m", "pipx"]
    told = {"PIPX_DEFAULT_BACKEND": "pip", "PIPX_DEFAULT_PYTHON": sys.executable, "PIP_CONSTRAINT": constraints}
    as_the_page_says("pipx install", wheel, tmp_path, {"pipx": pipx}, **told)
    _walked([str(tmp_path / ".local" / "bin" / "kardia")], tmp_path)


@pytest.mark.long
def test_it_is_installed_with_uv_into_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    """Out of the cache of this machine, in the versions of the lock."""
    uv = install.install_uv()
    cache = subprocess.run([uv[0], "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    told = {"UV_CACHE_DIR": cache, "UV_PYTHON": sys.executable, "UV_CONSTRAINT": str(install.REQUIREMENTS)}
    as_the_page_says("uv tool install", wheel, tmp_path, {"uv": uv}, **told)
    _walked([str(tmp_path / ".local" / "bin" / "kardia")], tmp_path)


@pytest.mark.long
def test_it_is_installed_with_pip_into_an_environment_of_ones_own(wheel: Path, tmp_path: Path) -> None:
    """Without a lock: the newest that the ranges allow, in whatever versions that is today."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "own")], check=True)
    python = str(tmp_path / "own" / "bin" / "python")
    as_the_page_says("pip install", wheel, tmp_path, {"pip": [python, "-m", "pip"]})
    _walked([str(tmp_path / "own" / "bin" / "kardia")], tmp_path)


@pytest.mark.long
def test_it_works_with_the_oldest_that_the_ranges_allow(wheel: Path, tmp_path: Path) -> None:
    uv = install.install_uv()
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "oldest")], check=True)
    python = ["--python", str(tmp_path / "oldest" / "bin" / "python")]
    oldest = ["pip", "install", "--quiet", "--resolution", "lowest-direct"]
    subprocess.run([*uv, *oldest, *python, f"{wheel}[live]"], check=True)
    _walked([str(tmp_path / "oldest" / "bin" / "kardia")], tmp_path)


def _walked(kardia: list[str], home: Path) -> None:
    installing.answers_every_help(kardia, home)
    replay_and_ask(kardia, home)
