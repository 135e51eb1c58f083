"""A `ClientConfig` in the names of the libraries that run in this process: librdkafka, and Python's own TLS."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ingest.security.config import ClientConfig, Password, Secret, Ticket, Token

GENTLE = {
    # By default (rebootstrap, librdkafka 2.16) a client that reaches no broker, or is refused by all, begins anew with
    # the addresses it was given and forgets how often it has tried: 18 connections a second were counted, for ever.
    # Without it brokers are found by the addresses that the cluster has told last.
    "metadata.recovery.strategy": "none",
    # The back-off doubles, but not where TLS fails: then the library connects twice in this time, for ever; at its
    # default of 100 ms that is 18 handshakes a second again. tests/ingest/security/test_reach.py counts them.
    "reconnect.backoff.ms": "2000",
    "reconnect.backoff.max.ms": "5000",
}
"""How often a broker is tried again. A file may set them otherwise."""


def librdkafka(config: ClientConfig) -> dict[str, str]:
    """Settings of clients of librdkafka."""
    found = {**GENTLE, **config.librdkafka}
    if config.protocol != "PLAINTEXT" or config.path is not None:
        found["security.protocol"] = config.protocol
    if config.has_tls:
        found |= _tls_of_librdkafka(config)
    if config.mechanism:
        found["sasl.mechanisms"] = config.mechanism
    login = config.login
    if isinstance(login, Password):
        found |= {"sasl.username": login.username, "sasl.password": Secret(login.password)}
    elif isinstance(login, Token):
        found |= _with_token(login)
    elif isinstance(login, Ticket):
        found |= _with_ticket(login)
    return found


def _tls_of_librdkafka(config: ClientConfig) -> dict[str, str]:
    found = {"ssl.endpoint.identification.algorithm": "https" if config.checks_host else "none"}
    if config.authorities:
        found["ssl.ca.pem"] = config.authorities
    if config.identity is not None:
        found["ssl.certificate.pem"] = config.identity.certificates
        found["ssl.key.pem"] = Secret(config.identity.key)
    return found


def _with_token(login: Token) -> dict[str, str]:
    found = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": login.url,
        "sasl.oauthbearer.client.id": login.client_id,
        "sasl.oauthbearer.client.secret": Secret(login.client_secret),
    }
    if login.scope:
        found["sasl.oauthbearer.scope"] = login.scope
    if login.extensions:
        found["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in login.extensions.items())
    if login.authorities:
        found["https.ca.pem"] = login.authorities
    return found


def _with_ticket(login: Ticket) -> dict[str, str]:
    found = {"sasl.kerberos.service.name": login.service}
    if login.principal:
        found["sasl.kerberos.principal"] = login.principal
    if login.keytab:
        found["sasl.kerberos.keytab"] = login.keytab
    else:  # somebody else keeps the ticket cache
        found["sasl.kerberos.min.time.before.relogin"] = "0"
    return found


def kafka_python(settings: Mapping[str, str]) -> dict[str, Any] | str:
    """Settings of kafka-python, from those of librdkafka above; or why it cannot have them."""
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    options: dict[str, Any] = {"security_protocol": protocol}
    mechanism = settings.get("sasl.mechanisms", "")
    if mechanism in ("OAUTHBEARER", "GSSAPI"):
        return f"the client that asks for levels does not log in with {mechanism}"
    if mechanism:
        options |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": settings["sasl.username"],
            "sasl_plain_password": str(settings["sasl.password"]),
        }
    if protocol.endswith("SSL"):
        options["ssl_context"] = tls(settings)
    return options


def tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Python's own TLS as `librdkafka` above has it: the same trust, the same certificate of the client."""
    context = ssl.create_default_context(cadata=settings.get("ssl.ca.pem") or None)
    # OpenSSL's own rules, as librdkafka has them; Python 3.13 adds more, which older authorities do not keep.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl.key.pem" in settings:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # of mode 0600; Python reads keys from files only
            file.write(settings["ssl.certificate.pem"] + settings["ssl.key.pem"])
            file.flush()
            context.load_cert_chain(Path(file.name))
    return context
