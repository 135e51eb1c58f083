"""A query over the files of a table, beside the other threads of the process.

Goal: a scan never keeps the interpreter while it waits for a file. Method: the file is a pipe that another thread of
Python opens later, in a process of its own, because one that keeps the interpreter stands still for good.
"""

from __future__ import annotations

import subprocess
import sys

ASKING = """
import os, sys, tempfile, threading, time

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from stores.datasets import scanned

with tempfile.TemporaryDirectory() as folder:
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    local, parquet, schema = fs.LocalFileSystem(), ds.ParquetFileFormat(), pa.schema([("a", pa.int64())])
    files = ds.FileSystemDataset([parquet.make_fragment(pipe, local)], schema, parquet, local)

    def opened_later():
        while True:
            try:
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # nobody waits for it yet
                time.sleep(0.01)
            else:
                return

    threading.Thread(target=opened_later).start()
    with duckdb.connect() as database:
        database.register("r", files if sys.argv[1] == "pyarrow" else scanned(files))
        try:
            database.execute("SELECT * FROM r").fetchall()
        except duckdb.Error as error:
            print("ended:", "no file" if "lseek" in str(error) else error)
"""


def asked(how: str, timeout_s: float) -> str:
    """What the process prints."""
    done = subprocess.run(
        [sys.executable, "-c", ASKING, how], capture_output=True, text=True, timeout=timeout_s, check=True
    )
    return done.stdout.strip()


def test_a_scan_lets_go_of_the_interpreter_while_it_waits_for_a_file() -> None:
    assert asked("ours", 120) == "ended: no file"
