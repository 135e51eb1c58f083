"""A group that ends as a whole: each of its members is compared with all others, which must not cost their square.

Goal: the rows that a comparison one by one gives, for a number of looks that grows with the members. Method: groups of
several sizes form, heartbeat and fall silent, on few machines, so that there are others at each address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from bench.population import SOURCE, Population, Shape
from ingest.archives.ranges import tick
from kardia.events import lane_of
from kardia.observe import Observer, ObserverSettings
from kardia.observe.facts import last_heard
from kardia.observe.members import who_broke
from kardia.observe.state.group import Group, Member
from kardia.tables import TABLES, Row

START_MS = 1_790_000_000_000.0


def dies(members: int) -> dict[str, list[Row]]:
    """Rows of a group from its beginning to its end."""
    population = Population(1, members / 2, shape=Shape(large=members))
    lane = lane_of(population.groups[0][0][0])
    observer = Observer(ObserverSettings("test"), lane)
    rows: dict[str, list[Row]] = {}

    def take(found: dict[str, list[Row]]) -> None:
        for name, some in found.items():
            rows.setdefault(name, []).extend(some)

    for batch in population.forming(START_MS):
        take(observer.step(batch[lane]))
    at = START_MS
    for _ in range(8):
        take(observer.step(population.stretch(at, at + 500)[0][lane]))
        at += 500
    end, end_at = population.stretch(at, at + 1)[0][lane][-1].end, at + population.session_ms + 100_000
    while at < end_at:
        at += 1_000
        signs = {"last_line_at_ms": at, "first_line_at_ms": at - 900}
        take(observer.step([tick(SOURCE, end, end, at, 0, 0, {}, at, signs)]))
    return rows


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Members that were looked at, in a list of one number."""
    found = [0]
    left = last_heard._left

    def counted(group: Group) -> Iterator[last_heard.Heard]:
        for one in left(group):
            found[0] += 1
            yield one

    monkeypatch.setattr(last_heard, "_left", counted)
    return found


def test_it_costs_its_members_and_not_their_square(looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [0]
    usual_ms = who_broke._usual_ms

    def counted(member: Member) -> float:
        compared[0] += 1
        return usual_ms(member)

    monkeypatch.setattr(who_broke, "_usual_ms", counted)
    cost = []
    for members in (400, 800):
        looks[0] = compared[0] = 0
        ended = [row for row in dies(members)["members"] if row[TABLES["members"].names.index("ended_at_ms")]]
        assert len(ended) == members
        cost.append((looks[0], compared[0]))
    for small, large in zip(*cost, strict=True):
        assert 0 < large <= 2.5 * small <= 150 * 400


def test_the_rows_are_those_of_one_by_one(looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    together = dies(600)
    looks[0] = 0
    monkeypatch.setattr(who_broke, "end_together", lambda *_: nullcontext())
    assert dies(600) == together
    assert looks[0] > 600 * 250, "that was one by one"
