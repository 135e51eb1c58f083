"""What the doctor says of the move of recorded groups to the consumer protocol, by the lines of their members."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from ingest.doctor import Level, protocol_migration
from kardia.protocol_migration import HEARTBEAT_MS, POLICY, SESSION_MS
from tests.ingest.doctor.test_doctor import copied

SETTINGS = {POLICY: "disabled", SESSION_MS: "45000", HEARTBEAT_MS: "5000"}


def test_libraries_are_told_by_what_each_announced(tmp_path: Path) -> None:
    """One group of each library; kafka-python and franz-go announce themselves, aiokafka and this sarama do not."""
    found = protocol_migration.examine([copied(tmp_path, "c18_libs-4.1.2")], UTC, None)
    of = {name: [one for one in found if f"group {name}," in one.subject] for name in ("g18kp", "g18fr", "g18ak")}
    assert any("kafka-python/3." in one.sentence and one.level is Level.NOTE for one in of["g18kp"])
    assert any("where its application asks for it" in one.sentence for one in of["g18fr"])
    assert any("announced no library" in one.sentence and one.certainty == "unknown" for one in of["g18ak"])


def test_what_is_so_for_all_groups_is_said_once(tmp_path: Path) -> None:
    found = protocol_migration.examine([copied(tmp_path, "c18_libs-4.1.2")], UTC, SETTINGS)
    about_all = [one for one in found if one.subject == protocol_migration.EVERY]
    assert sorted("RE2" in one.sentence for one in about_all) == [False, True]
    assert any(POLICY in line for one in about_all for line in one.remedy), "it is disabled: what to set"


def test_sessions_assignors_and_static_ids_are_read_from_joins(tmp_path: Path) -> None:
    found = protocol_migration.examine([copied(tmp_path, "c06_static-3.9.2")], UTC, SETTINGS)
    texts = [one.sentence for one in found]
    assert any("static id" in text for text in texts)
    assert any("10 s" in text and "45 s" in text and SESSION_MS in text for text in texts)
    assert any(
        "every 2 s" in text and "5 s" in text and one.certainty == "inferred"
        for one, text in zip(found, texts, strict=True)
    )


@pytest.mark.parametrize("story", ["k01_kill-4.1.2", "k11_migration-4.1.2"])
def test_a_group_that_speaks_it_already_is_not_told_about(tmp_path: Path, story: str) -> None:
    found = protocol_migration.examine([copied(tmp_path, story)], UTC, SETTINGS)
    assert not [one for one in found if one.subject.startswith("group h")]


def test_it_stands_in_the_answer_as_json_with_its_certainty(tmp_path: Path) -> None:
    log = copied(tmp_path, "c18_libs-4.1.2")
    said = CliRunner().invoke(app, ["doctor", "--request-log", str(log), "--log-timezone", "UTC", "-o", "json"])
    found = [one for one in json.loads(said.stdout) if "consumer protocol" in one["subject"]]
    assert {one["certainty"] for one in found} >= {"exact", "unknown"}
    text = CliRunner().invoke(app, ["doctor", "--request-log", str(log), "--log-timezone", "UTC"]).stdout
    assert "if it moves to the consumer protocol" in text
