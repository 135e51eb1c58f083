"""One step of a member towards its target: what it keeps, gives up, gets, and waits for. Decides on values only.

Follows `CurrentAssignmentBuilder`. `owned` is what the heartbeat reports as owned: None reports nothing, and what has
to be given up counts as owned still.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.consumer.member import NOBODY, Held, Member, MemberState
from kardia.coordinator.consumer.operations import Partition


class Aim(NamedTuple):
    """Where a member is to go, and what is known on the way."""

    epoch: int
    target: frozenset[Partition]
    subscribed: Collection[str]
    """Ids of the topics it subscribes to, as far as they exist."""
    subscribes_to_nothing: bool
    """No name and no match, not even of topics that do not exist."""
    subscription_changed: bool
    owned: Collection[Partition] | None
    owners: Mapping[Partition, int]
    """Partitions that somebody holds."""


def reconcile(member: Member, aim: Aim, behaviour: ConsumerBehaviour) -> Member:
    """The member after this heartbeat."""
    forced = behaviour.assigned_must_be_subscribed and aim.subscription_changed
    if member.reached(aim.epoch):
        return _unsubscribe(member, aim, behaviour) if forced else member
    if member.state is MemberState.UNREVOKED:
        if _owns(aim, member.pending):
            return _unsubscribe(member, aim, behaviour) if forced else member
        return _next(member, aim, member.epoch + behaviour.revocation_adds_an_epoch, behaviour)
    return _next(member, aim, member.epoch, behaviour)


def _owns(aim: Aim, partitions: Held) -> bool:
    return aim.owned is None or any(one in partitions for one in aim.owned)


def _next(member: Member, aim: Aim, epoch: int, behaviour: ConsumerBehaviour) -> Member:
    target = aim.target
    if behaviour.assigned_must_be_subscribed:
        target = frozenset(one for one in target if one[0] in aim.subscribed)
    kept = {one: since for one, since in member.assigned.items() if one in target}
    revoked = {one: since for one, since in member.assigned.items() if one not in target}
    wanted = [one for one in target if one not in kept]
    # What the member itself still has to give up it may keep as well: nobody else can hold it.
    # All that a member holds whose epoch is that of nobody is free in Kafka's eyes.
    free = [one for one in wanted if aim.owners.get(one, NOBODY) == NOBODY or one in member.pending]
    if revoked and _owns(aim, revoked):
        return member.at(epoch, MemberState.UNREVOKED, kept, revoked)
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED
    return member.at(aim.epoch, state, kept | dict.fromkeys(free, aim.epoch), {})


def _unsubscribe(member: Member, aim: Aim, behaviour: ConsumerBehaviour) -> Member:
    """Take away what is assigned of topics it no longer subscribes to."""
    dropped = {one: since for one, since in member.assigned.items() if one[0] not in aim.subscribed}
    previous = member.epoch if behaviour.unsubscribing_sets_previous_epoch else member.previous_epoch
    if not dropped:
        # Without any subscription Kafka builds the member anew even if nothing is taken from it; not one that is new.
        is_new = member.epoch == 0 and member.previous_epoch < 0
        anew = aim.subscribes_to_nothing and not member.pending and not is_new
        return replace(member, previous_epoch=previous) if anew else member
    kept = {one: since for one, since in member.assigned.items() if one not in dropped}
    pending = {**member.pending, **dropped}
    member = replace(member, previous_epoch=previous)
    if pending and _owns(aim, pending):
        return replace(member, state=MemberState.UNREVOKED, assigned=kept, pending=pending)
    return replace(member, assigned=kept)
