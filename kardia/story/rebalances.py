"""What began a rebalance, whom it waited for, what it cost: one sentence at its start and one at its end."""

from __future__ import annotations

from kardia.story import evidence, in_doubt, lasted, links, spoken, words
from kardia.story.facts import Material, Row, Sentence
from kardia.story.lasted import has_epochs

SECOND_JOIN = ("need to re-join with the given member-id", "rebalance failed due to MemberIdRequiredException")
"""Words of every Java client that joins: the second step of the hand-out of its id (KIP-394), not a reason."""

_BEGAN = {
    "member_joined": "{who} joined",
    "member_left": "{who} left",
    "poll_timeout": "the application of {who} had not polled in time",
    "session_expired": "the session of {who} expired",
    "pending_expired": "{who} had been given a member id and never joined with it",
    "rebalance_timeout": "{who} had not rejoined in time and was dropped",
    "sync_timeout": "the SyncGroup of {who} did not come in time",
    "metadata_changed": "{who} rejoined with other metadata: other topics or other assignors",
    "leader_rejoined": "the leader, {who}, rejoined: it saw other partitions or topics, or was asked to",
    "static_replaced": "the static member {who} came back with another subscription",
    "removed_by_admin": "an admin removed {who}",
    "assignment_not_stored": "the assignments that the leader, {who}, had sent could not be stored in time",
    "over_capacity": "the group was loaded with more members than group.max.size allows, and was asked to rebalance",
    "coordinator_loaded": "another coordinator took the group over",
    "topic_metadata": "the topics changed",
    "unknown": "what began it was not read",
}
"""Words for every trigger of `kardia.tables.TRIGGERS`; a test compares the two lists."""


def why_began(trigger: str, who: str) -> str:
    """What began a rebalance, in a few words, where nothing else is known of it."""
    return _BEGAN.get(trigger, "{who}: " + words.name(trigger)).format(who=who)


def began(material: Material, row: Row, *, alone: bool = False) -> Sentence:
    """It began: by whom or what, in the client's own words, and whether it follows from one before.

    `alone`: no sentence about the trigger member stands beside it, so that this one tells who it is.
    """
    at_ms, member_id = row["started_at_ms"], row["trigger_member_id"]
    is_told = material.end_that_began(row) is not None  # by the sentence about that end
    who = (material.introduced if alone else material.who)(member_id, row["trigger_client_id"])
    trigger = _words_of(material, row).format(who=who)
    given = row["reason"]
    is_reason = given and not given.startswith(SECOND_JOIN) and not is_told
    # Without a trigger it is the coordinator's reason for it, else what the client said.
    whose = "The coordinator's words" if row["trigger"] == "unknown" else "Its own words"
    reason = words.stopped(f" {whose}: {words.quoted(given)}") if is_reason else ""
    certainty = _as_sure_as(material, row)["certainty"]
    bounds = "" if is_told else words.between(" It began", at_ms, row["at_bound_ms"], row["trigger"])
    link, linked = links.before(material, row)
    before = row["members_before"]
    many = f", {words.count(before, 'member')}" if before else ""  # not known, or a group without any
    if has_epochs(row):
        was = f"epoch {row['generation_before']} to {row['generation_after']}{many}"
        found = evidence.of(_at(material, at_ms)) or evidence.of_row("rebalances")
    else:
        was = f"generation {row['generation_before']}{many}"
        found = evidence.of(material.transition(at_ms, "PreparingRebalance")) or evidence.of_row("rebalances")
    doubt = _unsure(row["trigger"], _as_sure_as(material, row))
    text = f"A rebalance began ({was}): {trigger}.{reason}{bounds}{doubt}{link}"
    if lasted.began_unseen(row):
        text = f"A rebalance was under way ({was}); when and by what it had begun was not read.{reason}{link}"
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
    if joined_ms is None and at_ms is None:
        return None
    member_ids = tuple(entry["member_id"] for entry in row["stragglers"] or ())
    if at_ms is None:
        return None if has_epochs(row) else _without_assignment(material, row)
    if row["members_after"] == 0:
        unit = "epoch" if has_epochs(row) else "generation"
        text = f"The group became empty ({unit} {row['generation_after']}): no member is left."
        text += lasted.waited(material, row)
        emptied = material.transition(at_ms, "Empty")
        sure = str((emptied or row)["certainty"])
        found = evidence.of(emptied) or evidence.of_row("rebalances")
        return Sentence(at_ms, "rebalance_ended", text, sure, member_ids, found)
    many = row["members_after"]
    if has_epochs(row):
        came = "" if many is None else f" Epoch {row['generation_after']}: {words.count(many, 'member')}."
        text = (
            f"The rebalance took {words.took(at_ms - began_ms)}{_slowest(material, row)}.{lasted.gone(material, row)}"
            f"{came}{_moved(row)}"
        )
        return Sentence(at_ms, "rebalance_ended", text, row["certainty"], member_ids, evidence.of_row("rebalances"))
    about = words.clauses(("" if many is None else words.count(many, "member"), *_chosen(material, row)))
    text = (
        f"The rebalance {lasted.length(row)}{_slowest(material, row)}.{lasted.gone(material, row)}{lasted.cost(row)}"
        f"{_slow(row)} Generation {row['generation_after']}{f': {about}' if about else ' began'}."
    )
    completing = None if joined_ms is None else material.transition(joined_ms, "CompletingRebalance")
    found = evidence.of(completing, _after(material, "Stable", at_ms)) or evidence.of_row("rebalances")
    sure = "exact" if lasted.is_exact(row) else "inferred"
    return Sentence(at_ms, "rebalance_ended", text, sure, member_ids, found)


