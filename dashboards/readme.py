"""`README.md` of this folder: what each panel answers and what to do when it is red, from the panels themselves."""

from __future__ import annotations

import re
from typing import Any

from dashboards.panels import RED
from dashboards.rules import ALERTS

HEAD = """# Dashboards and rules

Written by `python -m dashboards.generate`, like everything in `json/` and the rules in `prometheus/`; a test
compares what is committed with what the code gives. `docker-compose.yml` provisions all of it.

Panels read two sources. Series come from Prometheus, which scrapes `/metrics` of `kardia serve`; they are named by
group and never by member: member ids change with every restart, and strangers choose them. Tables, lanes and history
come from the REST API through the [Infinity data
source](https://grafana.com/grafana/plugins/yesoreyeram-infinity-datasource/) (`yesoreyeram-infinity-datasource`, 3.8
or newer, Grafana 11.6 or newer), so they are exact to the millisecond and reach as far back as the tables.

Elsewhere than in compose:

1. Install the plugin (`GF_PLUGINS_PREINSTALL_SYNC=yesoreyeram-infinity-datasource@3.8.0`).
2. Make its data source with the address of `kardia serve`, without a slash at its end, as base URL and as its only
   allowed host, as `compose/grafana/datasources/kardia.yaml` does; where the API wants a token, as bearer token.
3. Import the files of `json/`, load the rule file, or apply `prometheus/kardia.prometheusrule.yml` where the
   Prometheus Operator runs, with the labels that its Prometheus selects rules by. `python -m
   dashboards.generate --into DIR --kardia URL` puts the address of `kardia serve` in front of the links of alerts: to
   the page of a group, its incident report, and the runbooks; `--runbooks URL` names another copy of those.
4. Set the variable *kardia serve* to its address as browsers reach it: links to the page and to incident reports go
   there.

Names of groups may contain nearly anything. The data source takes spaces off both ends of a name and reads `$__…` in
it as a macro, so it asks for another group than one of that name; one with a backtick has no numbers from Prometheus,
which gets names between backticks. The page of Kardia and its verbs take all of them.

A group beyond the cap on series (300 a cluster), or with a name of more than 200 characters, has no series of its own
name: its tables and lanes work, its numbers from Prometheus say *not known*.

Colours are Okabe and Ito's, never the only sign, and have one meaning each (`palette.py`): green is well, yellow
unusual, orange wants somebody (or is waited for), purple is an eviction or a deadline that has passed, blue a number
without a judgement, dark grey over, light grey not known. What is not known is never an eviction. While the feed is
stale, or `kardia serve` does not answer, every number says *not known* in grey, lines end, and a grey stretch lies over
the pictures. A query to the API gets 4 s (`timeoutInSeconds` of its data source): less than the refresh, because
Grafana gives up a query that is under way at the next refresh and goes on showing what it had.

"""

ALERT_HEAD = """## Alerts (`prometheus/kardia.rules.yml`)

| alert | severity | says | runbook |
| --- | --- | --- | --- |
"""

TAIL = """
Each alert about a group links its runbook, its page at `kardia serve` at the instant when it was told, the same with
the incident report open (`--kardia` puts the address in front) and its dashboard. `tests/dashboards/test_rules.py`
plays the rules over the series that recorded stories and golden traces gave while they were replayed; `promtool test
rules kardia.rules.test.yml` tests bounds and names that need quoting. A scrape is too slow for the last seconds of a
short session: where seconds matter, run `kardia notify` beside it.
"""


def written(dashboards: list[dict[str, Any]]) -> str:
    """The page; `dashboards` as Grafana gets them."""
    text = HEAD
    for one in dashboards:
        text += f"## {one['title']} (`{one['uid']}`)\n\n{one['description']}\n\n"
        text += "| panel | which question it answers | when it is red |\n| --- | --- | --- |\n"
        for panel in [inner for outer in one["panels"] for inner in (outer, *outer.get("panels", ()))]:
            if panel["type"] != "row":
                asks, do = panel["description"].split(RED)
                text += f"| {panel['title']} | {_cell(asks)} | {_cell(do)} |\n"
        text += "\n"
    text += ALERT_HEAD
    for alert in ALERTS:
        link = f"[{alert.runbook.removesuffix('.md')}](../docs/runbooks/{alert.runbook})"
        text += f"| `{alert.name}` | {alert.severity} | {alert.summary} | {link} |\n"
    return text + TAIL


def _cell(text: str) -> str:
    text = re.sub(r" \[Runbook\]\(docs/runbooks/([\w-]+)\.md\)$", r" [\1](../docs/runbooks/\1.md)", text)
    return text.replace("|", "\\|")
