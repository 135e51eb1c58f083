"""Both schemas of every table, and rows turned into Arrow: what fits, what is refused, what is made visible."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kardia.table_types import Table
from kardia.tables import REBALANCES, TABLES
from spark_jobs.errors import RowsError
from spark_jobs.schemas import ARROW_SCHEMAS, arrow_schema, spark_schema, to_arrow, to_tables

VALUES: dict[str, Any] = {
    "string": "x",
    "long": 2**40,
    "int": 7,
    "double": 1.5,
    "bool": True,
    "strings": ["a", "b"],
    "stragglers": [("member", "client", 3, True, False, 2)],
    "pending": [("member", "client", 3, 4)],
    "moving": [("orders", 3, "member", None)],
}


def row_of(table: Table, **changes: Any) -> tuple[Any, ...]:
    """A row with a value in every column."""
    return tuple(changes.get(column.name, VALUES[column.type]) for column in table.columns)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_both_schemas_have_the_columns_of_the_description(table: Table) -> None:
    arrow, spark = arrow_schema(table), spark_schema(table)
    assert arrow.names == spark.names == [*table.names, "batch_id"]
    for column in table.columns:
        assert arrow.field(column.name).nullable == spark[column.name].nullable == column.nullable
    assert arrow.field("batch_id").type == pa.int64()
    found = to_arrow(table, [row_of(table)] * 3, 9)
    assert found.schema == arrow
    assert found.column("batch_id").to_pylist() == [9, 9, 9]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"at_ms": None}, "at_ms"),
        ({"at_ms": 1.5}, "truncated"),
        ({"at_ms": "1"}, "at_ms"),
        ({"shard": 2**40}, "shard"),
        ({"trigger": 5}, "trigger"),
    ],
)
def test_a_value_that_does_not_fit_names_table_and_column(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RowsError, match="rebalances") as refusal:
        to_arrow(REBALANCES, [row_of(REBALANCES, **changes)], 4)
    assert words in str(refusal.value)
    assert "batch 4" in str(refusal.value)


def test_a_row_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(RowsError, match="values"):
        to_arrow(REBALANCES, [row_of(REBALANCES)[:-1]], 4)


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb", "\U0001f600", "\x00\x1b[2J", "'; DROP TABLE x; --", "\u202e"])
def test_any_string_a_client_can_send_can_be_written(name: str) -> None:
    found = to_arrow(
        REBALANCES, [row_of(REBALANCES, group_id=name, stragglers=[(name, name, 1, False, False, None)])], 1
    ).to_pylist()
    expected = name.encode("utf-8", "backslashreplace").decode()
    assert found[0]["group_id"] == found[0]["stragglers"][0]["member_id"] == expected


def test_whole_floats_are_instants() -> None:
    assert to_arrow(REBALANCES, [row_of(REBALANCES, at_ms=5.0)], 1).column("at_ms").to_pylist() == [5]


def test_tables_without_rows_are_left_out() -> None:
    found = to_tables({"rebalances": [row_of(REBALANCES)], "members": []}, 3)
    assert list(found) == ["rebalances"]
    assert found["rebalances"].schema == ARROW_SCHEMAS["rebalances"]
