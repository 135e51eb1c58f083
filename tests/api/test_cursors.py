"""Whose a cursor is: of one question, one caller, one set of tables; and that no other bytes are taken for one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.answers.roster import SORTS
from api.errors import BadCursor
from api.http.asking import CURSOR
from api.past.cursor import CURSOR_CHARS_MAX, Cursors, Place
from api.settings import ApiSettings
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.written import NOW_MS, Tables, health, member, progress, rebalance, rejected, transition

GROUP = "/api/v1/clusters/demo/groups/orders"
CLUSTER = "/api/v1/clusters/demo"
PAGED = (
    f"{CLUSTER}/groups",
    f"{CLUSTER}/rejected",
    *(f"{GROUP}/{noun}" for noun in ("members", "rebalances", "history")),
)
TOKENS = ("first-" + "a" * 40, "second-" + "b" * 40)
CURSORS = Cursors(b"key").of("somebody", "tables")
QUESTION = ["route", 1, None]


def story(tables: Tables) -> None:
    """Five of each."""
    tables.create()
    rows: list[tuple[str, tuple[Any, ...]]] = []
    for number in range(5):
        rows += [
            transition("orders", number + 1, "Stable", at_ms=NOW_MS - 10 + number),
            transition(f"group-{number}", 1, "Stable"),
            rebalance("orders", NOW_MS - 9_000 + number, generation_before=number),
            member("orders", f"m{number}"),
            health("orders", f"m{number}"),
            rejected(number * 100),
        ]
    tables.batch(0, *rows, progress(NOW_MS))


def test_a_cursor_of_another_token_is_refused_whatever_both_may_see(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    path = tmp_path / "tokens"
    path.write_text(f"{TOKENS[0]}\n{TOKENS[1]}\n")
    settings = ApiSettings(tables=tables.root, refresh_ms=20, token_file=path)
    with running(settings, Clock()) as first_url, running(settings, Clock()) as second_url:
        mine, other = (Api(first_url, headers={"Authorization": f"Bearer {token}"}) for token in TOKENS)
        replica = Api(second_url, headers={"Authorization": f"Bearer {TOKENS[0]}"})
        for api in (mine, replica):
            api.wait_for_batch(0)
        for asked in PAGED:
            cursor = mine.get(asked, limit=2)["next_cursor"]
            assert mine.get(asked, cursor=cursor) == replica.get(asked, cursor=cursor), "replicas share the key"
            assert other.problem(asked, cursor=cursor) == (400, "bad_cursor"), asked
            detail = other.client.get(asked, params={"cursor": cursor}).json()["detail"]
            assert "the same filters and token" in detail
            assert cursor not in detail
        for api in (mine, other, replica):
            api.client.close()


def test_a_cursor_over_tables_that_were_made_anew_is_refused(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    cursors = {asked: api.get(asked, limit=2)["next_cursor"] for asked in PAGED}
    shutil.rmtree(tables.root)
    story(tables)

    def is_anew() -> bool:
        reply = api.client.get(PAGED[0], params={"cursor": cursors[PAGED[0]]})
        return reply.status_code == 400 and reply.json()["code"] == "bad_cursor"

    api.wait(is_anew, "the tables made anew")
    for asked, cursor in cursors.items():
        assert api.problem(asked, cursor=cursor) == (400, "bad_cursor"), asked
        assert api.get(asked, limit=2)["next_cursor"]


def test_groups_with_the_longest_ids_are_paged(tables: Tables, serve: Serve) -> None:
    names = sorted([*("g" * 32_000 + str(number) for number in range(3)), "\x01" * 900, "\U0010ffff" * 500, "short"])
    tables.create()
    tables.batch(0, *(transition(name, 1, "Stable") for name in names), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    for sort in SORTS:
        found, cursor = [], None
        while True:
            going_on: dict[str, Any] = {"cursor": cursor} if cursor else {}
            page = api.get("/api/v1/clusters/demo/groups", limit=1, sort=sort, **going_on)
            found += [group["group_id"] for group in page["groups"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
            assert len(cursor) <= CURSOR_CHARS_MAX
        assert sorted(found) == names


def test_a_cursor_comes_back_as_it_went_out() -> None:
    place = Place(7, ("\x00é", 5, -1))
    cursor = CURSORS.write(QUESTION, place)
    assert CURSORS.read(QUESTION, cursor) == place
    assert re.fullmatch(CURSOR["schema"]["pattern"], cursor)


def test_only_the_same_key_caller_and_tables_read_a_cursor() -> None:
    cursor = CURSORS.write(QUESTION, Place(7, (1,)))
    for other in (
        Cursors(b"other").of("somebody", "tables"),
        Cursors(b"key").of("somebodytables", ""),
        Cursors(b"key").of("", "tables"),
        Cursors(b"key"),
    ):
        with pytest.raises(BadCursor):
            other.read(QUESTION, cursor)


@given(st.one_of(st.text(), st.text(st.sampled_from("ABCab01_-=."), max_size=200), st.binary().map(bytes.hex)))
def test_no_text_but_a_cursor_is_read(text: str) -> None:
    with pytest.raises(BadCursor):
        CURSORS.read(QUESTION, text)


@given(st.data())
def test_a_changed_cursor_is_refused(data: st.DataObject) -> None:
    cursor = CURSORS.write(QUESTION, Place(7, ("a", 5)))
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("ABCDEFGHabcdefgh0123456789_-.").filter(lambda one: one != cursor[at]))
    with pytest.raises(BadCursor):
        CURSORS.read(QUESTION, cursor[:at] + other + cursor[at + 1 :])
