"""The wheel alone, without this folder beside it, has everything that its verbs import and read, and no more than that.

It is unpacked, and its Python gets the libraries of the environment, but not the folder that is installed in it in
place. Installed as a user does it: `test_installed`.
"""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.setup.installing import ask, refusal, replay_and_ask

RUN = "import sys; sys.path[:0] = {paths}; from cli.main import run; run()"
ROOMS = ("cli", "supervise", "live", "api", "spark_jobs", "ingest", "stores", "kardia")
EVERY_MODULE = """
import sys; sys.path[:0] = {paths}
import ast, importlib, pathlib
root = pathlib.Path({paths}[0])
for path in sorted(path for room in {rooms} for path in (root / room).rglob("*.py")):
    parts = path.relative_to(root).with_suffix("").parts
    if parts[-1] not in ("__main__", "launch"):
        name = ".".join(part for part in parts if part != "__init__")
        assert pathlib.Path(importlib.import_module(name).__file__).is_relative_to(root), name
    if parts in (("cli", "verbs", "demo"), ("cli", "verbs", "bench")):
        continue  # refused before they import anything
    for node in ast.walk(ast.parse(path.read_text())):  # also those that wait in a function until it is called
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {ours}:
            importlib.import_module(node.module)
"""
OURS = (*ROOMS, "bench", "demo", "dashboards", "scripts", "tests")


@pytest.mark.slow
def test_the_wheel_has_all_that_its_verbs_need(wheel: Path, tmp_path: Path) -> None:
    unpacked, libraries = tmp_path / "wheel", sysconfig.get_path("purelib")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    paths = [str(unpacked), libraries]
    python = [sys.executable, "-S", "-P", "-c"]  # -S: what is installed in place is not found
    ask([*python, EVERY_MODULE.format(paths=paths, rooms=ROOMS, ours=OURS)], tmp_path)
    kardia = [*python, RUN.format(paths=paths)]
    replay_and_ask(kardia, tmp_path)
    for verb in ("demo", "bench"):
        assert f"`make {verb}`" in refusal([*kardia, verb], tmp_path)
    assert "Apache License" in next(unpacked.glob("*.dist-info/licenses/LICENSE")).read_text()


@pytest.mark.slow
def test_it_has_the_rooms_of_its_verbs_and_what_is_set_up_beside_them(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name) for name in archive.namelist()}
    beside = {path.parts[0] for path in names} - set(ROOMS)
    assert {Path(name).suffix for name in beside} == {".dist-info", ".data"}
    share = {Path(*path.parts[4:]) for path in names if path.parts[1:4] == ("data", "share", "kardia")}
    assert Path("dashboards/json/kardia-fleet.json") in share
    assert Path("dashboards/prometheus/kardia.rules.yml") in share
    assert Path("systemd/kardia-live.service") in share
    assert not any(path.suffix == ".py" for path in share)
