"""The verbs as a person calls them: the same from tables and from a server; evidence, windows, formats, refusals."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.answers.roster import SORTS
from cli.asking.answers import HttpAnswers, TableAnswers
from cli.asking.questions import Questions
from cli.verbs.groups import Sort
from kardia.certainty import CERTAINTIES
from kardia.story.facts import KINDS
from kardia.tables import TABLES
from spark_jobs.schemas import to_arrow
from tests.api.written import NOW_MS, Tables, health, member, progress, row_of, transition
from tests.story.conftest import kardia, replayed, sentences, wall_ms

INSIDE = "2026-11-20T21:51:50.000Z"
"""Inside the recording of c04: what was so then does not depend on today's clock."""

QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("explain", "--group", "g04", "--to", INSIDE, "--evidence"),
    ("explain", "--group", "g04", "--at", INSIDE, "-o", "json"),
    ("explain", "--group", "g04", "--member", "c04-b", "--from", "1795211497000", "--to", INSIDE),
    ("why", "g04", "--at", INSIDE),
    ("why", "g04s", "--at", INSIDE, "-o", "json"),
    ("groups", "--list"),
    ("group", "g04", "--state", "-o", "yaml"),
    ("group", "g04", "--members", "-o", "json"),
    ("member", "g04", "c04-b", "-o", "json"),
    ("history", "g04", "--to", INSIDE, "--limit", "7"),
    ("history", "g04", "--of", "member", "-o", "json"),
    ("history", "g04s", "-o", "yaml"),
    ("incident", "g04", "--from", "1795211497000", "--to", INSIDE),
    ("rejected", "--reason", "bad_json"),
    ("rejected", "--reason", "boredom"),
    ("disagreements",),
    ("disagreements", "g04", "-o", "json"),
    ("disagreements", "--kind", "boredom"),
    ("surprises",),
    ("surprises", "--group", "g04", "-o", "json"),
    ("surprises", "--surprise-class", "boredom"),
    ("check",),
    ("check", "nowhere"),
    ("explain", "--group", "nowhere"),
    ("explain", "--group", "g04", "--member", "nobody"),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_tables_and_server_answer_alike(tables: Path, url: str, question: tuple[str, ...]) -> None:
    by_tables = kardia(*question, "--tables", tables, "--cluster", "c04")
    by_server = kardia(*question, "--api", url, "--cluster", "c04")
    assert by_tables.code == by_server.code
    assert by_tables.out == by_server.out
    assert by_tables.err.replace(str(tables), url) == by_server.err
    assert by_tables.out or by_tables.err


def test_tables_and_server_give_the_same_material(tables: Path, url: str) -> None:
    found = []
    for answers in (TableAnswers(tables), HttpAnswers(url)):
        with answers:
            material = Questions(answers, "c04").material("g04", None, None, events=True)
            found.append((material.transitions, material.rebalances, material.lives, material.predictions))
    for one, other in zip(*found, strict=True):
        assert [_timeless(row) for row in one] == [_timeless(row) for row in other]
        assert one


def _timeless(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("session", "poll", "remaining_ms")}


def test_json_has_the_shape_that_it_promises(tables: Path) -> None:
    said = kardia("explain", "--tables", tables, "--cluster", "c04", "--group", "g04", "--to", INSIDE, "-o", "json")
    assert said.out.isascii()
    story = said.json()
    assert set(story) == {"cluster_id", "group_id", "member_id", "from", "to", "sentences"}
    assert (story["cluster_id"], story["group_id"], story["member_id"]) == ("c04", "g04", None)
    for sentence in story["sentences"]:
        assert set(sentence) == {"at", "at_ms", "kind", "text", "certainty", "member_ids", "evidence"}
        assert sentence["kind"] in KINDS
        assert sentence["certainty"] in CERTAINTIES
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", sentence["at"])
        assert sentence["text"].endswith((".", ".)", '."'))
    assert {"joined", "ended", "rebalance_began", "rebalance_ended", "state"} <= {
        sentence["kind"] for sentence in story["sentences"]
    }


def test_instants_are_taken_as_rfc_3339_and_as_epoch_milliseconds(tables: Path) -> None:
    assert sentences(tables, "c04", "g04", "--at", INSIDE) == sentences(tables, "c04", "g04", "--at", "1795211510000")


def test_nothing_after_the_instant_is_told(tables: Path) -> None:
    for sentence in sentences(tables, "c04", "g04", "--to", INSIDE):
        assert sentence["at_ms"] <= 1_795_211_510_000


