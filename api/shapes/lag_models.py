"""Shapes of the answers about lag."""

from __future__ import annotations

from pydantic import Field

from api.shapes.base import Answer, columns, many, shape
from api.shapes.models import Fresh
from kardia.story.lagging import REASONS

_REASON = "why it falls behind: " + "; ".join(f"{name}, {meaning}" for name, meaning in REASONS.items())


class LagKnown(Answer):
    """How far lag is known."""

    as_of_ms: int | None = Field(
        description="commits and ends are as of then: the last look at the ends, or before it where more had changed "
        "than is written at once; null: there was no look"
    )
    as_of: str | None = Field(description="the same instant in RFC 3339")
    stale: bool = Field(description="the last look is too long ago (lag_stale_after_ms): lag is not known now")


class Why(Answer):
    """Why partitions of a group fall behind."""

    reason: str = Field(description=_REASON, json_schema_extra={"enum": list(REASONS)})
    partitions: int = Field(description="how many fall behind for this reason")
    text: str = Field(description="the same as a sentence, with the numbers; names in it are quoted where not plain")


class GroupLag(Answer):
    """Lag of one group."""

    href: str = Field(description="where its partitions are")
    cluster_id: str = Field(description="name of the cluster")
    group_id: str = Field(description="id of the group")
    status: str = Field(
        description="Burrow's status of the worst partition; UNKNOWN where lag is not known",
        json_schema_extra={"enum": ["OK", "WARN", "ERR", "UNKNOWN"]},
    )
    partitions: int = Field(description="partitions that it has committed offsets for")
    partitions_known: int = Field(description="of them those whose lag is known")
    partitions_behind: int = Field(description="of them those with something to read")
    lag: int | None = Field(description="records that it has not read, of the partitions that are known; null: of none")
    lag_most: int | None = Field(
        description="the same at most; null: not known, a commit is of after the end was asked for"
    )
    lag_max: int | None = Field(description="the same of the partition with most")
    time_lag_ms: int | None = Field(
        description="how long the first record that it has not read has waited, of the partition where that is "
        "longest; interpolated, null where that is known of none"
    )
    time_lag_least_ms: int | None = Field(description="it has waited at least so long")
    members: int | None = Field(description="members of the group; null if not known")
    why: list[Why] = Field(description="why it falls behind, the reason with most lag first; empty if it does not")


class _PartitionLag(Answer):
    href: str = Field(description="its history")
    as_of_ms: int | None = Field(description="what is said of the partition held then; null: nobody looked at its end")
    lag_most: int | None = Field(
        description="its lag at most; null: not known, as where the commit is of after the end was asked for "
        "(looked_at), so that more may have come by then and `lag` is the least"
    )
    time_lag_ms: int | None = Field(
        description="as_of - behind_at: how long the first record that the group has not read has waited there, "
        "interpolated; 0 where nothing waits, null where that cannot be placed"
    )
    time_lag_least_ms: int | None = Field(description="it has waited at least so long; null: not known")
    time_lag_most_ms: int | None = Field(description="it has waited at most so long; null: not known")
    deleted_unread: int | None = Field(description="records that were deleted before it read them; null: not known")
    status: str = Field(
        description="Burrow's status, by the last ten commits; UNKNOWN where lag is not known",
        json_schema_extra={"enum": ["OK", "WARN", "STOP", "STALL", "REWIND", "UNKNOWN"]},
    )
    reason: str | None = Field(
        description=_REASON + "; null where it does not fall behind", json_schema_extra={"enum": [*REASONS, None]}
    )


PartitionLag = shape("PartitionLag", _PartitionLag, columns("lag"), "Lag of one partition of a group.")


class _LagRow(Answer):
    href: str = Field(description="lag of the group as it stands")


LagRow = shape("LagRow", _LagRow, columns("lag"), "What was known of one partition of a group at an instant.")

LagOfCluster = shape(
    "LagOfCluster",
    Fresh,
    {
        "known": (LagKnown, Field(description="how far lag is known")),
        "groups": many(GroupLag),
        "left_off": (int, Field(description="groups beyond `limit`")),
    },
    "Lag of all groups of a cluster.",
)

LagOfGroup = shape(
    "LagOfGroup",
    Fresh,
    {
        "known": (LagKnown, Field(description="how far lag is known")),
        "group": (GroupLag, Field(description="all partitions together")),
        "partitions": (many(PartitionLag)[0], Field(description="partitions, those in trouble first")),
        "left_off": (int, Field(description="partitions beyond `limit`")),
    },
    "Lag of a group by partition.",
)

LagHistory = shape(
    "LagHistory",
    Fresh,
    {
        "lag": (many(LagRow)[0], Field(description="rows, the newest first")),
        "next_cursor": (str | None, Field(description="give it as `cursor` to go on; null on the last page")),
    },
    "Lag of a group as it was.",
)
