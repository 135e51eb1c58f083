"""Folded batches give back exactly the events that were folded, cut wherever they are, and no bytes break them."""

from __future__ import annotations

from array import array
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import BatchError
from ingest.quiet_requests import NONE, Rows
from ingest.wire import folded_batch
from ingest.wire.batches import batches, decode_batch, decode_folded, encode_batch, folded_batches, format_of
from ingest.wire.folded_batch import Outgoing, is_folded
from kardia.events import Event, Kind
from kardia.stretches import WIDTH, Stretch, sender_of
from tests.support.folding import Folder
from tests.support.stories import FIRST_LIGHT, lanes_of


def folded(events: list[Event]) -> Outgoing:
    folder = Folder()
    rest = [event for event in events if not folder.fold(event)]
    return Outgoing(rest, Rows.of(folder.take()))


def of_requests(name: str) -> list[list[Event]]:
    lanes = [
        [event for event in lane if "/request/" in event.source and event.kind < Kind.TICK] for lane in lanes_of(name)
    ]
    return [sorted(lane, key=lambda event: (event.start, event.shard)) for lane in lanes if lane]


@pytest.mark.parametrize("name", FIRST_LIGHT)
@pytest.mark.parametrize("most_bytes", [3_000, 512 * 1024])
def test_what_was_folded_comes_back(name: str, most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.wire.batches.MAX_BYTES", most_bytes)
    for events in of_requests(name):
        records = list(folded_batches(folded(events)))
        found = [decode_batch(data) for data, _ in records]
        assert [event for record in found for event in record] == [_plain(event) for event in events]
        assert [count for _, count in records] == [len(record) for record in found]
        for one, other in pairwise(found):  # whoever stopped between two records goes on behind the first
            assert max(event.start for event in one) < min(event.start for event in other)


def _plain(event: Event) -> Event:
    """A FETCH as a stretch gives it back: its detail is its size."""
    return event if event.kind != Kind.FETCH else event._replace(detail={"bytes": (event.detail or {}).get("bytes", 0)})


AT = 1_795_000_000_000.0
HEAD = Event(int(Kind.FETCH), 3, "b/request/1", 10, 20, AT, AT, AT, AT, client_id="c", detail={"bytes": 0})


def stretch(*rows: tuple[float, ...]) -> Stretch:
    return Stretch(HEAD, array("d", [number for row in rows for number in row]))


@given(
    st.lists(
        st.tuples(
            *(st.integers(1, 10**6), st.integers(0, 10**6), st.sampled_from((AT, 1e9, 3e12, -1.0))),
            *(st.floats(-1e4, 1e6), st.floats(-1, 1e5), st.floats(-1, 1e5), st.integers(0, 2**40)),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_numbers_come_back_bit_by_bit(given_rows: list[tuple[float, ...]]) -> None:
    rows, start = [], 0.0
    for step, length, base, total, until, rest, size in given_rows:
        start += step
        arrived = base - total
        rows.append((start, start + length, base, arrived, arrived + until, arrived + until + rest, float(size)))
    sent = stretch(*rows)
    (back,) = decode_folded(folded_batch.encode([], Rows.of([sent]))).stretches
    assert (sender_of(back.head), back.numbers) == (sender_of(sent.head), sent.numbers)


def test_the_header_names_the_format_and_few_events_are_not_folded() -> None:
    row = (10.0, 20.0, AT, AT, AT, AT, 0.0)
    (alone,) = folded_batches(Outgoing([], Rows.of([stretch(row)])))
    assert alone == next(batches([HEAD]))
    (several,) = folded_batches(Outgoing([], Rows.of([stretch(row, (30.0, 40.0, *row[2:]))])))
    assert (format_of(alone[0]), format_of(several[0])) == ("msgpack/1", "msgpack/3")
    assert (is_folded(alone[0]), is_folded(several[0]), is_folded(b"")) == (False, True, False)


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (HEAD._replace(kind=int(Kind.JOIN)), [(1.0, 2.0, AT, AT, AT, AT, 0.0)]),
        (HEAD._replace(shard=-1), [(1.0, 2.0, AT, AT, AT, AT, 0.0)]),
        (HEAD, [(5.0, 6.0, AT, AT, AT, AT, 0.0), (5.0, 6.0, AT, AT, AT, AT, 0.0)]),
        (HEAD, [(5.0, 4.0, AT, AT, AT, AT, 0.0)]),
        (HEAD, [(5.0, 6.0, 1e15, AT, AT, AT, 0.0)]),
        (HEAD, [(5.0, 6.0, AT, float("nan"), AT, AT, 0.0)]),
    ],
)
def test_what_no_collector_sends_is_no_batch(head: Event, rows: list[tuple[float, ...]]) -> None:
    numbers = array("d", [number for row in rows for number in row])
    body = folded_batch.Body([], [head], 0, 0, [(1, bytes(len(rows))), (0, numbers.tobytes())])
    with pytest.raises(BatchError):
        decode_batch(msgspec.msgpack.encode(body))


@pytest.mark.parametrize(
    ("heads", "columns"),
    [
        (1, []),
        (1, [(1, b"")]),
        (1, [(1, b"\x01"), (0, bytes(8 * WIDTH))]),
        (2, [(1, b"\x01"), (0, bytes(8 * WIDTH))]),
        (1, [(1, b"\x00"), (0, bytes(8))]),
        (1, [(1, b"\x00"), (1, b"\x00")]),
        (1, [(1, b"\x00")] * 7 + [(9, bytes(9))]),
        (1, [(1, b"\x00")] * 7 + [(8, b"\xff" * 8)]),
        (1, [(1, b"\x00")] * 7 + [(1, b"\x00\x00")]),
    ],
)
def test_columns_that_do_not_fit_are_no_batch(heads: int, columns: list[tuple[int, bytes]]) -> None:
    body = folded_batch.Body([], [HEAD] * heads, 5, int(AT), columns)
    with pytest.raises(BatchError):
        decode_batch(msgspec.msgpack.encode(body))


def test_what_is_for_several_shards_stands_side_by_side() -> None:
    one, other = (10.0, 20.0, AT, AT, AT, AT, 0.0), (30.0, 40.0, AT, AT, AT, AT, 7.0)
    rows = Rows.of([stretch(one, other), Stretch(HEAD._replace(client_id="d"), array("d", (20.0, 30.0, *one[2:])))])
    both = rows.for_shards([[4, 5], [6]])
    assert both.numbers[:, 0].tolist() == [10, 10, 20, 30, 30]
    assert [(head.client_id, head.shard) for head in both.heads] == [("c", 4), ("c", 5), ("d", 6)]
    back = decode_batch(folded_batch.encode([], both))
    assert [(event.start, event.shard) for event in back] == [(10, 4), (10, 5), (20, 6), (30, 4), (30, 5)]
    assert rows.for_shards([[], [6]]).numbers.tolist() == [[20, 30, *one[2:]]]
    assert [stretch.numbers for stretch in rows.for_shards([[], []]).stretches()] == []
    for number in (2, 3, 10):  # what is of one line stays together
        found = [part.rows.numbers[:, 0].tolist() for part in folded_batch.parts(Outgoing([], both), number)]
        assert [start for starts in found for start in starts] == [10, 10, 20, 30, 30]
        assert all(one[-1] < other[0] for one, other in pairwise(found))
    assert NONE.stretches() == []


@settings(max_examples=300)
@given(st.data())
def test_damaged_bytes_are_a_batch_or_refused(data: st.DataObject) -> None:
    row = (10.0, 20.0, AT, AT - 1.5, AT - 1.25, AT - 1.0, 100.0)
    whole = bytearray(folded_batch.encode([HEAD], Rows.of([stretch(row, (30.0, 40.0, *row[2:]))])))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        events = decode_batch(bytes(whole[: data.draw(st.integers(1, len(whole)))]))
    except BatchError:
        return
    encode_batch(events)
