"""What a file with the names of librdkafka means."""

from __future__ import annotations

from ingest.security import keystores
from ingest.security.config import ClientConfig, Identity, Password, Secret, Ticket, Token
from ingest.security.meaning import Given
from ingest.security.names import ALIKE, BOTH, LIBRDKAFKA, OWN_COMMAND, PASSED_ON, UNTRANSLATED, is_of_security, nearest

_LOGINS = ("sasl.username", "sasl.oauthbearer.client.id", "sasl.kerberos.principal", "sasl.kerberos.keytab")


def meaning(given: Given) -> ClientConfig:
    """What the settings mean. Raises `SettingsError`."""
    for entry in given:
        if is_of_security(entry.name) and entry.name not in BOTH | LIBRDKAFKA | UNTRANSLATED:
            raise given.wrong(entry.name, f"sets {entry.name}, which Kardia does not take{nearest(entry.name)}")
    protocol = given.protocol()
    login = given.one_of("sasl.username", "sasl.oauthbearer.client.id") or next((n for n in _LOGINS if n in given), "")
    mechanism = given.mechanism(given.one_of("sasl.mechanism", "sasl.mechanisms"), protocol, login)
    trust, identity = _trust(given), _identity(given)
    given.needs_tls(protocol, identity, trust)
    more = {entry.name: entry.value for entry in given if not is_of_security(entry.name)}
    untranslated = [entry.name for entry in given if entry.name in UNTRANSLATED]
    own = {name: given.get(name) for name in (*untranslated, OWN_COMMAND, *PASSED_ON) if name in given}
    if "ssl.crl.location" in own:
        own["ssl.crl.location"] = str(given.place("ssl.crl.location"))
    return ClientConfig(
        given.path,
        protocol,
        mechanism,
        _login(given, mechanism),
        trust,
        identity,
        given.checks_host(),
        librdkafka={**more, **own},
        java={entry.name: entry.value for entry in given if entry.name in ALIKE | PASSED_ON},
        untranslated=tuple(untranslated),
    )


def _trust(given: Given) -> str:
    name = given.one_of("ssl.ca.location", "ssl.ca.pem")
    return authorities(given, name)


def authorities(given: Given, name: str) -> str:
    """Certificates of a setting that names a file or a folder, or holds them; empty without one, or with `probe`."""
    if not name or given.get(name) == "probe":
        return ""
    if name.endswith("pem"):
        return given.store(name, lambda: keystores.authorities(inline(given.get(name))))
    if given.place(name).is_dir():
        return given.store(name, lambda: keystores.folder_of_authorities(given.place(name)))
    return given.store(name, lambda: keystores.authorities(given.bytes_of(name)))


def inline(text: str) -> bytes:
    """PEM on one line, as a file of lines has it: `\\n` stands for the ends of lines."""
    return text.replace("\\n", "\n").encode()


def _identity(given: Given) -> Identity | None:
    store = "ssl.keystore.location"
    certificate = given.one_of("ssl.certificate.location", "ssl.certificate.pem", store)
    if certificate == store:
        password = _or_none(given, "ssl.keystore.password")
        return given.store(store, lambda: keystores.identity(given.bytes_of(store), password, password))
    key = given.one_of("ssl.key.location", "ssl.key.pem")
    if bool(certificate) != bool(key):
        lacks = "a key: ssl.key.location" if certificate else "a certificate: ssl.certificate.location"
        raise given.wrong(certificate or key, f"sets {certificate or key} without {lacks}")
    if not key:
        return None
    chain, private = (
        inline(given.get(one)) if one.endswith("pem") else given.bytes_of(one) for one in (certificate, key)
    )
    return given.store(key, lambda: keystores.pair(chain, private, _or_none(given, "ssl.key.password")))


def _or_none(given: Given, name: str) -> str | None:
    return given.get(name) if name in given else None


def _login(given: Given, mechanism: str) -> Password | Token | Ticket | None:
    if mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        for name in ("sasl.username", "sasl.password"):
            if not given.get(name):
                raise given.wrong(name, f"says {mechanism}, and no {name}")
        return Password(given.get("sasl.username"), Secret(given.get("sasl.password")))
    if mechanism == "OAUTHBEARER":
        return _token(given)
    if mechanism == "GSSAPI":
        keytab = str(given.place("sasl.kerberos.keytab")) if "sasl.kerberos.keytab" in given else ""
        service = given.get("sasl.kerberos.service.name") or "kafka"
        return Ticket(service, given.get("sasl.kerberos.principal"), keytab)
    return None


def _token(given: Given) -> Token:
    if given.get("sasl.oauthbearer.method").lower() not in ("", "oidc"):
        raise given.wrong(
            "sasl.oauthbearer.method", "sets sasl.oauthbearer.method, and oidc is the one that Kardia takes"
        )
    for name in ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"):
        if not given.get(name):
            raise given.wrong(name, f"says OAUTHBEARER, and no {name}")
    pairs = [one.partition("=") for one in given.get("sasl.oauthbearer.extensions").split(",") if one.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise given.wrong(
            "sasl.oauthbearer.extensions", "sets sasl.oauthbearer.extensions to something that is not a=b,c=d"
        )
    return Token(
        given.get("sasl.oauthbearer.token.endpoint.url"),
        given.get("sasl.oauthbearer.client.id"),
        Secret(given.get("sasl.oauthbearer.client.secret")),
        given.get("sasl.oauthbearer.scope"),
        {name.strip(): value.strip() for name, _, value in pairs},
        authorities(given, given.one_of("https.ca.location", "https.ca.pem")),
    )
