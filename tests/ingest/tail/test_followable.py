"""A log that a collector cannot follow is refused with a sentence before anything of it is read, however it is wrapped
or compressed; and said by the doctor."""

from __future__ import annotations

import gzip
from datetime import UTC
from pathlib import Path

import pytest

from ingest.assembly import SystemClock, run
from ingest.doctor import Level
from ingest.doctor.logs import examine
from ingest.errors import SettingsError
from ingest.settings import CollectSettings
from ingest.tail.followable import HEAD_BYTES, Followable, why_not
from tests.ingest.archives import wrapping
from tests.ingest.lines import line

FOLLOWED = ("plain", "docker", "cri")
WRAPPED = [name for name in wrapping.FORMS if name not in FOLLOWED]
SERVER = b"[2026-11-20 10:00:00,000] INFO [GroupCoordinator 1]: Startup complete. (kafka.coordinator.group.X)"
LINES = {"request": (line(1), line(2)), "server": (SERVER, SERVER), "long": (b"x" * 200_000, line(2))}


@pytest.mark.parametrize("form", FOLLOWED)
def test_a_log_of_a_broker_or_a_container_can_be_followed(tmp_path: Path, form: str) -> None:
    for name, lines in LINES.items():
        (tmp_path / name).write_bytes(wrapping.FORMS[form](lines))
        assert why_not(tmp_path / name) == ""
        Followable().check(tmp_path / name)


@pytest.mark.parametrize("form", FOLLOWED)
def test_the_doctor_reads_what_can_be_followed(tmp_path: Path, form: str) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(wrapping.FORMS[form](LINES["request"]))
    assert any(found.sentence.startswith("2 of the last 2 lines are requests") for found in examine(path, UTC))


@pytest.mark.parametrize("kind", ["request", "server"])
@pytest.mark.parametrize("form", WRAPPED)
def test_a_wrapped_log_is_refused_with_what_to_do_instead(tmp_path: Path, form: str, kind: str) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(wrapping.FORMS[form](LINES[kind]))
    with pytest.raises(SettingsError, match=r"lines of this log are wrapped \(.*0\.log.*kardia replay"):
        Followable().check(path)
    (finding,) = examine(path, UTC, server=kind == "server")
    assert finding.level is Level.BAD
    assert "a collector cannot follow it, a replay can read it" in finding.sentence


def test_a_log_with_something_before_each_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_bytes(wrapping.plain([b"kafka-1  | " + one for one in LINES["server"]]))
    with pytest.raises(SettingsError, match="text with a prefix"):
        Followable().check(path)


def test_a_compressed_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.log.1.gz"
    path.write_bytes(gzip.compress(wrapping.plain(LINES["server"])))
    with pytest.raises(SettingsError, match="compressed"):
        Followable().check(path)


def test_a_log_that_comes_later_is_looked_at_when_its_first_line_is_whole(tmp_path: Path) -> None:
    path, followable = tmp_path / "0.log", Followable()
    followable.check(path)
    wrapped = wrapping.journal_json(LINES["request"])
    for size in (0, 10, wrapped.index(b"\n")):
        path.write_bytes(wrapped[:size])
        followable.check(path)
    path.write_bytes(wrapped)
    with pytest.raises(SettingsError, match="JSON, MESSAGE"):
        followable.check(path)


@pytest.mark.parametrize("size", [HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1])
def test_a_first_line_without_end_is_known_at_the_bound(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    assert why_not(path) == (None if size < HEAD_BYTES else "")


def test_a_collector_says_it_before_it_looks_for_a_broker(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(wrapping.journal_json(LINES["server"]))
    settings = CollectSettings(
        server_log=(str(path),),
        broker="b:1",
        log_timezone="UTC",
        bootstrap_server="127.0.0.1:1",
        positions=tmp_path / "p",
    )
    with pytest.raises(SettingsError, match="wrapped"):
        run(settings, SystemClock(), lambda: True, print)


def test_what_is_known_is_not_opened_again(tmp_path: Path) -> None:
    path, followable = tmp_path / "a", Followable()
    path.write_bytes(wrapping.plain(LINES["request"]))
    followable.check(path)
    path.write_bytes(wrapping.journal_json(LINES["request"]))
    followable.check(path)


def test_what_comes_to_lie_beside_the_logs_is_left_out_and_said_once(tmp_path: Path) -> None:
    """A rotated log is compressed while a collector runs, and a pattern finds it."""
    path, followable, said = tmp_path / "server.log.1.gz", Followable(), list[str]()
    path.write_bytes(gzip.compress(wrapping.plain(LINES["server"])))
    assert not followable.takes(path, said.append)
    assert not followable.takes(path, said.append)
    (sentence,) = said
    assert "left out: the log is compressed" in sentence
    assert str(path) in sentence
    (tmp_path / "server.log").write_bytes(wrapping.plain(LINES["server"]))
    assert followable.takes(tmp_path / "server.log", said.append)
    assert len(said) == 1


def test_an_id_with_line_breaks_does_not_make_a_log_one_that_is_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(SERVER + b"\n" + 9 * (b"forged " + SERVER + b"\n"))
    assert why_not(path) == ""
