"""Logs that a container runtime wrapped, followed while they grow: however their bytes come, wherever a collector was
stopped, the same lines with the same places; what is damaged is said, and never read as something else."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from ingest.archives.envelopes import MAX_ENTRY_BYTES, Form
from ingest.blocks import Cut, Gathered, Line, Splitter, read_cut
from ingest.dialects import MAX_LINE_BYTES
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.router import Directory
from ingest.stamps import zone_named
from ingest.tail.kubelet import is_continued
from ingest.tail.wrapped import LOOKED_AT_BYTES, EntrySplitter, form_in, splitter_of, texts_in
from kardia.events import Event, Kind
from tests.ingest.archives import wrapping
from tests.ingest.lines import START_MS, line, stamp
from tests.ingest.test_text_lines import text_line
from tests.ingest.world import World

PART = 300
"""Cut far shorter than by a container runtime, so that every place of a cut line can be tried."""

SERVER = stamp(START_MS + 9).encode() + (
    b" INFO [GroupCoordinator 1]: Member c-11111111-2222-3333-4444-555555555555 in group g-1 has failed, removing it "
    b"from the group (kafka.coordinator.group.GroupCoordinator)"
)
TIME = b"2026-11-20T10:00:00.000000001Z"
FORMS = ("cri", "docker")
Wrap = Callable[..., bytes]


def cri(text: bytes, channel: str = "stdout", *, part: int = PART) -> bytes:
    pieces = wrapping.parts(text, part)
    tags = [b"P"] * (len(pieces) - 1) + [b"F"]
    return b"".join(b"%s %s %s %s\n" % (TIME, channel.encode(), *one) for one in zip(tags, pieces, strict=True))


def docker(text: bytes, channel: str = "stdout", *, part: int = PART) -> bytes:
    return wrapping.dumped(
        {"log": piece.decode(), "stream": channel, "time": TIME.decode()}
        for piece in wrapping.parts(text + b"\n", part)
    )


WRAPS: dict[str, Wrap] = {"cri": cri, "docker": docker}


def mixed(wrap: Wrap) -> bytes:
    """Requests and a sentence of server.log, cut; a line of the other channel in the middle of one; a damaged entry."""
    cut = wrap(line(3)).splitlines(keepends=True)
    return b"".join(
        (
            *(wrap(line(1)), wrap(b"a warning", "stderr"), wrap(line(2), part=4_096), wrap(SERVER)),
            *(cut[0], wrap(b"between", "stderr"), *cut[1:]),
            *(b"no entry at all\n", b"\n", wrap(line(4))),
        )
    )


def form_of(data: bytes) -> Form:
    form = form_in(data)
    assert form is not None
    return form


def lines_of(splitter: EntrySplitter, *pieces: bytes) -> list[Line]:
    return [one for piece in pieces for one in splitter.feed(piece).lines]


def events_of(cut: Cut, dialect: RequestJson | ServerLog) -> tuple[list[Event], Gathered]:
    gathered = Gathered(1, Directory())
    read_cut(dialect, cut, "b/request/x", gathered)
    return gathered.events[0], gathered


# --- the same lines, whatever the reads and wherever it was stopped -----------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_every_split_of_the_bytes_gives_the_same_lines(name: str) -> None:
    data = mixed(WRAPS[name])
    form = form_of(data)
    whole = lines_of(EntrySplitter(form), data)
    texts = [one.text for one in whole if one.refused is None]
    assert texts == [line(1), b"a warning", line(2), SERVER, line(3), b"between", line(4)]
    for at in range(len(data)):
        assert lines_of(EntrySplitter(form), data[:at], data[at:]) == whole
    assert lines_of(EntrySplitter(form), *(data[at : at + 1] for at in range(len(data)))) == whole


@pytest.mark.parametrize("name", FORMS)
def test_from_wherever_it_was_stopped_the_lines_are_the_same(name: str) -> None:
    """A position is the begin of an entry before which all was given out: none is missing, none there twice."""
    data = mixed(WRAPS[name])
    form = form_of(data)
    whole = lines_of(EntrySplitter(form), data)
    for at in range(len(data)):
        before = EntrySplitter(form)
        first = lines_of(before, data[:at])
        assert before.read_to == at
        assert first + lines_of(EntrySplitter(form, before.position), data[before.position :]) == whole


@pytest.mark.parametrize("name", FORMS)
def test_a_line_has_the_bytes_of_all_its_entries(name: str) -> None:
    wrap = WRAPS[name]
    first, second = wrap(line(1)), wrap(line(2))
    splitter = EntrySplitter(form_of(first))
    cut = splitter.feed(first + second)
    assert [(one.start, one.end) for one in cut.lines] == [(0, len(first)), (len(first), len(first + second))]
    events, _ = events_of(cut, RequestJson(zone_named("UTC")))
    assert [(event.kind, event.start, event.end) for event in events] == [
        (Kind.HEARTBEAT, 0, len(first)),
        (Kind.HEARTBEAT, len(first), len(first + second)),
    ]


@pytest.mark.parametrize("name", FORMS)
def test_ranges_do_not_overlap(name: str) -> None:
    data = mixed(WRAPS[name])
    lines = lines_of(EntrySplitter(form_of(data)), data)
    assert all(one.end <= after.start for one, after in pairwise(lines))


# --- what is damaged ----------------------------------------------------------------------------------------------


def refused(lines: list[Line]) -> list[str]:
    return [one.refused[0] for one in lines if one.refused is not None]


@pytest.mark.parametrize("name", FORMS)
def test_a_line_with_a_damaged_entry_between_its_parts_is_refused(name: str) -> None:
    parts = WRAPS[name](line(1)).splitlines(keepends=True)
    data = parts[0] + b"\x00\x00damaged\n" + b"".join(parts[2:]) + WRAPS[name](line(2))
    lines = lines_of(EntrySplitter(form_of(data)), data)
    assert len(refused(lines)) == 2
    assert [one.text for one in lines if one.refused is None] == [line(2)]


@pytest.mark.parametrize("name", FORMS)
def test_what_is_refused_is_a_rejected_row_in_its_place(name: str) -> None:
    data = mixed(WRAPS[name])
    splitter = EntrySplitter(form_of(data))
    events, gathered = events_of(splitter.feed(data), RequestJson(zone_named("UTC")))
    assert [event.kind for event in events] == [Kind.HEARTBEAT] * 3 + [Kind.REJECTED, Kind.HEARTBEAT]
    assert sum(gathered.rejected.values()) == 1
    assert data[events[3].start : events[3].end] == b"no entry at all\n"
    assert events[3].logged_at_ms == START_MS + 3


@pytest.mark.parametrize("name", FORMS)
def test_a_line_that_a_file_ends_in_is_refused(name: str) -> None:
    """Also where the part that is there could be read as a line."""
    data = WRAPS[name](SERVER + b" ", part=len(SERVER)).splitlines(keepends=True)[0]
    splitter = EntrySplitter(form_of(data))
    assert not splitter.feed(data + b"2026").lines
    _, cut = splitter.finish()
    assert refused(list(cut.lines)) == ["incomplete_line"] * 2
    assert splitter.position == splitter.read_to == len(data) + 4


@pytest.mark.parametrize("name", FORMS)
def test_a_line_over_the_bound_is_refused_and_memory_is_bounded(name: str) -> None:
    entry = WRAPS[name](b"x" * 16_384, part=20_000)
    entry = entry.replace(b" F ", b" P ").replace(b"\\n", b"")
    splitter = EntrySplitter(form_of(entry))
    lines: list[Line] = []
    for _ in range(2 * MAX_ENTRY_BYTES // len(entry)):
        lines += splitter.feed(entry).lines
        held = splitter.read_to - splitter.position
        assert held <= MAX_ENTRY_BYTES + len(entry)
        assert all(len(one.text) <= MAX_LINE_BYTES + len(entry) for one in splitter._open.values())
    lines += splitter.feed(WRAPS[name](SERVER, part=4_096) + WRAPS[name](line(2))).lines
    assert refused(lines) == ["line_too_long"]
    assert [one.text for one in lines[1:]] == [line(2)], "what is behind the bound belongs to the line that is refused"


@pytest.mark.parametrize("name", FORMS)
def test_an_entry_that_does_not_end_is_dropped(name: str) -> None:
    first = WRAPS[name](line(1))
    splitter = EntrySplitter(form_of(first))
    splitter.feed(first)
    for _ in range(20):
        splitter.feed(b"y" * 1_000_000)
        assert len(splitter._carry) <= MAX_ENTRY_BYTES
    lines = splitter.feed(b"y\n" + WRAPS[name](line(2))).lines
    assert [one.refused and one.refused[0] for one in lines] == ["line_too_long", None]
    assert lines[0].end == lines[1].start == len(first) + 20_000_002
    assert lines[1].text == line(2)


# --- whose line it is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_the_lines_of_another_log_show_no_life_of_this_one(name: str) -> None:
    """The request log of a console that goes on with server.log alone is silent, and is to be seen as silent."""
    late = stamp(START_MS + 600_000).encode() + SERVER[len(stamp(0)) :]
    data = WRAPS[name](line(1)) + WRAPS[name](late)
    _, gathered = events_of(EntrySplitter(form_of(data)).feed(data), RequestJson(zone_named("UTC")))
    assert gathered.last_at_ms == START_MS + 1
    events, gathered = events_of(EntrySplitter(form_of(data)).feed(data), ServerLog(zone_named("UTC")))
    assert gathered.first_at_ms == START_MS + 600_000
    assert len(events) == 1


@pytest.mark.parametrize("name", FORMS)
def test_strimzis_layout_is_read(name: str) -> None:
    text = line(1).removesuffix(b" (kafka.request.logger)")
    data = WRAPS[name](text[1:24] + text[25:] + b" (kafka.request.logger) [data-plane-kafka-request-handler-3]")
    (event,), _ = events_of(EntrySplitter(form_of(data)).feed(data), RequestJson(zone_named("UTC")))
    assert (event.kind, event.start, event.end) == (Kind.HEARTBEAT, 0, len(data))


def test_a_request_of_several_lines_waits_for_its_last_one() -> None:
    data = b"".join(map(cri, text_line(client="a\nb\nc").encode().split(b"\n"))) + cri(text_line().encode())
    form, dialect = form_of(data), RequestJson(zone_named("UTC"))
    events, gathered = events_of(EntrySplitter(form).feed(data), dialect)
    assert [event.client_id for event in events] == ["a\nb\nc", "c"]
    assert events[0].end == events[1].start
    assert gathered.ignored["continuation"] == 2
    for at in range(len(data)):
        splitter = EntrySplitter(form)
        cuts = [splitter.feed(piece) for piece in (data[:at], data[at:])]
        assert [event for cut in cuts for event in events_of(cut, dialect)[0]] == events


# --- which form ---------------------------------------------------------------------------------------------------


def test_the_form_is_known_when_the_first_line_is_whole() -> None:
    for data in (cri(line(1)), docker(line(1)), b"\0\0" + cri(line(1))):
        first = data.index(b"\n") + 1
        assert {splitter_of(data[:at], shared=False) for at in range(first)} == {None}
        chosen = splitter_of(data[:first], shared=False)
        assert isinstance(chosen, partial)
        assert chosen.func is EntrySplitter
    assert splitter_of(line(1) + b"\n", shared=False) is Splitter
    assert splitter_of(b"x" * LOOKED_AT_BYTES, shared=False) is Splitter
    assert isinstance(splitter_of(line(1) + b"\n", shared=True), partial)


def test_a_forged_entry_makes_no_wrapped_log() -> None:
    assert form_in(cri(SERVER) + SERVER + b"\n") is None


def test_stamps_of_a_loss_are_those_of_the_lines() -> None:
    for wrap in WRAPS.values():
        data = wrap(SERVER, part=4_096)
        assert texts_in(data[10:] + data) == [SERVER]
        assert texts_in(data + data[:50])[0] == SERVER
    assert texts_in(b"rest\n" + SERVER) == [b"rest", SERVER]


# --- the collector ------------------------------------------------------------------------------------------------


@pytest.fixture(params=FORMS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, name="0.log", wrap=WRAPS[request.param], shared=True, server=True) as world:
        yield world


def test_a_collector_loses_nothing_over_rotations_and_crashes(world: World) -> None:
    for number in range(12):
        world.write(3)
        world.number += 1
        request = {"groupId": "g-x", "generationId": 1, "memberId": f"m-{world.number}", "groupInstanceId": None}
        entries = world._wrap(line(world.number, request=request))
        cut = (number * 97) % len(entries)
        world.file.write(entries[:cut])
        if number % 2:
            world.step(2)
        if number % 4 == 1:
            world.crash()
        world.file.write(entries[cut:])
        if number % 3 == 1:
            world.step(2)
        if number % 4 == 2:
            world.rename()
        if number % 5 == 3:
            world.crash()
    world.drain()
    world.clock.now_s += 2
    world.drain()
    assert sorted(world.members()) == sorted(world.expected())
    assert not [event for event in world.topic.events() if event.kind == Kind.GAP]


def test_a_rotated_file_that_is_compressed_is_not_read(world: World) -> None:
    """The kubelet compresses all but the last one, into a name that ends on `.tmp` first."""
    world.write(3)
    world.step(10)
    world.rename()
    world.write(3)
    world.step(20)
    rotated = world.path.with_name("0.log.000001")
    packed = gzip.compress(rotated.read_bytes())
    rotated.unlink()
    for end in (".tmp", ".gz"):
        world.path.with_name(f"0.log.000001{end}").write_bytes(packed)
        world.rename()
        world.write(1)
        world.drain()
    assert sorted(world.members()) == sorted(world.expected())
    assert not [event for event in world.topic.events() if event.kind in (Kind.GAP, Kind.REJECTED)]


def test_both_logs_of_one_output_are_of_one_broker(world: World) -> None:
    world.write(2)
    world.file.write(world._wrap(SERVER))
    world.step(20)
    sources = {event.source for event in world.topic.events() if event.kind == Kind.TICK}
    assert {source.rpartition("/")[0] for source in sources} == {"10.0.0.1:9092/request", "10.0.0.1:9092/server"}
    assert len({source.rpartition("/")[2] for source in sources}) == 1
    told = [event for event in world.topic.events() if event.source.split("/")[1] == "server" and event.group_id]
    assert {event.group_id for event in told} == {"g-1"}


def test_a_line_of_the_future_waits_for_the_clock(world: World) -> None:
    world.write(1)
    world.step(10)
    ahead = line(2, at_ms=int(world.clock.wall_ms()) + 9_000)
    world.file.write(world._wrap(ahead))
    world.step(5)
    size = world.path.stat().st_size
    assert world.collector.streams[0].tail.saved()[-1].position < size
    world.step(10, each_s=1.0)
    assert world.collector.streams[0].tail.saved()[-1].position == size
    assert not [event for event in world.topic.events() if event.kind == Kind.REJECTED]


def test_a_container_that_was_started_again_is_not_complete_by_its_old_file(world: World) -> None:
    """Its lines stand in the next file, which is found a little later."""

    def complete_to_ms() -> float:
        return max(event.logged_at_ms for event in world.topic.events() if event.kind == Kind.TICK)

    world.write(1)
    world.step(10)
    at = world.clock.wall_ms()
    world.path.with_name("1.log").write_bytes(b"")
    world.step(20)
    assert complete_to_ms() <= at
    world.path.with_name("1.log").unlink()
    world.step(20)
    assert complete_to_ms() > at + 2_000


def test_a_pod_that_was_made_again_goes_on_in_another_folder(tmp_path: Path) -> None:
    old, new, other = (
        tmp_path / pod / "kafka" / "0.log"
        for pod in ("kafka_my-cluster-kafka-0_11", "kafka_my-cluster-kafka-0_22", "kafka_my-cluster-kafka-1_33")
    )
    for at, path in enumerate((old, other)):
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path.parent.parent, (at, at))
    assert not is_continued(old)
    new.parent.mkdir(parents=True)
    assert is_continued(old)
    assert not is_continued(new)
    assert not is_continued(other)
    assert not is_continued(old.with_name("server.log"))


def test_json_of_a_broker_itself_is_no_json_file() -> None:
    assert form_in(json.dumps({"log": "x", "stream": "stdout", "time": "t", "level": "INFO"}).encode() + b"\n") is None
