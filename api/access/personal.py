"""Personal columns, and whether this server shows them. Decided here and nowhere else.

With `hide_personal` a hidden column is not even read from the files: it is null in every row, so no route, series,
report or sentence can tell it. Hidden is what `kardia.tables` marks as personal, addresses, connections, a client's own
words, details of events, except the names by which Kardia says who: of groups, members and clients. Principals need no
hiding; they are never collected.
"""

from __future__ import annotations

from kardia.tables import TABLES

NAMES = frozenset(
    (
        "group_id",
        "member_id",
        "group_instance_id",
        "client_id",
        "trigger_member_id",
        "trigger_client_id",
        "trigger_group_instance_id",
        "leader_member_id",
        "pending",
        "moving",
    )
)
"""Personal columns that stay: without them an answer would be about nobody. Who may not see a group gets a token for
other clusters."""

HIDEABLE: dict[str, frozenset[str]] = {
    name: frozenset(column.name for column in table.columns if column.personal) - NAMES
    for name, table in TABLES.items()
}
"""Table -> columns that `hide_personal` hides. A new personal column is among them unless it is made a name."""


def hidden(table: str, *, hide_personal: bool) -> frozenset[str]:
    """Columns of a table that this server does not show."""
    return HIDEABLE[table] if hide_personal else frozenset()
