"""Lag as tables of a terminal, with its reasons as sentences. Every text of a stranger passes `words.name`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group as Pile
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kardia.story import lagging, words
from kardia.tables import LAG_STATES

Answer = dict[str, Any]

_STYLES = {"OK": "green", "WARN": "yellow", "UNKNOWN": "magenta"}
_NAME_CHARS_MAX = 48


def groups(found: Answer) -> RenderableType:
    """Groups, one per line, with a sentence for each reason."""
    table = _table("GROUP", "STATUS")
    for heading in ("LAG", "TIME LAG", "BEHIND", "PARTITIONS", "MEMBERS"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found["groups"]:
        table.add_row(
            _name(row["group_id"]),
            _status(row["status"]),
            _lag(row),
            Text(_time(row)),
            _number(row["partitions_behind"]),
            _number(row["partitions"]),
            _number(row["members"]),
        )
    lines = [Text(f"{words.name(row['group_id'])}: {one['text']}") for row in found["groups"] for one in row["why"]]
    if not found["groups"]:
        # Nothing is written about commits before ends are looked at: of those that were read nothing is known here.
        nobody = (
            []
            if found["known"]["as_of_ms"] is None
            else [Text("No group has committed an offset, as far as was read.")]
        )
        return Pile(*nobody, known(found["known"]))
    if found["left_off"]:
        lines.append(Text(f"There are {found['left_off']} more; --limit chooses.", style="dim"))
    return Pile(table, *lines, known(found["known"]))


def group(found: Answer, spoken: Sequence[str] = ()) -> RenderableType:
    """One group: its partitions, and why they fall behind. `spoken`: its protocols."""
    row = found["group"]
    if spoken == ["share"]:
        return Text(
            f"Group {words.name(row['group_id'], 200)} is a share group: it commits no offsets, and the state of its "
            "shares is not read, so its lag is not known."
        )
    if found["known"]["as_of_ms"] is None:
        return _committed(found)
    table = _table("PARTITION", "STATUS")
    for heading in ("COMMITTED", "END", "LAG", "TIME LAG"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("HELD BY", no_wrap=True)
    notes: list[str] = []
    for one in found["partitions"]:
        which = f"{words.name(one['topic'], _NAME_CHARS_MAX)}-{one['partition']}"
        table.add_row(
            Text(which),
            _status(one["status"]),
            _number(one["committed_offset"]),
            _number(one["end_offset"]),
            _lag(one),
            Text(_time(one)),
            Text("nobody") if one["held"] == "nobody" else _name(one["client_id"] or one["member_id"]),
        )
        notes += _notes(which, one)
    told = [Text(one["text"]) for one in row["why"]] + [Text(note) for note in notes]
    if found["left_off"]:
        told.append(Text(f"There are {found['left_off']} more; --limit chooses.", style="dim"))
    return Pile(Text(_sentence(row, found["known"])), table, *told, known(found["known"]))


def _committed(found: Answer) -> RenderableType:
    """What a group has committed, when, and who, where nobody has looked at ends."""
    table = _table("PARTITION")
    table.add_column("COMMITTED", justify="right", no_wrap=True)
    for heading in ("AT", "BY"):
        table.add_column(heading, no_wrap=True)
    for one in found["partitions"]:
        table.add_row(
            Text(f"{words.name(one['topic'], _NAME_CHARS_MAX)}-{one['partition']}"),
            _number(one["committed_offset"]),
            Text(words.instant(one["committed_at_ms"])),
            _name(one["committed_by_client_id"] or one["committed_by"]),
        )
    left_off = [Text(f"There are {found['left_off']} more; --limit chooses.", style="dim")] if found["left_off"] else []
    return Pile(*([table] if found["partitions"] else []), *left_off, known(found["known"]))


def _sentence(row: Answer, known_to: Answer) -> str:
    """How far a group is behind, in one sentence."""
    name = words.name(row["group_id"], 200)
    if not row["partitions"]:
        return f"Group {name} has committed no offset, as far as was read."
    partitions = words.count(row["partitions"], "partition")
    if known_to["stale"] or row["lag"] is None:
        return f"Group {name} has committed offsets for {partitions}; its lag is not known."
    if not row["lag"]:
        said = f"Group {name} has read everything that was there, of {partitions}"
    else:
        at_least = "" if row["lag_most"] is not None else "at least "
        said = f"Group {name} is {at_least}{words.count(row['lag'], 'record')} behind, {_time(row)}, in "
        said += f"{row['partitions_behind']} of {partitions}"
    unknown = row["partitions"] - row["partitions_known"]
    return f"{said}; of {unknown} that is not known." if unknown else f"{said}."


def _notes(which: str, one: Answer) -> list[str]:
    if one["state"] in ("known", "gone", "forgotten"):
        return []
    if one["state"] == "below_start" and one["deleted_unread"] is not None:
        return [f"{which}: {words.count(one['deleted_unread'], 'record')} were deleted before the group read them."]
    return [f"{which}: {LAG_STATES[one['state']]}."]


def known(found: Answer) -> Text:
    """How far lag is known, in words."""
    if found["as_of_ms"] is None:
        return Text(lagging.NO_ENDS, "yellow")
    text = f"Commits and ends as of {words.instant(found['as_of_ms'])}."
    if found["stale"]:
        text += " That is too long ago to say anything of now."
    return Text(text, style="yellow" if found["stale"] else "dim")


def _time(row: Answer) -> str:
    if row["lag"] is None:
        return "-"
    if not row["lag"]:
        return "0"
    return lagging.time_lag(row["time_lag_least_ms"], row["time_lag_ms"], row.get("time_lag_most_ms"))


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table


def _name(text: str | None) -> Text:
    return Text("-" if text is None else words.name(text, _NAME_CHARS_MAX))


def _lag(row: Answer) -> Text:
    """Records that are not read; where more may have come by the commit, that it is the least."""
    if row["lag"] is None or row["lag_most"] is not None:
        return _number(row["lag"])
    return Text(f"at least {row['lag']}")


def _number(number: int | None) -> Text:
    return Text("-" if number is None else str(number))


def _status(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, "bold red"))
