"""Records a story of a broker that dies or stands still: `python -m tests.corpora.recording STORY VERSION FOLDER`.

A real broker (`demo.broker`), consumers of two libraries, and one thing done to the broker: SIGKILL and a new start, or
SIGSTOP and SIGCONT. Some consumers are killed with the broker, others live through it. What is kept has the shape of
the other stories: request log, server.log, records of `__consumer_offsets`, `truth.jsonl` with what was done and when,
`meta.json`, and `expect.json`, which comes from server.log alone (`demo.server_log`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from demo import server_log
from demo.broker import Broker, BrokerSettings, jar_set
from demo.brokers import cluster
from spark_jobs.jvm import jars
from supervise import process

SESSION_MS, HEARTBEAT_MS = 10_000, 2_000
STEADY_S = 9.0
"""Between the last assignment and what is done to the broker."""

JAVA_MEMBER = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;

public class Member {
    public static void main(String[] words) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", words[0]);
        settings.put("group.id", words[1]);
        settings.put("client.id", words[2]);
        settings.put("session.timeout.ms", words[3]);
        settings.put("heartbeat.interval.ms", words[4]);
        settings.put("auto.commit.interval.ms", "2000");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(List.of("orders"), new ConsumerRebalanceListener() {
            public void onPartitionsRevoked(Collection<org.apache.kafka.common.TopicPartition> taken) { }
            public void onPartitionsAssigned(Collection<org.apache.kafka.common.TopicPartition> given) {
                System.out.println("{\\"what\\": \\"assigned\\"}");
            }
        });
        while (true) consumer.poll(Duration.ofMillis(500));
    }
}
"""


@dataclass(frozen=True)
class Story:
    """What is done to the broker, and how long it takes until it is well again."""

    what: str
    down_s: float
    stands_still: bool = False
    """SIGSTOP and SIGCONT, instead of SIGKILL and a new start."""
    asleep: bool = False
    """The consumers stand still as well, as on a machine that sleeps."""
    nodes: int = 1
    """Brokers of the cluster; it is done to the one that coordinates the group `pair`."""
    after_s: float = 27.0


STORIES = {
    "d01_kill_long": Story("one broker, SIGKILL, started again when every session is over", 17.0),
    "d02_kill_short": Story("one broker, SIGKILL, started again at once: no session is over by then", 0.0),
    "d03_stand_still": Story("one broker, SIGSTOP for longer than a session, SIGCONT", 14.0, stands_still=True),
    "d04_asleep": Story(
        "broker and consumers, SIGSTOP for longer than a session, SIGCONT: the machine slept",
        14.0,
        stands_still=True,
        asleep=True,
    ),
    "d05_three_stand_still": Story(
        "three brokers, the coordinator SIGSTOP for longer than a session, SIGCONT: another one leads its groups then",
        14.0,
        stands_still=True,
        nodes=3,
    ),
    "d06_three_kill_short": Story("three brokers, the coordinator SIGKILL and started again at once", 0.0, nodes=3),
}


