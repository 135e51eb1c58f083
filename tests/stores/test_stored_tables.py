"""Tables in a real S3-compatible server: the same rows and answers as on a disk, one writer at a time, no key said.

Goal: `kardia replay --tables s3://…` and every verb that asks give what they give with a folder; the API follows what
is committed; of two writers the newer one goes on and the older one stops, also in the middle of a commit; whatever
the store refuses is a sentence without its words.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from api.settings import ApiSettings
from api.store import FULL_LOOK_AFAR_MS
from api.store import Store as Looked
from demo.object_store import ObjectStore
from kardia.tables import LIVE_TABLES
from spark_jobs.checkpoint import kardia_files
from spark_jobs.errors import LeaseError, TablesError
from spark_jobs.replay.run import prepare_tables
from spark_jobs.schemas import to_tables
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers import fence
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import create_or_open
from stores import access, delta
from stores.locations import Folder, Store
from tests.api.conftest import Clock
from tests.api.written import NOW_MS, health, member, progress
from tests.spark_jobs.support import all_rows
from tests.stores.conftest import BUCKET
from tests.story.conftest import Said, kardia
from tests.support.stories import CORPORA

STORY = CORPORA / "c01_kill-3.9.2"


def replayed(tables: Folder, *more: str) -> Said:
    logs: list[str | Path] = ["--request-log", STORY / "kafka-request.log.gz", "--server-log", STORY / "server.log.gz"]
    logs += ["--offsets", STORY / "offsets.jsonl.gz", "--cluster", "demo", "--workers", "1"]
    return kardia("replay", "--tables", str(tables), *logs, *more)


def asked(tables: Folder) -> dict[str, Any]:
    """What every kind of question answers, past and present."""
    [group] = [one["group_id"] for one in kardia("groups", "--tables", str(tables), "-o", "json").json()][:1]
    found = {
        verb: kardia(verb, group, "--tables", str(tables), "-o", "json").json()
        for verb in ("group", "history", "incident")
    }
    found["incident"].pop("freshness")  # of the clock as well
    return found | {"why": kardia("why", group, "--tables", str(tables)).out}


def test_a_replay_into_a_store_is_what_it_is_on_a_disk(place: Store, tmp_path: Path) -> None:
    assert replayed(tmp_path / "tables").code == 0
    said = replayed(place)
    assert (said.code, str(place) in said.out) == (0, True)
    here, there = all_rows(tmp_path / "tables"), all_rows(place)
    assert {name for name, found in there.items() if found} >= {"members", "rebalances", "health", "progress"}
    assert there == here
    assert asked(place) == asked(tmp_path / "tables")
    again = replayed(place)
    assert (again.code, "already hold batches" in again.err) == (1, True)
    assert replayed(place, "--overwrite").code == 0
    assert all_rows(place) == here


def test_s3a_is_the_same_place(place: Store) -> None:
    assert replayed(place).code == 0
    same = kardia("groups", "--tables", place.hadoop, "-o", "json")
    assert same.json() == kardia("groups", "--tables", str(place), "-o", "json").json()


def batch(number: int) -> dict[str, list[tuple[Any, ...]]]:
    """A member of its own in each batch, and how far the log was read."""
    at_ms = NOW_MS + 1_000 * number
    named = (member("g", f"m{number}", joined_at_ms=at_ms), health("g", f"m{number}", at_ms=at_ms), progress(at_ms))
    return {name: [row] for name, row in named}


def write(writer: DeltaRsWriter, *numbers: int) -> None:
    for number in numbers:
        writer.write(number, to_tables(batch(number), number))


def began(place: Folder, app_id: str = "kardia-live/1", **more: Any) -> DeltaRsWriter:
    writer = DeltaRsWriter(place, app_id, **more)
    writer.prepare()
    return writer


def test_the_view_follows_commits_upkeep_and_a_table_that_is_made_anew(place: Store) -> None:
    clock = Clock()
    looked = Looked(ApiSettings(tables=place), clock)
    looked.refresh()
    assert {error.status for error in looked.troubles()} == {503}, "there are no tables yet"
    writer = began(place)
    write(writer, 0)
    looked.refresh()
    assert members(looked) == {"m0"}
    assert not looked.is_behind()
    write(writer, 1, 2)
    assert looked.is_behind()
    looked.refresh()
    assert members(looked) == {"m0", "m1", "m2"}
    write(writer, *range(3, 25))
    assert Maintenance(place).run_once().failures == ()
    looked.refresh()
    assert members(looked) == {f"m{number}" for number in range(25)}
    assert prepare_tables(place, append=False, overwrite=True) == 0
    write(began(place), 0)
    clock.now_ms += FULL_LOOK_AFAR_MS
    looked.refresh()
    assert members(looked) == {"m0"}


def members(looked: Looked) -> set[str]:
    return {one.member_id for one in looked.group("demo", "g").lives.values()}


def test_a_repeated_batch_is_written_once_and_a_newer_writer_stops_the_older(place: Store) -> None:
    older = began(place)
    write(older, 0, 1)
    newer = began(place)
    assert newer.written() == 1
    write(newer, 1, 2)
    with pytest.raises(LeaseError, match="another run has begun to write these tables"):
        write(older, 2)
    with pytest.raises(LeaseError):
        write(older, 3)
    assert [row["batch_id"] for row in all_rows(place, ("progress",))["progress"]] == [0, 1, 2]


def test_a_newer_writer_that_begins_between_look_and_commit_stops_the_older(place: Store) -> None:
    newer: list[DeltaRsWriter] = []

    def reached(step: str, number: int) -> None:
        if step == "members:before" and number == 1:
            newer.append(began(place))

    older = began(place, reached=reached)
    write(older, 0)
    with pytest.raises(LeaseError, match="another run has begun"):
        write(older, 1)
    assert {row["batch_id"] for row in all_rows(place, ("members",))["members"]} == {0}
    write(newer[0], 1)
    assert {name: len(found) for name, found in all_rows(place).items() if found} == {
        "members": 2,
        "health": 2,
        "progress": 2,
    }


def test_rows_of_another_checkpoint_that_came_meanwhile_are_refused(place: Store) -> None:
    write(began(place, "kardia-live/1"), 0)
    began(place, "kardia-live/2")
    with pytest.raises(LeaseError, match="another run"):
        fence.check_alone(place, LIVE_TABLES, "kardia-live/2", 0)
    fence.check_alone(place, LIVE_TABLES, "kardia-live/1", 0)
    fence.check_alone(place, LIVE_TABLES, "kardia-live/2", 1)


def test_of_commits_at_the_same_time_none_takes_the_place_of_another(place: Store) -> None:
    """The entry of a version is a conditional put: without it, one of two commits would be lost in silence."""
    create_or_open(place, "members")
    start = threading.Barrier(4)

    def append(number: int) -> None:
        writer = DeltaRsWriter(place, f"app/{number}")
        writer._open["members"] = delta.opened(place / "members")
        start.wait()
        for at in range(5):
            writer.write(at, {"members": to_tables(batch(10 * number + at), at)["members"]})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(append, range(4)))
    found = [row["member_id"] for row in all_rows(place, ("members",))["members"]]
    assert sorted(found) == sorted(f"m{10 * number + at}" for number in range(4) for at in range(5))


def refusals(store: ObjectStore) -> dict[str, tuple[dict[str, str], str]]:
    """What is wrong, the environment that makes it so, and what is said of it."""
    return {
        "another key": ({"AWS_ACCESS_KEY_ID": "AKIAOFNOBODY"}, "InvalidAccessKeyId"),
        "another secret": ({"AWS_SECRET_ACCESS_KEY": "of-nobody"}, "SignatureDoesNotMatch"),
        "no bucket": ({}, "NoSuchBucket"),
        "no server": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "cannot be reached"),
    }


@pytest.mark.parametrize("wrong", ["another key", "another secret", "no bucket", "no server"])
def test_what_a_store_refuses_is_a_sentence_without_its_words(
    in_environment: ObjectStore,
    place: Store,
    wrong: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert replayed(place).code == 0
    environment, expected = refusals(in_environment)[wrong]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    where = Store(f"{BUCKET}-none", "t") if wrong == "no bucket" else place
    writing, reading = replayed(where, "--append"), kardia("groups", "--tables", str(where))
    assert (writing.code, expected in writing.err, str(where) in " ".join(writing.err.split())) == (1, True, True)
    assert reading.code == 1, reading
    logged = "".join(record.getMessage() + str(record.exc_info or "") for record in caplog.records)
    assert wrong == "no bucket" or expected in logged
    everything = writing.out + writing.err + reading.out + reading.err + logged
    keys = {in_environment.access_key, in_environment.secret_key, *environment.values()} - {"http://127.0.0.1:1"}
    for secret in (*keys, "StringToSign", "Signature=", "<?xml"):
        assert secret not in everything, secret


def test_keys_and_endpoint_of_a_profile_are_found(
    in_environment: ObjectStore, place: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in in_environment.environ:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(f"[profile kardia]\nregion = eu-1\nendpoint_url = {in_environment.endpoint}\n")
    (tmp_path / "credentials").write_text(
        f"[kardia]\naws_access_key_id = {in_environment.access_key}\n"
        f"aws_secret_access_key = {in_environment.secret_key}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "kardia")
    assert replayed(place).code == 0
    assert kardia("groups", "--tables", str(place), "-o", "json").json()
    assert in_environment.secret_key not in str(access.delta_options())


def test_a_table_that_is_torn_is_named(place: Store) -> None:
    create_or_open(place, "members")
    kardia_files.write(place / "members", "_delta_log/00000000000000000001.json", b'{"add": {"path"')
    with pytest.raises(TablesError, match=rf"table members cannot be opened: .* \({place}/members\)"):
        create_or_open(place, "members")
