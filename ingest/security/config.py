"""What a file of client settings means, whatever names it is written in: who we are, whom we trust, what else is asked.

Certificates and keys are PEM texts here, read once, whatever store they came from: every library takes those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI")


class Secret(str):
    """A text that shows itself to nobody who prints what holds it. `str` of it is the text: libraries ask for that."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Stars."""
        return "'***'"


@dataclass(frozen=True)
class Password:
    """PLAIN and SCRAM."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Token:
    """OAUTHBEARER: a token endpoint and the credentials of a client (RFC 6749, 4.4)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    authorities: str = ""
    """Certificates that the endpoint is trusted by, PEM; empty: those of the machine."""


@dataclass(frozen=True)
class Ticket:
    """GSSAPI: Kerberos, by a key table or by what `kinit` has left."""

    service: str = "kafka"
    principal: str = ""
    keytab: str = ""
    """Path; empty: the ticket cache."""


@dataclass(frozen=True)
class Identity:
    """A certificate of the client."""

    certificates: str
    """Its own first, then those between it and the authority; PEM."""
    key: str = field(repr=False)
    """PKCS #8 in PEM, without a password: it was opened when the file was read."""


@dataclass(frozen=True)
class ClientConfig:
    """All of a file."""

    path: Path | None = None
    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    login: Password | Token | Ticket | None = None
    authorities: str = ""
    """Certificates that brokers are trusted by, PEM; empty: those of the machine."""
    identity: Identity | None = None
    checks_host: bool = True
    librdkafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else clients of librdkafka are given."""
    java: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else clients in Java are given."""
    untranslated: tuple[str, ...] = ()
    """Names about security that Java has no equal for."""
    written_java: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The settings as they stand, in a file of Java's names; empty in one of librdkafka's."""

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether somebody logs in."""
        return self.protocol.startswith("SASL")

    @property
    def principal(self) -> str:
        """Whom brokers take us for, by their default rules; empty where only they can tell."""
        if isinstance(self.login, Password):
            return f"User:{self.login.username}"
        if isinstance(self.login, Ticket):
            return f"User:{self.login.principal.split('@')[0].split('/')[0]}" if self.login.principal else ""
        if self.has_sasl:
            return ""
        if self.identity is not None and self.has_tls:
            from cryptography import x509  # here: 0.1 s, and few ask

            [own, *_] = x509.load_pem_x509_certificates(self.identity.certificates.encode())
            return f"User:{own.subject.rfc4514_string()}"
        return "User:ANONYMOUS"
