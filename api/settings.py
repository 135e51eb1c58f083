"""Settings of `kardia serve`: read once, frozen, unknown keys refused. Environment: `KARDIA_SERVE_` and the name.

Every bound has a unit in its name, a default, and a neighbour that shows where it came from.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from stores.locations import Folder, checked, checked_folder

Place = Annotated[Path, BeforeValidator(checked)]
"""A path of this machine or `file://`; another scheme is refused."""

TablesPlace = Annotated[Folder, BeforeValidator(checked_folder)]
"""The same, or `s3://`."""

PORT = 8765
"""Where `kardia serve` listens unless it is told otherwise."""

URL = f"http://localhost:{PORT}"
"""Its address on this machine: in front of links as long as nobody has said where people find it."""

OPEN_FLAG = "--serve-everyone-without-a-token"
"""Ugly on purpose: whoever types it has read it."""


class ApiSettings(BaseSettings):
    """Everything the API can be told."""

    model_config = SettingsConfigDict(env_prefix="KARDIA_SERVE_", frozen=True, extra="forbid")

    tables: TablesPlace = Field(description="directory with one Delta table per name")
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=PORT, ge=0, le=65_535, description="port to listen on, 0 for a free one")
    cluster: str | None = Field(
        default=None, description="show this cluster only; all clusters of the tables if absent"
    )
    token_file: Place | None = Field(default=None, description="bearer tokens, one per line, plain or sha256:HEX")
    tls_certificate: Place | None = Field(
        default=None, description="PEM of the certificate and its chain; with tls_key"
    )
    tls_key: Place | None = Field(default=None, description="PEM of the certificate's key, not encrypted")
    serve_everyone_without_a_token: bool = Field(default=False, description="listen beyond loopback without a token")
    allowed_hosts: tuple[str, ...] = Field(default=(), description="Host names answered to; empty: any beyond loopback")

    hide_personal: bool = Field(
        default=False, description="answer without addresses, connections, clients' own words and details of events"
    )

    refresh_ms: int = Field(default=15, ge=10, le=60_000, description="pause between two looks at the tables")
    stale_after_ms: int = Field(
        default=10_000, ge=100, description="age of complete_as_of from which answers are stale"
    )
    lag_stale_after_ms: int = Field(
        default=60_000,
        ge=1_000,
        description="age of the last look at ends from which lag is not known; `kardia collect` looks every 10 s",
    )
    lag_names: bool = Field(
        default=False, description="series of lag under the names of kafka_exporter and KMinion as well"
    )
    source_retired_ms: int = Field(
        default=86_400_000,
        ge=1_000,
        description="a source that far behind the newest one no longer holds complete_as_of back",
    )
    health_lookback_ms: int = Field(
        default=900_000, ge=10_000, description="at start, health rows older than this before the newest are not read"
    )
    closed_kept_max: int = Field(
        default=20_000, ge=100, description="ended lives, closed rebalances, predictions kept in memory"
    )
    groups_without_members_max: int = Field(
        default=20_000, ge=1, description="groups without members kept in memory; those left longest are dropped"
    )

    page_size: int = Field(default=100, ge=1, le=1_000, description="rows of a page when `limit` is absent")
    page_size_max: int = Field(default=1_000, ge=1, le=10_000, description="highest `limit`")
    range_max_ms: int = Field(default=366 * 86_400_000, ge=1, description="widest `from` to `to`")
    rows_read_max: int = Field(
        default=500_000, ge=1_000, description="rows of one group one request may read from files"
    )
    read_timeout_ms: int = Field(
        default=10_000, ge=100, description="time one request may read; Prometheus gives a query 120 s"
    )
    reads_at_once_max: int = Field(
        default=4, ge=1, description="reads of files at the same time; Prometheus: 20 queries"
    )
    reads_waiting_max: int = Field(default=32, ge=0, description="reads that may wait for a place")
    requests_at_once_max: int = Field(default=256, ge=1, description="requests in work; more get 503")
    requests_of_token_max: int = Field(
        default=128, ge=1, description="requests in work with one token, those who follow included; more get 429"
    )
    followers_max: int = Field(
        default=64, ge=0, le=200, description="pages that follow by server-sent events; more ask every second"
    )
    connections_max: int = Field(
        default=512, ge=1, description="open connections; one more closes the one idle for longest; Prometheus: 512"
    )
    connections_of_address_max: int = Field(
        default=256, ge=1, description="open connections of one address, a proxy among them; as `connections_max`"
    )
    request_within_ms: int = Field(
        default=10_000, ge=100, description="so soon after it was opened a connection must have sent a request"
    )
    send_within_ms: int = Field(
        default=10_000, ge=100, description="so long a connection may take next to nothing of what it is answered"
    )
    url_bytes_max: int = Field(default=96_000, ge=1_000, description="path and query; the two longest ids take 87,380")
    metrics_groups_max: int = Field(
        default=300, ge=0, description="groups of a cluster with series of their own: 67 each, 16 more of lag"
    )
    metrics_lag_partitions_max: int = Field(
        default=2_000, ge=0, description="partitions of a cluster with series of lag of their own, the farthest behind"
    )
    metrics_members_max: int = Field(
        default=0, ge=0, le=10_000, description="members of a cluster with series of their own, by static id or client"
    )
    metrics_newborn_scrapes: int = Field(
        default=2,
        ge=1,
        le=10,
        description="scrapes in which a new counter tells its beginning: one for each Prometheus",
    )
    metrics_label_chars_max: int = Field(
        default=200, ge=20, description="longest group label; longer ones end in a digest"
    )

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.is_loopback and self.token_file is None and not self.serve_everyone_without_a_token:
            raise ValueError(
                f"host: {self.host} can be reached from elsewhere and there is no token; expected --token-file with "
                f"at least one bearer token; give one, listen on 127.0.0.1, or say {OPEN_FLAG}"
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError(
                "tls_certificate, tls_key: one is given; expected both for HTTPS or neither for HTTP; give both"
            )
        if self.page_size > self.page_size_max:
            raise ValueError(f"page_size: {self.page_size} is above page_size_max {self.page_size_max}; lower it")
        return self
