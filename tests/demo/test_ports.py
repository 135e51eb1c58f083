"""Ports are free, different, and of one run alone for as long as it lives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo import ports
from demo.ports import _OWN_PORTS, free_ports

DRAW = """
import sys
from demo import ports
ports._OWN_PORTS = range(*map(int, sys.argv[1:]))
print(ports.free_ports(1)[0], flush=True)
sys.stdin.read()
"""


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_a_port_is_none_that_the_system_gives_to_clients() -> None:
    """A client could be given it while its broker is down."""
    assert all(port in _OWN_PORTS for port in free_ports(20))
    assert max(_OWN_PORTS) < 32_768


def test_a_port_that_another_run_has_drawn_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens on it only later."""
    monkeypatch.setenv("KARDIA_CACHE", str(tmp_path))
    first = free_ports(1)[0]
    monkeypatch.setattr(ports, "_OWN_PORTS", range(first + 1, first + 3))
    other = subprocess.Popen(
        [sys.executable, "-c", DRAW, str(first + 1), str(first + 3)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None
        drawn = int(other.stdout.readline())
        assert drawn not in {port for _ in range(20) for port in free_ports(1)}
        other.communicate()
    assert drawn in {port for _ in range(40) for port in free_ports(1)}
