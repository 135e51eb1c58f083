"""Where server.log says otherwise than the requests: which group, when, and what each of the two says."""

from __future__ import annotations

from starlette.responses import Response

from api.http.asking import PAGES
from api.http.listing import Listing, listed
from api.http.names import CLUSTER, GROUP
from api.http.routing import ApiRequest, query_parameter, router_of, takes
from api.past import disagreements
from api.shapes import models
from kardia.tables import DISAGREEMENTS

router = router_of("clusters")

KIND = query_parameter("kind", "only disagreements of this kind", {"type": "string", "enum": list(DISAGREEMENTS)})

LISTING = Listing("disagreements", "kind", DISAGREEMENTS, disagreements.line)


@router.get(
    "/clusters/{cluster}/disagreements",
    response_model=models.Disagreements,
    summary="Where server.log says otherwise than the requests",
    openapi_extra=takes(KIND, *CLUSTER, *PAGES),
)
async def of_cluster(request: ApiRequest) -> Response:
    """Disagreements of all groups, those of the latest batch first unless asked otherwise. `from` and `to` bound the
    stamp of the line of server.log."""
    return await listed(request, LISTING, of_group=False)


@router.get(
    "/clusters/{cluster}/groups/{group}/disagreements",
    response_model=models.Disagreements,
    summary="Where server.log says otherwise of a group than its requests",
    openapi_extra=takes(KIND, *CLUSTER, *GROUP, *PAGES),
)
async def of_group(request: ApiRequest) -> Response:
    """The same of one group."""
    return await listed(request, LISTING, of_group=True)