def _at(material: Material, at_ms: int) -> Row | None:
    """What happened to the group at an instant."""
    return next((row for row in material.transitions if row["entity"] == "group" and row["at_ms"] == at_ms), None)


def _moved(row: Row) -> str:
    """Partitions on their way, and for how long nobody had them."""
    moved, lost_s = row["partitions_moved"], row["partition_seconds_lost"]
    if not moved:
        return ""
    of_all = "it" if moved == 1 else "them"
    lost = f"; nobody had {of_all} for {words.took(lost_s * 1_000)}{' in sum' * (moved > 1)}" if lost_s else ""
    return f" {words.count(moved, spoken.piece(row['protocol']))} moved{lost}."


def _slow(row: Row) -> str:
    slow_ms = row["broker_slow_ms"]
    return f" The broker took up to {words.took(slow_ms)} for a request meanwhile." if slow_ms else ""


def _slowest(material: Material, row: Row) -> str:
    """Whom a rebalance waited for, behind how long it took."""
    slow = lasted.slow(material, row)
    return f"; {slow}" if slow else ""


def _chosen(material: Material, row: Row) -> tuple[str, str]:
    leader, assignor = row["leader_member_id"], row["protocol_name"]
    chosen = f"leader {material.who(leader)}" if leader else ""
    return chosen, f"assignor {words.name(assignor)}" if assignor else ""


def _without_assignment(material: Material, row: Row) -> Sentence | None:
    """The join phase ended, and the next rebalance began before any assignment that was read. None if it is still
    awaited."""
    later = [other for other in material.rebalances if other["started_at_ms"] >= row["joined_at_ms"] and other != row]
    at_ms, number, unread_ms = row["joined_at_ms"], row["generation_after"], lasted.over_unread_by_ms(row)
    found = evidence.of(material.transition(at_ms, "CompletingRebalance")) or evidence.of_row("rebalances")
    if unread_ms is not None:
        by = words.clock(unread_ms, at_ms)
        text = f"Generation {number} had begun by {by}: when, and what came of this rebalance, was not read."
        return Sentence(at_ms, "rebalance_ended", text, "inferred", (), found)
    if not later:
        return None
    next_ms = words.clock(later[0]["started_at_ms"], at_ms)
    took = "" if lasted.began_unseen(row) else f" after {words.took(at_ms - row['started_at_ms'])}"
    if later[0]["generation_before"] != number:
        what = f"what came of it was not read; the next rebalance that was read began at {next_ms}"
    else:
        what = f"its assignment never came: the next rebalance began at {next_ms}"
    text = f"Generation {number} began{took}, but {what}.{lasted.waited(material, row)}"
    return Sentence(at_ms, "rebalance_ended", text, row["certainty"], (), found)


def _as_sure_as(material: Material, row: Row) -> Row:
    """A rebalance that an end began is as sure as that end: it may have been confirmed after this row was written."""
    life = material.end_that_began(row)
    return row if life is None else life


def _unsure(trigger: str, row: Row) -> str:
    certainty = row["certainty"]
    if certainty == "exact" or trigger == "unknown":
        return ""
    if certainty == "unknown" and trigger == "member_left":
        return ""  # that it left was said; what is not sure is why, and the sentence about its end says so
    if certainty == "provisional" and trigger == "topic_metadata":
        return " (Concluded: nobody was seen to come, go or ask for other topics.)"
    return f" {in_doubt.told(row)}"


def _after(material: Material, to_state: str, at_ms: int) -> Row | None:
    """The first transition of the group into a state at or after an instant, before it goes on to another."""
    for row in material.transitions:
        if row["entity"] == "group" and row["at_ms"] >= at_ms:
            return row if row["to_state"] == to_state else None
    return None
