"""Lets Java trust what Python trusts: writes the certificate authorities of this machine as a key store for Java.

A runtime from PyPI brings its own list of authorities and knows none that the machine's owner added; behind a company's
proxy every fetch would fail. The store is PKCS #12 as Java's keytool writes it: `cryptography` marks each certificate
as trusted, without which Java reads the file and trusts none of them.
"""

from __future__ import annotations

import ssl
import warnings
from contextlib import suppress
from pathlib import Path

PASSWORD = "changeit"  # noqa: S105 - Java's customary word for stores that hold no secret; one without is not read


def encode(certificates: list[bytes]) -> bytes | None:
    """A key store that holds the given DER certificates; None if there is none that can be read."""
    from cryptography import x509  # here: 0.1 s, and most starts find their jars in the cache
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
    from cryptography.utils import CryptographyDeprecationWarning

    readable: list[x509.Certificate] = []
    with warnings.catch_warnings():
        # Of authorities whose serial number is not positive: old ones that systems still carry.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        for der in certificates:
            with suppress(ValueError):  # one that a later version refuses must not cost the others
                readable.append(x509.load_der_x509_certificate(der))
    if not readable:
        return None
    named = [pkcs12.PKCS12Certificate(one, f"ca{number}".encode()) for number, one in enumerate(readable)]
    return pkcs12.serialize_java_truststore(named, BestAvailableEncryption(PASSWORD.encode()))


def write(target: Path) -> Path | None:
    """Write the store for this machine; None if Python knows no authorities either."""
    store = encode(ssl.create_default_context().get_ca_certs(binary_form=True))
    if store is None:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(store)
    return target


def options(store: Path) -> list[str]:
    """Options that make a Java process use the store."""
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]
