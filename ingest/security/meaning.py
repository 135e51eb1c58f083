"""The settings of one file, while it is asked what they mean: each by name with its line, each problem a sentence.

What a name means is in `librdkafka` and `java`; what both kinds of file must keep to is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ingest.errors import SettingsError
from ingest.security import keystores
from ingest.security.config import MECHANISMS, PROTOCOLS, Identity
from ingest.security.names import OWN
from ingest.security.properties import Entry, wrong

T = TypeVar("T")


class Given:
    """The settings of a file, by name."""

    def __init__(self, path: Path, entries: Sequence[Entry]) -> None:
        """Refuses names that are Kardia's own, and a name that comes twice."""
        self.path = path
        self._by_name: dict[str, Entry] = {}
        for entry in entries:
            if entry.name in OWN:
                raise self._wrong(entry, f"sets {entry.name}, which Kardia sets itself", "take the line out")
            if entry.name in self._by_name:
                raise self._wrong(entry, f"sets {entry.name} a second time", "take one of the lines out")
            self._by_name[entry.name] = entry

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._by_name.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> str:
        """Value of a setting, empty if it is not there."""
        entry = self._by_name.get(name)
        return "" if entry is None else entry.value

    def one_of(self, *names: str) -> str:
        """The one of these names that is there, empty if none is; two of them contradict each other."""
        found = [name for name in names if name in self]
        if len(found) > 1:
            raise self.wrong(found[1], f"sets {found[1]}, but {found[0]} says the same already")
        return found[0] if found else ""

    def wrong(self, name: str, what: str, next_step: str = "correct it and start again") -> SettingsError:
        """What is wrong with a setting. `what` holds no value."""
        entry = self._by_name.get(name)
        return wrong(self.path, what, next_step) if entry is None else self._wrong(entry, what, next_step)

    def _wrong(self, entry: Entry, what: str, next_step: str) -> SettingsError:
        return wrong(self.path, what, next_step, line=entry.line)

    def place(self, name: str) -> Path:
        """A path of the file; a relative one is below the folder that the file is in."""
        return self.path.absolute().parent / Path(self.get(name)).expanduser()

    def store(self, name: str, read: Callable[[], T]) -> T:
        """What a setting's store holds; a store that cannot be used is a sentence with its name."""
        try:
            return read()
        except keystores.StoreError as error:
            where = f" ({self.place(name)})" if name.endswith("location") else ""
            raise self.wrong(name, f"sets {name}, whose file{where} {error}") from None

    def bytes_of(self, name: str) -> bytes:
        """Content of the file that a setting names."""
        return self.store(name, lambda: keystores.content(self.place(name)))

    def protocol(self) -> str:
        """`security.protocol`."""
        found = (self.get("security.protocol") or "PLAINTEXT").upper()
        if found not in PROTOCOLS:
            raise self.wrong("security.protocol", f"sets security.protocol to none of {', '.join(PROTOCOLS)}")
        return found

    def mechanism(self, name: str, protocol: str, login: str) -> str:
        """The SASL mechanism; `login`: a setting that says who logs in, if there is one."""
        said = name or login
        if not protocol.startswith("SASL"):
            if said:
                raise self.wrong(
                    said,
                    f"sets {said}, but security.protocol is {protocol}, by which nobody logs in",
                    "set security.protocol=SASL_SSL (or SASL_PLAINTEXT), or take the sasl lines out",
                )
            return ""
        if not name:
            raise wrong(
                self.path,
                "says SASL in security.protocol, and no sasl.mechanism",
                f"set sasl.mechanism to one of {', '.join(MECHANISMS)}",
            )
        found = self.get(name).upper()
        if found not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise self.wrong(
                name,
                f"sets {name} to a mechanism that librdkafka and Java do not both have; {known} are the ones",
                "let the brokers' listener offer one of these as well, SCRAM-SHA-512 for instance",
            )
        return found

    def checks_host(self) -> bool:
        """`ssl.endpoint.identification.algorithm`: librdkafka says `none` where Java says nothing."""
        name = "ssl.endpoint.identification.algorithm"
        if name in self and self.get(name).lower() not in ("https", "none", ""):
            raise self.wrong(name, f"sets {name} to neither https nor none")
        return name not in self or self.get(name).lower() == "https"

    def needs_tls(self, protocol: str, identity: Identity | None, trust: str) -> None:
        """Settings of TLS without TLS are a mistake: the connection would be open."""
        if protocol.endswith("SSL") or not (identity or trust):
            return
        name = next(entry.name for entry in self if entry.name.startswith("ssl."))
        raise self.wrong(
            name,
            f"sets {name}, but security.protocol is {protocol}, which does not encrypt",
            "set security.protocol to SSL or SASL_SSL, or take the ssl lines out",
        )