def test_at_an_instant_only_what_was_so_is_told(tables: Path) -> None:
    found = sentences(tables, "c04", "g04", "--at", "2026-11-20T21:51:37.500Z")
    assert [one["kind"] for one in found] == ["rebalance_began", "state", "deadline", "deadline"]
    assert "apache-kafka-java 3.9.2 at 127.0.0.1" in found[0]["text"], "who began the rebalance that was under way"
    assert (
        "under way for 188 ms and waited for c04-d and c04-b (45eb9731); it was over 832 ms later" in found[1]["text"]
    )
    at_rest = ["state", "deadline", "deadline", "deadline"]
    assert [one["kind"] for one in sentences(tables, "c04", "g04", "--at", INSIDE)] == at_rest


def test_an_evidence_names_the_very_line(tables: Path) -> None:
    """The byte that the sentence about a LeaveGroup names is the first of its line in the log."""
    import gzip

    from tests.support.stories import Story

    ended = next(one for one in sentences(tables, "c04", "g04") if one["kind"] == "ended" and "c04-a" in one["text"])
    (evidence,) = ended["evidence"]
    log = gzip.decompress((Story("c04_mpi-3.9.2").folder / "kafka-request.log.gz").read_bytes())
    line = log[evidence["start"] :].split(b"\n", 1)[0]
    assert b'"requestApiKeyName":"LEAVE_GROUP"' in line
    assert ended["member_ids"][0].encode() in line
    said = kardia("explain", "--tables", tables, "--cluster", "c04", "--group", "g04", "--evidence")
    assert f"the line at byte {evidence['start']} of 127.0.0.1:21040/request/" in said.out


