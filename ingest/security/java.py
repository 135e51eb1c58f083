"""What a file with the names of Java's clients means (`kafka-configs.sh --command-config`, Connect, Spring).

A login is in `sasl.jaas.config`. Whom Java alone can load (a callback handler, a provider of ciphers) is refused: the
collector is no Java.
"""

from __future__ import annotations

from urllib.parse import quote_plus

from ingest.security import jaas, keystores
from ingest.security.config import SCRAM, ClientConfig, Identity, Password, Secret, Ticket, Token
from ingest.security.meaning import Given
from ingest.security.names import ALIKE, BOTH, CIPHERS, JAVA, JAVA_ALONE, JAVA_LOADS, OWN_COMMAND, PASSED_ON, nearest

OAUTH_HANDLER = "OAuthBearerLoginCallbackHandler"
_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": SCRAM,
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
}
_OPENSSL_HAS = {"TLSv1.2", "TLSv1.3"}

CREDENTIALS = "sasl.oauthbearer.client.credentials."
SINCE_4_1 = (f"{CREDENTIALS}client.id", f"{CREDENTIALS}client.secret", "sasl.oauthbearer.scope")
"""KIP-1139: what was in `sasl.jaas.config` before."""

_KNOWN = BOTH | JAVA | ALIKE | JAVA_ALONE | set(SINCE_4_1)


def meaning(given: Given) -> ClientConfig:
    """What the settings mean. Raises `SettingsError`."""
    for entry in given:
        if entry.name in JAVA_LOADS:
            raise given.wrong(
                entry.name,
                f"sets {entry.name} to what only Java can load, and the collector is no Java",
                "use a mechanism that needs none (SCRAM beside AWS_MSK_IAM), or OAUTHBEARER with a token endpoint",
            )
        if entry.name == CIPHERS:
            raise given.wrong(
                entry.name,
                f"sets {entry.name}, whose suites the collector's library calls otherwise",
                "let the brokers' listener decide (their ssl.cipher.suites), and take the line out",
            )
        if entry.name not in _KNOWN:
            raise given.wrong(
                entry.name,
                f"sets {entry.name}, which Kardia does not take{nearest(entry.name)}",
                "take the line out; a file of Java's names may hold security and the pace of connections",
            )
    protocol = given.protocol()
    found = _module(given)
    name = given.one_of("sasl.mechanism")
    mechanism = given.mechanism(name, protocol, "sasl.jaas.config" if found else "")
    trust, identity = _trust(given), _identity(given)
    given.needs_tls(protocol, identity, trust)
    _check_protocols(given)
    more = {entry.name: entry.value for entry in given}
    return ClientConfig(
        given.path,
        protocol,
        mechanism,
        _login(given, mechanism, found) if mechanism else None,
        trust,
        identity,
        given.checks_host(),
        librdkafka={name: value for name, value in more.items() if name in ALIKE | PASSED_ON},
        java={name: value for name, value in more.items() if name in ALIKE | JAVA_ALONE | PASSED_ON | {OWN_COMMAND}},
        written_java=more,
    )


def _module(given: Given) -> jaas.Login | None:
    if "sasl.jaas.config" not in given:
        return None
    try:
        return jaas.parse(given.get("sasl.jaas.config"))
    except jaas.JaasError as error:
        raise given.wrong(
            "sasl.jaas.config",
            f"sets sasl.jaas.config, which cannot be read: {error}",
            'write it as CLASS required username="NAME" password="…";',
        ) from None


def _login(given: Given, mechanism: str, found: jaas.Login | None) -> Password | Token | Ticket:
    name = "sasl.jaas.config"
    if found is None:
        raise given.wrong(name, f"says {mechanism}, and no sasl.jaas.config")
    if mechanism not in _MODULES.get(found.name, ()):
        fits = next(module for module, mechanisms in _MODULES.items() if mechanism in mechanisms)
        raise given.wrong(
            name, f"sets sasl.jaas.config with a login module that is not for {mechanism}; {fits} is the one"
        )
    handler = given.get("sasl.login.callback.handler.class").rpartition(".")[2]
    if handler and (handler != OAUTH_HANDLER or mechanism != "OAUTHBEARER"):
        raise given.wrong(
            "sasl.login.callback.handler.class",
            "sets sasl.login.callback.handler.class to a class that only Java can load, and the collector is no Java",
            f"use a mechanism that needs none, or OAUTHBEARER with {OAUTH_HANDLER} and a token endpoint",
        )
    options = found.options
    if mechanism == "OAUTHBEARER":
        return _token(given, options)
    if mechanism == "GSSAPI":
        service = given.get("sasl.kerberos.service.name") or options.get("serviceName") or "kafka"
        keytab = options.get("keyTab", "") if options.get("useKeyTab", "").lower() == "true" else ""
        if keytab:
            keytab = str(given.path.absolute().parent / keytab.removeprefix("file:"))
        return Ticket(service, options.get("principal", ""), keytab)
    if not options.get("username") or not options.get("password"):
        raise given.wrong(name, "sets sasl.jaas.config without username and password")
    if options.get("tokenauth", "").lower() == "true":
        raise given.wrong(
            name,
            "sets sasl.jaas.config with a delegation token, which librdkafka does not have",
            "log in with a user instead",
        )
    return Password(options["username"], Secret(options["password"]))


