"""What the fields of answers mean, where neither a column of a table nor the model itself says it.

Keyed by the name of the field, or by `Schema.field` where a name means another thing in one place. A field without any
meaning is an error of `tests/api/test_openapi.py`.
"""

from __future__ import annotations

from kardia.table_types import Column
from kardia.tables import TABLES

TWIN = "the same instant in RFC 3339; null if it is not known"

MEANINGS: dict[str, str] = {
    "advice": "what to change, and why",
    "after": "value at `to`",
    "answered_at_ms": "the server's clock when it answered",
    "api": "version of the paths",
    "at": "the instant asked about in RFC 3339; null for the present",
    "Sentence.at": "the same instant in RFC 3339",
    "HealthAt.at_ms": "the instant asked about, or up to which was read",
    "HealthAt.at": "the same instant in RFC 3339",
    "Beat.at_ms": "when the broker had handled it",
    "PollSeen.at_ms": "when the application polled, or the latest instant at which it may have",
    "Sentence.at_ms": "when it happened, on the broker",
    "beats": "requests that renewed the session, by time",
    "before": "value at `from`",
    "came": "members at `to` that were not there at `from`",
    "came_and_went": "memberships that began after `from` and ended by `to`",
    "causes": "how often each trigger and each cause of an end occurred",
    "changed": "what is another one than before",
    "client_id": "client.id; null if not known",
    "BurrowGroup.cluster": "name of the cluster",
    "cluster": "the cluster",
    "clusters": "clusters that the token is for, by name",
    "BurrowClusters.clusters": "names of the clusters that the token is for",
    "complete_as_of_ms": "everything logged up to then is in the answer; null before anything was read",
    "consumers": "ids of the groups, by name",
    "deadlines": "latest health row of each member that was there at the end, whose session ends first comes last",
    "Evidence.start": "first byte of the line, null if there is none",
    "Evidence.end": "byte behind the line, null if there is none",
    "Evidence.event": "kind of the archived event, null if it is not archived",
    "Evidence.logged_at_ms": "the line's own stamp, null if the event is not archived",
    "Evidence.source": "log that the line is in, null for a timer",
    "Evidence.client_id": "client.id of the event, null if it is not archived",
    "ends": "how often memberships ended, by cause",
    "self_test_in_words": "the same in one line, as the page shows it; empty before any answer was put to the model",
    "surprises": "answers that are not as the model of the release predicts",
    "disagreements": "lines of server.log that say otherwise than the requests",
    "error": "whether the question could not be answered",
    "error_bound_ms": "the poll was at most that much earlier; null if that is not known",
    "evictions": "memberships that were taken away",
    "evidence": "what it rests on",
    "freshness": "how far the tables reach, and whether that is long ago",
    "from_ms": "begin of what was asked about, inclusive",
    "from": "the same instant in RFC 3339",
    "generation_id": "generation of the group; null if not known",
    "group": "the group",
    "BurrowGroup.group": "id of the group",
    "group_instance_id": "group.instance.id of a static member; null for a dynamic one",
    "groups": "groups in the order asked for",
    "Cluster.groups": "how many groups were seen",
    "health": "latest row of each member",
    "health_at_ms": "when the health below was written, on the broker's clock",
    "health_certainty": "how sure the health is",
    "host": "always kardia",
    "href": "where this is",
    "joined": "whether it joined in the end",
    "from_member_id": "who has the partition and is to give it up; null where nobody has it, or nobody is known to",
    "to_member_id": "whose target has the partition; null where that is not known",
    "lanes": "members, by the name of their lane",
    "last_status": "status in its latest sample",
    "session_headroom_ratio": "part of the session timeout that was left, 0 to 1; null if not known",
    "poll_headroom_ratio": "part of the poll interval that was left, 0 to 1; null if not known",
    "archived_to_ms": "up to here each request is among the beats; after it, those that health rows saw; null: all so",
    "until_at_ms": "the coordinator gives it up then; null if that is not known",
    "lasting_ms": "so far; null while the feed is stale",
    "last_rebalance": "the latest rebalance, running or not; null if none was seen",
    "left_off": "entries beyond `limit`",
    "links": "paths of what is below it",
    "migration": "how the group changed between the classic and the consumer protocol; null where it did not",
    "speaks": "how many members spoke each protocol, at the begin and whenever that changed",
    "classic": "members of the classic protocol from then on",
    "consumer": "members of the consumer protocol from then on",
    "conversions": "when the group changed its protocol, and by whose request",
    "in_the_way": "refusals, members that stayed behind, assignors of one's own, evictions while both were there",
    "Spoken.at_ms": "since when it was so",
    "Spoken.at": "the same instant in RFC 3339",
    "lint": "what is odd about the settings",
    "lived_ms": "from joined_at to ended_at",
    "lives": "all lives of this id, the latest first",
    "member": "its latest life",
    "member_id": "id given by the coordinator",
    "member_ids": "members it is about",
    "members": "members by id",
    "Cluster.members": "how many are present in all groups",
    "Group.members": "how many are present, by status",
    "message": "what the answer is, or why there is none",
    "Changed.name": "field of the group or member",
    "Version.name": "always kardia",
    "next_evictions": "deadlines, the first first",
    "next_poll_deadline": "poll deadline that comes first; null if none is known",
    "next_session_deadline": "session deadline that comes first; null if none is known",
    "total": "all that are present",
    "ok": "heard in time, polls in time",
    "MemberCounts.late": "silent longer than their own habit",
    "imminent": "less than half of a timeout is left, and the silence is unusual",
    "overdue": "a deadline passed, the outcome is not known yet",
    "unknown": "the evidence is missing",
    "open_rebalances": "groups that rebalance, the longest first",
    "poll": "what is left until the client gives up its membership; null if the member is gone or has no health yet",
    "session": "what is left until the coordinator evicts it; null if the member is gone or has no health yet",
    "poll_headroom_min_ratio": "least part of a poll interval that was left, 0 to 1; null if none is known",
    "session_headroom_min_ratio": "least part of a session timeout that was left, 0 to 1; null if none is known",
    "poll_timeout_ms": "poll interval as announced, or as the deadline shows it; null if neither is known",
    "polls": "evidence that the application polled, by time",
    "predictions": "timeouts that were foretold",
    "ready": "whether every table is there and read",
    "rebalances": "rebalances",
    "is_least": "the deadline is that or later: a member in good health is written down every few seconds, and may "
    "have been heard since; false: nothing that was read renews it up to the instant asked about",
    "remaining_ms": "deadline - answered_at, or - `at`; below 0 the outcome is not known yet; null while the feed is "
    "stale, and of a least deadline (`is_least`) that has passed",
    "rejected": "lines that could not be understood",
    "request": "what was asked",
    "rule": "name of the rule",
    "running": "whether it is not over",
    "samples": "health rows, by time",
    "session_timeout_ms": "session timeout in force; null if not known",
    "settings": "who each member was, and its timeouts in force",
    "severity": "how bad it is: error, warning or info",
    "shown_by": "what shows it",
    "since_at_ms": "when it began",
    "source": "BROKER/STREAM",
    "sources": "logs that are read, and how far",
    "state": "state of the group, as Kafka names it; Unknown before anything is known, and while its coordinator is "
    "silent beyond a session deadline",
    "state_cause": "why it is in this state, or `coordinator_unheard`; null before anything is known",
    "state_certainty": "how sure the state is",
    "state_since_at_ms": "since when; null before anything is known",
    "table": "table of the row that says it",
    "text": "a sentence; ids in it are quoted and escaped where they are not plain",
    "timeline": "what happened, in sentences, by time",
    "timeout_ms": "timeout in force; null if not known",
    "to_ms": "end of what was asked about, exclusive",
    "Difference.to_ms": "the later instant",
    "Difference.from_ms": "the earlier instant",
    "to": "the same instant in RFC 3339",
    "transitions": "changes of state",
    "triggers": "how often rebalances began, by trigger",
    "url": "path that was asked",
    "version": "version of Kardia",
    "waited_ms": "how long it was waited for",
    "waiting_for": "tables that are not there or cannot be read",
    "went": "memberships that were there at `from` and ended by `to`",
    "known_at_ms": "only what was known then counts; null: all that is known",
    "known_at": "the same instant in RFC 3339",
    "BurrowGroup.status": "OK, WARN: a deadline comes near or not all is known, ERR: one passed, NOTFOUND: never seen",
    "BurrowStatus.status": "the group in Burrow's words",
    "Sentence.kind": "what kind of thing happened",
    "Problem.type": "URN that ends in the code",
    "Problem.title": "what is wrong, the same sentence for each code",
    "Problem.status": "HTTP status",
    "Problem.detail": "what is wrong this time, what was expected, what to do",
    "Problem.code": "stable name of the problem",
    "Problem.request_id": "leads to the server's log",
}


def meaning_of(schema: str, name: str, names: frozenset[str]) -> str | None:
    """Meaning of a field of a schema whose fields are `names`; None if nobody has said it."""
    said = MEANINGS.get(f"{schema}.{name}") or MEANINGS.get(name)
    if said is None and f"{name}_ms" in names:
        return TWIN
    return said or _COLUMNS.get(name)


def _columns() -> dict[str, str]:
    """Column -> its meaning, of those that mean the same in all tables."""
    found: dict[str, set[Column]] = {}
    for table in TABLES.values():
        for column in table.columns:
            found.setdefault(column.name, set()).add(column)
    return {name: columns.pop().meaning for name, columns in found.items() if len({c.meaning for c in columns}) == 1}


_COLUMNS = _columns()
