"""Writes the table of docs/request-logging.md from what the benchmark measured:

    kardia bench --only request-log --json request-log.json
    python -m bench.request_log_page request-log.json docs/request-logging.md

Numbers of a machine that did something else meanwhile are refused: the load before has to be below `LOAD_MAX`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- begin: cost of the request log -->", "<!-- end: cost of the request log -->"

LOAD_MAX = 0.7
"""Load average of a machine that is idle but for whoever sits before it."""


def table(measured: dict[str, Any]) -> str:
    """The machine in a sentence, and a row for each rate and mode. Raises `ValueError` for a machine that was busy, or
    where nothing of the request log was measured."""
    machine = measured["machine"]
    found = [one for one in measured["results"] if one["stage"] == "request-log"]
    if not found:
        raise ValueError("nothing of the stage request-log was measured; run `kardia bench --only request-log`")
    if machine["load_before"] > LOAD_MAX:
        raise ValueError(
            f"the machine was busy, load {machine['load_before']}; expected at most {LOAD_MAX}: run it idle"
        )
    lines = [
        f"Measured on {machine['cores']} cores ({machine['processor']}) with {machine['memory_gb']:.0f} GB that did "
        "nothing else; sender, three consumers and the broker share them. Medians over the rounds; “to off” is the "
        "median of the pairs.",
        "",
        "| produce requests, request log | produced per s | read per s | CPU of the broker | CPU per request | to off "
        "| p99 of produce | log |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        more = one["more"]
        lines.append(
            f"| {one['what']} | {more['produced_per_s']:,} | {more['read_per_s']:,} | {one['value']:.0f} % of a core "
            f"| {one['cpu_us']:.0f} µs | {more['cpu_per_request_to_off']:.2f} | {more['p99_ms']:.1f} ms "
            f"| {more['log_kb_per_s']:,} kB/s |"
        )
    return "\n".join(lines)


def main() -> int:
    """Write the page."""
    measured, page = (Path(name) for name in sys.argv[1:3])
    text = page.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    try:
        made = table(json.loads(measured.read_text(encoding="utf-8")))
    except ValueError as error:
        print(f"{measured}: {error}", file=sys.stderr)
        return 1
    page.write_text(f"{text[:begin]}\n{made}\n{text[end:]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
