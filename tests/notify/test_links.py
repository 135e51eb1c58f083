"""Links of alerts lead to where they say, whatever a group is called: asked for at a real server, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from api.notify.conditions import KINDS, Finding
from api.notify.lifecycle import Lifecycle
from api.notify.settings import NotifySettings
from api.notify.targets import Links, texts
from api.settings import ApiSettings
from dashboards import rules
from tests.api.conftest import Api, Clock, running
from tests.api.test_hostile_ids import IDS
from tests.api.written import NOW_MS, Tables, member, progress, transition
from tests.notify.test_lifecycle import found
from tests.support.links import report_asked

ROOT = Path(__file__).parents[2]
HOUR_MS = 3_600_000


def asked(api: Api, incident_url: str) -> Any:
    """The report that an incident link opens."""
    address, parameters = report_asked(incident_url)
    return api.get(address, **parameters)


@pytest.mark.parametrize("later_ms", [0, 20 * HOUR_MS], ids=["at once", "the next morning"])
def test_an_incident_link_leads_to_the_report_of_its_group_and_hour(tables: Tables, later_ms: int) -> None:
    groups = [text for text in IDS if text]  # no member can join a group without a name
    tables.batch(
        0,
        *(transition(text, 1, "Stable", at_ms=NOW_MS) for text in groups),
        *(member(text, "a", joined_at_ms=NOW_MS, at_ms=NOW_MS) for text in groups),
        progress(NOW_MS + later_ms),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20), Clock(NOW_MS + later_ms)) as url:
        api = Api(url)
        api.wait_for_batch(0)
        for text in groups:
            finding = Finding("KafkaGroupSessionTimeoutImminent", "demo", text, "", "text")
            [notice] = Lifecycle().step(NOW_MS, found(finding))
            report: dict[str, Any] = asked(api, texts(notice, Links.to(url))["incident_url"])
            assert report["group"]["group_id"] == text
            assert [sentence["at_ms"] for sentence in report["timeline"]].count(NOW_MS), text
        api.client.close()


def test_every_runbook_that_an_alert_links_to_exists_and_says_what_a_runbook_must() -> None:
    linked = {kind.runbook for kind in KINDS.values()} | {alert.runbook for alert in rules.ALERTS}
    written = yaml.safe_load((ROOT / "dashboards" / "prometheus" / "kardia.rules.yml").read_text())
    for rule in written["groups"][0]["rules"]:
        where, _, name = rule["annotations"]["runbook_url"].rpartition("/")
        assert where == "http://localhost:8765/runbooks", "as `kardia serve` listens if nobody says otherwise"
        assert name in linked, rule["alert"]
    for name in linked:
        text = (ROOT / "docs" / "runbooks" / name).read_text()
        for part in ("**Meaning.**", "**Impact.**", "**Look.**", "**Do.**"):
            assert part in text, (name, part)
    assert linked == {path.name for path in (ROOT / "docs" / "runbooks").glob("*.md")}, "no page without an alert"


def test_a_runbook_link_opens_a_page_where_kardia_serve_is_known(tables: Tables) -> None:
    finding = Finding("KafkaGroupEvictions", "demo", "g", "", "text")
    [notice] = Lifecycle().step(NOW_MS, found(finding))
    with running(ApiSettings(tables=tables.root, refresh_ms=20), Clock()) as url:
        api = Api(url)
        built = rules.build(kardia=url)["groups"][0]["rules"]
        linked = {rule["annotations"]["runbook_url"] for rule in built} | {texts(notice, Links.to(url))["runbook_url"]}
        assert len(linked) >= 12
        for one in linked:
            reply = api.client.get(one)
            assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8"), one
        api.client.close()
    assert Links.to("", "https://example.org/books/").runbooks == "https://example.org/books"
    assert Links.to("http://kardia/").runbooks == "http://kardia/runbooks"
    default = NotifySettings.model_fields["kardia_url"].default
    assert Links.to(default).runbooks == "http://localhost:8765/runbooks"
