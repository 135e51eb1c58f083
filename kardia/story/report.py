"""An incident report as Markdown for a ticket. In: the answer of the API's `incident` route. Out: text.

All that a stranger chose (ids, hosts, reasons) stands inside fenced blocks, where no Markdown, HTML, link or mention is
read, behind the escaping of `kardia.story.words`. Headings and words outside of them are ours alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kardia.story import spoken, words

Answer = Mapping[str, Any]


def markdown(answer: Answer) -> str:
    """The report."""
    freshness = answer["freshness"]
    reached_ms = freshness["complete_as_of_ms"]
    parts = [
        "# Incident of a Kafka consumer group",
        _block(
            [
                f"group    {words.name(answer['group']['group_id'])}",
                f"cluster  {words.name(answer['group']['cluster_id'])}",
                f"from     {words.instant(answer['from_ms'])}",
                f"to       {words.instant(answer['to_ms'])}",
                f"read to  {'nothing yet' if reached_ms is None else words.instant(reached_ms)}",
            ]
        ),
        "## Evidence",
        _evidence(answer["evidence"]),
        "## Timeline",
        _block(_sentences(answer["timeline"])),
        "## Causes",
        _block(_causes(answer["causes"])),
        "## Evictions",
        _block(_table(("ended", "member", "host", "cause", "certainty"), map(_eviction, answer["evictions"]))),
        "## Rebalances",
        _block(
            _table(
                (
                    "began",
                    "lasted",
                    "trigger",
                    "member",
                    spoken.heading(answer["rebalances"]),
                    "waited longest for",
                    "follows from",
                ),
                map(_rebalance, answer["rebalances"]),
            )
        ),
        "## Deadlines that were predicted",
        _block(_table(("said", "deadline", "kind", "member", "outcome"), map(_prediction, answer["predictions"]))),
        "## Settings in force",
        _block(
            _table(
                ("member", "static id", "library", "session", "rebalance", "member id"),
                map(_settings, answer["settings"]),
            )
        ),
        *_migration(answer.get("migration")),
        "## Findings about the settings",
        _block(f"{one['severity']}: {one['text']} {one['advice']}" for one in answer["lint"]),
    ]
    left_off = {name: count for name, count in answer["left_off"].items() if count}
    if left_off:
        parts.append("Left off: " + words.listing([f"{count} of {name}" for name, count in left_off.items()]) + ".")
    return "\n\n".join(parts) + "\n"


def _migration(found: Answer | None) -> list[str]:
    """Two protocols in one group; nothing of it where there was one."""
    if found is None:
        return []
    spoken = [(words.instant(row["at_ms"]), str(row["classic"]), str(row["consumer"])) for row in found["speaks"]]
    return [
        "## Move between the protocols",
        _block(_table(("from", "members with classic", "with consumer"), spoken)),
        "### What converted the group",
        _block(_sentences(found["conversions"])),
        "### What was in the way",
        _block(_sentences(found["in_the_way"])),
    ]


def _sentences(found: Iterable[Answer]) -> list[str]:
    return [f"{words.instant(one['at_ms'])}  {one['text']}{_unsure(one['certainty'])}" for one in found]


def _evidence(found: Answer) -> str:
    """What was read, and what it leaves open: our own words, so they stand outside of a block."""
    parts = [f"Evidence: {found['read']} (level {found['rung']} of 6)."]
    parts += [
        f"“{one['question']}” {'in part' if one['answered'] == 'partly' else 'cannot be answered'}: {one['needs']}."
        for one in found["questions"]
        if one["answered"] != "yes"
    ]
    return "\n".join(f"- {part}" for part in parts)


def _eviction(row: Answer) -> tuple[str, ...]:
    return (
        words.instant(row["ended_at_ms"]),
        _member(row["member_id"], row["client_id"]),
        _name(row["client_host"]),
        row["end_cause"],
        row["certainty"],
    )


def _rebalance(row: Answer) -> tuple[str, ...]:
    waits = [entry for entry in row["stragglers"] if entry["waited_ms"] is not None]
    waited = max(waits, key=lambda entry: int(entry["waited_ms"]), default=None)
    return (
        words.instant(row["started_at_ms"]),
        "under way" if row["running"] else "not read" if row["duration_ms"] is None else words.span(row["duration_ms"]),
        row["trigger"],
        _member(row["trigger_member_id"], row["trigger_client_id"]),
        f"{row['generation_before']} to {'?' if row['generation_after'] is None else row['generation_after']}",
        f"{_member(waited['member_id'], waited['client_id'])}: {words.span(waited['waited_ms'])}" if waited else "-",
        words.instant(row["caused_by_started_at_ms"]) if row["caused_by_started_at_ms"] is not None else "-",
    )


def _prediction(row: Answer) -> tuple[str, ...]:
    return (
        words.instant(row["predicted_at_ms"]),
        words.instant(row["deadline_at_ms"]) if row["deadline_at_ms"] is not None else "-",
        row["kind"],
        _member(row["member_id"], row["client_id"]),
        row["outcome"].replace("_", " "),
    )


def _settings(row: Answer) -> tuple[str, ...]:
    library = " ".join(_name(row[part]) for part in ("client_software_name", "client_software_version") if row[part])
    return (
        _member(row["member_id"], row["client_id"]),
        _name(row["group_instance_id"]),
        library or "-",
        _span(row["session_timeout_ms"]),
        _span(row["rebalance_timeout_ms"]),
        words.name(row["member_id"]),
    )


def _causes(causes: Answer) -> list[str]:
    return [
        f"{label} {name}: {count}"
        for label, counts in (("rebalances by", causes["triggers"]), ("ends by", causes["ends"]))
        for name, count in counts.items()
    ]


def _unsure(certainty: str) -> str:
    return "" if certainty == "exact" else f" [{certainty}]"


def _member(member_id: str | None, client_id: str | None) -> str:
    """A member as everywhere; the settings have its whole id."""
    if not member_id:
        return _name(client_id)
    return words.told_apart(client_id, member_id) if client_id else words.called(member_id)


def _name(text: str | None) -> str:
    return words.name(text) if text else "-"


def _span(duration_ms: int | None) -> str:
    return "-" if duration_ms is None else words.span(duration_ms)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    found = list(rows)
    if not found:
        return []
    widths = [max(map(len, column)) for column in zip(headings, *found, strict=True)]
    lines = [headings, *found]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _block(lines: Iterable[str]) -> str:
    """Lines that are shown as they are: the fence is longer than any run of its character inside."""
    text = "\n".join(lines)
    if not text:
        return "None."
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
