"""What all groups of a cluster went through, as text: a line for each, the worst first, and what to ask next.

In: the answer of the API's `incidents` route. Every text of a stranger passes `words.name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kardia.story import words

Answer = Mapping[str, Any]

_CAUSES = {
    "session_expired": "session timeout",
    "poll_timeout": "poll timeout",
    "rebalance_timeout": "did not rejoin in time",
    "sync_timeout": "did not sync in time",
    "join_timeout": "never joined",
    "fenced": "fenced",
    "rejected": "rejected",
    "removed_by_admin": "removed by an administrator",
}
"""End causes that take a membership away, in a few words."""


def title(answer: Answer) -> str:
    """Which time it is about, and how many groups had something to tell."""
    freshness, found = answer["freshness"], answer["incidents"]
    until_ms = answer["to_ms"] if answer["to_ms"] is not None else freshness["complete_as_of_ms"]
    times = [words.instant(at_ms) for at_ms in (answer["from_ms"], until_ms) if at_ms is not None]
    span = f"From {times[0]} to {times[1]}" if len(times) == 2 else f"Up to {times[0]}" if times else "So far"
    told, known = len(found) + answer["left_off"], words.count(answer["groups_known"], "group")
    if not told:
        return f"{span}: no group lost a member or rebalanced, of {known}."
    return f"{span}: {told} of {known} lost members or rebalanced, the worst first."


def told(one: Answer) -> list[str]:
    """Sentences about one group."""
    parts = [words.stopped(", ".join(_counts(one)))]
    parts += list(_lost(one))
    longest = one["longest"]
    if longest is not None and one["rebalances"]:
        which = "It" if one["rebalances"] == 1 else "The longest rebalance"
        began, took = words.instant(longest["started_at_ms"]), words.took(longest["duration_ms"])
        parts.append(f"{which} began {began} and took {took}{_waited(longest)}.")
    return parts


_OTHER_ENDS = {
    "left": "left",
    "static_replaced": "replaced by another process",
    "group_deleted": "gone with the group",
    "unknown": "gone (cause unknown)",
}
"""The other end causes, behind their number."""


def _counts(one: Answer) -> Iterator[str]:
    if one["evictions"]:
        yield words.count(one["evictions"], "member") + " evicted"
    for cause, count in one["ends"].items():
        if cause not in _CAUSES:
            yield f"{count} {_OTHER_ENDS.get(cause, cause)}"
    if one["refusals"]:
        yield words.count(one["refusals"], "refusal") + " of a static id"
    if one["rebalances"]:
        is_sum = one["rebalances"] > 1 and one["rebalancing_ms"]  # of some, as those of epochs, it may be 0
        together = f", {words.took(one['rebalancing_ms'])} in all" if is_sum else ""
        yield words.count(one["rebalances"], "rebalance") + together


def _lost(one: Answer) -> Iterator[str]:
    more = one["evictions"] - len(one["evicted"])
    for row in one["evicted"]:
        sure = "" if row["certainty"] == "exact" else f" [{row['certainty']}]"
        cause = _CAUSES.get(row["end_cause"], row["end_cause"])
        yield f"{words.instant(row['ended_at_ms'])} {_name(row)}: {cause}{sure}."
    if more:
        yield f"{words.count(more, 'eviction')} before these."


def _waited(longest: Answer) -> str:
    if longest["waited_for"] is None or not longest["waited_ms"]:
        return ""
    whom = {"member_id": longest["waited_for"], "client_id": longest["waited_for_client_id"]}
    waited = words.took(longest["waited_ms"])
    name = _name(whom)
    return f", waiting for {name[:-1]}, {waited})" if name.endswith(")") else f", waiting for {name} ({waited})"


def _name(row: Answer) -> str:
    return words.told_apart(row["client_id"], row["member_id"]) if row["client_id"] else words.called(row["member_id"])
