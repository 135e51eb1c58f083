"""How long sessions are, by evictions of any group that both logs of a broker show."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from ingest import session_lengths
from ingest.session_lengths import SessionLengths, Sessions, sessions_of
from ingest.stamps import Stamps, zone_named
from kardia.events import Event, Kind
from kardia.observe.modern.session_length import DIFFERENT
from tests.ingest.world import LANES, ManualClock, World
from tests.observe.test_epoch_lines import EXPIRED, line
from tests.support.modern_scene import ModernScene
from tests.support.scene import START
from tests.support.stories import Story

END = START + 60_000


class Logs:
    """A request log with a member b, and a server.log that names who was fenced."""

    def __init__(self) -> None:
        self._scene = ModernScene(given_ms=-1)
        self._scene.comes(100, "b", 1, (0,))

    def beats(self, *instants: float, member: str = "b", arrived: float | None = None) -> None:
        """Heartbeats; the last of them arrived at `arrived`."""
        for at in instants:
            self._scene.beat(at, member, 1)
        if arrived is not None:
            self._scene.events[-1] = self._scene.events[-1]._replace(arrived_at_ms=START + arrived)

    def fenced(self, at: float, member: str = "b", why: str = EXPIRED) -> None:
        """The sentence of the coordinator."""
        line(self._scene, at, "epoch_member_fenced", member, why)

    @property
    def events(self) -> list[Event]:
        return self._scene.events

    def requests(self) -> Sessions:
        return sessions_of([event for event in self.events if "/request/" in event.source], ())

    def sentences(self) -> Sessions:
        return sessions_of([event for event in self.events if "/request/" not in event.source], ())

    def shown(self, silences: list[list[float]] | None = None) -> list[Any]:
        """What is told, both logs read in one piece each."""
        lengths = SessionLengths()
        lengths.take(self.sentences())
        lengths.take(self.requests(), silences or [], END)
        return told(lengths)


def told(lengths: SessionLengths) -> list[Any]:
    """(Protocol, session timeout, instant since the start) of what a tick says."""
    rows: list[Any] = lengths.signs().get("session_shown", [])
    return [(protocol, session_ms, at - START) for protocol, session_ms, at in rows]


def test_the_time_from_the_last_heartbeat_to_the_sentence_is_the_session() -> None:
    logs = Logs()
    logs.beats(3_000, 6_000)
    logs.fenced(16_004)
    assert logs.shown() == [("consumer", 10_000, 17_004)]


def test_it_is_told_once() -> None:
    logs = Logs()
    logs.beats(3_000)
    logs.fenced(13_004)
    lengths = SessionLengths()
    lengths.take(logs.sentences())
    lengths.take(logs.requests(), (), END)
    assert told(lengths)
    assert not told(lengths)


def test_another_reason_shows_nothing() -> None:
    logs = Logs()
    logs.beats(3_000)
    logs.fenced(13_004, why="it failed to transition from epoch 1 within the rebalance timeout.")
    assert logs.shown() == []


def test_the_request_log_has_to_be_read_past_it() -> None:
    logs = Logs()
    logs.beats(3_000)
    logs.fenced(13_004)
    lengths = SessionLengths()
    lengths.take(logs.requests(), (), START + 13_900)
    lengths.take(logs.sentences())
    assert told(lengths) == []
    lengths.take(Sessions([], []), (), START + 14_010)
    assert told(lengths) == [("consumer", 10_000, 14_004)]


def test_who_comes_back_by_its_old_id_does_not_hide_it() -> None:
    """A consumer that slept learns that it was fenced, and joins again under the id that it has."""
    logs = Logs()
    logs.beats(3_000, 6_000)
    logs.fenced(16_004)
    logs.beats(20_000, 23_000, 26_000, 29_000)
    assert logs.shown() == [("consumer", 10_000, 17_004)]


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_it_is_the_same_however_the_log_is_cut(every: int) -> None:
    logs = Logs()
    logs.beats(3_000, 6_000)
    logs.fenced(16_004)
    logs.beats(20_000, 23_000)
    lengths, found = SessionLengths(), []
    for begin in range(0, len(logs.events), every):
        part = logs.events[begin : begin + every]
        lengths.take(sessions_of(part, ()), (), max(event.logged_at_ms for event in part))
        found += told(lengths)
    assert found == [("consumer", 10_000, 17_004)]


def test_a_heartbeat_that_waited_fits_as_long_as_one_second_does() -> None:
    logs = Logs()
    logs.beats(6_400, arrived=6_000)
    logs.fenced(16_004)
    assert logs.shown() == [("consumer", 10_000, 17_004)]


def test_one_that_waited_for_longer_shows_nothing() -> None:
    logs = Logs()
    logs.beats(7_500, arrived=6_000)
    logs.fenced(17_504)
    assert logs.shown() == []


def test_a_silence_of_the_log_between_shows_nothing() -> None:
    logs = Logs()
    logs.beats(6_000)
    logs.fenced(16_004)
    assert logs.shown([[START + 8_000, START + 12_000]]) == []
    assert logs.shown([[START + 1_000, START + 5_000]]) == [("consumer", 10_000, 17_004)]


def test_lines_that_are_lost_show_nothing_of_who_was_heard_before() -> None:
    logs = Logs()
    logs.beats(6_000)
    logs.fenced(16_004)
    lengths = SessionLengths()
    lengths.take(logs.sentences())
    lengths.lose(START + 9_000)
    lengths.take(logs.requests(), (), END)
    assert told(lengths) == []


def test_two_evictions_that_contradict_each_other_end_it_for_good() -> None:
    logs = Logs()
    for member, heard_at, fenced_at in (("b", 6_000, 16_004), ("c", 9_000, 39_003), ("d", 32_000, 42_003)):
        logs.beats(heard_at, member=member)
        logs.fenced(fenced_at, member)
    assert logs.shown() == [("consumer", 10_000, 17_004), ("consumer", DIFFERENT, 40_003)]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_lengths, "MAX_KEPT", 10)
    logs = Logs()
    for number in range(50):
        logs.beats(3_000 + number, member=f"m{number}")
        logs.fenced(90_000, f"m{number}")
    lengths = SessionLengths()
    for event in logs.events:
        lengths.take(sessions_of([event], ()), (), END)
    assert (len(lengths._members), len(lengths._evicted)) == (10, 10)


def test_a_collector_of_both_logs_tells_it_to_every_lane(tmp_path: Path) -> None:
    """A recorded story in which two members of a consumer group are killed; the session of its broker was 10 s."""
    folder = Story("k01_kill-4.1.2").folder
    requests, sentences = (
        gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        for path in (folder / "kafka-request.log.gz", folder / "server.log.gz")
    )
    stamps = Stamps(zone_named("UTC"))
    last_ms = max(at for text in requests if (at := stamps.at_ms(text)) is not None)
    with World(tmp_path, server=True, clock=ManualClock(last_ms + 1_000)) as world:
        world.server_path.touch()
        parts = 20
        for number in range(parts):
            for path, texts in ((world.path, requests), (world.server_path, sentences)):
                with path.open("ab") as log:
                    log.writelines(texts[len(texts) * number // parts : len(texts) * (number + 1) // parts])
            world.step(5)
        world.drain()
        told = [
            (lane, *one[:2])
            for lane in range(LANES)
            for event in world.topic.events(lane)
            if event.kind == Kind.TICK
            for one in (event.detail or {}).get("session_shown", ())
        ]
    assert told == [(lane, "consumer", 10_000) for lane in range(LANES)]
