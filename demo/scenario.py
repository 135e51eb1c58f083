"""The story as data: groups, their members, and the faults in the order of their instants.

Nothing here runs anything, and the verdict never reads this file: what really happened is asked of the broker's log.
Timeouts are short so that everything fits into two minutes: a session of 8 s, a poll interval of 10 s (librdkafka wants
it at least as long as the session). Each fault can be played alone; its instants then move to the front.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kardia.coordinator.classic.behaviour import behaviour_of

SESSION_TIMEOUT_MS = 8_000
"""Kardia warns when half of it is gone: 4 s ahead, of which a busy two-core machine may need one or two to say so."""

POLL_INTERVAL_MS = 10_000
LONG_POLL_INTERVAL_MS = 60_000
CLASSIC, CONSUMER = "classic", "consumer"
"""`group.protocol` of a client."""

TOPIC = "orders"
PARTITIONS = 6


@dataclass(frozen=True)
class MemberPlan:
    """One consumer process. `instance_id` makes it a static member."""

    client_id: str
    group_id: str
    instance_id: str = ""
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    poll_interval_ms: int = POLL_INTERVAL_MS
    protocol: str = CLASSIC
    """`group.protocol` of the client. The consumer protocol takes its session timeout from the broker."""


@dataclass(frozen=True)
class Step:
    """At `at_s` after the start of its fault: do `action` (start, leave, kill, stall, commit) to `client_id`."""

    at_s: float
    action: str
    client_id: str
    told: str
    seconds: float = 0.0
    protocol: str = ""
    """Of a start: the client has moved to this protocol."""


@dataclass(frozen=True)
class Fault:
    """One fault with what it needs. `at_s`: when it begins in the whole story; `settled_s`: how long it takes."""

    name: str
    at_s: float
    settled_s: float
    group_id: str
    members: tuple[str, ...]
    """Members that must be in the group before it begins."""
    steps: tuple[Step, ...]
    title: str


MEMBERS: dict[str, MemberPlan] = {
    plan.client_id: plan
    for plan in (
        MemberPlan("checkout-1", "checkout"),
        MemberPlan("checkout-2", "checkout"),
        MemberPlan("checkout-3", "checkout"),
        MemberPlan("search-1", "search"),
        MemberPlan("search-2", "search"),
        MemberPlan("billing-1", "billing", poll_interval_ms=LONG_POLL_INTERVAL_MS),
        MemberPlan("billing-2", "billing", poll_interval_ms=LONG_POLL_INTERVAL_MS),
        MemberPlan("billing-3", "billing", poll_interval_ms=LONG_POLL_INTERVAL_MS),
        MemberPlan("billing-4", "billing", poll_interval_ms=LONG_POLL_INTERVAL_MS),
        MemberPlan("inventory-a", "inventory", instance_id="shelf-a"),
        MemberPlan("inventory-b", "inventory", instance_id="shelf-b"),
        MemberPlan("reports-1", "reports"),
        MemberPlan("payments-1", "payments", protocol=CONSUMER),
        MemberPlan("payments-2", "payments", protocol=CONSUMER),
        MemberPlan("parcels-1", "parcels", poll_interval_ms=LONG_POLL_INTERVAL_MS, protocol=CONSUMER),
        MemberPlan("parcels-2", "parcels", poll_interval_ms=LONG_POLL_INTERVAL_MS, protocol=CONSUMER),
        MemberPlan("shipping-1", "shipping"),
        MemberPlan("shipping-2", "shipping"),
    )
}

REHEARSAL = (MemberPlan("rehearsal-1", "rehearsal"), MemberPlan("rehearsal-2", "rehearsal"))
"""A group that forms, shrinks and ends before any story: a broker that is seconds old loads its classes with its first
group, and logs decisions up to 50 ms after making them. No operator's broker is that young."""

