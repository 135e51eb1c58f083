"""Groups and members as tables of a terminal, worst margin first. Every text of a stranger passes `words.name`.

What is left of a deadline is told as the API tells it: nothing while the tables are behind, because then the silence is
the feed's and not the member's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.console import Group as Pile
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kardia.statuses import STATUS_SEVERITY
from kardia.story import reassignment, rebalances, words

Answer = dict[str, Any]

_STATUS_STYLES = {
    "ok": "green",
    "late": "yellow",
    "awaited": "bold yellow",
    "imminent": "bold red",
    "overdue": "bold red",
    "unseen": "magenta",
    "unknown": "magenta",
}
_PASSING = frozenset(STATUS_SEVERITY) - {"ended", "unknown"}
"""What may have become something else since."""
_NAME_CHARS_MAX = 48

LAG_IS = "Committed offsets and lag: kardia lag GROUP."


def fresh(freshness: Answer) -> Text:
    """How far the tables reach, in words."""
    reached_ms, age_ms = freshness["complete_as_of_ms"], freshness["age_ms"]
    if reached_ms is None:
        return Text("Nothing has been read yet.", style="yellow")
    if freshness["stale"]:
        return Text(f"The logs were read up to {words.instant(reached_ms)}; this is the state then.", style="yellow")
    return Text(f"The logs were read up to {words.instant(reached_ms)}, {words.span(age_ms)} ago.", style="dim")


REQUEST_LOG_RUNG = 5
"""Level of evidence. From here on everything but polls can be asked."""


def groups(rows: list[Answer], more: bool, *, stale: bool, narrow: bool = False) -> RenderableType:
    """Groups, one per line."""
    table = _table("GROUP", "STATUS", "SESSION LEFT", "POLL LEFT", "MEMBERS", "STATE")
    if not narrow:
        table.add_column(_unit_heading(row["protocols"] for row in rows), justify="right", no_wrap=True)
        table.add_column("LAST REBALANCE", no_wrap=True)
    lowered = any(row["rung"] < REQUEST_LOG_RUNG for row in rows)
    if lowered:
        table.add_column("LEVEL", no_wrap=True)
    for row in rows:
        last = row["last_rebalance"]
        cells = [
            _name(row["group_id"]),
            _status(row["shown"], stale, row["next_session_deadline"], row["next_poll_deadline"]),
            _left(row["next_session_deadline"]),
            _left(row["next_poll_deadline"]),
            _members(row),
            _name(row["state"]),
            _number(row["generation_id"]),
            _began(last),
        ]
        table.add_row(*cells[: len(table.columns) - lowered], *([_level(row["rung"])] if lowered else []))
    return Pile(table, Text("There are more; --search, --state and --limit choose.", style="dim")) if more else table


def _members(row: Answer) -> Text:
    """How many members a group has; where nothing is known of it, that is not none."""
    total = row["members"]["total"]
    return Text("?") if row["state"] == "Unknown" and not total else _number(total)


def _level(rung: int) -> Text:
    return Text(f"{rung}/6")


def _began(rebalance: Answer | None) -> Text:
    """When a rebalance began, and by what."""
    if rebalance is None:
        return Text("-")
    return Text(f"{words.instant(rebalance['started_at_ms'])} {words.name(rebalance['trigger'])}")


def groups_of_archive(rows: list[Answer], more: bool, gone_through: dict[str, Answer]) -> RenderableType:
    """Groups, one per line, with what each went through: how they were at the end of a log says nothing of it."""
    table = _table("GROUP", "EVICTED", "OTHER ENDS", "REBALANCES", "REBALANCING", "MEMBERS", "STATE")
    table.add_column(_unit_heading(row["protocols"] for row in rows), justify="right", no_wrap=True)
    table.add_column("LAST REBALANCE", no_wrap=True)
    lowered = any(row["rung"] < REQUEST_LOG_RUNG for row in rows)
    if lowered:
        table.add_column("LEVEL", no_wrap=True)
    for row in rows:
        last, one = row["last_rebalance"], gone_through.get(row["group_id"])
        evicted, ends, rebalances, lasted = (
            (one["evictions"], sum(one["ends"].values()), one["rebalances"], one["rebalancing_ms"])
            if one is not None
            else (0, 0, 0, None)
        )
        table.add_row(
            _name(row["group_id"]),
            Text(str(evicted), style="bold red" if evicted else "dim"),
            _number(ends - evicted),
            _number(rebalances),
            Text(words.span(lasted) if lasted else "-"),
            _members(row),
            _name(row["state"]),
            _number(row["generation_id"]),
            _began(last),
            *([_level(row["rung"])] if lowered else []),
        )
    return Pile(table, Text("There are more; --search, --state and --limit choose.", style="dim")) if more else table


def group(row: Answer, members: list[Answer] | None = None) -> RenderableType:
    """One group in a few lines; `members`, where they are known, tell what it has: epochs or generations."""
    state = words.name(row["state"])
    spoken = {one["protocol"] for one in members or ()} | set(row["protocols"])
    unit = "generation" if spoken <= {"classic"} else "epoch"
    if row["state"] == "Unknown":
        state = "its state is not known" + " yet" * (row["state_cause"] is None)
    if row["generation_id"] is not None:
        state += f" in {unit} {row['generation_id']}"
    if row["state_since_at_ms"] is not None:
        state += f" since {words.instant(row['state_since_at_ms'])} ({words.escaped(row['state_cause'] or '')})"
    if row["state_certainty"] != "exact" and row["state"] != "Unknown":
        state += f", {words.name(row['state_certainty'])}"
    last = row["last_rebalance"]
    lines = [
        Text.assemble("Group ", _name(row["group_id"], 200), f" of cluster {words.name(row['cluster_id'])}: {state}")
    ]
    if last is not None:
        member_id = last["trigger_member_id"]
        client_id = last["trigger_client_id"]
        who = words.name(client_id) if client_id else words.called(member_id) if member_id else "an unknown member"
        length_ms = last["duration_ms"]
        lasted = "of unknown length" if length_ms is None else f"{words.took(length_ms)} long"
        lasted = "under way" if last["running"] else lasted
        began, why = words.instant(last["started_at_ms"]), rebalances.why_began(last["trigger"], who)
        lines.append(Text(f"Last rebalance {began}, {lasted}: {why}."))
    return Pile(*lines)


def _unit_heading(spoken: Iterable[list[str]]) -> str:
    """What stands over the numbers of groups: generations, epochs of the newer protocols, or both."""
    units = {"EPOCH" if set(some) - {"classic"} else "GEN" for some in spoken}
    return "/".join(sorted(units, reverse=True)) or "GEN"


def evidence(found: Answer) -> list[str]:
    """On which level of evidence a group stands, and what cannot be asked there; a line for each thing that lacks."""
    lacking = [one for one in found["questions"] if one["answered"] != "yes"]
    if not lacking:
        return [f"Evidence: {found['read']}."]
    only = " only" * (found["rung"] < REQUEST_LOG_RUNG)
    lines = [f"Evidence: {found['read']}{only} (level {found['rung']} of 6)."]
    for needs in dict.fromkeys(one["needs"] for one in lacking):
        asked = ", ".join(
            f"“{one['question']}”" + " (in part)" * (one["answered"] == "partly")
            for one in lacking
            if one["needs"] == needs
        )
        lines.append(f"{asked}: {needs}.")
    return lines


_MEMBER_HEADINGS = ("CLIENT", "STATUS", "SESSION LEFT", "POLL LEFT", "POLL SIGN", "STATIC ID")
_EPOCH_HEADINGS = ("EPOCH", "HAS", "TO HAVE", "ON THE WAY")
_WIDE_HEADINGS = ("HOST", "MEMBER")
_ASSIGNED_HEADINGS = ("CURRENT PARTITIONS", "TARGET PARTITIONS")
_VERBOSE_HEADINGS = ("LIBRARY", "SESSION TIMEOUT", "REBALANCE TIMEOUT", "JOINED")


def members(rows: list[Answer], *, stale: bool, narrow: bool = False, verbose: bool = False) -> RenderableType:
    """Members, one per line, the least margin first."""
    epochs = not narrow and any(row["assignment"] is not None for row in rows)
    headings = (*_MEMBER_HEADINGS, *_EPOCH_HEADINGS * epochs, *_WIDE_HEADINGS * (not narrow))
    table = _table(*headings, *_VERBOSE_HEADINGS * verbose, *_ASSIGNED_HEADINGS * (verbose and epochs))
    who = _names(rows)
    for row in sorted(rows, key=margin):
        cells = [
            _name(row["client_id"]),
            _status(row["shown"], stale, row["session"], row["poll"]),
            _left(row["session"]),
            _left(row["poll"]),
            _sign(row["poll"], narrow=narrow),
            _name(row["group_instance_id"]),
        ]
        if epochs:
            cells += _epoch_cells(row, who)
        if not narrow:
            cells += [_name(row["client_host"]), _name(row["member_id"], 200 if verbose else _NAME_CHARS_MAX)]
        if verbose:
            library = "/".join(
                words.name(part) for part in (row["client_software_name"], row["client_software_version"]) if part
            )
            cells += [
                Text(library or "-"),
                _span(row["session_timeout_ms"]),
                _span(row["rebalance_timeout_ms"]),
                Text(words.instant(row["joined_at_ms"])),
            ]
            if epochs:
                found = row["assignment"] or {}
                cells += [_assigned(found.get("assigned")), _assigned(found.get("assigned_target"))]
        table.add_row(*cells)
    return table


def _names(rows: list[Answer]) -> Callable[[str], str]:
    """Who an id is among some members: its static id or client id, where no other has the same."""
    named = {row["member_id"]: row["group_instance_id"] or row["client_id"] or row["member_id"] for row in rows}
    count = Counter(named.values())
    known = {member_id: name if count[name] == 1 else member_id for member_id, name in named.items()}
    return lambda member_id: words.name(known.get(member_id, member_id))


def _epoch_cells(row: Answer, who: Callable[[str], str]) -> list[Text]:
    """Target and current assignment of a member that has an epoch, as cells of its line."""
    found = row["assignment"]
    if found is None:
        return [Text("-")] * len(_EPOCH_HEADINGS)
    return [Text(_epoch(found)), _number(_has(found)), _number(found["partitions_target"]), Text(_on_the_way(row, who))]


def _assigned(text: str | None) -> Text:
    """Partitions by topic."""
    return Text("-" if text is None else "none" if not text else words.escaped(words.shortened(text, 2_000)))


def _epoch(found: Answer) -> str:
    own, group_epoch = found["member_epoch"], found["group_epoch"]
    if own is None:
        return "?"
    return str(own) if group_epoch in (None, own) else f"{own} of {group_epoch}"


def _has(found: Answer) -> int | None:
    """Partitions that a member has, those among them that it must give up."""
    has, revoking = found["partitions"], found["partitions_revoking"]
    return None if has is None else int(has) + (0 if revoking is None else int(revoking))


def _on_the_way(row: Answer, who: Callable[[str], str]) -> str:
    """What it must give up, for whom and until when at the latest; what it waits for, and of whom."""
    found = row["assignment"]
    gives = reassignment.given_up(row["member_id"], found["moving"], who)
    gets = reassignment.awaited(row["member_id"], found["moving"], who)
    parts = []
    if gives:
        told = "must give up" if found["partitions_revoking"] else "is to give up, and is not told yet,"
        until_ms = found["awaited_until_at_ms"]
        until = f", until {words.instant(until_ms)} at the latest" if until_ms is not None else ""
        parts.append(f"{told} {words.listing(gives)}{until}")
    if gets:
        parts.append(f"waits for {words.listing(gets)}")
    return "; ".join(parts) or "-"


def member(row: Answer, *, stale: bool) -> RenderableType:
    """One life of a member, line by line."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    session, poll = row["session"] or {}, row["poll"] or {}
    lines: list[tuple[str, RenderableType]] = [
        ("member", _name(row["member_id"], 200)),
        ("client", _name(row["client_id"], 200)),
        ("static id", _name(row["group_instance_id"], 200)),
        ("host", _name(row["client_host"], 200)),
        ("library", Text(f"{words.name(row['client_software_name'] or '-')} {row_version(row)}".rstrip())),
        ("joined", _instant(row["joined_at_ms"])),
        ("session timeout", _span(row["session_timeout_ms"])),
        ("rebalance timeout", _span(row["rebalance_timeout_ms"])),
    ]
    if row["ended_at_ms"] is not None:
        lines += [
            ("ended", _instant(row["ended_at_ms"])),
            ("cause", Text(_how_sure(row["end_cause"], row["certainty"]))),
            ("reason", Text(words.quoted(row["end_reason"]) if row["end_reason"] else "-")),
            ("broken by", Text(_how_sure(row["fault"], row["fault_certainty"]))),
        ]
    else:
        lines += [
            ("status", _status(row["shown"], stale, row["session"], row["poll"])),
            *(("", Text(words.escaped(words.shortened(reason, 200)))) for reason in row["reasons"][:5]),
            ("last heard", _instant(session.get("last_heard_at_ms"))),
            ("session over", _deadline(session)),
            ("last poll", _last_poll(row["poll"])),
            ("poll over", _deadline(poll)),
        ]
        if row["assignment"] is not None:
            cells = _epoch_cells(row, words.name)
            lines += zip(("epoch", "partitions", "is to have", "on the way"), cells, strict=True)
            lines.append(("current", _assigned(row["assignment"]["assigned"])))
            lines.append(("target", _assigned(row["assignment"]["assigned_target"])))
    for label, value in lines:
        table.add_row(Text(label, style="bold"), value)
    return table


