"""Which files of tests `make quick` leaves out: those that took long in a whole run, by its report.

    python -m pytest -m "not slow and not long" -n 1 --junit-xml=report.xml
    python -m tests.slow_files report.xml       writes tests/slow_files.json

Files and not single tests, as what a file prepares is mostly what takes its time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "slow_files.json"

SLOW_S = 1.5
"""Files that take less are quick: together some 45 s of one core, which two cores do in `make quick`'s 90 s with the
collection of all tests before it."""


def slow_files() -> frozenset[Path]:
    """Files that are left out."""
    return frozenset(ROOT / name for name in json.loads(LIST.read_text(encoding="utf-8")))


def seconds_by_file(report: Path) -> dict[str, float]:
    """Seconds that each file of tests took, by a report in the form of JUnit that pytest wrote."""
    found: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - a file that this machine's pytest wrote
        module = Path(*case.attrib["classname"].split("."))
        while not (ROOT / module).with_suffix(".py").is_file():  # a class of tests is the last part of some names
            module = module.parent
        name = module.with_suffix(".py").as_posix()
        found[name] = found.get(name, 0.0) + float(case.attrib["time"])
    return found


if __name__ == "__main__":
    seconds = seconds_by_file(Path(sys.argv[1]))
    slow = {name: round(took_s, 1) for name, took_s in sorted(seconds.items()) if took_s >= SLOW_S}
    LIST.write_text(json.dumps(slow, indent=1) + "\n", encoding="utf-8")