class Recording:
    """Brokers and their consumers, and what was done to them."""

    def __init__(self, version: str, folder: Path, nodes: int) -> None:
        self._folder = folder
        self.brokers = [Broker(folder / "broker", BrokerSettings(version=version))]
        if nodes > 1:
            self.brokers = cluster(BrokerSettings(version=version), folder, nodes)
        self.broker = self.brokers[0]
        self.truth: list[dict[str, Any]] = []
        self._members: dict[str, subprocess.Popen[str]] = {}
        self._classes = folder / "classes"
        self._jars = os.pathsep.join(str(path) for path in jars.ensure(jar_set(version)))

    @property
    def bootstrap(self) -> str:
        """Addresses for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def boot(self) -> None:
        """Start the brokers side by side: none is ready before most of them are. A process ends with the thread that
        started it, so the threads stay."""
        self._threads = ThreadPoolExecutor(len(self.brokers))
        list(self._threads.map(Broker.start, self.brokers))

    def aim(self, group: str) -> None:
        """What is done is done to the coordinator of a group."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        found = admin.describe_consumer_groups([group])[group].result(30)
        self.broker = next(one for one in self.brokers if one.port == found.coordinator.port)

    def compile(self) -> None:
        """Make the Java consumer."""
        self._classes.mkdir()
        (self._classes / "Member.java").write_text(JAVA_MEMBER)
        command = [shutil.which("javac") or "javac", "-cp", self._jars, "Member.java"]
        subprocess.run(command, cwd=self._classes, check=True)

    def tell(self, member: str, action: str, **more: Any) -> None:
        """Note what the driver does."""
        at_ms = time.time_ns() // 1_000_000
        self.truth.append({"t": at_ms, "src": "driver", "member": member, "action": action, **more})

    def start(self, group: str, name: str, *, java: bool = False, instance: str = "") -> None:
        """Start a consumer. `instance`: the static id of one of librdkafka's."""
        self.tell(name, "start", group=group, kind="java" if java else "ck")
        words = [self.bootstrap, group, name, str(SESSION_MS), str(HEARTBEAT_MS)]
        command = ["java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-cp", f"{self._classes}{os.pathsep}{self._jars}"]
        command += ["Member", *words]
        if not java:
            command = [sys.executable, "-m", "demo.consumer", "--bootstrap-server", words[0], "--group", group]
            command += ["--client-id", name, "--topic", "orders", "--session-timeout-ms", words[3]]
            command += ["--heartbeat-interval-ms", words[4], "--poll-interval-ms", "60000"]
            command += ["--instance-id", instance] if instance else []
        self._members[name] = process.spawn(
            command, log=self._folder / f"{name}.log", environ=process.environ(), commanded=not java
        )

    def await_assigned(self, name: str) -> None:
        """Wait until a consumer has its partitions."""
        log = self._folder / f"{name}.log"
        process.until(lambda: '"assigned"' in log.read_text(), 60.0, lambda: process.tail(log))

    def leave(self, name: str) -> None:
        """Close one of librdkafka's consumers in order, and wait until it is gone."""
        running = self._members[name]
        self.tell(name, "leave")
        if running.stdin is None:
            raise SystemExit(f"nobody hears leave: {name}")
        running.stdin.write("leave\n")
        running.stdin.flush()
        running.wait(60)

    def kill(self, *names: str) -> None:
        """SIGKILL for consumers."""
        for name in names:
            process.kill_session(self._members[name])
            self.tell(name, "SIGKILL")

    def harm(self, story: Story) -> None:
        """Do to the broker what the story says, and to two consumers with it."""
        self.tell("broker", "SIGSTOP" if story.stands_still else "SIGKILL")
        if story.stands_still:
            os.kill(self.broker.pid, signal.SIGSTOP)
        else:
            self.broker.kill()
        self.kill("pair-b", "lone-a")
        others = [running for running in self._members.values() if running.poll() is None] if story.asleep else []
        for running in others:
            os.killpg(running.pid, signal.SIGSTOP)
        time.sleep(story.down_s)
        self.tell("broker", "SIGCONT" if story.stands_still else "start")
        for running in others:
            os.killpg(running.pid, signal.SIGCONT)
        if story.stands_still:
            os.kill(self.broker.pid, signal.SIGCONT)
        else:
            self.broker.start()

    def end(self) -> None:
        """Stop everything."""
        self.kill(*(name for name, running in self._members.items() if running.poll() is None))
        list(self._threads.map(Broker.stop, self.brokers))  # the last one would wait for those that are gone
        self._threads.shutdown()


def record(story: Story, version: str, folder: Path) -> tuple[Recording, int, int]:
    """Let it happen; returns the recording and the instants between which it is judged."""
    recording = Recording(version, folder, story.nodes)
    recording.compile()
    recording.boot()
    try:
        recording.broker.create_topic("orders", 3)
        members = {"pair-a": "pair", "pair-b": "pair", "lone-a": "lone", "both-a": "both", "both-b": "both"}
        begin_ms = time.time_ns() // 1_000_000
        for name, group in members.items():
            recording.start(group, name, java=name == "pair-a")
        for name in members:
            recording.await_assigned(name)
        time.sleep(STEADY_S)
        recording.aim("pair")
        recording.harm(story)
        time.sleep(6.0)
        recording.start("lone", "lone-b")
        time.sleep(story.after_s)
        end_ms = time.time_ns() // 1_000_000
        keep_offsets(recording.bootstrap, folder / "offsets.jsonl")
    finally:
        recording.end()
    return recording, begin_ms, end_ms


def keep_offsets(bootstrap: str, path: Path) -> None:
    """Write every record of `__consumer_offsets`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "dump", "enable.partition.eof": True})
    partitions = consumer.list_topics("__consumer_offsets", timeout=30).topics["__consumer_offsets"].partitions
    consumer.assign([TopicPartition("__consumer_offsets", number, 0) for number in partitions])
    open_ends = set(partitions)
    with path.open("w") as file:
        while open_ends:
            message = consumer.poll(10.0)
            if message is None:
                raise SystemExit("the offsets topic was not read to its end within 10 s")
            if message.error():
                open_ends.discard(message.partition())
                continue
            key, value = message.key() or b"", message.value()
            place = {"partition": message.partition(), "offset": message.offset()}
            record = {"timestamp_ms": message.timestamp()[1], "key": key.hex(), "value": value and value.hex()}
            file.write(json.dumps(place | record) + "\n")
    consumer.close()


def kept(line: bytes) -> bool:
    """Whether a line of server.log is kept: the coordinator's, and those of the start."""
    return any(words in line for words in (b"[GroupCoordinator", b"[GroupMetadataManager", b"Kafka Server started"))