def history(rows: list[Answer], more: bool, spoken: Sequence[str] = ()) -> RenderableType:
    """Changes of a group and of its memberships, one per line, the earliest first. `spoken`: protocols of the group."""
    converted = {"upgraded", "downgraded"} & {row["cause"] for row in rows}
    unit = "GEN/EPOCH" if converted else _unit_heading([list(spoken)])
    table = _table("AT", "WHO", "FROM", "TO", "CAUSE", unit, "CERTAINTY")
    for row in sorted(rows, key=lambda row: (row["at_ms"], row["seq"])):
        # What was found out later (an end that is confirmed, a load) changes no state: it stays what it was.
        stays = row["from_state"] == row["to_state"]
        table.add_row(
            _instant(row["at_ms"]),
            Text("the group") if row["entity"] == "group" else Text(words.called(row["member_id"])),
            Text("-") if stays else _name(row["from_state"]),
            Text(f"stays {words.name(row['to_state'])}") if stays else _name(row["to_state"]),
            Text(words.escaped(row["cause"])),
            _number(row["generation_id"]),
            _name(row["certainty"]),
        )
    return Pile(table, Text("There are earlier ones; --to and --limit choose.", style="dim")) if more else table


def rejected(rows: list[Answer], more: bool, *, of_all: bool) -> RenderableType:
    """Lines that could not be understood, one per line, the latest first; `of_all`: no part of them was asked for."""
    if not rows:
        return Text("All lines were understood." if of_all else "There is no such line.")
    table = _table("AT", "REASON", "WHERE", "EXPECTED", "THE LINE BEGINS")
    for row in rows:
        table.add_row(
            Text("no stamp") if row["at_ms"] is None else _instant(row["at_ms"]),
            _name(row["reason"]),
            Text(f"{words.name(row['source'], 200)} bytes {row['start']} to {row['end']}"),
            _words(row["expected"]),
            _words(row["excerpt"]),
        )
    hint = Text("There are more; --reason, --from, --to and --limit choose.", style="dim")
    return Pile(table, hint) if more else table


