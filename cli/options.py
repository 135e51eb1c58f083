"""Options as people type them: several values after one name (`--request-log kafka-request.log*`), `--group G`, and
places: paths or `file://`, and `s3://` for tables, anything else refused with exit status 2."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand

from cli.extras import refused
from stores.locations import LocationError, folder, local

if TYPE_CHECKING:
    from pydantic import ValidationError

    from stores.locations import Folder as Folder  # as itself: the verbs take it from here
else:

    class Folder:
        """Stands for `Path | Store`, which typer cannot take: it asks the option's parser alone."""


def place(given: str) -> Path:
    """The path that an option means (`stores.locations`)."""
    try:
        return local(given)
    except LocationError as error:
        raise typer.BadParameter(str(error)) from None


def tables_place(given: str) -> Folder:
    """The folder that an option of tables means, of this machine or of a store."""
    try:
        return folder(given)
    except LocationError as error:
        raise typer.BadParameter(str(error)) from None


def there(tables: Folder) -> None:
    """LocationError for a folder of this machine that does not exist: a name that was mistyped would look like tables
    that nobody has written yet. An empty one is taken, as a job may begin later; a store is asked when it is read."""
    if isinstance(tables, Path) and not tables.is_dir():
        raise LocationError(
            "there is no such directory",
            f"--tables {tables}",
            "correct the name; where the job has not begun yet, make the directory first",
            "one that `kardia stream` or `kardia replay` has written",
        )


TABLES_PLACE: dict[str, Any] = {"parser": tables_place, "metavar": "<path or s3://>"}
"""What every option has that takes tables."""

PLACE: dict[str, Any] = {"parser": place, "metavar": "<path>"}
"""What every option has that takes a path. tests/kardia/test_paths.py says if one has it not."""


def problems(error: ValidationError) -> list[str]:
    """What is wrong with settings, each with the name of the setting; several settings that disagree have none."""
    return [
        ": ".join(part for part in (".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) if part)
        for one in error.errors()
    ]


class Command(TyperCommand):
    """What every verb is: `--json` says what `-o json` says, where the verb has forms to choose from; a verb that needs
    what is not installed is refused with a sentence (`cli.extras`)."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; status 2 if it cannot be run here."""
        if sentence := refused(str(self.name)):
            typer.echo(sentence, err=True)
            raise typer.Exit(2)
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--json` as `-o json`, then the usual parsing."""
        if any("-o" in parameter.opts for parameter in self.params):
            end = args.index("--") if "--" in args else len(args)
            args = [word for one in args[:end] for word in (("-o", "json") if one == "--json" else (one,))] + args[end:]
        return super().parse_args(ctx, args)


class SeveralValues(Command):
    """A command whose options named in `several` take every following word up to the next option."""

    several: ClassVar[frozenset[str]] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option's name before each of its values; the rest is the usual parsing."""
        return super().parse_args(ctx, spread(args, self.several))


class GroupEitherWay(Command):
    """A command whose first argument is the group; `--group GROUP` is the same, as in Kafka's own tool."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the value of `--group` where the argument stands; the rest is the usual parsing."""
        return super().parse_args(ctx, positional(args, "--group"))


def positional(args: list[str], name: str) -> list[str]:
    """`--at T --group g m` as `g --at T m`, where `name` is --group.

    Words after `--` are left alone; a value that looks like an option goes behind one of its own.
    """
    for position, word in enumerate(args):
        if word == "--":
            break
        if word.startswith(name + "="):
            value, rest = word.removeprefix(name + "="), args[position + 1 :]
        elif word == name and position + 1 < len(args):
            value, rest = args[position + 1], args[position + 2 :]
        else:
            continue
        others = [*args[:position], *rest]
        return [*others, "--", value] if value.startswith("-") else [value, *others]
    return args


class StateEitherWay(Command):
    """`--state` of Kafka's own tool: with a value it chooses the groups in that state, without one it is a flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--state Stable` as `--in-state Stable`; the rest is the usual parsing."""
        return super().parse_args(ctx, valued(args, "--state", "--in-state"))


def valued(args: list[str], flag: str, option: str) -> list[str]:
    """`flag` as `option` where a value follows."""
    return [
        option
        if word == flag and "--" not in args[:position] and args[position + 1 :] and args[position + 1][:1] != "-"
        else word
        for position, word in enumerate(args)
    ]


def spread(args: list[str], several: frozenset[str]) -> list[str]:
    """`--x a b --y c` as `--x a --x b --y c`, where `several` names --x. Words after `--` are left alone."""
    spread_args: list[str] = []
    name = ""
    taken = 0
    for position, word in enumerate(args):
        if word == "--":
            return spread_args + args[position:]
        if word.startswith("-") and word != "-":
            name = word if word in several else ""
            taken = 0
            spread_args.append(word)
            continue
        if name and taken:
            spread_args.append(name)
        taken += 1
        spread_args.append(word)
    return spread_args
