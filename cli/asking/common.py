"""What verbs that ask share: where the answers are, instants as people write them, output formats, errors.

Imports nothing heavy before a verb is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.extras import lacking
from cli.options import PLACE, TABLES_PLACE, Folder

if TYPE_CHECKING:
    from rich.console import Console

    from cli.asking.answers import Answers
    from cli.asking.questions import Questions

DEFAULT_API = "http://127.0.0.1:8765"
"""Where `kardia serve` listens by default."""

_WHERE = "Where to look"

TablesOption = Annotated[
    Folder | None,
    typer.Option(
        "--tables",
        envvar="KARDIA_TABLES",
        rich_help_panel=_WHERE,
        help="Folder of the tables, here or s3://; read directly.",
        **TABLES_PLACE,
    ),
]
ApiOption = Annotated[
    str | None,
    typer.Option(
        "--api",
        envvar="KARDIA_API",
        rich_help_panel=_WHERE,
        help=f"Address of a running `kardia serve`; {DEFAULT_API} unless --tables is given.",
    ),
]
TokenOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="KARDIA_TOKEN_FILE",
        rich_help_panel=_WHERE,
        help="File with the API's bearer token on its first line.",
        **PLACE,
    ),
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", rich_help_panel=_WHERE, help="Cluster, where there are several.")
]
_INSTANT = "21:47 (the last one), yesterday 22:00, 10m (ago), RFC 3339 or epoch ms."
AtOption = Annotated[str | None, typer.Option("--at", metavar="INSTANT", help=f"What was so then: {_INSTANT}")]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="INSTANT", help=f"Not before this instant: {_INSTANT}")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="Before this instant.")]
TimezoneOption = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        envvar="KARDIA_TIMEZONE",
        metavar="ZONE",
        help="Zone of times that name none: IANA name, UTC or +05:30; this machine's if absent.",
    ),
]
GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="The group; --group GROUP is the same.")]
AnyGroupArgument = Annotated[
    str | None, typer.Argument(metavar="GROUP", help="The group; --group GROUP is the same. Without it: all groups.")
]


class TextOutput(StrEnum):
    """Forms of a story."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class TableOutput(StrEnum):
    """Forms of a list."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


TableOutputOption = Annotated[TableOutput, typer.Option("-o", "--output", help="Form of the answer.")]


@contextmanager
def asking(
    verb: str,
    tables: Folder | None,
    api: str | None,
    token_file: Path | None,
    cluster: str | None,
    timezone: str | None = None,
    *,
    no_answer: int = 1,
) -> Iterator[Questions]:
    """Questions to the tables or the API; an error becomes one sentence and an exit status.

    `timezone` is that of times that name none. `no_answer` is the status where there is none; a verb whose 1 means
    something else has another.
    """
    from cli.asking.answers import QuestionError
    from cli.asking.questions import Questions

    try:
        with _opened(tables, api, token_file, None if no_answer == 1 else no_answer) as answers:
            yield Questions(answers, cluster, _zone(timezone))
    except QuestionError as error:
        stderr().print(f"kardia {verb}: {error}")
        raise typer.Exit(no_answer if error.status == 1 else error.status) from None


def _zone(name: str | None) -> tzinfo:
    from cli.asking.answers import QuestionError
    from cli.asking.zones import machine_zone
    from ingest.errors import SettingsError
    from ingest.stamps import zone_named
    from kardia.story import words

    if not name:
        return machine_zone()
    try:
        return zone_named(name)
    except SettingsError:
        raise QuestionError(
            f"--timezone {words.quoted(name)} is no zone; expected an IANA name such as Europe/Berlin, UTC, or an "
            "offset such as +05:30.",
            2,
        ) from None


def _opened(tables: Folder | None, api: str | None, token_file: Path | None, no_tables: int | None) -> Answers:
    from cli.asking.answers import HttpAnswers, QuestionError, TableAnswers
    from kardia.story import words

    tables, api = _named_here(tables, api)
    if tables is not None and api is not None:
        raise QuestionError(
            "both --tables and --api are given (on the command line, or as KARDIA_TABLES and KARDIA_API); expected "
            "one of them; leave the other out.",
            2,
        )
    if tables is None:
        return HttpAnswers(api or DEFAULT_API, None if token_file is None else _token(token_file))
    if isinstance(tables, Path) and not tables.is_dir():
        raise QuestionError(
            f"--tables {words.name(str(tables), 200)} is no directory; expected one that `kardia stream` or "
            "`kardia replay` has written.",
            2 if no_tables is None else no_tables,
        )
    if sentence := lacking("serve", "reading --tables in this process"):
        raise QuestionError(sentence, 2 if no_tables is None else no_tables)
    return TableAnswers(tables)


def _named_here(tables: Folder | None, api: str | None) -> tuple[Folder | None, str | None]:
    """Of the two places the one that is named on the command line, where the other one is the environment's."""
    import os

    from stores.locations import folder

    if tables is None or api is None:
        return tables, api
    is_environments = tables == folder(os.environ.get("KARDIA_TABLES", "")), api == os.environ.get("KARDIA_API")
    if is_environments == (False, True):
        return tables, None
    return (None, api) if is_environments == (True, False) else (tables, api)


