"""How long sessions of groups with epochs are, as the cluster is configured: asked of it now and then, told in ticks.

Neither requests nor records say it: `group.consumer.session.timeout.ms` (`share`, `streams`) is a setting of the
brokers, and a group may have its own. Only groups that `__consumer_offsets` has shown are asked about. A thread asks,
because an answer may take its time and no line waits for it. Read only; needs DescribeConfigs on the cluster and on the
groups, and without that nothing is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)

from ingest.clients.log import CLIENT_LOG
from ingest.security.reach import made
from kardia.events import Event, Kind
from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS

EPOCH_RECORDS = frozenset({3, 11, 17})
"""Record types that say the epoch of a group: ConsumerGroupMetadata, ShareGroupMetadata, StreamsGroupMetadata."""

ASK_EVERY_S = 60.0
"""A change is known at the latest so long after it was made."""

ASK_AGAIN_S = 1.0
"""A group that has just been met is asked about so soon."""

TELL_EVERY_S = 60.0
"""It is told again so often, changed or not: whoever begins to read the topic in its midst needs it too."""

TIMEOUT_S = 10.0
MAX_GROUPS = 10_000
"""Groups with epochs that are asked about; with more of them nothing is told, because any of them may have its own."""

MAX_OWN = 1_000
"""Groups with a configuration of their own in one tick, likewise."""

PORTION = 200
"""Groups in one request."""

Sessions = dict[str, int]
"""Protocol -> session timeout in milliseconds."""


class SessionConfig:
    """Asks one cluster. `take` and `heard` are for the collector's thread."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, Any] | None = None,
        say: Callable[[str], None] = lambda _: None,
        every_s: float = ASK_EVERY_S,
    ) -> None:
        """Begin to ask at once, and again `every_s`."""
        self._every_s = every_s
        own = {**(settings or {}), "bootstrap.servers": bootstrap}
        self._admin: AdminClient = made(AdminClient, own, logger=CLIENT_LOG)
        self._say = say
        self._said = ""
        self._groups: set[str] = set()
        self._known: dict[str, Any] | None = None
        self._told: dict[str, Any] | None = None
        self._told_s = 0.0
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="session config", daemon=True)
        self._thread.start()

    def heard(self, event: Event) -> None:
        """Note which groups have epochs, by the records of their epochs."""
        detail = event.detail or {}
        if event.kind != Kind.OTHER_RECORD or detail.get("record_type") not in EPOCH_RECORDS:
            return
        with self._lock:
            if detail.get("tombstone"):
                self._groups.discard(event.group_id)
            elif event.group_id not in self._groups and len(self._groups) <= MAX_GROUPS:
                self._groups.add(event.group_id)
                self._wanted.set()

    def take(self) -> dict[str, Any] | None:
        """What a tick should tell now, as `kardia.events.DETAILS` has it; None if that has been told."""
        now_s = time.monotonic()
        with self._lock:
            known = self._known
            if known is None or (known == self._told and now_s - self._told_s < TELL_EVERY_S):
                return None
            self._told, self._told_s = known, now_s
            return known

    def close(self) -> None:
        """Ask no more."""
        self._ended.set()
        self._wanted.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wanted.clear()
            try:
                known = self._ask()
            except KafkaException as error:
                trouble = error.args[0].str().rstrip(".")
                self._tell_trouble(
                    f"session timeouts of groups with epochs cannot be read: {trouble}. Expected: "
                    "an answer to DescribeConfigs of cluster and groups. Next: allow that (`kardia doctor` prints the "
                    "lines); until then they are not known"
                )
            else:
                with self._lock:
                    self._known = known
            self._ended.wait(min(ASK_AGAIN_S, self._every_s))
            self._wanted.wait(self._every_s)

    def _ask(self) -> dict[str, Any] | None:
        """What the cluster says; None if that would not be the whole of it."""
        brokers = [str(number) for number in self._admin.list_topics(timeout=TIMEOUT_S).brokers]
        of_brokers = self._described(ResourceType.BROKER, brokers, "group.{}.session.timeout.ms", dynamic_only=False)
        sessions = self._agreed(of_brokers.values())
        with self._lock:
            groups = sorted(self._groups)
        own: dict[str, Sessions] = {}
        for begin in range(0, len(groups), PORTION) if len(groups) <= MAX_GROUPS else ():
            portion = groups[begin : begin + PORTION]
            own |= self._described(ResourceType.GROUP, portion, "{}.session.timeout.ms", dynamic_only=True)
        if len(groups) > MAX_GROUPS or len(own) > MAX_OWN:
            self._tell_trouble(
                f"there are more than {MAX_GROUPS} groups with epochs, or more than {MAX_OWN} with a configuration of "
                "their own: their session timeouts are not told"
            )
            return None
        return {"session_ms": sessions, "group_session_ms": own} if sessions or own else None

    def _described(
        self, kind: ResourceType, names: Iterable[str], setting: str, *, dynamic_only: bool
    ) -> dict[str, Sessions]:
        """Name -> what is configured of each protocol; names without any are left out. `dynamic_only`: what somebody
        has set, not what follows from the brokers' settings."""
        asked = [ConfigResource(kind, name) for name in names]
        found: dict[str, Sessions] = {}
        answers = self._admin.describe_configs(asked, request_timeout=TIMEOUT_S) if asked else {}
        for resource, future in answers.items():
            entries = future.result(TIMEOUT_S)
            own = {
                protocol: int(entry.value)
                for protocol in PROTOCOLS_WITH_EPOCHS
                if (entry := entries.get(setting.format(protocol))) is not None
                and entry.value
                and not (dynamic_only and entry.is_default)
            }
            if own:
                found[resource.name] = own
        return found

    def _agreed(self, told: Iterable[Sessions]) -> Sessions:
        """What all brokers say; a setting in which they differ is not known."""
        every = list(told)
        agreed: Sessions = {}
        for protocol in PROTOCOLS_WITH_EPOCHS:
            values = {one.get(protocol) for one in every}
            value = values.pop() if len(values) == 1 else None
            if value is not None:
                agreed[protocol] = value
            elif values:
                self._tell_trouble(
                    f"the brokers differ in group.{protocol}.session.timeout.ms. Expected: one value in the cluster. "
                    "Next: set it alike everywhere; until then it counts as not known"
                )
        return agreed

    def _tell_trouble(self, sentence: str) -> None:
        """Once, until something else is the matter."""
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)
