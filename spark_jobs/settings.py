"""Settings of the job: read once, whole, strict and frozen. Environment: `KARDIA_STREAM_<NAME>`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from ingest.settings import Place
from kardia.observe import ObserverSettings
from kardia.retention_setting import Keep, keep_of
from spark_jobs.checkpoint.journal import MIN_BYTES
from spark_jobs.topic import MAX_RECORDS_PER_ARCHIVE_BATCH, MAX_RECORDS_PER_BATCH
from stores.locations import Folder, checked_folder

TablesPlace = Annotated[Folder, BeforeValidator(checked_folder)]
"""A path of this machine or `file://`, or `s3://`; another scheme is refused."""


class LaneSettings(BaseSettings):
    """What whoever steps lanes is told: of the brokers, and of what to keep."""

    cluster: str = Field(default="kafka", min_length=1, max_length=200, description="name of the observed cluster")
    kafka_version: str = Field(default="", description="release of the brokers; empty: recognised from the lines")
    consumer_session_ms: int = Field(
        default=-1, ge=-1, description="group.consumer.session.timeout.ms of the brokers; -1: not known"
    )
    share_session_ms: int = Field(
        default=-1, ge=-1, description="group.share.session.timeout.ms of the brokers; -1: not known"
    )
    streams_session_ms: int = Field(
        default=-1, ge=-1, description="group.streams.session.timeout.ms of the brokers; -1: not known"
    )
    keep: str = Field(
        default="", description="how long rows are kept, as health=7d,history=30d; kardia/retention_setting.py"
    )

    self_test: bool = Field(
        default=True, description="put classic requests to the model of the release: tables surprises and progress"
    )

    @property
    def kept(self) -> Keep:
        """How long rows are kept."""
        return keep_of(self.keep)

    @property
    def observer(self) -> ObserverSettings:
        """What the lanes are told."""
        return ObserverSettings(
            cluster_id=self.cluster,
            kafka_version=self.kafka_version,
            consumer_session_ms=self.consumer_session_ms,
            share_session_ms=self.share_session_ms,
            streams_session_ms=self.streams_session_ms,
        )

    @field_validator("keep")
    @classmethod
    def _ages(cls, text: str) -> str:
        keep_of(text)
        return text


class StreamSettings(LaneSettings):
    """What `kardia stream` is told."""

    model_config = SettingsConfigDict(env_prefix="KARDIA_STREAM_", frozen=True, extra="forbid")

    bootstrap_server: str = Field(min_length=1, description="brokers of the topic of events")
    client_config: Place | None = Field(default=None, description="properties file for clients of these brokers")
    topic: str = Field(default="kardia.events", min_length=1, max_length=249)
    tables: TablesPlace = Field(description="directory of the Delta tables")
    checkpoint: TablesPlace = Field(description="folder of the checkpoint")
    master: str = Field(default="local[3]", min_length=1, description="Spark master")
    executors: Place | None = Field(
        default=None, description="archive for the executors of a cluster, of `python -m spark_jobs.executor_archive`"
    )
    conf: tuple[str, ...] = Field(default=(), description="settings of Spark, spark.NAME=VALUE")
    writer: Literal["delta-rs", "delta-spark"] = Field(default="delta-rs", description="who writes the live tables")
    archive: bool = Field(default=True, description="write the table events as well")
    trigger_ms: int = Field(default=0, ge=0, le=3_600_000, description="time between two batches; 0: back to back")
    quiet_ms: int = Field(
        default=3_000, ge=0, le=60_000, description="longest rest after a batch while nothing happens; 0: none"
    )
    max_records: int = Field(default=MAX_RECORDS_PER_BATCH, ge=1, description="records of one batch at most")
    journal_bytes: int = Field(
        default=MIN_BYTES, ge=0, description="events that a lane keeps beside the smallest state, to be read at a start"
    )
    archive_max_records: int = Field(
        default=MAX_RECORDS_PER_ARCHIVE_BATCH, ge=1, description="the same for the events table"
    )
    archive_every_s: float = Field(default=120.0, ge=0, le=86_400, description="time between two runs of the archive")
    metrics_port: int = Field(default=0, ge=0, le=65_535, description="port of the counters on loopback; 0: none")
    java_options: str | None = Field(default=None, description="options of the driver's JVM instead of the chosen ones")
    new_generation: bool = Field(default=False, description="begin anew at the topic's beginning")
    lanes_from: str = Field(
        default="", max_length=249, description="topic whose lanes are taken over, in the number of those of this topic"
    )
    accept_loss: bool = Field(default=False, description="read on over records the topic has lost")
    once: bool = Field(default=False, description="stop when everything there was at the start is in the tables")
    wait_s: float = Field(default=60.0, ge=0, le=3_600, description="how long to wait for broker and topic")

    @property
    def spark_writes(self) -> bool:
        """Whether Spark writes a table itself."""
        return self.archive or self.writer == "delta-spark"

    @field_validator("tables", "checkpoint")
    @classmethod
    def _absolute(cls, path: Folder) -> Folder:
        """Spark takes a relative path for the name of a table in its catalog."""
        return path.absolute() if isinstance(path, Path) else path
