"""What all tests share: what is left out is said loudly at the end, and one real broker and one real object store for
those that only need some.

A test that needs a program from outside Python carries a marker of `PROGRAMS`. Without the program it is
left out, never passed; with KARDIA_TEST_EVERYTHING set it fails instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.slow_files import SLOW_S, slow_files

if TYPE_CHECKING:
    from demo.broker import Broker
    from demo.object_store import ObjectStore

PROGRAMS = {
    "needs_promtool": ("promtool", "the Debian package prometheus"),
    "needs_prometheus": ("prometheus", "the Debian package prometheus"),
    "needs_alertmanager": ("prometheus-alertmanager", "the Debian package prometheus-alertmanager"),
    "needs_chromium": ("chromium", "the Debian package chromium"),
    "needs_systemd_analyze": ("systemd-analyze", "the Debian package systemd"),
}
"""Marker, program, and where it comes from."""

MISSING = " is not on the path"

TOO_SLOW = 4
"""A file that took so many times `SLOW_S` is not slow because something else ran beside it."""

pytest_plugins = ["tests.support.draws", "tests.support.invariants"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick`, for `make quick`."""
    parser.addoption("--quick", action="store_true", help="leave out the files of tests/slow_files.json")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is left out is not even imported."""
    return True if config.getoption("--quick") and collection_path in slow_files() else None


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for marker, (program, package) in PROGRAMS.items():
        config.addinivalue_line("markers", f"{marker}: needs the program {program} ({package})")


def pytest_xdist_auto_num_workers() -> int:
    """A process per core and one more: a third of the time a test waits, for a broker or a session to be over."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: a file goes to one process, and short ones at the end leave none without work."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test whose program is missing."""
    for marker, (program, package) in PROGRAMS.items():
        if item.get_closest_marker(marker) is None or shutil.which(program) is not None:
            continue
        sentence = f"{program}{MISSING}; install {package}, as .ci/run does"
        if os.environ.get("KARDIA_TEST_EVERYTHING"):
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what was left out, whichever process left it out."""
    left_out: dict[str, list[str]] = {}
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple) and MISSING in report.longrepr[2]:
            left_out.setdefault(report.longrepr[2].removeprefix("Skipped: "), []).append(report.nodeid)
    if left_out:
        terminalreporter.section("LEFT OUT, NOT TESTED", sep="!", red=True, bold=True)
        for sentence, tests in left_out.items():
            terminalreporter.write_line(f"{len(tests)} tests: {sentence}", red=True)
            for name in tests:
                terminalreporter.write_line(f"    {name}")
    if terminalreporter.config.getoption("--quick"):
        _tell_slow(terminalreporter)


def _tell_slow(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the files that made a quick run slow: new ones, which the list does not have yet."""
    took_s: dict[str, float] = {}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            name = report.nodeid.partition("::")[0]
            took_s[name] = took_s.get(name, 0.0) + report.duration
    slow = sorted((seconds, name) for name, seconds in took_s.items() if seconds > TOO_SLOW * SLOW_S)
    if slow:
        terminalreporter.section("SLOW FILES: tests/slow_files.py says how they are left out of a quick run", sep="-")
        for seconds, name in reversed(slow):
            terminalreporter.write_line(f"{seconds:6.1f} s  {name}")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One real broker for the whole run, for tests that take topics and groups of their own and do not stop it."""
    from demo.broker import Broker

    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """One real S3-compatible server for the whole run, for tests that take buckets of their own and do not stop it."""
    from demo.object_store import ObjectStore

    with ObjectStore(tmp_path_factory.mktemp("object-store")) as store:
        yield store
