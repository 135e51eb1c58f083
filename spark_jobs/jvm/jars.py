"""Brings the jar files of one set of the lock to this machine, each verified by its sha256, and tells where they are.

`ensure("spark")` is the whole interface. Files live in the cache under their own sha256; the second call finds them
there and needs no network. With `KARDIA_JARS` set to a directory nothing is fetched: the files must be in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import portalocker

from spark_jobs.jvm import ivy, java
from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.errors import JvmError
from spark_jobs.jvm.lock import Artifact, sets

OFFLINE_VARIABLE = "KARDIA_JARS"
"""A directory that holds the jar files; with it set, nothing is fetched."""

_ROOM_FACTOR = 3
"""Room needed while fetching, as a multiple of the bytes missing: Ivy's copy, the retrieved copy, and slack."""


def ensure(name: str, cache: Path | None = None) -> list[Path]:
    """Paths of the jars of set `name`, in the lock's order, every one verified in this call."""
    known = sets()
    if name not in known:
        raise JvmError(f"There is no set of jars {name!r} in jars.lock.json; there are {', '.join(sorted(known))}.")
    artifacts = known[name]
    folder = os.environ.get(OFFLINE_VARIABLE, "")
    if folder:
        return _from_folder(artifacts, Path(folder).expanduser(), name)
    root = (cache or cache_dir()) / "jars"
    missing = [a for a in artifacts if not verified(_place(root, a), a)]
    if missing:
        root.mkdir(parents=True, exist_ok=True)
        # Two processes of one user may start at once; the second waits and then finds everything here.
        with portalocker.Lock(root / ".lock", timeout=ivy.FETCH_TIMEOUT_S):
            missing = [a for a in artifacts if not verified(_place(root, a), a)]
            if missing:
                _fetch(missing, root, name)
    return [_place(root, a) for a in artifacts]


def verified(path: Path, artifact: Artifact) -> bool:
    """Whether the file is there and is the one the lock means."""
    try:
        if path.stat().st_size != artifact.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256
    except FileNotFoundError:
        return False


def _place(root: Path, artifact: Artifact) -> Path:
    return root / artifact.sha256[:16] / artifact.file_name


def _from_folder(artifacts: Sequence[Artifact], folder: Path, name: str) -> list[Path]:
    wrong = [a for a in artifacts if not verified(folder / a.file_name, a)]
    if wrong:
        listed = ", ".join(a.file_name for a in wrong[:5]) + (" and others" if len(wrong) > 5 else "")
        raise JvmError(
            f"{OFFLINE_VARIABLE}={folder} lacks {len(wrong)} of {len(artifacts)} jars of {name!r}, or has other bytes "
            f"than the lock says: {listed}. Copy them there, or unset {OFFLINE_VARIABLE} to have them fetched."
        )
    return [folder / a.file_name for a in artifacts]


def _fetch(missing: Sequence[Artifact], root: Path, name: str) -> None:
    needed = sum(a.size for a in missing)
    free = shutil.disk_usage(root).free
    if free < needed * _ROOM_FACTOR:
        raise JvmError(
            f"The disk of {root} has {free // 1_000_000} MB left and the jars of the set {name!r} need "
            f"{needed * _ROOM_FACTOR // 1_000_000} MB while they are fetched. Free some, or set KARDIA_CACHE to a "
            "directory with room."
        )
    runtime = java.find()
    work = root / ".ivy"
    arrived = root / ".arrived"
    with _Progress(f"Fetching {len(missing)} jars ({name})", needed) as on_bytes:
        ivy.retrieve(missing, work, arrived, runtime, on_bytes)
    _accept(missing, arrived, root)
    # Ivy's copies have served: what counts is the verified file under its own hash.
    shutil.rmtree(arrived, ignore_errors=True)
    shutil.rmtree(work / "cache", ignore_errors=True)


def _accept(missing: Iterable[Artifact], arrived: Path, root: Path) -> None:
    for artifact in missing:
        came = arrived / artifact.group / artifact.file_name
        if not verified(came, artifact):
            got = "nothing came" if not came.exists() else f"{came.stat().st_size} bytes that hash differently came"
            # A wrong file must not be found again by the next run.
            shutil.rmtree(arrived, ignore_errors=True)
            shutil.rmtree(root / ".ivy" / "cache", ignore_errors=True)
            raise JvmError(
                f"{artifact.coordinate}: {got}; expected {artifact.size} bytes with sha256 {artifact.sha256}. The "
                f"repository or something on the way to it serves other files; check {ivy.MIRROR_VARIABLE} and the "
                "proxy, then run again."
            )
        place = _place(root, artifact)
        place.parent.mkdir(parents=True, exist_ok=True)
        came.replace(place)


class _Progress:
    """A progress bar on a terminal, one line per tenth elsewhere, so that a log shows movement as well."""

    def __init__(self, title: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

        self._title, self._total, self._tenth = title, total, 0
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Callable[[int], None]:
        self._bar.start()
        self._say(0)
        return self._on_bytes

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _on_bytes(self, here: int) -> None:
        here = min(here, self._total)
        self._bar.update(self._task, completed=here)
        if here * 10 // self._total > self._tenth:
            self._tenth = here * 10 // self._total
            self._say(here)

    def _say(self, here: int) -> None:
        if not self._console.is_terminal:
            self._console.print(f"{self._title}: {here / 1e6:.1f} of {self._total / 1e6:.1f} MB", highlight=False)
