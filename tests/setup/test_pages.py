"""What pages and docstrings name exists: links, paths, modules, commands with their options, targets of make.

Goal: somebody who follows what a page says finds it. Method: everything of that shape in all Markdown files and in the
docstrings of all modules is looked up, on the disk and in the command line itself.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from cli.main import app
from cli.options import GroupEitherWay

ROOT = Path(__file__).resolve().parents[2]

ROOMS = (
    *("cli", "bench", "demo", "supervise", "dashboards", "live", "api", "spark_jobs", "ingest", "stores", "kardia"),
    *("tests", "scripts"),
)

FOLDERS = (*ROOMS, "docs", "compose")

NOT_OURS = {"kardia-data", "build", "dist", "spark-warehouse"}
"""Folders that runs leave behind, beside those whose name begins with a dot."""

NO_MODULE = {"kardia.yaml", "kardia.events", "kardia.tableVersion"}
"""Names that begin like a module: a file, the topic, a property of tables."""

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]

ROOT_OPTIONS = {"--help", "--version", "--install-completion", "--show-completion"}


def found(pattern: str) -> list[Path]:
    """Files of the project."""
    paths = [path.relative_to(ROOT) for path in ROOT.rglob(pattern)]
    return sorted(path for path in paths if not any(part[0] == "." or part in NOT_OURS for part in path.parts))


PAGES = found("*.md")


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^(```|~~~).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> Iterator[str]:
    """Targets of links and pictures that are no addresses of the web."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(text)) + re.findall(r'(?:src|srcset|href)="([^"]+)"', prose(text))
    return (target for target in targets if not re.match(r"[a-z]+:", target))


def anchors(text: str) -> set[str]:
    """Names of the headings, as GitHub and others make them."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def lost_links(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    lost = []
    for target in links((ROOT / page).read_text("utf-8")):
        name, _, anchor = target.partition("#")
        path = ROOT / page.parent / name if name else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text("utf-8"))):
            lost.append(target)
    return lost


def lost_paths(text: str) -> list[str]:
    """Paths of this project in a text that are none."""
    # `FILE::TEST` is relative to tests; `tests/api/test_security.py` looks it up.
    paths = re.findall(rf"(?<![\w/.<-])(?>(?:{'|'.join(FOLDERS)})/[\w./*-]*)(?!::)", text)
    paths = [path.rstrip(".") for path in paths]
    return [path for path in paths if not (any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists())]


def lost_modules(text: str) -> list[str]:
    """Modules of this project, or names in them, that a text has in back quotes and that are none."""
    return [
        name
        for name in re.findall(rf"`((?:{'|'.join(ROOMS)})(?:\.\w+)+)(?:\(\))?`", text)
        if name not in NO_MODULE and not is_there(name)
    ]


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a word in the module that its beginning names."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                source = path.read_text("utf-8")
                return all(re.search(rf"\b{part}\b", source) for part in parts[length:])
    return False


def commands(text: str) -> Iterator[str]:
    """Command lines of a page: in fenced blocks, lines that continue put together, and in back quotes."""
    blocks = re.findall(r"^(?:```|~~~)\w*\n(.*?)^(?:```|~~~)$", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for line in (*lines, *re.findall(r"`([^`]+)`", prose(text))):
        command = " ".join(line.removeprefix("$ ").removeprefix(".venv/bin/").split())
        if re.match(r"(kardia|make|python -m) [\w-]", command):
            yield command


def wrong_command(command: str) -> str:
    """What of a command does not exist, empty if all does."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return next((word for word in words[1:] if "=" not in word and word not in targets), "")
    if words[0] == "python":
        return "" if words[2].partition(".")[0] not in ROOMS or importlib.util.find_spec(words[2]) else words[2]
    if words[1] not in COMMANDS:
        return "" if words[1] in {"VERB", *ROOT_OPTIONS} else words[1]
    options = {name for option in COMMANDS[words[1]].params for name in (*option.opts, *option.secondary_opts)}
    if isinstance(COMMANDS[words[1]], GroupEitherWay):
        options.add("--group")
    given = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
    return " ".join(sorted(given - options - {"--help", "-h"}))


def docstrings() -> Iterator[tuple[Path, str]]:
    """The docstring of each module."""
    for path in found("*.py"):
        yield path, ast.get_docstring(ast.parse((ROOT / path).read_text("utf-8"))) or ""


def test_every_link_leads_somewhere() -> None:
    assert len(PAGES) > 30
    assert {str(page): lost for page in PAGES if (lost := lost_links(page))} == {}


def test_every_path_that_is_named_is_there() -> None:
    named = {str(page): lost_paths(prose((ROOT / page).read_text("utf-8"))) for page in PAGES}
    named |= {str(path): lost_paths(text) for path, text in docstrings()}
    assert {name: lost for name, lost in named.items() if lost} == {}


def test_every_module_that_is_named_is_there() -> None:
    named = {str(page): lost_modules((ROOT / page).read_text("utf-8")) for page in PAGES}
    named |= {str(path): lost_modules(text) for path, text in docstrings()}
    assert {name: lost for name, lost in named.items() if lost} == {}


def test_every_command_that_is_shown_is_there() -> None:
    shown = {command: page for page in PAGES for command in commands((ROOT / page).read_text("utf-8"))}
    assert len(shown) > 60
    assert {command: (str(shown[command]), wrong) for command in shown if (wrong := wrong_command(command))} == {}


def test_the_contents_of_docs_name_every_file_in_it() -> None:
    linked = {(ROOT / "docs" / link).resolve() for link in links((ROOT / "docs" / "README.md").read_text("utf-8"))}
    files = {path for path in (ROOT / "docs").rglob("*") if path.is_file()} - {ROOT / "docs" / "README.md"}
    assert len(files) > 40
    assert sorted(str(path.relative_to(ROOT)) for path in files - linked) == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path) for path, text in docstrings() if not text and (ROOT / path).stat().st_size]
    assert silent == []


@pytest.mark.parametrize(
    "command", ["kardia whither", "kardia serve --tabels out", "make demos", "python -m scripts.write_references"]
)
def test_a_command_that_is_none_is_found(command: str) -> None:
    assert wrong_command(command)


def test_a_path_and_a_module_that_are_none_are_found() -> None:
    assert lost_paths("see `kardia/model/states.py`, and api/store.py") == ["kardia/model/states.py"]
    assert lost_modules("`kardia.model.states`, `api.store`, `api.store.Nothing`") == [
        "kardia.model.states",
        "api.store.Nothing",
    ]
