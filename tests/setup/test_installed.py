"""What a host gets that installs Kardia: each extra, by pip, pipx and uv, out of the wheel, and how large it is.

The quick tests install with uv, which links what is in its cache; the long ones as a user does, into an empty home.
An installed environment is counted in bytes of its files, as `du --apparent-size` does, without Python itself.
"""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from scripts import install
from tests.notify.conftest import until
from tests.setup import installing
from tests.setup.installing import ask, environment, refusal, replay_and_ask

pytestmark = pytest.mark.slow

MB_MAX = {"": 40, "collect": 150, "live": 520}
"""Extra -> megabytes (10^6 bytes) at most. Arrow and delta-rs are two thirds of `live`."""

EVERY_MODULE = """
import importlib, pathlib, sys
root = pathlib.Path(importlib.import_module("kardia").__file__).parents[1]
for path in sorted(path for room in {rooms} for path in (root / room).rglob("*.py")):
    name = ".".join(part for part in path.relative_to(root).with_suffix("").parts if part != "__init__")
    if not name.endswith(("__main__", "ingest.dialects.compiled")):
        importlib.import_module(name)
"""


def megabytes(environment: Path) -> float:
    """Size of the files of an environment; a file that has two names in it is one."""
    files = {found.st_ino: found.st_size for found in (path.lstat() for path in environment.rglob("*"))}
    return sum(files.values()) / 1e6


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
    logs = [
        word for name in ("kafka-request.log", "server.log") for word in (f"--{_option(name)}", _log(tmp_path, name))
    ]
    said, tables = tmp_path / "said", tmp_path / "live-tables"
    command = [kardia, "live", "--tables", tables, "--cluster", "c", "--log-timezone", "UTC", "--port", "0", *logs]
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


def _option(name: str) -> str:
    return name.removeprefix("kafka-").replace(".", "-")


def _groups(address: str) -> bool:
    try:
        url = f"{address.rstrip('/')}/api/v1/clusters/c/groups"
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the address that was printed
            return bool(json.load(answer)["groups"])
    except OSError:
        return False


@pytest.mark.long
def test_it_is_installed_as_a_tool_into_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    uv = install.install_uv()
    cache = subprocess.run([uv[0], "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    folders = {"UV_CACHE_DIR": cache, "UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    locks = ["--constraints", str(install.REQUIREMENTS), "--build-constraints", str(install.BUILD_LOCK)]
    subprocess.run(
        [*uv, "tool", "install", "--quiet", "--python", sys.executable, *locks, f"{wheel}[live]"],
        env=environment(tmp_path) | folders,
        check=True,
    )
    _walked([str(tmp_path / "bin" / "kardia")], tmp_path)


@pytest.mark.long
def test_it_is_installed_with_pipx_into_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    """By pip, as pipx does where no uv is on the path."""
    constraints = installing.locked_versions(tmp_path)
    home = environment(tmp_path)
    folders = {f"PIPX_{name}": str(tmp_path / name.lower()) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    given = ["--backend", "pip", "--python", sys.executable, "--pip-args", f"--constraint '{constraints}'"]
    done = subprocess.run(
        [sys.executable, "-m", "pipx", "install", *given, f"{wheel}[live]"],
        env={name: value for name, value in home.items() if not name.startswith("PIPX_")} | folders,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _walked([str(tmp_path / "bin_dir" / "kardia")], tmp_path)


@pytest.mark.long
def test_it_is_installed_with_pip_into_an_environment_of_ones_own(wheel: Path, tmp_path: Path) -> None:
    """Without a lock: the newest that the ranges allow, in whatever versions that is today."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "own")], check=True)
    pip = [str(tmp_path / "own" / "bin" / "python"), "-m", "pip", "install", "--quiet", f"{wheel}[live]"]
    subprocess.run(pip, check=True, env=environment(tmp_path))
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
