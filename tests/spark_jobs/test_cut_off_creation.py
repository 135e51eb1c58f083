"""A table whose creation was cut off, by a full disk or a death: the next start creates it, with either writer.

Goal: what was never a table is never taken for one. Method: what a creation leaves behind at each point of it, by hand;
then the writer that creates, and that which reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kardia.tables import EVENTS
from spark_jobs.jvm import jars, java
from spark_jobs.schemas import ARROW_SCHEMAS
from spark_jobs.writers.tables import FIRST_ENTRY, create_or_open, highest_batch, is_there, open_table

LEFT: dict[str, Callable[[Path], object]] = {
    "a folder": lambda _: None,
    "a file that has no name yet": lambda log: (log / f".{FIRST_ENTRY}.5d2f.tmp").write_bytes(b'{"commitInfo":{'),
    "an entry without a byte": lambda log: (log / FIRST_ENTRY).write_bytes(b""),
    "half an entry": lambda log: (log / FIRST_ENTRY).write_bytes(b'{"commitInfo":{}}\n{"metaDa'),
    "an entry without columns": lambda log: (log / FIRST_ENTRY).write_bytes(b'{"commitInfo":{}}\n'),
}


def left_behind(root: Path, what: str) -> Path:
    """The folder of tables, with what is left of one."""
    log = root / EVENTS.name / "_delta_log"
    log.mkdir(parents=True)
    LEFT[what](log)
    (log / f".{FIRST_ENTRY}.crc").write_bytes(b"crc")
    return root


@pytest.mark.parametrize("what", LEFT)
def test_it_is_no_table_and_is_created(what: str, tmp_path: Path) -> None:
    root = left_behind(tmp_path, what)
    assert not is_there(root, EVENTS.name)
    assert highest_batch(root, (EVENTS.name,)) is None
    create_or_open(root, EVENTS.name)
    assert is_there(root, EVENTS.name)


@pytest.mark.slow
def test_delta_spark_creates_it_as_well(tmp_path: Path) -> None:
    from spark_jobs.spark.session import start_session
    from spark_jobs.writers.delta_spark import create_or_check

    roots = [left_behind(tmp_path / str(number), what) for number, what in enumerate(LEFT)]
    spark = start_session("creation", "local[1]", jars.ensure("spark"), java.find().home)
    try:
        for root in roots:
            create_or_check(spark, root, EVENTS.name)
    finally:
        spark.stop()
    for root in roots:
        names = set(open_table(root, EVENTS.name).to_pyarrow_dataset().schema.names)
        assert names == set(ARROW_SCHEMAS[EVENTS.name].names)


def test_a_table_that_was_created_is_left_alone(tmp_path: Path) -> None:
    table = create_or_open(tmp_path, EVENTS.name)
    assert create_or_open(tmp_path, EVENTS.name).metadata().id == table.metadata().id