def _token(given: Given, options: dict[str, str]) -> Token:
    url = "sasl.oauthbearer.token.endpoint.url"
    if not given.get(url):
        raise given.wrong(
            url,
            f"says OAUTHBEARER, and no {url}",
            "name the token endpoint; unsigned tokens that a client makes itself are not taken",
        )
    client, secret, scope = (given.get(name) for name in SINCE_4_1)
    client, secret = client or options.get("clientId", ""), secret or options.get("clientSecret", "")
    if not client or not secret:
        raise given.wrong("sasl.jaas.config", "sets sasl.jaas.config without clientId and clientSecret")
    encodes = "sasl.oauthbearer.header.urlencode"
    if given.get(encodes).lower() == "true" and quote_plus(client + secret) != client + secret:
        raise given.wrong(
            encodes,
            f"sets {encodes}, and its credentials have characters that librdkafka would not encode",
            "have a client id and a secret of letters, digits and . _ - * made, or take the line out",
        )
    trust = ""
    if options.get("ssl.truststore.location"):
        place = given.path.absolute().parent / options["ssl.truststore.location"]
        trust = given.store(
            "sasl.jaas.config",
            lambda: keystores.authorities(keystores.content(place), options.get("ssl.truststore.password")),
        )
    extensions = {name[len("extension_") :]: value for name, value in options.items() if name.startswith("extension_")}
    return Token(given.get(url), client, Secret(secret), scope or options.get("scope", ""), extensions, trust)


def _trust(given: Given) -> str:
    location, inline = "ssl.truststore.location", "ssl.truststore.certificates"
    name = given.one_of(location, inline)
    _known_type(given, "ssl.truststore.type")
    if name == inline:
        return given.store(inline, lambda: keystores.authorities(given.get(inline).encode()))
    if not name:
        return ""
    password = given.get("ssl.truststore.password") if "ssl.truststore.password" in given else None
    return given.store(location, lambda: keystores.authorities(given.bytes_of(location), password))


def _identity(given: Given) -> Identity | None:
    location, chain, key = "ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.keystore.key"
    name = given.one_of(location, chain)
    _known_type(given, "ssl.keystore.type")
    of_key = given.get("ssl.key.password") if "ssl.key.password" in given else None
    if name == location:
        password = given.get("ssl.keystore.password") if "ssl.keystore.password" in given else None
        return given.store(location, lambda: keystores.identity(given.bytes_of(location), password, of_key))
    if (chain in given) != (key in given):
        raise given.wrong(name or key, f"sets {name or key} without {key if name else chain}")
    if not name:
        return None
    certificates, private = given.get(chain).encode(), given.get(key).encode()
    return given.store(key, lambda: keystores.pair(certificates, private, of_key))


def _known_type(given: Given, name: str) -> None:
    if name in given and given.get(name).upper() not in ("PEM", "JKS", "PKCS12"):
        raise given.wrong(
            name,
            f"sets {name} to a store that only Java can open; PEM, PKCS12 and JKS are taken",
            "convert it: keytool -importkeystore -srckeystore STORE -destkeystore STORE.p12 -deststoretype PKCS12",
        )


def _check_protocols(given: Given) -> None:
    """librdkafka has no setting for versions of TLS: OpenSSL takes 1.2 and 1.3. Anything narrower would not be kept."""
    enabled = {one.strip() for one in given.get("ssl.enabled.protocols").split(",") if one.strip()}
    if enabled and not enabled >= _OPENSSL_HAS:
        raise given.wrong(
            "ssl.enabled.protocols",
            "sets ssl.enabled.protocols to less than TLSv1.2,TLSv1.3, which librdkafka cannot be told",
            "let the brokers' listener decide (their ssl.enabled.protocols), and take the line out",
        )
    if given.get("ssl.protocol") not in ("", "TLS", *_OPENSSL_HAS):
        raise given.wrong("ssl.protocol", "sets ssl.protocol to neither TLSv1.3 nor TLSv1.2")
