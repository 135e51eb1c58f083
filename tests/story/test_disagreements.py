"""server.log says otherwise than the requests: what a person is told of it, at every way out.

Goal: which group, which kind, when, what each source said, and where the line stands. Method: the server.log of a
recorded story with two lines changed (an eviction four seconds later, an assignment of another generation), replayed by
the real verb; and the same story as it is, which has nothing of the kind.
"""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from api.metrics import TableMetrics
from api.settings import ApiSettings
from api.store import Store
from kardia.story import disagreements
from kardia.tables import DISAGREEMENTS
from tests.api.conftest import Api, running
from tests.story.conftest import kardia, wall_ms
from tests.support.stories import Story

STORY = Story("c01_kill-4.1.2")
OF_CLUSTER = "/api/v1/clusters/c01/disagreements"
OF_GROUP = "/api/v1/clusters/c01/groups/g01/disagreements"

FAILED = re.compile(rb"2026-11-20 21:43:29,702(?=\] INFO .* in group g01 has failed)")
ASSIGNED = re.compile(rb"(?<=for group g01 for generation )3(?=\. The group has 1 members)")

INSTANT = (
    "server.log says that the session of c01-b expired at 2026-11-20T21:43:33.702Z; by the requests it expired at "
    "21:43:29.702Z."
)
GENERATION = (
    "server.log says that the assignment of generation 4 came at 2026-11-20T21:43:41.849Z; by the requests the group "
    "was in generation 3."
)


def replayed(tables: Path, server_log: Path) -> str:
    """What the verb says."""
    request_log, offsets = STORY.folder / "kafka-request.log.gz", STORY.folder / "offsets.jsonl.gz"
    logs = ("--request-log", request_log, "--server-log", server_log, "--offsets", offsets)
    said = kardia("replay", *logs, "--tables", tables, "--cluster", "c01", "--workers", "1")
    assert said.code == 0, said.err
    return said.out + said.err


@pytest.fixture(scope="module")
def doctored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, str]:
    """Tables, the server.log that they were made of, and what the replay said."""
    folder = tmp_path_factory.mktemp("doctored")
    log = gzip.decompress((STORY.folder / "server.log.gz").read_bytes())
    log, moved = FAILED.subn(b"2026-11-20 21:43:33,702", log)
    log, renamed = ASSIGNED.subn(b"4", log)
    assert (moved, renamed) == (1, 1)
    path = folder / "server.log"
    path.write_bytes(log)
    return folder / "tables", log, replayed(folder / "tables", path)


def test_the_replay_counts_them_by_kind(doctored: tuple[Path, bytes, str]) -> None:
    said = doctored[2]
    assert re.search(r"disagreements +│ *2 │ lines of server.log that say otherwise", said), said
    for kind in ("another_instant", "another_generation"):
        assert re.search(rf"{kind} +│ *1 │", said), said


def test_the_verb_lists_group_kind_instant_both_sides_and_the_line(doctored: tuple[Path, bytes, str]) -> None:
    tables, log, _ = doctored
    lines = [line.strip() for line in kardia("disagreements", "--tables", tables).out.splitlines()]
    assert [line for line in lines if line.startswith("server.log says")] == [GENERATION, INSTANT], "the latest first"
    heads = [line.split() for line in lines if line.startswith("2026-")]
    assert heads == [
        ["2026-11-20T21:43:41.849Z", "g01", "another_generation"],
        ["2026-11-20T21:43:33.702Z", "g01", "another_instant"],
    ]
    begin, end = re.findall(r"/server/\S+ bytes (\d+) to (\d+)", "\n".join(lines))[1]
    assert b"in group g01 has failed" in log[int(begin) : int(end)]
    assert log[int(begin) : int(end)].startswith(b"[2026-11-20 21:43:33,702]")
    only = kardia("disagreements", "g01", "--kind", "another_instant", "-o", "json", "--tables", tables).json()
    (row,) = only["disagreements"]
    assert (row["told"], row["concluded"], row["client_id"]) == ("session_expired", "session_expired", "c01-b")
    assert (row["at"], row["concluded_at"]) == ("2026-11-20T21:43:33.702Z", "2026-11-20T21:43:29.702Z")


def test_the_story_and_the_incident_report_tell_them_in_their_place(doctored: tuple[Path, bytes, str]) -> None:
    tables, log, _ = doctored
    found = kardia("explain", "g01", "--tables", tables, "-o", "json").json()["sentences"]
    told = [one for one in found if one["kind"] == "disagreement"]
    assert [one["text"] for one in told] == [INSTANT, GENERATION]
    assert [one["at_ms"] for one in found] == sorted(one["at_ms"] for one in found)
    (evidence,) = told[0]["evidence"]
    assert b"has failed" in log[evidence["start"] : evidence["end"]]
    shown = kardia("explain", "g01", "--tables", tables, "--evidence").out
    assert f"a row of disagreements: the line at byte {evidence['start']} of" in " ".join(shown.split())
    of_member = kardia("explain", "g01", "--tables", tables, "--member", "c01-b", "-o", "json").json()["sentences"]
    assert INSTANT in [one["text"] for one in of_member]
    assert GENERATION not in [one["text"] for one in of_member]
    times = ("--from", "2026-11-20T21:43:30Z", "--to", "2026-11-20T21:43:45Z")
    report = kardia("incident", "g01", "--tables", tables, *times).out
    assert INSTANT in report
    assert GENERATION in report


