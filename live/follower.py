"""Follows the topic of a job that writes the tables, and steps the same lanes ahead of them: the thread of
`kardia serve --follow-topic`.

    (1) the lanes are taken over as the job's last batch left them (`live.handed`)
    (2) records are read from there on, without a group and without commits (`live.topic`), and the lanes are stepped
        record by record: what each told is kept with its offset (`live.followed`)
    (3) a few times a second: the last batch in the tables, and the offsets at which it ends, from the checkpoint
    (4) from when everything that the tables have was stepped, answers are ahead of them

Memory and lag are bounded. When the job stands still, or the lanes fall behind, or the job begins a generation, it
stops with a sentence, answers rest on the tables alone, and it begins at (1) when there is reason to hope. It writes
nothing: not to the topic, not to the checkpoint, not to the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException

from api.errors import ApiError, TablesMissing
from api.files.reader import TableReader
from ingest.clients.settings import client_settings
from ingest.errors import IngestError
from ingest.ports import Clock
from ingest.tail.positions import Positions
from kardia.tables import LIVE_TABLES, PROGRESS
from live.followed import BATCHES, Ends, Followed
from live.handed import handed
from live.metrics import FollowMetrics
from live.settings import FollowSettings
from live.topic import FromTopic, Where
from spark_jobs.checkpoint.checkpoint_directory import Checkpoint, Generation, load, look_at
from spark_jobs.errors import JobError, NotAppliedError
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import Rows
from stores.locations import Folder

log = logging.getLogger("kardia.live.follower")

QUERY = "live"
"""Folder of the job's query in its checkpoint (`spark_jobs.stream.NAME`, whose module loads Spark)."""

LOOK_S = 0.2
"""How often it is looked how far the tables are."""

LOOK_AFAR_S = 2.0
"""The same of tables in a store, where a look is a request."""

GENERATION_S = 2.0
"""How often it is looked whether the job has begun a generation."""

BEHIND_S = 30.0
"""It stops when the tables have been ahead of it for so long: whoever asks has more of them. A pause of a garbage
collector or of a broker is over by then."""

CATCH_UP_S = 300.0
"""The same from when it has taken over the lanes: the job went on while they were read."""

ROWS_MAX = 200_000
"""Rows that the tables do not have, at which it stops: the job stands still. About 200 MB; at some 2,000 rows a second,
what samples of 100,000 members are, a minute and a half of them, twice what a restart of the job takes."""

PAUSE_S = 5.0
"""Shortest time from a stop to the next begin; it doubles with each that did not last, to `PAUSE_MAX_S`: a begin costs
some ten seconds of a processor and 1 GB of memory."""

PAUSE_MAX_S = 600.0

LASTED_S = 600.0
"""So long a run must have lasted for the pause to be the shortest again."""

WAIT_S = 0.5
"""How often it is looked whether what is waited for is there."""


class Stopped(Exception):  # noqa: N818  no error: what it does next is known
    """Following has ended. `until`: when to begin anew; None: after the pause."""

    def __init__(self, reason: str, sentence: str, until: Callable[[], bool] | None = None) -> None:
        """`reason`: one of `live.metrics.STOPS`."""
        super().__init__(sentence)
        self.reason, self.until = reason, until


class Around(NamedTuple):
    """What a process gives its follower."""

    clock: Clock
    followed: Followed
    say: Callable[[str], None]
    metrics: FollowMetrics
    stopping: Callable[[], bool]
    rest: Callable[[float], object]
    """Waits so many seconds, or until it is to stop."""


class Lanes:
    """The lanes, stepped record by record; what they tell goes to `followed`."""

    directory = Path()
    save_ms = float("inf")
    """Nothing is saved: the next start takes the lanes over from the job again."""

    def __init__(self, lanes: Sequence[Lane], followed: Followed, topic_id: str) -> None:
        """Go on where they are."""
        self._lanes, self._followed = lanes, followed
        self.positions = Positions(topic_id=topic_id)
        self.ends: Ends = {}
        """Of the last batch in the tables."""
        self.records = 0

    def next_offsets(self) -> list[int]:
        """Of each lane the offset after the last record that it took."""
        return [lane.next_offset for lane in self._lanes]

    def is_behind(self) -> bool:
        """Whether the tables have records that were not stepped."""
        return any(max(lane.next_offset, 0) < self.ends.get(lane.lane, 0) for lane in self._lanes)

    def take(self, records: Mapping[int, Sequence[Record]]) -> None:
        """Step some lanes. What the tables have is stepped in one go before anything is shown, and its rows dropped."""
        for number, some in records.items():
            end = 0 if self._followed.is_ready else self.ends.get(number, 0)
            behind = [record for record in some if record.offset < end]
            if behind:
                self._step(number, behind)
            for record in some[len(behind) :]:
                rows = {name: told for name, told in self._step(number, [record]).items() if told}
                if rows:
                    self._followed.told(number, record.offset + 1, rows)
            self.records += len(some)
        self._followed.wake()

    def _step(self, number: int, records: Sequence[Record]) -> Rows:
        try:
            return self._lanes[number].step(records)
        except NotAppliedError as error:
            raise Stopped("refused", str(error)) from error

    def begin_anew(self) -> None:
        """The topic was made again."""
        raise Stopped("topic", "the topic was deleted and made again")

    def save(self, positions: Positions) -> None:
        """Nothing is saved."""


