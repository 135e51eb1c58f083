"""The order of the sentences: `explain`, the story of a group or of some of its members, and `why`, its last turn.

Puts the sentences of the other files together; words nothing but what was left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kardia.rollouts import RollOut
from kardia.story import (
    disagreements,
    evidence,
    foretold,
    lives,
    loops,
    present,
    rebalances,
    refused,
    rolled,
    together,
    under_way,
    words,
)
from kardia.story.facts import KINDS, Material, Row, Sentence, Story
from kardia.tables import EVICTION_CAUSES

SENTENCES_MAX = 200
"""Sentences of a story unless told otherwise; the latest are kept, and it is said how many were not."""

_NEVER_MS = 1 << 62

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}

_CHANGES = {
    "coordinator_loaded": "A coordinator loaded the group: every session timer began anew.",
    "coordinator_unloaded": "Its broker unloaded the group: it shut down, or another one leads the group's partition "
    "since. Nothing is known of it before one loads it.",
    "coordinator moved": "Another broker loaded the group's partition.",
    "log_ends": "The request log of its broker ends; from here on server.log alone tells of the group.",
    "log_over": "What is read of its broker's log ends here: what the group was then is not known before another "
    "broker shows it.",
    "not read": "What the group did since was not read.",
    "group record": "The group was there already when it was first read of; __consumer_offsets tells of it.",
    "no rebalance: answered as stable": "The rebalance that was thought to be under way was none: a member of the old "
    "generation was answered as in a stable group.",
    "generation restarted": "The group had died and began anew with its first generation.",
    "deleted": "The group was deleted, or expired.",
    "rebalanced": "It rebalanced, once or more often: its members or their partitions are others. What began it is not "
    "told by the admin API.",
    "not listed": "The admin API does not list the group any more: it was deleted, or may not be described any more.",
    "upgraded": "The group became a consumer group: the first member of the consumer protocol joined, and its classic "
    "members stayed. Its generation is its epoch now.",
    "downgraded": "The group became a classic group: the last member of the consumer protocol was gone.",
}
"""Causes of a group's transitions that no rebalance tells of."""


_LOADS = frozenset({"coordinator_loaded", "coordinator moved"})
"""Those after which whoever does not come back is evicted when its session is over."""


class NoSuchMember(LookupError):  # noqa: N818 - named for what was asked for
    """No member of the material is meant by a word."""


def matching(material: Material, text: str) -> tuple[str, ...]:
    """Member ids that a word means (`words.meant`)."""
    known = ((one, life["client_id"], life["group_instance_id"]) for one, life in material.by_member.items())
    return tuple(words.meant(text, known))


def explain(
    material: Material,
    *,
    member: str | None = None,
    from_ms: int | None = None,
    to_ms: int | None = None,
    at_ms: int | None = None,
    sentences_max: int = SENTENCES_MAX,
) -> Story:
    """What happened from `from_ms` to before `to_ms` and what was so at the end; with `at_ms` only what was so then.

    `member` is a member id, a client.id or a static id; NoSuchMember if no member of the material has it.
    """
    material = under_way.with_its_row(material)
    members = None if member is None else frozenset(_matched(material, member))
    if at_ms is not None:
        asked_ms, at_ms = at_ms, material.known_to(at_ms)
        running = [row for row in material.rebalances if _spans(row, at_ms) and row["completed_at_ms"] != at_ms]
        told = [rebalances.began(material, row, alone=True) for row in running[-1:]]
        told += present.present(material, at_ms, members, live=False)
        told += present.limits(material, asked_ms)
        return Story(material.cluster_id, material.group_id, member, at_ms, at_ms, tuple(told))
    told = [
        sentence
        for sentence in _all(material, members, from_ms)
        if (from_ms is None or sentence.at_ms >= from_ms) and (to_ms is None or sentence.at_ms < to_ms)
    ]
    if material.whole_from_ms is not None:
        told = [sentence for sentence in told if sentence.at_ms >= material.whole_from_ms]
    left_out = max(0, len(told) - sentences_max)
    told = told[left_out:]
    end_ms = material.known_to(to_ms)
    if left_out:
        text = f"{words.count(left_out, 'earlier sentence')} left out; name a narrower time, or a higher limit."
        told.insert(0, Sentence(told[0].at_ms if told else end_ms, "limit", text))
    if from_ms is not None:
        told.insert(0, present.state(material, from_ms, "context"))
    told += present.present(material, end_ms, members, live=to_ms is None and not material.stale)
    # What is known of after that has its place behind it: the state was told for as far as all is known.
    told.sort(key=lambda sentence: sentence.at_ms)
    told += present.limits(material, to_ms)
    return Story(material.cluster_id, material.group_id, member, from_ms, to_ms, tuple(told))


