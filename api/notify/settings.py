"""Settings of `kardia notify`: the command line, then KARDIA_NOTIFY_... in the environment, then these defaults."""

from __future__ import annotations

from pydantic import Field, HttpUrl
from pydantic_settings import BaseSettings, SettingsConfigDict

from api.notify.lifecycle import REFRESH_MS
from api.settings import URL, Place, TablesPlace


class NotifySettings(BaseSettings):
    """Where to look, whom to tell, where to remember. Addresses come from here only, never from the tables."""

    model_config = SettingsConfigDict(env_prefix="KARDIA_NOTIFY_", frozen=True, extra="forbid")

    tables: TablesPlace = Field(description="directory with the Delta tables")
    state: Place = Field(description="directory for what must survive a restart; belongs to one notifier")
    alertmanager: tuple[HttpUrl, ...] = Field(default=(), description="addresses of Alertmanagers, all are told")
    webhook: tuple[HttpUrl, ...] = Field(default=(), description="addresses that get CloudEvents")
    cluster: str | None = Field(default=None, description="tell of this cluster only")
    kardia_url: str = Field(default=URL, description="address of `kardia serve`, in front of links")
    runbooks_url: str = Field(
        default="", description="address in front of the names of the runbooks; empty: those that `kardia_url` serves"
    )
    metrics_port: int | None = Field(default=None, ge=0, le=65_535, description="port of loopback for counters")

    refresh_ms: int = Field(default=100, ge=10, le=1_000, description="pause between two looks at the tables")
    stale_after_ms: int = Field(default=10_000, ge=100, description="age of complete_as_of from which nothing follows")
    tell_again_ms: int = Field(
        default=REFRESH_MS, ge=1_000, le=REFRESH_MS, description="time between two tellings of one alert that lasts"
    )
    outbox_max: int = Field(default=10_000, ge=1, description="notices that may wait for one target")
    send_timeout_ms: int = Field(default=5_000, ge=100, description="time one POST may take")
    retry_after_max_ms: int = Field(default=10_000, ge=100, description="longest pause between two attempts")
    asked_pause_max_ms: int = Field(
        default=300_000, ge=0, description="longest pause that a receiver may ask for by Retry-After"
    )
