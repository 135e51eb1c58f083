"""A real Prometheus that scrapes one API."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.api.conftest import WAIT_S, Api


class Prometheus:
    """A running Prometheus that scrapes one API four times a second."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Result of an expression at present."""
        reply = self.client.get("/api/v1/query", params={"query": expr})
        assert reply.status_code == 200, (expr, reply.text)
        found: list[dict[str, Any]] = reply.json()["data"]["result"]
        return found

    def is_ready(self) -> bool:
        """Whether it takes queries."""
        try:
            return self.client.get("/-/ready").status_code == 200
        except httpx.ConnectError:
            return False

    def has_scraped(self, batch_id: int) -> bool:
        """Whether the last scrape came after a batch."""
        return bool(self.query(f"kardia_batch_id >= {batch_id}"))


def until(reached: Any, what: str) -> None:
    """Wait for a condition; each look at it is a request, so this does not spin."""
    give_up_at = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.02)


@contextmanager
def prometheus(api: Api, root: Path) -> Iterator[Prometheus]:
    """Debian's Prometheus on a port of its own choice."""
    target = api.url.removeprefix("http://")
    config = {
        "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms"},
        "scrape_configs": [{"job_name": "kardia", "static_configs": [{"targets": [target]}]}],
    }
    path, log = root / "prometheus.yml", root / "prometheus.log"
    path.write_text(yaml.safe_dump(config))
    words = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={root / 'data'}", "--log.level=info"]
    with (
        log.open("w") as written,
        subprocess.Popen([*words, "--web.listen-address=127.0.0.1:0"], stderr=written) as running,
    ):
        try:
            until(lambda: address(log) or running.poll() is not None, "Prometheus listens")
            found = Prometheus(f"http://{address(log)}")
            with found.client:
                until(found.is_ready, "Prometheus is ready")
                yield found
        finally:
            running.terminate()


def address(log: Path) -> str | None:
    """Where it listens, as it says itself."""
    match = re.search(r"Listening on.*address=(127\.0\.0\.1:\d+)", log.read_text())
    return match and match[1]