def why(material: Material, *, at_ms: int | None = None) -> Story:
    """The last rebalance or eviction at or before an instant: what began it, whom it waited for, how it ended.

    It closes with the state as far as all is known: a moment later another generation may have begun that is not read.
    """
    material = under_way.with_its_row(material)
    shown_at_ms, until_ms = material.known_to(at_ms), _NEVER_MS if at_ms is None else at_ms
    begun = sorted((row for row in material.rebalances if row["started_at_ms"] <= until_ms), key=_begun_at)
    gone = [life for life in material.lives if life["end_cause"] in EVICTION_CAUSES and life["ended_at_ms"] <= until_ms]
    told = _last_turn(material, begun, gone)
    told += _around(material, told, until_ms)
    told = _once(told)
    if not told:
        text = "Nothing to explain: no rebalance and no eviction is known up to this instant."
        told = [Sentence(shown_at_ms, "limit", text, "unknown")]
    if begun:
        told += [rolled.sentence(material, one) for one in rolled.found(material) if rolled.is_step(one, begun[-1])]
    told = [*_in_order(told), present.state(material, shown_at_ms)]
    told = sorted((one for one in told if one.at_ms <= until_ms), key=lambda one: one.at_ms)
    told += present.limits(material, at_ms)
    return Story(material.cluster_id, material.group_id, None, None, None if at_ms is None else at_ms + 1, tuple(told))


def _last_turn(material: Material, begun: list[Row], gone: list[Row]) -> list[Sentence]:
    """The later of the last rebalance and the last evictions; nothing if there is neither."""
    evicted = max(gone, key=_over_at, default=None)
    if begun and (
        evicted is None
        or begun[-1]["started_at_ms"] >= evicted["ended_at_ms"]
        or material.end_that_began(begun[-1]) is evicted
    ):
        since_ms = begun[-1]["started_at_ms"] - TOGETHER_MS
        return _with_all_ends(material, _chain(material, begun), [one for one in gone if _over_at(one) >= since_ms])
    if evicted is None:
        return []
    around = [row for row in begun if _spans(row, evicted["ended_at_ms"])]
    since_ms = max((row["started_at_ms"] for row in begun), default=evicted["ended_at_ms"] - TOGETHER_MS)
    all_ended = [life for life in gone if life["ended_at_ms"] >= since_ms]
    turn = _turn(material, around[-1]) if around else []
    began = material.end_that_began(around[-1]) if around else None
    return _with_all_ends(material, turn, all_ended if began is None or began in all_ended else [*all_ended, began])


def _with_all_ends(material: Material, turn: list[Sentence], gone: list[Row]) -> list[Sentence]:
    """A turn with all who were evicted in it, those of one kind in one sentence, and nobody twice."""
    ends = {((life["member_id"],), _over_at(life)) for life in gone}
    told = [one for one in turn if one.kind != "ended" or (one.member_ids, one.at_ms) not in ends]
    return [*told, *together.ended(material, gone, alone=True)[-AROUND_MAX:]]


AROUND_MS = 1_800_000
"""What stands so long before the last turn may be its cause: `group.max.session.timeout.ms` of a broker, so that
whoever did not come back after a load is evicted within it."""

TOGETHER_MS = 1_000
"""Evictions so near to each other are one event, where no rebalance is known."""

AROUND_MAX = 5
"""Sentences of a kind beside the last turn, the latest."""

_TAKEN = frozenset({"static_replaced", "fenced"})