def disagreements(rows: list[Answer], more: bool) -> RenderableType:
    """Lines of server.log that say otherwise than the requests, the latest first: the group, what each source says."""
    if not rows:
        return Text("There is no such line in the tables: server.log, where it is read, says what the requests say.")
    lines: list[RenderableType] = []
    for row in rows:
        where = f"{words.name(row['source'], 200)} bytes {row['start']} to {row['end']}"
        lines.append(
            Text.assemble(
                _instant(row["at_ms"]), "  ", _name(row["group_id"]), "  ", (_name(row["kind"]).plain, "bold")
            )
        )
        lines += [Text(f"  {row['text']}"), Text(f"  {where}", style="dim")]
    hint = Text("There are more; --kind, --from, --to and --limit choose.", style="dim")
    return Pile(*lines, hint) if more else Pile(*lines)


def surprises(counted: str, rows: list[Answer], more: bool, *, traces: bool) -> RenderableType:
    """What the self-test counted, and answers that are not as the model predicts, the latest first."""
    lines: list[RenderableType] = [
        Text(counted or "No answer was put to the model of the brokers' release: no request log is read.", style="bold")
    ]
    for row in rows:
        lines.append(Text.assemble("\n", _instant(row["at_ms"]), "  ", _name(row["group_id"])))
        lines.append(Text(f"  {row['text']}"))
        if row["tried"]:
            lines.append(Text(f"  Tried: {words.escaped(', '.join(row['tried']))}.", style="dim"))
        if row["source"]:
            lines.append(Text(f"  {words.name(row['source'], 200)} byte {row['start']}", style="dim"))
        if traces and row["trace"]:
            lines.append(Text("\n" + "\n".join(f"    {words.escaped(one)}" for one in row["trace"].splitlines())))
    if more:
        lines.append(Text("There are more; --group, --surprise-class, --from, --to and --limit choose.", style="dim"))
    return Pile(*lines)


