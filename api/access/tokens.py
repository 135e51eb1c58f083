"""Bearer tokens: who may ask, and about which clusters. Only digests are kept; comparing takes the same time always.

File format: one token per line, either the token itself (at least 32 visible ASCII characters) or `sha256:` and 64 hex
digits of it; behind it `cluster=NAME` for each cluster that it is for, all clusters if there is none, and
`expires=INSTANT` (RFC 3339) from when on it is none. A name that is not plain is written as in a URL, `~` and
base64url. Blank lines and lines that begin with `#` are passed over; say there whose a token is. All lines are valid at
once, two for rotation. A line ends with a newline and with nothing else: without one at its end the file may be half
written, and a line that was cut behind its token would give more than was meant. `api.access.token_file` follows
the file.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from api.access.ids import from_segment
from kardia.instants import parse_instant

TOKEN_CHARS_MIN = 32
TOKEN_BYTES_MAX = 4_096
TOKENS_MAX = 100

TOKEN = re.compile(rf"[!-~]{{{TOKEN_CHARS_MIN},}}")
"""What a header can carry unchanged; no blank or control character can make two of one."""


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


class Right(NamedTuple):
    """What a line of the file gives, and until when (exclusive); None: until the line is taken away."""

    scope: Scope
    expires_at_ms: int | None = None


class Tokens:
    """A set of accepted tokens."""

    def __init__(self, digests: list[bytes], rights: list[Right]) -> None:
        self._digests = digests
        self._rights = rights

    def __repr__(self) -> str:
        return f"Tokens({len(self._digests)} hidden)"

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Tokens of a file; TokenFileError names the line, never its content."""
        try:
            *lines, rest = path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFileError(
                f"token file: {path.name} cannot be read ({type(error).__name__}); expected a text file with one token "
                "per line; check the path and its permissions."
            ) from None
        if rest.strip():
            raise TokenFileError(
                f"token file: line {len(lines) + 1} of {path.name} has no newline at its end and may be half written; "
                "expected a newline behind every line; add it, and replace the file as a whole (write another one, "
                "then rename it)."
            )
        digests: list[bytes] = []
        rights: list[Right] = []
        for number, line in enumerate((line.strip() for line in lines), 1):
            if not line or line.startswith("#"):
                continue
            token, *names = re.split(r"[ \t]+", line)
            right = _right(names)
            if right is None:
                raise TokenFileError(
                    f"token file: line {number} of {path.name} has something behind its token; expected nothing, or "
                    "cluster=NAME for each cluster that it is for, and expires=INSTANT with an RFC 3339 time."
                )
            rights.append(right)
            if re.fullmatch(r"sha256:[0-9a-fA-F]{64}", token):
                digests.append(bytes.fromhex(token.removeprefix("sha256:")))
            elif TOKEN.fullmatch(token) and not token.startswith("sha256:"):
                digests.append(sha256(token.encode()).digest())
            else:
                raise TokenFileError(
                    f"token file: line {number} of {path.name} is none; expected {TOKEN_CHARS_MIN} or more visible "
                    "ASCII characters or sha256: and 64 hex digits; make one with `openssl rand -hex 32`."
                )
        if not 1 <= len(digests) <= TOKENS_MAX:
            raise TokenFileError(
                f"token file: {path.name} has {len(digests)} tokens; expected 1 to {TOKENS_MAX}; "
                "make one with `openssl rand -hex 32`."
            )
        return cls(digests, rights)

    def accept(self, authorization: bytes | None, now_ms: int) -> Scope | None:
        """What an Authorization header with one of the tokens may ask about; None if it has none that is valid now."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not 0 < len(token) <= TOKEN_BYTES_MAX:
            return None
        shown = sha256(token.strip()).digest()
        # All are compared, so that the time does not tell which line matched.
        matches = [hmac.compare_digest(shown, digest) for digest in self._digests]
        found = [
            right.scope
            for right, matched in zip(self._rights, matches, strict=True)
            if matched and (right.expires_at_ms is None or now_ms < right.expires_at_ms)
        ]
        if not found:
            return None
        principal = shown.hex()
        if any(scope.clusters is None for scope in found):
            return Scope(None, principal)
        return Scope(frozenset().union(*(scope.clusters or () for scope in found)), principal)

    def key(self) -> bytes:
        """A key that all servers with this token file share, for cursors."""
        return sha256(b"kardia cursor\0" + b"".join(sorted(self._digests))).digest()


def _right(words: list[str]) -> Right | None:
    """What the words behind a token say; None if they say nothing that is known."""
    ends = [word.removeprefix("expires=") for word in words if word.startswith("expires=")]
    names = [word for word in words if not word.startswith("expires=")]
    try:
        given = [from_segment(name.removeprefix("cluster=")) for name in names]
        expires_at_ms = parse_instant(ends[0]) if ends else None
    except ValueError:
        return None
    if len(ends) > 1 or not all(name.startswith("cluster=") for name in names) or not all(given):
        return None
    return Right(Scope(frozenset(given)) if given else EVERYTHING, expires_at_ms)
