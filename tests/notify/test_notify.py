"""`kardia notify` as a process over real tables: to a webhook, to a real Alertmanager, beside a real Prometheus."""

from __future__ import annotations

import logging
import operator
import re
import time
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from api.settings import ApiSettings
from dashboards.generate import HERE
from tests.api.conftest import running
from tests.api.written import Tables, health, member, prediction, progress, transition
from tests.notify.conftest import Notify, Received, free_port, process, until

log = logging.getLogger(__name__)

SESSION = "KafkaGroupSessionTimeoutImminent"
STUCK = "KafkaGroupRebalanceStuck"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def in_danger(
    tables: Tables, batch_id: int, group: str = "orders", member_id: str = "a", fresh_ms: int = 600_000
) -> int:
    """Commit that a member is about to be evicted; the instant after the commit. The feed is fresh for `fresh_ms` and
    then as long as the notifier allows."""
    at_ms = now_ms()
    tables.batch(
        batch_id,
        transition(group, batch_id + 1, "Stable", at_ms=at_ms),
        member(group, member_id, joined_at_ms=at_ms - 60_000, at_ms=at_ms, client_host="10.0.0.9"),
        health(group, member_id, at_ms=at_ms, status="imminent"),
        prediction(group, member_id, "session", predicted_at_ms=at_ms, deadline_at_ms=at_ms + 600_000, at_ms=at_ms),
        progress(at_ms + fresh_ms),
    )
    return now_ms()


def of_type(bodies: list[Any], what: str, group: str = "orders") -> list[Any]:
    """Events of one kind about one group."""
    return [
        body
        for body in bodies
        if body["type"] == f"io.kardia.alert.{what}" and body["data"]["labels"].get("group") == group
    ]


def test_a_webhook_hears_of_danger_as_a_cloud_event(tables: Tables, notify: Notify, received: Received) -> None:
    in_danger(tables, 0, group="payments")
    with notify("--webhook", received.url, "--kardia-url", "http://kardia.example"):
        received.wait(lambda bodies: of_type(bodies, "raised", "payments"), "what was so at the start")
        committed_ms = in_danger(tables, 1)
        (event,) = received.wait(lambda bodies: of_type(bodies, "raised"), "a raise")
    arrived_ms, content_type, _ = next(one for one in received.messages if one[2]["id"] == event["id"])
    log.warning("from the commit to the webhook: %d ms", arrived_ms - committed_ms)
    assert content_type == "application/cloudevents+json"
    assert (event["specversion"], event["subject"], event["source"]) == ("1.0", SESSION, "/clusters/demo")
    assert event["data"]["labels"] == {
        "alertname": SESSION,
        "severity": "critical",
        "cluster": "demo",
        "group": "orders",
    }
    assert event["data"]["members"] == ["app at 10.0.0.9"]
    texts = event["data"]["annotations"]
    since_ms = event["data"]["since_at_ms"]
    page = f"http://kardia.example/#/clusters/~/groups/~?cluster=demo&group=orders&at={since_ms}"
    assert texts["page_url"] == page
    assert texts["incident_url"] == f"{page}&from={since_ms - 600_000}&to={since_ms + 3_000_000}"
    assert texts["runbook_url"] == "http://kardia.example/runbooks/session-timeout-imminent.md"


def test_a_target_that_fails_is_told_later_with_the_same_id(tables: Tables, notify: Notify, received: Received) -> None:
    received.answers = [500, 503, 429]
    in_danger(tables, 0)
    with notify("--webhook", received.url):
        events = received.wait(lambda bodies: bodies if len(bodies) >= 4 else None, "four attempts")
    assert len({event["id"] for event in events[:4]}) == 1


def test_a_restart_tells_nothing_twice(tables: Tables, notify: Notify, received: Received) -> None:
    in_danger(tables, 0)
    with notify("--webhook", received.url):
        received.wait(lambda bodies: of_type(bodies, "raised"), "a raise")
        in_danger(tables, 1, group="payments")
        received.wait(lambda bodies: of_type(bodies, "raised", "payments"), "a raise of the other group")
    with notify("--webhook", received.url):
        in_danger(tables, 2, group="audit")
        received.wait(lambda bodies: of_type(bodies, "raised", "audit"), "a raise after the restart")
    bodies = [body for _, _, body in received.messages]
    # One whose acknowledgement was cut off by the stop may come twice on the wire: its id is the same.
    assert len({body["id"] for body in of_type(bodies, "raised")}) == 1
    assert len({body["id"] for body in of_type(bodies, "raised", "payments")}) == 1
    assert of_type(bodies, "resolved") == []


def test_what_was_not_delivered_before_a_kill_is_delivered_after_it(
    tables: Tables, notify: Notify, received: Received
) -> None:
    in_danger(tables, 0)
    received.answers = [503] * 2
    with notify("--webhook", received.url) as first:
        received.wait(lambda bodies: bodies, "the first attempt")
        first.kill()
        first.wait()
    received.answers = []
    seen = len(received.messages)
    with notify("--webhook", received.url):
        received.wait(lambda bodies: bodies[seen:], "the notice after the restart")
    assert len({body["id"] for _, _, body in received.messages if body["type"].endswith("raised")}) == 1


