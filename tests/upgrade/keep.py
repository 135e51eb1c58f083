"""Keeps what this release leaves on disk, for the tests of those after it: `python -m tests.upgrade.keep`.

    kept/RELEASE/lanes/STORY.msgpack.gz   a lane in the middle of a story: its store, its state, and all records
    kept/RELEASE/job.tar.gz               tables and checkpoint of a job that has read the first half of a topic
    kept/RELEASE/topic.msgpack.gz         that topic, whole
    kept/RELEASE/fields.json              names of what is kept by position: fields of groups and all that is in them
    kept/RELEASE/positions/               what a collector goes on from
    kept/RELEASE/notify/                  what a notifier goes on from

Run it as a release is made, with its own code; what it has written is never written again. RELEASE is the version of
the state. A lane is kept where a rebalance is open: then nearly everything that the observer can hold is held.
"""

from __future__ import annotations

import gzip
import tarfile
import tempfile
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from api.notify.conditions import Finding
from api.notify.lifecycle import Alert, Notice
from api.notify.state import Memory, StateFile
from demo.broker import Broker
from ingest.archives.ranges import tick
from ingest.offsets.committed import SavedCommitted
from ingest.tail.identity import Saved
from ingest.tail.positions import Positions, SavedDirectory, Store
from ingest.wire.batches import batches
from kardia.events import ALL_SHARDS, Event, Kind
from kardia.kafka.states import GroupState
from kardia.observe import ObserverSettings
from kardia.observe.snapshot import KEPT as KEPT_BY_OBSERVER
from kardia.observe.state.group import Group
from spark_jobs.checkpoint import journal, state_codec
from spark_jobs.checkpoint.journal import InMemory, Mark
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from tests.support.stories import lanes_of, read_live, stamps_of

KEPT = Path(__file__).resolve().parent / "kept"
KEPT_AT = "/var/lib/kardia"
"""Where the job was, by what is kept of it."""

TOPIC = "kept.events"
LANES = 6
FORMAT = b"msgpack/1"

STORIES: dict[str, dict[str, bool]] = {
    "c06_static-3.9.2": {"server_log": True},
    "c10_slow-3.9.2": {},
    "o10_slow-2.7.2": {},
    "k11_migration-4.1.2": {"server_log": True},
    "e01_lives-4.4.0": {},
    "k08_rebalance_timeout-4.1.2": {},
    "e04_share-4.4.0": {},
    "e05_streams-4.2.1": {},
    "d04_asleep-4.4.0": {"looks": True},
    "a01_changes-4.4.0": {"samples": True},
}
"""Groups of every protocol, brokers of every dialect, one that stands still, samples of the admin API: story -> what of
it is read beside requests and records."""

BASE_BYTES = 12_000
"""A base is written so often that there are a base and a journal."""


class KeptLane(NamedTuple):
    """One lane of a story, as a release left it."""

    lane: int
    batches: list[list[Record]]
    cut: int
    """So many batches were taken."""
    mark: Mark
    pieces: dict[int, bytes]
    steps: dict[int, bytes]
    """The store: a base, and the journal since."""
    state: bytes
    """`Lane.save` at the same point."""


class KeptTopic(NamedTuple):
    """A topic of which a job has read a part."""

    messages: list[tuple[int, bytes, list[tuple[str, bytes]]]]
    read: int
    """So many of them had come when the job stopped."""


