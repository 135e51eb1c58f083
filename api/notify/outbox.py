"""What one target has not acknowledged yet, bounded. Of one alert only the latest refresh waits.

When it is full the oldest refresh is dropped, or else the oldest notice; what is dropped is counted by what it was. A
raise that was dropped is repaired by the next refresh, a resolve by the end that every message to Alertmanager carries.
"""

from __future__ import annotations

from api.notify.lifecycle import Notice


class Outbox:
    """Notices in the order in which they came to be."""

    def __init__(self, notices: list[Notice], limit: int) -> None:
        self.notices = notices
        self._limit = limit
        self.dropped: dict[str, int] = {}

    def put(self, notice: Notice) -> None:
        """Take a notice in."""
        if notice.what == "refreshed":
            same = [one for one in self.notices if one.what == "refreshed" and one.finding.key == notice.finding.key]
            for one in same:
                self.notices.remove(one)
        if len(self.notices) >= self._limit:
            victim = next((one for one in self.notices if one.what == "refreshed"), self.notices[0])
            self.notices.remove(victim)
            self.dropped[victim.what] = self.dropped.get(victim.what, 0) + 1
        self.notices.append(notice)

    def first(self, count: int) -> list[Notice]:
        """The next notices to send."""
        return self.notices[:count]

    def done(self, sent: list[Notice]) -> None:
        """Take out what has been delivered, or refused for good."""
        ids = {notice.id for notice in sent}
        self.notices = [notice for notice in self.notices if notice.id not in ids]
