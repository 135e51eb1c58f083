"""Settings of the Kafka clients from a file: security, and whatever else the user's cluster asks for.

A properties file as librdkafka names things (`security.protocol=SASL_SSL`, `sasl.username=…`). What Kardia's promises
rest on is not the file's to decide: such names are refused. Values never appear in a message.
"""

from __future__ import annotations

from pathlib import Path

from ingest.errors import SettingsError

OWN = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "compression.type",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "message.timeout.ms",
        "transactional.id",
    }
)
"""Names that the collector sets itself."""

MAX_BYTES = 64 * 1024


def client_settings(path: Path | None) -> dict[str, str]:
    """Settings of a file, none without one. Raises `SettingsError` with the line that is wrong."""
    if path is None:
        return {}
    try:
        text = path.read_bytes()[: MAX_BYTES + 1].decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, 0, f"cannot be read: {type(error).__name__}") from None
    if len(text) > MAX_BYTES:
        raise _wrong(path, 0, f"is longer than {MAX_BYTES} bytes")
    settings: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in bare.partition("="))
        if not equals or not name:
            raise _wrong(path, number, "is not NAME=VALUE")
        if name in OWN:
            raise _wrong(path, number, f"sets {name}, which Kardia sets itself")
        if name in settings:
            raise _wrong(path, number, f"sets {name} a second time")
        settings[name] = value
    return settings


def _wrong(path: Path, number: int, what: str) -> SettingsError:
    return SettingsError(
        f"the file of client settings {what}" if not number else f"line {number} {what}",
        str(path),
        "lines such as security.protocol=SASL_SSL, with the names of librdkafka",
        "correct it and start again",
    )
