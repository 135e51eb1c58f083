"""Where the kubelet puts the log of a container: `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/NUMBER.log`.

A container that is started again writes the next number, a pod that is made again another folder; the file before it
stays for a while and does not grow. Whoever follows it must not say that the broker was silent.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def is_continued(path: Path) -> bool:
    """Whether the log at `path` goes on in another file that the kubelet began later."""
    if path.suffix != ".log" or not path.stem.isdecimal():
        return False
    if path.with_stem(str(int(path.stem) + 1)).exists():
        return True
    pod = path.parent.parent
    name = pod.name.rpartition("_")[0]
    if name.count("_") != 1:
        return False
    with suppress(OSError):
        begun_ns = pod.stat().st_mtime_ns
        return any(
            other.stat().st_mtime_ns > begun_ns and other.joinpath(path.parent.name).exists()
            for other in pod.parent.glob(f"{name}_*")
        )
    return False
