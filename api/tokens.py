"""Bearer tokens: who may ask, and about which clusters. Only digests are kept; comparing takes the same time always.

File format: one token per line, either the token itself (at least 32 characters, no blanks) or `sha256:` and 64 hex
digits of it; behind it `cluster=NAME` for each cluster that it is for, all clusters if there is none. A name that is
not plain is written as in a URL, `~` and base64url. Blank lines and lines that begin with `#` are passed over. All
lines are valid at once, two for rotation.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from api.ids import from_segment

TOKEN_CHARS_MIN = 32
TOKEN_BYTES_MAX = 4_096
TOKENS_MAX = 100


class TokenFileError(ValueError):
    """The token file cannot be used."""


class Scope(NamedTuple):
    """What the caller may ask about, None: all clusters; and who it is: a digest of its token, empty without one."""

    clusters: frozenset[str] | None = None
    principal: str = ""

    def allows(self, cluster_id: str) -> bool:
        """Whether a cluster is in it."""
        return self.clusters is None or cluster_id in self.clusters


EVERYTHING = Scope()


class Tokens:
    """A set of accepted tokens."""

    def __init__(self, digests: list[bytes], scopes: list[Scope] | None = None) -> None:
        self._digests = digests
        self._scopes = [EVERYTHING] * len(digests) if scopes is None else scopes

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
        digests: list[bytes] = []
        scopes: list[Scope] = []
        for number, line in enumerate((line.strip() for line in lines), 1):
            if not line or line.startswith("#"):
                continue
            token, *names = line.split()
            scope = _scope(names)
            if scope is None:
                raise TokenFileError(
                    f"token file: line {number} of {path.name} has something behind its token; expected nothing, or "
                    "cluster=NAME for each cluster that it is for."
                )
            scopes.append(scope)
            if re.fullmatch(r"sha256:[0-9a-fA-F]{64}", token):
                digests.append(bytes.fromhex(token.removeprefix("sha256:")))
            elif len(token) >= TOKEN_CHARS_MIN and not token.startswith("sha256:"):
                digests.append(sha256(token.encode()).digest())
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
        return cls(digests, scopes)

    def accept(self, authorization: bytes | None) -> Scope | None:
        """What an Authorization header with one of the tokens may ask about; None if it has none of them."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not 0 < len(token) <= TOKEN_BYTES_MAX:
            return None
        shown = sha256(token.strip()).digest()
        # All are compared, so that the time does not tell which line matched.
        matches = [hmac.compare_digest(shown, digest) for digest in self._digests]
        found = [scope for scope, matched in zip(self._scopes, matches, strict=True) if matched]
        if not found:
            return None
        principal = shown.hex()
        if any(scope.clusters is None for scope in found):
            return Scope(None, principal)
        return Scope(frozenset().union(*(scope.clusters or () for scope in found)), principal)

    def key(self) -> bytes:
        """A key that all servers with this token file share, for cursors."""
        return sha256(b"kardia cursor\0" + b"".join(sorted(self._digests))).digest()


def _scope(names: list[str]) -> Scope | None:
    """Scope of the words behind a token; None if they are none."""
    if not names:
        return EVERYTHING
    try:
        given = [from_segment(name.removeprefix("cluster=")) for name in names]
    except ValueError:
        return None
    return Scope(frozenset(given)) if all(name.startswith("cluster=") for name in names) and all(given) else None
