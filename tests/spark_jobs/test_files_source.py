"""Portions of a replay as a source: each is opened once for each of its lanes, and the first ones never again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spark_jobs.replay import files_source
from spark_jobs.replay.files_source import FilesReader, clients_up_to, load_portion, save_portion
from spark_jobs.replay.portions import Portion

PORTIONS, LANES = 12, 3


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    for number in range(PORTIONS):
        learned = [(f"client-{number}", "10.0.0.1", [number])]
        save_portion(tmp_path, Portion(number, [], learned, [], number == PORTIONS - 1))
    return tmp_path


def test_what_a_run_reads_grows_with_its_portions_and_not_with_their_square(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[int] = Counter()

    def counted(directory: Path, number: int) -> Portion:
        opened[number] += 1
        return load_portion(directory, number)

    monkeypatch.setattr(files_source, "load_portion", counted)
    reader = FilesReader(str(saved), PORTIONS, LANES)
    for number in range(PORTIONS):
        for partition in reader.partitions({"portion": number}, {"portion": number + 1}):
            list(reader.read(partition))
    assert opened == dict.fromkeys(range(PORTIONS), LANES)


def test_a_portion_that_is_repeated_knows_no_more_than_the_first_time(saved: Path) -> None:
    for number in (0, 3, 9, 2, 9):
        clients = clients_up_to(saved, load_portion(saved, number))
        assert [client for client, _, _ in clients.entries()] == [f"client-{one}" for one in range(number + 1)]
