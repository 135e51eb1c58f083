"""One client that makes a group rebalance again and again, as one sentence.

It is one client if all rebalances are of the same member id, or of ids of one client.id of which each was gone before
the next one came: several processes with one client.id, as Java's default is, are several.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kardia.story import evidence, words
from kardia.story.facts import Material, Row, Sentence

LOOP_MIN = 5
"""Rebalances in a row that are a loop. A client that starts makes one or two, a topic that grows one."""

LOOP_GAP_MS = 60_000
"""From one to the next at most: what comes less often is told one by one."""

_DID = {
    "member_joined": "joined",
    "member_left": "left",
    "poll_timeout": "gave up its membership for its poll interval",
    "session_expired": "was evicted by its session",
    "rebalance_timeout": "was dropped as it had not rejoined",
    "sync_timeout": "was dropped as its SyncGroup did not come",
    "metadata_changed": "rejoined with other metadata",
    "leader_rejoined": "rejoined as the leader",
    "static_replaced": "came back under its static id",
}


class Loop(NamedTuple):
    """Rebalances that one client began, one behind the other."""

    rows: list[Row]

    @property
    def from_ms(self) -> int:
        """When the first began."""
        return int(self.rows[0]["started_at_ms"])

    @property
    def to_ms(self) -> int:
        """When the last began."""
        return int(self.rows[-1]["started_at_ms"])


def found(material: Material) -> list[Loop]:
    """The loops of a group, in their order."""
    runs: list[list[Row]] = []
    for row in material.rebalances:
        if runs and _goes_on(material, runs[-1][-1], row):
            runs[-1].append(row)
        else:
            runs.append([row])
    return [Loop(run) for run in runs if len(run) >= LOOP_MIN]


def sentence(material: Material, loop: Loop) -> Sentence:
    """Who, how often, in which time, and what it did each time."""
    rows, lasted_ms = loop.rows, loop.to_ms - loop.from_ms
    did = Counter(_DID[row["trigger"]] for row in rows).most_common()
    times = words.listing([f"it {what} {words.count(count, 'time')}" for what, count in did])
    members = tuple(dict.fromkeys(row["trigger_member_id"] for row in rows))
    called = _client(material, rows[0]) or members[0]
    text = (
        f"A loop: {words.name(called)} began {len(rows)} rebalances in {words.took(lasted_ms)}, one each "
        f"{words.took(lasted_ms / (len(rows) - 1))}: {times}. Look at the log of that client: each is its own doing."
    )
    return Sentence(loop.from_ms, "context", text, "inferred", members, evidence.of_row("rebalances"))


def _goes_on(material: Material, last: Row, row: Row) -> bool:
    """Whether a rebalance is one more of the same client."""
    before, now = last["trigger_member_id"], row["trigger_member_id"]
    known = last["trigger"] in _DID and row["trigger"] in _DID and before and now
    if not known or row["started_at_ms"] - last["started_at_ms"] > LOOP_GAP_MS:
        return False
    if before == now:
        return True
    life = material.life_at(before, row["started_at_ms"])
    gone = life is not None and life["ended_at_ms"] is not None and life["ended_at_ms"] <= row["started_at_ms"]
    return gone and _client(material, last) == _client(material, row) != ""


def _client(material: Material, row: Row) -> str:
    life = material.by_member.get(row["trigger_member_id"])
    return str(row["trigger_client_id"] or (life["client_id"] if life is not None else "") or "")
