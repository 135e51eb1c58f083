"""`kardia lag` as a person calls it: numbers, bounds and reasons, the same from tables and from a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.settings import ApiSettings
from kardia.story.lagging import NO_ENDS
from tests.api.conftest import Api, running
from tests.api.written import Tables, health, lag, looked, member, progress, transition
from tests.story.conftest import Said, kardia, wall_ms
from tests.support.stories import CORPORA

STOPPED = {"verdict": "STOP", "window_produced": 40, "window_read": 0}
HELD = {"held": "member", "member_id": "m", "client_id": "app"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One group that is behind in one partition and not known in another, one that is well."""
    now = wall_ms()
    tables = Tables(tmp_path_factory.mktemp("lagging") / "tables")
    tables.create()
    tables.batch(
        0,
        *(transition(group, 1, "Stable", at_ms=now - 60_000) for group in ("orders", "well")),
        *(member(group, "m") for group in ("orders", "well")),
        *(health(group, "m", at_ms=now) for group in ("orders", "well")),
        lag("orders", 0, 1_200, at_ms=now, **STOPPED, held="nobody"),
        lag("orders", 1, None, at_ms=now, **HELD),
        lag("well", 0, 0, at_ms=now, **HELD),
        looked(now),
        progress(now),
    )
    return tables.root


@pytest.fixture(scope="module")
def url(root: Path) -> Iterator[str]:
    settings = ApiSettings(tables=root, stale_after_ms=600_000, lag_stale_after_ms=600_000)
    with running(settings, wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


def asked(root: Path, *question: str) -> Said:
    said = kardia("lag", *question, "--tables", root)
    assert said.code == 0, said.err
    return said


def test_groups_are_listed_the_worst_first_with_what_is_behind(root: Path) -> None:
    lines = asked(root).out.splitlines()
    assert lines[0].split() == ["GROUP", "STATUS", "LAG", "TIME", "LAG", "BEHIND", "PARTITIONS", "MEMBERS"]
    assert [line.split()[0] for line in lines[1:3]] == ["orders", "well"]
    assert lines[1].split()[1:3] == ["ERR", "1200"]
    assert lines[2].split()[1:3] == ["OK", "0"]
    assert "none of them has orders-0" in lines[3]


def test_a_group_is_told_by_partition_and_what_is_not_known_is_no_number(root: Path) -> None:
    lines = asked(root, "orders").out.splitlines()
    assert lines[0].startswith("Group orders is 1200 records behind")
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:4]}
    assert rows["orders-0"][:4] == ["STOP", "100", "1300", "1200"]
    assert rows["orders-1"][:4] == ["UNKNOWN", "100", "-", "-"]


@pytest.mark.parametrize("question", [(), ("orders",), ("nowhere",)], ids=("all", "one", "none"))
@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_tables_and_server_answer_alike(root: Path, url: str, question: tuple[str, ...], form: str) -> None:
    by_tables = kardia("lag", *question, "--tables", root, "-o", form)
    by_server = kardia("lag", *question, "--api", url, "-o", form)
    assert by_tables.code == by_server.code == (1 if question == ("nowhere",) else 0)
    assert bool(by_tables.out) == (by_tables.code == 0)
    if form == "json" and question == ("orders",):
        found, other = (one.json()["partitions"] for one in (by_tables, by_server))
        assert [(one["partition"], one["lag"], one["status"]) for one in found] == [
            (one["partition"], one["lag"], one["status"]) for one in other
        ]
        assert [(one["partition"], one["lag"]) for one in found] == [(0, 1_200), (1, None)]
    elif form == "table" and not question:
        assert by_tables.out.splitlines()[-2] == by_server.out.splitlines()[-2]


def test_where_no_commit_is_read_that_is_said(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "none")
    tables.create()
    tables.batch(0, looked(wall_ms()), progress(wall_ms()))
    assert asked(tables.root).out.startswith("No group has committed an offset")


def test_where_nobody_asked_for_ends_as_in_a_replay_one_sentence_says_so_and_no_number(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "replayed")
    tables.create()
    tables.batch(0, transition("g", 1, "Stable"), member("g", "m"), health("g", "m"), progress(wall_ms()))
    for question in ((), ("g",)):
        assert " ".join(asked(tables.root, *question).out.split()) == NO_ENDS


def test_of_a_request_log_alone_it_says_what_was_committed_and_by_whom(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", CORPORA / "c13_commit-3.9.2" / "kafka-request.log.gz"
    assert kardia("replay", "--tables", tables, log).code == 0
    lines = asked(tables, "g13").out.splitlines()
    assert lines[0].split() == ["PARTITION", "COMMITTED", "AT", "BY"]
    assert lines[1].split() == ["orders-0", "243", "2026-11-20T21:55:07.885Z", "c13-a"]
    assert "Lag is not known" in lines[3]
    (first, *_) = asked(tables, "g13", "--json").json()["partitions"]
    assert first["committed_by"].startswith("c13-a-")
    assert (first["lag"], first["status"], first["as_of_ms"]) == (None, "UNKNOWN", None)
