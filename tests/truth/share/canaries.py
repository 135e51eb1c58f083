"""Models of share groups with one mistake each: what the comparison must notice, or it proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

from kardia.coordinator.operations import Load
from kardia.coordinator.share import coordinator, heartbeats, initialization
from kardia.coordinator.share.group import Member, ShareGroup
from kardia.coordinator.share.operations import ShareBeat
from kardia.coordinator.share.shard import SESSION, Shard
from kardia.coordinator.timers import Timer
from tests.truth.canaries import Patch, refused_heartbeats_renew_the_session


def _sessions_last_one_ms_longer() -> Patch:
    def wrong(self: Shard, group_id: str, member_id: str) -> None:
        session_ms = self.settings_of(group_id).group_share_session_timeout_ms
        self.timers.arm((SESSION, group_id, member_id), self.now_ms, session_ms + 1)

    return patch.object(Shard, "arm_session", wrong)


def _refused_heartbeats_renew_the_session() -> Patch:
    return refused_heartbeats_renew_the_session(coordinator.HANDLERS, ShareBeat)


def _states_are_there_at_once() -> Patch:
    right = initialization.ask_for_states

    def wrong(shard: Shard, group: ShareGroup, names: list[str]) -> None:
        right(shard, group, names)
        for key in [key for key in shard.wanted if key[1] == group.group_id]:
            shard.timers.cancel(key)
            initialization.told(shard, Timer(shard.now_ms, 0, key, 0))

    return patch.object(heartbeats, "ask_for_states", wrong)


def _states_make_no_new_epoch() -> Patch:
    return patch.object(heartbeats, "is_pending", lambda *_: False)


def _states_are_asked_for_once() -> Patch:
    right = initialization.ask_for_states

    def wrong(shard: Shard, group: ShareGroup, names: list[str]) -> None:
        if group.states is None or not group.states.initializing:
            right(shard, group, names)

    return patch.object(heartbeats, "ask_for_states", wrong)


def _the_previous_epoch_is_refused() -> Patch:
    right = heartbeats._who

    def wrong(shard: Shard, group: ShareGroup, beat: ShareBeat) -> Member:
        member = group.members.get(beat.member_id)
        if member is not None:
            group.members[beat.member_id] = replace(member, previous_epoch=-7)
        try:
            found = right(shard, group, beat)
        finally:
            if member is not None:
                group.members[beat.member_id] = member
        return found if member is None else member

    return patch.object(heartbeats, "_who", wrong)


def _a_load_keeps_sessions_running() -> Patch:
    right = coordinator.HANDLERS[Load]

    def wrong(shard: Shard, operation: Load) -> None:
        with patch.object(Shard, "arm_sessions"):
            right(shard, operation)

    return patch.dict(coordinator.HANDLERS, {Load: wrong})


EVERY: dict[str, Callable[[], Patch]] = {
    "sessions last 1 ms longer": _sessions_last_one_ms_longer,
    "refused heartbeats renew the session": _refused_heartbeats_renew_the_session,
    "states are there at once": _states_are_there_at_once,
    "states make no new epoch": _states_make_no_new_epoch,
    "states are asked for once": _states_are_asked_for_once,
    "the previous epoch is refused": _the_previous_epoch_is_refused,
    "a load starts no session": _a_load_keeps_sessions_running,
}