def row_version(row: Answer) -> str:
    """Version of a member's library, if it announced one."""
    return words.name(row["client_software_version"]) if row["client_software_version"] else ""


def margin(row: Answer) -> tuple[int, int, str]:
    """Sort key: the worst status first, then the deadline that comes first."""
    deadlines = [part["deadline_at_ms"] for part in (row["session"], row["poll"]) if part and part["deadline_at_ms"]]
    return -STATUS_SEVERITY.get(row["shown"], 0), min(deadlines, default=1 << 62), row["member_id"]


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(
            heading, justify="right" if heading in ("GEN", "EPOCH", "GEN/EPOCH", "MEMBERS") else "left", no_wrap=True
        )
    return table


def _name(text: str | None, chars_max: int = _NAME_CHARS_MAX) -> Text:
    return Text("-" if not text else words.name(text, chars_max))


def _words(text: str | None) -> Text:
    return Text("-" if not text else words.quoted(text))


def _number(number: int | None) -> Text:
    return Text("-" if number is None else str(number))


def _span(duration_ms: int | None) -> Text:
    return Text("-" if duration_ms is None else words.span(duration_ms))


def _instant(at_ms: int | None) -> Text:
    return Text("-" if at_ms is None else words.instant(at_ms))


_COMING = ("late", "imminent")
"""Statuses that are about a deadline that is still to come."""


