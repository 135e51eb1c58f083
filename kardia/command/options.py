"""Options that take several values after one name, as a shell writes them: `--request-log kafka-request.log*`."""

from __future__ import annotations

from typing import Any, ClassVar

from typer.core import TyperCommand


class SeveralValues(TyperCommand):
    """A command whose options named in `several` take every following word up to the next option."""

    several: ClassVar[frozenset[str]] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option's name before each of its values; the rest is the usual parsing."""
        return super().parse_args(ctx, spread(args, self.several))


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
