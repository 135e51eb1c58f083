"""Private names of PySpark, py4j and delta-spark: one file each, and a sentence that says what an upgrade has broken.

The names are used on a real session, as the job uses them; a scan of the sources holds everybody else to those files.
"""

from __future__ import annotations

import ast
import socketserver
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import pytest

from spark_jobs.jvm import jars, java, private_delta, private_py4j, private_pyspark
from spark_jobs.schemas import to_tables
from spark_jobs.spark.session import start_session
from spark_jobs.writers.delta_spark import DeltaSparkWriter
from spark_jobs.writers.tables import path_of
from tests.spark_jobs.support import ROOT
from tests.spark_jobs.writing import APP_ID, batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES: dict[str, ModuleType] = {"pyspark": private_pyspark, "py4j": private_py4j, "delta-spark": private_delta}
Found = TypeVar("Found")


def broken(library: str, what: str, seen: object) -> str:
    module = FILES[library]
    return (
        f"{library} {version(library)} no longer gives {what} ({seen}); {module.__name__} was checked on "
        f"{module.CHECKED_ON}. Find the name that took its place, change it there and nowhere else, and set CHECKED_ON."
    )


def given(library: str, what: str, ask: Callable[[], Found]) -> Found:
    """What a private name gives, or the sentence."""
    try:
        return ask()
    except Exception as error:
        pytest.fail(broken(library, what, repr(error)), pytrace=False)


@pytest.mark.parametrize("library", FILES)
def test_the_version_is_the_one_they_were_checked_on(library: str) -> None:
    module, here = FILES[library], version(library)
    assert here == module.CHECKED_ON, (
        f"{library} is {here} now, and its private names in {module.__name__} were checked on {module.CHECKED_ON}. "
        "Run this file and tests/spark_jobs/test_stream.py, read what has changed around them, then set CHECKED_ON."
    )


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_session("private-names", "local[1]", jars.ensure("spark"), java.find().home)
    yield session
    session.stop()  # the JVM stays: other tests of this process may begin a session in it


@pytest.mark.slow
def test_pyspark_keeps_its_jvm_where_it_is_forgotten(spark: SparkSession) -> None:
    for holder, names in (
        (type(spark.sparkContext), private_pyspark.OF_CONTEXT),
        (type(spark), private_pyspark.OF_SESSION),
    ):
        for name in names:
            kept = given("pyspark", f"{holder.__name__}.{name}", lambda holder=holder, name=name: getattr(holder, name))  # type: ignore[misc]
            assert kept is not None, broken("pyspark", f"{holder.__name__}.{name}", "None")


@pytest.mark.slow
def test_pyspark_gives_the_process_the_server_and_the_java_side(spark: SparkSession) -> None:
    process = given("pyspark", "the process of the JVM", lambda: private_pyspark.jvm_process(spark))
    assert process is not None, broken("pyspark", "the process of the JVM", "None")
    assert process.poll() is None
    assert b"java" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    server = given("pyspark", "the server of accumulators", lambda: private_pyspark.accumulator_server(spark))
    assert isinstance(server, socketserver.BaseServer), broken("pyspark", "the server of accumulators", server)
    home = given(
        "pyspark",
        "classes of the JVM",
        lambda: private_pyspark.java_classes(spark).java.lang.System.getProperty("java.home"),
    )
    assert Path(home).is_dir()
    name = given(
        "pyspark", "the session of Java", lambda: private_pyspark.java_session(spark).sparkContext().applicationId()
    )
    assert name == spark.sparkContext.applicationId


@pytest.mark.slow
def test_delta_spark_tells_the_last_transaction_of_an_application(spark: SparkSession, tmp_path: Path) -> None:
    writer = DeltaSparkWriter(spark, tmp_path, APP_ID)
    writer.prepare()
    path = str(path_of(tmp_path, "progress"))

    def last(app_id: str) -> int | None:
        return given("delta-spark", "the last transaction", lambda: private_delta.last_transaction(spark, path, app_id))

    assert last(APP_ID) is None
    writer.write(7, to_tables(batch(7), 7))
    writer.close()
    assert last(APP_ID) == 7, broken("delta-spark", "the last transaction", last(APP_ID))
    assert last("another") is None


def _logger_name(module: ModuleType) -> str:
    return str(module.logger.name)


def test_py4j_speaks_through_the_loggers_that_are_silenced() -> None:
    from py4j import clientserver, java_gateway

    spoken: set[str] = set()
    for module in (clientserver, java_gateway):
        spoken.add(given("py4j", f"the logger of {module.__name__}", partial(_logger_name, module)))
    assert spoken <= set(private_py4j.LOGGERS), broken("py4j", "loggers of the names that are silenced", spoken)
    assert Path(java_gateway.__file__).parent.name == "py4j", broken("py4j", "its folder", java_gateway.__file__)


def test_a_name_that_is_gone_is_told_in_a_sentence() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"^pyspark \S+ no longer gives the server .* and nowhere else"):
        given("pyspark", "the server of accumulators", lambda: private_pyspark.accumulator_server(object()))  # type: ignore[arg-type]


KNOWN = {
    "_replace": "of named tuples, documented",
    "_fields": "the same",
    "_asdict": "the same",
    "_exit": "of os, documented",
    "_PARTITION_EOF": "of confluent_kafka.KafkaError, documented",
    "_AUTHENTICATION": "the same",
    "_UNSUPPORTED_FEATURE": "the same",
    "_ALL_BROKERS_DOWN": "the same",
    "_SSL": "the same",
    "_TIMED_OUT": "the same",
    "_UNKNOWN_PARTITION": "the same",
    "_UNKNOWN_TOPIC": "the same",
    "_NOENT": "the same",
    "_AUTO_OFFSET_RESET": "the same",
    "_FATAL": "the same",
    "_collector_to_names": "of prometheus-client: a script for a page of the reference, part of no run",
}
"""Names with an underscore that are not ours and not of the three libraries."""


def sources() -> dict[Path, ast.Module]:
    rooms = (
        *("cli", "bench", "demo", "supervise", "dashboards", "live", "api", "spark_jobs", "ingest", "stores", "kardia"),
        "scripts",
    )
    return {path: ast.parse(path.read_text("utf-8")) for room in rooms for path in sorted((ROOT / room).rglob("*.py"))}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names(tree: ast.Module) -> Iterator[str]:
    """What the file itself defines or sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def foreign_names(tree: ast.Module, ours: set[str]) -> Iterator[str]:
    """Private names that nothing of ours defines, and private modules and names imported from the libraries."""
    libraries = ("pyspark", "py4j", "delta", "deltalake")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in ours | set(KNOWN):
            yield node.attr
        elif isinstance(node, ast.ImportFrom | ast.Import):
            module = (node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")
            if module[0] in libraries:
                yield from filter(is_private, [*module, *(alias.name for alias in node.names)])


def test_nothing_else_names_them() -> None:
    trees = sources()
    ours = {name for tree in trees.values() for name in own_names(tree)}
    found = {path: set(foreign_names(tree, ours)) for path, tree in trees.items()}
    homes = {Path(str(module.__file__)) for module in FILES.values()}
    strays = {str(path.relative_to(ROOT)): names for path, names in found.items() if names and path not in homes}
    assert not strays, (
        f"private names of a library outside its file: {strays}. Those of {', '.join(FILES)} belong into "
        f"{', '.join(module.__name__ for module in FILES.values())}; anything else into KNOWN with a reason."
    )
    assert found[Path(private_pyspark.__file__)] == {"_gateway", "_accumulatorServer", "_jvm", "_jsparkSession"}