def _token(path: Path) -> str:
    from cli.asking.answers import QuestionError
    from kardia.story import words

    shown = words.name(str(path), 200)
    try:
        lines = path.read_text("ascii").split()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "not ASCII"
        raise QuestionError(
            f"--token-file {shown} cannot be read ({said}); expected a token on its first line.", 2
        ) from None
    if not lines:
        raise QuestionError(f"--token-file {shown} is empty; expected a token on its first line.", 2)
    return lines[0]


def instant_option(
    questions: Questions, name: str, text: str | None, group: str | None, not_before_ms: int | None = None
) -> int | None:
    """Epoch milliseconds of an option; QuestionError names what was expected. `when.instant` says what is taken; what
    is relative counts from where the logs of the group's broker, or of the cluster, are read to.

    In which zone a text without one was read is told, as nobody else knows which one was meant.
    """
    from cli.asking import when
    from cli.asking.answers import QuestionError
    from kardia.story import words

    if text is None:
        return None
    try:
        reached_ms = questions.reached_ms(group) if when.is_relative(text) else 0
        meant = when.instant(text, reached_ms, questions.zone, not_before_ms)
    except ValueError as error:
        raise QuestionError(f"{name} {words.quoted(text)} is {error}; expected {when.EXPECTED}.", 2) from None
    if meant.assumed is not None:
        stderr().print(f"{name} {text} is {when.shown(meant)}.", style="dim")
    return meant.at_ms


def range_options(
    questions: Questions, from_: str | None, to: str | None, group: str | None = None
) -> tuple[int | None, int | None]:
    """Epoch milliseconds of --from and --to, about a group or the whole cluster."""
    from cli.asking.answers import QuestionError

    from_ms = instant_option(questions, "--from", from_, group)
    to_ms = instant_option(questions, "--to", to, group, from_ms)
    is_before = from_ms is not None and to_ms is not None and to_ms < from_ms
    if is_before or _is_another_day(questions, from_ms, to_ms, to, group):
        raise QuestionError("--to is before --from; expected an end that is not before its beginning.", 2)
    if from_ms is not None:
        questions.require_known("--from", from_ms, group)
    return from_ms, to_ms


def _is_another_day(
    questions: Questions, from_ms: int | None, to_ms: int | None, to: str | None, group: str | None
) -> bool:
    """Whether an end without a day had passed before the beginning on its day, and comes again after all that was read:
    `--from 21:47 --to 21:40` is a slip, `--from 23:50 --to 00:10` is none."""
    from cli.asking import when

    if from_ms is None or to_ms is None or to is None or not when.is_relative(to):
        return False
    if to_ms <= questions.reached_ms(group):
        return False
    return when.day_of(from_ms, questions.zone) != when.day_of(to_ms, questions.zone) and (
        to_ms - from_ms > when.HALF_A_DAY_MS
    )


WIDTH_MAX = 2_000
"""Columns of a table that is not cut to the terminal: a line that is too long is wrapped by it, as kubectl's are."""


def stdout() -> Console:
    """Console for answers: nothing in a text is markup, an emoji or a number to colour; nothing is cut."""
    from rich.console import Console

    return Console(width=WIDTH_MAX, soft_wrap=True, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """Console for what went wrong."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_json(value: Any) -> None:
    """JSON in ASCII: no control character and no mark of direction of a stranger's id reaches a terminal."""
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=True))


def print_as(output: TextOutput | TableOutput, value: Any) -> None:
    """In the form for programs that was asked for."""
    (print_yaml if output.value == "yaml" else print_json)(value)


def print_rows(
    output: TableOutput, name: str, found: tuple[list[Any], bool], as_table: Callable[[list[Any], bool], Any]
) -> None:
    """Rows, and whether there are more of them, as a table or, under `name`, in the form for programs."""
    rows, more = found
    if output is TableOutput.TABLE:
        stdout().print(as_table(rows, more))
    else:
        print_as(output, {name: rows, "more": more})


def print_yaml(value: Any) -> None:
    """YAML in ASCII, for the same reason."""
    import yaml

    typer.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=False, width=10_000), nl=False)
