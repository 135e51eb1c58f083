"""Why a broker does not take us, in one sentence: from what the client library heard, and one look of our own.

librdkafka says "certificate verify failed" of every certificate, and nothing at all where a listener speaks another
protocol than we do. So the address is called once more, by Python's TLS, which says what is wrong with a certificate,
and with the smallest request that tells how a listener wants to be spoken to: SaslHandshake (key 17, version 1), whose
answer names its mechanisms. At most two connections; nothing that was answered is shown but words from closed lists.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from ingest.security.config import MECHANISMS
from ingest.security.rendering import tls

TIMEOUT_S = 5.0
_MAX_ANSWER = 4_096

_UNSUPPORTED_MECHANISM, _NO_SASL_HERE = 33, 34
"""Error codes of the protocol: UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE."""


class Reason(NamedTuple):
    """Why, and what to do."""

    what: str
    next_step: str
    is_final: bool
    """Waiting does not mend it."""


def reason(bootstrap: str, settings: Mapping[str, str], heard: Iterable[str]) -> Reason:
    """The reason, as well as it can be told. `heard`: errors of the client library, the latest last."""
    texts = list(heard)
    for text in texts:
        found = _of_login(text, settings)
        if found is not None:
            return found
    looked = [_looked(address, settings) for address in _addresses(bootstrap)]
    final = [one for one in looked if one is not None and one.is_final]
    if final:
        return final[0]
    # The listener takes the mechanism, and the library still asks for a token: while it tries again it keeps to itself
    # what an endpoint answers.
    waits = settings.get("sasl.mechanisms") == "OAUTHBEARER" and _TAKES in looked
    others = (one for one in looked if one is not None and one is not _TAKES)
    return next(others, _NO_TOKEN if waits else _NOBODY)


_NO_TOKEN = Reason(
    "the token endpoint gave no token that can be used",
    "check its address, that it can be reached from here, and what it answers: a token with a subject that is still "
    "valid, as JSON",
    False,
)
_TAKES = Reason("the listener takes the mechanism", "log in", False)
_NOBODY = Reason("no broker answered", "check the addresses, the network, and that the brokers are up", False)

_WRONG_LOGIN = re.compile(r"invalid credentials|Invalid username or password|invalid_client|unauthorized_client", re.I)
_ENDPOINT = re.compile(r"OAUTHBEARER token|token endpoint|OIDC", re.I)
_OTHER_MECHANISM = re.compile(r"Unsupported SASL mechanism")


def _of_login(text: str, settings: Mapping[str, str]) -> Reason | None:
    """What a broker, or a token endpoint, said of who logs in."""
    mechanism = settings.get("sasl.mechanisms", "")
    if not mechanism:
        return None
    if mechanism == "OAUTHBEARER" and _ENDPOINT.search(text):
        refused = _WRONG_LOGIN.search(text) is not None or re.search(r"\b40[013]\b", text) is not None
        if refused:
            what = "the token endpoint refuses these client credentials"
            return Reason(what, "correct client id, client secret and scope of the client settings", True)
        return _NO_TOKEN
    if _WRONG_LOGIN.search(text):
        user = settings.get("sasl.username", "")
        return Reason(
            f"the broker refuses the login of user {user!r} with {mechanism}: no such user, or another password",
            "correct user and password in the client settings; a user of SCRAM is made for each mechanism separately "
            "(kafka-configs.sh --alter --entity-type users)",
            True,
        )
    if mechanism == "OAUTHBEARER" and "uthentication" in text:
        return Reason(
            "the broker refuses the token", "check scope, audience and issuer against the broker's settings", True
        )
    return None


def _addresses(bootstrap: str) -> list[tuple[str, int]]:
    found = []
    for one in bootstrap.split(",")[:3]:
        host, _, port = one.strip().rpartition(":")
        if port.isdigit() and int(port) < 65_536:
            found.append((host.rpartition("//")[2].strip("[]"), int(port)))
    return found


def _looked(address: tuple[str, int], settings: Mapping[str, str]) -> Reason | None:
    """What a look at one address tells."""
    try:
        with socket.create_connection(address, TIMEOUT_S) as bare:
            protocol = settings.get("security.protocol", "PLAINTEXT").upper()
            return _spoken_tls(bare, address[0], settings) if protocol.endswith("SSL") else _spoken(bare, settings)
    except socket.gaierror:
        return Reason("the name of the broker cannot be resolved", "correct the address, or the name server", False)
    except OSError as error:
        if isinstance(error, TimeoutError):
            return Reason("the broker does not answer", "check the address, and firewalls on the way", False)
        if isinstance(error, ConnectionRefusedError):
            return Reason("nobody listens at this address", "check the address, and that the broker is up", False)
        return None


def _spoken_tls(bare: socket.socket, host: str, settings: Mapping[str, str]) -> Reason | None:
    context, bare_address = tls(settings), bare.getpeername()[:2]
    try:
        with context.wrap_socket(bare, server_hostname=host) as connection:
            return _after_tls(connection, settings)
    except ssl.SSLCertVerificationError as error:
        return _certificate(error)
    except (ssl.SSLError, ConnectionError) as error:
        alert = _alert(str(error), settings.get("ssl.certificate.pem", ""))
        return alert or _without_tls(bare_address)


def _without_tls(address: tuple[str, int]) -> Reason:
    """Why TLS does not come about: the listener answers without it, or something on the way closes the connection."""
    try:
        with socket.create_connection(address, TIMEOUT_S) as bare:
            _offered(bare)
    except (OSError, struct.error):
        what = "the connection is closed before TLS is agreed upon"
        return Reason(what, "check that a broker with TLS listens there, and what is on the way to it", False)
    return Reason(
        "TLS is asked for (security.protocol), but the listener does not speak it",
        "set security.protocol to what this listener speaks, or give the port of the one with TLS",
        True,
    )


def _certificate(error: ssl.SSLCertVerificationError) -> Reason:
    text = error.verify_message or ""
    if "has expired" in text:
        what, step = "the certificate of the broker has expired", "renew it on the broker"
    elif "not yet valid" in text:
        what, step = "the certificate of the broker is not valid yet", "compare the clocks of both machines"
    elif "mismatch" in text or "not valid for" in text:
        what = "the certificate of the broker is for another name than this address"
        step = "use a name that it is for (its subjectAltName), in --bootstrap-server and in advertised.listeners"
    else:
        what = "the certificate of the broker is by an authority that is not trusted here"
        step = "name that authority in ssl.ca.location (in Java's names ssl.truststore.location)"
    return Reason(what, step, True)


def _alert(text: str, own: str) -> Reason | None:
    """What a broker says of the certificate of the client."""
    text = text.lower().replace("_", " ")
    if "alert" not in text or not ("certificate" in text or "unknown ca" in text):
        return None
    if not own:
        return Reason(
            "the broker asks for a certificate of the client",
            "give one: ssl.certificate.location and ssl.key.location (in Java's names ssl.keystore.location)",
            True,
        )
    from cryptography import x509  # here: 0.1 s, and few ask

    ended = x509.load_pem_x509_certificates(own.encode())[0].not_valid_after_utc
    if ended < datetime.now(UTC):
        what = f"the certificate of the client has expired ({ended:%Y-%m-%dT%H:%M:%SZ}), and the broker refuses it"
        return Reason(what, "renew it, and start again", True)
    return Reason(
        "the broker refuses the certificate of the client: most likely it does not trust its authority",
        "let the brokers trust that authority (their ssl.truststore.location), or use another certificate",
        True,
    )


def _after_tls(connection: ssl.SSLSocket, settings: Mapping[str, str]) -> Reason | None:
    try:
        return _sasl(_offered(connection), settings)
    except (ssl.SSLError, ConnectionError) as error:  # with TLS 1.3 a certificate is refused after the handshake
        return _alert(str(error), settings.get("ssl.certificate.pem", ""))


def _spoken(bare: socket.socket, settings: Mapping[str, str]) -> Reason | None:
    try:
        return _sasl(_offered(bare), settings)
    except (ConnectionError, TimeoutError, struct.error):
        pass
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # a look whether TLS is spoken there; nothing is told to it
    try:
        with (
            socket.create_connection(bare.getpeername()[:2], TIMEOUT_S) as again,
            context.wrap_socket(again),
        ):
            pass
    except (ssl.SSLError, OSError):
        return None
    return Reason(
        "the listener speaks TLS, but security.protocol does not",
        "set security.protocol to SASL_SSL or SSL, or give the port of a listener without TLS",
        True,
    )


def _offered(connection: socket.socket) -> tuple[int, list[str]]:
    """Error code and mechanisms of the answer to a SaslHandshake that names none."""
    connection.settimeout(TIMEOUT_S)
    request = struct.pack(">hhih", 17, 1, 1, 6) + b"kardia" + struct.pack(">h", 0)
    connection.sendall(struct.pack(">i", len(request)) + request)
    [size] = struct.unpack(">i", _exactly(connection, 4))
    if not 10 <= size <= _MAX_ANSWER:
        raise ConnectionError
    answer = _exactly(connection, size)
    _, code, count = struct.unpack_from(">ihi", answer)
    at, offered = 10, []
    for _ in range(min(count, 32)):
        [length] = struct.unpack_from(">h", answer, at)
        offered.append(answer[at + 2 : at + 2 + length].decode("ascii", "replace"))
        at += 2 + length
    return code, offered


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = connection.recv(count - len(found))
        if not more:
            raise ConnectionError("closed")
        found += more
    return found


def _sasl(answer: tuple[int, list[str]], settings: Mapping[str, str]) -> Reason | None:
    code, offered = answer
    mechanism = settings.get("sasl.mechanisms", "")
    known = [one for one in offered if one in MECHANISMS]
    others = len(offered) - len(known)
    named = ", ".join(known + ([f"{others} more"] if others else [])) or "none"
    if code == _NO_SASL_HERE and mechanism:
        return Reason(
            "the listener asks nobody to log in, but security.protocol says SASL",
            "set security.protocol to SSL or PLAINTEXT, or give the port of the listener with SASL",
            True,
        )
    if code == _UNSUPPORTED_MECHANISM and not mechanism:
        return Reason(
            f"the listener asks for a login by SASL ({named}), but security.protocol says none",
            "set security.protocol to SASL_SSL (or SASL_PLAINTEXT), and who logs in",
            True,
        )
    if code == _UNSUPPORTED_MECHANISM and mechanism not in offered:
        return Reason(
            f"the listener does not take the mechanism {mechanism}; it takes {named}",
            "set sasl.mechanism to one of those",
            True,
        )
    return _TAKES
