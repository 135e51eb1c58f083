"""Renders the page of all keys of `kardia.yaml` from the settings classes."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kardia.reference import GENERATED, grid
from supervise.up_config import UpConfig

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = {
    "With what every broker writes anyway": "kardia-nothing-switched-on.yaml",
    "One broker on this machine": "kardia-one-broker.yaml",
    "Three brokers, whose logs are brought to one machine": "kardia-three-brokers.yaml",
}
"""Title and file in `docs/examples`."""


def config_page() -> str:
    """Every key with its type, default and meaning, and examples: nothing switched on, one broker, three."""
    parts = [
        GENERATED,
        "# kardia.yaml\n\n",
        "The one file of `kardia up --config FILE`, read once and whole. An unknown key, a missing one and a value of "
        "another type are told in a sentence each, all at once, and nothing is started then; `--check` does only that. "
        "A relative path begins where `kardia up` is started, and `~` is the home directory. `file://` may stand "
        "before a whole path; [any other location](../cli.md#where-tables-may-lie) is refused.\n\n",
        _section("Top level", UpConfig),
    ]
    for name, field in UpConfig.model_fields.items():
        if (model := _model_of(field)) is not None:
            parts.append(_section(f"`{name}`", model))
    for title, file in EXAMPLES.items():
        text = (ROOT / "docs" / "examples" / file).read_text(encoding="utf-8")
        parts.append(f"## {title}\n\n`docs/examples/{file}`:\n\n```yaml\n{text}```\n\n")
    return "".join(parts).rstrip() + "\n"


def _section(title: str, model: type[BaseModel]) -> str:
    rows = [
        [f"`{name}`", _type_of(field), _default_of(field), field.description or ""]
        for name, field in model.model_fields.items()
        if _model_of(field) is None
    ]
    return f"## {title}\n\n{grid(['key', 'type', 'default', 'meaning'], rows)}\n"


def _model_of(field: FieldInfo) -> type[BaseModel] | None:
    """The section that a key holds; None for a value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _type_of(field: FieldInfo) -> str:
    """What YAML must hold."""
    shown = str(field.annotation)
    if "tuple" in shown:
        return "address, or a list" if "Url" in shown else "text, or a list"
    if "bool" in shown:
        return "true or false"
    return "path" if "Path" in shown else "number" if "int" in shown or "float" in shown else "text"


def _default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "**must be given**"
    shown = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"`{shown}`" if shown not in (None, "", ()) else ""
