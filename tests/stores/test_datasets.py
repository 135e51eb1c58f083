"""A query over files that Python opens, beside threads that read them.

Goal: no scan stands still for good. Method: a process of its own, in which opening a file takes a moment, asks again
and again over sixty files. With `pyarrow` in place of `ours` one such process in seven stood still when this was
written.
"""

from __future__ import annotations

import subprocess
import sys

ASKING = """
import sys, tempfile, time

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from stores.datasets import scanned


class Slow(fs.FileSystemHandler):
    '''Opens each file by Python, as delta-rs does.'''

    def get_type_name(self):
        return "slow"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return fs.LocalFileSystem().get_file_info(paths)

    def get_file_info_selector(self, selector):
        return fs.LocalFileSystem().get_file_info(selector)

    def open_input_file(self, path):
        time.sleep(0.002)
        return pa.PythonFile(open(path, "rb"), mode="r")

    def _never(self, *_):
        raise AssertionError

    open_input_stream = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _never
    delete_file = move = copy_file = open_output_stream = open_append_stream = _never


def main(how, folder):
    for number in range(60):
        rows = pa.table({"a": range(number * 300, number * 300 + 300), "s": [str(one) * 20 for one in range(300)]})
        pq.write_table(rows, f"{folder}/{number:03d}.parquet")
    files = ds.dataset(folder, filesystem=fs.PyFileSystem(Slow()), format="parquet")
    for _ in range(8):
        with duckdb.connect() as database:
            database.register("r", files if how == "pyarrow" else scanned(files))
            print(
                database.execute(
                    "SELECT count(*), max(a) FROM r AS x "
                    "WHERE NOT EXISTS (SELECT 1 FROM r AS y WHERE y.s = x.s AND y.a > x.a)"
                ).fetchall()
            )


with tempfile.TemporaryDirectory() as folder:
    main(sys.argv[1], folder)
"""


def asked(how: str, timeout_s: float) -> list[str]:
    """What the process prints."""
    done = subprocess.run(
        [sys.executable, "-c", ASKING, how], capture_output=True, text=True, timeout=timeout_s, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_query_over_files_that_python_opens_comes_to_its_end() -> None:
    assert asked("ours", 120) == ["[(300, 17999)]"] * 8
