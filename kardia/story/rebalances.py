"""What began a rebalance, whom it waited for, what it cost: one sentence at its start and one at its end."""

from __future__ import annotations

from kardia.story import evidence, links, spoken, words
from kardia.story.facts import Material, Row, Sentence

WAITED_MIN_MS = 1
"""A wait shorter than that is none: the member came in the same millisecond."""

SECOND_JOIN = "need to re-join with the given member-id"
"""Words of every Java client that joins: the second step of the hand-out of its id (KIP-394), not a reason."""

_BEGAN = {
    "member_joined": "{who} joined",
    "member_left": "{who} left",
    "poll_timeout": "{who} gave up its membership, because its application had not polled in time",
    "session_expired": "the session of {who} expired",
    "pending_expired": "{who} had been given a member id and never joined with it",
    "rebalance_timeout": "{who} had not rejoined in time and was dropped",
    "sync_timeout": "the SyncGroup of {who} did not come in time",
    "metadata_changed": "{who} rejoined with other metadata: other topics or other assignors",
    "leader_rejoined": "the leader, {who}, rejoined: it saw other partitions or topics, or was asked to",
    "static_replaced": "the static member {who} came back with another subscription",
    "removed_by_admin": "an admin removed {who}",
    "assignment_not_stored": "the assignments that the leader, {who}, had sent could not be stored in time",
    "coordinator_loaded": "another coordinator took the group over",
    "topic_metadata": "the topics changed",
    "unknown": "something that cannot be told from what was read",
}
"""Words for every trigger of `kardia.tables.TRIGGERS`; a test compares the two lists."""


def began(material: Material, row: Row, *, alone: bool = False) -> Sentence:
    """It began: by whom or what, in the client's own words, and whether it follows from one before.

    `alone`: no sentence about the trigger member stands beside it, so that this one tells who it is.
    """
    at_ms, member_id = row["started_at_ms"], row["trigger_member_id"]
    who = material.who(member_id, row["trigger_client_id"])
    if alone and member_id:
        who = f"{who} ({material.identity(member_id)})"
    trigger = _words_of(material, row).format(who=who)
    given = row["reason"] or ""
    is_told = material.end_that_began(row) is not None  # by the sentence about that end
    is_reason = given and not given.startswith(SECOND_JOIN) and not is_told
    reason = words.stopped(f" Its own words: {words.quoted(given)}") if is_reason else ""
    certainty = _certainty(material, row)
    bounds = "" if is_told else words.between(" It began", at_ms, row["at_bound_ms"], row["trigger"])
    link, linked = links.before(material, row)
    before = row["members_before"]
    many = f", {words.count(before, 'member')}" if before else ""
    if has_epochs(row):
        was = f"epoch {row['generation_before']} to {row['generation_after']}{many}"
        found = evidence.of(_at(material, at_ms)) or evidence.of_row("rebalances")
    else:
        was = f"generation {row['generation_before']}{many}"
        found = evidence.of(material.transition(at_ms, "PreparingRebalance")) or evidence.of_row("rebalances")
    doubt = _unsure(row["trigger"], certainty)
    text = f"A rebalance began ({was}): {trigger}.{reason}{bounds}{doubt}{link}"
    members = tuple(dict.fromkeys([*([member_id] if member_id else []), *linked]))
    return Sentence(at_ms, "rebalance_began", text, certainty, members, found)


def _words_of(material: Material, row: Row) -> str:
    """Words for the trigger, by what the member spoke that it names."""
    trigger, speaks = row["trigger"], spoken.of(material, row["trigger_member_id"], row["started_at_ms"])
    if trigger == "rebalance_timeout" and spoken.has_epochs(speaks):
        return f"{{who}} had not given up its {spoken.piece(speaks)}s in time and was dropped"
    return _BEGAN.get(trigger, "{who}: " + words.name(str(trigger)))


def ended(material: Material, row: Row) -> Sentence | None:
    """It was over: phases, waits, cost; None while it lasts (`present` tells of it)."""
    began_ms, joined_ms, at_ms = row["started_at_ms"], row["joined_at_ms"], row["completed_at_ms"]
    if joined_ms is None and not has_epochs(row):
        return None
    member_ids = tuple(entry["member_id"] for entry in row["stragglers"] or ())
    if at_ms is None:
        return None if has_epochs(row) else _without_assignment(material, row)
    if row["members_after"] == 0:
        unit = "epoch" if has_epochs(row) else "generation"
        text = f"The group became empty ({unit} {row['generation_after']}): no member is left."
        emptied = material.transition(at_ms, "Empty")
        sure = str((emptied or row)["certainty"])
        found = evidence.of(emptied) or evidence.of_row("rebalances")
        return Sentence(at_ms, "rebalance_ended", text, sure, member_ids, found)
    if has_epochs(row):
        text = (
            f"The rebalance was over after {words.span(at_ms - began_ms)}: "
            f"{words.count(row['members_after'] or 0, 'member')} had come to epoch {row['generation_after']}."
            f"{waited(material, row)}{_moved(row)}"
        )
        return Sentence(at_ms, "rebalance_ended", text, row["certainty"], member_ids, evidence.of_row("rebalances"))
    phases = f"join phase {words.span(joined_ms - began_ms)}, sync phase {words.span(at_ms - joined_ms)}"
    text = (
        f"The rebalance was over after {words.span(at_ms - began_ms)} ({phases}): generation {row['generation_after']}"
        f" with {words.count(row['members_after'] or 0, 'member')}{_chosen(material, row)}."
        f"{waited(material, row)}{_cost(row)}{_slow(row)}"
    )
    found = evidence.of(
        material.transition(joined_ms, "CompletingRebalance"), _after(material, "Stable", at_ms)
    ) or evidence.of_row("rebalances")
    return Sentence(at_ms, "rebalance_ended", text, "exact", member_ids, found)


