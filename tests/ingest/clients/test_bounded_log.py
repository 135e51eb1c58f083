"""So many records of one kind in a window, then how many more there were; other kinds are not held back."""

from __future__ import annotations

import logging

import pytest

from ingest.clients.bounded_log import KEPT, KINDS_MAX, WINDOW_S, Bounded


class Written(logging.Handler):
    """Keeps the texts of records."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> tuple[logging.Logger, list[str]]:
    written = Written()
    written.addFilter(Bounded(clock))
    logger = logging.Logger("test")
    logger.addHandler(written)
    return logger, written.texts


@pytest.mark.parametrize(("count", "written"), [(KEPT - 1, KEPT - 1), (KEPT, KEPT), (KEPT + 1, KEPT), (10_000, KEPT)])
def test_of_one_kind_so_many_are_written(log: tuple[logging.Logger, list[str]], count: int, written: int) -> None:
    logger, texts = log
    for number in range(count):
        logger.warning("table.refresh.failed table=%s", number)
    assert len(texts) == written
    logger.warning("another kind")
    assert texts[-1] == "another kind"


def test_the_next_one_says_how_many_were_left_out(log: tuple[logging.Logger, list[str]], clock: Clock) -> None:
    logger, texts = log
    for _ in range(KEPT + 7):
        logger.warning("torn %s", "members")
    clock.now_s = WINDOW_S
    logger.warning("torn %s", "members")
    assert texts[-1] == "torn members (7 more like it were left out)"
    logger.warning("torn %s", "members")
    assert texts[-1] == "torn members"


def test_kinds_have_a_bound(log: tuple[logging.Logger, list[str]]) -> None:
    logger, texts = log
    for number in range(3 * KINDS_MAX):
        logger.warning(f"kind {number}")
    assert len(texts) == 3 * KINDS_MAX
    [bounded] = logger.handlers[0].filters
    assert isinstance(bounded, Bounded)
    assert len(bounded._kinds) == KINDS_MAX


def test_the_first_values_may_belong_to_the_kind(clock: Clock) -> None:
    written = Written()
    written.addFilter(Bounded(clock, values=1))
    logger = logging.Logger("test")
    logger.addHandler(written)
    for number in range(KEPT + 5):
        for client in ("one", "other"):
            logger.warning("%s failed: %s", client, number)
    assert len(written.texts) == 2 * KEPT
