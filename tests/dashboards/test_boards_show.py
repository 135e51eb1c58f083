"""The boards are judged by what they show: for each fault, panels with the value and the colour that each must have.

Histories are recorded stories of real brokers and golden traces, replayed second by second into real tables under a
real API; numbers come from a real Prometheus that scrapes it. Colours are written here as words of what they mean.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dashboards import palette
from kardia.trace.clients import GROUP as TRACED
from tests.api.conftest import Api
from tests.dashboards.replaying import Replay, replay
from tests.dashboards.scraping import Prometheus, prometheus, until
from tests.dashboards.screen import Screen, Shown
from tests.golden.log import START_AT_MS
from tests.support.served import CLUSTER, Batch, story_batches, trace_batches
from tests.support.stories import Story

WELL, SOON, ALARM, OVER, PLAIN, BLIND, GONE = (
    palette.WELL,
    palette.SOON,
    palette.ALARM,
    palette.OVER,
    palette.PLAIN,
    palette.BLIND,
    palette.GONE,
)
KILL, STALL, MOVED = "c01_kill-4.1.2", "c04_mpi-3.9.2", "m01_coordinator_kill-4.1.2"
STRAGGLER = "kip62-rebalance-timeout"
UNKNOWN = Shown("not known", BLIND)

NUMBERS = ("Members in danger", "Rebalancing for", "Members present", "Evictions, last hour", "Rebalances, last hour")
"""Numbers of the board of a group that come from Prometheus."""


def board(uid: str, replaying: Replay, asked: Prometheus | None = None, **values: str) -> Screen:
    """A dashboard as it is now."""
    given = replaying.values() | {"cluster": CLUSTER, "datasource": "p", "kardia": "k"} | values
    return Screen(f"kardia-{uid}", given, replaying.api, asked)


@contextmanager
def screens(root: Path, history: Iterator[Batch], uid: str, **values: str) -> Iterator[Iterator[tuple[int, Screen]]]:
    """(instant, a dashboard at it) after each second of a history."""
    with replay(root / "tables", history) as replaying:
        yield ((replaying.now_ms, board(uid, replaying, None, **values)) for _ in replaying.batches())


def counted(screen: Screen, title: str) -> float:
    """A number; 0 as well where none is known yet."""
    found = screen.stat(title)
    return 0.0 if found == UNKNOWN else float(found.text)


def test_a_member_that_is_killed_is_seen_before_it_is_evicted(tmp_path: Path) -> None:
    gone = Story(KILL).expect["evictions"][0]
    at_ms, who = int(gone["t"]), {"group": "g01", "member": gone["member_id"]}
    story, seen = story_batches(KILL), set()
    with screens(tmp_path, story, "group", **who) as told:
        for now_ms, screen in told:
            if at_ms - 2_500 < now_ms < at_ms - 1_000:
                lanes = screen.ends("Members over time")
                assert lanes["c01-b"] == ("imminent", ALARM)
                assert set(lanes.values()) <= {("imminent", ALARM), ("ok", WELL), ("late", SOON)}
                assert screen.column("Members", "client", "status")["c01-b"] == ("imminent", ALARM)
                assert screen.stat("State now") == ("Stable", WELL)
                assert screen.ends("State of the group")["state"] == ("Stable", WELL)
                assert screen.column("Evictions", "client", "cause") == {}
                seen.add("before")
            if now_ms > at_ms + 8_000:
                causes = screen.column("Evictions", "client", "cause")
                assert causes["c01-b"] == ("session_expired", ALARM)
                assert screen.ends("Members over time")["c01-b"] == ("ended", GONE)
                seen.add("after")
                break
    assert seen == {"before", "after"}


def test_of_a_member_that_is_gone_the_board_says_so_and_nothing_is_an_alarm(tmp_path: Path) -> None:
    gone = Story(KILL).expect["evictions"][0]
    with replay(tmp_path / "tables", story_batches(KILL)) as replaying:
        for _ in replaying.batches():
            pass
        screen = board("member", replaying, group="g01", member=gone["member_id"])
        assert screen.stat("Status") == ("ended", GONE)
        assert screen.stat("Session ends in") == ("ended", GONE)
        assert screen.stat("Poll ends in") == ("ended", GONE)
        assert screen.stat("Ended because of") == ("session_expired", ALARM)
        nobody = board("member", replaying, group="g01", member="nobody-of-this-name")
        for title in ("Status", "Session ends in", "Poll ends in", "How sure", "Ended because of"):
            assert nobody.stat(title) == UNKNOWN, title


def test_a_member_that_stops_polling_is_seen_and_its_eviction_is_not_green(tmp_path: Path) -> None:
    left = Story(STALL).expect["leaves"][0]
    at_ms, client = int(left["t"]), left["client_id"]
    seen = set()
    with screens(tmp_path, story_batches(STALL), "group", group=left["group"]) as told:
        for now_ms, screen in told:
            if at_ms - 2_500 < now_ms < at_ms - 1_000:
                assert screen.ends("Members over time")[client] == ("imminent", ALARM)
                seen.add("before")
            if now_ms > at_ms + 5_000:
                assert screen.column("Evictions", "client", "cause")[client] == ("poll_timeout", OVER)
                seen.add("after")
                break
    assert seen == {"before", "after"}


def test_a_board_says_whom_a_rebalance_waits_for_and_not_who_waits(tmp_path: Path) -> None:
    """B goes on with its heartbeats and does not rejoin from 9 s on; A waits in its JoinGroup; B is dropped at 39 s."""
    seen = set()
    with screens(tmp_path, trace_batches(STRAGGLER), "group", group=TRACED) as told:
        for now_ms, screen in told:
            second = (now_ms - START_AT_MS) / 1_000
            if 23 < second < 38:
                assert screen.stat("State now") == ("PreparingRebalance", ALARM)
                assert screen.ends("State of the group")["state"] == ("PreparingRebalance", ALARM)
                lanes = screen.ends("Members over time")
                assert lanes["b"] in (("awaited", ALARM), ("imminent", ALARM))
                assert lanes["a"] == ("unseen", BLIND)
                assert {name: one.colour for name, one in screen.column("Members", "client", "status").items()} == {
                    "a": BLIND,
                    "b": ALARM,
                }
                assert set(screen.column("Whom the group waits for", "client", "shown by")) == {"b"}
                seen.add("while it waits")
            if second > 46:
                assert screen.column("Whom the group waits for", "client", "shown by") == {}
                assert screen.stat("State now") == screen.ends("State of the group")["state"] == ("Stable", WELL)
                seen.add("after")
    assert seen == {"while it waits", "after"}


@pytest.mark.parametrize(
    ("history", "group", "seen"),
    # The rebalance after the kill is over before anybody knows that it began.
    [(KILL, "g01", {"Stable"}), (STALL, "g04", {"Stable", "PreparingRebalance"})],
)
def test_the_band_ends_with_the_state_that_is(history: str, group: str, seen: set[str], tmp_path: Path) -> None:
    states = set()
    with screens(tmp_path, story_batches(history), "group", group=group) as told:
        for _, screen in told:
            now, band = screen.stat("State now"), screen.ends("State of the group")
            if now != UNKNOWN:  # the group is not known yet
                assert band["state"] == now
                states.add(now.text)
    assert seen <= states


def test_a_broker_that_dies_evicts_nobody_on_the_board(tmp_path: Path) -> None:
    story = Story(MOVED).expect
    first_ms = min(int(one["t"]) for one in story["evictions"] if one["group"] == "gm1")
    looked = 0
    with screens(tmp_path, story_batches(MOVED), "group", group="gm1") as told:
        for now_ms, screen in told:
            if now_ms < first_ms:
                assert screen.column("Evictions", "client", "cause") == {}
                looked += 1
    assert looked > 10


def test_a_feed_that_stands_still_is_grey_everywhere(tmp_path: Path) -> None:
    """The collector reads nothing any more, ten seconds after the group came; the clock goes on."""
    with replay(tmp_path / "tables", story_batches(KILL, blind=(34, 10_000))) as replaying:
        for _ in replaying.batches():
            pass
        replaying.pass_ms(60_000)
        group = board("group", replaying, group="g01")
        assert group.stat("State now") == ("Unknown", BLIND)
        assert group.ends("State of the group")["state"] == ("Unknown", BLIND)
        assert {one.colour for one in group.ends("Members over time").values()} == {BLIND}
        for column in ("status", "session ends in", "poll ends in", "certainty"):
            colours = {one.colour for one in group.column("Members", "client", column).values()}
            assert colours == {BLIND}, column
        fleet = board("fleet", replaying)
        for title, key, columns in (
            ("Who is next", "client", ("status", "left", "predicted", "certainty")),
            ("Worst groups", "group", ("worst status", "state")),
        ):
            for column in columns:
                assert {one.colour for one in fleet.column(title, key, column).values()} == {BLIND}, column
        assert fleet.column("Rebalances under way", "group", "state") == {}


@pytest.mark.needs_prometheus
def test_a_group_just_born_a_storm_and_a_server_that_hangs(tmp_path: Path) -> None:
    """One history for all: the first rebalance of a group counts, its storm is seen, and when `kardia serve` hangs no
    panel goes on as if all were well."""
    storm = Story(STALL).expect["leaves"][1]
    storm_ms, group = int(storm["t"]) + 8_000, storm["group"]
    with ExitStack() as stack:
        replaying = stack.enter_context(replay(tmp_path / "tables", story_batches(STALL)))
        server = stack.enter_context(hanging(replaying.api.url))
        asked = stack.enter_context(prometheus(server.api, tmp_path))
        until(lambda: asked.has_scraped(-1), "a scrape before anything is known")
        born = False
        for batch_id in replaying.batches():
            until(lambda batch_id=batch_id: asked.has_scraped(batch_id), f"a scrape of batch {batch_id}")
            screen = board("group", replaying, asked, group=group)
            if not born and screen.stat("State now") == ("Stable", WELL):
                born = True
                until(lambda screen=screen: counted(screen, "Rebalances, last hour") > 0, "the first rebalance")
                assert screen.stat("Rebalances, last hour").colour == PLAIN
                assert counted(screen, "Members in danger") == 0
            if replaying.now_ms > storm_ms:
                break
        assert born
        until(lambda: board("fleet", replaying, asked).stat("Groups in a storm") == ("1.0", ALARM), "the storm")
        fleet = board("fleet", replaying, asked, group=group)
        assert fleet.bars("Most rebalances")[group].colour == ALARM
        assert fleet.bars("Evictions by group")[group].colour in (SOON, ALARM)
        server.hang()
        until(lambda: not asked.query("kardia_batch_id"), "a scrape that failed")
        replaying.api = server.api
        blind = board("group", replaying, asked, group=group)
        for title in NUMBERS:
            assert blind.stat(title) == UNKNOWN, title
        assert blind.stat("State now") == UNKNOWN
        fleet = board("fleet", replaying, asked, group=group)
        for title in ("Members in danger", "Rebalancing now", "Groups in a storm", "Evictions, last hour"):
            assert fleet.stat(title) == UNKNOWN, title
        assert fleet.bars("Most rebalances") == fleet.bars("Least session headroom") == {}
        truth = board("truth", replaying, asked)
        for title in ("Stalled sources", "Gaps, last hour", "Session precision", "Session recall"):
            assert truth.stat(title) == UNKNOWN, title


class Hanging:
    """A door in front of an API: it passes everything on until it hangs; then it takes requests and answers none."""

    def __init__(self, url: str, listener: socket.socket) -> None:
        self._to = urlsplit(url)
        self._listener = listener
        self._hangs = threading.Event()
        self._open: list[socket.socket] = []
        self.api = Api(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        """From now on nobody is answered."""
        self._hangs.set()
        self.api.client.timeout = 0.5

    def close(self) -> None:
        """End all connections."""
        self.api.client.close()
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                server = socket.create_connection((self._to.hostname or "", self._to.port or 0))
                self._open += [caller, server]
                for source, target in ((caller, server), (server, caller)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                if not self._hangs.is_set():
                    target.sendall(piece)
            if not self._hangs.is_set():
                target.shutdown(socket.SHUT_WR)


@contextmanager
def hanging(url: str) -> Iterator[Hanging]:
    """A door in front of an API."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with closing(Hanging(url, listener)) as found:
            yield found
