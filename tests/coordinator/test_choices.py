"""What Kafka leaves to hash order is asked for, and the answer is taken."""

from __future__ import annotations

from collections.abc import Sequence

from kardia.coordinator.classic.choices import FirstById
from tests.coordinator.context import OTHER, Context, S

TWO = (("range", b""), ("sticky", b""))


class LastById:
    """The other choice every time; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        self.asked.append((group_id, tuple(candidates)))
        return candidates[-1]

    protocol = leader

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:  # noqa: ARG002
        return member_ids[::-1]


def test_the_leader_after_a_removal() -> None:
    for choose, leader in ((FirstById(), "B"), (LastById(), "C")):
        group = Context("4.1.2", choose).stable("A", "B", "C")
        group.leave("A")
        assert group.view.leader == leader


def test_only_who_rejoined_can_lead_the_next_generation() -> None:
    choose = LastById()
    group = Context("4.1.2", choose).stable("A", "B", "C", rebalance=1_000)
    group.rejoin("B", rebalance=1_000, protocols=OTHER)
    group.sleep(1_000)
    assert group.view.leader == "B"
    assert choose.asked == []


def test_nothing_is_asked_when_there_is_one_answer_only() -> None:
    choose = LastById()
    group = Context("4.1.2", choose).stable("A", "B")
    group.leave("A")
    assert (group.view.leader, choose.asked) == ("B", [])


def test_a_tied_vote() -> None:
    for choose, name in ((FirstById(), "range"), (LastById(), "sticky")):
        group = Context("4.1.2", choose)
        group.join("A", version=3, protocols=TWO)
        group.join("B", version=3, protocols=TWO[::-1])
        group.at(6_000)
        assert group.view.protocol_name == name


def test_which_of_equal_deadlines_expires_first_decides_the_rebalance_timeout() -> None:
    for choose, timeout_ms in ((FirstById(), 8_000), (LastById(), 5_000)):
        group = Context("4.1.2", choose)
        group.join("A", version=3, rebalance=5_000)
        group.join("B", version=3, rebalance=8_000)
        group.join("ghost", session=100_000)
        group.at(6_000)
        group.sync("B", 1)
        group.sync("A", 1, {})
        group.sleep(S)
        # The first eviction fixes the rebalance timeout over those that are left, who expire in the same ms.
        assert (group.members, group.view.join_deadline_at_ms) == ([], group.now_ms + timeout_ms)
