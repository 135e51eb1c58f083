"""All lives of a member id, from memory where it has had one, else from the files."""

from __future__ import annotations

from functools import partial
from typing import Any

from api.errors import NotFound
from api.http.request_context import RequestContext
from api.past import archive
from api.present.current import GroupView


async def lives_of(context: RequestContext, view: GroupView, member_id: str) -> list[Any]:
    """Rows of its lives, the latest first; NotFound if nobody of that id was seen in the group."""
    store = context.store
    life = store.cluster(view.cluster_id).only_life(view, member_id)
    if life is not None:
        return [life]
    about = store.readers["members"], view.cluster_id, view.group_id, member_id
    lives = await context.read(partial(archive.lives, *about, store.current.batch_id, store.settings.rows_read_max))
    if not lives:
        raise NotFound(
            "member", "No member of this id was seen in this group; its /members lists those that are present."
        )
    return lives
