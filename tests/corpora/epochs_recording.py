"""Records a story of groups with epochs: `python -m tests.corpora.epochs_recording STORY VERSION FOLDER`.

Real brokers (`demo.broker`) and real clients: Java's consumer and share consumer (`Crowd.java`, many members in one
process, or one alone where it is to be killed), a Kafka Streams application (`Streams.java`), librdkafka
(`demo.consumer`), and franz-go, sarama and kafka-go (`gomember`, which takes Go to be built). A story is a list of what
is done when, by name or drawn by chance (`drawn-N`; `others-N` with members of Go); many groups live side by side, so
that one broker serves all of it. What is kept has the shape of the other stories; `expect.json` comes from
server.log alone (`expected_epochs`). Nothing here knows how Kardia reads any of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demo.broker import Broker, BrokerSettings, jar_set
from demo.brokers import cluster
from kardia.kafka.releases import version_of
from spark_jobs.jvm import jars
from supervise import process
from tests.corpora.drawn_stories import KINDS, OTHERS, drawn
from tests.corpora.epoch_stories import STORIES
from tests.corpora.expected_epochs import expectation
from tests.corpora.recording import asked, keep, keep_offsets, write
from tests.corpora.story import Step, Story

CLASSIC = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "1000"}

SETTINGS = {
    **CLASSIC,
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.heartbeat.interval.ms": "2000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "10000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "2000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "10000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "2000",
    "group.streams.initial.rebalance.delay.ms": "1000",
}

OLD_CLIENT = "4.1.2"
"""Release of Java's consumer where the broker's own has no share consumer."""

STREAMS_CLIENT = "4.2.1"
"""Release of the Kafka Streams that is run, whatever the broker's."""

OF_GO = ("franz", "sarama", "kafkago")
"""Libraries of `gomember`."""

_HERE = Path(__file__).resolve().parent


