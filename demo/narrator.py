"""Tells the story live: what is done to the consumers, and what Kardia says, with names, instants and countdowns.

Kardia's part comes from the tables alone. What was said when is remembered, because a prediction only counts from the
moment somebody could have read it. On a terminal the open deadlines count down below the sentences; elsewhere there are
only sentences. Decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.tables import Follower, Record, merge
from kardia.story import words
from kardia.tables import TABLES

LOOK_S = 0.25
"""How often the tables are looked at; a batch is committed about twice a second."""

_FOLLOWED = ("predictions", "members", "rebalances", "transitions")
_LONG_WAIT_MS = 2_000

_CONVERTED = {"upgraded": "a consumer group", "downgraded": "a classic group"}
"""Cause of a transition -> what the group is then."""

_TIMEOUT = {"session": "session timeout", "poll": "poll interval", "rebalance": "rebalance timeout"}


def clock(at_ms: float) -> str:
    """An instant as a time of day, UTC, with milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


class Teller:
    """The narrator; a context manager that owns the terminal while the story goes on."""

    def __init__(self, console: Console, tables: Path, wall_ms: Callable[[], float]) -> None:
        self._console = console
        self._follower = Follower(tables, _FOLLOWED)
        self._wall_ms = wall_ms
        self._stand: dict[str, dict[tuple[Any, ...], Record]] = {name: {} for name in _FOLLOWED}
        self._said: set[tuple[Any, ...]] = set()
        self._next_look = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self.seen_at_ms: dict[tuple[str, str, str], int] = {}
        """(group, member, kind) to the instant at which the latest open prediction was first read."""

    def __enter__(self) -> Teller:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def done(self, sentence: str) -> None:
        """Something was done to a consumer."""
        self._say("bold", "▶", sentence)

    def note(self, sentence: str) -> None:
        """Something about the demo itself."""
        self._say("dim", "·", sentence)

    def told(self, sentence: str) -> None:
        """Somebody received an alert."""
        self._say("bold yellow", "  Receiver:", sentence)

    def look(self) -> None:
        """Say what is new in the tables; cheap to call often."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_S
            news = self._follower.look()
            for name in _FOLLOWED:
                for row in news[name]:
                    if merge(self._stand[name], row, TABLES[name].key):
                        getattr(self, f"_on_{name}")(row)
        if self._console.is_terminal:
            self._live.update(self._countdowns(), refresh=True)

    def _say(self, style: str, mark: str, sentence: str) -> None:
        line = Text(f"{clock(self._wall_ms())}  {mark} ")
        line.append(sentence, style=style)
        self._console.print(line, soft_wrap=True)

    def _once(self, key: tuple[Any, ...], style: str, sentence: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._say(style, "  Kardia:", sentence)

    def _on_predictions(self, row: Record) -> None:
        who = f"{row['client_id'] or row['member_id']} in group {row['group_id']}"
        at = (row["group_id"], row["member_id"], row["kind"])
        key = (*at, row["predicted_at_ms"], row["outcome"])
        timeout = _TIMEOUT[row["kind"]]
        if row["outcome"] == "open":
            if key not in self._said:
                self.seen_at_ms[at] = round(self._wall_ms())
            left = (row["deadline_at_ms"] - self._wall_ms()) / 1000
            when = f"ends at {clock(row['deadline_at_ms'])}, in {left:.1f} s"
            if left <= 0:
                when = f"was over at {clock(row['deadline_at_ms'])}, {-left:.1f} s ago (this machine is busy)"
            self._once(key, "yellow", f"{who}: its {timeout} {when}.")
        elif row["outcome"] == "averted":
            self._once(key, "green", f"{who} was heard in time; the {timeout} did not strike.")

    def _on_members(self, row: Record) -> None:
        if row["ended_at_ms"] is None:
            return
        who = f"{row['client_id'] or row['member_id']} is no longer a member of {row['group_id']}"
        key = ("ended", row["group_id"], row["member_id"], row["end_cause"])
        self._once(key, "red", f"{who} since {clock(row['ended_at_ms'])}: {row['end_cause']}.")

    def _on_rebalances(self, row: Record) -> None:
        key = (row["group_id"], row["generation_before"])
        began = (
            f"group {row['group_id']} rebalances since {clock(row['started_at_ms'])}: {row['trigger']}"
            f" ({row['trigger_client_id'] or 'unknown'})."
        )
        self._once(("began", *key), "cyan", began)
        if row["completed_at_ms"] is not None:
            took = (row["completed_at_ms"] - row["started_at_ms"]) / 1000
            waits = [wait for wait in row["stragglers"] or [] if wait["waited_ms"] >= _LONG_WAIT_MS]
            waited = f"; it waited {waits[0]['waited_ms'] / 1000:.1f} s for {waits[0]['client_id']}" if waits else ""
            unit = "generation" if row["protocol"] in (None, "classic") else "epoch"
            after = f"{words.count(row['members_after'], 'member')} in {unit} {row['generation_after']}"
            self._once(
                ("completed", *key), "cyan", f"group {row['group_id']} is done after {took:.1f} s{waited}: {after}."
            )

    def _on_transitions(self, row: Record) -> None:
        if row["entity"] == "group" and row["to_state"] == "Empty" and row["from_state"] != "Unknown":
            self._once(("empty", row["group_id"], row["seq"]), "magenta", f"group {row['group_id']} is empty.")
        if row["entity"] == "group" and row["cause"] in _CONVERTED:
            sentence = f"group {row['group_id']} is {_CONVERTED[row['cause']]} since {clock(row['at_ms'])}."
            self._once((row["cause"], row["group_id"], row["seq"]), "magenta", sentence)

    def _countdowns(self) -> RenderableType:
        now = self._wall_ms()
        table = Table.grid(padding=(0, 2))
        rows = [row for row in self._stand["predictions"].values() if row["outcome"] == "open"]
        for row in sorted(rows, key=lambda row: int(row["deadline_at_ms"])):
            left = (row["deadline_at_ms"] - now) / 1000
            bar = "█" * max(0, min(30, round(left * 3)))
            name = f"{row['client_id'] or row['member_id']} ({row['group_id']})"
            shown = f"{left:6.1f} s" if left > 0 else "   over"
            table.add_row(Text(name), _TIMEOUT[row["kind"]], shown, Text(bar, style="yellow"))
        return Group(Text("─" * 60, style="dim"), table) if rows else Text("")