def expectation(logs: Sequence[Path]) -> dict[str, Any]:
    """Evictions, leaves, static members whose seat was taken, and rebalances, as the brokers' server.log tell them."""
    facts = [
        (number, one)
        for number, log in enumerate(logs, 1)
        for one in server_log.facts(log.read_text().splitlines(), UTC)
    ]
    facts.sort(key=lambda fact: fact[1].at_ms)
    evictions = [
        {"group": one.group_id, "member_id": one.member_id, "t": one.at_ms, "why": "session timeout", "broker": number}
        for number, one in facts
        if one.what == server_log.MEMBER_FAILED
    ]
    rebalances = [
        {
            "group": one.group_id,
            "from_gen": one.generation,
            "t_start": one.at_ms,
            "reason": one.reason,
            "broker": number,
            **_end_of(one, facts[place:]),
        }
        for place, (number, one) in enumerate(facts)
        if one.what == server_log.REBALANCE_STARTED
    ]
    return {
        "evictions": evictions,
        "leaves": _ends(facts, server_log.MEMBER_LEFT),
        "replacements": _ends(facts, server_log.STATIC_REPLACED),
        "rebalances": rebalances,
    }


def _ends(facts: Sequence[tuple[int, server_log.Fact]], what: str) -> list[dict[str, Any]]:
    """Who was no member any more, by one kind of sentence."""
    return [
        {"group": one.group_id, "member_id": one.member_id, "t": one.at_ms, "broker": number}
        for number, one in facts
        if one.what == what
    ]


def _end_of(begin: server_log.Fact, later: Sequence[tuple[int, server_log.Fact]]) -> dict[str, int]:
    """Generation of a rebalance and when it was done, as far as the sentences up to the next rebalance of its group
    tell it."""
    told: dict[str, int] = {}
    for _, one in later:
        if one.group_id != begin.group_id or one is begin:
            continue
        if one.what == server_log.REBALANCE_STARTED:
            break
        if one.what == server_log.GENERATION_STARTED:
            told |= {"to_gen": one.generation, "t_joined": one.at_ms, "members": one.members}
        elif one.what == server_log.GROUP_EMPTY:
            told |= {"to_gen": one.generation, "t_joined": one.at_ms, "t_done": one.at_ms, "members": 0}
        elif one.what == server_log.ASSIGNED:
            told["t_done"] = one.at_ms
    return told


def set_apart(expected: dict[str, Any], broker: int, truth: list[dict[str, Any]]) -> None:
    """A coordinator that wakes expires everybody before it learns that another one leads its groups: that is none."""
    stopped_ms = next(one["t"] for one in truth if one["action"] == "SIGSTOP")
    expected["overtaken"] = []
    for what in ("evictions", "rebalances"):
        rows = expected[what]
        late = [row for row in rows if row["broker"] == broker and row.get("t", row.get("t_start")) >= stopped_ms]
        expected["overtaken"] += late
        expected[what] = [row for row in rows if row not in late]


def keep(brokers: Sequence[Broker], folder: Path, to: Path) -> None:
    """Pack the logs of every broker, and the records."""
    several = len(brokers) > 1
    logs = [(folder / "offsets.jsonl", "offsets.jsonl")]
    logs += [
        (log, f"{log.stem}-{number}{log.suffix}" if several else log.name)
        for number, broker in enumerate(brokers, 1)
        for log in (broker.request_log, broker.server_log)
    ]
    for log, name in logs:
        with log.open("rb") as source, gzip.GzipFile(to / f"{name}.gz", "wb", mtime=0) as packed:
            packed.writelines(line for line in source if not name.startswith("server") or kept(line))


def asked(argv: Sequence[str] | None, about: str, stories: Iterable[str], others: str = "") -> argparse.Namespace:
    """Which story is to be recorded on which release, and where it goes. `others`: a pattern of further names."""

    known = sorted(stories)

    def story(name: str) -> str:
        if name not in known and not re.fullmatch(others, name):
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join([*known, *filter(None, [others])])}")
        return name

    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("story", type=story)
    parser.add_argument("version")
    parser.add_argument("to", type=Path, help="folder in which the story gets one of its own")
    return parser.parse_args(argv)


def write(
    to: Path,
    judged: Mapping[str, Any],
    meta: Mapping[str, Any],
    truth: Iterable[Mapping[str, Any]],
    expected: Mapping[str, Any],
) -> None:
    """The files about a story that are beside its logs; `judged`: which story, on what, between which instants."""
    (to / "truth.jsonl").write_text("".join(json.dumps(one) + "\n" for one in truth))
    (to / "meta.json").write_text(json.dumps({**judged, **meta}, indent=1) + "\n")
    (to / "expect.json").write_text(json.dumps({**judged, **expected}, indent=1) + "\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Record and keep one story."""
    options = asked(argv, __doc__ or "", STORIES)
    story, to = STORIES[options.story], options.to / f"{options.story}-{options.version}"
    with tempfile.TemporaryDirectory() as folder:
        recording, begin_ms, end_ms = record(story, options.version, Path(folder))
        to.mkdir(parents=True)
        keep(recording.brokers, Path(folder), to)
        judged = {"scenario": options.story, "broker": options.version, "start_ms": begin_ms, "end_ms": end_ms}
        meta = {"what": story.what, "broker_version": options.version, "nodes": story.nodes, "log_timezone": "UTC"}
        expected = expectation([broker.server_log for broker in recording.brokers])
        if story.nodes > 1 and story.stands_still:
            set_apart(expected, recording.brokers.index(recording.broker) + 1, recording.truth)
        write(to, judged, meta, recording.truth, expected)


if __name__ == "__main__":
    main()
