"""The supervisor: ready by condition, restarts what falls, gives up with the reason, stops in order, no orphan."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from prometheus_client import CollectorRegistry, Counter, start_http_server

from supervise import process, supervisor
from supervise.process import ProcessError
from supervise.roles import counted
from supervise.supervisor import Role, Supervisor

WAIT_S = 90.0


def _role(tmp_path: Path, name: str, program: str) -> Role:
    log = tmp_path / f"{name}.log"
    return Role(name, [sys.executable, "-c", program], log, lambda: log.exists() and "ready" in log.read_text())


def _waits(name: str, stopped: Path) -> str:
    """A program that says when it is ready, and when it was asked to stop appends its name to a file."""
    return (
        "import signal, sys, pathlib\n"
        "def stop(*_):\n"
        f"    with pathlib.Path({str(stopped)!r}).open('a') as file: file.write({name!r} + '\\n')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )


def test_roles_are_stopped_in_the_order_of_the_flow(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    roles = [_role(tmp_path, name, _waits(name, stopped)) for name in ("collect", "stream", "serve")]
    told: list[str] = []
    with Supervisor(roles, told.append) as running:
        assert list(running.pids) == ["collect", "stream", "serve"]
        running.watch()
    assert stopped.read_text().split() == ["collect", "stream", "serve"]
    assert {sentence.split()[0] for sentence in told} == {"collect", "stream", "serve"}, "each when it was ready"


def test_a_role_that_falls_is_started_again(tmp_path: Path) -> None:
    told: list[str] = []
    role = _role(tmp_path, "stream", _waits("stream", tmp_path / "stopped"))
    with Supervisor([role], told.append) as running:
        first = running.pids["stream"]
        psutil.Process(first).kill()

        def other() -> bool:
            running.watch()
            return running.pids["stream"] != first

        process.until(other, WAIT_S, lambda: "it was not started again")
        log = tmp_path / "stream.log"
        process.until(lambda: log.read_text().count("ready") == 2, WAIT_S, lambda: "it did not come back")
        running.watch()
    assert any("stream ended with exit code -9 and was started again" in sentence for sentence in told)
    assert told[-1].startswith("stream is ready again after ")


def _stands(tmp_path: Path, *, pulse: str) -> Role:
    """A role that waits in a function of its own; its pulse is what a file holds."""
    held = tmp_path / "pulse"
    held.write_text(pulse)
    program = "import threading\ndef here():\n    print('ready', flush=True)\n    threading.Lock().acquire()\n    "
    program += "threading.Event().wait()\nhere()\n"
    log = tmp_path / "collect.log"
    return Role(
        "collect",
        [sys.executable, "-c", program],
        log,
        lambda: log.exists() and "ready" in log.read_text(),
        pulse=lambda: float(text) if (text := held.read_text()) else None,
    )


def _watch_for(running: Supervisor, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        running.watch()


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STUCK_S", 1.0)
    monkeypatch.setattr(supervisor, "PULSE_EVERY_S", 0.05)


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("then", ["5", ""], ids=["the same number", "no answer any more"])
def test_a_role_that_stands_still_says_where_and_is_started_again(tmp_path: Path, then: str) -> None:
    told: list[str] = []
    role = _stands(tmp_path, pulse="5")
    with Supervisor([role], told.append) as running:
        first = running.pids["collect"]
        running.watch()
        (tmp_path / "pulse").write_text(then)

        def other() -> bool:
            running.watch()
            return running.pids["collect"] != first

        process.until(other, WAIT_S, lambda: "it was not started again")
    said = (tmp_path / "collect.log").read_text()
    assert "Fatal Python error: Aborted" in said
    assert "in here" in said
    assert any(one.startswith("collect stood still for 1 s and was ended") for one in told)
    assert any("collect ended with exit code -6 and was started again" in one for one in told)


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("pulse", ["", "0"], ids=["it gives none", "it has not begun"])
def test_a_role_that_never_had_a_pulse_is_left_alone(tmp_path: Path, pulse: str) -> None:
    role = _stands(tmp_path, pulse=pulse)
    with Supervisor([role], lambda _: None) as running:
        first = running.pids["collect"]
        _watch_for(running, 2.5)
        assert running.pids["collect"] == first


@pytest.mark.usefixtures("_soon")
def test_nobody_is_ended_for_what_was_not_looked_at(tmp_path: Path) -> None:
    """The supervisor itself was stopped: what its first look finds is no sign of anything."""
    role = _stands(tmp_path, pulse="5")
    with Supervisor([role], lambda _: None) as running:
        first = running.pids["collect"]
        running.watch()
        running._running[0].looked_s -= 100.0
        running._running[0].moved_s -= 100.0
        running.watch()
        assert running.pids["collect"] == first


def test_each_role_is_told_as_soon_as_it_is_ready_with_what_that_means(tmp_path: Path) -> None:
    """The second is ready first: it was told only after the first, which may take a minute."""
    told: list[str] = []
    slow = tmp_path / "slow.log"
    program = f"import pathlib, time\nwhile not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n"
    first = Role(
        "stream",
        [sys.executable, "-c", program + _waits("stream", tmp_path / "stopped")],
        slow,
        lambda: slow.exists() and "ready" in slow.read_text(),
        means="its first batch is in the tables",
    )

    def tell(sentence: str) -> None:
        told.append(sentence)
        (tmp_path / "go").touch()

    with Supervisor([first, _role(tmp_path, "serve", _waits("serve", tmp_path / "stopped"))], tell):
        pass
    assert [sentence.split()[0] for sentence in told] == ["serve", "stream"]
    assert told[1].startswith("stream is ready after ")
    assert told[1].endswith(" s: its first batch is in the tables.")


def test_a_counter_shows_that_a_role_has_begun_to_work() -> None:
    registry = CollectorRegistry()
    counter = Counter("kardia_stream_batches", "batches in the tables", registry=registry)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    has = counted(server.server_port, "kardia_stream_batches_total")
    assert not has()
    counter.inc()
    assert has()
    server.shutdown()
    server.server_close()
    thread.join()
    assert not has(), "nobody answers"


def test_a_role_that_keeps_falling_stops_the_whole_with_its_last_words(tmp_path: Path) -> None:
    program = "import sys; print('ready', flush=True); print('the topic is gone', flush=True); sys.exit(3)"
    role = _role(tmp_path, "collect", program)

    def run_until_given_up() -> None:
        with Supervisor([role], lambda _: None) as running:
            while True:
                running.watch()

    with pytest.raises(ProcessError, match=r"(?s)collect (ended before|fell).*exit code 3.*the topic is gone"):
        run_until_given_up()


def test_a_role_that_ends_before_it_is_ready_is_reported_with_its_log(tmp_path: Path) -> None:
    role = _role(tmp_path, "serve", "raise SystemExit('port 80 is taken')")
    with pytest.raises(ProcessError, match=r"(?s)serve ended before it was ready.*port 80 is taken"):
        Supervisor([role], lambda _: None).__enter__()


def test_a_role_that_is_never_ready_stops_the_others_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "READY_TIMEOUT_S", 0.2)
    stopped = tmp_path / "stopped"
    log = tmp_path / "mute.log"
    roles = [
        Role("mute", [sys.executable, "-c", _waits("mute", stopped)], log, lambda: False),
        _role(tmp_path, "other", _waits("other", stopped)),
    ]
    subject = Supervisor(roles, lambda _: None)
    with pytest.raises(ProcessError, match="mute was not ready"):
        subject.__enter__()
    assert subject.pids == {}


def test_a_killed_supervisor_leaves_no_orphan(tmp_path: Path) -> None:
    program = _waits("role", tmp_path / "stopped")
    parent = (
        "import pathlib, signal, sys\n"
        "from supervise.supervisor import Role, Supervisor\n"
        f"log = pathlib.Path({str(tmp_path / 'role.log')!r})\n"
        f"role = Role('role', [sys.executable, '-c', {program!r}], log, lambda: 'ready' in log.read_text())\n"
        "with Supervisor([role], lambda _: None) as running:\n"
        "    print(running.pids['role'], flush=True)\n"
        "    signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, env=process.environ()
    ) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        assert psutil.pid_exists(pid)
        running.send_signal(signal.SIGKILL)
    process.until(lambda: not psutil.pid_exists(pid), WAIT_S, lambda: "an orphan")
    assert not (tmp_path / "stopped").exists()
