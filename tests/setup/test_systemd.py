"""The unit of `kardia live` for systemd: what it allows, and its command line run as it stands there.

The command is run as the unit has it run as far as that goes without systemd: in `/`, without a home, without
capabilities, not able to gain rights or to write what it executes, with logs that it may only read. Which calls of the
kernel are let through, and how the file system looks to it, is systemd's, which reads the unit where it is installed.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from cli.main import app
from scripts.install import ROOT
from tests.notify.conftest import until
from tests.setup.installing import STORY

UNIT = ROOT / "deploy" / "systemd" / "kardia-live.service"
Setting = tuple[str, str, str]
"""Section, name, value."""

WRITABLE = {"ReadWritePaths", "RuntimeDirectory", "CacheDirectory", "LogsDirectory", "BindPaths", "User", "Group"}
"""Settings that would let it write more than its state, or be somebody else."""

MUST = {
    "DynamicUser": "yes",
    "StateDirectory": "kardia",
    "StateDirectoryMode": "0700",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "AmbientCapabilities": "",
    "MemoryDenyWriteExecute": "yes",
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
}
EXPOSURE_MAX = 20
"""Of `systemd-analyze security`, in tenths: 100 is no hardening at all."""


def settings(text: str) -> Iterator[Setting]:
    """Of a unit, in order; a line that ends with a backslash goes on in the next one."""
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith(("#", ";")):
            name, equals, value = line.partition("=")
            assert equals, f"no setting: {line}"
            yield section, name, value.strip()


def problems(text: str) -> list[str]:
    """What a unit allows and should not."""
    found = list(settings(text))
    service = {name: value for section, name, value in found if section == "Service"}
    wrong = [
        f"{name} is {service.get(name)!r}, not {value!r}" for name, value in MUST.items() if service.get(name) != value
    ]
    wrong += [f"{name} is set" for name in service if name in WRITABLE]
    filters = [value for _, name, value in found if name == "SystemCallFilter"]
    if filters[:1] != ["@system-service"]:
        wrong.append("all calls of the kernel are let through")
    return wrong


def test_it_may_write_its_state_and_nothing_else() -> None:
    assert problems(UNIT.read_text()) == []


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("ProtectSystem=strict", "ProtectSystem=full"),
        ("NoNewPrivileges=yes", ""),
        ("StateDirectory=kardia", "StateDirectory=kardia\nReadWritePaths=/var/log/kafka"),
        ("DynamicUser=yes", "User=root"),
        ("SystemCallFilter=@system-service", "# none"),
    ],
)
def test_a_unit_that_allows_more_is_found(line: str, instead: str) -> None:
    assert problems(UNIT.read_text().replace(f"{line}\n", f"{instead}\n"))


def told(text: str) -> dict[str, str]:
    """Variables that the unit sets; a file of the host may set them otherwise."""
    return dict(value.split("=", 1) for _, name, value in settings(text) if name == "Environment")


def command(text: str, variables: dict[str, str]) -> list[str]:
    """Words of ExecStart, variables put in as systemd does: `${A}` inside a word, `$A` as words of its own."""
    [started] = [value for _, name, value in settings(text) if name == "ExecStart"]
    words = list[str]()
    for word in shlex.split(started):
        if re.fullmatch(r"\$\w+", word):
            words += variables[word[1:]].split()
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word))
    return words


def test_its_command_is_understood_and_its_tables_are_in_its_state() -> None:
    text = UNIT.read_text()
    state = "/var/lib/kardia"
    program, verb, *words = command(text, told(text) | {"STATE_DIRECTORY": state})
    assert program == "/usr/local/bin/kardia"
    found = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    with found.make_context(verb, words, resilient_parsing=False) as context:
        given = {name: value for name, value in context.params.items() if value}
    assert given.pop("tables") == Path(state, "tables")
    assert given.keys() == {"cluster", "log_timezone", "request_log", "server_log"}
    logs = [value.lstrip("-") for _, name, value in settings(text) if name == "ReadOnlyPaths"]
    assert {str(Path(path).parent) for path in given["request_log"] + given["server_log"]} == set(logs)


@pytest.mark.needs_systemd_analyze
def test_systemd_takes_it(tmp_path: Path) -> None:
    """With the program of this environment in the place of the one that is installed on a host."""
    program = shutil.which("systemd-analyze")
    assert program
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/kardia", str(Path(sys.executable).parent / "kardia")))
    verified = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False, timeout=60)
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = [program, "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(unit)]
    done = subprocess.run(judged, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


libc = ctypes.CDLL(None)
NO_NEW_PRIVS, MDWE, DROP, CAPABILITIES = 38, 65, 24, 64


def confined() -> None:
    """In a process before it becomes the program: no new rights, no capabilities, and what it writes is never executed,
    where the kernel knows that (6.3 and later). Without capabilities root is a user like any other."""
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(MDWE, 1, 0, 0, 0)
    for capability in range(CAPABILITIES):
        libc.prctl(DROP, capability, 0, 0, 0)


@pytest.mark.slow
def test_it_answers_where_it_may_read_the_logs_and_write_its_state(tmp_path: Path) -> None:
    logs, state, said = tmp_path / "logs", tmp_path / "state", tmp_path / "said"
    logs.mkdir()
    for name in ("kafka-request.log", "server.log"):
        (logs / name).write_bytes(gzip.decompress((STORY / f"{name}.gz").read_bytes()))
        (logs / name).chmod(0o440)
    logs.chmod(0o550)
    state.mkdir(mode=0o700)
    variables = told(UNIT.read_text()) | {
        "STATE_DIRECTORY": str(state),
        "REQUEST_LOG": str(logs / "kafka-request.log"),
        "SERVER_LOG": str(logs / "server.log"),
        "OPTIONS": "--port=0",
    }
    words = command(UNIT.read_text(), variables)
    with said.open("wb") as output:
        running = subprocess.Popen(
            [Path(sys.executable).parent / "kardia", *words[1:]],
            stdout=output,
            stderr=output,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": str(state)},
            umask=0o077,
            preexec_fn=confined,
        )
    try:
        address = until(lambda: re.search(r"live: (http://\S+)/ over", said.read_text()), "the address")[1]
        until(lambda: running.poll() is None and _groups(address), "a group")
        assert _capabilities(running.pid) == 0
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=120) == 0, said.read_text()
    finally:
        running.kill()
        running.wait()
        logs.chmod(0o750)
    assert {path.name for path in state.iterdir()} == {"tables"}
    assert (state / "tables").stat().st_mode & 0o077 == 0


def _capabilities(pid: int) -> int:
    """Those in force, as bits."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^CapEff:\s*(\w+)$", status, re.MULTILINE)
    assert found
    return int(found[1], 16)


def _groups(address: str) -> bool:
    try:
        url = f"{address}/api/v1/clusters/kafka/groups"
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the address that was printed
            return bool(json.load(answer)["groups"])
    except OSError:
        return False
