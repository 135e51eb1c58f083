"""Print how many bytes a line of each API takes, from the recorded stories in `tests/corpora`."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

CORPORA = Path(__file__).resolve().parent.parent / "tests" / "corpora"
NAME = re.compile(rb'"requestApiKeyName":"([A-Z_]+)"')


def sizes() -> dict[str, list[int]]:
    """API -> bytes of each of its lines."""
    found: dict[str, list[int]] = defaultdict(list)
    for path in sorted(CORPORA.glob("*/kafka-request*.log.gz")):
        with gzip.open(path, "rb") as lines:
            for line in lines:
                name = NAME.search(line)
                if name:
                    found[name[1].decode()].append(len(line))
    return found


if __name__ == "__main__":
    table = Table("API", "lines", "bytes a line, mean")
    for api, lengths in sorted(sizes().items()):
        table.add_row(api, f"{len(lengths):,}", f"{sum(lengths) / len(lengths):,.0f}")
    Console().print(table)
