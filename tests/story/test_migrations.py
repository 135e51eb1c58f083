"""A migration day in sentences: of the recorded one, and of what stands in the way of others."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.observe import Observer, ObserverSettings
from kardia.story import Material, migrations
from kardia.tables import Row
from tests.story.rows import T, life, material, rebalance, transition
from tests.support.stories import lanes_of, named, standing

END = 1 << 62


def recorded(*, offsets: bool) -> Material:
    """k11: three classic members, one after the other restarted with the consumer protocol, and back."""
    rows: dict[str, list[Row]] = {}
    for lane, events in enumerate(lanes_of("k11_migration-4.1.2", offsets=offsets)):
        observer = Observer(ObserverSettings("test", consumer_session_ms=10_000), lane)
        for part in (observer.step(events), observer.finish()):
            for table, some in part.items():
                rows.setdefault(table, []).extend(some)
    of = {
        "transitions": named("transitions", rows["transitions"]),
        "members": standing("members", rows["members"]),
        "rebalances": standing("rebalances", rows["rebalances"]),
    }
    mine = {table: tuple(row for row in some if row["group_id"] == "h11") for table, some in of.items()}
    return Material("test", "h11", mine["transitions"], mine["rebalances"], mine["members"])


@pytest.mark.parametrize("offsets", [True, False])
def test_the_recorded_day_is_told_by_records_and_without_them(offsets: bool) -> None:
    found = migrations.told(recorded(offsets=offsets), 0, END, 100)
    assert found is not None
    texts = [one["text"] for one in found["conversions"]]
    assert texts[0].startswith("The group became a consumer group: k11-a2 joined with the consumer protocol.")
    sure = [one["certainty"] for one in found["conversions"]]
    assert sure[0] == ("exact" if offsets else "inferred")
    assert [(one["classic"], one["consumer"]) for one in found["speaks"]].count((2, 1)) == 2
    assert any("k11-b, of the classic protocol, was evicted" in one["text"] for one in found["in_the_way"])
    assert any("though its client can speak" in one["text"] for one in found["in_the_way"])
    if offsets:
        assert "became a classic group again: k11-a2, the last of the consumer protocol, was gone (left)" in texts[1]


def way(*lives: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    """(text, certainty) of what was in the way."""
    found = migrations.told(material(lives=list(lives), **more), 0, END, 100)
    return [] if found is None else [(one["text"], one["certainty"]) for one in found["in_the_way"]]


NEW = life("new", 5_000, protocol="consumer", client_software_name="apache-kafka-java", client_software_version="4.1.2")


def test_who_stayed_behind_is_told_with_what_its_client_can() -> None:
    old = life("old", 0, client_software_name="apache-kafka-java", client_software_version="3.4.0")
    silent = life("silent", 0, client_software_name=None, client_software_version=None)
    found = way(old, silent, NEW)
    assert any("its client is too old for the other" in text and sure == "exact" for text, sure in found)
    assert any("is not known" in text and sure == "unknown" for text, sure in found)


def test_a_refusal_is_told_with_what_may_have_refused_it() -> None:
    row = transition(1, 5_000, "Absent", "new", from_state="Absent", cause="upgrade_refused")
    [(text, sure), _] = way(life("old", 0), transitions=[row])
    assert "group.consumer.migration.policy" in text
    assert sure == "exact"


def test_an_assignor_of_ones_own_is_named_and_kafkas_are_not() -> None:
    def of(name: str) -> bool:
        some = [rebalance(1_000, 2_000, "member_joined", "old", protocol_name=name)]
        return any(name in text for text, _ in way(life("old", 0), NEW, rebalances=some))

    assert of("com.example.Own")
    assert not of("cooperative-sticky")


def test_a_group_that_speaks_one_protocol_has_no_such_day() -> None:
    assert migrations.told(material(lives=[life("one", 0), life("two", 0)]), 0, END, 100) is None
    assert migrations.told(material(lives=[NEW]), T, T + 60_000, 100) is None
