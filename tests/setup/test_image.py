"""The image of `kardia live`, without a container engine: its steps are walked in a folder, and what they made is run.

Paths of the image are put below the folder, and its Python is the one of this machine; all else is as it stands in
`compose/live.Dockerfile`. What cannot be seen here: the base image, and what an engine does with the rest.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.install import ROOT
from tests.notify.conftest import until
from tests.setup.installing import STORY, environment, megabytes
from tests.setup.test_systemd import confined

DOCKERFILE = (ROOT / "compose" / "live.Dockerfile").read_text()
MB_MAX = 700
"""Of what is put on the base image, with the bytecode that pip makes."""


def stages() -> list[list[tuple[str, str]]]:
    """Instructions of each stage: word and rest."""
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    found: list[list[tuple[str, str]]] = []
    for line in lines:
        if line.startswith("FROM "):
            found.append([])
        elif line and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            found[-1].append((word, rest))
    return found


def run_words() -> list[str]:
    """What the head of the file gives to the image, of its `docker run`."""
    head = DOCKERFILE.partition("\nFROM")[0]
    [line] = re.findall(r"docker run .*", head.replace("\\\n#", " "))
    words = shlex.split(line)
    return words[words.index("kardia-live") + 1 :]


def test_the_last_stage_runs_as_a_user_and_makes_nothing_but_him() -> None:
    last = stages()[-1]
    users = [rest for word, rest in last if word == "USER"]
    assert users
    assert all(re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) for user in users)
    assert [rest.split()[0] for word, rest in last if word == "RUN"] == ["useradd"]
    assert [rest for word, rest in last if word == "ENTRYPOINT"] == ['["kardia", "live"]']
    assert [rest for word, rest in last if word == "COPY"] == ["--from=installed /opt/kardia /opt/kardia"]


@pytest.mark.slow
@pytest.mark.long
def test_its_steps_make_a_kardia_that_answers_under_a_root_that_is_read_only(tmp_path: Path) -> None:
    build, made = tmp_path / "build", tmp_path / "opt" / "kardia"
    made.parent.mkdir()
    for word, rest in stages()[0]:
        if word == "WORKDIR":
            build.mkdir()
        elif word == "COPY":
            *names, target = rest.split()
            for name in names:
                _copied(ROOT / name, build / target / (name if target == "./" else ""))
        else:
            assert word == "RUN"
            command = rest.replace("/opt/kardia", str(made))
            command = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", command)
            subprocess.run(["/bin/sh", "-c", command], cwd=build, env=environment(tmp_path), check=True)
    assert megabytes(made) <= MB_MAX
    shutil.rmtree(build)

    logs, state, said = tmp_path / "logs", tmp_path / "state", tmp_path / "said"
    logs.mkdir()
    (logs / "kafka-request.log").write_bytes(gzip.decompress((STORY / "kafka-request.log.gz").read_bytes()))
    state.mkdir()
    places = {"/logs": str(logs), "/var/lib/kardia": str(state)}
    words = [re.sub(r"^(/logs|/var/lib/kardia)", lambda found: places[found[0]], word) for word in run_words()]
    for path in (*made.rglob("*"), made):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o555)
    with said.open("wb") as output:
        running = subprocess.Popen(
            [made / "bin" / "kardia", "live", *words, "--host", "127.0.0.1", "--port", "0"],
            stdout=output,
            stderr=output,
            cwd=state,
            env={"PATH": f"{made}/bin:/usr/bin:/bin", "HOME": str(state)},
            preexec_fn=confined,
        )
    try:
        until(lambda: re.search(r"live: (http://\S+) over", said.read_text()), "the address")
        until(lambda: "following" in said.read_text(), "a log")
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=120) == 0, said.read_text()
    finally:
        running.kill()
        running.wait()
        for path in (made, *made.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o700)
    assert {path.name for path in state.iterdir()} == {"tables"}


def _copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
