"""The wheel, built once for a file of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.setup import installing


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this folder."""
    return installing.built(tmp_path_factory.mktemp("wheel"))