def _around(material: Material, turn: list[Sentence], until_ms: int) -> list[Sentence]:
    """What explains the last turn though it is no part of it, and what came since: a load before it, static ids that
    were taken, refusals, a loop. Where there was no turn, the last load and the last leave."""
    since_ms = min((one.at_ms for one in turn), default=0)
    told = {one.member_ids for one in turn if one.kind == "ended"}

    def latest(found: list[Sentence]) -> list[Sentence]:
        near = [one for one in found if since_ms - AROUND_MS <= one.at_ms <= until_ms and one.member_ids not in told]
        return near[-AROUND_MAX:]

    begun = [row["started_at_ms"] for row in material.rebalances if row["started_at_ms"] < since_ms]
    loads = [row for row in _of_the_group(material) if row["cause"] in _LOADS and row["at_ms"] >= max(begun, default=0)]
    found = latest([_change_of(row) for row in loads])[-1:]
    taken = [life for life in material.lives if life["end_cause"] in _TAKEN]
    found += latest([lives.ended(material, life) for life in taken])
    found += latest(refused.sentences(material))
    found += latest([loops.sentence(material, one) for one in loops.found(material) if one.to_ms >= since_ms])
    if not turn:
        left = [life for life in material.lives if life["ended_at_ms"] is not None and life["end_cause"] not in _TAKEN]
        found += latest([lives.ended(material, life) for life in sorted(left, key=_over_at)])[-1:]
    return found


def _over_at(life: Row) -> int:
    return int(life["ended_at_ms"])


def _begun_at(row: Row) -> tuple[int, int]:
    """Two that began at one instant, as far as is known, are in the order of their generations."""
    before = row["generation_before"]
    return int(row["started_at_ms"]), -1 if before is None else int(before)


CHAIN_MAX = 3
"""Turns that are told of rebalances that follow from each other; the first of them is where the trouble began."""


def _chain(material: Material, begun: list[Row]) -> list[Sentence]:
    """The last rebalance, and those before it that it follows from."""
    chain = [begun[-1]]
    for row in reversed(begun[:-1]):
        if len(chain) < CHAIN_MAX and chain[-1]["caused_by_started_at_ms"] == row["started_at_ms"]:
            chain.append(row)
    return [sentence for row in chain for sentence in _turn(material, row)]


def _turn(material: Material, row: Row) -> list[Sentence]:
    """A rebalance with the end or the beginning of a membership that began it."""
    life = material.end_that_began(row)
    told = [] if life is None else [lives.ended(material, life, alone=True)]
    told.append(rebalances.began(material, row, alone=life is None))
    over = rebalances.ended(material, row)
    return [*told, over] if over is not None else told


def _all(material: Material, members: Collection[str] | None, from_ms: int | None) -> list[Sentence]:
    """Every sentence about the past, in order; of some members only what is about them."""

    def about(*sentences: Sentence) -> bool:
        return members is None or any(member in members for one in sentences for member in one.member_ids)

    told = foretold.sentences(material, members)
    told += [one for row in material.disagreements if about(one := disagreements.sentence(material, row))]
    whole = rolled.found(material) if members is None else []
    told += [_from(rolled.sentence(material, one), from_ms, one.to_ms) for one in whole]
    asked = [life for life in material.lives if members is None or life["member_id"] in members]
    begun = [life for life in asked if not _is_rolled(whole, life, "joined_at_ms")]
    over = [life for life in asked if life["ended_at_ms"] is not None]
    told += together.joined(material, [life for life in begun if not _is_known_by_its_end(material, life)])
    told += together.ended(material, [life for life in over if not _is_rolled(whole, life, "ended_at_ms")])
    pairs = [
        _of_rebalance(material, row, from_ms)
        for row in material.rebalances
        if not any(rolled.is_step(one, row) for one in whole)
    ]
    for pair in pairs:
        told += pair if about(*pair) else []
    told += [one for one in refused.sentences(material) if about(one)]
    told += [one for loop in loops.found(material) if about(one := loops.sentence(material, loop))]
    if members is None:
        changes = [row for row in _of_the_group(material) if row["cause"] in _CHANGES or row["cause"] == "sampled"]
        told += map(_change_of, changes)
    return _in_order(_once(told))


