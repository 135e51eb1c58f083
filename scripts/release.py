"""`make release`: what a release is made of, in `dist/`: the wheel, its list of parts (SBOM), and their digests.

The list of parts is that of `requirements.lock`, in the form of CycloneDX, written by the tool of that project, which
has an environment of its own so that who only works on Kardia does not install it. Publishes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from scripts.install import BUILD_LOCK, REQUIREMENTS, ROOT, SetupError, install_uv, run, say

SBOM_LOCK = ROOT / "scripts" / "sbom.lock"
DIGESTS = "SHA256SUMS"


def release(into: Path) -> list[Path]:
    """Make the files of a release in an empty folder; returns them."""
    shutil.rmtree(into, ignore_errors=True)
    uv = install_uv()
    build = ["--build-constraints", str(BUILD_LOCK)]
    run([*uv, "build", "--wheel", *build, "--out-dir", str(into), str(ROOT)], "building the wheel")
    (wheel,) = into.glob("*.whl")
    parts = into / f"{wheel.stem}.cdx.json"
    environment = into / "sbom-environment"
    run([*uv, "venv", "--quiet", "--python", sys.executable, str(environment)], "making an environment")
    python = environment / "bin" / "python"
    run([*uv, "pip", "sync", "--python", str(python), "--require-hashes", str(SBOM_LOCK)], "fetching cyclonedx-bom")
    written = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(parts)]
    pyproject = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"]
    command = [str(python), "-m", "cyclonedx_py", "requirements", str(REQUIREMENTS), *pyproject, *written]
    run(command, "writing the list of parts")
    shutil.rmtree(environment)
    (into / ".gitignore").unlink(missing_ok=True)  # uv's, against builds that are committed
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (wheel, parts)]
    (into / DIGESTS).write_text("".join(digests), encoding="utf-8")
    return [wheel, parts, into / DIGESTS]


if __name__ == "__main__":
    try:
        for path in release(ROOT / "dist"):
            say(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    except SetupError as error:
        sys.exit(f"kardia release: {error}")
