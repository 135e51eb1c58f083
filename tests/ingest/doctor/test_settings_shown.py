"""Settings that answers show, beside what the brokers say of themselves: of recorded logs."""

from __future__ import annotations

import gzip
from datetime import UTC
from pathlib import Path

import pytest

from ingest.doctor import Level, settings_shown
from tests.story.conftest import kardia
from tests.support.stories import CORPORA
from tests.truth.follow.measured import HEALTHY, meta_of

DELAY = "group.initial.rebalance.delay.ms"


def log_of(name: str, directory: Path) -> Path:
    path = directory / f"{name}.log"
    path.write_bytes(gzip.decompress((CORPORA / name / "kafka-request.log.gz").read_bytes()))
    return path


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({DELAY: "1000"}, Level.GOOD, "the brokers say 1000"),
        ({DELAY: "0"}, Level.BAD, "and the brokers say 0"),
        ({}, Level.NOTE, "nobody was asked"),
        (None, Level.NOTE, "nobody was asked"),
    ],
)
def test_the_delay_that_answers_show_is_held_against_what_the_brokers_say(
    settings: dict[str, str] | None, level: Level, words: str, tmp_path: Path
) -> None:
    found = settings_shown.examine([log_of("c04_mpi-4.1.2", tmp_path)], UTC, settings)
    [finding] = [one for one in found if one.sentence.startswith(f"{DELAY}=1000")]
    assert (finding.level, finding.certainty) == (level, "inferred")
    assert words in finding.sentence
    assert bool(finding.remedy) == (level is Level.BAD)


def test_of_logs_that_are_not_there_or_show_no_request_nothing_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "empty.log"
    empty.write_text("")
    assert settings_shown.examine([tmp_path / "none.log", empty], UTC, None) == []


def test_the_doctor_shows_it(tmp_path: Path) -> None:
    said = kardia("doctor", "--request-log", log_of("c04_mpi-4.1.2", tmp_path), "--log-timezone", "UTC", "-o", "json")
    shown = [one for one in said.json() if one["subject"] == settings_shown.SUBJECT]
    assert [one["sentence"].split("=")[0] for one in shown] == [DELAY]


@pytest.mark.parametrize("name", HEALTHY)
def test_of_no_recorded_broker_the_answers_show_another_value_than_it_had(name: str, tmp_path: Path) -> None:
    written = dict(line.partition("=")[::2] for line in meta_of(name)["server_properties"])
    for finding in settings_shown.examine([log_of(name, tmp_path)], UTC, written):
        assert finding.level is not Level.BAD, finding
