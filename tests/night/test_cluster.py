"""What a broker says of groups that another one holds by then is not what happened to them."""

from __future__ import annotations

from demo.server_log import LOADED, MEMBER_FAILED, REBALANCE_STARTED, Fact
from kardia.events import shard_of
from tests.night.cluster import Election, elections, of_holders


def failed(at_ms: int, group: str = "g") -> Fact:
    """An eviction."""
    return Fact(MEMBER_FAILED, at_ms, group, f"m{at_ms}")


def loaded(at_ms: int, group: str = "g") -> Fact:
    """A broker holds a group from now on."""
    return Fact(LOADED, at_ms, group)


def test_one_broker_says_what_happens() -> None:
    facts = [failed(1), loaded(2), failed(3)]
    assert of_holders([facts]) == facts


def test_who_wakes_expires_members_of_groups_that_another_one_holds() -> None:
    """The first stands still from 10 to 30; the second loads its group at 20. `h` was the second's all the time."""
    first = [failed(5), failed(30), Fact(REBALANCE_STARTED, 31, "g", generation=4), loaded(60), failed(70)]
    second = [failed(6, "h"), loaded(20), failed(40), failed(65)]
    assert of_holders([first, second]) == [failed(5), failed(6, "h"), loaded(20), failed(40), loaded(60), failed(70)]


def test_a_group_that_nobody_loaded_is_held_by_who_tells_of_it_first() -> None:
    assert of_holders([[failed(2)], [failed(1), failed(3)]]) == [failed(1), failed(3)]


def test_who_loads_a_group_by_what_it_knew_when_it_fell_holds_nothing() -> None:
    """The second took the partition at 20; the first starts again at 30 and goes by the epoch that it had before."""
    partition = shard_of("g")
    first = [failed(5), loaded(31), failed(35), loaded(60), failed(70)]
    second = [loaded(21), failed(40)]
    elected = [[Election(1, partition, 7), Election(30, partition, 7), Election(60, partition, 9)],
               [Election(20, partition, 8)]]  # fmt: skip
    assert of_holders([first, second], elected) == [failed(5), loaded(21), failed(40), loaded(60), failed(70)]


def test_both_coordinators_say_which_epoch_they_hold() -> None:
    java, scala = (
        "INFO [GroupCoordinator id=1] Scheduling",
        "INFO [GroupCoordinator 2]: Elected as the group coordinator",
    )
    log = (
        f"[2026-11-24 12:45:23,316] {java} loading of metadata from __consumer_offsets-47 with epoch 8 (org)\n"
        f"[2026-11-24 12:45:23,317] {java} unloading of metadata for __consumer_offsets-48 with epoch OptionalInt[8]\n"
        f"[1970-01-01 00:00:01,005] {scala} for partition 3 in epoch 4 (kafka)\n"
    )
    assert elections(log) == [Election(1795524323316, 47, 8), Election(1_005, 3, 4)]
