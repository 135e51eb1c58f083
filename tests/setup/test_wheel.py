"""The wheel alone, without this folder beside it, has everything that its verbs import and read.

The quick test unpacks it and gives its Python the libraries of the environment, but not the folder that is installed in
it in place; the long ones install it as a user would, into an empty home, with uv and with pipx.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from cli.main import VERBS
from scripts import install

STORY = install.ROOT / "tests" / "corpora" / "c01_kill-4.1.2"
RUN = "import sys; sys.path[:0] = {paths}; from cli.main import run; run()"
OURS = (
    *("cli", "bench", "demo", "supervise", "dashboards", "live", "api", "spark_jobs", "ingest", "stores", "kardia"),
    *("scripts", "tests"),
)
EVERY_MODULE = """
import sys; sys.path[:0] = {paths}
import ast, importlib, pathlib
root = pathlib.Path({paths}[0])
for path in sorted(root.rglob("*.py")):
    parts = path.relative_to(root).with_suffix("").parts
    if parts[-1] not in ("__main__", "launch"):
        name = ".".join(part for part in parts if part != "__init__")
        assert pathlib.Path(importlib.import_module(name).__file__).is_relative_to(root), name
    for node in ast.walk(ast.parse(path.read_text())):  # also those that wait in a function until it is called
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {ours}:
            importlib.import_module(node.module)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--build-constraints", str(install.BUILD_LOCK), "--out-dir", str(folder)]
    install.run([*install.install_uv(), "build", "--wheel", *options, str(install.ROOT)], "building the wheel")
    (found,) = folder.glob("*.whl")
    return found


def environment(home: Path) -> dict[str, str]:
    """Of a user whose home is empty, and who has set nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KARDIA", "VIRTUAL"))}
    return kept | {"HOME": str(home), "COLUMNS": "100"}


def ask(command: list[str], home: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment(home), cwd=home, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def replay_and_ask(kardia: list[str], home: Path) -> None:
    """A story that ends with an eviction goes into tables, and comes out of them."""
    tables = str(home / "tables")
    ask([*kardia, "replay", "--tables", tables, "--request-log", str(STORY / "kafka-request.log.gz")], home)
    found = json.loads(ask([*kardia, "groups", "--tables", tables, "-o", "json"], home))
    assert found
    assert "Usage: kardia replay" in ask([*kardia, "replay", "--help"], home)


@pytest.mark.slow
def test_the_wheel_has_all_that_its_verbs_need(wheel: Path, tmp_path: Path) -> None:
    unpacked, libraries = tmp_path / "wheel", sysconfig.get_path("purelib")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    paths = [str(unpacked), libraries]
    python = [sys.executable, "-S", "-P", "-c"]  # -S: what is installed in place is not found
    ask([*python, EVERY_MODULE.format(paths=paths, ours=OURS)], tmp_path)
    kardia = [*python, RUN.format(paths=paths)]
    replay_and_ask(kardia, tmp_path)
    assert "Apache License" in next(unpacked.glob("*.dist-info/licenses/LICENSE")).read_text()


def answers_every_help(kardia: list[str], home: Path) -> None:
    for verb in VERBS:
        assert re.search(rf"Usage: kardia {verb}\b", ask([*kardia, verb, "--help"], home))


@pytest.mark.long
@pytest.mark.slow
def test_it_is_installed_as_a_tool_into_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    uv = install.install_uv()
    cache = subprocess.run([uv[0], "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    folders = {"UV_CACHE_DIR": cache, "UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    locks = ["--constraints", str(install.REQUIREMENTS), "--build-constraints", str(install.BUILD_LOCK)]
    subprocess.run(
        [*uv, "tool", "install", "--quiet", "--python", sys.executable, *locks, str(wheel)],
        env=environment(tmp_path) | folders,
        check=True,
    )
    kardia = [str(tmp_path / "bin" / "kardia")]
    answers_every_help(kardia, tmp_path)
    replay_and_ask(kardia, tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_it_is_installed_with_pipx_into_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    """By pip, as pipx does where no uv is on the path. pip takes no hashes of constraints beside a wheel of one's own,
    so it is told the versions alone."""
    versions = re.findall(r"^[^\s#][^\\\n]*", install.REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(versions) + "\n", encoding="utf-8")
    home = environment(tmp_path)
    folders = {f"PIPX_{name}": str(tmp_path / name.lower()) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    given = ["--backend", "pip", "--python", sys.executable, "--pip-args", f"--constraint '{constraints}'"]
    done = subprocess.run(
        [sys.executable, "-m", "pipx", "install", *given, str(wheel)],
        env={name: value for name, value in home.items() if not name.startswith("PIPX_")} | folders,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kardia = [str(tmp_path / "bin_dir" / "kardia")]
    answers_every_help(kardia, tmp_path)
    replay_and_ask(kardia, tmp_path)
