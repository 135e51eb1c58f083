"""Refusals are told, with how often; and who was fenced by another process is not one who was fenced by itself."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.story import explain, why
from tests.story.rows import T, life, material, row, transition

Rows = list[dict[str, Any]]


def texts(lives: Rows, transitions: Rows, health: Rows | None = None, *, of: Any = why) -> str:
    told = of(material(lives=lives, transitions=transitions, health=health or [])).sentences
    return "\n".join(one.text for one in told)


def refusals(*instants: int) -> Rows:
    """The old process of a pod keeps its static id, and the new one asks for it."""
    rows: Rows = []
    for number, at in enumerate(instants):
        about = {"cause": "static_id_asked_for", "from_state": "Member"}
        rows.append(transition(2 * number + 1, at, "Member", "old", **about))
        about = {"cause": "instance_id_in_use", "from_state": "Absent"}
        rows.append(transition(2 * number + 2, at, "Absent", f"new-{number}", **about))
    return rows


def pod(ended: int | None = 45_000) -> dict[str, Any]:
    return life("old", 0, ended, None if ended is None else "session_expired", group_instance_id="pod-0")


@pytest.mark.parametrize("of", [why, explain])
def test_a_pod_that_is_refused_once_and_never_asks_again(of: Any) -> None:
    text = texts([pod()], refusals(8_000), of=of)
    assert "member new-0 asked to join with static id pod-0 and was refused once, at 08:53:28.000Z" in text
    assert "It was free from 08:54:05.000Z on, and nobody was seen to ask for it since" in text


def test_a_pod_that_is_refused_again_and_again_and_comes_in_the_end() -> None:
    later = life("heir", 50_000, group_instance_id="pod-0")
    text = texts([pod(), later], refusals(8_000, 18_000, 28_000))
    assert (
        "new-0, member new-1 and member new-2 asked to join with static id pod-0 and were refused 3 times, from" in text
    )
    assert "; heir took it at 08:54:10.000Z." in text


def test_a_refusal_in_the_life_of_the_owner_says_no_end() -> None:
    text = texts([pod(None)], refusals(8_000))
    assert "old still had it." in text
    assert "free" not in text


def test_who_names_another_epoch_is_said_to_be_fenced_with_how_often() -> None:
    rows = [transition(n, n * 1_000, "Member", "a", cause="fenced", from_state="Member") for n in range(1, 5)]
    assert "a was fenced 4 times, from 08:53:21.000Z to 08:53:24.000Z" in texts(
        [life("a", 0, protocol="consumer")], rows
    )


def test_who_comes_with_a_static_id_that_another_member_of_a_classic_group_has_is_told_so() -> None:
    rows = [transition(n, n * 1_000, "Absent", "b", cause="fenced", from_state="Absent") for n in range(1, 4)]
    text = texts([life("a", 0)], rows)
    assert "b was refused 3 times, from 08:53:21.000Z to 08:53:23.000Z (FENCED_INSTANCE_ID): another member has" in text


def fenced(heard: int | None, host: str = "10.0.0.1", client: str = "app") -> tuple[Rows, Rows, Rows]:
    """Somebody takes the seat of `first`, which is fenced 9 ms later; the heir is heard last at `heard`."""
    about: dict[str, Any] = {"group_instance_id": "s", "client_id": "app"}
    first = life("first", 0, 60_000, "static_replaced", **about)
    heir = life("heir", 60_000, **(about | {"client_host": host, "client_id": client}))
    came = transition(1, 60_000, "Member", "heir", cause="static_replaced", from_state="Absent")
    refused = transition(2, 60_009, "Absent", "first", cause="fenced", from_state="Absent")
    heard_at = {"member_id": "heir", "at_ms": T + 70_000, "last_heard_at_ms": None if heard is None else T + heard}
    return [first, heir], [came, refused], [row("health", **heard_at)]


@pytest.mark.parametrize("of", [why, explain])
def test_a_client_that_is_fenced_by_its_own_join_group_is_one_process(of: Any) -> None:
    text = texts(*fenced(60_000), of=of)
    assert "was fenced at 08:54:20.009Z, by itself: the same process" in text
    assert "until its session is over at 08:54:30.000Z" in text
    assert "wo processes" not in text


@pytest.mark.parametrize(
    "told",
    [fenced(60_000, host="10.0.0.2"), fenced(60_000, client="other"), fenced(63_000), fenced(None)],
    ids=["of another host", "of another client", "heard later", "not known"],
)
def test_an_heir_that_may_be_another_process_is_one(told: tuple[Rows, Rows, Rows]) -> None:
    text = texts(*told)
    assert "another process took its static id s" in text
    assert "by itself" not in text


def test_a_load_before_an_eviction_is_told_by_why() -> None:
    loaded = transition(1, 50_000, "Stable", cause="coordinator_loaded")
    assert "A coordinator loaded the group" in texts([life("a", 0, 60_000, "session_expired")], [loaded])


def test_a_group_that_was_loaded_and_no_more_is_told_by_why() -> None:
    loaded = transition(1, 50_000, "Unknown", cause="coordinator_loaded", from_state="Unknown", generation_id=64)
    text = texts([], [loaded])
    assert "A coordinator loaded the group" in text
    assert "Nothing to explain" not in text


def test_a_leave_is_told_where_nothing_else_happened() -> None:
    assert "a left" in texts([life("a", 0, 60_000, "left")], [])


def test_all_who_were_evicted_together_are_told() -> None:
    lives = [life(name, 0, 60_000 + n, "session_expired") for n, name in enumerate("abc")]
    assert "a, b and c were evicted: their sessions of 10 s expired." in texts(lives, [])
