"""Who was refused, how often, and what became of it: a static id that a member still had (111), another epoch (110)."""

from __future__ import annotations

from collections import defaultdict

from kardia.story import evidence, words
from kardia.story.facts import Material, Row, Sentence
from kardia.tables import REFUSALS_MAX


def sentences(material: Material) -> list[Sentence]:
    """One for each member whose static id others asked for, and for each that was refused by its epoch."""
    by_member: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in material.transitions:
        if row["cause"] in _TOLD:
            by_member[row["cause"], row["member_id"]].append(row)
    return [_TOLD[cause](material, rows) for (cause, _), rows in by_member.items() if _is_refusal(material, rows)]


def _is_refusal(material: Material, rows: list[Row]) -> bool:
    """Not the word to a static member that was replaced: the sentence about its end has that."""
    life = material.life_at(rows[0]["member_id"], rows[0]["at_ms"])
    return life is None or life["end_cause"] != "static_replaced"


def _static_id_in_use(material: Material, rows: list[Row]) -> Sentence:
    """Somebody asked for the static id of a member, mostly its own next process."""
    first, last, owner_id = rows[0], rows[-1], rows[0]["member_id"]
    instants = {row["at_ms"] for row in rows}
    asked = [
        row["member_id"]
        for row in material.transitions
        if row["cause"] == "instance_id_in_use" and row["at_ms"] in instants
    ]
    life = material.life_at(owner_id, first["at_ms"])
    static = words.name((life["group_instance_id"] if life else None) or "")
    who = words.listing([words.called(one) for one in dict.fromkeys(asked)]) or "somebody"
    were = "were" if len(set(asked)) > 1 else "was"
    text = (
        f"{who} asked to join with static id {static} and {were} refused {_often(rows)} (UNRELEASED_INSTANCE_ID): "
        f"{material.who(owner_id)} still had it.{_freed(material, life, last)}"
    )
    return Sentence(first["at_ms"], "context", text, first["certainty"], (owner_id, *asked), evidence.of(first))


def _freed(material: Material, life: Row | None, last: Row) -> str:
    """When the static id was free again, and whether anybody came for it then."""
    if life is None or life["ended_at_ms"] is None:
        return ""
    freed = f" It was free from {words.clock(life['ended_at_ms'], last['at_ms'])} on"
    came = [
        other
        for other in material.lives
        if other["group_instance_id"] == life["group_instance_id"] and other["joined_at_ms"] >= life["ended_at_ms"]
    ]
    if came:
        at = words.clock(came[0]["joined_at_ms"], last["at_ms"])
        return f"{freed}; {material.who(came[0]['member_id'])} took it at {at}."
    return (
        f"{freed}, and nobody was seen to ask for it since: Java clients and librdkafka take this refusal as fatal and "
        "do not ask again by themselves; restart the process."
    )


def _fenced(material: Material, rows: list[Row]) -> Sentence:
    """A member named another epoch than the coordinator has, or came with a static id that is another's: of a classic
    group it is that."""
    first, member_id = rows[0], rows[0]["member_id"]
    text = (
        f"{material.who(member_id)} was fenced {_often(rows)}: it named another epoch than the coordinator has, or a "
        "static id that is another's. A client joins anew after that."
    )
    if {life["protocol"] for life in material.lives} == {"classic"}:
        text = (
            f"{material.who(member_id)} was refused {_often(rows)} (FENCED_INSTANCE_ID): another member has its static "
            "id. Two processes run with it, or one goes on by an id of before; clients take this refusal as fatal."
        )
    return Sentence(first["at_ms"], "context", text, first["certainty"], (member_id,), evidence.of(first))


def _often(rows: list[Row]) -> str:
    first, last = rows[0], rows[-1]
    at = words.clock(first["at_ms"], first["at_ms"])
    if len(rows) == 1:
        return f"once, at {at}"
    more = " or more" if len(rows) >= REFUSALS_MAX else ""
    return f"{len(rows)} times{more}, from {at} to {words.clock(last['at_ms'], first['at_ms'])}"


_TOLD = {"static_id_asked_for": _static_id_in_use, "fenced": _fenced}
"""Causes of transitions that are a refusal, and the sentence about all of one member."""