def _of_the_group(material: Material) -> list[Row]:
    return [row for row in material.transitions if row["entity"] == "group"]


def _change_of(row: Row) -> Sentence:
    """The sentence about a change of the group. That it was loaded or unloaded its broker says itself, also where
    nobody says how it stood."""
    certainty = row["certainty"]
    if row["cause"] in ("coordinator_loaded", "coordinator_unloaded") and row["to_state"] == "Unknown":
        certainty = "exact"
    return Sentence(row["at_ms"], "context", _change(row), certainty, (), evidence.of(row))


def _change(row: Row) -> str:
    """A change of the group, with its bounds where it was seen by two samples."""
    if row["cause"] == "sampled":
        text = f"The group is {row['to_state']}, as its coordinator answered."
        changed = words.between("It became so", row["at_ms"], row["at_bound_ms"])
    else:
        text, changed = _CHANGES[row["cause"]], ""
        if row["cause"] == "rebalanced":
            changed = words.between("That was", row["at_ms"], row["at_bound_ms"])
        elif row["cause"] == "not read" and row["at_bound_ms"]:
            until_ms = row["at_ms"] + row["at_bound_ms"]
            text = f"What the group did up to {words.clock(until_ms, row['at_ms'])} was not read."
    if row["cause"] == "coordinator_loaded" and row["to_state"] == "Unknown" and row["generation_id"] is not None:
        changed = f"It was in generation {row['generation_id']}; how it stood is not told."
    return f"{text} {changed}" if changed else text


def _is_known_by_its_end(material: Material, life: Row) -> bool:
    """Whether all that is known of a membership is its end: that it had begun before goes without saying."""
    return life["ended_at_ms"] == life["joined_at_ms"] and lives.came_by(material, life) == lives.FIRST_SEEN


def _of_rebalance(material: Material, row: Row, from_ms: int | None) -> list[Sentence]:
    """The beginning and the end of a rebalance, the first told where the story begins if it was under way then."""
    began, over = rebalances.began(material, row), rebalances.ended(material, row)
    if from_ms is not None and _spans(row, from_ms):
        began = _from(began, from_ms, from_ms)
    return [began] if over is None else [began, over]


def _from(sentence: Sentence, from_ms: int | None, to_ms: int) -> Sentence:
    """A sentence about something that lasts up to `to_ms`, told where the story begins if it began before."""
    if from_ms is None or not sentence.at_ms < from_ms <= to_ms:
        return sentence
    text = f"(It began at {words.clock(sentence.at_ms, from_ms)}.) {sentence.text}"
    return replace(sentence, at_ms=from_ms, text=text)


def _is_rolled(whole: list[RollOut], life: Row, column: str) -> bool:
    """Whether the sentence of a roll-out tells of this beginning or end of a membership."""
    return any(rolled.is_told(one, life, life[column]) for one in whole)


def _once(told: list[Sentence]) -> list[Sentence]:
    """Sentences without those that two sources, or two turns, tell in the same words."""
    return list({(one.at_ms, one.kind, one.text, one.member_ids): one for one in reversed(told)}.values())[::-1]


def _in_order(told: list[Sentence]) -> list[Sentence]:
    """By instant; at one instant ends before beginnings, because who comes back ended before, but nobody's end before
    the beginning of the same life, which is known by its end alone."""
    begun = {(one.at_ms, one.member_ids) for one in told if one.kind == "joined"}

    def place(one: Sentence) -> tuple[int, int, bool]:
        same_life = one.kind == "ended" and (one.at_ms, one.member_ids) in begun
        return one.at_ms, _RANK["joined" if same_life else one.kind], same_life

    return sorted(told, key=place)


def _spans(row: Row, at_ms: int) -> bool:
    """Whether a rebalance was under way at an instant."""
    over_ms = row["completed_at_ms"]
    return bool(row["started_at_ms"] <= at_ms and (over_ms is None or over_ms >= at_ms))


def _matched(material: Material, member: str) -> tuple[str, ...]:
    found = matching(material, member)
    if not found:
        raise NoSuchMember(member)
    return found
