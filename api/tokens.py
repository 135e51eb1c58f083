"""Bearer tokens: who may ask. Only digests are kept; comparing takes the same time whatever differs.

File format: one token per line, either the token itself (at least 32 characters) or `sha256:` and 64 hex digits of it;
blank lines and lines that begin with `#` are passed over. Two or more lines are all valid at once, for rotation.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from pathlib import Path

TOKEN_CHARS_MIN = 32
TOKEN_BYTES_MAX = 4_096
TOKENS_MAX = 100


class TokenFileError(ValueError):
    """The token file cannot be used."""


class Tokens:
    """A set of accepted tokens."""

    def __init__(self, digests: list[bytes]) -> None:
        self._digests = digests

    def __repr__(self) -> str:
        return f"Tokens({len(self._digests)} hidden)"

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Tokens of a file; TokenFileError names the line, never its content."""
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFileError(
                f"token file: {path.name} cannot be read ({type(error).__name__}); expected a text file with one token "
                "per line; check the path and its permissions."
            ) from None
        digests = []
        for number, line in enumerate((line.strip() for line in lines), 1):
            if not line or line.startswith("#"):
                continue
            if re.fullmatch(r"sha256:[0-9a-fA-F]{64}", line):
                digests.append(bytes.fromhex(line.removeprefix("sha256:")))
            elif len(line) >= TOKEN_CHARS_MIN and not line.startswith("sha256:"):
                digests.append(sha256(line.encode()).digest())
            else:
                raise TokenFileError(
                    f"token file: line {number} of {path.name} is none; expected {TOKEN_CHARS_MIN} or more characters "
                    "or sha256: and 64 hex digits; make one with `openssl rand -hex 32`."
                )
        if not 1 <= len(digests) <= TOKENS_MAX:
            raise TokenFileError(
                f"token file: {path.name} has {len(digests)} tokens; expected 1 to {TOKENS_MAX}; "
                "make one with `openssl rand -hex 32`."
            )
        return cls(digests)

    def accept(self, authorization: bytes | None) -> bool:
        """Whether an Authorization header carries one of the tokens."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not 0 < len(token) <= TOKEN_BYTES_MAX:
            return False
        shown = sha256(token.strip()).digest()
        # All are compared, so that the time does not tell which line matched.
        return sum(hmac.compare_digest(shown, digest) for digest in self._digests) > 0

    def key(self) -> bytes:
        """A key that all servers with this token file share, for cursors."""
        return sha256(b"kardia cursor\0" + b"".join(sorted(self._digests))).digest()