def has_epochs(row: Row) -> bool:
    """Whether a rebalance is one of a group that has epochs: one of the consumer, share or streams protocol."""
    return row.get("protocol") not in (None, "classic")


def _at(material: Material, at_ms: int) -> Row | None:
    """What happened to the group at an instant."""
    return next((row for row in material.transitions if row["entity"] == "group" and row["at_ms"] == at_ms), None)


def _moved(row: Row) -> str:
    """Partitions on their way, and for how long nobody had them."""
    moved, lost_s = row["partitions_moved"], row["partition_seconds_lost"]
    if not moved:
        return ""
    lost = f"; nobody had them for {words.span(lost_s * 1_000)} in sum" if lost_s else ""
    return f" {words.count(moved, spoken.piece(row['protocol']))} came to another member{lost}."


def _slow(row: Row) -> str:
    slow_ms = row["broker_slow_ms"]
    return f" The broker took up to {words.span(slow_ms)} for a request meanwhile." if slow_ms else ""


def waited(material: Material, row: Row) -> str:
    """Whom it waited for and how long; those who never came first."""
    piece = spoken.piece(row.get("protocol"))
    entries = [entry for entry in row["stragglers"] or () if (entry["waited_ms"] or 0) >= WAITED_MIN_MS]
    unused = [_wait(material, entry, piece) for entry in entries if entry.get("pending")]
    gone = [_wait(material, entry, piece) for entry in entries if not entry["joined"] and not entry.get("pending")]
    came = [_wait(material, entry, piece) for entry in entries if entry["joined"]]
    text = f" It waited in vain for {words.listing(gone)}: dropped." if gone else ""
    if unused:
        text += f" It waited for ids that had been handed out and that nobody joined with: {words.listing(unused)}."
    return text + (f" It waited for {words.listing(came)}." if came else "")


def _cost(row: Row) -> str:
    """What it cost: the number of the ledger, which the page, the API and the metrics show as well."""
    lost_s = row["member_seconds_lost"]
    return f" Members stood still for {words.span(lost_s * 1_000)} in sum." if lost_s else ""


def _wait(material: Material, entry: Row, piece: str) -> str:
    who = words.name(entry["client_id"] or entry["member_id"]) if entry.get("pending") else None
    held = entry.get("partitions")
    back = f", to give up {words.count(held, piece)}" if held else ""
    return f"{who or material.who(entry['member_id'], entry['client_id'])} ({words.span(entry['waited_ms'])}{back})"


def _chosen(material: Material, row: Row) -> str:
    leader, assignor = row["leader_member_id"], row["protocol_name"]
    return words.clauses(
        (
            f", leader {material.who(leader)}" if leader else "",
            f"assignor {words.name(assignor)}" if assignor else "",
        )
    )


def _without_assignment(material: Material, row: Row) -> Sentence | None:
    """The join phase ended and no assignment came: the next rebalance began first. None if it is still awaited."""
    later = [other for other in material.rebalances if other["started_at_ms"] >= row["joined_at_ms"] and other != row]
    if not later:
        return None
    at_ms = row["joined_at_ms"]
    text = (
        f"Generation {row['generation_after']} began after {words.span(at_ms - row['started_at_ms'])}, but its "
        f"assignment never came: the next rebalance began at {words.clock(later[0]['started_at_ms'], at_ms)}."
        f"{waited(material, row)}"
    )
    found = evidence.of(material.transition(at_ms, "CompletingRebalance")) or evidence.of_row("rebalances")
    return Sentence(at_ms, "rebalance_ended", text, row["certainty"], (), found)


def _certainty(material: Material, row: Row) -> str:
    """A rebalance that an end began is as sure as that end: it may have been confirmed after this row was written."""
    life = material.end_that_began(row)
    return str(row["certainty"] if life is None else life["certainty"])


def _unsure(trigger: str, certainty: str) -> str:
    if certainty == "exact" or trigger == "unknown":
        return ""
    if certainty == "unknown" and trigger == "member_left":
        return ""  # that it left was said; what is not sure is why, and the sentence about its end says so
    if certainty == "provisional" and trigger == "topic_metadata":
        return " (Concluded: nobody was seen to come, go or ask for other topics.)"
    return {
        "inferred": " (Inferred: it follows from what was seen, nobody said it.)",
        "provisional": " (This may change when an answer that is still awaited completes.)",
    }.get(certainty, " (Not sure: the evidence is missing.)")


def _after(material: Material, to_state: str, at_ms: int) -> Row | None:
    """The first transition of the group into a state at or after an instant, before it goes on to another."""
    for row in material.transitions:
        if row["entity"] == "group" and row["at_ms"] >= at_ms:
            return row if row["to_state"] == to_state else None
    return None
