"""Looks at a broker's own logging configuration: is the request log switched on in it, as a whole file.

A file that has `Appenders` twice is one whose first half is lost: the later one hides the earlier, and the broker runs
without server.log. So what is printed is the whole file with what was missing put where it belongs, not lines to add.
Reads the two forms that Kafka ships, log4j2.yaml (4.x) and log4j.properties (2.0 to 3.9; up to 2.7 with other filters);
changes nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from ingest.doctor import Finding, Level, remedies

LOGGER = "kafka.request.logger"
_PROPERTY_KEYS = (f"log4j.logger.{LOGGER}", f"log4j.additivity.{LOGGER}")
_PROPERTY_PREFIX = "log4j.appender.groupRequests"

BYTES_MAX = 1 << 20
"""Such a file has a few kilobytes."""


def examine(path: Path) -> list[Finding]:
    """Findings about one file, with the whole corrected one where something is missing."""
    subject = str(path)
    try:
        with path.open("rb") as file:
            text = file.read(BYTES_MAX + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return [Finding(Level.BAD, subject, f"The file cannot be read: {why}.")]
    if len(text) > BYTES_MAX:
        return [
            Finding(Level.BAD, subject, f"The file has more than {BYTES_MAX} bytes: it is no logging configuration.")
        ]
    return _properties(subject, text) if path.suffix == ".properties" else _yaml(subject, text)


# --- log4j 2


class _Loader(yaml.SafeLoader):
    """Takes note of keys that stand twice, of which YAML keeps the later one."""

    twice: list[str]


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            loader.twice.append(f"{key.value} (line {key.start_mark.line + 1})")
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _yaml(subject: str, text: str) -> list[Finding]:
    loader = _Loader(text)
    loader.twice = []
    try:
        found = loader.get_single_data()
    except (yaml.YAMLError, RecursionError) as error:
        return [Finding(Level.BAD, subject, f"It is no YAML: {' '.join(str(error).split())[:200]}.")]
    finally:
        loader.dispose()
    if not isinstance(found, dict) or not isinstance(found.get("Configuration"), dict):
        return [Finding(Level.BAD, subject, "It has no Configuration; expected Kafka's config/log4j2.yaml.")]
    if loader.twice:
        names = ", ".join(loader.twice)
        sentence = f"Twice in one place: {names}. The later one hides the earlier, and with it every log in it."
        return [Finding(Level.BAD, subject, sentence, ("Bring the entries of both together below the first.",))]
    before = yaml.safe_dump(found, sort_keys=False, width=1_000)
    try:
        _merge(found["Configuration"], yaml.safe_load(remedies.log4j2_yaml()))
    except (TypeError, AttributeError):
        return [Finding(Level.BAD, subject, "Its Appenders or Loggers are no lists of entries with a name.")]
    return _verdict(subject, before, yaml.safe_dump(found, sort_keys=False, width=1_000), "Comments are left out.")


def _merge(configuration: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Put the appender and the logger into their lists, in place of what has their names."""
    for section, kind, name in (
        ("Appenders", "RollingFile", remedies.APPENDER),
        ("Appenders", "Async", remedies.QUEUE),
        ("Loggers", "Logger", LOGGER),
    ):
        if kind not in wanted[section]:
            continue
        part = configuration.setdefault(section, {})
        entries = part.get(kind) or []
        entries = [entries] if isinstance(entries, dict) else list(entries)
        [entry] = wanted[section][kind]
        place = next((at for at, one in enumerate(entries) if one.get("name") == name), len(entries))
        entries[place : place + 1] = [entry]
        part[kind] = entries


# --- log4j 1


def _properties(subject: str, text: str) -> list[Finding]:
    is_text = remedies.TEXT_NEEDLE in text
    wanted = remedies.log4j1_text_properties() if is_text else remedies.log4j1_properties()
    kept = [line for line in text.splitlines() if not _is_ours(line)]
    ours = [line.strip() for line in text.splitlines() if _is_ours(line)]
    if ours == [line for line in wanted.splitlines() if _is_ours(line)]:
        return [Finding(Level.GOOD, subject, _ON)]
    corrected = "\n".join([*kept, "", wanted]).strip("\n") + "\n"
    note = "" if is_text else "For a broker 2.0 to 2.7 the filters are others: docs/request-logging.md."
    return _verdict(subject, text, corrected, note)


def _is_ours(line: str) -> bool:
    key = line.strip().partition("=")[0].strip()
    return key in _PROPERTY_KEYS or key.startswith(_PROPERTY_PREFIX)


# --- both

_ON = f"{LOGGER} is at DEBUG and writes the group APIs into a file of its own."


def _verdict(subject: str, before: str, after: str, note: str) -> list[Finding]:
    if before == after:
        return [Finding(Level.GOOD, subject, _ON)]
    changed = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[:2] in ("+ ", "- ")]
    sentence = (
        f"{LOGGER} does not write what Kardia needs: {len(changed)} lines differ. The whole file as it should be "
        f"follows; the appender is new, so it needs a restart of the broker.{' ' + note if note else ''}"
    )
    return [Finding(Level.BAD, subject, sentence, tuple(after.splitlines()))]
