"""Settings of the Kafka clients from a file: security, and whatever else the user's cluster asks for.

The file is in the names of librdkafka or in those of Java, whichever people have (`ingest.security`). What Kardia's
promises rest on is not the file's to decide: such names are refused. Values never appear in a message.
"""

from __future__ import annotations

from pathlib import Path

from ingest.security import java, librdkafka, names, properties
from ingest.security.config import ClientConfig
from ingest.security.meaning import Given
from ingest.security.names import OWN as OWN  # as itself: who asks for settings asks which are not to be given
from ingest.security.properties import MAX_BYTES as MAX_BYTES
from ingest.security.properties import wrong
from ingest.security.rendering import librdkafka as rendered


def client_settings(path: Path | None) -> dict[str, str]:
    """Settings of a file for clients of librdkafka; without one those that every client has."""
    return rendered(client_config(path))


def client_config(path: Path | None) -> ClientConfig:
    """What a file means. Raises `SettingsError` with the line that is wrong."""
    if path is None:
        return ClientConfig()
    text = properties.text_of(path)
    plain, no_lines = properties.plain(text)
    escaped, no_names = properties.java(text)
    of_java = [one for one in escaped if one.name in names.JAVA | names.JAVA_LOADS]
    theirs = names.LIBRDKAFKA | names.UNTRANSLATED - {names.CIPHERS}
    of_librdkafka = [one for one in plain if one.name in theirs]
    if of_java and of_librdkafka:
        first, second = of_librdkafka[0], of_java[0]
        raise wrong(
            path,
            f"mixes two libraries: line {first.line} sets {first.name}, of librdkafka, and line {second.line} "
            f"{second.name}, of Java",
            "write the file in the names of one of them",
        )
    entries, others = (escaped, no_names) if of_java else (plain, no_lines)
    if others:
        raise wrong(path, "is not NAME=VALUE", line=others[0])
    given = Given(path, entries)
    return java.meaning(given) if of_java else librdkafka.meaning(given)