def test_an_archived_event_is_named_with_its_kind_and_client(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    tables.create("events")
    event = row_of(
        TABLES["events"],
        group_id="orders",
        event_id="e",
        kind="leave_group",
        source="b1/request/abc",
        start=4_200,
        end=4_900,
        logged_at_ms=float(NOW_MS),
        client_id="app",
    )
    tables.batch(
        0,
        member("orders", "m1", joined_at_ms=NOW_MS - 9_000, ended_at_ms=NOW_MS, end_cause="left"),
        transition("orders", 1, "Stable", at_ms=NOW_MS - 9_000),
        transition(
            "orders", 2, "Absent", entity="member", member_id="m1", evidence="b1/request/abc@4200", at_ms=NOW_MS
        ),
        progress(NOW_MS),
        ("events", event),
    )
    said = kardia("explain", "--tables", tables.root, "--group", "orders", "--evidence")
    line = "the line at byte 4200 of b1/request/abc, leave_group of app, logged 2025-10-09T08:53:20.000Z"
    assert line in said.out
    assert "no line" in said.out, "the other transition names no position"
    assert to_arrow(TABLES["events"], [event], 0).num_rows == 1


def test_a_live_group_counts_down(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    tables.create()
    now_ms = wall_ms()
    tables.batch(
        0,
        member("orders", "steady", joined_at_ms=now_ms - 60_000, client_id="steady"),
        member("orders", "weak", joined_at_ms=now_ms - 60_000, client_id="weak"),
        transition("orders", 1, "Stable", at_ms=now_ms - 59_000),
        health("orders", "steady", at_ms=now_ms, session_deadline_at_ms=now_ms + 90_000, client_id="steady"),
        health("orders", "weak", at_ms=now_ms, session_deadline_at_ms=now_ms + 60_000, client_id="weak", status="late"),
        progress(now_ms),
    )
    where = ("--tables", tables.root)
    shown = kardia("group", "orders", "--members", *where).out.splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["weak", "steady"], "the worst margin first"
    left = re.split(r" {2,}", shown[1])[2]
    assert left.startswith("≥ "), "it may have been heard since it was written down"
    assert 30 < float(left.removeprefix("≥ ").removesuffix(" s")) <= 60
    told = kardia("explain", "--group", "orders", "-o", "json", *where).json()["sentences"]
    assert any("weak: its session ends" in one["text"] and "left of 10 s" in one["text"] for one in told)
    assert not any(one["kind"] == "limit" for one in told)


@pytest.mark.parametrize(
    "question",
    [
        ("explain", "g04", "--at", "2030-01-01T00:00:00Z"),
        ("why", "g04", "--at", "2026-11-20T21:52:10.331Z"),
        ("explain", "g04", "--from", "2030-01-01T00:00:00Z"),
        ("history", "g04", "--from", "2030-01-01T00:00:00Z"),
        ("incident", "g04", "--from", "2030-01-01T00:00:00Z", "--to", "2030-01-01T01:00:00Z"),
    ],
    ids=" ".join,
)
def test_an_instant_that_is_not_read_yet_has_no_answer_and_an_exit_status_of_its_own(
    tables: Path, question: tuple[str, ...]
) -> None:
    """`explain --at 2030-01-01` said Stable, exit status 0."""
    said = kardia(*question, "--tables", tables, "--cluster", "c04")
    assert (said.code, said.out) == (3, "")
    assert "Nothing is known beyond 2026-11-20T21:52:10.330Z" in said.err


def test_what_is_typed_wins_over_the_environment(tables: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARDIA_API", "http://127.0.0.1:9")
    assert kardia("groups", "--list", "--tables", tables, "--cluster", "c04").out.split() == ["g04", "g04s"]
    monkeypatch.setenv("KARDIA_TABLES", str(tables))
    both = kardia("groups", "--list", "--cluster", "c04")
    assert (both.code, "expected one of them" in both.err) == (2, True)
    assert kardia("groups", "--list", "--api", url, "--cluster", "c04").out.split() == ["g04", "g04s"]


def test_a_history_is_in_the_order_of_time_and_an_end_that_is_confirmed_is_no_change(tables: Path) -> None:
    for cluster, group in (("c01", "g01"), ("c06", "g06"), ("c13", "g13")):
        lines = kardia("history", group, "--tables", tables, "--cluster", cluster).out.splitlines()[1:]
        assert [line[:24] for line in lines] == sorted(line[:24] for line in lines)
        assert not any(re.search(r"Absent +Absent", line) for line in lines)
        assert any("stays Absent" in line for line in lines)


def test_a_group_of_the_consumer_protocol_has_an_epoch_in_a_table(tables: Path) -> None:
    for options in ((), ("--state",)):
        said = kardia("group", "hm1", "--tables", tables, "--cluster", "m01", *options)
        assert "Stable in epoch 3" in said.out
        assert "None" not in said.out
        assert "Unknown" not in said.out


def test_a_story_that_is_to_end_later_ends_where_all_is_known(tables: Path) -> None:
    told = sentences(tables, "c04", "g04", "--to", "2030-01-01T00:00:00Z")
    (state,) = [one for one in told if one["kind"] == "state"]
    assert state["at"] == "2026-11-20T21:52:10.330Z"
    assert told[-1]["text"].startswith("Nothing is known beyond 2026-11-20T21:52:10.330Z")


def test_why_says_as_explain_does_that_the_tables_are_behind(tables: Path) -> None:
    for verb in ("why", "explain"):
        told = kardia(verb, "g04", "--tables", tables, "--cluster", "c04", "-o", "json").json()["sentences"]
        assert told[-1]["text"].startswith("The logs were read up to 2026-11-20T21:52:10.330Z")
        assert max(one["at"] for one in told) == "2026-11-20T21:52:10.330Z"


def test_the_options_of_kafkas_own_tool_show_the_same(tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c04")

    def same(text: str) -> str:
        return re.sub(r", [^,]+ ago", "", text)  # the age goes on between two calls

    for options in (("--members", "--verbose"), ("--state",)):
        habit = kardia("groups", "--describe", "--group", "g04", *options, *where)
        assert habit.code == 0
        assert same(habit.out) == same(kardia("group", "g04", *options, *where).out)
    assert "c04-b" in kardia("groups", "--describe", "--group", "g04", "--members", *where).out
    assert kardia("groups", "--list", *where).out.split() == ["g04", "g04s"]


@pytest.mark.parametrize("sort", list(Sort))
def test_every_order_of_the_command_is_one_of_the_api(sort: Sort, tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c04")
    # When the log ends g04s was sampled last 1.5 s after its member was heard, g04 0.4 s after the longest silent one.
    expected = ["g04s", "g04"] if sort == Sort.MARGIN else ["g04", "g04s"]
    assert kardia("groups", "--list", "--sort", sort, *where).out.split() == expected
    assert set(Sort) == set(SORTS)


def test_yaml_and_json_say_the_same(tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c04")
    as_json = kardia("group", "g04", "--state", "-o", "json", *where)
    assert yaml.safe_load(kardia("group", "g04", "--state", "-o", "yaml", *where).out) == as_json.json()


def test_stories_and_reports_come_as_yaml_too(tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c04", "--to", INSIDE)
    for verb in ("explain", "incident"):
        as_json = kardia(verb, "g04", "-o", "json", *where)
        as_yaml = kardia(verb, "g04", "-o", "yaml", *where)
        assert as_yaml.out.isascii()
        assert _shape(yaml.safe_load(as_yaml.out)) == _shape(as_json.json())
    at = ("--tables", tables, "--cluster", "c04", "--at", INSIDE)
    assert yaml.safe_load(kardia("why", "g04", "-o", "yaml", *at).out) == kardia("why", "g04", "-o", "json", *at).json()


def _shape(answer: Any) -> Any:
    """An answer without what goes on between two calls."""
    return {name: value for name, value in answer.items() if name != "freshness"}


def test_the_group_may_stand_behind_its_option(tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c04")
    plain = kardia("why", "g04", "--at", INSIDE, *where).out
    assert plain.startswith("group g04")
    assert kardia("why", "--group", "g04", "--at", INSIDE, *where).out == plain
    assert kardia("why", "--at", INSIDE, *where, "--group=g04").out == plain
    one = kardia("member", "-o", "json", "--group", "g04", "c04-b", *where).json()
    assert one == kardia("member", "g04", "c04-b", "-o", "json", *where).json()
    dashed = kardia("why", "--group", "-x", *where)
    assert (dashed.code, "has no group -x" in dashed.err) == (1, True)
    assert "2 of 2 groups" in kardia("why", *where).out, "without one it is about all"


def test_an_instant_may_be_a_time_of_day_or_an_age(tables: Path) -> None:
    """Relative to what was read last, which is 21:52:10.330 of the recording's day."""
    where = ("--tables", tables, "--cluster", "c04")
    told = kardia("explain", "g04", "--at", "2026-11-20T21:51:50Z", *where).out
    assert "Stable" in told
    assert kardia("explain", "g04", "--at", "21:51:50Z", *where).out == told
    assert kardia("explain", "g04", "--at", "22:51:50+01:00", *where).out == told
    between = kardia("history", "g04", "--from", "2026-11-20T21:51:10.330Z", "--to", "2026-11-20T21:51:40Z", *where).out
    assert kardia("history", "g04", "--from", "1m", "--to", "21:51:40Z", *where).out == between
    assert between.count("\n") > 3


def test_a_state_is_named_as_in_kafkas_own_tool(tables: Path) -> None:
    where = ("--tables", tables, "--cluster", "c04")
    assert kardia("groups", "--list", "--state", "stable", *where).out.split() == ["g04", "g04s"]
    assert kardia("groups", "--list", "--state", "Empty", *where).out.split() == []
    assert kardia("groups", "--describe", "--group", "g04", "--state", *where).code == 0


REFUSALS: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("why", "g04", "--at", "noon"), 2, '--at "noon" is neither'),
    (("explain", "--group", "g04", "--from", INSIDE, "--to", "1000"), 2, "--to is before --from"),
    (("explain", "--group", "g04", "--at", INSIDE, "--to", INSIDE), 2, "expected one of the two"),
    (("explain", "--group", "g4"), 1, "has no group g4; expected one such as g04"),
    (("explain", "--group", "g04", "--member", "c04-z"), 1, "has no member c04-z; expected a member id"),
    (("member", "g04", "c04-z"), 1, "has no member c04-z"),
    (("why", "g04", "--at", "25:51:50"), 2, "21:47 (the last one), 3am, yesterday 22:00, 10m (ago)"),
    (("history", "g04", "--from", "10 x"), 2, '--from "10 x" is neither'),
    (("groups", "--describe"), 2, "name it with --group"),
    (("groups", "--in-state", "Stabel"), 2, "did you mean Stable?"),
    (("groups", "--in-state", "boredom"), 2, "expected Empty, PreparingRebalance"),
)


@pytest.mark.parametrize(("question", "code", "sentence"), REFUSALS)
def test_a_refusal_is_one_sentence(tables: Path, question: tuple[str, ...], code: int, sentence: str) -> None:
    said = kardia(*question, "--tables", tables, "--cluster", "c04")
    assert said.code == code
    assert said.out == ""
    assert sentence in said.err
    assert said.err.startswith(f"kardia {question[0]}: ")
    assert len(said.err.splitlines()) == 1


def test_a_place_that_has_no_answer_is_refused(tables: Path, tmp_path: Path, url: str) -> None:
    several = kardia("groups", "--tables", tables)
    assert (several.code, "name it with --cluster" in several.err) == (2, True)
    missing = kardia("groups", "--tables", tables, "--cluster", "none")
    assert (missing.code, "No cluster of this name" in missing.err) == (1, True)
    empty = kardia("groups", "--tables", tmp_path)
    assert (empty.code, "do not exist yet" in empty.err) == (1, True)
    nowhere = kardia("groups", "--tables", tmp_path / "nowhere")
    assert (nowhere.code, "is no directory" in nowhere.err) == (2, True)
    both = kardia("groups", "--tables", tables, "--api", url)
    assert (both.code, "expected one of them" in both.err) == (2, True)
    away = kardia("groups", "--api", "http://127.0.0.1:9")
    assert (away.code, "expected a running `kardia serve`" in away.err) == (1, True)
    for bad in ("127.0.0.1:8765", "ftp://127.0.0.1", "http://", "http://[::1"):
        refused = kardia("groups", "--api", bad)
        assert (refused.code, "is no address" in refused.err) == (2, True), refused.err
    other = kardia("groups", "--api", url + "/page")
    assert other.code == 1


def test_a_token_is_asked_for_and_taken(tables: Path, tmp_path: Path) -> None:
    from api.settings import ApiSettings
    from tests.api.conftest import running

    token = tmp_path / "tokens"
    token.write_text("abcdefghijklmnopqrstuvwxyz0123456789\n")
    with running(ApiSettings(tables=tables, token_file=token), wall_ms) as url:
        question = ("groups", "--list", "--cluster", "c04", "--api", url)
        refused = kardia(*question)
        assert (refused.code, "--token-file" in refused.err) == (1, True)
        deadline = time.monotonic() + 90
        while (said := kardia(*question, "--token-file", token)).code and time.monotonic() < deadline:
            time.sleep(0.1)
        assert said.out.split() == ["g04", "g04s"]
    unreadable = kardia("groups", "--api", url, "--token-file", tmp_path / "none")
    assert (unreadable.code, "cannot be read" in unreadable.err) == (2, True)


def test_watch_shows_and_ends_cleanly_with_ctrl_c(tables: Path) -> None:
    words = [sys.executable, "-m", "cli.main", "watch", "--tables", str(tables), "--cluster", "c04"]
    # Tests that a shell runs in the background ignore Ctrl-C, and what they start would inherit that.
    heeds = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeds
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        first = watching.stdout.readline()
        os.kill(watching.pid, signal.SIGINT)
        rest = watching.stdout.read()
        assert watching.wait(90) == 0
        assert first.startswith("GROUP")
        assert "g04s" in rest
        assert rest.endswith("Stopped.\n")
        assert "Traceback" not in watching.stderr.read()


def test_watch_of_one_group_stops_after_its_time(tables: Path) -> None:
    said = kardia("watch", "g04", "--for", "0.5", "--tables", tables, "--cluster", "c04")
    assert said.code == 0
    assert "Group g04 of cluster c04" in said.out
    assert json.dumps(said.out).isascii()


def test_the_page_about_the_command_line_shows_what_it_says(tmp_path: Path) -> None:
    """Every output in docs/cli.md is that of its command; only the age of the tables goes on. Those of a live run, that
    `--tables kardia-data` names, cannot come again: what they look like is held in `test_lag_told.py`."""
    replayed(tmp_path / "out", "c04")
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    # A report that has fences of its own stands between tildes.
    shown = [
        one
        for fence in ("```", "~~~")
        for one in re.findall(rf"^{fence}\n\$ kardia (.*)\n((?:.*\n)*?){fence}$", page, re.MULTILINE)
        if "--tables kardia-data" not in one[0]
    ]
    assert len(shown) >= 9
    for name, text in re.findall(r"[Ww]ith this in `([^`]+)`\n\n```\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text)
    for question, output in shown:
        words = question.replace("--tables out", f"--tables {tmp_path / 'out'}").split()
        said = kardia(*(str(tmp_path / word) if (tmp_path / word).is_file() else word for word in words))
        told = said.out.replace(str(tmp_path / "out"), "out")
        expected, found = (re.sub(r", [^,]+ ago", "", text) for text in (output, told))
        assert [line.rstrip() for line in found.splitlines()] == expected.splitlines(), question
