"""Packs what executors need into one archive: Kardia's own packages and the libraries they import, as installed here.

    python -m spark_jobs.executor_archive executors.tar.gz

A folder of packages, not a virtual environment: nothing in it has a path of this machine, so it works wherever it is
unpacked (PYTHONPATH). The libraries are those that run here, so driver and executors have the same; compiled ones fit
machines of the same kind (system, processor, C library) and Python of the same minor version. PySpark is not in it:
the workers have Spark's own.
"""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import kardia

ROOMS = ("spark_jobs", "ingest", "stores", "kardia")
"""Our packages that run in executors: what `spark_jobs` may import."""

LIBRARIES = ("msgspec", "numpy", "pandas", "pyarrow", "protobuf", "deltalake", "duckdb", "confluent-kafka")
"""What they import, PySpark excepted; what these need themselves comes along."""

LEVEL = 1
"""Of gzip: half the size in a tenth of the time of the highest."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LEFT_OUT = ("__pycache__", "tests")


def needed(names: tuple[str, ...] = LIBRARIES) -> list[metadata.Distribution]:
    """The libraries and everything that they require here."""
    found: dict[str, metadata.Distribution] = {}
    asked = list(names)
    while asked:
        name = asked.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name in names:
                raise
            continue  # asked for on other systems only
        for requirement in found[name].requires or ():
            match = _NAME.match(requirement)
            if match and "extra ==" not in requirement:
                asked.append(match[0])
    return [found[name] for name in sorted(found)]


def files() -> Iterator[tuple[Path, str]]:
    """(file, name in the archive) of everything."""
    root = Path(kardia.__file__).resolve().parent.parent
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, str(path.relative_to(root))
    for distribution in needed():
        for file in distribution.files or ():
            if file.parts[0] not in ("..", "bin") and not set(_LEFT_OUT) & set(file.parts):
                yield Path(str(distribution.locate_file(file))), str(file)


def pack(target: Path) -> int:
    """Write the archive; its size in bytes. An archive that was there is replaced as a whole."""
    fresh = target.with_name(f"{target.name}.new")
    with tarfile.open(fresh, "w:gz", compresslevel=LEVEL) as archive:
        for path, name in files():
            if path.is_file():
                archive.add(path, name, recursive=False)
    fresh.replace(target)
    return target.stat().st_size


def main() -> None:
    """Pack as the command line says."""
    parser = argparse.ArgumentParser(description="Pack Kardia and its libraries for the executors of a Spark cluster.")
    parser.add_argument("archive", type=Path, help="file to write, NAME.tar.gz")
    target = parser.parse_args().archive
    if not target.name.endswith((".tar.gz", ".tgz")):
        parser.error("the name must end in .tar.gz: Spark unpacks an archive by its name")
    size = pack(target)
    sys.stdout.write(f"{target}: {size / 1e6:.0f} MB for Python {sys.version_info.major}.{sys.version_info.minor}\n")


if __name__ == "__main__":
    main()
