"""Ids of groups, members and clients may contain anything: never interpreted, shown escaped, and bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardia.tables import DISAGREEMENTS
from tests.api.written import (
    NOW_MS,
    Tables,
    disagreement,
    health,
    member,
    prediction,
    progress,
    rebalance,
    rejected,
    surprise,
    transition,
)
from tests.story.conftest import kardia

IDS = (
    "\x1b[2J\x1b[31mred\x9b31m",
    "[bold red]markup[/bold red] [link=http://evil.example]x[/link] :warning:",
    "line\nbreak\r\ttab",
    "\u202eright-to-left\u2066 z\u0301\u0302\u0303\u0304",
    "nul\x00bell\x07",
    "a was evicted: its session expired. b",
    'quote" and \\ backslash',
    "--help",
    "~",
    "x" * 30_000,
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = Tables(tmp_path_factory.mktemp("hostile") / "tables")
    tables.create()
    rows: list[tuple[str, tuple[Any, ...]]] = []
    for text in IDS:
        known = {"client_id": text, "group_instance_id": text, "client_host": text, "client_software_name": text}
        gone = text[:20_000] + "-gone"
        rows += [
            member(text, text, **known, joined_at_ms=NOW_MS - 60_000),
            member(text, gone, **known, ended_at_ms=NOW_MS - 9_000, end_cause="left", end_reason=text),
            transition(text, 1, "Stable", at_ms=NOW_MS - 50_000, cause=text[:200], evidence=text[:200] + "@7"),
            transition(text, 2, "Absent", entity="member", member_id=gone, at_ms=NOW_MS - 9_000, evidence=text[:200]),
            health(text, text, client_id=text, reasons=[text], status="late"),
            prediction(text, text, "poll", client_id=text),
            rejected(len(rows), source=text[:200], expected=text[:200], excerpt=text[:200]),
            *(
                disagreement(text, kind, len(rows) + place, member_id=text, client_id=text, source=text[:200])
                for place, kind in enumerate(DISAGREEMENTS)
            ),
            surprise(text, len(rows), member_id=text, predicted=text, seen=text, because=text, trace=text),
            rebalance(
                text,
                NOW_MS - 9_000,
                trigger="member_left",
                trigger_member_id=gone,
                trigger_client_id=text,
                reason=text,
                members_after=1,
                protocol_name=text,
                leader_member_id=text,
                stragglers=[{"member_id": text, "client_id": text, "waited_ms": 400, "joined": True}],
            ),
        ]
    tables.batch(0, *rows, progress(NOW_MS))
    return tables.root


def checked(out: str) -> None:
    """Nothing but printable text and line breaks, and nothing without end."""
    for line in out.splitlines():
        assert line.isprintable(), ascii(line)
    assert "\u0301" not in out
    assert len(out) < 60_000


@pytest.mark.parametrize("text", IDS, ids=lambda text: ascii(text)[:30])
def test_no_verb_interprets_an_id(hostile: Path, text: str) -> None:
    where = ("--tables", hostile)
    for question in (
        ("explain", f"--group={text}", "--evidence"),
        ("explain", f"--group={text}", f"--member={text}"),
        ("why", "--evidence", *where, "--", text),
        ("group", "--verbose", *where, "--", text),
        ("member", *where, "--", text, text[:20_000]),
        ("rejected",),
        ("disagreements",),
        ("disagreements", *where, "--", text),
    ):
        said = kardia(*question, *(() if "--" in question else where))
        if len(text) > 20_000 and question[0] == "member":
            assert (said.code, "too long together" in said.err) == (1, True)
            continue
        assert said.code == 0, said.err
        checked(said.out)
        assert "markup" not in text or "[bold red]markup" in said.out, "shown as it is, not as bold"
        assert ":warning:" not in text or ":warning:" in said.out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_forms_for_programs_are_ascii_and_exact(hostile: Path, form: str) -> None:
    said = kardia("groups", "--list", "-o", form, "--tables", hostile)
    assert said.out.isascii()
    assert all(line.isprintable() for line in said.out.splitlines())
    if form == "json":
        assert sorted(said.json()) == sorted(IDS)


def test_lists_are_bounded_and_printable(hostile: Path) -> None:
    for question in (("groups",), ("groups", "--list"), ("watch", "--for", "0")):
        out = kardia(*question, "--tables", hostile).out
        for line in out.splitlines():
            assert line.isprintable(), ascii(line)
    assert len(kardia("groups", "--tables", hostile).out) < 20_000


def test_a_sentence_cannot_be_forged(hostile: Path) -> None:
    forged = "a was evicted: its session expired. b"
    said = kardia("explain", f"--group={forged}", "--tables", hostile, "-o", "json").json()
    for sentence in said["sentences"]:
        bare = sentence["text"].replace(f'"{forged}', "")
        assert "was evicted" not in bare, sentence["text"]


def test_errors_show_ids_escaped(hostile: Path) -> None:
    for question in (
        ("explain", "--group=\x1b[31mnone"),
        ("explain", "--group=--help", "--member=\x1b[31mnone"),
        ("groups", "--cluster=\x1b[31mnone"),
        ("why", "g", "--at", "\x1b[31m"),
    ):
        said = kardia(*question, "--tables", hostile)
        assert said.code in (1, 2)
        assert said.out == ""
        assert said.err.rstrip("\n").isprintable(), ascii(said.err)
        assert len(said.err) < 2_000
