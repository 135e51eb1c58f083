"""What the request log was measured to cost a broker, if it was: the file that `bench.request_log_page` writes.

Holds no number itself. Truth: `kardia bench --only request-log` on a machine that does nothing else.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import NamedTuple

FILE = "request_log_cost.json"
"""Beside this file; not there until somebody has measured."""


class Measured(NamedTuple):
    """CPU of a broker per request, as a multiple of what it takes with the log off: least and most of all rates."""

    group_apis: tuple[float, float]
    with_fetch: tuple[float, float]
    asynchronous: bool
    """Whether log4j's queue made it cheaper; then the lines of the configuration have it."""

    def sentence(self) -> str:
        """For whoever has to decide."""
        apart = (f"{least:.2f} to {most:.2f}" for least, most in (self.group_apis, self.with_fetch))
        return (
            "Measured: {} times the broker's CPU per request for the group APIs, {} times with FETCH, by its request "
            "rate (docs/request-logging.md).".format(*apart)
        )


@cache
def measured() -> Measured | None:
    """None where it was not measured."""
    place = resources.files(__package__).joinpath(FILE)
    return parsed(place.read_text(encoding="utf-8")) if place.is_file() else None


def parsed(text: str) -> Measured:
    """The content of the file."""
    found = json.loads(text)
    least_and_most = {key: (float(found[key][0]), float(found[key][1])) for key in ("group_apis", "with_fetch")}
    return Measured(**least_and_most, asynchronous=bool(found["asynchronous"]))
