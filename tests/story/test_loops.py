"""A client that makes its group rebalance again and again is told as one loop; several clients are none."""

from __future__ import annotations

from typing import Any

from kardia.story import explain, why
from tests.story.rows import life, material, rebalance

Rows = list[dict[str, Any]]


def loop_told(lives: Rows, rebalances: Rows) -> list[str]:
    told = [*why(material(lives=lives, rebalances=rebalances)).sentences]
    told += explain(material(lives=lives, rebalances=rebalances)).sentences
    return [one.text for one in told if one.text.startswith("A loop")]


def lives_of(ids: list[str], *, apart: bool) -> Rows:
    """Lives of one client.id, each over before the next begins, or all of them beside each other."""
    step = 200
    return [
        life(one, n * step, n * step + 150 if apart else None, "left" if apart else None, client_id="worker-1")
        for n, one in enumerate(ids)
    ]


def joins(ids: list[str]) -> Rows:
    return [
        rebalance(n * 200, n * 200 + 50, "member_joined", one, trigger_client_id="worker-1")
        for n, one in enumerate(ids)
    ]


IDS = [f"worker-1-{n}" for n in range(16)]


def test_a_worker_that_joins_and_is_gone_again_and_again() -> None:
    texts = loop_told(lives_of(IDS, apart=True), joins(IDS))
    assert len(texts) == 2, "why and explain"
    assert "A loop: worker-1 began 16 rebalances in 3 s, one each 200 ms: it joined 16 times." in texts[0]


def test_a_leader_that_rejoins_each_eight_seconds() -> None:
    rows = [rebalance(n * 8_000, n * 8_000 + 50, "leader_rejoined", "lead") for n in range(6)]
    [text, _] = loop_told([life("lead", 0)], rows)
    assert "lead began 6 rebalances in 40 s, one each 8 s: it rejoined as the leader 6 times." in text


def test_several_processes_of_one_client_id_are_no_loop() -> None:
    assert loop_told(lives_of(IDS, apart=False), joins(IDS)) == []


def test_what_comes_seldom_is_no_loop() -> None:
    rows = [rebalance(n * 90_000, n * 90_000 + 50, "leader_rejoined", "lead") for n in range(8)]
    assert loop_told([life("lead", 0)], rows) == []


def test_a_start_and_a_roll_out_are_no_loop() -> None:
    lives = [life(f"m{n}", n * 1_000) for n in range(8)]
    rows = [rebalance(n * 1_000, n * 1_000 + 50, "member_joined", f"m{n}") for n in range(8)]
    assert loop_told(lives, rows) == []
