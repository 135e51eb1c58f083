"""Two brokers' server.logs, one of which ends earlier: what it says last counts, and it holds no answer about the
groups of the other one back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.story.conftest import Said, kardia

A, B = "a-00000000-0000-4000-8000-000000000001", "b-00000000-0000-4000-8000-000000000002"
GROUP, OTHER = "group orders", "(__consumer_offsets-31)"


def line(at: str, broker: int, sentence: str) -> str:
    """A line of a server.log of that day."""
    return (
        f"[2026-10-27 {at}] INFO [GroupCoordinator {broker}]: {sentence} (kafka.coordinator.group.GroupCoordinator)\n"
    )


def prepares(at: str, broker: int, generation: int, reason: str, group: str = "orders") -> str:
    words = f"in state PreparingRebalance with old generation {generation} {OTHER} (reason: {reason})"
    return line(at, broker, f"Preparing to rebalance group {group} {words}")


def joins(at: str, broker: int, generation: int, member: str) -> str:
    return prepares(at, broker, generation, f"Adding new member {member} with group instance id None")


def stable(at: str, assigned_at: str, broker: int, generation: int, leader: str) -> str:
    counted = "The group has 1 members, 0 of which are static."
    received = f"Assignment received from leader {leader} for {GROUP} for generation {generation}. {counted}"
    return line(at, broker, f"Stabilized {GROUP} generation {generation} {OTHER} with 1 members") + line(
        assigned_at, broker, received
    )


FIRST = joins("07:00:00,000", 1, 0, A) + stable("07:00:03,000", "07:00:03,010", 1, 1, A)
TAKEN_OVER = (
    line("07:10:00,000", 2, "Loading group metadata for orders with generation 1")
    + line("07:10:10,001", 2, f"Member {A} in {GROUP} has failed, removing it from the group")
    + prepares("07:10:10,002", 2, 1, f"removing member {A} on heartbeat expiration")
    + line("07:10:10,003", 2, f"Group orders with generation 2 is now empty {OTHER}")
)
LATER_LINES = {
    "none": ("", "07:00:03.011"),
    "of another class, 50 ms later": (
        "[2026-10-27 07:00:03,060] INFO [SocketServer listenerType=BROKER, nodeId=1] Created data-plane acceptor"
        " (kafka.network.SocketServer)\n",
        "07:00:03.061",
    ),
    "of another group, 5 min later": (prepares("07:05:00,000", 1, 3, "x", "other"), "07:05:00.001"),
}
"""What the log that ends says behind the last line about the group, and since when nothing is known."""


class Replayed(NamedTuple):
    """Tables of two logs."""

    tables: Path

    def ask(self, *question: str) -> Said:
        return kardia(*question, "--tables", self.tables)

    def told(self, *question: str) -> list[str]:
        """Sentences, without their days."""
        said = self.ask(*question, "-o", "json")
        assert said.code == 0, said.err
        return [f"{one['at'][11:23]} {one['text']}" for one in said.json()["sentences"]]


def replayed(folder: Path, one: str, two: str) -> Replayed:
    """Read the logs of two brokers."""
    for name, text in (("a.log", one), ("b.log", two)):
        (folder / name).write_text(text)
    said = kardia("replay", "--tables", folder / "tables", "--server-log", folder / "a.log", folder / "b.log")
    assert said.code == 0, said.err
    return Replayed(folder / "tables")


@pytest.mark.parametrize("later", LATER_LINES)
def test_the_last_lines_of_a_log_that_ends_are_told_in_their_place(tmp_path: Path, later: str) -> None:
    more, unknown_since = LATER_LINES[later]
    told = replayed(tmp_path, FIRST + more, TAKEN_OVER).told("explain", "--group", "orders")
    instants = [one[:12] for one in told if "The logs were read" not in one]
    assert instants == sorted(instants)
    assert any(one.startswith("07:00:03.010 The rebalance took 3 s") for one in told)
    assert not any("not over yet" in one or "no longer a member" in one for one in told)
    assert any(one.startswith(f"{unknown_since} What is read of its broker's log ends here") for one in told)
    assert [one[:12] for one in told if "was evicted" in one] == ["07:10:10.001"]


@pytest.mark.parametrize("later", LATER_LINES)
def test_a_log_that_ends_locks_no_answer_about_a_group_that_another_broker_leads(tmp_path: Path, later: str) -> None:
    logs = replayed(tmp_path, FIRST + LATER_LINES[later][0], TAKEN_OVER)
    at_four = logs.told("why", "orders", "--at", "2026-10-27T07:10:04Z")
    assert at_four[-1].startswith("07:10:04.000 The group was Stable in generation 1 since 07:10:00.000Z, 1 member: a")
    between = logs.told("why", "orders", "--at", "2026-10-27T07:06:00Z")
    assert between[-1].startswith("07:06:00.000 The state of the group is not known since 07:0")
    assert (
        logs.ask("why", "orders", "--at", "2026-10-27T07:10:11Z").code != 0
    )  # its own broker's log is read no further
    [group] = [one for one in logs.ask("groups", "-o", "json").json() if one["group_id"] == "orders"]
    assert group["state"] == "Empty"
    assert logs.told("why", "orders")[-2].startswith("07:10:10.003 The group was Empty in generation 2")
    assert logs.ask("explain", "--group", "orders", "--from", "2026-10-27T07:10:01Z").code == 0


def test_a_leave_in_the_last_lines_of_a_log_is_not_lost(tmp_path: Path) -> None:
    left = f"Removing member {A} on LeaveGroup; client reason: the consumer is being closed"
    metadata = (
        f"MemberMetadata(memberId={A}, groupInstanceId=None, clientId=a, clientHost=/10.0.0.9, sessionTimeoutMs=45000, "
        "rebalanceTimeoutMs=300000, supportedProtocols=List(range))"
    )
    one = (
        FIRST
        + prepares("07:59:59,950", 1, 1, left)
        + line("07:59:59,951", 1, f"Group orders with generation 2 is now empty {OTHER}")
        + line("07:59:59,952", 1, f"Member {metadata} has left {GROUP} through explicit `LeaveGroup`")
    )
    two = (
        line("08:00:01,000", 2, "Loading group metadata for orders with generation 2")
        + joins("08:00:02,000", 2, 2, B)
        + stable("08:00:05,000", "08:00:05,010", 2, 3, B)
    )
    logs = replayed(tmp_path, one, two)
    told = logs.told("explain", "--group", "orders")
    assert any(one.startswith("07:59:59.951 The group became empty (generation 2)") for one in told)
    assert any("a left" in one for one in told)
    assert any(
        one.startswith("08:00:05.010 The group was Stable in generation 3") and "1 member: b" in one for one in told
    )
