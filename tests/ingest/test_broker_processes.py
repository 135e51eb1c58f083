"""Which process of a broker wrote a log, by the connections of all its clients."""

from __future__ import annotations

from typing import Any

import pytest

from ingest.broker_processes import Processes, summary_of
from kardia.events import Event, Kind
from tests.support.scene import START, Scene

SILENT = [START + 20_000, START + 60_000]
"""A silence of the whole log, after some minutes in which it had lines."""


class Log:
    """A broker's log: who was heard by which connection, and what that shows."""

    def __init__(self, *, threads: bool = False) -> None:
        self._scene = Scene(coordinator="java" if threads else "scala")
        self._threads = threads

    def heard(self, at: float, member: str, number: int, *, since: float | None = None, thread: int = 0) -> None:
        """A heartbeat by a connection; `since`: when it arrived."""
        name = f"{thread}-{number}" if self._threads else str(number)
        self._scene.heartbeat(at, member, since=since, connection=f"10.0.0.1:9092-10.0.0.9:{4000 + number}-{name}")

    def joins(self, at: float, client: str, number: int) -> None:
        """A first JoinGroup, without a member id."""
        connection = f"10.0.0.1:9092-10.0.0.9:{4000 + number}-{number}"
        self._scene._event(
            Kind.JOIN, at, client_id=client, connection=connection, error_code=79, detail={"assigned_member_id": "new"}
        )

    def steady(self, *members: tuple[str, int], until: float = 20_001) -> None:
        """Heartbeats every 3 s up to the silence."""
        for at in range(2_000, int(until), 3_000):
            for member, number in members:
                self.heard(at, member, number)

    def shows(self, silences: list[list[float]]) -> dict[str, Any]:
        """What ticks tell, the log read in one piece."""
        processes = Processes()
        processes.take(summary_of(self._scene.events, (), silences), silences)
        found: dict[str, Any] = processes.signs()["processes"]
        return found

    def events(self) -> list[Event]:
        return self._scene.events


def relative(rows: list[list[float]]) -> list[tuple[float, float, float]]:
    return [(row[0] - START, row[1] - START, row[2] - START) for row in rows]


def test_a_lower_number_of_any_client_shows_a_restart() -> None:
    log = Log()
    log.steady(("a", 40), ("b", 41))
    log.heard(61_000, "b", 3)
    assert relative(log.shows([SILENT])["restarts"]) == [(20_000, 60_000, 61_000)]


def test_a_connection_from_before_that_goes_on_shows_the_same_process() -> None:
    log = Log()
    log.steady(("a", 40), ("b", 41))
    log.heard(60_001, "b", 41)
    log.heard(61_000, "a", 44)  # a client that gave up waiting, and came back
    shown = log.shows([SILENT])
    assert relative(shown["went_on"]) == [(20_000, 60_000, 60_001)]
    assert "restarts" not in shown


def test_a_silence_in_which_nobody_was_due_is_no_standstill() -> None:
    log = Log()
    for at in range(0, 40_001, 8_000):
        log.heard(at, "a", 40)
    silences = [[START + at, START + at + 8_000] for at in range(0, 40_000, 8_000)]
    on_time = [row[3] for row in log.shows(silences)["went_on"]]
    assert on_time[1:] == [1.0] * 4


def test_a_join_without_an_id_counts_as_its_clients() -> None:
    """Everybody who comes back has a new connection: then the broker was started again, though nobody has its id."""
    log = Log()
    log.steady(("a", 4), ("b", 5))
    log.joins(61_000, "a", 2)
    log.joins(65_000, "b", 3)
    assert relative(log.shows([SILENT])["restarts"]) == [(20_000, 60_000, 64_500)]


@pytest.mark.parametrize("number", [39, 40])
def test_numbers_that_go_on_rising_show_the_same_process(number: int) -> None:
    log = Log()
    log.steady(("a", 40))
    log.joins(61_000, "new", number)
    log.joins(65_000, "newer", number + 1)
    shown = log.shows([SILENT])
    assert bool(shown.get("went_on")) is (number >= 40)
    assert "restarts" not in shown


def test_numbers_that_go_on_rising_stand_against_a_restart() -> None:
    log = Log()
    log.steady(("a", 40))
    log.heard(61_000, "a", 41)
    log.heard(66_000, "a", 41)
    assert log.shows([SILENT]).keys() == {"known_from_ms"}


def test_a_request_by_an_earlier_connection_that_is_answered_late_shows_nothing() -> None:
    """A client that gave up waiting opened another connection; what it had asked by the first one is answered last."""
    log = Log()
    log.heard(10_000, "a", 40)
    log.heard(20_000, "a", 43)
    log.heard(21_000, "a", 41, since=11_000)
    assert "restarts" not in log.shows([])


def test_numbers_of_two_network_threads_are_not_compared() -> None:
    log = Log(threads=True)
    log.heard(10_000, "a", 24, thread=0)
    log.heard(20_000, "a", 21, thread=1)
    assert "restarts" not in log.shows([])
    log.heard(30_000, "a", 20, thread=1)
    assert log.shows([])["restarts"]


def test_what_is_shown_does_not_depend_on_how_the_log_is_cut() -> None:
    log = Log()
    log.steady(("a", 40), ("b", 41))
    for at, number in ((60_000, 2), (62_000, 3), (64_000, 2), (65_500, 3)):
        log.heard(at, "ab"[number - 2], number)
    whole = log.shows([SILENT])
    processes, told = Processes(), []
    last: float | None = None
    for event in log.events():
        now = event.logged_at_ms
        silences = [[last, now]] if last is not None and [last, now] == SILENT else []
        processes.take(summary_of([event], (), silences), silences, last, now)
        told += processes.signs()["processes"].get("restarts", [])
        last = now
    assert told == whole["restarts"]
