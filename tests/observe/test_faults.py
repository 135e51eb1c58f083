"""Who broke it: what the log shows beside the silence decides, and where two explanations are left it is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import Kind
from kardia.faults import FAULT_SIGNS, FAULTS
from kardia.observe import Observer, ObserverSettings
from tests.observe.test_scenes import stable
from tests.support.restored import restored
from tests.support.scene import Known, Scene
from tests.support.stories import FIRST_LIGHT, lanes_of, live, observe, standing

OTHER = "10.0.0.1:9092-10.0.0.9:4777-9-3"


def silent(scene: Scene, *, last: float = 6_000) -> Scene:
    """b is heard until `last`, at 6 s for the last time; a goes on and is told of the rebalance that follows."""
    scene.heartbeats(4_000, last + 1, "b", every=1_000)
    at = 4_500.0
    while at < 20_000:
        scene.heartbeat(at, "a", error=0 if at < 16_000 else 27)
        at += 1_500
    return scene


def in_order(scene: Scene) -> Scene:
    """The same lines as a log has them: by their stamps, one after the other."""
    scene.events.sort(key=lambda event: (event.logged_at_ms, event.kind == Kind.TICK))
    scene.events = [event._replace(start=at * 100, end=at * 100 + 100) for at, event in enumerate(scene.events)]
    return scene


def judged(scene: Scene) -> tuple[str, str, dict[str, int]]:
    """Fault of b."""
    known = in_order(scene).known()
    ((member, found),) = known.faults().items()
    assert member == "b"
    assert found[0] in FAULTS
    assert set(found[2]) <= set(FAULT_SIGNS)
    return found


def test_nothing_of_the_client_came_any_more_while_the_broker_answered_others() -> None:
    scene = silent(stable("a", "b"))
    scene.fetch(6_100, "b")
    scene.tick(20_000)
    assert judged(scene) == (
        "client_silent",
        "inferred",
        {"heard_at_ms": 6_000, "fetched_at_ms": 6_100, "host_heard": 1, "host_silent": 0, "elsewhere_heard": 0},
    )


def test_everybody_at_an_address_fell_silent_at_once() -> None:
    scene = Scene()
    scene.hosts = {"a": "10.0.0.8"}
    members = ("a", "b", "c")
    scene.joined(3_000, 1, dict.fromkeys(members, 0.0), first=members)
    scene.synced(3_010, *members)
    silent(scene)
    scene.heartbeats(4_300, 6_400, "c", every=1_000)
    scene.tick(20_000)
    known = in_order(scene).known()
    fault, certainty, signs = known.faults()["b"]
    assert (fault, certainty) == ("host_silent", "inferred")
    assert (signs["host_silent"], signs["host_heard"], signs["elsewhere_heard"]) == (1, 0, 1)


def test_its_fetches_went_on_so_the_client_lived() -> None:
    scene = silent(stable("a", "b"))
    for at in range(6_500, 19_000, 500):
        scene.fetch(at, "b")
    scene.tick(20_000)
    fault, certainty, signs = judged(scene)
    assert (fault, certainty) == ("heartbeats_stopped", "inferred")
    assert signs["fetched_at_ms"] == 16_000, "the timer comes first on a tie of the two"


def test_it_came_back_over_another_connection_so_that_was_lost() -> None:
    scene = silent(stable("a", "b"))
    for at in range(6_500, 19_000, 500):
        scene.fetch(at, "b")
    scene.heartbeat(18_000, "b", error=25, connection=OTHER)
    scene.tick(20_000)
    fault, certainty, signs = judged(scene)
    assert (fault, certainty) == ("connection_lost", "inferred")
    assert (signs["back_at_ms"], signs["back_on_same_connection"]) == (18_000, 0)


def test_a_client_that_comes_back_on_the_same_connection_was_silent_and_lived() -> None:
    scene = silent(stable("a", "b"))
    for at in (18_000, 18_500):
        scene.heartbeat(at, "b", error=25)
    scene.tick(20_000)
    fault, _, signs = judged(scene)
    assert fault == "client_silent"
    assert (signs["back_at_ms"], signs["back_on_same_connection"]) == (18_000, 1), "the first time counts"


def test_fetches_that_may_be_another_members_prove_nothing() -> None:
    scene = stable("a", "b")
    scene.events = [event._replace(client_id="app") for event in scene.events]
    silent(scene)
    for at in range(6_500, 19_000, 500):
        scene.fetch(at, "app")
    scene.events = [event._replace(client_id="app") for event in scene.events]
    scene.tick(20_000)
    fault, _, signs = judged(scene)
    assert fault == "client_silent"
    assert signs["fetches_of_others"] == 1
    assert "fetched_at_ms" not in signs


def test_a_heartbeat_that_had_arrived_in_time_shows_that_the_broker_was_slow() -> None:
    scene = silent(stable("a", "b"))
    scene.heartbeat(17_200, "b", error=25, since=12_000)
    scene.tick(20_000)
    fault, certainty, signs = judged(scene)
    assert (fault, certainty) == ("broker_slow", "exact")
    assert (signs["arrived_at_ms"], signs["handled_at_ms"]) == (12_000, 17_200)


@pytest.mark.parametrize(
    ("taken_ms", "fault"), [(9_100.0, "broker_slow"), (5_000.0, "unknown"), (900.0, "client_silent")]
)
def test_how_long_the_broker_took_is_held_against_what_the_session_leaves_room_for(taken_ms: float, fault: str) -> None:
    """Of 10 s, 9 are left to who heartbeats every second: more than that explains it, half of it may."""
    scene = silent(stable("a", "b"))
    scene.tick(20_000, slow=[[15_000 - 1_000, taken_ms, taken_ms - 100, 60.0, 40.0]])
    found, certainty, signs = judged(scene)
    assert (found, certainty) == (fault, "unknown" if fault == "unknown" else "inferred")
    names = ("broker_ms", "broker_queue_ms", "broker_local_ms", "broker_remote_ms")
    assert [signs[name] for name in names] == [taken_ms, taken_ms - 100, 60, 40]


def test_a_broker_that_was_slow_before_or_after_says_nothing() -> None:
    scene = silent(stable("a", "b"))
    scene.tick(20_000, slow=[[4_000, 9_500, 9_500, 0, 0], [15_500, 9_500, 9_500, 0, 0]])
    fault, _, signs = judged(scene)
    assert fault == "client_silent"
    assert "broker_ms" not in signs


def test_a_quota_muted_its_connection() -> None:
    scene = silent(stable("a", "b"), last=5_000)
    scene.heartbeat(6_000, "b", throttle_ms=12_000.0)
    scene.tick(20_000)
    fault, _, signs = judged(scene)
    assert (fault, signs["throttle_ms"]) == ("broker_slow", 12_000)


def test_a_quota_that_was_over_says_nothing() -> None:
    scene = silent(stable("a", "b"), last=6_000)
    scene.heartbeat(4_600, "b", throttle_ms=12_000.0)
    scene.tick(20_000)
    fault, _, signs = judged(scene)
    assert (fault, "throttle_ms" in signs) == ("client_silent", False)


def test_a_broker_that_logged_nothing_for_most_of_the_silence_may_have_been_the_cause() -> None:
    """a is late as well: the broker stood still, or nobody reached it."""
    scene = silent(stable("a", "b"))
    scene.events = [event for event in scene.events if not 1_800_000_007_000 < event.logged_at_ms < 1_800_000_013_000]
    scene.tick(20_000, silences=[[7_000, 13_000]])
    fault, certainty, signs = judged(scene)
    assert (fault, certainty, signs["log_silent_ms"]) == ("unknown", "unknown", 6_000)


@pytest.mark.parametrize(
    ("heard", "fetched", "fault"),
    [(True, True, "coordinator_moved"), (True, False, "client_silent"), (False, False, "unknown")],
)
def test_a_coordinator_that_loaded_the_group_was_not_found(*, heard: bool, fetched: bool, fault: str) -> None:
    scene = stable("a", "b")
    scene.heartbeats(4_000, 6_001, "a", "b", every=1_000)
    scene.heartbeat(7_000, "a", error=16)
    # The other broker's log: whatever is answered there shows that it leads the group now.
    begin = len(scene.events)
    at = 8_000.0
    while at < 21_000:
        if heard or at == 8_000:
            scene.heartbeat(at, "a", error=0 if at < 18_000 else 27)
        if fetched:
            scene.fetch(at + 1, "b")
        at += 500
    end = 22_000
    if not heard:  # the one answer is also that of a coordinator that still loads: it does so within a minute
        end = 79_000
        for later in range(21_000, end, 500):
            scene.fetch(later, "somebody")
    scene.tick(end)
    moved = [event._replace(source="10.0.0.2:9092/request/two") for event in scene.events[begin:]]
    scene.events[begin:] = moved
    scene.events.append(moved[-1]._replace(source=scene.source))
    known = scene.known()
    found = known.faults()
    if not heard:
        assert found["b"][0] == fault
        return
    assert found["b"][0] == fault
    assert found["b"][2]["loaded_at_ms"] == found["b"][2]["heard_at_ms"]


def test_a_poll_timeout_is_the_applications() -> None:
    scene = stable("a", "b")
    scene.fetch(5_000, "b")
    scene.heartbeats(4_000, 66_000, "a", "b")
    scene.leave(66_000, "b", reason="consumer poll timeout has expired.")
    scene.tick(68_000)
    assert judged(scene) == ("application", "exact", {"heard_at_ms": 64_000, "polled_at_ms": 5_000})


def test_who_heartbeats_and_does_not_rejoin_is_stopped_by_its_application() -> None:
    scene = stable("a", "b")
    scene.heartbeats(4_000, 10_000, "a", "b")
    scene.heartbeats(13_000, 70_000, "b", error=27)
    scene.joined(70_000, 2, {"a": 10_100.0, "c": 10_000.0})
    scene.synced(70_010, "a", "c")
    scene.tick(72_000)
    fault, certainty, signs = judged(scene)
    assert (fault, certainty, signs["heard_at_ms"]) == ("application", "inferred", 67_000)


def test_nobody_is_blamed_for_who_left_by_itself() -> None:
    scene = stable("a", "b")
    scene.heartbeats(4_000, 9_000, "a", "b")
    scene.leave(9_000, "b", reason="the consumer is being closed")
    scene.tick(12_000)
    known = scene.known()
    assert known.ended()["b"][1] == "left"
    assert known.faults() == {}


def test_signs_survive_a_restart_of_the_observer() -> None:
    """What the broker and the connection showed before a snapshot counts after it."""
    scene = silent(stable("a", "b"))
    scene.tick(16_000, slow=[[12_000, 9_500, 9_400, 60, 40]])
    scene.heartbeat(18_000, "b", error=25, connection=OTHER)
    scene.tick(20_000)
    whole = in_order(scene).known().faults()
    for cut in range(0, len(scene.events), 7):
        first = Observer(ObserverSettings("test"))
        rows = first.step(scene.events[:cut])
        second = restored(first)
        for part in (second.step(scene.events[cut:]), second.finish()):
            for table, more in part.items():
                rows[table] = [*rows[table], *more]
        assert Known(rows, second).faults() == whole, cut
    assert whole["b"][0] == "broker_slow"
    assert whole["b"][2]["back_on_same_connection"] == 0


# --- recorded stories ------------------------------------------------------------------------------------------------

RECORDED = {
    ("c01_kill-3.9.2", "c01-b"): "client_silent",
    ("c01_kill-4.1.2", "c01-c"): "client_silent",
    ("c02_sigstop-3.9.2", "c02-b"): "client_silent",
    ("c04_mpi-3.9.2", "c04-a"): "application",
    ("c04_mpi-4.1.2", "c04-b"): "application",
    ("c04_mpi-4.1.2", "c04-s"): "application",
    ("c06_static-3.9.2", "c06-b"): "client_silent",
    ("c13_commit-3.9.2", "c13-b"): "client_silent",
    ("c18_libs-4.1.2", "c18-kp"): "unknown",
    ("z01_timezone-4.1.2", "z01-b"): "client_silent",
}
"""Who was killed, stopped or stalled by the driver. At the end of c18 everything is stopped, and the log is silent."""


@pytest.mark.parametrize(("story", "client"), sorted(RECORDED))
def test_what_was_done_to_real_clients_is_what_broke_it(story: str, client: str) -> None:
    rows = standing("members", observe(lanes_of(story))["members"])
    found = {row["fault"] for row in rows if row["client_id"] == client and row["fault"] is not None}
    assert found == {RECORDED[story, client]}


def test_a_process_that_was_stopped_and_went_on_came_back() -> None:
    """SIGSTOP, then SIGCONT: the process answers to its old id again, which no killed one does."""
    rows = standing("members", observe(lanes_of("c02_sigstop-3.9.2"))["members"])
    (stopped,) = [row for row in rows if row["client_id"] == "c02-b" and row["fault"] is not None]
    assert any(sign.startswith("back_at_ms=") for sign in stopped["fault_signs"])
    killed = standing("members", observe(lanes_of("c01_kill-3.9.2"))["members"])
    assert not any(sign.startswith("back_") for row in killed for sign in row["fault_signs"] or ())


@pytest.mark.parametrize("story", FIRST_LIGHT)
def test_read_live_or_at_once_the_same_is_to_blame(story: str) -> None:
    """The ticks of `live` know of no silence of the log, which leaves two explanations where it is long."""

    def told(rows: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
        return {(row["member_id"], row["ended_at_ms"]): row["fault"] for row in rows if row["fault"] is not None}

    at_once = told(standing("members", observe(lanes_of(story))["members"]))
    for life, fault in told(standing("members", live(story)["members"])).items():
        assert at_once[life] in (fault, "unknown")
