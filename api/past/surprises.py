"""Answers that are not as the model of the release predicts, as they are answered (`api.past.by_batch` reads them)."""

from __future__ import annotations

from typing import Any

from api.answers import as_dicts
from kardia.story import surprises


def surprise(row: Any) -> dict[str, Any]:
    """A surprise as it is answered."""
    return {
        "href": as_dicts.group_href(row.cluster_id, row.group_id),
        **as_dicts.columns("surprises", row),
        "text": surprises.text(row._asdict()),
    }
