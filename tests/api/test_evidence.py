"""A recorded story replayed with less and less evidence: each answer says on which rung its group stands and what that
leaves open, and no alert is told that would take more."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from api.notify import conditions
from api.settings import ApiSettings
from api.shapes import models
from api.store import Store
from ingest.admin.samples import Answer, Changes, sample_line
from kardia.observe import ObserverSettings
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.written import NOW_MS, Tables, health, member, progress, transition
from tests.support.stories import Story

STORY = Story("c04_mpi-4.1.2")
REQUESTS = [STORY.folder / "kafka-request.log.gz"]
SERVER = [STORY.folder / "server.log.gz"]
RECORDS = [STORY.folder / "offsets.jsonl.gz"]


def samples(folder: Path) -> Path:
    """What a sampler would have written: the members of the last record that lists some, and who is left later."""
    changes, told = Changes("a1"), []
    end_ms = STORY.expect["end_ms"]
    for at_ms, names in ((end_ms - 60_000, ("a", "b")), (end_ms - 10_000, ("a",))):
        members = [(f"{name}-1", "", name, "10.0.0.9", [("orders", [0])]) for name in names]
        told.append(changes.note(Answer("g04", "Stable", members=members), at_ms, at_ms + 5))
        told.append(changes.round(at_ms, at_ms + 5))
    path = folder / "samples.jsonl"
    path.write_bytes(b"".join(sample_line(one) for one in told if one is not None))
    return path


RUNGS = {
    1: Inputs(),
    2: Inputs(offsets=RECORDS),
    3: Inputs(server_logs=SERVER),
    4: Inputs(server_logs=SERVER, offsets=RECORDS),
    6: Inputs(REQUESTS, SERVER, RECORDS),
}
"""Its request log has FETCH."""

TAKE_DEADLINES = {"KafkaGroupSessionTimeoutImminent", "KafkaGroupPollTimeoutImminent", "KafkaGroupZombieMember"}


@cache
def tables_of(rung: int, folder: Path) -> Path:
    inputs = Inputs(files=[samples(folder)]) if rung == 1 else RUNGS[rung]
    replay(inputs, folder / str(rung), ObserverFactory(ObserverSettings("c04")), workers=1)
    return folder / str(rung)


def kardia(*words: str) -> str:
    """What the command line prints, in one line."""
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rungs")


@pytest.mark.parametrize("rung", RUNGS)
def test_the_api_the_metrics_and_the_command_line_say_the_rung(folder: Path, rung: int) -> None:
    tables = tables_of(rung, folder)
    with running(ApiSettings(tables=tables), Clock(STORY.expect["end_ms"])) as url:
        api = Api(url)
        api.wait_for_batch(0)
        root = "/api/v1/clusters/c04/groups"
        answer = api.get(f"{root}/g04")
        listed = api.get(root)
        about = [api.get(f"{root}/g04/members"), api.get(f"{root}/g04/incident")]
        report = api.client.get(f"{root}/g04/incident", params={"format": "markdown"}).text
        series = api.client.get("/metrics").text
        api.client.close()
    evidence = models.GroupAnswer.model_validate(answer).evidence
    assert evidence.rung == rung
    assert {one["group_id"]: one["rung"] for one in listed["groups"]}["g04"] == rung
    assert [one["evidence"] for one in about] == [answer["evidence"]] * 2
    assert f"(level {rung} of 6)" in report
    assert (evidence.questions[3].question, evidence.questions[3].answered == "yes") == ("who is next?", rung == 6)
    shown = re.search(r'kardia_group_evidence_rung\{cluster="c04",group="g04"\} (\S+)', series)
    assert shown is not None
    assert float(shown[1]) == rung
    # What takes deadlines has no series there, so that no rule can fire by it.
    assert ('kardia_group_session_headroom_min_ratio{cluster="c04",group="g04"}' in series) is (rung == 6)
    printed = kardia("group", "g04", "--tables", str(tables))
    assert ("“who is next?”" in printed) is (rung < 5)
    assert "unknown (unknown)" not in printed
    assert ("needs the request log" in printed) is (rung < 5)
    life = next((row for row in about[0]["members"]), None)
    if life is not None:
        told = kardia("member", "g04", life["member_id"], "--tables", str(tables))
        assert (f"(level {rung} of 6)" in told) is (rung < 5)
        assert "- -" not in told
    assert ("LEVEL" in kardia("groups", "--tables", str(tables))) is (rung < 5)


@pytest.mark.parametrize("rung", [1, 2, 3, 4])
def test_no_alert_is_told_that_needs_a_higher_rung(folder: Path, rung: int) -> None:
    """With the request log this story has predictions of both timeouts."""
    store = Store(ApiSettings(tables=tables_of(rung, folder)), Clock(STORY.expect["end_ms"]))
    store.refresh()
    found = conditions.find(store).findings
    assert {one.alert for one in found} & TAKE_DEADLINES == set()
    for cluster in store.current.clusters.values():
        for view in cluster.groups.values():
            assert not view.predictions
            assert set(view.statuses()) <= {"unknown"}
            assert view.first_deadline_ms() is None


def test_a_story_of_samples_says_bounds_and_what_it_cannot_know(folder: Path) -> None:
    told = kardia("explain", "g04", "--tables", str(tables_of(1, folder)))
    assert "It rebalanced, once or more often: its members or their partitions are others." in told
    assert "That was between" in told
    assert "left or was evicted: which is unknown, needs server.log or the request log." in told
    assert "(Not sure: nothing that was read shows it.)" in told
    assert "timers of a broker may fire late" not in told
    assert "“why did it rebalance?”" in kardia("explain", "g04", "--tables", str(tables_of(1, folder)))
    assert "`kardia group` says what more would tell." in kardia("why", "g04", "--tables", str(tables_of(1, folder)))


@pytest.mark.parametrize(
    ("software", "said"), [("librdkafka", "needs telemetry of clients"), ("apache-kafka-java", "needs FETCH")]
)
def test_fetch_is_asked_for_where_it_would_show_polls(tables: Tables, serve: Serve, software: str, said: str) -> None:
    tables.create()
    rows = [transition("g", 1, "Stable"), member("g", "a", client_software_name=software, broker="b1")]
    tables.batch(0, *rows, health("g", "a", poll_evidence="commit"), progress(NOW_MS))
    api = serve()
    api.wait_for_batch(0)
    evidence = api.get("/api/v1/clusters/demo/groups/g")["evidence"]
    (polled,) = [one for one in evidence["questions"] if one["question"] == "did it poll?"]
    assert polled["answered"] == "partly"
    assert polled["needs"].startswith(said)