def write(path: Path, content: Any) -> None:
    """Msgpack, compressed, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(msgspec.msgpack.encode(content), mtime=0))


def busiest(lanes: tuple[tuple[Any, ...], ...]) -> int:
    """The lane with the most events."""
    return max(range(LANES), key=lambda lane: len(lanes[lane]))


def in_batches(story: str, **read: bool) -> tuple[int, list[list[Record]]]:
    """The busiest lane of a story, as a job reads it that follows it: a batch a second."""
    looks = read.pop("looks", False)
    lanes = lanes_of(story, **read)
    lane = busiest(lanes)
    found: list[list[Record]] = []
    offset = 0
    for number, events in enumerate(read_live(lanes[lane], 1_000, stamps_of(story))):
        values = [value for value, _ in batches([*events, *(looked(number, events) if looks else [])])]
        found.append([Record(offset + at, 0, FORMAT, value) for at, value in enumerate(values)])
        offset += len(values)
    return lane, found


def looked(number: int, events: list[Event]) -> list[Event]:
    """Ends of the partitions that groups have just committed to, a record beyond; the offsets topic is read so far."""
    at_ms = max(event.logged_at_ms for event in events)
    ends: dict[str, list[list[int]]] = {}
    for event in events:
        if event.kind == Kind.OFFSET_RECORD and event.detail is not None:
            topic, partition, offset = (event.detail[name] for name in ("topic", "partition", "offset"))
            ends.setdefault(topic, []).append([partition, 0, offset + 1, 0])
    detail: dict[str, Any] = {"ends": [[topic, told] for topic, told in ends.items()]}
    detail |= {} if number else {"begins": True}
    place = (ALL_SHARDS, "offsets-topic/ends/a.0", number, number + 1)
    read = tick("offsets-topic/offsets/all", number, number + 1, at_ms + 1, 0, 0, {}, at_ms + 1)
    return [Event(int(Kind.ENDS), *place, at_ms, at_ms, at_ms, at_ms, detail=detail), read]


def is_in_a_rebalance(lane: Lane) -> bool:
    """Whether a group of it is, as far as it is known."""
    open_states = (GroupState.PREPARING, GroupState.COMPLETING)
    groups = lane.model.groups.values()  # type: ignore[attr-defined]
    return any(group.state in open_states or (group.modern and group.modern.bumps) for group in groups)


def keep_lane(story: str, **read: bool) -> KeptLane:
    """Take a story to the last of its open rebalances; to its middle, if it has none."""
    factory = ObserverFactory(ObserverSettings("test"))
    number, found = in_batches(story, **read)
    lane = Lane(factory, TOPIC, number, LANES)
    cut = len(found) // 2
    for at, records in enumerate(found):
        lane.step(records)
        if is_in_a_rebalance(lane) and len(found) // 4 < at + 1 < len(found) * 3 // 4:
            cut = at + 1
    store = InMemory()
    kept = journal.read(store, lambda: Lane(factory, TOPIC, number, LANES))
    for at, records in enumerate(found[:cut]):
        kept.lane.step(records)
        journal.write(store, kept, records, b"%16d" % at, BASE_BYTES)
    assert store.said is not None
    return KeptLane(number, found, cut, store.said, store.pieces, store.steps, kept.lane.save())


def keep_job(folder: Path) -> None:
    """Run `kardia stream` on the first half of a story, both queries."""
    from tests.spark_jobs.support import produce, run_stream, story_messages, stream_command

    messages = story_messages(slices=12)
    read = len(messages) // 2
    write(folder / "topic.msgpack.gz", KeptTopic([(lane, value or b"", more) for lane, value, more in messages], read))
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        with Broker(home / "broker") as broker:
            broker.create_topic(TOPIC, LANES)
            produce(broker.bootstrap, TOPIC, messages[:read])
            done = run_stream(
                stream_command(broker.bootstrap, TOPIC, home / "job", "--once"), {"KARDIA_STREAM_MAX_RECORDS": "40"}
            )
            assert done.returncode == 0, done.stderr
        for text in home.glob("job/tables/*/_delta_log/*.json"):
            text.write_bytes(text.read_bytes().replace(place.encode(), KEPT_AT.encode()))
        for text in home.glob("job/checkpoint/live/*/state/*/_metadata/*/[0-9]*"):
            text.write_bytes(text.read_bytes().replace(place.encode(), KEPT_AT.encode()))
            (text.parent / f".{text.name}.crc").unlink()  # without it there is nothing to check against
        with (
            gzip.GzipFile(folder / "job.tar.gz", "wb", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            tar.add(home / "job", "job", filter=_plain)


def _plain(found: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file of nobody; locks are of the run."""
    if found.name.endswith(".lock"):
        return None
    found.uid = found.gid = found.mtime = 0
    found.uname = found.gname = ""
    return found


def keep_positions(folder: Path) -> None:
    """What a collector of one broker saves."""
    store = Store(folder)
    log = "/var/log/kafka/kafka-request.log"
    saved = Saved("ab12", 1, 2, 1_024, "c" * 32, 4_096, 64, "d" * 32, 5, 1_700_000_000_000.5, 4_000)
    store.save_committed(SavedCommitted(groups=[("billing", 7, [("orders", [0, 1])])]), 1)
    store.save(Positions(cluster="demo", brokers={log: "broker:9092"}, files={log: [saved]}, offsets={0: 12, 7: 3}))
    store.save_directory(SavedDirectory(entries=[("client", "10.0.0.1", [3])]))
    store.close()
    (folder / "lock").unlink()


def keep_notifier(folder: Path) -> None:
    """What a notifier saves that has raised one alert, and could not tell a target of it."""
    at_ms = 1_700_000_000_000
    finding = Finding(
        "KafkaGroupMemberEviction", "demo", "billing", "", "billing-1 was evicted", ("billing-1",), ("m-1",)
    )
    alert = Alert(finding, at_ms, at_ms, at_ms, at_ms, 1, [at_ms], named=["m-1"])
    file = StateFile(folder)
    file.save(Memory(alerts=[alert], outboxes={"hook": [Notice("1", "raised", finding, at_ms, at_ms)]}))
    file.close()
    (folder / "notify.lock").unlink()


def by_position() -> dict[str, list[str]]:
    """Names of the fields of everything that the state keeps without them: type -> names, in the order of the bytes."""
    found: dict[str, list[str]] = {}
    waiting: list[Any] = [Group, *KEPT_BY_OBSERVER.values()]
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        if isinstance(one, type) and hasattr(one, "__annotations__") and one.__name__ not in found and one is not Event:
            hints = {name: kind for name, kind in get_type_hints(one).items() if get_origin(kind) is not ClassVar}
            names = getattr(one, "_fields", getattr(one, "__struct_fields__", ()))
            if names:
                found[one.__name__] = list(names)
                waiting += hints.values()
    return dict(sorted(found.items()))


def main() -> None:
    """Keep everything."""
    folder = KEPT / str(state_codec.VERSION)
    fields = folder / "fields.json"
    fields.parent.mkdir(parents=True, exist_ok=True)
    fields.write_bytes(msgspec.json.format(msgspec.json.encode(by_position())) + b"\n")
    for story, read in STORIES.items():
        write(folder / "lanes" / f"{story}.msgpack.gz", keep_lane(story, **read))
    keep_positions(folder / "positions")
    keep_notifier(folder / "notify")
    keep_job(folder)


if __name__ == "__main__":
    main()
