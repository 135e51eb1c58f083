"""One round of the notifier: read the tables, find, decide, save, send. Clocks are given.

In this order, so that a crash between any two loses nothing: (1) the tables are looked at and folded; (2) findings are
made; (3) the lifecycle decides what is to be told; (4) it goes into the outbox of every target; (5) alerts and outboxes
are saved; (6) it is sent; (7) what was delivered leaves the outbox, which is saved. A crash after 6 sends it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import httpx
from msgspec.structs import replace
from prometheus_client import start_http_server

from api.http.refresh import catch_up, is_behind
from api.notify.conditions import BLIND, find
from api.notify.delivery import Delivery
from api.notify.lifecycle import Lifecycle
from api.notify.metrics import NotifyMetrics
from api.notify.outbox import Outbox
from api.notify.outcomes import outcome_of
from api.notify.settings import NotifySettings
from api.notify.state import Memory, StateFile
from api.notify.targets import Links, to_alertmanager, to_webhook
from api.settings import ApiSettings
from api.store import Store

log = logging.getLogger("kardia.api.notify")

TOGETHER = 64
"""Notices that one POST tells to an Alertmanager."""

SAVE_MS = 1_000
"""While much waits, what was delivered is saved that often."""

FIND_MS = 500
"""Longest time between two findings: some conditions come true by waiting, without a row."""


class Notifier:
    """One notifier over one table directory. `shown` is called whenever something new has been found in it."""

    def __init__(
        self,
        settings: NotifySettings,
        now_ms: Callable[[], int],
        shown: Callable[[], None] = lambda: None,
        store: Store | None = None,
    ) -> None:
        """`store`: one that somebody else keeps up to date, in this process; by default the notifier has its own."""
        self.settings = settings
        self.metrics = NotifyMetrics()
        self._now_ms = now_ms
        self._shown = shown
        self._looks = store is None
        self._store = store or Store(
            ApiSettings(tables=settings.tables, cluster=settings.cluster, stale_after_ms=settings.stale_after_ms),
            now_ms,
        )
        self._file = StateFile(settings.state)
        memory = self._file.load()
        alerts = {alert.finding.key: alert for alert in memory.alerts}
        self._lifecycle = Lifecycle(alerts, settings.tell_again_ms)
        links = Links.to(settings.kardia_url, settings.runbooks_url)
        targets = [
            *(
                (f"alertmanager-{at}", url, to_alertmanager, TOGETHER)
                for at, url in enumerate(settings.alertmanager, 1)
            ),
            *((f"webhook-{n}", url, to_webhook, 1) for n, url in enumerate(settings.webhook, 1)),
        ]
        self._deliveries = [
            Delivery(
                name,
                str(url),
                requests,
                together,
                Outbox(memory.outboxes.get(name, []), settings.outbox_max),
                links,
                self.metrics,
                settings,
            )
            for name, url, requests, together in targets
        ]
        self._saved_at_ms = 0
        self._found_at_ms = 0
        self._found_revision = -1
        self._stale: frozenset[str] = frozenset()
        """Clusters of which nothing was heard at the last look."""
        self._blind_since_ms: int | None = None
        """Since when the tables cannot be read; None if they can."""

    async def run(self) -> None:
        """Until it is cancelled."""
        if self.settings.metrics_port is not None:
            start_http_server(self.settings.metrics_port, addr="127.0.0.1", registry=self.metrics.registry)
        # `Delivery` has one time limit for the whole of a delivery.
        async with httpx.AsyncClient(timeout=None, trust_env=False, follow_redirects=False) as client:  # noqa: S113
            sending = [
                asyncio.create_task(delivery.run(client, self._save_delivered, self._now_ms), name=delivery.name)
                for delivery in self._deliveries
            ]
            for delivery in self._deliveries:
                delivery.put([])  # what the last run did not deliver
            refresh_ms = self.settings.refresh_ms
            try:
                while True:
                    await self._turn()
                    await (self._store.rest(refresh_ms) if self._looks else asyncio.sleep(refresh_ms / 1_000))
            finally:
                for task in sending:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                self.save()

    def close(self) -> None:
        """Let another notifier have the state."""
        self._file.close()

    async def _turn(self) -> None:
        try:
            # Nobody asks here: what waits for its turn is the sending of alerts, and these come with what is shown.
            if self._looks and await is_behind(self._store) and await catch_up(self._store, rest_s=0):
                self._shown()
        except Exception:
            log.exception("store.look.failed")
        self.tell()

    def tell(self) -> None:
        """Steps 2 to 5. Without tables nothing follows: nothing is raised, nothing resolved; but what is raised goes
        on being refreshed, as unknown, or whoever is told would take it for over."""
        now_ms, batch, revision = self._now_ms(), self._store.current.batch_id, self._store.revision
        if revision == self._found_revision and now_ms - self._found_at_ms < FIND_MS:
            return
        is_blind = batch < 0 or bool(self._store.troubles())
        if not is_blind:
            self._blind_since_ms = None
        elif self._blind_since_ms is None:
            self._blind_since_ms = now_ms
        if self._blind_since_ms is not None and now_ms - self._blind_since_ms < self.settings.stale_after_ms:
            return  # a look that failed says nothing yet
        self._found_at_ms, self._found_revision = now_ms, revision
        if not is_blind:
            self.metrics.looks.inc()
        dropped_before = self._lifecycle.dropped
        found = BLIND if is_blind else find(self._store, self._stale)
        self._stale = found.stale or (self._stale if is_blind else frozenset())
        notices = [
            replace(notice, outcome=outcome_of(self._store, notice.finding))
            if notice.what == "resolved" or notice.over_since_ms is not None
            else notice
            for notice in self._lifecycle.step(now_ms, found)
        ]
        if self._lifecycle.dropped > dropped_before:
            self.metrics.dropped.labels("", "alerts").inc(self._lifecycle.dropped - dropped_before)
        self.metrics.raised.set(sum(alert.raised_at_ms is not None for alert in self._lifecycle.alerts.values()))
        if not notices:
            return
        for notice in notices:
            self.metrics.notices.labels(notice.finding.alert, notice.what).inc()
        for delivery in self._deliveries:
            delivery.put(notices)
        self.save()

    def _save_delivered(self) -> None:
        """Something needs not be sent again. In a storm that is so many times a second, and each time the whole state
        is written: once a second is enough, because what is not saved is only told twice."""
        waits = any(len(delivery.outbox) for delivery in self._deliveries)
        if not waits or self._now_ms() - self._saved_at_ms >= SAVE_MS:
            self.save()

    def save(self) -> None:
        """Put on disk what a restart must know."""
        self._saved_at_ms = self._now_ms()
        outboxes = {delivery.name: delivery.outbox.notices for delivery in self._deliveries}
        self._file.save(Memory(alerts=list(self._lifecycle.alerts.values()), outboxes=outboxes))
