"""Which release the brokers of a log are, as far as its lines show it."""

from __future__ import annotations

from collections.abc import Iterable

from kardia.events import Event, Kind
from kardia.kafka.sessions import Coordinator, coordinator_of_connection

OF_TEXT = {"2.0": "2.0.1", "2.3": "2.3.1", "2.4": "2.4.1", "2.5": "2.5.1", "2.6": "2.7.2"}
"""What a JoinGroup in text shows, the oldest release whose lines look so -> the one that is taken."""

OF_COORDINATOR = {Coordinator.SCALA: "3.9.2", Coordinator.JAVA: "4.4.0"}
"""The newest release of each, which JSON lines do not tell from the ones before."""


def recognised(events: Iterable[Event]) -> str:
    """The release that is taken where nobody names one; empty where no line shows anything of it."""
    connection = ""
    for event in events:
        shown = str((event.detail or {}).get("release") or "") if event.kind == Kind.JOIN else ""
        if shown:
            return OF_TEXT.get(shown, OF_COORDINATOR[Coordinator.SCALA])
        connection = connection or event.connection
    coordinator = coordinator_of_connection(connection)
    return "" if coordinator is None else OF_COORDINATOR[coordinator]