class Recording:
    """Brokers and clients, and what was done to them."""

    def __init__(self, story: Story, version: str, folder: Path) -> None:
        self.story, self._folder = story, folder
        self._client = version if version_of(version) >= (4, 0, 0) else OLD_CLIENT
        self.settings = {**(SETTINGS if version_of(version) >= (4, 0, 0) else CLASSIC), **story.settings}
        settings = BrokerSettings(version=version, extra=self.settings)
        self.brokers = [Broker(folder / "broker", settings)]
        if story.nodes > 1:
            self.brokers = cluster(settings, folder, story.nodes)
        self.broker = self.brokers[0]
        """The one to which something is done."""
        self.truth: list[dict[str, Any]] = []
        self._running: dict[str, subprocess.Popen[str]] = {}
        """Process of a member that has one of its own."""
        self._groups: dict[str, str] = {}
        self._crowd: subprocess.Popen[str] | None = None
        self._threads = ThreadPoolExecutor(story.nodes)
        """A broker ends with the thread that started it, so the threads stay."""

    @property
    def bootstrap(self) -> str:
        """Addresses for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def boot(self) -> None:
        """Start the brokers and the process in which most Java members live."""
        list(self._threads.map(Broker.start, self.brokers))
        self.broker.create_topic("orders", 6)
        self.broker.create_topic("refunds", 2)
        self._crowd = self._java("crowd", "Crowd", self._client)
        self._tell("", "load orders 20")
        self._tell("", "load refunds 5")

    def _java(self, log: str, program: str, version: str, *words: str) -> subprocess.Popen[str]:
        paths = jars.ensure(jar_set(version))
        if program == "Streams":
            paths = [*paths, *jars.ensure(f"streams-{version}")]
        class_path = os.pathsep.join(map(str, paths))
        classes = self._folder / f"classes-{program}"
        if not classes.exists():
            command = [shutil.which("javac") or "javac", "-d", str(classes), "-cp", class_path]
            subprocess.run([*command, str(_HERE / f"{program}.java")], check=True)
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += ["-cp", f"{classes}{os.pathsep}{class_path}", program, self.bootstrap, *words]
        return process.spawn(command, log=self._folder / f"{log}.log", commanded=True)

    # --- what is done

    def do(self, step: Step) -> None:
        """One line of the story."""
        verb, *words = step.split()
        at_ms = time.time_ns() // 1_000_000
        name = words[0] if words else "broker"
        self.truth.append({"t": at_ms, "src": "driver", "member": name, "action": verb, "words": words[1:]})
        getattr(self, f"_{verb}")(*words)

    def _start(self, name: str, kind: str, group: str, *settings: str) -> None:
        """`kind`: classic, consumer, share in the crowd, with `-alone` in a process of its own; `rd-` and one of the
        first two for librdkafka; `franz-`, `sarama-` or `kafkago-` and what they speak; streams."""
        self._groups[name] = group
        library, _, protocol = kind.partition("-")
        if kind.startswith("rd"):
            self._running[name] = self._librdkafka(name, kind.removeprefix("rd-"), group, settings)
        elif library in OF_GO:
            command = [str(self._go_member()), library, self.bootstrap, name, protocol, group, *settings]
            self._running[name] = process.spawn(command, log=self._folder / f"{name}.log", commanded=True)
        elif kind == "streams":
            self._running[name] = self._java(name, "Streams", STREAMS_CLIENT, name, group, *settings)
        elif kind.endswith("-alone"):
            self._running[name] = self._java(name, "Crowd", self._client)
            self._tell(name, " ".join(["start", name, kind.removesuffix("-alone"), group, *settings]))
        else:
            self._tell(name, " ".join(["start", name, kind, group, *settings]))

    def _librdkafka(self, name: str, protocol: str, group: str, settings: Sequence[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "demo.consumer", "--bootstrap-server", self.bootstrap, "--group", group]
        command += ["--client-id", name, "--topic", "orders", "--session-timeout-ms", "10000", "--protocol", protocol]
        command += [f"--{one}" for one in settings]
        return process.spawn(command, log=self._folder / f"{name}.log", environ=process.environ(), commanded=True)

    def _go_member(self) -> Path:
        """The program of those libraries, built once."""
        built = self._folder / "gomember"
        if not built.exists():
            go = shutil.which("go")
            if go is None:
                raise SystemExit(
                    "members of Go's libraries take Go 1.26 or newer to be built: install it, or record drawn-N"
                )
            subprocess.run([go, "build", "-o", str(built), "."], cwd=_HERE / "gomember", check=True)
        return built

    def _tell(self, name: str, line: str) -> None:
        to = self._running.get(name, self._crowd)
        if to is None or to.stdin is None:
            raise SystemExit(f"nobody hears {line}")
        try:
            to.stdin.write(line + "\n")
            to.stdin.flush()
        except BrokenPipeError:  # it has ended by itself, as an application may
            self.truth.append({"t": time.time_ns() // 1_000_000, "src": "driver", "member": name, "action": "is gone"})

    def _do(self, name: str, *words: str) -> None:
        self._tell(name, " ".join(["do", name, *words]))

    def _say(self, name: str, *words: str) -> None:
        """To a librdkafka consumer or a Streams application, in its own words."""
        self._tell(name, " ".join(words))

    def _admin(self, *words: str) -> None:
        self._tell("", " ".join(["admin", *words]))

    def _kill(self, name: str) -> None:
        process.kill_session(self._running[name])

    def _stop(self, name: str) -> None:
        os.killpg(self._running[name].pid, signal.SIGSTOP)

    def _cont(self, name: str) -> None:
        os.killpg(self._running[name].pid, signal.SIGCONT)

    def _breaks(self, group: str) -> None:
        """SIGKILL for the coordinator of a group."""
        if len(self.brokers) > 1:
            from confluent_kafka.admin import AdminClient

            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            found = admin.describe_consumer_groups([group])[group].result(30)
            self.broker = next(one for one in self.brokers if one.port == found.coordinator.port)
        self.broker.kill()

    def _mends(self) -> None:
        self._threads.submit(self.broker.start).result()

    def end(self) -> None:
        """Stop everything."""
        for running in [*self._running.values(), *([self._crowd] if self._crowd else [])]:
            process.kill_session(running)
        list(self._threads.map(Broker.stop, self.brokers))
        self._threads.shutdown()

    def heard(self) -> list[dict[str, Any]]:
        """What the clients said themselves."""
        said = []
        for log in sorted(self._folder.glob("*.log")):
            for line in log.read_text(errors="replace").splitlines():
                if line.startswith("{"):
                    one = json.loads(line)
                    said.append({"t": one.pop("t", one.pop("at_ms", 0)), "src": "client", "log": log.stem} | one)
        return said


def record(recording: Recording, folder: Path) -> tuple[int, int]:
    """Let it happen; returns the instants between which it is judged."""
    recording.boot()
    try:
        begin_ms, begin = time.time_ns() // 1_000_000, time.monotonic()
        for at_s, step in sorted(recording.story.steps, key=lambda one: one[0]):
            time.sleep(max(0.0, begin + at_s - time.monotonic()))
            recording.do(step)
        time.sleep(max(0.0, begin + recording.story.lasts_s - time.monotonic()))
        end_ms = time.time_ns() // 1_000_000
        keep_offsets(recording.bootstrap, folder / "offsets.jsonl")
    finally:
        recording.end()
    return begin_ms, end_ms


def main(argv: Sequence[str] | None = None) -> None:
    """Record and keep one story."""
    options = asked(argv, __doc__ or "", STORIES, r"(?:drawn|others)-\d+")
    to = options.to / f"{options.story}-{options.version}"
    kind, _, seed = options.story.partition("-")
    story = STORIES.get(options.story) or drawn(int(seed), options.version, OTHERS if kind == "others" else KINDS)
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(story, options.version, Path(folder))
        begin_ms, end_ms = record(recording, Path(folder))
        to.mkdir(parents=True)
        keep(recording.brokers, Path(folder), to)
        truth = sorted([*recording.truth, *recording.heard()], key=lambda one: one["t"])
        judged = {"scenario": options.story, "broker": options.version, "start_ms": begin_ms, "end_ms": end_ms}
        meta = {"what": story.what, "broker_version": options.version, "nodes": story.nodes, "log_timezone": "UTC"}
        meta["settings"] = recording.settings
        expected = expectation([broker.server_log for broker in recording.brokers])
        write(to, judged, meta, truth, expected)


if __name__ == "__main__":
    main()
