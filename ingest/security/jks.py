"""Java's own key store of before Java 9 (JKS): its certificates, and its key if the password opens it.

Layout and protection follow `sun.security.provider.JavaKeyStore` and `KeyProtector`: big-endian lengths, texts of
`DataOutput.writeUTF`, a digest over password and content at the end, keys under a stream of SHA-1 of password and salt.
Nothing in it is written; stores of keytool since Java 9 are PKCS #12, whatever their name.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _CERTIFICATE = 1, 2
_SALT = 20
_WHITENER = b"Mighty Aphrodite"
_SUN = bytes.fromhex("2b060104012a02110101")
"""Object identifier of the protection: 1.3.6.1.4.1.42.2.17.1.1."""


class JksError(ValueError):
    """The store cannot be read; the message quotes nothing of it."""


class _Bytes:
    """What is left of the store."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise JksError("it is cut off")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def text(self) -> bytes:
        return self.take(int(struct.unpack(">H", self.take(2))[0]))

    def block(self) -> bytes:
        return self.take(self.number())


def read(
    data: bytes, password: str | None, key_password: str | None
) -> tuple[list[bytes], list[tuple[bytes, list[bytes]]]]:
    """Trusted certificates (DER), and keys (PKCS #8, DER) each with its chain. Without a password nothing is checked,
    as in Java, and no key is opened."""
    if password is not None:
        secret = password.encode("utf-16-be")
        if not hmac.compare_digest(
            hashlib.sha1(secret + _WHITENER + data[:-20], usedforsecurity=False).digest(), data[-20:]
        ):
            raise JksError("its password does not fit, or it is damaged")
    rest = _Bytes(data[:-20])
    rest.take(4)
    version = rest.number()
    if version not in (1, 2):
        raise JksError(f"it is of version {version}")
    trusted: list[bytes] = []
    keys: list[tuple[bytes, list[bytes]]] = []

    def certificate() -> bytes:
        if version == 2:
            rest.text()
        return rest.block()

    for _ in range(rest.number()):
        kind = rest.number()
        rest.text()
        rest.take(8)
        if kind == _CERTIFICATE:
            trusted.append(certificate())
        elif kind == _KEY:
            protected = rest.block()
            chain = [certificate() for _ in range(rest.number())]
            opens = key_password if key_password is not None else password
            if opens is not None:
                keys.append((_opened(protected, opens), chain))
        else:
            raise JksError("it holds something that is neither a certificate nor a private key")
    return trusted, keys


def _opened(protected: bytes, password: str) -> bytes:
    """The key of an EncryptedPrivateKeyInfo under Sun's protection."""
    at = protected.find(_SUN)
    if at < 0:
        raise JksError("its key is protected in a way that is not JKS's")
    data = _octets(protected, at + len(_SUN))
    secret = password.encode("utf-16-be")
    salt, hidden, check = data[:_SALT], data[_SALT:-20], data[-20:]
    stream = b""
    digest = salt
    while len(stream) < len(hidden):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    key = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise JksError("the password of its key does not fit")
    return key


def _octets(data: bytes, at: int) -> bytes:
    """The octet string (DER) behind an algorithm, whose parameters may be there as NULL."""
    if data[at : at + 2] == b"\x05\x00":
        at += 2
    if data[at : at + 1] != b"\x04" or at + 2 > len(data):
        raise JksError("its key cannot be read")
    length = data[at + 1]
    at += 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[at : at + size], "big")
        at += size
    if at + length > len(data) or length <= _SALT + 20:
        raise JksError("its key is cut off")
    return data[at : at + length]
