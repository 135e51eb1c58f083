"""What waits for a target: order, bounds, what is dropped; and the file that keeps it over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.notify.conditions import Finding
from api.notify.lifecycle import Alert, Notice
from api.notify.outbox import Outbox
from api.notify.state import Memory, StateError, StateFile
from api.notify.targets import Links, to_alertmanager, to_webhook


def notice(what: str, group: str, at_ms: int = 0) -> Notice:
    finding = Finding("KafkaGroupEvictions", "demo", group, "", "text")
    return Notice(f"{what}-{group}-{at_ms}", what, finding, 0, at_ms)


def test_of_one_alert_only_the_latest_refresh_waits() -> None:
    outbox = Outbox([], 10)
    for one in (notice("raised", "a"), notice("refreshed", "a", 1), notice("refreshed", "b", 1)):
        outbox.put(one)
    outbox.put(notice("refreshed", "a", 2))
    assert [one.id for one in outbox.notices] == ["raised-a-0", "refreshed-b-1", "refreshed-a-2"]
    outbox.done([notice("raised", "a")])
    assert [one.id for one in outbox.first(1)] == ["refreshed-b-1"]


def test_a_full_outbox_drops_refreshes_first_and_says_what() -> None:
    outbox = Outbox([], 2)
    for one in (notice("raised", "a"), notice("refreshed", "b"), notice("raised", "c"), notice("raised", "d")):
        outbox.put(one)
    assert [one.id for one in outbox.notices] == ["raised-a-0", "raised-c-0"]
    assert outbox.dropped == {"refreshed": 1, "raised": 1}
    outbox.done(outbox.first(2))
    for one in (notice("refreshed", "a", 1), notice("refreshed", "c", 1), notice("refreshed", "d", 1)):
        outbox.put(one)
    assert "refreshed-d-1" in [one.id for one in outbox.notices], "its next refresh tells what was dropped"


def test_in_a_storm_beyond_the_bound_everybody_is_told_in_the_end() -> None:
    """Ten thousand alerts, room for a thousand: each round of refreshes tells others, raises go before refreshes."""
    outbox, told, count = Outbox([], 1_000), set[str](), 10_000
    for number in range(count):
        outbox.put(notice("raised", f"g{number}"))
    rounds = 0
    while len(told) < count:
        while waiting := outbox.first(64):
            told |= {one.finding.group for one in waiting}
            outbox.done(waiting)
        rounds += 1
        for number in range(count):
            outbox.put(notice("refreshed", f"g{number}", rounds))
        outbox.put(notice("raised", f"new-{rounds}"))
        assert outbox.first(1)[0].what == "raised"
        assert len(outbox) == 1_000
    assert rounds <= count / 1_000 + 2


def test_what_waits_costs_the_same_however_much_it_is() -> None:
    """Looks at waiting notices are counted, not timed: a refresh once looked at every one that waited."""

    class Key(str):
        looks = 0
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            Key.looks += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    def looks(count: int) -> float:
        outbox, Key.looks = Outbox([], count), 0
        for round_ in range(3):
            for number in range(count):
                outbox.put(notice("refreshed", Key(f"g{number}"), round_))
            outbox.done(outbox.first(count // 2))
        return Key.looks / count

    assert looks(4_000) < 2 * looks(500) + 1


def test_an_end_overtakes_the_refreshes_of_its_alert() -> None:
    outbox = Outbox([], 10)
    for one in (notice("raised", "a"), notice("refreshed", "a", 1), notice("resolved", "a", 2)):
        outbox.put(one)
    assert [one.what for one in outbox.notices] == ["raised", "resolved"], "a refresh behind it would raise it again"


def test_the_state_survives_whole_and_belongs_to_one(tmp_path: Path) -> None:
    memory = Memory(
        alerts=[Alert(notice("raised", "a\U0001f600 \u202e").finding, 1, 2, 3, 4, 5, [3])],
        outboxes={"webhook-1": [notice("raised", "a")]},
    )
    file = StateFile(tmp_path)
    assert file.load() == Memory()
    with pytest.raises(StateError, match="in use by another notifier"):
        StateFile(tmp_path)
    file.save(memory)
    file.close()
    again = StateFile(tmp_path)
    assert again.load() == memory
    again.close()
    (tmp_path / "notify.json").write_bytes(b'{"version":1,"alerts":[')
    torn = StateFile(tmp_path)
    with pytest.raises(StateError, match="move it away"):
        torn.load()
    torn.close()


HOSTILE = 'a/../b "c" & d\n</script>\u202e{{ .x }}'


def test_names_of_strangers_stay_inside_their_strings() -> None:
    links = Links("https://kardia.example", "https://runbooks.example")
    for make in (to_alertmanager, to_webhook):
        (request,) = make([notice("raised", HOSTILE)], links)
        text = request.body.decode("utf-8")
        assert "https://runbooks.example/evictions.md" in text
        assert "group=a%2F..%2Fb%20%22c%22%20%26%20d%0A%3C%2Fscript%3E" in text
