"""Closed lists of what may differ: server.log from the requests, and an answer from the model of its release.

Columns of `kardia.tables` are named after them, and the reference pages show them.
"""

from __future__ import annotations

DISAGREEMENTS = {
    "another_instant": "server.log says that a session expired at an instant at which it cannot have, by the requests",
    "another_cause": "server.log says that the session of somebody expired who had gone otherwise, by the requests; in "
    "a group that has epochs, the session or another timer",
    "another_generation": "server.log names another generation than the requests",
    "another_coordinator": "the server.log of a broker that leads the group no longer, by the requests, says that a "
    "session expired, or in a group that has epochs another timer",
}
"""Kinds of a disagreement of a broker's server.log with its request log, and what each means. The first three are
believed: server.log is the broker's own word. The last is not: that broker woke after another one had taken over."""

SURPRISE_CLASSES = {
    "evidence_missing": "something shows that the log does not have all: a gap, a coordinator that moved, a member "
    "that nobody saw join",
    "settings_unknown": "the answer turns on a setting of the broker, and no one value of it explains all answers",
    "broker_not_as_release": "the same step was answered against the release again and again, and more often than as "
    "the release does",
    "own_mistake": "nothing shows whose mistake it is: Kardia's, until it is known better",
}
"""Classes of a surprise, an answer that is not as the model of the release predicts, and what each means."""