def test_the_api_gives_them_by_cluster_and_by_group(doctored: tuple[Path, bytes, str]) -> None:
    with running(ApiSettings(tables=doctored[0]), wall_ms) as url:
        api = Api(url)
        api.wait_for_batch(0)
        cluster = api.get("/api/v1/clusters/c01")["cluster"]
        counts = dict.fromkeys(DISAGREEMENTS, 0) | {"another_instant": 1, "another_generation": 1}
        assert cluster["disagreements"] == counts
        assert cluster["links"]["disagreements"] == OF_CLUSTER
        assert api.get("/api/v1/clusters/c01/groups/g01")["group"]["links"]["disagreements"] == OF_GROUP
        for path in (OF_CLUSTER, OF_GROUP):
            assert [row["text"] for row in api.get(path)["disagreements"]] == [GENERATION, INSTANT]
            assert [row["text"] for row in api.get(path, order="oldest", limit=1)["disagreements"]] == [INSTANT]
            first = api.get(path, limit=1)
            (second,) = api.get(path, limit=1, cursor=first["next_cursor"])["disagreements"]
            assert second["text"] == INSTANT
            (row,) = api.get(path, kind="another_generation")["disagreements"]
            assert (row["member_id"], row["told"], row["concluded"]) == (None, "4", "3")
            assert api.get(path, **{"from": row["at_ms"]})["disagreements"] == [row]
            assert [one["text"] for one in api.get(path, to=row["at_ms"])["disagreements"]] == [INSTANT]
        assert api.problem("/api/v1/clusters/c01/groups/g02/disagreements") == (404, "not_found")
        assert api.problem(OF_CLUSTER, kind="boredom") == (422, "parameter_refused")
        api.client.close()


def test_every_kind_has_a_series_from_the_beginning(doctored: tuple[Path, bytes, str], tmp_path: Path) -> None:
    replayed(tmp_path / "tables", STORY.folder / "server.log.gz")
    for tables, found in ((doctored[0], {"another_instant", "another_generation"}), (tmp_path / "tables", set())):
        store, registry = Store(ApiSettings(tables=tables), wall_ms), CollectorRegistry(auto_describe=False)
        store.refresh()
        registry.register(TableMetrics(store))
        for kind in DISAGREEMENTS:
            labels = {"cluster": "c01", "kind": kind}
            assert registry.get_sample_value("kardia_disagreements_total", labels) == (kind in found), kind
        divergences = {"cluster": "c01", "what": "divergences"}
        assert (registry.get_sample_value("kardia_ledger_total", divergences) or 0) >= len(found)


def test_sources_that_agree_are_said_to(tmp_path: Path) -> None:
    said = replayed(tmp_path / "tables", STORY.folder / "server.log.gz")
    assert "disagreements" not in said
    assert "says what the requests say" in kardia("disagreements", "--tables", tmp_path / "tables").out


def test_tables_of_a_version_without_them_still_tell_their_story(
    doctored: tuple[Path, bytes, str], tmp_path: Path
) -> None:
    shutil.copytree(doctored[0], tmp_path / "tables")
    shutil.rmtree(tmp_path / "tables" / "disagreements")
    where = ("--tables", tmp_path / "tables")
    found = kardia("explain", "g01", *where, "-o", "json").json()["sentences"]
    assert found
    assert "disagreement" not in {one["kind"] for one in found}
    assert kardia("incident", "g01", *where).code == 0
    said = kardia("disagreements", *where)
    assert said.code == 1
    assert "disagreements do not exist" in said.err


def test_every_kind_has_words() -> None:
    assert disagreements._SAYS.keys() == DISAGREEMENTS.keys()
    row = {"member_id": "m-1", "client_id": "app", "at_ms": 0, "source": "b1/server/0", "concluded_at_ms": -3_000}
    row |= {"told": "session_expired", "concluded_certainty": "inferred"}
    texts = {
        disagreements.text({**row, "kind": kind, "concluded": concluded})
        for kind, concluded in (
            ("another_instant", "member"),
            ("another_instant", "session_expired"),
            ("another_cause", "left"),
            ("another_generation", "3"),
            ("another_coordinator", "b2"),
            ("a kind of a later version", "3"),
        )
    }
    assert len(texts) == 6
    assert (
        "The server.log of b1 says that the session of app expired at 1970-01-01T00:00:00.000Z; by the requests b2 "
        in (" ".join(sorted(texts)))
    )
    assert "(left, inferred)" in " ".join(texts)
