"""What shapes are made of: a base that allows nothing undescribed, and fields rendered from `kardia.tables`."""

from __future__ import annotations

from types import GenericAlias
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from kardia.statuses import SHOWN, SHOWN_MEANING
from kardia.table_types import STRUCTS, Column
from kardia.tables import TABLES

_TYPES: dict[str, Any] = {"string": str, "long": int, "int": int, "double": float, "bool": bool, "strings": list[str]}


Shown = Annotated[str, Field(json_schema_extra={"enum": list(SHOWN)}, description=SHOWN_MEANING)]


class Answer(BaseModel):
    """Base of all shapes: nothing that is not described."""

    model_config = ConfigDict(extra="forbid")


def shape(name: str, base: type[BaseModel], fields: dict[str, Any], meaning: str | None = None) -> Any:
    """A model whose fields come from data. `Any` for the type checker, which cannot read data."""
    return create_model(name, __base__=base, __doc__=meaning, **fields)


def many(kind: Any) -> Any:
    """A field that is a list."""
    return GenericAlias(list, (kind,)), ...


def _entry(struct: str, name: str, meaning: str) -> Any:
    return shape(name, Answer, {field: (_TYPES[kind] | None, ...) for field, kind in STRUCTS[struct]}, meaning)


Straggler = _entry("stragglers", "Straggler", "A member, or a member id that nobody used, that was waited for.")
Moving = _entry("moving", "Moving", "A partition on its way from one member to another.")
PendingId = _entry("pending", "PendingId", "A member id that was handed out and that nobody joined with.")


def _field(column: Column) -> dict[str, Any]:
    if column.type == "stragglers":
        return {column.name: (many(Straggler)[0], Field(description=column.meaning))}
    if column.type in ("pending", "moving"):
        entry = PendingId if column.type == "pending" else Moving
        return {column.name: (many(entry)[0] | None, Field(description=column.meaning))}
    kind = _TYPES[column.type]
    fields = {column.name: (kind | None if column.nullable else kind, Field(description=column.meaning))}
    if column.name.endswith("at_ms"):
        text = f"{column.meaning}; RFC 3339"
        fields[column.name.removesuffix("_ms")] = (str | None, Field(description=text))
    if column.name == "doubts":
        fields["doubts_in_words"] = many(str)[0], Field(description="the sentence of each of `doubts`")
    return fields


def columns(table: str, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Fields for columns of a table, all unless named."""
    found: dict[str, Any] = {}
    for column in TABLES[table].columns:
        if names is None or column.name in names:
            found |= _field(column)
    return found
