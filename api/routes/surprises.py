"""Answers to classic requests that are not as the model of the brokers' release predicts."""

from __future__ import annotations

from starlette.responses import Response

from api.http.asking import PAGES
from api.http.listing import Listing, listed
from api.http.names import CLUSTER, GROUP
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.past import surprises
from api.shapes import models
from kardia.tables import SURPRISE_CLASSES

router = router_of("clusters")

CLASS = query_parameter(
    "surprise_class", "only surprises of this class", {"type": "string", "enum": list(SURPRISE_CLASSES)}
)

LISTING = Listing("surprises", "surprise_class", SURPRISE_CLASSES, surprises.surprise)


@router.get(
    "/clusters/{cluster}/surprises",
    response_model=models.Surprises,
    summary="Answers that are not as the model of the release predicts",
    openapi_extra=takes(CLASS, *CLUSTER, *PAGES),
)
async def of_cluster(request: ApiRequest) -> Response:
    """Surprises of all groups, those of the latest batch first unless asked otherwise. `from` and `to` bound the
    instant of the answer."""
    return await listed(request, LISTING, of_group=False)


@router.get(
    "/clusters/{cluster}/groups/{group}/surprises",
    response_model=models.Surprises,
    summary="Answers to a group that are not as the model of the release predicts",
    openapi_extra=takes(CLASS, *CLUSTER, *GROUP, *PAGES),
)
async def of_group(request: ApiRequest) -> Response:
    """The same of one group."""
    return await listed(request, LISTING, of_group=True)
