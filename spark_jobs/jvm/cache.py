"""Where fetched files live: one directory per user, moved by `KARDIA_CACHE`. Creates nothing."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`KARDIA_CACHE` if set, else the user's cache directory as the platform defines it."""
    chosen = os.environ.get("KARDIA_CACHE", "")
    if chosen:
        return Path(chosen).expanduser().resolve()
    from platformdirs import user_cache_path  # here, because the set-up finds Java before anything is installed

    return Path(user_cache_path("kardia"))
