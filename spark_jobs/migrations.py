"""Steps from the saved state of a release to that of the next, beyond defaults; `state_codec` has the table. Pure.

A step takes a snapshot of the observer as the release before has written it, plain values, and gives it as the release
after writes it. Steps are never changed: the state of each release that is read goes through all steps since.
"""

from __future__ import annotations

from typing import Any

_STREAM = ("complete_to", "alive_to", "since_tick", "begins_at", "ends_at", "heard_from", "usual_gap_ms")
_COUNTS = ("events", "duplicates", "lines", "ignored", "rejected", "gaps", "touched")
_SOURCE = ("end", "tick_end")


def with_names(snapshot: dict[str, Any]) -> dict[str, Any]:
    """26 to 27: what is kept of streams and of sources has names."""
    streams = {}
    for name, (*values, untold) in snapshot["streams"].items():
        kept = dict(zip((*_STREAM, *_COUNTS), (*values, *untold), strict=True))
        streams[name] = kept | {"touched": bool(kept["touched"])}
    sources = {name: dict(zip(_SOURCE, values, strict=True)) for name, values in snapshot["sources"].items()}
    return snapshot | {"streams": streams, "sources": sources}
