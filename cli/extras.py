"""What a verb needs beyond the base distribution, and the sentence where that is not installed.

The extras of `pyproject.toml` as the modules that they bring; a test holds the two side by side. Asked before a verb
begins, so that nothing is half started; looks modules up and loads none. What is in the source folder alone, the demo
and the benchmark, is refused in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

COLLECT = (
    *("confluent_kafka", "kafka", "numpy", "tenacity", "opentelemetry.proto", "google.protobuf", "cramjam"),
    "cryptography",
    *(("inotify_simple",) if sys.platform == "linux" else ()),
)
SERVE = ("pyarrow", "deltalake", "fastapi", "uvicorn", "itsdangerous", "orjson", "sse_starlette")
LIVE = (*COLLECT, *SERVE, "duckdb", "psutil")
SPARK = (*LIVE, "pyspark", "delta", "pandas", "platformdirs")

EXTRAS = {"collect": COLLECT, "serve": SERVE, "live": LIVE, "spark": SPARK}
"""Extra -> modules that a distribution with it has beside those of the base."""

NEEDS = {
    **dict.fromkeys(("collect", "capture", "doctor"), "collect"),
    **dict.fromkeys(("live", "replay"), "live"),
    **dict.fromkeys(("serve", "notify"), "serve"),
    **dict.fromkeys(("stream", "move"), "spark"),
}
"""Verb -> extra without which it does not begin. A question needs `serve` if it is about tables (`cli.asking`), and
`surprises` needs `collect` if it is given logs."""

SOURCE_ONLY = ("demo", "bench")
"""Verbs whose room, of the same name, is in the source folder and not in the wheel."""


def is_there(module: str) -> bool:
    """Whether a module can be loaded."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it is missing
        return False


def lacking(extra: str, what: str, but: Sequence[str] = ()) -> str:
    """Why `what` cannot be done here, and what helps; empty if all of the extra is there. Of `but` nobody asks: this
    process leaves them out, and those that it starts need them."""
    missing = [module for module in EXTRAS[extra] if module not in but and not is_there(module)]
    if not missing:
        return ""
    several = "" if len(missing) == 1 else f" and {len(missing) - 1} more"
    return (
        f"{what} needs {missing[0]}{several}, which is not installed; expected Kardia with its extra `{extra}`; "
        f"install it as you installed Kardia, with `kafka-kardia[{extra}]` in place of `kafka-kardia`, for instance: "
        f"{sys.executable} -m pip install 'kafka-kardia[{extra}]'."
    )


def refused(verb: str) -> str:
    """Why a verb cannot begin in this installation; empty if it can."""
    if verb in SOURCE_ONLY and not is_there(verb):
        return (
            f"kardia {verb}: this is in the source folder only, not in what is installed from a wheel; expected a "
            f"working copy of Kardia; run `make {verb}` in one."
        )
    found = lacking(NEEDS[verb], "it") if verb in NEEDS else ""
    return f"kardia {verb}: {found}" if found else ""
