"""A sentence of the coordinator as data: what it is, the words by which it is looked for, and its whole expression.

Reads no line; `server_log` does, by the tables of `server_log` and `epoch_sentences`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
"""What the id of a member of a classic group ends in; what stands before it the client chose."""
UUID_IN_BASE64 = "[-0-9A-Za-z_]{22}"
"""The whole id of one that came to a consumer group by JoinGroup, and keeps it as the group becomes a classic one."""
MEMBER = rf"(?P<member>{UUID_IN_BASE64}|.*?{UUID})"
"""A member as sentences name it, the shorter id first."""
_LONGEST_MEMBER = rf"(?P<member>.*{UUID}|{UUID_IN_BASE64})"

MAX_CHARS = (1024 * 1024, 1024 * 1024, 16_384, 2_048)
"""Characters of a message, by how many ids its pattern has, three or more the last: some ms each. A sentence with three
has some 500; one with many members has them in its reason."""


class Pattern(NamedTuple):
    """One line of the table: what it is, words that must be in the line, and the expression of the whole message."""

    what: str
    words: str
    shortest: re.Pattern[str]
    longest: re.Pattern[str]
    """One expression with the shortest and the longest ids that fit. If both say the same, no other does."""
    between: tuple[str, ...]
    """Words that stand between two free texts: as often as they are in the message, so many readings there may be."""
    max_chars: int
    """A longer message is not matched: the work grows with the power of the free texts."""


def pattern(what: str, words: str, expression: str, *between: str) -> Pattern:
    """A sentence; ids and other free texts are `.*` or `.*?` in the expression."""
    free = expression.replace(".*?", ".*")
    greedy = free.replace(MEMBER.replace(".*?", ".*"), _LONGEST_MEMBER)
    shortest, longest = (re.compile(text, re.DOTALL) for text in (free.replace(".*", ".*?"), greedy))
    ids = free.count(".*") - free.count("(?P<reason>.*)") - free.count("(?P<members>.*)")  # which go on to the end
    return Pattern(what, words, shortest, longest, between, MAX_CHARS[min(ids, len(MAX_CHARS) - 1)])


class Sentence(NamedTuple):
    """A sentence: since which release, how it was recorded, and how it is read."""

    since: str
    example: str
    """A recorded message; of one that no recording has, words of the release with ids of another message."""
    read: Pattern
