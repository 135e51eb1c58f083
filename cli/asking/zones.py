"""The zone of what people type: the one they name, or this machine's."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

LOCALTIME = Path("/etc/localtime")
"""The zone of a machine of Linux or macOS, in the form of tzfile(5)."""


def machine_zone() -> tzinfo:
    """That of `TZ`, else that of the machine; UTC where neither says one, as in most containers."""
    named = os.environ.get("TZ", "").removeprefix(":")
    try:
        if named:
            return ZoneInfo(named)
        with LOCALTIME.open("rb") as opened:
            return ZoneInfo.from_file(opened, key="this machine's zone")
    except (OSError, ValueError, KeyError):
        return UTC
