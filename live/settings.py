"""Settings of `kardia live`, and of `kardia serve --follow-topic`: read once, whole, strict and frozen. Environment:
`KARDIA_LIVE_<NAME>`, `KARDIA_SERVE_<NAME>`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from ingest.errors import SettingsError
from ingest.settings import Place, ReadSettings
from kardia.observe import ObserverSettings
from spark_jobs.leases import table_owner
from spark_jobs.settings import LaneSettings, TablesPlace
from stores.locations import Folder

STATE = table_owner.STATE
"""Below the tables, unless another place is given. Delta has no table of such a name."""


class LiveSettings(ReadSettings, LaneSettings):
    """What is read, as a collector is told it, and what becomes of it."""

    model_config = SettingsConfigDict(env_prefix="KARDIA_LIVE_", frozen=True, extra="forbid")

    lanes: int = Field(default=1, ge=1, le=1_000, description="lanes; more than one for some 20,000 members and more")
    tables: Place = Field(description="directory of the Delta tables, of this machine")
    state: Place | None = Field(
        default=None, description="directory of what must survive a restart; default TABLES/_live"
    )
    from_topic: str = Field(
        default="", max_length=249, description="topic of collectors on other hosts, instead of logs"
    )
    events_bootstrap_server: str = Field(default="", description="brokers of that topic")
    events_client_config: Place | None = Field(default=None, description="properties file for clients of these brokers")

    def check(self) -> None:
        """Rules between the fields; raises `SettingsError` with what to do."""
        if not self.from_topic:
            super().check()
        elif not self.events_bootstrap_server:
            raise SettingsError(
                "it is not known where the topic is",
                "--events-bootstrap-server",
                "brokers of the topic that --from-topic names",
                "give them",
            )
        elif self.request_log or self.server_log or self.bootstrap_server:
            raise SettingsError(
                "a topic and a cluster's own sources are both named",
                "--from-topic",
                "one of them: collectors that send to the topic have read the others",
                "leave out the logs and --bootstrap-server, or --from-topic",
            )

    @property
    def folder(self) -> Path:
        """Where that is."""
        return self.state or self.tables / STATE


class FollowSettings(BaseSettings):
    """What a server is told that follows the topic ahead of the tables. What the job was told of the brokers is said
    here as well: rows are those of the job only if the lanes know the same. Cluster and lanes are in its checkpoint."""

    model_config = SettingsConfigDict(env_prefix="KARDIA_SERVE_", frozen=True, extra="forbid")

    follow_topic: str = Field(min_length=1, max_length=249, description="topic of events that `kardia stream` reads")
    bootstrap_server: str = Field(min_length=1, description="brokers of that topic")
    client_config: Place | None = Field(default=None, description="properties file for clients of these brokers")
    checkpoint: TablesPlace = Field(description="folder of the checkpoint of `kardia stream`; nothing is written there")
    kafka_version: str = Field(default="", description="as `kardia stream` was told")
    consumer_session_ms: int = Field(default=-1, ge=-1, description="as `kardia stream` was told")
    share_session_ms: int = Field(default=-1, ge=-1, description="as `kardia stream` was told")
    streams_session_ms: int = Field(default=-1, ge=-1, description="as `kardia stream` was told")

    @field_validator("checkpoint")
    @classmethod
    def _absolute(cls, path: Folder) -> Folder:
        """Spark is given it."""
        return path.absolute() if isinstance(path, Path) else path

    def observer(self, cluster: str) -> ObserverSettings:
        """What the lanes are told."""
        return ObserverSettings(
            cluster_id=cluster,
            kafka_version=self.kafka_version,
            consumer_session_ms=self.consumer_session_ms,
            share_session_ms=self.share_session_ms,
            streams_session_ms=self.streams_session_ms,
        )
