"""What a broker says of groups that another one holds by then is not what happened to them."""

from __future__ import annotations

from demo.server_log import LOADED, MEMBER_FAILED, REBALANCE_STARTED, Fact
from tests.night.cluster import of_holders


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
