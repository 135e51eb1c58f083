"""Books of lag of so many lanes, made into books of another number, in the plain form of their snapshots. Pure.

Commits go with their group. An end that several lanes know is taken from the one that has followed it longest. Chains
of looks stay as they are, each under a number of its own: a collector that starts again begins new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kardia.events import lane_of


class _Book(NamedTuple):
    """The parts of `LagBook.snapshot`, in its order."""

    groups: list[Any]
    ends: list[Any]
    feeds: list[Any]
    counts: list[Any]
    checks: list[Any]
    dirty: list[Any]
    by_told: list[Any]
    readers: list[Any]
    holders: list[Any]
    asked: Sequence[Any] = ()


def regrouped(before: Sequence[list[Any]], lanes: int) -> list[list[Any]]:
    """Snapshots of new books, one for each lane; those before are used up."""
    books = [_Book(*one) for one in before]
    shards = {group_id: shard for book in books for group_id, shard, _ in book.groups}
    shards |= {one[0]: one[4] for book in books for one in book.asked}
    return [_book(books, lambda group_id, lane=lane: _is_of(shards, group_id, lane, lanes)) for lane in range(lanes)]  # type: ignore[misc]


def _is_of(shards: dict[str, int], group_id: str, lane: int, lanes: int) -> bool:
    """Whether a group may be of a lane: one without a commit, of which only its members are known, may be of any."""
    return group_id not in shards or lane_of(shards[group_id], lanes) == lane


def _book(books: Sequence[_Book], is_here: Callable[[str], bool]) -> list[Any]:
    groups = [one for book in books for one in book.groups if is_here(one[0])]
    told_at = {(group_id, *one[:2]): one[4] for group_id, _, held in groups for one in held}
    by_told = [one for book in books for one in book.by_told if is_here(one[0])]
    readers: dict[tuple[str, int], list[str]] = {}
    for book in books:
        for topic, partition, names in book.readers:
            here = [name for name in names if is_here(name)]
            if here:
                readers.setdefault((topic, partition), []).extend(here)
    feeds, ends = _chains(books, readers.keys())
    return [
        groups,
        ends,
        feeds,
        [
            max((feed[1] for feed in feeds), default=0),
            min(book.counts[1] for book in books),
            max(book.counts[2] for book in books),
            max((book.counts[3] if len(book.counts) > 3 else -1) for book in books),
        ],
        [one for book in books for one in book.checks if is_here(one[1])],
        [one for book in books for one in book.dirty if is_here(one[0])],
        sorted(by_told, key=lambda one: told_at[tuple(one)]),
        [[*place, names] for place, names in readers.items()],
        [one for book in books for one in book.holders if is_here(one[0])],
        [one for book in books for one in book.asked if is_here(one[0])],
    ]


def _chains(books: Sequence[_Book], wanted: Iterable[tuple[str, int]]) -> tuple[list[Any], list[Any]]:
    """(Chains of looks of all books, ends of the partitions that are wanted)."""
    numbers: dict[tuple[int, int], int] = {}
    feeds = []
    for at, book in enumerate(books):
        for source, number, following, asked_ms in book.feeds:
            numbers[at, number] = len(numbers) + 1
            feeds.append([source, numbers[at, number], following, asked_ms])
    found: dict[tuple[str, int], list[Any]] = {}
    here = set(wanted)
    for at, book in enumerate(books):
        for topic, partition, start, epoch, feed, runs in book.ends:
            one = [topic, partition, start, epoch, numbers.get((at, feed), -1), runs]
            place = (topic, partition)
            if place in here and (place not in found or _followed(one) > _followed(found[place])):
                found[place] = one
    return feeds, list(found.values())


def _followed(one: list[Any]) -> tuple[bool, float]:
    """Whether a chain tells an end now, and for how long it was followed: since its first answer, epoch ms."""
    _, _, _, _, feed, runs = one
    return feed >= 0, -runs[1] if runs else float("-inf")
