"""Nobody takes what is not known for nothing: `or 0` and `or ""` are found in whatever tells people something.

Goal: a null of a table is never told as 0 or as an empty name. Method: the syntax tree of the packages that tell; each
exception is written down with why nothing untrue is told by it.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]

TELLING = ("kardia/story", "kardia/observe/output", "kardia/observe/sentences", "cli/output", "api/answers")

LOOKED_UP = "a key that is looked up or compared, and not shown"
EMPTY_IS_NONE = "held as an empty text, which is told as null"
BURROW = "Burrow's answers have an empty text where it knows nobody"
SORTED = "the order of a list; what is shown is null still"

ALLOWED = {
    ("kardia/story/evidence.py", "row['evidence'] or ''"): "no evidence is told as `nothing named`",
    ("kardia/story/who_broke.py", "life['fault_certainty'] or ''"): LOOKED_UP,
    ("kardia/story/who_broke.py", "some[0]['fault_certainty'] or ''"): LOOKED_UP,
    ("kardia/story/lasted.py", "one.get('partitions') or 0"): "a sum of what is known; of nothing it says to rejoin",
    ("kardia/story/facts.py", "life['client_id'] or ''"): LOOKED_UP,
    ("kardia/story/facts.py", "member_id or ''"): LOOKED_UP,
    ("kardia/story/lives.py", "life['group_instance_id'] or ''"): "whose seat was taken has an instance id",
    (
        "kardia/story/loops.py",
        "row['trigger_client_id'] or (life['client_id'] if life is not None else '') or ''",
    ): LOOKED_UP,
    ("kardia/story/refused.py", "(life['group_instance_id'] if life else None) or ''"): LOOKED_UP,
    ("kardia/story/migrations.py", "row[part] or ''"): LOOKED_UP,
    ("kardia/story/migrations.py", "row['client_id'] or ''"): LOOKED_UP,
    ("kardia/observe/sentences/naming.py", "instance_id or ''"): EMPTY_IS_NONE,
    ("kardia/observe/sentences/reasons.py", "static['scala'] or static['java'] or ''"): EMPTY_IS_NONE,
    ("kardia/observe/sentences/sampled.py", "instance_id or ''"): EMPTY_IS_NONE,
    ("kardia/observe/sentences/stored.py", "detail.get('leader') or ''"): EMPTY_IS_NONE,
    ("kardia/observe/sentences/stored.py", "entry[1] or ''"): EMPTY_IS_NONE,
    ("cli/output/shown.py", "status or ''"): LOOKED_UP,
    ("cli/output/shown.py", "row['state_cause'] or ''"): "a state since an instant has its cause",
    ("api/answers/roster.py", "search or ''"): LOOKED_UP,
    ("api/answers/evidence.py", "row.client_id or ''"): LOOKED_UP,
    ("api/answers/evidence.py", "row.client_software_name or ''"): LOOKED_UP,
    ("api/answers/boards.py", "one['client_id'] or ''"): SORTED,
    ("api/answers/lag.py", "row.client_id or ''"): "without a client.id the member id is told",
    ("api/answers/lag.py", "lag_of(row, as_of) or 0"): SORTED,
    ("api/answers/burrow.py", "row.member_id or ''"): BURROW,
    ("api/answers/burrow.py", "row.client_id or ''"): BURROW,
}
"""(File, expression) -> why it is no untruth."""


def defaults(source: str) -> set[str]:
    """Expressions of a module that take 0 or an empty text for what is null."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and isinstance(node.values[-1], ast.Constant):
            value = node.values[-1].value
            if value == "" or (value == 0 and not isinstance(value, bool)):
                found.add(ast.unparse(node))
    return found


def test_what_is_not_known_is_told_as_that() -> None:
    found = {
        (str(file.relative_to(ROOT)), expression)
        for package in TELLING
        for file in sorted((ROOT / package).rglob("*.py"))
        for expression in defaults(file.read_text())
    }
    assert found == set(ALLOWED)


def test_the_check_finds_what_it_looks_for() -> None:
    assert defaults("a = row['x'] or 0\nb = x or y or ''\nc = x or 0.0\nd = x or None\ne = x or False") == {
        "row['x'] or 0",
        "x or y or ''",
        "x or 0.0",
    }
