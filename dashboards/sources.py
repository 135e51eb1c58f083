"""Where panels read from and what they have in common: two data sources, variables, colours, links.

Prometheus has the series of `/metrics`; the Infinity data source asks the REST API of `kardia serve` for tables and
history. Queries are scoped by `$cluster`, and by `$group` where they are about one. Names of groups may contain
anything but backticks: PromQL gets them as they are in raw strings, since `:doublequote` of Grafana leaves backslashes
and line breaks alone and `:json` leaves all of it alone; the API in query parameters that the data source encodes,
links percent-encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable, TextBoxVariable
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh, VariableSort

SERIES = DataSourceRef(type_val="prometheus", uid="${datasource}")
INFINITY = "yesoreyeram-infinity-datasource"
REST = DataSourceRef(type_val=INFINITY, uid="${kardia}")

CLUSTER = "cluster=`${cluster:raw}`"
GROUP = f"{CLUSTER},group=`${{group:raw}}`"

_AGE = f"kardia_feed_age_seconds{{{CLUSTER}}}"
AGE = f"max({_AGE}) or time() - max(max_over_time((timestamp({_AGE}) - {_AGE})[1h:5s]))"
"""How old the answers are, in seconds. Nobody says so once `kardia serve` is gone, and Grafana would show the last
number for as long as the time range: then it is the time since the last instant up to which everything was known."""

GREEN, YELLOW, ORANGE, PURPLE, BLUE, SKY = "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#0072B2", "#56B4E9"
"""Okabe and Ito's colours: told apart by all."""
GREY = "#888888"

STATUS_COLOURS = {
    "ok": GREEN,
    "late": YELLOW,
    "imminent": ORANGE,
    "overdue": PURPLE,
    "unknown": GREY,
    "ended": "#44444466",
}
STATE_COLOURS = {
    "Stable": GREEN,
    "PreparingRebalance": ORANGE,
    "CompletingRebalance": YELLOW,
    "Assigning": ORANGE,
    "Reconciling": YELLOW,
    "Empty": SKY,
    "Dead": "#444444",
    "Unknown": GREY,
}
CERTAINTY_COLOURS = {"exact": GREEN, "inferred": SKY, "provisional": YELLOW, "unknown": GREY}

FLEET_UID, GROUP_UID, MEMBER_UID = "kardia-fleet", "kardia-group", "kardia-member"
REBALANCES_UID, TRUTH_UID = "kardia-rebalances", "kardia-truth"

_OF_CLUSTER = "var-cluster=${cluster:percentencode}"
_OF_GROUP = f"{_OF_CLUSTER}&var-group=${{group:percentencode}}"
_OF_ROW = f"{_OF_CLUSTER}&var-group=${{__data.fields.group:percentencode}}"
TO_FLEET = f"/d/{FLEET_UID}?{_OF_CLUSTER}"
TO_TRUTH = f"/d/{TRUTH_UID}?{_OF_CLUSTER}"
TO_GROUP = f"/d/{GROUP_UID}?{_OF_GROUP}"
TO_REBALANCES = f"/d/{REBALANCES_UID}?{_OF_GROUP}"
ROW_TO_GROUP = f"/d/{GROUP_UID}?{_OF_ROW}"
ROW_TO_MEMBER_OF_ROW = f"/d/{MEMBER_UID}?{_OF_ROW}&var-member=${{__data.fields.member:percentencode}}"
ROW_TO_MEMBER = f"/d/{MEMBER_UID}?{_OF_GROUP}&var-member=${{__data.fields.member:percentencode}}"

_IDS = "cluster=${cluster:percentencode}&group=${group:percentencode}"
PAGE = "${page}/"
PAGE_OF_GROUP = f"${{page}}/#/clusters/~/groups/~?{_IDS}"
INCIDENT = f"${{page}}/api/v1/clusters/~/groups/~/incident?{_IDS}&from=${{__from}}&to=${{__to}}&format=markdown"


Given = Mapping[str, str]
"""Query parameters besides the ids."""
NOTHING: Given = MappingProxyType({})


def ask(path: str, root: str, columns: list[dict[str, str]], ref: str = "A", given: Given = NOTHING) -> dict[str, Any]:
    """A question to the REST API as the Infinity data source takes it.

    `path` is below `/api/v1`; `~` in it stands for an id that is a query parameter, which is all that Grafana can
    encode. Root and columns are plain dotted paths: the backend parser reads them with GJSON.
    """
    nouns = ("clusters", "groups", "members")
    ids = {noun[:-1]: f"${{{noun[:-1]}:raw}}" for noun in nouns if f"/{noun}/~" in path}
    params = [{"key": key, "value": value} for key, value in {**ids, **given}.items()]
    return {
        "refId": ref,
        "datasource": {"type": REST.type_val, "uid": REST.uid},
        "type": "json",
        "source": "url",
        "format": "table",
        "parser": "backend",
        "url": f"/api/v1{path}",
        "url_options": {"method": "GET", "data": "", "params": params},
        "root_selector": root,
        "columns": columns,
        "filters": [],
        "computed_columns": [],
    }


RANGE = {"from": "${__from}", "to": "${__to}"}
"""The time range of the dashboard as parameters."""


def sources() -> list[Any]:
    """Variables that every dashboard has: its data sources, and where the reader's browser finds `kardia serve`."""
    return [
        DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        DatasourceVariable("kardia").label("Kardia API").type(INFINITY),
        TextBoxVariable("page").label("kardia serve").default_value("http://localhost:8765"),
        _values("cluster", "Cluster", ask("/clusters", "clusters", [_column("cluster_id", "__value")])),
    ]


def group_variable() -> QueryVariable:
    """Groups of the cluster, the worst first; any other can be typed."""
    query = ask(
        "/clusters/~/groups", "groups", [_column("group_id", "__value")], given={"sort": "worst", "limit": "1000"}
    )
    return _values("group", "Group", query)


def member_variable() -> QueryVariable:
    """Members that were seen in the time range, those that are gone included, by the names of their lanes."""
    columns = [_column("lane", "__text"), _column("member_id", "__value")]
    return _values(
        "member", "Member", ask("/clusters/~/groups/~/lanes", "lanes", columns, given={"limit": "1000", **RANGE})
    )


def _column(selector: str, text: str) -> dict[str, str]:
    return {"selector": selector, "text": text, "type": "string"}


def _values(name: str, label: str, query: dict[str, Any]) -> QueryVariable:
    return (
        QueryVariable(name)
        .label(label)
        .datasource(REST)
        .query({"refId": "variable", "queryType": "infinity", "infinityQuery": query})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.DISABLED)
    )
