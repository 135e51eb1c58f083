"""Lines of server.log that say otherwise than the requests, as they are answered (`api.past.by_batch` reads them)."""

from __future__ import annotations

from typing import Any

from api.answers import as_dicts
from kardia.story import disagreements


def line(row: Any) -> dict[str, Any]:
    """A disagreement as it is answered."""
    return {
        "href": as_dicts.group_href(row.cluster_id, row.group_id),
        **as_dicts.columns("disagreements", row),
        "text": disagreements.text(row._asdict()),
    }
