"""Where panels read from: Prometheus and the REST API, and how queries name the cluster and the group.

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
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableOption, VariableRefresh, VariableSort

SERIES = DataSourceRef(type_val="prometheus", uid="${datasource}")
INFINITY = "yesoreyeram-infinity-datasource"
REST = DataSourceRef(type_val=INFINITY, uid="${kardia}")

CLUSTER = "cluster=`${cluster:raw}`"
GROUP = f"{CLUSTER},group=`${{group:raw}}`"
CLUSTERS = "cluster=~`${cluster:regex}`"
"""One, several or all clusters."""
GROUPS = f"{CLUSTERS},group=~`${{group:regex}}`"
"""One, several or all groups of them."""

_AGE = f"kardia_feed_age_seconds{{{CLUSTERS}}}"
AGE = f"max({_AGE}) or time() - max(max_over_time((timestamp({_AGE}) - {_AGE})[1h:5s]))"
"""How old the answers are, in seconds. Nobody says so once `kardia serve` is gone, and Grafana would show the last
number for as long as the time range: then it is the time since the last instant up to which everything was known."""

SEES = f"max(kardia_feed_stale{{{CLUSTERS}}}) == 0"
"""Has a value while all that was chosen is seen: nothing of it is stale, and `kardia serve` answers the scrape."""


def while_seen(expr: str) -> str:
    """The expression, as long as Kardia sees: a line ends where it does not, and does not go on as it was."""
    return f"({expr}) and on () ({SEES})"


def or_blind(expr: str) -> str:
    """One number, or NaN where it cannot be known: no panel may go on showing the last one, or 0."""
    return f"{while_seen(expr)} or on () vector(NaN)"


FLEET_UID, GROUP_UID, MEMBER_UID = "kardia-fleet", "kardia-group", "kardia-member"
REBALANCES_UID, TRUTH_UID = "kardia-rebalances", "kardia-truth"

SOURCES = "${__url_time_range}&${datasource:queryparam}&${kardia:queryparam}&${page:queryparam}"
"""What every link between dashboards carries: the time range, the data sources, and where `kardia serve` is."""

_CLUSTER = "var-cluster=${cluster:percentencode}"
_OF_GROUP = f"{_CLUSTER}&var-group=${{group:percentencode}}"
_OF_ROW = f"{_CLUSTER}&var-group=${{__data.fields.group:percentencode}}"
_MEMBER_OF_ROW = "var-member=${__data.fields.member:percentencode}"
ROW_TO_GROUP = f"/d/{GROUP_UID}?{SOURCES}&{_OF_ROW}"
ROW_TO_MEMBER_OF_ROW = f"/d/{MEMBER_UID}?{SOURCES}&{_OF_ROW}&{_MEMBER_OF_ROW}"
ROW_TO_MEMBER = f"/d/{MEMBER_UID}?{SOURCES}&{_OF_GROUP}&{_MEMBER_OF_ROW}"
_SERIES = "var-cluster=${__field.labels.cluster:percentencode}&var-group=${__field.labels.group:percentencode}"
SERIES_TO_GROUP = f"/d/{GROUP_UID}?{SOURCES}&{_SERIES}"
SERIES_TO_LEDGER = f"/d/{REBALANCES_UID}?{SOURCES}&{_SERIES}"

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
    ]


def cluster_variable() -> QueryVariable:
    """One cluster. What series have comes from Prometheus, so that it can be chosen when the API hangs."""
    return _of_series("cluster", "Cluster", "kardia_feed_stale")


def clusters_variable() -> QueryVariable:
    """Some clusters, at first all."""
    return _all(cluster_variable())


def group_variable() -> QueryVariable:
    """One group, among those that have series; any other can be typed, or come with a link."""
    return _none(_of_series("group", "Group", f"kardia_group_members{{{CLUSTER}}}"))


def groups_variable() -> QueryVariable:
    """Some groups, at first all."""
    return _all(_of_series("group", "Group", f"kardia_group_members{{{CLUSTERS}}}")).all_value(".+")


def member_variable() -> QueryVariable:
    """Members that were seen in the time range, those that are gone included, by the names of their lanes."""
    columns = [_column("lane", "__text"), _column("member_id", "__value")]
    asked = ask("/clusters/~/groups/~/lanes", "lanes", columns, given={"limit": "1000", **RANGE})
    query: dict[str, object] = {"refId": "variable", "queryType": "infinity", "infinityQuery": asked}
    return _none(_variable("member", "Member").datasource(REST).query(query))


NOBODY = "(not in the list)"
"""What a variable says of a value that its list lacks. Grafana would take the first of the list, which is somebody
else; where there is an entry for all, it takes that, and of a group or member of this name nothing is known."""


def _column(selector: str, text: str) -> dict[str, str]:
    return {"selector": selector, "text": text, "type": "string"}


def _of_series(name: str, label: str, series: str) -> QueryVariable:
    query: dict[str, object] = {
        "qryType": 1,
        "query": f"label_values({series},{name})",
        "refId": f"PrometheusVariable-{name}",
    }
    return _variable(name, label).datasource(SERIES).query(query)


def _variable(name: str, label: str) -> QueryVariable:
    # Asked once: with each refresh Grafana holds the value against the new list, and one that a link brought may have
    # left the list since.
    made = QueryVariable(name).label(label).refresh(VariableRefresh.ON_DASHBOARD_LOAD)
    return made.sort(VariableSort.ALPHABETICAL_ASC)


def _none(variable: QueryVariable) -> QueryVariable:
    return variable.include_all(True).all_value(NOBODY)


def _all(variable: QueryVariable) -> QueryVariable:
    chosen = VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(True).include_all(True).current(chosen)
