"""What `kardia group` and `kardia groups --describe --group` show of one group."""

from __future__ import annotations

from cli.asking.common import TableOutput, print_json, print_yaml, stdout
from cli.asking.questions import Questions
from cli.output import shown
from cli.output.telling import show_evidence

MEMBERS_MAX = 1_000
"""Members of a group on a terminal; JSON and YAML have them all."""


def describe(
    questions: Questions, group_id: str, members_alone: bool, state_alone: bool, verbose: bool, output: TableOutput
) -> None:
    """State and members of a group, or one of the two."""
    both = members_alone == state_alone
    group = questions.group(group_id)
    # On a terminal in any case: they tell whether the group has epochs or generations.
    is_told = both or members_alone or output is TableOutput.TABLE
    found = questions.members(group_id)[0] if is_told else []
    if output is not TableOutput.TABLE:
        whole = {"group": group, "members": found} if both else found if members_alone else group
        (print_json if output is TableOutput.JSON else print_yaml)(whole)
        return
    console, freshness = stdout(), questions.freshness()
    if both or state_alone:
        console.print(shown.group(group, found))
        show_evidence(console, questions.evidence(group_id))
    if both or members_alone:
        least = sorted(found, key=shown.margin)
        console.print(shown.members(least[:MEMBERS_MAX], stale=freshness["stale"], verbose=verbose))
        if len(found) > MEMBERS_MAX:
            console.print(f"{len(found) - MEMBERS_MAX} more members have a wider margin.")
    console.print(shown.fresh(freshness))
    if both:
        console.print(shown.LAG_IS, style="dim")