@pytest.mark.needs_alertmanager
def test_while_the_feed_is_stale_an_alert_neither_ends_nor_is_told_as_if_it_were_known(
    tables: Tables, notify: Notify, received: Received, alertmanager: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARDIA_NOTIFY_STALE_AFTER_MS", "1000")
    monkeypatch.setenv("KARDIA_NOTIFY_TELL_AGAIN_MS", "1000")

    def refreshes(bodies: list[Any]) -> list[bool]:
        """Whether it is told as unknown, from the first refresh that is, each change once."""
        # What Alertmanager tells its receiver is no CloudEvent.
        events = of_type([body for body in bodies if "type" in body], "refreshed")
        said = [one["data"]["unknown_since_at_ms"] is not None for one in events]
        return [unknown for unknown, _ in groupby(dropwhile(operator.not_, said))]

    def described() -> str:
        (alert,) = httpx.get(
            f"{alertmanager}/api/v2/alerts", params={"filter": f"alertname={SESSION}"}, trust_env=False, timeout=60
        ).json()
        assert alert["status"]["state"] == "active"
        return str(alert["annotations"]["description"])

    tables.batch(0, progress(now_ms() - 1_000))
    with notify("--alertmanager", alertmanager, "--webhook", received.url):
        until(lambda: tables.root.parent.joinpath("notify.log").read_text(), "the notifier")
        committed_ms = in_danger(tables, 1, fresh_ms=10_000)
        received.wait(lambda bodies: of_type([body for body in bodies if "type" in body], "raised"), "a raise")
        # Nothing more is committed: eleven seconds after the commit the feed is stale.
        received.wait(lambda bodies: refreshes(bodies) == [True], "a refresh that says that nothing is known")
        assert now_ms() - committed_ms >= 10_000
        until(lambda: described().startswith("Unknown since "), "the same at Alertmanager")
        assert "What was said last: Group orders: the session timeout of 1 member is near" in described()
        in_danger(tables, 2)
        received.wait(lambda bodies: refreshes(bodies) == [True, False], "a refresh that says that it is so again")
        until(lambda: described().startswith("Group orders: "), "the same at Alertmanager")
        tables.root.rename(tables.root.with_name("gone"))
        received.wait(lambda bodies: refreshes(bodies) == [True, False, True], "a refresh without tables")
        until(lambda: described().startswith("Unknown since "), "the same at Alertmanager")
    ended = [body for _, _, body in received.messages if "resolved" in (body.get("type", ""), body.get("status"))]
    assert "KafkaGroup" not in str(ended), "the feed may be told to be fresh again, and nothing else is over"


@pytest.mark.needs_alertmanager
def test_alertmanager_takes_it_tells_of_it_and_of_its_end(
    tables: Tables, notify: Notify, received: Received, alertmanager: str
) -> None:
    """Of a rebalance that is stuck: unlike danger it ends without lingering, so nobody waits half a minute."""
    tables.batch(0, progress(now_ms() + 600_000))
    with notify("--alertmanager", alertmanager):
        until(lambda: tables.root.parent.joinpath("notify.log").read_text(), "the notifier")
        committed_ms = now_ms()
        stuck = transition("orders", 1, "PreparingRebalance", at_ms=committed_ms - 60_000)
        tables.batch(1, stuck, member("orders", "a", at_ms=committed_ms), progress(committed_ms + 600_000))
        firing = received.wait(lambda bodies: [one for one in bodies if one["status"] == "firing"], "a notification")
        arrived_ms = received.messages[0][0]
        log.warning("from the commit through Alertmanager to its receiver: %d ms", arrived_ms - committed_ms)
        assert firing[0]["commonLabels"]["alertname"] == STUCK
        (known,) = httpx.get(f"{alertmanager}/api/v2/alerts", trust_env=False, timeout=60).json()
        assert known["labels"] == {"alertname": STUCK, "severity": "critical", "cluster": "demo", "group": "orders"}
        tables.batch(2, transition("orders", 2, "Stable", at_ms=now_ms()), progress(now_ms() + 600_000))
        received.wait(lambda bodies: [one for one in bodies if one["status"] == "resolved"], "the end")


@pytest.mark.needs_alertmanager
@pytest.mark.needs_prometheus
def test_prometheus_and_the_notifier_make_one_alert_of_it(
    tables: Tables, notify: Notify, received: Received, alertmanager: str, tmp_path: Path
) -> None:
    in_danger(tables, 0)
    with running(ApiSettings(tables=tables.root, refresh_ms=20), now_ms) as url:
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(HERE / "prometheus" / "kardia.rules.yml")],
            "scrape_configs": [{"job_name": "kardia", "static_configs": [{"targets": [url.removeprefix("http://")]}]}],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}]},
        }
        path, port = tmp_path / "prometheus.yml", free_port()
        path.write_text(yaml.safe_dump(config))
        words = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={tmp_path / 'prometheus'}"]
        words += [f"--web.listen-address=127.0.0.1:{port}"]
        with process(words, tmp_path / "prometheus.log"), notify("--alertmanager", alertmanager):
            query = {"query": f'ALERTS{{alertname="{SESSION}",alertstate="firing"}}'}
            address = f"http://127.0.0.1:{port}/api/v1/query"
            until(
                lambda: httpx.get(address, params=query, trust_env=False, timeout=60).json()["data"]["result"],
                "the alert of Prometheus",
            )

            sent = re.compile(r"^prometheus_notifications_sent_total{.*} [1-9]", re.MULTILINE)
            metrics = f"http://127.0.0.1:{port}/metrics"
            until(
                lambda: sent.search(httpx.get(metrics, trust_env=False, timeout=60).text),
                "what Prometheus tells Alertmanager",
            )
            state = tmp_path / "state" / "notify.json"
            until(lambda: state.exists() and '"raised_at_ms":1' in state.read_text(), "the alert of the notifier")
            until(lambda: '"what":' not in state.read_text(), "its delivery")
            received.wait(lambda bodies: bodies, "a notification")
    known = [body for _, _, body in received.messages if body["commonLabels"]["alertname"] == SESSION]
    assert {len(one["alerts"]) for one in known} == {1}, "one alert, whoever told it"
