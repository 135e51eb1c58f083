"""A rolling restart as one sentence: who went, who came, how many rebalances it took and what they cost.

Which rebalances are its steps says `kardia.rollouts`. A story of the whole group tells it in place of its steps; a
story of one member tells them.
"""

from __future__ import annotations

from kardia.rollouts import Life, RollOut, Step, rollouts
from kardia.story import evidence, words
from kardia.story.facts import Material, Row, Sentence


def found(material: Material) -> list[RollOut]:
    """The roll-outs of a group, in their order."""
    known_ms = material.known_to(None)
    steps = [
        Step(row["started_at_ms"], _over_ms(row, known_ms), row["trigger"], row["trigger_member_id"])
        for row in material.rebalances
    ]
    lives = [
        Life(row["member_id"], row["joined_at_ms"], row["ended_at_ms"], row["end_cause"], row["protocol"])
        for row in material.lives
    ]
    return rollouts(steps, lives)


def sentence(material: Material, one: RollOut) -> Sentence:
    """The whole of it, at its beginning."""
    rows = [row for row in material.rebalances if is_step(one, row)]
    lasted = words.took(one.to_ms - one.from_ms)
    longest_ms = max(step.completed_at_ms - step.started_at_ms for step in one.steps)
    lost_s = sum(row["member_seconds_lost"] for row in rows if row["member_seconds_lost"] is not None)
    cost = f" Members had no partitions for {words.took(lost_s * 1_000)} in sum." if lost_s else ""
    text = (
        f"A rolling restart took {lasted} and {words.count(len(one.steps), 'rebalance')}, the longest "
        f"{words.took(longest_ms)}. {words.count(len(one.gone), 'member')} left ({_names(material, one.gone)}), and "
        f"{words.count(len(one.came), 'member')} came in their place ({_names(material, one.came)}) and stayed. Nobody "
        f"was evicted.{cost} (Inferred. Ask about one of them for the steps.)"
    )
    whom = one.gone + one.came
    return Sentence(one.from_ms, "rebalance_ended", text, "inferred", whom, evidence.of_row("rebalances"))


def is_step(one: RollOut, row: Row) -> bool:
    """Whether a rebalance belongs to it."""
    return any(step.started_at_ms == row["started_at_ms"] for step in one.steps)


def is_told(one: RollOut, life: Row, at_ms: int | None) -> bool:
    """Whether the sentence tells of the beginning or the end of a membership that was at an instant."""
    names = one.gone if life["ended_at_ms"] == at_ms else one.came
    return at_ms is not None and life["member_id"] in names and one.from_ms <= at_ms <= one.to_ms


def _over_ms(row: Row, known_ms: int) -> int:
    over_ms = row["completed_at_ms"]
    return int(max(known_ms, row["started_at_ms"]) if over_ms is None else over_ms)


def _names(material: Material, member_ids: tuple[str, ...]) -> str:
    return words.listing([material.who(member_id) for member_id in member_ids])
