"""Chart rows of a group (`/lanes`): its pulse as flat rows, for dashboards and data frames."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.responses import Response

from api.answers import chart_rows
from api.http.asking import LIMIT, answer, limit_of
from api.http.names import CLUSTER, GROUP, cluster_id_of, group_id_of
from api.http.routing import TEXT, ApiRequest, query_parameter, router_of, takes
from api.http.times import FROM_TO, time_range_of
from api.past import archive, pulse
from api.past.cursor import Place
from api.present.current import UNKNOWN_STATE
from api.present.freshness import Freshness
from api.routes.pulse import WIDTH_MAX_MS, WIDTH_MS
from api.shapes import report_models

router = router_of("history")

ONE_MEMBER = query_parameter("member", "only this member, by its id", TEXT)

CHANGES_MAX = 5_000
"""Changes of state in one picture: a rebalance makes three, and a screen has some 2,000 columns."""


@router.get(
    "/clusters/{cluster}/groups/{group}/lanes",
    response_model=report_models.Lanes,
    summary="Pulse of a group as flat rows",
    openapi_extra=takes(ONE_MEMBER, *CLUSTER, *GROUP, *FROM_TO, LIMIT),
)
async def group_lanes(request: ApiRequest) -> Response:
    """The same as `pulse`, one row per beat, poll and sample, and the state of the group. A wider range than six hours
    is answered for its last six hours; `from_ms` says from when."""
    picture = await _picture(request)
    return answer(picture.freshness, **picture.lists, **picture.about)


@router.get(
    "/clusters/{cluster}/groups/{group}/points",
    response_model=report_models.Points,
    summary="Lanes of a group as one list of points",
    openapi_extra=takes(ONE_MEMBER, *CLUSTER, *GROUP, *FROM_TO, LIMIT),
)
async def group_points(request: ApiRequest) -> Response:
    """The same as `lanes`, states, samples, beats and polls in one list in order of time: a dashboard asks once and
    draws each of its pictures from the points of a `kind`."""
    picture = await _picture(request)
    points = chart_rows.points(picture.lists)
    return answer(picture.freshness, lanes=picture.lists["lanes"], points=points, **picture.about)


class _Picture(NamedTuple):
    freshness: Freshness
    lists: dict[str, list[dict[str, Any]]]
    about: dict[str, Any]


async def _picture(request: ApiRequest) -> _Picture:
    cluster_id, group_id = cluster_id_of(request), group_id_of(request)
    from_ms, asked_to_ms = time_range_of(request)
    limit, member = limit_of(request), request.query_params.get("member")
    store = request.context.store
    store.require("health", "transitions")
    view = store.group(cluster_id, group_id)
    cluster = store.cluster(cluster_id)
    freshness = store.freshness(cluster, group=view)
    newest_ms = (cluster.reach.newest_ms or freshness.now_ms) + 1
    # Dashboards ask up to their own clock; beyond what was read there is nothing, and six hours of that would be empty.
    to_ms = max(newest_ms if asked_to_ms is None else min(asked_to_ms, newest_ms), from_ms or 0)
    from_ms = max(to_ms - WIDTH_MS if from_ms is None else from_ms, to_ms - WIDTH_MAX_MS)
    reached_ms = freshness.complete_as_of_ms
    is_blind = freshness.stale and reached_ms is not None and (asked_to_ms is None or asked_to_ms > newest_ms)
    batch_id, rows_max = store.current.batch_id, store.settings.rows_read_max
    asked = pulse.Asked(cluster_id, group_id, from_ms, to_ms, batch_id, rows_max)

    def read() -> tuple[list[dict[str, Any]], int | None, chart_rows.Begin, list[Any]]:
        about = store.readers["transitions"], cluster_id, group_id
        place = Place(batch_id, ())
        changes = archive.transitions(*about, archive.HistoryPart(from_ms, to_ms, CHANGES_MAX, True, place), "group")
        before = archive.transitions(*about, archive.HistoryPart(None, from_ms, 1, True, place), "group").rows
        # With more changes than that nothing is said of the time before the first of those that are answered.
        begin = chart_rows.Begin(from_ms, UNKNOWN_STATE, "unknown")
        if before and changes.place is None:
            begin = chart_rows.Begin(from_ms, before[0].to_state, before[0].certainty)
        return *pulse.read(store.readers["health"], store.events, asked), begin, changes.rows[::-1]

    members, archived_to_ms, begin, changes = await request.context.read(read)
    found = [one for one in members if member is None or one["member_id"] == member]
    ends = chart_rows.Ends(to_ms, reached_ms if is_blind else None)
    lists = chart_rows.flat(chart_rows.worst(found, limit), ends.blind_from_ms)
    unheard_ms = view.unheard_since_ms
    if ends.blind_from_ms is None and unheard_ms is not None and unheard_ms < to_ms:
        ends = ends._replace(blind_from_ms=unheard_ms)  # of the state alone: a deadline that passed is known
    return _Picture(
        freshness,
        {**lists, "states": chart_rows.states(begin, changes, view.ahead, ends)},
        {
            "from_ms": from_ms,
            "to_ms": to_ms,
            "archived_to_ms": archived_to_ms,
            "left_off": max(0, len(found) - limit),
        },
    )
