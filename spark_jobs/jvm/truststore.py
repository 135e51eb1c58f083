"""Lets Java trust what Python trusts: writes the certificate authorities of this machine as a Java key store.

A runtime from PyPI brings its own list of authorities and knows none that the machine's owner added; behind a company's
proxy every fetch would fail. Format: Java's JKS, version 2, entries of tag 2 (trusted certificate), closed by a SHA-1
over password, a constant and the content (`sun.security.provider.JavaKeyStore`). SHA-1 is the format's checksum, not a
protection: certificates are public, and the file lives in the user's own cache.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path

PASSWORD = "changeit"  # noqa: S105 - Java's customary word for stores that hold no secret
_MAGIC = 0xFEEDFEED
_VERSION = 2
_TRUSTED_CERTIFICATE = 2
_SALT = b"Mighty Aphrodite"


def encode(certificates: list[bytes]) -> bytes:
    """A key store that holds the given DER certificates."""
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, der in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED_CERTIFICATE) + _utf(f"ca{number}") + struct.pack(">Q", 0)
        body += _utf("X.509") + struct.pack(">I", len(der)) + der
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + _SALT + body, usedforsecurity=False).digest()
    return body + digest


def _utf(text: str) -> bytes:
    raw = text.encode("ascii")
    return struct.pack(">H", len(raw)) + raw


def write(target: Path) -> Path | None:
    """Write the store for this machine; None if Python knows no authorities either."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(encode(certificates))
    return target


def options(store: Path) -> list[str]:
    """Options that make a Java process use the store."""
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]
