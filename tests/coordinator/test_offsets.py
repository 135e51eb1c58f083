"""Transactions end, offsets are deleted, several groups are deleted at once: what each does to a group, and what not.

Goal: the rules of `kardia/coordinator/classic/offsets.py`, each in its own words; `tests/truth` holds them against
Kafka's classes.
"""

from __future__ import annotations

import pytest

from kardia.coordinator.classic.operations import DeleteGroups
from tests.coordinator.context import BOTH, GROUP, Context, subscription

CHECK = 600_000
"""How often a shard looks for expired offsets."""


@pytest.mark.parametrize("version", BOTH)
class TestTheEndOfATransaction:
    def test_a_commit_makes_its_offsets_count(self, version: str) -> None:
        group = Context(version)
        group.txn_commit()
        assert group.coordinator.committed_at_ms(GROUP) == {}
        group.sleep(500)
        assert group.end_transaction() == 0
        assert group.coordinator.committed_at_ms(GROUP) == {("orders", 0): 0}, "the instant is that of the request"
        assert group.move().coordinator.committed_at_ms(GROUP) == {("orders", 0): 0}

    def test_an_abort_forgets_them(self, version: str) -> None:
        group = Context(version)
        group.commit(topic="bills")
        group.txn_commit()
        group.end_transaction(commits=False)
        assert list(group.coordinator.committed_at_ms(GROUP)) == [("bills", 0)]
        group.end_transaction()
        assert list(group.move().coordinator.committed_at_ms(GROUP)) == [("bills", 0)]

    def test_of_two_offsets_the_later_one_in_the_log_counts(self, version: str) -> None:
        group = Context(version)
        group.txn_commit()
        group.sleep(100)
        group.commit()
        group.end_transaction()
        assert group.coordinator.committed(GROUP)["orders", 0].offset == 7
        assert group.move().coordinator.committed(GROUP)["orders", 0].offset == 7
        group.txn_commit()
        group.end_transaction()
        assert group.coordinator.committed(GROUP)["orders", 0].offset == 8

    def test_it_ends_what_its_producer_has_open_in_every_group_and_nothing_else(self, version: str) -> None:
        group = Context(version)
        group.txn_commit(producer=1)
        group.txn_commit(producer=1, group="other")
        group.txn_commit(producer=2, topic="bills")
        group.end_transaction(producer=1)
        assert list(group.coordinator.committed_at_ms(GROUP)) == [("orders", 0)]
        assert list(group.coordinator.committed_at_ms("other")) == [("orders", 0)]
        group.end_transaction(producer=2)
        assert list(group.coordinator.committed_at_ms(GROUP)) == [("orders", 0), ("bills", 0)]

    def test_an_empty_group_that_only_it_kept_dies_at_the_next_look(self, version: str) -> None:
        group = Context(version)
        group.txn_commit()
        group.at(3 * CHECK)
        assert group.state == "Empty"
        group.end_transaction(commits=False)
        assert group.state == "Empty"
        group.at(4 * CHECK)
        assert group.gone

    def test_it_renews_no_session(self, version: str) -> None:
        group = Context(version).stable("A")
        before = group.deadline("A")
        group.sleep(1_000)
        assert group.txn_commit("A", 1) == 0
        group.end_transaction()
        assert group.deadline("A") == before


@pytest.mark.parametrize("version", BOTH)
class TestOffsetDelete:
    def test_of_no_group_and_of_a_name_that_is_none(self, version: str) -> None:
        group = Context(version)
        assert group.delete_offsets("orders") == (69, [])
        assert group.delete_offsets("orders", group="") == (24, [])
        assert group.gone

    def test_topics_that_a_member_subscribes_to_are_refused(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3, protocols=(("range", subscription("orders")),))
        group.at(3_000)
        group.sync_all(1)
        group.commit("A", 1, topic="orders")
        group.commit("A", 1, topic="bills")
        assert group.delete_offsets("orders", "bills") == (0, [0, 86])  # sorted by name
        assert list(group.coordinator.committed_at_ms(GROUP)) == [("orders", 0)]

    def test_subscriptions_that_cannot_be_read_or_are_not_known_yet_count_as_all_topics(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3)
        assert group.state == "PreparingRebalance"
        assert group.delete_offsets("orders") == (0, [86])
        group.at(3_000)
        group.sync_all(1)
        assert group.delete_offsets("orders") == (0, [86])

    def test_a_group_of_another_protocol_is_refused_while_it_has_members(self, version: str) -> None:
        group = Context(version)
        group.join("A", version=3, protocol_type="connect")
        assert group.delete_offsets("orders") == (68, [])
        group.leave("A")
        group.at(3_000)
        assert group.state == "Empty"
        assert group.delete_offsets("orders") == (0, [0])

    def test_nothing_named_is_nothing_done(self, version: str) -> None:
        group = Context(version)
        group.txn_commit()
        group.end_transaction(commits=False)
        assert group.delete_offsets() == (0, [])
        assert group.state == "Empty"

    def test_it_renews_no_session(self, version: str) -> None:
        group = Context(version).stable("A")
        before = group.deadline("A")
        group.sleep(1_000)
        group.delete_offsets("bills")
        assert group.deadline("A") == before


@pytest.mark.parametrize("version", BOTH)
def test_each_of_several_groups_has_its_own_answer(version: str) -> None:
    group = Context(version).stable("A")
    group.commit(group="offsets only")
    request = DeleteGroups(99, ("nobody", GROUP, "offsets only"))
    answer = group.send(request).answer
    assert dict(answer.parts) == {"nobody": 69, GROUP: 68, "offsets only": 0}
    assert answer.error_code == 69
    assert group.coordinator.view("offsets only") is None
    assert group.state == "Stable"
