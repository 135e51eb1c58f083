"""Plays a story: brings the groups up, then does each step at its instant. Reads neither the broker's log nor Kardia's
tables.

It waits by condition for the groups to form and for nothing else; the instants within the story are part of the story.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from demo.consumer_processes import Cast
from demo.scenario import REHEARSAL, REHEARSAL_OF_EPOCHS, Cue, cues, is_played, length_s, members_of, plan_of


class Director:
    """One story of the given faults, played in rounds until `for_s` seconds have passed (0: one round); `stretch` makes
    all its times longer."""

    def __init__(self, cast: Cast, names: list[str], for_s: float = 0.0, stretch: int = 1) -> None:
        self._cast = cast
        self._names = names
        self._for_s = for_s
        self._stretch = stretch
        self._cues = cues(names, stretch)
        self.expected: set[str] = set()
        """Consumers that should be running now."""

    def rehearse(self, *, epochs: bool = False) -> None:
        """Have the broker's first group form and end, so that the story's groups are not its first; with `epochs` it
        has them for a while."""
        actors = [self._cast.start(plan) for plan in REHEARSAL]
        for actor in actors:
            actor.await_assignment()
        for plan in REHEARSAL_OF_EPOCHS[len(REHEARSAL) :] if epochs else ():
            actors.append(self._cast.start(plan))
            actors[-1].await_assignment()
        for actor in reversed(actors):
            actor.leave()

    def raise_groups(self, told: Callable[[str], None]) -> None:
        """Start the members that must be up first, the missing ones only, and wait until all have partitions."""
        plans = members_of(self._names, self._stretch)
        for plan in plans:
            if plan.client_id not in self._cast.up:
                told(f"{plan.client_id} joins group {plan.group_id}.")
                # One after the other: many processes that start at once keep the broker waiting, which then logs late.
                self._cast.start(plan).await_start()
            self.expected.add(plan.client_id)
        for plan in plans:
            self._cast.actor(plan.client_id).await_assignment()

    def play(self, told: Callable[[Cue], None], meanwhile: Callable[[], None], pause_s: float = 0.1) -> int:
        """Play all rounds; `meanwhile` is called between the steps, at least every `pause_s`. Returns the rounds."""
        began = time.monotonic()
        rounds = 0
        while rounds == 0 or time.monotonic() - began < self._for_s:
            if rounds:
                self.raise_groups(lambda _: None)
            self._round(told, meanwhile, pause_s)
            rounds += 1
        return rounds

    def _round(self, told: Callable[[Cue], None], meanwhile: Callable[[], None], pause_s: float) -> None:
        began = time.monotonic()
        waiting = list(self._cues)
        while True:
            elapsed = time.monotonic() - began
            while waiting and waiting[0].at_s <= elapsed:
                cue = waiting.pop(0)
                if is_played(cue.step, self._cast.up):
                    told(cue)
                    self._do(cue)
            if not waiting and elapsed >= length_s(self._names, self._stretch):
                return
            meanwhile()
            time.sleep(pause_s)

    def _do(self, cue: Cue) -> None:
        step = cue.step
        if step.action == "start":
            self._cast.start(plan_of(step.client_id, self._stretch, step.protocol))
            self.expected.add(step.client_id)
            return
        actor = self._cast.actor(step.client_id)
        if step.action == "stall":
            actor.tell(f"stall {step.seconds}")
        elif step.action == "commit":
            actor.tell("commit")
        elif step.action == "kill":
            self.expected.discard(step.client_id)
            actor.kill()
        elif step.action == "leave":
            self.expected.discard(step.client_id)
            actor.leave()
        else:
            raise AssertionError(f"{cue.fault}: no such action {step.action}")
