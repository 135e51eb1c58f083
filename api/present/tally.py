"""What is counted of the members of one group, in one pass over their health rows.

Every group of a batch is counted anew, and a large fleet brings all of its groups in each: five passes, one for each
question, were half of what a batch cost. Pure; reads no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from api.present.health import HEADROOM_OF, poll_interval_ms
from kardia.statuses import NOT_KNOWN, shown

THRESHOLDS = (0.5, 0.25, 0.1)
"""Parts of a timeout below which members are counted, the largest first; a member at a tenth counts for a half, too."""

_NEVER_MS = 1 << 62
_WHOLE = 2.0
"""Above every part of a timeout."""

Kind = tuple[str, str, str]
"""Status, the status that is shown, certainty."""


class Tally(NamedTuple):
    """Counts of a group."""

    kinds: Mapping[Kind, int]
    """How many health rows of each kind."""
    first_deadline_ms: int | None
    """The session or poll deadline that comes first of those that are known."""
    least_headroom: float | None
    """The least part of a timeout that was left, ratio 0 to 1."""
    unheard_since_ms: int | None
    """The first session deadline that passed, while the group was Stable, without a line of its broker."""
    low: Counter[tuple[str, float]]
    """(kind of timeout, threshold) -> members with less than that part of it left."""

    def statuses(self) -> Counter[str]:
        """Members by status."""
        return _summed((status, count) for (status, _, _), count in self.kinds.items())

    def shown(self) -> Counter[str]:
        """Members by shown status."""
        return _summed((word, count) for (_, word, _), count in self.kinds.items())

    def certainties(self) -> Counter[str]:
        """Members by how sure it is what is said of their health."""
        return _summed((certainty, count) for (_, _, certainty), count in self.kinds.items())


def counted(rows: Iterable[Any]) -> Tally:
    """Count health rows of present members."""
    kinds: dict[Kind, int] = {}
    first_ms = unheard_ms = _NEVER_MS
    least, low = _WHOLE, Counter[tuple[str, float]]()
    for row in rows:
        status = row.status
        word = shown(status, row.group_state, row.awaited_since_at_ms)
        kind = (status, word, row.certainty)
        kinds[kind] = kinds.get(kind, 0) + 1
        if word in NOT_KNOWN:
            continue
        if status == "overdue" and row.group_state == "Stable" and row.session_deadline_at_ms is not None:
            unheard_ms = min(unheard_ms, row.session_deadline_at_ms)
        at_ms, left = row.at_ms, _WHOLE
        if (session_ms := row.session_deadline_at_ms) is not None:
            if session_ms < first_ms:
                first_ms = session_ms
            if timeout_ms := row.session_timeout_ms:
                left = (session_ms - at_ms) / timeout_ms
        if (poll_ms := row.poll_deadline_at_ms) is not None:
            if poll_ms < first_ms:
                first_ms = poll_ms
            if interval_ms := row.poll_interval_ms or poll_interval_ms(row):
                left = min(left, (poll_ms - at_ms) / interval_ms)
        if left < least:
            least = left
        if left < THRESHOLDS[0]:  # few are
            _add_low(low, row)
    return Tally(
        kinds,
        None if first_ms == _NEVER_MS else first_ms,
        None if least == _WHOLE else round(max(0.0, min(1.0, least)), 4),
        None if unheard_ms == _NEVER_MS else unheard_ms,
        low,
    )


def _add_low(low: Counter[tuple[str, float]], row: Any) -> None:
    for kind, headroom in HEADROOM_OF.items():
        left = headroom(row)
        if left is not None:
            low.update((kind, threshold) for threshold in THRESHOLDS if left < threshold)


def _summed(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in pairs:
        found[word] += count
    return found
