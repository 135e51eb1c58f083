"""What tables are described in: columns, their types, and the fields of those that are lists of structs.

The tables themselves are in `kardia.tables`.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column. `type`: string, long, int, double, bool, strings (list of string) or a name in `STRUCTS`."""

    name: str
    type: str
    meaning: str
    nullable: bool = True
    personal: bool = False
    since: int = 1


class Table(NamedTuple):
    """One table: its columns in order, and the columns that identify what a row speaks about."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)


STRAGGLER_FIELDS = (
    ("member_id", "string"),
    ("client_id", "string"),
    ("waited_ms", "long"),
    ("joined", "bool"),
    ("pending", "bool"),
    ("partitions", "long"),
)
"""Fields of one entry of `rebalances.stragglers`, the longest waited for first. pending: no member, but an id that was
handed out and that nobody joined with. joined: it rejoined, or came to the group epoch; while a classic group prepares,
who has joined so far, as server.log says, and waited_ms is how long after the begin that was. partitions: of a group
that has epochs, how many it had to give up first; null in a classic group."""

PENDING_FIELDS = (
    ("member_id", "string"),
    ("client_id", "string"),
    ("since_at_ms", "long"),
    ("until_at_ms", "long"),
)
"""Fields of one entry of `health.pending`: since when, and until when at the latest, a rebalance waits for that id."""

MOVING_FIELDS = (
    ("topic", "string"),
    ("partition", "long"),
    ("from_member_id", "string"),
    ("to_member_id", "string"),
)
"""Fields of one entry of `health.moving`. topic: its name, its id where no member that has subscribed to nothing else
shows the name, or the subtopology of a task. from: who has the partition and is to give it up; null where nobody has
it, or nobody is known to. to: whose target has it; null where that is not known."""

STRUCTS = {"stragglers": STRAGGLER_FIELDS, "pending": PENDING_FIELDS, "moving": MOVING_FIELDS}
"""Types of columns that are lists of structs, with the fields of an entry."""