REHEARSAL_OF_EPOCHS = (*REHEARSAL, MemberPlan("rehearsal-3", "rehearsal", protocol=CONSUMER))
"""The same where there are groups with epochs: the last one converts the group when it comes, and when it leaves."""

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "join",
            2,
            8,
            "checkout",
            ("checkout-1", "checkout-2"),
            (Step(0, "start", "checkout-3", "checkout-3 starts and joins group checkout."),),
            "a new member joins",
        ),
        Fault(
            "poll-timeout",
            6,
            22,
            "search",
            ("search-1", "search-2"),
            (
                Step(
                    0,
                    "stall",
                    "search-2",
                    "search-2 stops polling; its heartbeats go on. It promised a poll every 10 s.",
                    seconds=15,
                ),
            ),
            "heartbeats, but never polls until its poll interval is over",
        ),
        Fault(
            "static-restart",
            10,
            8,
            "inventory",
            ("inventory-a", "inventory-b"),
            (
                Step(0, "leave", "inventory-a", "inventory-a (static id shelf-a) stops to restart."),
                Step(1.5, "start", "inventory-a", "inventory-a is back well inside its session timeout."),
            ),
            "a static member restarts inside its session timeout",
        ),
        Fault(
            "leave",
            26,
            8,
            "checkout",
            ("checkout-1", "checkout-2"),
            (Step(0, "leave", "checkout-2", "checkout-2 closes and leaves group checkout."),),
            "a member leaves gracefully",
        ),
        Fault(
            "straggler",
            34,
            24,
            "billing",
            ("billing-1", "billing-2"),
            (
                Step(
                    0,
                    "stall",
                    "billing-1",
                    "billing-1 stops polling; it promised a poll every 60 s only, so nobody may complain yet.",
                    seconds=15,
                ),
                Step(3, "start", "billing-3", "billing-3 joins group billing; the group must wait for billing-1."),
            ),
            "never polls with a long poll interval: holds up a rebalance",
        ),
        Fault(
            "kill",
            42,
            14,
            "checkout",
            ("checkout-1", "checkout-2"),
            (Step(0, "kill", "checkout-1", "checkout-1 is killed with SIGKILL; the broker is not told."),),
            "a member is killed",
        ),
        Fault(
            "static-expiry",
            48,
            18,
            "inventory",
            ("inventory-a", "inventory-b"),
            (
                Step(0, "leave", "inventory-b", "inventory-b (static id shelf-b) stops; its seat is kept for 8 s."),
                Step(11, "start", "inventory-b", "inventory-b is back, but too late."),
            ),
            "a static member restarts outside its session timeout",
        ),
        Fault(
            "commit",
            64,
            16,
            "billing",
            ("billing-1", "billing-2"),
            (
                Step(0, "stall", "billing-2", "billing-2 stops polling for a while.", seconds=7),
                Step(1.5, "start", "billing-4", "billing-4 joins; the rebalance waits for billing-2."),
                Step(4.5, "commit", "billing-2", "billing-2 commits offsets while its group rebalances."),
            ),
            "offsets are committed while the group rebalances",
        ),
        Fault(
            "empty",
            76,
            8,
            "reports",
            ("reports-1",),
            (Step(0, "leave", "reports-1", "reports-1, the only member, leaves group reports."),),
            "a group becomes empty",
        ),
        Fault(
            "migration",
            12,
            26,
            "shipping",
            ("shipping-1", "shipping-2"),
            (
                Step(0, "leave", "shipping-2", "shipping-2 stops to move to the consumer protocol."),
                Step(
                    3,
                    "start",
                    "shipping-2",
                    "shipping-2 is back and speaks the consumer protocol; shipping-1 goes on as it is.",
                    protocol=CONSUMER,
                ),
                Step(12, "leave", "shipping-1", "shipping-1 stops to move as well."),
                Step(14, "start", "shipping-1", "shipping-1 is back with the consumer protocol.", protocol=CONSUMER),
            ),
            "a group moves to the consumer protocol while it consumes",
        ),
        Fault(
            "epoch-kill",
            20,
            16,
            "payments",
            ("payments-1", "payments-2"),
            (
                Step(
                    0,
                    "kill",
                    "payments-1",
                    "payments-1, of the consumer protocol, is killed with SIGKILL; the broker is not told.",
                ),
            ),
            "a member of the consumer protocol is killed",
        ),
        Fault(
            "held-back",
            56,
            20,
            "parcels",
            ("parcels-1",),
            (
                Step(
                    0,
                    "stall",
                    "parcels-1",
                    "parcels-1, of the consumer protocol, stops polling; it promised a poll every 60 s only.",
                    seconds=11,
                ),
                Step(2, "start", "parcels-2", "parcels-2 joins group parcels, which has to wait for its partitions."),
            ),
            "holds its partitions back, so that who joined must wait for them",
        ),
    )
}
"""Name -> fault, in the order in which they are listed."""

WITH_EPOCHS = frozenset({"migration", "epoch-kill", "held-back"})
"""Faults of groups with epochs, which brokers have from 4.0 on."""


def played_on(kafka_version: str) -> list[str]:
    """Faults that a broker of this release can be shown: before 2.3 there are no static members, and before 4.0 no
    groups with epochs."""
    names = [name for name in FAULTS if name not in WITH_EPOCHS or has_epochs(kafka_version)]
    if behaviour_of(kafka_version).static_members:
        return names
    return [name for name in names if not any(MEMBERS[one].instance_id for one in FAULTS[name].members)]


def has_epochs(kafka_version: str) -> bool:
    """Whether a broker of this release has groups of the consumer protocol."""
    return int(kafka_version.split(".")[0]) >= 4


@dataclass(frozen=True)
class Cue:
    """A step with its instant in the chosen story, in seconds after the groups are up."""

    at_s: float
    fault: str
    step: Step


def plan_of(client_id: str, stretch: int = 1, protocol: str = "") -> MemberPlan:
    """The plan of a consumer, its timeouts `stretch` times as long; `protocol`: if it has moved to another one."""
    plan = MEMBERS[client_id]
    return replace(
        plan,
        protocol=protocol or plan.protocol,
        session_timeout_ms=plan.session_timeout_ms * stretch,
        poll_interval_ms=plan.poll_interval_ms * stretch,
    )


def members_of(names: list[str], stretch: int = 1) -> list[MemberPlan]:
    """Members that must be up before the story of the given faults begins, each once."""
    wanted = [client for name in names for client in FAULTS[name].members]
    return [plan_of(client, stretch) for client in dict.fromkeys(wanted)]


def cues(names: list[str], stretch: int = 1) -> list[Cue]:
    """All steps of the given faults by instant. The first fault begins at second 2, whichever it is; on a machine that
    is too slow for the story, everything takes `stretch` times as long."""
    first = min(FAULTS[name].at_s for name in names)
    told = [
        Cue((FAULTS[name].at_s - first + 2 + step.at_s) * stretch, name, replace(step, seconds=step.seconds * stretch))
        for name in names
        for step in FAULTS[name].steps
    ]
    return sorted(told, key=lambda cue: cue.at_s)


def length_s(names: list[str], stretch: int = 1) -> float:
    """Seconds after the groups are up until everything has settled."""
    first = min(FAULTS[name].at_s for name in names)
    return max(FAULTS[name].at_s - first + 2 + FAULTS[name].settled_s for name in names) * stretch


def is_played(step: Step, up: set[str]) -> bool:
    """Whether a step still makes sense: who is up cannot start, and who is not can do nothing else."""
    return (step.action == "start") != (step.client_id in up)
