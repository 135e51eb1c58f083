"""The running job: leases, checks, session, the two queries, upkeep; until it is asked to stop or something ends it.

Order at start: leases (nobody else uses checkpoint or tables), topic (there, how many lanes), checkpoint and tables
(belong together), losses (nothing unread is gone), tables (right shape); only then Spark's queries. Each refusal is a
sentence, and nothing has been written when it is made. It knows no rule of the coordinator.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from ingest.wire.topic_id import UNKNOWN, TopicWatch
from kardia.tables import EVENTS, LIVE_TABLES
from spark_jobs import preflight, stream, topic, topic_loss
from spark_jobs.archive import archive_query
from spark_jobs.batch_pacing import Pace
from spark_jobs.checkpoint import change_lane_count, damaged_lanes, recreated_topic
from spark_jobs.checkpoint.checkpoint_directory import Checkpoint, describe
from spark_jobs.errors import DamagedError, TopicLossError
from spark_jobs.jvm import java
from spark_jobs.jvm.private_pyspark import jvm_process
from spark_jobs.jvm.voice import Voice
from spark_jobs.lane_model import ModelFactory, ObserverFactory
from spark_jobs.leases import table_owner
from spark_jobs.leases.disk_lease import held
from spark_jobs.leases.store_lease import StoreLease, guarded
from spark_jobs.metrics import Metrics
from spark_jobs.settings import StreamSettings
from spark_jobs.spark import cluster, scratch, session
from spark_jobs.spark.late_workers import LateError, LateWorkers
from spark_jobs.storage_errors import disk_named, store_named
from spark_jobs.upkeep import table_sizes
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers import faults, fence
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.delta_spark import DeltaSparkWriter, create_or_check
from stores.locations import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.2
"""How often the driver looks whether it is to stop or a query has ended."""

SAY_AGAIN_S = 60.0
"""How often it is said that records of another cluster come; the counter has them all."""

POOL = "spark.scheduler.pool"
"""Property of the thread that starts a query; the query keeps it."""


def run(
    settings: StreamSettings,
    stop: Callable[[], bool],
    say: Callable[[str], None],
    factory: ModelFactory | None = None,
) -> None:
    """Run until `stop` says so; raises a `JobError` for everything that prevents it from going on."""
    cluster.check(settings.master, settings.executors)
    of_spark = cluster.given(settings.conf)
    factory = factory or ObserverFactory(settings.observer, settings.self_test)
    with ExitStack() as stack:
        roles = {settings.checkpoint: "run on this checkpoint", settings.tables: "writer of these tables"}
        leases: list[StoreLease] = []
        for directory, role in roles.items():
            with disk_named(directory):
                lease = stack.enter_context(held(directory, role))
                leases += [lease] if isinstance(lease, StoreLease) else []
        table_owner.check(settings.tables, table_owner.SPARK)
        temporary = stack.enter_context(scratch.scratch())
        client = preflight.client_of(settings, temporary)
        lanes = preflight.await_lanes(settings, client, stop, say)
        if lanes is None:
            return
        old = None
        with disk_named(settings.checkpoint), store_named(settings.tables):
            if settings.lanes_from:
                old = change_lane_count.left(settings, client.librdkafka)
            if old is None:
                checkpoints = preflight.checkpoints_of(settings, lanes)
        anew = None
        if old is None:
            anew = recreated_topic.found(settings, client.librdkafka, checkpoints)
        if old is None and anew is None:
            preflight.check_losses(settings, client, checkpoints, say)
        files, own = preflight.for_spark(settings, temporary)
        own |= of_spark
        voice = Voice()
        with voice.lent():
            spark = session.start_session(
                "kardia-stream", settings.master, files, java.find().home, own, settings.executors, temporary
            )
        stack.callback(session.end_session, spark)
        try:
            if not cluster.is_local(settings.master):
                cluster.await_executors(spark, stop)
            if old is not None:
                checkpoints = preflight.taken_over(spark, old, settings, lanes, factory, client, say)
            if anew is not None:
                checkpoints = preflight.begun_anew(spark, anew, settings, checkpoints, factory, say)
            elif checkpoints[stream.NAME].generation.damaged:
                checkpoints |= preflight.built_again(spark, settings, client, checkpoints, factory, say)
            change_lane_count.strays(
                checkpoints[stream.NAME].generation, settings.bootstrap_server, client.librdkafka, say
            )
            _Job(settings, client, spark, checkpoints, factory, stop, say, stack, voice, leases).run()
        except of_others() as error:
            where = f"tables {settings.tables}, checkpoint {settings.checkpoint}"
            raise stream.explain(None, error, where, session.ended_by_itself(spark)) from error


def of_others() -> tuple[type[Exception], ...]:
    """What Spark, the bridge to it, Delta and the disk raise; anything else is a mistake of ours, with its trace."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, DeltaError, OSError


