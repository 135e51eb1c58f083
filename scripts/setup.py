"""First step of every make target: finds a Python that Kardia runs on and hands over to `install`.

Written so that any Python since 3.6 can still read it and say that it is too old. Standard library only.
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 13)
"""As `requires-python` in pyproject.toml says: pyspark and pyarrow have been run on these."""


def fits(version: "tuple[int, int]") -> bool:
    """Whether a (major, minor) pair is supported."""
    return OLDEST <= version <= NEWEST


def other_python() -> str:
    """A supported Python elsewhere on the path, or empty."""
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.call([found, "-c", ""], stderr=subprocess.DEVNULL) == 0:
            return found
    return ""


def main() -> int:
    """Install with this Python if it fits, else with another one, else say what is missing."""
    here = os.path.abspath(__file__)  # noqa: PTH100 - one module less to rely on
    if fits(sys.version_info[:2]):
        sys.path.insert(0, os.path.dirname(os.path.dirname(here)))  # noqa: PTH120
        from scripts.install import main as install

        return install()
    found = other_python()
    if found:
        return subprocess.call([found, here])
    sys.stderr.write(too_old(sys.version_info[:2], sys.executable))
    return 1


def too_old(version: "tuple[int, int]", executable: str) -> str:
    """The sentence for a machine without a supported Python."""
    return (
        f"kardia set-up: this is Python {version[0]}.{version[1]} ({executable}), and Kardia needs 3.11, 3.12 or 3.13; "
        "none of them is on the path. Install one of them and run `make` again, or name it: "
        "make PYTHON=/path/to/python3.11\n"
    )


if __name__ == "__main__":
    sys.exit(main())
