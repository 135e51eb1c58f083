"""Applications that histories of streams groups run: what they read, keep and pass on; some that no broker takes."""

from __future__ import annotations

from kardia.coordinator.streams.operations import InternalTopic, Subtopology, Topology

_CHANGES, _COUNTS = InternalTopic("app-changes"), InternalTopic("app-counts")
_PASSED, _PASSED_BY_THREE = InternalTopic("app-passed"), InternalTopic("app-passed", 3)

STATELESS = Topology(0, (Subtopology("0", ("orders",)),))
STATEFUL = Topology(0, (Subtopology("0", ("orders",), changelogs=(_CHANGES,)),))
PASSES_ON = Topology(
    0,
    (
        Subtopology("0", ("orders",), sinks=("app-passed",)),
        Subtopology("1", repartitions=(_PASSED,), changelogs=(_COUNTS,)),
    ),
)
PASSES_THREE = Topology(
    0,
    (
        Subtopology("0", ("orders",), sinks=("app-passed",), changelogs=(_CHANGES,)),
        Subtopology("1", repartitions=(_PASSED_BY_THREE,), changelogs=(_COUNTS,)),
    ),
)
JOINS = Topology(
    0,
    (
        Subtopology("0", ("orders",), sinks=("app-passed",)),
        Subtopology(
            "1",
            ("refunds",),
            repartitions=(_PASSED,),
            changelogs=(_COUNTS,),
            copartitioned=(("refunds", "app-passed"),),
        ),
    ),
)
JOINS_SOURCES = Topology(
    0,
    (Subtopology("0", ("orders", "refunds"), changelogs=(_CHANGES,), copartitioned=(("orders", "refunds"),)),),
)
READS_TWO = Topology(
    0, (Subtopology("0", ("orders", "refunds"), changelogs=(_CHANGES,)), Subtopology("1", ("parcels",)))
)
NOWHERE = Topology(0, (Subtopology("0", ("nowhere",), changelogs=(_CHANGES,)),))

APPLICATIONS = (
    STATELESS,
    STATEFUL,
    STATEFUL,
    STATEFUL,
    PASSES_ON,
    PASSES_ON,
    PASSES_THREE,
    JOINS,
    JOINS_SOURCES,
    READS_TWO,
    READS_TWO,
    NOWHERE,
)
"""An application of a history; what comes more often is drawn more often."""

REFUSED = (
    # A changelog with partitions of its own; a repartition topic that nobody writes to; two that wait for each other;
    # a part that reads nothing; a regular expression; one that is not a set.
    Topology(0, (Subtopology("0", ("orders",), changelogs=(InternalTopic("app-changes", 4),)),)),
    Topology(0, (Subtopology("0", ("orders",)), Subtopology("1", repartitions=(_PASSED,)))),
    Topology(
        0,
        (
            Subtopology("0", sinks=("app-passed",), repartitions=(_CHANGES,)),
            Subtopology("1", sinks=("app-changes",), repartitions=(_PASSED,)),
        ),
    ),
    Topology(0, (Subtopology("0", ("orders",)), Subtopology("1", changelogs=(_COUNTS,)))),
    Topology(0, (Subtopology("0", ("orders",), patterns=("ord.*",)),)),
)


def next_epoch(topology: Topology) -> Topology:
    """The same application, deployed anew."""
    return topology._replace(epoch=topology.epoch + 1)