class _Job:
    """The queries of one run."""

    def __init__(
        self,
        settings: StreamSettings,
        client: preflight.Client,
        spark: SparkSession,
        checkpoints: dict[str, Checkpoint],
        factory: ModelFactory,
        stop: Callable[[], bool],
        say: Callable[[str], None],
        stack: ExitStack,
        voice: Voice,
        leases: list[StoreLease],
    ) -> None:
        self._settings = settings
        self._client = client
        self._spark = spark
        self._checkpoints = checkpoints
        self._factory = factory
        self._stop = stop
        self._say = say
        self._stack = stack
        self._voice = voice
        self._leases = leases
        self._late = LateWorkers()
        self._reached = guarded(faults.from_environment(os.environ), leases)
        self._metrics = Metrics()
        self._cores = spark.sparkContext.defaultParallelism
        self._first_commit = threading.Event()
        self._foreign_said_s = -math.inf
        self._not_applied_said_s = -math.inf

    def run(self) -> None:
        """Start everything, watch it, stop it."""
        settings, live = self._settings, self._checkpoints[stream.NAME]
        writer = self._prepare_writer(live)
        if settings.metrics_port:
            jvm = jvm_process(self._spark)
            self._metrics.watch(None if jvm is None else jvm.pid)
            self._metrics.serve(settings.metrics_port)
        queries: dict[str, tuple[StreamingQuery, stream.Sink | archive_query.Archive]] = {}
        quiet_s = 0.0 if settings.once else settings.quiet_ms / 1000
        pace = Pace(quiet_s, settings.max_records, lambda: stream.records(queries[stream.NAME][0]) if queries else 0)
        sink = stream.Sink(writer, live.generation.first_batch, self._committed, pace)
        self._stack.callback(lambda: stream.stop_all(query for query, _ in queries.values()))
        self._stack.callback(self._hush)
        self._stack.callback(pace.end)
        queries[stream.NAME] = self._start_live(sink, fail_on_loss=not settings.accept_loss), sink
        self._metrics.follow(lambda: stream.durations(queries[stream.NAME][0]) if stream.NAME in queries else {})
        archived = not settings.archive
        archive_due_s = math.inf if archived else time.monotonic() + (0 if settings.once else settings.archive_every_s)
        behind = self._archive_behind()
        if settings.archive:
            self._metrics.follow_archive(self._archive_behind)
        if behind > settings.archive_max_records:
            archive_due_s = (
                time.monotonic()
            )  # beside the live query: what waits for its first batch may be killed again
            self._say(f"the table events is {behind} records behind the live tables, and catches up with them")
        self._say_ready(live)
        tolerant = settings.accept_loss and not settings.once
        watch = topic_loss.watch(
            settings.bootstrap_server, settings.topic, live.generation.topic_id, self._client.librdkafka
        )
        while not self._stop():
            # The first run loads a third of the JVM's classes: after the live tables have begun, not beside them.
            archive_due = time.monotonic() >= archive_due_s or (not archived and self._first_commit.is_set())
            if archive_due and archive_query.NAME not in queries:
                queries[archive_query.NAME] = self._start_archive(fail_on_loss=archived or not settings.accept_loss)
                archived = True
            self._check_still_ours(watch)
            for name, (query, end) in list(queries.items()):
                try:
                    ended = self._ended(query, end.failure)
                except LateError as late:
                    self._say(str(late))
                    strict = not settings.accept_loss or not (tolerant or settings.once)
                    queries[name] = (
                        (self._start_live(sink, fail_on_loss=strict), sink)
                        if name == stream.NAME
                        else self._start_archive(fail_on_loss=strict)
                    )
                    continue
                if ended:
                    del queries[name]
                    if name == archive_query.NAME:
                        archive_due_s = math.inf if settings.once else time.monotonic() + settings.archive_every_s
            if not queries:
                return
            if tolerant and self._first_commit.is_set():
                # Over the loss: from here on another one must stop the job again.
                queries[stream.NAME][0].stop()
                queries[stream.NAME] = self._start_live(sink, fail_on_loss=True), sink
                tolerant = False
        self._hush()
        pace.end()
        stream.stop_all(query for query, _ in queries.values())
        queries.clear()
        self._say("stopped; the next start goes on after the last batch in the tables")

    def _prepare_writer(self, live: Checkpoint) -> DeltaRsWriter | DeltaSparkWriter:
        """Who writes the live tables, which are there then, in the right shape, and nobody else's."""
        settings, app_id = self._settings, live.generation.app_id
        writer: DeltaRsWriter | DeltaSparkWriter
        if settings.writer == "delta-rs":
            writer = DeltaRsWriter(settings.tables, app_id, self._reached)
            maintenance = Maintenance(settings.tables, said=self._say, keep=settings.kept)
            maintenance.start()
            self._stack.callback(maintenance.stop)
        else:
            writer = DeltaSparkWriter(self._spark, settings.tables, app_id, self._reached)
        self._stack.callback(writer.close)
        writer.prepare()
        if isinstance(settings.tables, Store) and live.committed() is None:
            with store_named(settings.tables):
                fence.check_alone(settings.tables, LIVE_TABLES, app_id, live.generation.first_batch)
        return writer

    def _say_ready(self, live: Checkpoint) -> None:
        settings, lanes = self._settings, live.generation.agreement.lanes
        self._say(
            f"ready: {settings.topic} ({lanes} lanes) into {settings.tables}, next batch {describe(live)['next_batch']}"
        )
        with disk_named(settings.tables), store_named(settings.tables):
            self._say(table_sizes.told(settings.tables, settings.kept))
        idle = session.idle_cores(self._cores, lanes)
        if idle:
            self._say(idle)

    def _check_still_ours(self, watch: TopicWatch) -> None:
        """Whether checkpoint and tables are leased to this run still, and the topic is the one that it began with."""
        for lease in self._leases:
            lease.check()
        if watch.changed():
            raise topic_loss.made_again(self._settings.topic, self._settings.bootstrap_server)

    def _hush(self) -> None:
        """We stop: what the JVM and the bridge to it say of that is no news."""
        self._voice.hush()
        session.quieten_accumulators(self._spark)

    def _committed(self, batch: stream.Committed) -> None:
        self._metrics.committed(batch)
        self._late.committed()
        if batch.foreign and time.monotonic() >= self._foreign_said_s + SAY_AGAIN_S:
            self._foreign_said_s = time.monotonic()
            self._say(
                f"{batch.foreign} records of another cluster were refused (topic {self._settings.topic}). Expected: "
                f"records of {self._settings.cluster}, as --cluster says. Next: `kardia rejected --reason "
                "foreign_cluster` names the other one; give each cluster a topic of its own, or correct --cluster here "
                "or at its collector"
            )
        if batch.not_applied and time.monotonic() >= self._not_applied_said_s + SAY_AGAIN_S:
            self._not_applied_said_s = time.monotonic()
            self._say(
                f"{batch.not_applied} events could not be applied and were left out (batch {batch.batch_id}). "
                "Expected: none. Next: `kardia rejected --reason not_applied` lists them; of their groups nothing is "
                "known from there until they are heard again. This is a defect of Kardia: report it with these rows"
            )
        self._first_commit.set()

    def _start_live(self, sink: stream.Sink, *, fail_on_loss: bool) -> StreamingQuery:
        settings, checkpoint = self._settings, self._checkpoints[stream.NAME]
        lanes = checkpoint.generation.agreement.lanes
        self._spark.sparkContext.setLocalProperty(POOL, stream.NAME)
        return stream.start_query(
            topic.parts(
                self._spark,
                settings.bootstrap_server,
                settings.topic,
                lanes,
                checkpoint.parts(session.lane_tasks(self._cores, lanes)),
                max_records=settings.max_records,
                fail_on_loss=fail_on_loss,
                more=self._client.java,
                begins_at=checkpoint.generation.begins_at,
            ),
            self._factory,
            checkpoint,
            sink,
            trigger_ms=settings.trigger_ms,
            until_available=settings.once,
            journal_bytes=settings.journal_bytes,
        )

    def _archive_behind(self) -> int:
        """Records that the archive has not got yet."""
        found = self._checkpoints.get(archive_query.NAME)
        return 0 if found is None else archive_query.behind(self._checkpoints[stream.NAME], found)

    def _start_archive(self, *, fail_on_loss: bool) -> tuple[StreamingQuery, archive_query.Archive]:
        """Start one run of the archive."""
        settings, checkpoint = self._settings, self._checkpoints[archive_query.NAME]
        create_or_check(self._spark, settings.tables, EVENTS.name)
        self._spark.sparkContext.setLocalProperty(POOL, archive_query.NAME)
        sink = archive_query.Archive(
            self._spark,
            settings.tables,
            checkpoint,
            self._reached,
            forgot=self._metrics.marks_forgotten.inc,
            keep_ms=settings.kept.events_ms,
            rest=0.0 if self._archive_behind() > settings.archive_max_records else archive_query.REST,
        )
        records = topic.records(
            self._spark,
            settings.bootstrap_server,
            settings.topic,
            max_records=settings.archive_max_records,
            fail_on_loss=fail_on_loss,
            more=self._client.java,
        )
        return archive_query.start_archive(records, checkpoint, sink), sink

    def _ended(self, query: StreamingQuery, failure: BaseException | None) -> bool:
        from pyspark.errors import StreamingQueryException

        try:
            return bool(query.awaitTermination(LOOK_S))  # type: ignore[arg-type]  # takes a fraction as well
        except StreamingQueryException as error:
            self._late.look(error, failure)
            found = stream.explain(failure, error, f"query {query.name}, checkpoint {self._settings.checkpoint}")
            if isinstance(found, DamagedError) and query.name == stream.NAME:
                damaged_lanes.note(self._checkpoints[stream.NAME])
            if isinstance(found, TopicLossError) and self._is_another_topic():
                found = topic_loss.made_again(self._settings.topic, self._settings.bootstrap_server)
            raise found from error

    def _is_another_topic(self) -> bool:
        """Whether the topic was made again since the start; a query may meet the new one before it is asked for."""
        known = self._checkpoints[stream.NAME].generation.topic_id
        now = topic_loss.id_of(self._settings.bootstrap_server, self._settings.topic, self._client.librdkafka)
        return UNKNOWN not in (known, now) and known != now
