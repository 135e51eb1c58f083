"""The server's certificate: TLS 1.2 or newer, read again when its files change, so that a renewal needs no restart.

A handshake looks at the two files before it chooses. Files that cannot be used (half written, not belonging together)
leave the certificate that is in use, and say so once.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

log = logging.getLogger("kardia.api.certificates")

Marks = tuple[tuple[int, int, int], ...]
"""(inode, size, time of the last change in ns) of each file."""


class CertificateError(ValueError):
    """The certificate or its key cannot be used."""


class Certificate:
    """Certificate and key in two files. `context` is given to the server; it answers with the newest of both."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._marks = self._look()
        self._current = self.context = self._load()
        self.context.sni_callback = self._choose

    def _load(self) -> ssl.SSLContext:
        certificate, key = self._files
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # A password is never asked for: nobody sits at a server that starts.
            context.load_cert_chain(certificate, key, password="")
        except OSError as error:
            raise CertificateError(
                f"--tls-certificate {certificate.name}, --tls-key {key.name}: they cannot be used "
                f"({type(error).__name__}); expected a certificate and its own key, both PEM, the key not encrypted; "
                "check the paths, their permissions, and that they belong together."
            ) from None
        return context

    def _look(self) -> Marks:
        try:
            found = [path.stat() for path in self._files]
        except OSError:
            return ()
        return tuple((one.st_ino, one.st_size, one.st_mtime_ns) for one in found)

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        marks = self._look()
        if marks != self._marks:
            self._marks = marks
            try:
                self._current = self._load()
                log.warning("certificate.reloaded file=%s", self._files[0].name)
            except CertificateError as error:
                log.warning("certificate.kept: %s", error)
        connection.context = self._current
