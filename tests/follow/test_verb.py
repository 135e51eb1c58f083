"""`kardia surprises`: from files to sentences and JSON, with traces that `kardia trace` plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.output import surprising
from kardia.follow import Counts, Surprise, SurpriseClass
from tests.story.conftest import kardia
from tests.support.stories import CORPORA

BUSY = CORPORA / "d01_busy_s202-3.9.2" / "kafka-request.log.gz"


def test_a_healthy_broker_surprises_nobody() -> None:
    said = kardia("surprises", CORPORA / "c04_mpi-4.1.2")
    assert said.code == 0, said
    assert said.out.startswith("212 answers predicted, 0 surprises.\n")
    assert "taken to be Kafka 4.4.0 (recognised)" in said.out


def test_a_release_may_be_named() -> None:
    said = kardia("surprises", CORPORA / "o27_completing-2.0.1", "--kafka-version", "2.0.1")
    assert "Kafka 2.0.1 (as named)" in said.out
    assert kardia("surprises", CORPORA / "o27_completing-2.0.1", "--kafka-version", "twelve").code == 2


def test_json_has_all_and_each_trace_differs_from_the_release(tmp_path: Path) -> None:
    told = kardia("surprises", BUSY, "--json").json()
    assert told["predicted"] + sum(told["unknown"].values()) + len(told["surprises"]) == told["answers"]
    assert sum(one["answers"] for one in told["groups"]) == told["answers"]
    assert told["settings_found"] == {"group.initial.rebalance.delay.ms": 3_000}
    for number, one in enumerate(told["surprises"]):
        assert one["class"] in set(SurpriseClass)
        file = tmp_path / f"{number}.trace"
        file.write_text(one["trace"])
        assert kardia("trace", file).code == 1


def test_without_logs_a_server_is_asked() -> None:
    said = kardia("surprises", "--api", "http://127.0.0.1:1")
    assert said.code == 2
    assert "cannot be asked" in said.err


@pytest.mark.parametrize("number", [1, 2])
def test_a_surprise_is_told_in_short_sentences(number: int) -> None:
    one = Surprise(
        "orders\x1b", "m", 1_800_000_000_123, "Heartbeat", "25 X", "0 NONE", ("order",), SurpriseClass.OWN_MISTAKE, "so"
    )
    counts = Counts(answers=10)
    counts.surprising[one.surprise_class] += number
    told = surprising.Told("3.9.2", False, counts, surprises=[one] * number)
    plural = "s" if number > 1 else ""
    first, *_ = surprising.sentences(told)
    assert first.startswith(f"{10 - number} answers predicted, {number} surprise{plural}, ")
    assert "\x1b" not in "".join(surprising.sentences_of(one, "3.9.2"))
