"""The command line as a whole: help is instant and complete, versions agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.asking.left_out import LEFT_OUT
from cli.main import VERBS
from kardia import __version__
from tests.api.written import Tables, progress, transition

HEAVY = ("pyspark", "delta", "deltalake", "fastapi", "uvicorn", "confluent_kafka", "pyarrow", "pandas", "duckdb")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `kardia` as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_names_every_verb() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert all(verb in shown.stdout for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    shown = run(verb, "--help")
    assert shown.returncode == 0
    assert "Usage" in shown.stdout


DEFAULTS = {
    "why": ("127.0.0.1:8765",),
    "serve": ("127.0.0.1", "8765"),
    "collect": ("kardia.events", "kardia-positions"),
    "stream": ("kardia.events", "local[3]"),
}


@pytest.mark.parametrize("verb", DEFAULTS)
def test_help_names_defaults_that_depend_on_more_than_the_option(verb: str) -> None:
    """In brackets they would be markup of the help, and vanish."""
    shown = "".join(line.strip("│ ") for line in run(verb, "--help").stdout.splitlines())
    for default in DEFAULTS[verb]:
        assert default in re.sub(r"\s+", "", shown), default


def test_help_starts_neither_spark_nor_fastapi() -> None:
    """Verbs import what they run when they are called, so that help costs nothing."""
    code = "import sys, cli.main; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert not set(HEAVY) & set(loaded.split())


def test_version() -> None:
    assert run("--version").stdout.strip() == f"kardia {__version__}"


def test_an_unknown_verb_is_refused_with_a_sentence() -> None:
    refused = run("replya")
    assert refused.returncode == 2
    assert "replya" in refused.stderr


def test_a_question_to_a_server_needs_no_server_of_its_own() -> None:
    """`--api` asks over HTTP: loading FastAPI and Arrow for it would cost seconds."""
    code = (
        "import sys; from cli.asking.answers import HttpAnswers; from cli.asking.questions import Questions; "
        "HttpAnswers('http://127.0.0.1:1'); print(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert not set(HEAVY) & set(loaded.split())


def test_a_question_to_tables_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    """Each of these cost a tenth of a second to a second of CPU, and a list of groups uses none of them."""
    tables = Tables(tmp_path / "tables")
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable", at_ms=1_000), progress(2_000))
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.isenabled(), *sys.modules)); "
        "import cli.main as m; m.run()"
    )
    command = [sys.executable, "-c", code, "groups", "--tables", str(tables.root)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "orders" in said
    loaded = said.splitlines()[-1].split()
    assert "pyarrow.dataset" in loaded
    unused = (*LEFT_OUT, "pyspark", "confluent_kafka", "duckdb", "uvicorn", "sse_starlette", "markdown_it", "pygments")
    assert not set(unused) & set(loaded)
    assert loaded[0] == "False"  # garbage of a process that ends with its answer is not looked for


def test_who_reads_logs_loads_neither_pandas_nor_a_compiler() -> None:
    """Half of a second at the start and 60 MB: pyarrow asks for pandas as soon as it makes a scalar."""
    code = (
        "import sys; from cli.asking.left_out import BY_READERS, leave_out; leave_out(BY_READERS); "
        "import pyarrow as pa; import live.run, live.view, api.app, ingest.assembly, cli.verbs.live; "
        "pa.scalar(1); pa.table({'a': [1]}).filter(pa.compute.field('a') == 1); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert {"numpy", "deltalake", "pyarrow.dataset"} <= set(loaded.split())
    assert not {"pandas", "numba", "pyspark", "httpx._main"} & set(loaded.split())
