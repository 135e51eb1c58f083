"""What is counted of the members of one group. Each health row is looked at once, when it comes (`Told`).

Every group of a batch is counted anew, and a large fleet brings all of its groups in each, with a row of every fifth
member or so. What the others say is known from before; no question looks at their rows again. Pure; reads no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from api.present.health import headroom, poll_interval_ms
from kardia.statuses import NOT_KNOWN, shown

THRESHOLDS = (0.5, 0.25, 0.1)
"""Parts of a timeout below which members are counted, the largest first; a member at a tenth counts for a half, too."""

_NEVER_MS = 1 << 62
_WHOLE = 2.0
"""Above every part of a timeout."""

Kind = tuple[str, str, str]
"""Status, the status that is shown, certainty."""


class Told(NamedTuple):
    """What a health row says, ready to be counted."""

    kind: Kind
    first_deadline_ms: int = _NEVER_MS
    """The session or poll deadline that comes first, if it is known."""
    headroom: float = _WHOLE
    """The least part of a timeout that was left, ratio 0 to 1, if it is known."""
    unheard_since_ms: int = _NEVER_MS
    """The session deadline that passed, while the group was Stable, without a line of its broker."""
    low: tuple[tuple[str, float], ...] = ()
    """(kind of timeout, threshold) below which its headroom is."""


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


def told(row: Any) -> Told:
    """What a health row of a present member says."""
    status = row.status
    word = shown(status, row.group_state, row.awaited_since_at_ms)
    kind = (status, word, row.certainty)
    if word in NOT_KNOWN:
        return Told(kind)
    session_ms, poll_ms, at_ms = row.session_deadline_at_ms, row.poll_deadline_at_ms, row.at_ms
    session = headroom(session_ms, row.session_timeout_ms, at_ms)
    poll = headroom(poll_ms, poll_interval_ms(row), at_ms)
    left = min(_WHOLE if session is None else session, _WHOLE if poll is None else poll)
    return Told(
        kind,
        min(_NEVER_MS if session_ms is None else session_ms, _NEVER_MS if poll_ms is None else poll_ms),
        left,
        session_ms if session_ms is not None and status == "overdue" and row.group_state == "Stable" else _NEVER_MS,
        _below("session", session) + _below("poll", poll) if left < THRESHOLDS[0] else (),
    )


def _below(kind: str, ratio: float | None) -> tuple[tuple[str, float], ...]:
    return () if ratio is None else tuple((kind, threshold) for threshold in THRESHOLDS if ratio < threshold)


_NONE = Tally({}, None, None, None, Counter())


def counted(members: Collection[Told]) -> Tally:
    """Count what is told of the present members."""
    if not members:
        return _NONE
    kinds, firsts_ms, headrooms, unheards_ms, lows = zip(*members, strict=True)
    first_ms, least, unheard_ms = min(firsts_ms), min(headrooms), min(unheards_ms)
    return Tally(
        Counter(kinds),
        None if first_ms == _NEVER_MS else first_ms,
        None if least == _WHOLE else least,
        None if unheard_ms == _NEVER_MS else unheard_ms,
        Counter(one for low in lows for one in low) if any(lows) else _NONE.low,
    )


def _summed(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in pairs:
        found[word] += count
    return found