class _Reading(FromTopic):
    """Records of the topic; a hole in it is not passed over."""

    def _on_loss(self, number: int, offset: int, begin: int) -> None:
        raise Stopped(
            "topic",
            f"partition {number} of {self._where.topic} has lost the offsets {offset} to {begin - 1} before they were "
            "read",
            lambda: True,
        )

    def _begin_anew(self) -> None:
        raise Stopped("topic", f"{self._where.topic} was deleted and made again")


class Follower:
    """Follows until it is told to stop, begins anew whenever it can."""

    def __init__(self, settings: FollowSettings, tables: Folder, cluster: str | None, around: Around) -> None:
        """Nothing is opened yet. `cluster`: the only one that is shown, if it is."""
        self._settings, self._tables, self._cluster, self._around = settings, tables, cluster, around
        self._directory = settings.checkpoint / QUERY
        self._progress = TableReader(tables, PROGRESS.name)
        self._look_s = LOOK_S if self._progress.is_near else LOOK_AFAR_S
        self._pause_s = PAUSE_S
        self._said = ""
        self._begun_s = 0.0

    def check(self) -> None:
        """Refuse what no waiting mends: a file of client settings that is wrong, a checkpoint of another topic, cluster
        or tables. Raises an `IngestError` or a `JobError`."""
        client_settings(self._settings.client_config)
        self._checkpoint()

    def _checkpoint(self) -> Checkpoint | None:
        """That of the job; None: it has not begun."""
        return look_at(self._directory, self._tables, self._settings.follow_topic, self._cluster, LIVE_TABLES)

    def run(self) -> None:
        """Follow; what goes wrong is said and tried again, for the tables are answered from all the while."""
        around = self._around
        while not around.stopping():
            begun_s = around.clock.monotonic_s()
            until: Callable[[], bool] | None = None
            try:
                self._follow_once()
            except Stopped as end:
                until = end.until
                self._stopped(end.reason, str(end))
            except (JobError, IngestError) as error:
                self._stopped("refused", str(error))
            except ApiError as error:
                self._stopped("tables", f"the tables cannot be read: {error}")
            except (KafkaException, OSError) as error:
                self._stopped("refused", f"{type(error).__name__}: {error}")
            except Exception as error:
                # A mistake of ours must not end what the tables are answered from.
                log.exception("follower.failed")
                self._stopped("refused", f"a defect of Kardia, {type(error).__name__}: report it with the trace above")
            finally:
                around.metrics.is_ahead.set(0)
                around.followed.stop()
            lasted = around.clock.monotonic_s() - begun_s >= LASTED_S
            self._pause_s = PAUSE_S if lasted else self._pause_s
            self._wait(self._pause_s, until)
            self._pause_s = min(PAUSE_MAX_S, 2 * self._pause_s)

    def _stopped(self, reason: str, sentence: str) -> None:
        around = self._around
        if around.stopping():
            return
        around.metrics.stops.labels(reason).inc()
        if sentence != self._said:
            self._said = sentence
            around.say(
                f"answers rest on the tables alone, as without --follow-topic: {sentence.rstrip('.')}. It begins anew "
                "by itself when that is over"
            )

    def _wait(self, at_least_s: float, until: Callable[[], bool] | None) -> None:
        around = self._around
        due_s = around.clock.monotonic_s() + at_least_s
        while not around.stopping() and (
            around.clock.monotonic_s() < due_s or not (until is None or self._is_there(until))
        ):
            around.rest(WAIT_S)

    def _is_there(self, until: Callable[[], bool]) -> bool:
        try:
            return until()
        except (JobError, ApiError, OSError):
            return False

    # --- one run ------------------------------------------------------------------------------------------------------

    def _follow_once(self) -> None:
        around, settings = self._around, self._settings
        checkpoint = self._begun()
        if checkpoint is None:
            return
        generation, self._begun_s = checkpoint.generation, around.clock.monotonic_s()
        found = handed(checkpoint, settings.observer(generation.agreement.cluster), around.stopping)
        if found is None:
            return
        around.metrics.begins.inc()
        around.say(f"the lanes are taken over after {around.clock.monotonic_s() - self._begun_s:.0f} s")
        client = client_settings(settings.client_config)
        where = Where(settings.bootstrap_server, settings.follow_topic, client)
        if where.lanes() != generation.agreement.lanes:
            raise Stopped(
                "topic",
                f"{settings.follow_topic} has another number of partitions than the job has lanes",
                lambda: self._has_begun(generation),
            )
        lanes = Lanes(found.lanes, around.followed, generation.topic_id)
        try:
            source = _Reading(where, lanes, around.clock, around.say)
            try:
                self._follow(source, lanes, checkpoint, generation.first_batch + found.number)
            finally:
                source.close()
        except Stopped as end:
            if end.reason == "topic" and end.until is None:
                end.until = lambda: self._has_begun(generation)
            raise

    def _begun(self) -> Checkpoint | None:
        """The checkpoint, when the job has committed a batch of it; None if it is to stop before."""
        said = False
        while not self._around.stopping():
            checkpoint = self._checkpoint()
            if checkpoint is not None and checkpoint.committed() is not None:
                return checkpoint
            if not said:
                self._around.say(
                    f"the job has written nothing yet ({self._directory}): answers rest on the tables alone until then"
                )
                said = True
            self._around.rest(WAIT_S)
        return None

    def _has_begun(self, before: Generation) -> bool:
        """Whether the job has begun another generation."""
        now = load(self._directory)
        return now is not None and now.name != before.name

    def _follow(self, source: FromTopic, lanes: Lanes, checkpoint: Checkpoint, batch_id: int) -> None:
        around = self._around
        last, now_s = batch_id - 1, around.clock.monotonic_s()
        look_s, generation_s, late_s = now_s, now_s + GENERATION_S, now_s + CATCH_UP_S
        while not around.stopping():
            now_s = around.clock.monotonic_s()
            if now_s >= look_s:
                look_s = now_s + self._look_s
                last = self._look(lanes, checkpoint, last)
                if not lanes.is_behind():
                    late_s = now_s + BEHIND_S
                    self._ahead()
                elif now_s >= late_s:
                    raise Stopped("behind", "the lanes do not keep up with the job: it is ahead of them for too long")
                self._bound(checkpoint, last)
            if now_s >= generation_s:
                generation_s = now_s + GENERATION_S
                if self._has_begun(checkpoint.generation):
                    raise Stopped("generation", "the job has begun another generation")
            if not source.step():
                source.rest()

    def _look(self, lanes: Lanes, checkpoint: Checkpoint, last: int) -> int:
        """Learn how far the tables are, and where those batches end."""
        around, generation = self._around, checkpoint.generation
        try:
            written = self._progress.transaction_of(generation.app_id)
        except TablesMissing:
            written = None
        if written is None or written < last:
            raise Stopped("tables", "the tables are no longer those that the job has written")
        for batch_id in range(max(last + 1, written + 1 - BATCHES), written + 1):
            lanes.ends = checkpoint.ends_of(batch_id - generation.first_batch)
            around.followed.wrote(batch_id, lanes.ends)
        around.metrics.records.inc(lanes.records)
        lanes.records = 0
        around.metrics.rows.set(around.followed.rows)
        return written

    def _ahead(self) -> None:
        around = self._around
        if not around.followed.is_ready:
            around.followed.begin()
            around.metrics.is_ahead.set(1)
            self._said = ""
            took_s = around.clock.monotonic_s() - self._begun_s
            around.say(f"ahead of the tables, {took_s:.0f} s after it began: {self._settings.follow_topic} is followed")

    def _bound(self, checkpoint: Checkpoint, last: int) -> None:
        if self._around.followed.rows > ROWS_MAX:
            app_id = checkpoint.generation.app_id
            raise Stopped(
                "job",
                f"the job has not written {self._around.followed.rows} rows yet, {ROWS_MAX} are held at most",
                lambda: (self._progress.transaction_of(app_id) or 0) > last or self._has_begun(checkpoint.generation),
            )