def _status(status: str | None, stale: bool, *deadlines: Answer | None) -> Text:
    """A status; of tables that are behind it is told as what was, because nobody knows what is. So it is where one of
    the deadlines has passed that it may be about, and nothing of that is read yet: nothing is near any more."""
    passed = any(one is not None and one["remaining_ms"] is not None and one["remaining_ms"] < 0 for one in deadlines)
    if (stale and status in _PASSING) or (passed and status in _COMING):
        return Text(f"was {words.name(status)}", style="dim")
    return Text(words.name(status or "-"), style=_STATUS_STYLES.get(status or "", ""))


def _left(deadline: Answer | None) -> Text:
    """What is left until a deadline; a dash where nothing is known or nothing may count down, `≥` where the member may
    have been heard since it was written down."""
    left_ms: int | None = deadline["remaining_ms"] if deadline is not None else None
    if left_ms is None:
        return Text("-")
    if left_ms < 0:
        return Text(f"due {words.took(-left_ms)} ago", style="bold red")
    return Text(f"{'≥ ' if deadline is not None and deadline['is_least'] else ''}{left_ms / 1000:.1f} s")


def _deadline(deadline: Answer) -> Text:
    if deadline.get("deadline_at_ms") is None:
        return Text("-")
    left = _left(deadline)
    left_ms = deadline["remaining_ms"]
    if left_ms is None:
        return _instant(deadline["deadline_at_ms"])
    return Text.assemble(_instant(deadline["deadline_at_ms"]), " (", left, ")" if left_ms < 0 else " left)")


def _how_sure(what: str | None, certainty: str | None) -> str:
    """What is known of an end, and how sure it is; of nothing there is nothing to be sure of."""
    if not what:
        return "-"
    return words.name(what) if what == "unknown" else f"{words.name(what)} ({words.name(certainty or 'unknown')})"


def _last_poll(poll: Answer | None) -> Text:
    at_ms = (poll or {}).get("last_poll_at_ms")
    return _instant(None) if at_ms is None else Text.assemble(_instant(at_ms), " ", _sign(poll))


def _sign(poll: Answer | None, *, narrow: bool = False) -> Text:
    if not poll or poll["evidence"] == "none":
        return Text("-")
    bound_ms = None if narrow else poll["error_bound_ms"]
    return Text(words.name(poll["evidence"]) + (f", up to {words.span(bound_ms)} before" if bound_ms else ""))
