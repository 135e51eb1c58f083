"""Stores of certificates and keys as PEM texts: PEM, PKCS #12 and JKS, recognised by what they hold, not by their name.

Keys come out as PKCS #8 without a password: the form that OpenSSL and Java both read. Nothing of a store is quoted.
"""

from __future__ import annotations

from pathlib import Path

from ingest.security import jks
from ingest.security.config import Identity, Secret

MAX_BYTES = 8 * 1024 * 1024
"""The authorities of a whole machine take 0.3 MiB."""


class StoreError(ValueError):
    """The store cannot be used; the message says why and quotes nothing of it."""


def content(path: Path) -> bytes:
    """A file of certificates or keys."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror or type(error).__name__}") from None
    if len(data) > MAX_BYTES:
        raise StoreError(f"is longer than {MAX_BYTES} bytes")
    return data


def authorities(data: bytes, password: str | None = None) -> str:
    """Certificates that a store trusts."""
    if b"-----BEGIN" in data:
        return _pem_certificates(data)
    found = _jks(data, password, None)[0] if data.startswith(jks.MAGIC) else _pkcs12(data, password)[1]
    if not found:
        raise StoreError("holds no certificate of an authority")
    return _as_pem(found)


def folder_of_authorities(path: Path) -> str:
    """All certificates of a folder, as OpenSSL keeps them; other files in it do not matter."""
    found: dict[str, None] = {}
    for one in sorted(path.iterdir()):
        try:
            found[_pem_certificates(content(one))] = None
        except StoreError:
            continue
    if not found:
        raise StoreError("holds no certificate of an authority")
    return "".join(found)


def identity(data: bytes, password: str | None = None, key_password: str | None = None) -> Identity:
    """The key of a store and its certificates."""
    if b"-----BEGIN" in data:
        return pair(data, data, key_password)
    if data.startswith(jks.MAGIC):
        keys = _jks(data, password, key_password)[1]
        if len(keys) != 1:
            raise StoreError(f"holds {len(keys)} private keys that its password opens, and one is expected")
        [(key, chain)] = keys
        return Identity(_as_pem(chain), _key_pem(key, None, is_pem=False))
    key_pem, chain = _pkcs12(data, password)
    if not key_pem:
        raise StoreError("holds no private key")
    return Identity(_as_pem(chain), key_pem)


def pair(certificates: bytes, key: bytes, key_password: str | None) -> Identity:
    """A certificate and its key, both PEM. They must belong together."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    chain = _pem_certificates(certificates)
    opened = _key_pem(key, key_password, is_pem=True)
    [own, *_] = x509.load_pem_x509_certificates(chain.encode())
    public = load_pem_private_key(opened.encode(), None).public_key()
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if own.public_key().public_bytes(*form) != public.public_bytes(*form):
        raise StoreError("has a certificate first that is not of the private key")
    return Identity(chain, opened)


def _pem_certificates(data: bytes) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        found = x509.load_pem_x509_certificates(data)
    except ValueError:
        raise StoreError("holds no certificate that can be read") from None
    return "".join(one.public_bytes(Encoding.PEM).decode("ascii") for one in found)


def _as_pem(certificates: list[bytes]) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        return "".join(
            x509.load_der_x509_certificate(one).public_bytes(Encoding.PEM).decode("ascii") for one in certificates
        )
    except ValueError:
        raise StoreError("holds a certificate that cannot be read") from None


def _key_pem(data: bytes, password: str | None, *, is_pem: bool) -> Secret:
    """A private key as PKCS #8."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form

    if is_pem:
        begins, ends = data.find(b"-----BEGIN"), -1
        while begins >= 0:
            ends = data.find(b"\n-----END", begins)
            if b"PRIVATE KEY-----" in data[begins : begins + 64]:
                break
            begins = data.find(b"-----BEGIN", begins + 1)
        if begins < 0 or ends < 0:
            raise StoreError("holds no private key")
        data = data[begins : data.find(b"-----", ends + 9) + 5] + b"\n"
    try:
        load = form.load_pem_private_key if is_pem else form.load_der_private_key
        try:
            key = load(data, password.encode() if password is not None else None)
        except TypeError:  # a password for a key that has none is no harm; a key without one it needs is
            if password is None:
                raise StoreError("has a private key under a password, and none is given") from None
            key = load(data, None)
    except (ValueError, UnsupportedAlgorithm):
        raise StoreError("has a private key that cannot be read, or its password does not fit") from None
    plain = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return Secret(plain.decode("ascii"))


def _pkcs12(data: bytes, password: str | None) -> tuple[Secret, list[bytes]]:
    """Key (empty if there is none) and certificates, that of the key first."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        found = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError:
        raise StoreError("is no PEM, PKCS #12 or JKS store, or its password does not fit") from None
    own = [found.cert.certificate] if found.cert is not None else []
    chain = [
        one.public_bytes(form.Encoding.DER) for one in [*own, *(more.certificate for more in found.additional_certs)]
    ]
    if found.key is None:
        return Secret(), chain
    plain = found.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return Secret(plain.decode("ascii")), chain


def _jks(
    data: bytes, password: str | None, key_password: str | None
) -> tuple[list[bytes], list[tuple[bytes, list[bytes]]]]:
    try:
        return jks.read(data, password, key_password)
    except jks.JksError as error:
        raise StoreError(f"is a JKS store, but {error}") from None
