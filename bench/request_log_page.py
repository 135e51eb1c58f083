"""Writes the numbers of docs/request-logging.md from what the benchmark measured, and all that follows from them:

    kardia bench --only request-log --json request-log.json
    python -m bench.request_log_page request-log.json docs/request-logging.md

The table; which of two texts about log4j's queue holds; if the queue makes it cheaper, the configurations of the page
with it; and the file from which `kardia doctor` takes the cost and its lines (`ingest/doctor/cost.py`). Numbers of a
machine that did something else meanwhile are refused: the load before has to be below `LOAD_MAX`.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from bench.request_log import LOAD_MAX, SYNCHRONOUS
from bench.request_log_load import AS_FAST_AS_IT_GOES
from ingest.doctor import cost, remedies

BEGIN, END = "<!-- begin: cost of the request log -->", "<!-- end: cost of the request log -->"
QUEUE_BEGIN, QUEUE_END = "<!-- begin: asynchronous -->", "<!-- end: asynchronous -->"

DEARER = 1.05
"""CPU per request that the queue may take more, in the median, and still be called no dearer: turns of one mode differ
by as much."""

CPU_LESS, MORE_PRODUCED, P99_LESS = 0.95, 1.05, 0.9
"""Medians at which something is won, if every round says the same."""

WITH_QUEUE = """\
The queue makes it cheaper here (last row of each rate), so the configurations above have one: `Async`, of log4j 2. A
thread of its own writes the file; the broker's threads go on after a line is in the queue. When 8,192 lines wait, they
wait as well: nothing is dropped. A broker that is killed takes what is in the queue along, as it does with the requests
that it had not answered. log4j 1 (before 4.0) cannot be given a queue in a properties file."""

WITHOUT_QUEUE = """\
The queue of log4j 2 (`Async`) was measured as well (last row of each rate) and wins nothing that every round shows, so
the configurations above have none: what costs is to put requests into words, which the broker's threads do before a
line comes to the queue."""


def table(measured: dict[str, Any]) -> str:
    """The machine in a sentence, and a row for each rate and mode. Raises `ValueError` for a machine that was busy, or
    where nothing of the request log was measured."""
    machine = measured["machine"]
    found = _of_stage(measured)
    if machine["load_before"] > LOAD_MAX:
        raise ValueError(
            f"the machine was busy, load {machine['load_before']}; expected at most {LOAD_MAX}: run it idle"
        )
    lines = [
        f"Measured on {machine['cores']} cores ({machine['processor']}) with {machine['memory_gb']:.0f} GB that did "
        "nothing else; sender, three consumers and the broker share them. Medians over the rounds, in brackets the "
        "least and the most; “to off” is of the pairs of each round.",
        "",
        "| produce requests, request log | produced per s | read per s | CPU of the broker | CPU per request | to off "
        "| p99 of produce | log |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        more = one["more"]
        to_off, p99 = _spread(more, "cpu_per_request_to_off", 2), _spread(more, "p99_ms", 1)
        lines.append(
            f"| {one['what']} | {more['produced_per_s']:,} | {more['read_per_s']:,} | {one['value']:.0f} % of a core "
            f"| {one['cpu_us']:.0f} µs | {to_off} | {p99} ms | {more['log_kb_per_s']:,} kB/s |"
        )
    return "\n".join(lines)


def _spread(more: dict[str, Any], key: str, digits: int) -> str:
    least, most = more[f"{key}_least"], more[f"{key}_most"]
    return f"{more[key]:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


def _of_stage(measured: dict[str, Any]) -> list[dict[str, Any]]:
    found = [one for one in measured["results"] if one["stage"] == "request-log"]
    if not found:
        raise ValueError("nothing of the stage request-log was measured; run `kardia bench --only request-log`")
    return found


def queue_wins(measured: dict[str, Any]) -> bool:
    """Whether log4j's queue is worth its lines: at no rate dearer, and somewhere better in every round."""
    beside = [one["more"] for one in _of_stage(measured) if "cpu_to_synchronous" in one["more"]]
    if not beside or any(statistics.median(one["cpu_to_synchronous"]) > DEARER for one in beside):
        return False
    fastest = [one for one in beside if one["rate"] == AS_FAST_AS_IT_GOES]
    return (
        any(max(one["cpu_to_synchronous"]) < 1 and _median(one, "cpu") <= CPU_LESS for one in beside)
        or any(min(one["produced_to_synchronous"]) > 1 and _median(one, "produced") >= MORE_PRODUCED for one in fastest)
        or any(max(one["p99_to_synchronous"]) < 1 and _median(one, "p99") <= P99_LESS for one in beside)
    )


def _median(more: dict[str, Any], what: str) -> float:
    return float(statistics.median(more[f"{what}_to_synchronous"]))


def costs(measured: dict[str, Any]) -> dict[str, Any]:
    """What `kardia doctor` says of it: least and most of the medians of all rates."""
    found = _of_stage(measured)
    queue = queue_wins(measured)

    def of(mode: str) -> list[float]:
        some = [one["more"]["cpu_per_request_to_off"] for one in found if one["more"]["mode"] == mode]
        return [min(some), max(some)]

    with_fetch = of(f"{SYNCHRONOUS}, asynchronous" if queue else SYNCHRONOUS)
    return {"group_apis": of("group APIs"), "with_fetch": with_fetch, "asynchronous": queue}


def page(text: str, measured: dict[str, Any]) -> str:
    """The page with the numbers, and what they choose."""
    queue = queue_wins(measured)
    text = _between(text, BEGIN, END, table(measured))
    text = _between(text, QUEUE_BEGIN, QUEUE_END, WITH_QUEUE if queue else WITHOUT_QUEUE)
    head, *blocks = text.split("```yaml\n")
    for number, block in enumerate(blocks):
        lines, fence, rest = block.partition("```")
        blocks[number] = (remedies.with_queue(lines) if queue and remedies.APPENDER in lines else lines) + fence + rest
    return "```yaml\n".join([head, *blocks])


def _between(text: str, begin: str, end: str, made: str) -> str:
    first, last = text.index(begin) + len(begin), text.index(end)
    return f"{text[:first]}\n{made}\n{text[last:]}"


def main() -> int:
    """Write the page, and the file of the doctor."""
    measured, place = (Path(name) for name in sys.argv[1:3])
    try:
        found = json.loads(measured.read_text(encoding="utf-8"))
        made = page(place.read_text(encoding="utf-8"), found)
    except ValueError as error:
        print(f"{measured}: {error}", file=sys.stderr)
        return 1
    place.write_text(made, encoding="utf-8")
    told = Path(cost.__file__).with_name(cost.FILE)
    told.write_text(json.dumps(costs(found)) + "\n", encoding="utf-8")
    print(
        f"Written: {place}, {told}. The lines of the configurations have {'the' if queue_wins(found) else 'no'} queue."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
