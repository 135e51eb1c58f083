"""A history replayed second by second under a real API, for questions that are asked while it happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.settings import ApiSettings
from tests.api.conftest import Api, Clock, running
from tests.api.written import Tables, lag, looked
from tests.support.served import CLUSTER, Batch

STORY = "c04_mpi-3.9.2"
"""It has the most: polls that stop, clients that leave for it, a zombie that is evicted, rebalances that wait."""


def with_lag(history: Iterator[Batch]) -> Iterator[Batch]:
    """The story, with a partition of each group that is behind: no collector looked at ends when it was recorded."""
    for now_ms, rows in history:
        groups = sorted({row[1] for name in ("members", "health") for row in rows.get(name, ())})
        about = {"cluster_id": CLUSTER, "at_ms": now_ms}
        behind = [lag(group, 0, 7, verdict="WARN", client_id="app", **about)[1] for group in groups]
        yield now_ms, {**rows, "lag": [*behind, looked(now_ms, cluster_id=CLUSTER)[1]]}


class Replay:
    """The API, and the story as far as it has happened."""

    def __init__(self, api: Api, tables: Tables, clock: Clock, history: list[Batch]) -> None:
        self.api = api
        self.begin_ms = history[0][0]
        self._history = history
        self._tables = tables
        self._clock = clock

    def batches(self) -> Iterator[int]:
        """Number of each batch, once the API answers with it."""
        batch_id = -1
        for now_ms, some in self._history:
            if rows := [(table, row) for table, found in some.items() for row in found]:
                batch_id += 1
                self._clock.now_ms = now_ms
                self._tables.batch(batch_id, *rows)
                self.api.wait_for_batch(batch_id)
                yield batch_id

    @property
    def now_ms(self) -> int:
        """Instant of the story."""
        return self._clock.now_ms

    def pass_ms(self, duration_ms: int) -> None:
        """Time passes and nothing is written."""
        self._clock.now_ms += duration_ms

    def values(self) -> dict[str, str]:
        """Variables that Grafana itself has."""
        return {"__from": str(self.begin_ms), "__to": str(self.now_ms + 5_000), "page": self.api.url}


@contextmanager
def replay(root: Path, history: Iterator[Batch]) -> Iterator[Replay]:
    """A history that is about to begin."""
    tables, clock = Tables(root), Clock()
    tables.create()
    with running(ApiSettings(tables=root, refresh_ms=20), clock) as url:
        api = Api(url)
        yield Replay(api, tables, clock, list(history))
        api.client.close()
