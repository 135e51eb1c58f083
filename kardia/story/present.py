"""What was so at an instant: state, members, a rebalance under way, deadlines with what was left of them.

`live` means that the tables keep up with the clock of whoever asks: then what is left counts down from `now_ms`. If
not, what is left is told for the instant asked about, and it is said that the tables end there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kardia.evidence_levels import NEEDS_REQUESTS_REASON
from kardia.statuses import UNSEEN, shown
from kardia.story import evidence, foretold, in_doubt, lives, reassignment, spoken, words
from kardia.story.facts import Material, Row, Sentence
from kardia.story.lasted import began_unseen, has_epochs, over_unread_by_ms, waited

MEMBERS_MAX = 10
"""Members whose deadlines are told one by one, the least margin first."""

WARNINGS_MAX = 10

SEEN_WITHIN_MS = 15_000
"""A health row that old says nothing of the wait any more: members are sampled every 5 s, those in danger more often.
Where there are so many that they wait for their turn, nothing is said of those who are well."""


def present(material: Material, at_ms: int, members: Collection[str] | None, *, live: bool) -> list[Sentence]:
    """State, warnings and deadlines, for all members or for some."""
    return [state(material, at_ms), *_warnings(material, at_ms, members), *_deadlines(material, at_ms, members, live)]


def state(material: Material, at_ms: int, kind: str = "state") -> Sentence:
    """State of the group at an instant, since when, and who was in it."""
    changes = [row for row in material.transitions if row["entity"] == "group" and row["at_ms"] <= at_ms]
    there = members_at(material, at_ms)
    who = _who(material, at_ms, there, changes[-1] if changes else None)
    who += _joining(material, at_ms, {life["member_id"] for life in there})
    if not changes:
        # That nobody is known is not that nobody is there.
        known = f"the state of the group at this instant;{who[1:]}" if there else "the group at this instant"
        return Sentence(at_ms, kind, f"Nothing is known of {known}.", "unknown")
    last = changes[-1]
    number = spoken.number_at(material, at_ms, last)
    generation = f" in {spoken.unit(spoken.at(material, at_ms))} {number}" if number is not None else ""
    member_ids = tuple(life["member_id"] for life in there)
    waits, ahead = _waits(material, at_ms), _ahead(material, at_ms, last)
    if ahead is not None:
        text = (
            f"The group was {words.name(ahead['group_state'])}{generation} since {words.clock(_seen_by(ahead), at_ms)} "
            f"or before{who}. Who began the rebalance is known when it is over.{waits}"
        )
        return Sentence(at_ms, kind, text, "provisional", member_ids)
    since = words.clock(last["at_ms"], at_ms)
    if last["to_state"] == "Unknown":
        text = f"The state of the group is not known since {since}{who}.{_under_way(material, at_ms)}"
        return Sentence(at_ms, kind, text, last["certainty"], member_ids, evidence.of(last))
    unsure = in_doubt.told(last)
    text = (
        f"The group was {words.name(last['to_state'])}{generation} since {since}{who}.{_under_way(material, at_ms)}"
        f"{waits}{' ' if unsure else ''}{unsure}"
    )
    return Sentence(at_ms, kind, text, last["certainty"], member_ids, evidence.of(last))


def _who(material: Material, at_ms: int, there: list[Row], last: Row | None) -> str:
    """Who was in the group at an instant, as far as it is known: a hole leaves open whether those of before still are,
    and a sentence may count more members than are named."""
    sure = [life for life in there if not _is_doubtful(life)]
    maybe = [material.who(life["member_id"]) for life in there if _is_doubtful(life)]
    names = words.listing([material.who(life["member_id"]) for life in sure])
    counted = None if last is None or last["to_state"] not in SETTLING else _counted(material, at_ms, last)
    if counted is not None and counted > len(sure):
        known = f"of whom {len(sure)} {_are(sure)} known: {names}" if sure else "none known by name"
        who = f", {words.count(counted, 'member')}, {known}"
    elif sure:
        who = f", {words.count(len(sure), 'member')}: {names}"
    elif last is not None and last["to_state"] in ("Empty", "Dead"):
        who = ", no members"
    else:
        who = ", no member known"
    still = f"; whether {words.listing(maybe)} {_are(maybe)} still there was not read"
    return who + still * bool(maybe)


def _are(some: Sequence[object]) -> str:
    return "is" if len(some) == 1 else "are"


SETTLING = ("Stable", "CompletingRebalance")
"""States of a classic group in which its members are those that its generation began with."""


def _counted(material: Material, at_ms: int, last: Row) -> int | None:
    """Members of the generation at an instant, as the rebalance that led to it counts them."""
    for row in reversed(material.rebalances):
        if row["started_at_ms"] <= at_ms and row["generation_after"] is not None and not has_epochs(row):
            return row["members_after"] if row["generation_after"] == last["generation_id"] else None
    return None


def _is_doubtful(life: Row) -> bool:
    """Whether it is not known if somebody is a member still: he was one before a hole."""
    return bool(life["ended_at_ms"] is None and life["certainty"] == "unknown")


def _ahead(material: Material, at_ms: int, last: Row) -> Row | None:
    """The first row of health that shows a state which no change has told yet: a classic group prepares a rebalance,
    and whoever began it has not been answered."""
    after = [row for row in material.health if last["at_ms"] < row["at_ms"] <= at_ms]
    latest = max(after, key=lambda row: int(row["at_ms"]), default=None)
    if latest is None or latest["at_ms"] < at_ms - SEEN_WITHIN_MS or latest["known_at_ms"] <= last["known_at_ms"]:
        return None
    if latest["group_state"] != "PreparingRebalance" or last["to_state"] == latest["group_state"]:
        return None
    return min((row for row in after if row["group_state"] == latest["group_state"]), key=_seen_by)


def _seen_by(row: Row) -> int:
    """When a member was told of the rebalance, or else was seen in it."""
    told_ms = row.get("awaited_since_at_ms")
    return int(row["at_ms"] if told_ms is None else told_ms)


def members_at(material: Material, at_ms: int) -> list[Row]:
    """Lives that an instant lies in."""
    return [
        life
        for life in material.lives
        if life["joined_at_ms"] <= at_ms and (life["ended_at_ms"] is None or life["ended_at_ms"] > at_ms)
    ]


def _joining(material: Material, at_ms: int, there: Collection[str]) -> str:
    """Who has joined in the rebalance under way and waits for its answer, as sentences of server.log say."""
    row = max(material.rebalances, key=lambda one: int(one["started_at_ms"]), default=None)
    if row is None or row["joined_at_ms"] is not None or row["completed_at_ms"] is not None:
        return ""
    known = [entry for entry in row["stragglers"] or () if entry["waited_ms"] is not None]
    since = [(row["started_at_ms"] + entry["waited_ms"], entry) for entry in known]
    new = [one for one in since if one[1]["joined"] and one[1]["member_id"] not in there and one[0] <= at_ms]
    if not new:
        return ""
    names = [
        f"{material.who(entry['member_id'], entry['client_id'])} since {words.clock(joined_ms, at_ms)}"
        for joined_ms, entry in sorted(new, key=lambda one: int(one[0]))
    ]
    return f"; {len(new)} more {'has' if len(new) == 1 else 'have'} joined: {words.listing(names)}"


def _under_way(material: Material, at_ms: int) -> str:
    for row in reversed(material.rebalances):
        if row["started_at_ms"] > at_ms:
            continue
        over_ms, unread_ms = row["completed_at_ms"], over_unread_by_ms(row)
        if over_ms is not None and over_ms <= at_ms:
            return ""
        if unread_ms is not None:
            began, by = words.clock(row["started_at_ms"], at_ms), words.clock(unread_ms, at_ms)
            return f" The rebalance that began at {began} was over by {by}: when was not read."
        lasted = "at least " * began_unseen(row) + words.took(at_ms - row["started_at_ms"])
        if over_ms is None:
            return f" A rebalance had been under way for {lasted}.{waited(material, row)}"
        awaited = [
            material.who(entry["member_id"], entry["client_id"])
            for entry in row["stragglers"] or ()
            if entry["waited_ms"] is not None and row["started_at_ms"] + entry["waited_ms"] > at_ms
        ]
        still = f" and waited for {words.listing(awaited)}" if awaited else ""
        known = f" (known from {words.clock(row['known_at_ms'], at_ms)} on)" if row["known_at_ms"] > at_ms else ""
        left = words.took(over_ms - at_ms)
        return f" A rebalance had been under way for {lasted}{still}; it was over {left} later{known}."
    return ""


def _waits(material: Material, at_ms: int) -> str:
    """Whom a rebalance under way waited for, as far as it was known by then, and until when at the latest."""
    rows = [
        row
        for row in material.health
        if row.get("awaited_since_at_ms") is not None and row["at_ms"] <= at_ms < row["at_ms"] + SEEN_WITHIN_MS
    ]
    rows = [row for row in rows if not _is_over(material, row, at_ms)]
    if not rows or _told_by_ledger(material, at_ms):
        return _waits_for_ids(material, at_ms)
    who = [f"{material.who(row['member_id'], row['client_id'])}{_holds(material, row)}" for row in rows[:MEMBERS_MAX]]
    more = f" and {len(rows) - MEMBERS_MAX} more" if len(rows) > MEMBERS_MAX else ""
    since = words.clock(min(row["awaited_since_at_ms"] for row in rows), at_ms)
    ends = [row["awaited_until_at_ms"] for row in rows if row["awaited_until_at_ms"] is not None]
    until = f", until {words.clock(min(ends), at_ms)} at the latest" if ends else ""
    return (
        f" The rebalance waited for {words.listing(who)}{more} since {since}{until}.{_waits_for_ids(material, at_ms)}"
    )


def _holds(material: Material, row: Row) -> str:
    """What a member of a group that has epochs must give up first."""
    clauses = reassignment.given_up(row["member_id"], row.get("moving"), material.who)
    return f" (to give up {words.listing(clauses)})" if clauses and row.get("partitions_revoking") else ""


def _told_by_ledger(material: Material, at_ms: int) -> bool:
    """Whether the rebalance under way then is over by now, so that its row has said whom it waited for: what seemed so
    before everybody had been answered is not repeated."""
    return any(
        row["started_at_ms"] <= at_ms < row["completed_at_ms"]
        for row in material.rebalances
        if row["completed_at_ms"] is not None
    )


def _waits_for_ids(material: Material, at_ms: int) -> str:
    """Ids that were handed out and never used, for which a join phase waits as for members."""
    rows = [row for row in material.health if row["at_ms"] <= at_ms < row["at_ms"] + SEEN_WITHIN_MS]
    latest = max(rows, key=lambda row: int(row["at_ms"]), default=None)
    if latest is None or _last_state(material, at_ms) != "PreparingRebalance":
        return ""
    ids = [entry for entry in latest["pending"] or () if entry["until_at_ms"] > at_ms]
    if not ids:
        return ""
    who = words.listing(
        [
            f"{words.name(entry['client_id'] or entry['member_id'])}, at {words.clock(entry['since_at_ms'], at_ms)}"
            for entry in ids[:MEMBERS_MAX]
        ]
    )
    until = words.clock(max(entry["until_at_ms"] for entry in ids), at_ms)
    return f" It waited for ids that were handed out and not used ({who}), until {until} at the latest."


def _last_state(material: Material, at_ms: int) -> str:
    changes = [row for row in material.transitions if row["entity"] == "group" and row["at_ms"] <= at_ms]
    return str(changes[-1]["to_state"]) if changes else ""


def _is_over(material: Material, row: Row, at_ms: int) -> bool:
    """Whether the member came, or the rebalance was over, between its health row and the instant."""
    return any(
        row["awaited_since_at_ms"] < change["at_ms"] <= at_ms
        and change["at_ms"] > row["at_ms"]
        and (change["entity"] == "group" or change["member_id"] == row["member_id"])
        for change in material.transitions
    )


def _warnings(material: Material, at_ms: int, members: Collection[str] | None) -> list[Sentence]:
    """Predictions that were open at the instant, with what became of them if that is known."""
    found = []
    for row in material.predictions:
        over_ms = row["outcome_at_ms"]
        is_open = row["predicted_at_ms"] <= at_ms
        is_open = is_open and (row["outcome"] == "open" or (over_ms is not None and over_ms > at_ms))
        if not is_open or (members is not None and row["member_id"] not in members):
            continue
        who = material.who(row["member_id"], row["client_id"])
        if row["deadline_at_ms"] is None:
            text = f"Warning about {who}: it misses its heartbeats, and {foretold.NO_LENGTH}, said since "
        else:
            left = _left(row["deadline_at_ms"] - at_ms)
            text = f"Warning about {who}: its {foretold.TIMEOUTS[row['kind']]} is over at "
            text += f"{words.clock(row['deadline_at_ms'], at_ms)} ({left}), said since "
        text += f"{words.clock(row['predicted_at_ms'], at_ms)}."
        if over_ms is not None:
            became = {"came_true": "It struck", "averted": "It did not strike: that was known"}
            text += f" {became.get(row['outcome'], 'How that ended was not read')} at {words.clock(over_ms, at_ms)}."
        found.append(
            Sentence(at_ms, "deadline", text, row["certainty"], (row["member_id"],), evidence.of_row("predictions"))
        )
    return found[-WARNINGS_MAX:]


def _deadlines(material: Material, at_ms: int, members: Collection[str] | None, live: bool) -> list[Sentence]:
    there = {life["member_id"] for life in members_at(material, at_ms)}
    base_ms = material.now_ms if live and material.now_ms is not None else at_ms
    rows = [
        row
        for row in material.health
        if row["member_id"] in there
        and row["status"] != "ended"
        and (members is None or row["member_id"] in members)
        and row["at_ms"] <= base_ms
    ]
    rows.sort(key=lambda row: _least(row))
    found = [_deadline(material, row, base_ms) for row in rows[:MEMBERS_MAX] if not _needs_requests(row)]
    needing = [row for row in rows if _needs_requests(row)]
    if needing:
        who = words.listing([material.who(row["member_id"], row["client_id"]) for row in needing])
        text = f"{who}: no deadline is known; that needs the request log of the broker."
        ids = tuple(row["member_id"] for row in needing)
        found.append(Sentence(base_ms, "deadline", text, "unknown", ids, evidence.of_row("health")))
    if len(rows) > MEMBERS_MAX:
        text = f"{len(rows) - MEMBERS_MAX} more members have a wider margin."
        found.append(Sentence(at_ms, "limit", text))
    blind = there - {row["member_id"] for row in rows} if members is None else there & set(members)
    if not rows and blind:
        text = "No health row is near this instant: deadlines and margins cannot be told for it."
        found.append(Sentence(at_ms, "limit", text, "unknown"))
    return found


def _deadline(material: Material, row: Row, base_ms: int) -> Sentence:
    """Both deadlines of a member. A row from before the instant gives the least that they may be (`..._is_least`)."""
    parts = []
    if shown(row["status"], row["group_state"], row.get("awaited_since_at_ms")) == UNSEEN:
        return _unseen(material, row, base_ms)
    if row["session_deadline_at_ms"] is not None and row["last_heard_at_ms"] is not None:
        timeout = f" of {words.span(row['session_timeout_ms'])}" if row["session_timeout_ms"] is not None else ""
        later = _or_later(row, "session", base_ms)
        parts.append(
            f"its session ends at {words.clock(row['session_deadline_at_ms'], base_ms)}{later} "
            f"({_left(row['session_deadline_at_ms'] - base_ms, timeout, least=bool(later))}; "
            f"last heard at {words.clock(row['last_heard_at_ms'], base_ms)}{later})"
        )
    elif _has_no_length(row):
        later = _or_later(row, "session", base_ms)
        parts.append(f"last heard at {words.clock(row['last_heard_at_ms'], base_ms)}{later}, and {foretold.NO_LENGTH}")
    if row["poll_deadline_at_ms"] is not None and row["last_poll_at_ms"] is not None:
        sign = lives.POLL_SIGNS.get(row["poll_evidence"], "nothing")
        bound_ms = row["poll_error_bound_ms"]
        bound = f", the poll at most {words.took(bound_ms)} earlier" if bound_ms else ""
        interval = f" of {words.span(row['poll_interval_ms'])}" if row["poll_interval_ms"] is not None else ""
        later = _or_later(row, "poll", base_ms)
        parts.append(
            f"its poll interval ends at {words.clock(row['poll_deadline_at_ms'], base_ms)}{later} "
            f"({_left(row['poll_deadline_at_ms'] - base_ms, interval, least=bool(later))}; "
            f"last sign of a poll: {sign} at {words.clock(row['last_poll_at_ms'], base_ms)}{later}{bound})"
        )
    if row.get("polling") == "stalled":
        parts.append("its heartbeats go on, but its application takes nothing: it does not poll")
    known = "; ".join(parts) or "no deadline is known"
    reasons = [words.quoted(reason) for reason in row["reasons"] or ()]
    status = "" if row["status"] == "ok" else f" Status {words.name(row['status'])}: {words.listing(reasons)}."
    text = f"{material.who(row['member_id'], row['client_id'])}: {known}.{status}"
    return Sentence(base_ms, "deadline", text, row["certainty"], (row["member_id"],), evidence.of_row("health"))


def _needs_requests(row: Row) -> bool:
    """Whether nothing that is read tells when it was heard."""
    return NEEDS_REQUESTS_REASON in (row["reasons"] or ())


def _has_no_length(row: Row) -> bool:
    """Whether nothing says how long the session of a member is that was heard: one of a newer protocol."""
    is_known = row["last_heard_at_ms"] is not None and row["status"] != "unknown"
    return is_known and row["session_timeout_ms"] is None and row.get("member_epoch") is not None


def _unseen(material: Material, row: Row, base_ms: int) -> Sentence:
    """Of who is silent in a rebalance nothing is over: no timeout runs in a JoinGroup that waits."""
    heard_ms = row["last_heard_at_ms"]
    since = "" if heard_ms is None else f" since {words.clock(heard_ms, base_ms)}"
    text = (
        f"{material.who(row['member_id'], row['client_id'])}: silent{since}, while the group prepares a rebalance: it "
        "waits in its JoinGroup, which is logged when it is answered, or is gone."
    )
    return Sentence(base_ms, "deadline", text, "unknown", (row["member_id"],), evidence.of_row("health"))


def limits(material: Material, asked_ms: int | None) -> list[Sentence]:
    """How far all this reaches, and what may be missing from it; `asked_ms` None: the present was asked about."""
    found = []
    at_ms, reached_ms = material.known_to(asked_ms), material.complete_to_ms
    if reached_ms is None:
        found.append("No source says how far it has been read.")
    elif asked_ms is not None and asked_ms > reached_ms:
        found.append(f"Nothing is known beyond {words.instant(reached_ms)}: this ends there.")
    elif material.stale and (asked_ms is None or asked_ms == reached_ms):
        found.append(f"The logs were read up to {words.instant(reached_ms)}.")
    if material.gaps:
        found.append(
            f"The logs of this cluster had {words.count(material.gaps, 'gap')}: silence in a gap says nothing."
        )
    if material.rejected:
        lines, it_says = words.count(material.rejected, "line"), "it says" if material.rejected == 1 else "they say"
        found.append(f"{lines} could not be read; what {it_says} is missing here. `kardia rejected` shows why.")
    if material.whole_from_ms is not None:
        found.append(
            f"What was before {words.instant(material.whole_from_ms)} is left out: it is too much. Name a narrower "
            "time to see it."
        )
    return [Sentence(at_ms, "limit", text, "exact") for text in found]


def _least(row: Row) -> tuple[int, str]:
    deadlines = [at for at in (row["session_deadline_at_ms"], row["poll_deadline_at_ms"]) if at is not None]
    return min(deadlines, default=1 << 62), row["member_id"]


def _or_later(row: Row, kind: str, base_ms: int) -> str:
    """A member in good health is written down every few seconds: it may have been heard between its row and then."""
    return " or later" if row.get(f"{kind}_is_least", row["at_ms"] != base_ms) else ""


def _left(left_ms: int, of: str = "", *, least: bool = False) -> str:
    if left_ms >= 0:
        return f"{'at least ' if least else ''}{words.took(left_ms)} left{of}"
    return "how much is left is not known" if least else f"over for {words.took(-left_ms)}"
