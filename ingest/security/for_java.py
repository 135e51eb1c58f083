"""A `ClientConfig` for Java's clients (Spark's Kafka source), so that no secret is an option of anything.

Spark keeps the options of a source in plans, which its page, its logs and its event files show. So secrets are given by
reference: `${file:PATH:NAME}` is replaced by Kafka's own client when it is made (KIP-297, `FileConfigProvider`), from a
file that only this user can read, in a folder that is removed when the job ends.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from ingest.errors import SettingsError
from ingest.security import jaas, java, properties
from ingest.security.config import ClientConfig, Password, Ticket, Token

_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
_SECURITY = "org.apache.kafka.common.security"
_OAUTH_HANDLER = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
_FILE = "client.properties"

SECRET = frozenset(
    {
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    }
)
"""Names whose values are never an option."""

_LONG = frozenset({"ssl.keystore.certificate.chain", "ssl.truststore.certificates"})
"""No secrets, but pages of text."""


def settings(config: ClientConfig, folder: Path) -> dict[str, str]:
    """Settings for clients in Java on this machine; writes what is secret into a file in `folder`, which is private.

    Raises `SettingsError` for what Java has no equal for.
    """
    if config.untranslated:
        raise SettingsError(
            f"{', '.join(config.untranslated)} has no equal in Java, and Spark reads Kafka with Java's client",
            str(config.path),
            "settings that both libraries have",
            "give the job a file of its own with --client-config, without it",
        )
    known = {**config.java, "security.protocol": config.protocol}
    known |= _login(config, folder)
    if config.has_tls:
        known |= _tls(config)
    return _by_reference(known, folder / _FILE)


def on_a_cluster(config: ClientConfig) -> dict[str, str]:
    """The same for executors on other machines: the file itself is referred to, and is to be there on each of them."""
    if config.path is None or config.protocol == "PLAINTEXT":
        return dict(config.java)
    if not config.written_java:
        raise SettingsError(
            "executors on other machines cannot read a file with the names of librdkafka",
            str(config.path),
            "a file with the names of Java (sasl.jaas.config, ssl.truststore.location), at this path on each worker",
            "write one, lay it there with its stores, and pass it with --client-config",
        )
    _check_for_executors(config)
    known = {
        name: str(config.path.absolute().parent / value) if name.endswith(".location") else value
        for name, value in config.written_java.items()
    }
    if isinstance(config.login, Token):
        known["sasl.login.callback.handler.class"] = _OAUTH_HANDLER  # without it Java makes up tokens itself
    return _references(known, config.path.absolute())


def _check_for_executors(config: ClientConfig) -> None:
    """What this process would translate, and executors that read the file itself do not."""
    newer = [name for name in java.SINCE_4_1 if name in config.written_java]
    if newer:
        raise SettingsError(
            f"{', '.join(newer)} came with Kafka 4.1, and Spark's client is of 3.9: executors would ignore it",
            str(config.path),
            "clientId, clientSecret and scope in sasl.jaas.config",
            "write them there; clients of 4.1 take them as well",
        )
    options = jaas.parse(config.written_java["sasl.jaas.config"]).options if config.login is not None else {}
    for name in ("keyTab", "ssl.truststore.location"):
        if options.get(name) and not Path(options[name].removeprefix("file:")).is_absolute():
            raise SettingsError(
                f"sasl.jaas.config has a relative path, {name}: executors would look for it below their own folders",
                str(config.path),
                "an absolute path that is the same on each worker",
                "write it so",
            )


def _by_reference(known: dict[str, str], file: Path) -> dict[str, str]:
    hidden = {name: value for name, value in known.items() if name in SECRET | _LONG}
    if not hidden:
        return known
    file.touch(mode=0o600)
    file.write_text(properties.written(hidden), encoding="ascii")
    return _references(known, file)


def _references(known: dict[str, str], file: Path) -> dict[str, str]:
    if any(char in str(file) for char in ":}"):
        raise SettingsError(
            "Java cannot refer to a file by this path",
            str(file),
            "a path without : and }",
            "choose another folder (TMPDIR for the job's own files)",
        )
    found = {name: f"${{file:{file}:{name}}}" if name in SECRET | _LONG else value for name, value in known.items()}
    return {**found, "config.providers": "file", "config.providers.file.class": _PROVIDER}


def _login(config: ClientConfig, folder: Path) -> dict[str, str]:
    login = config.login
    if login is None:
        return {}
    known = {"sasl.mechanism": config.mechanism}
    if isinstance(login, Password):
        module = "plain.PlainLoginModule" if config.mechanism == "PLAIN" else "scram.ScramLoginModule"
        options = {"username": login.username, "password": str(login.password)}
        known["sasl.jaas.config"] = jaas.written(f"{_SECURITY}.{module}", options)
    elif isinstance(login, Token):
        options = {"clientId": login.client_id, "clientSecret": str(login.client_secret)}
        if login.scope:
            options["scope"] = login.scope
        options |= {f"extension_{name}": value for name, value in login.extensions.items()}
        if login.authorities:
            trusted = folder / "endpoint.pem"
            trusted.write_text(login.authorities, encoding="ascii")
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
        known |= {
            "sasl.jaas.config": jaas.written(f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule", options),
            "sasl.login.callback.handler.class": _OAUTH_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": login.url,
        }
    else:
        known |= _ticket(login)
    return known


def _ticket(login: Ticket) -> dict[str, str]:
    options = {"useTicketCache": "true"}
    if login.keytab:
        options = {"useKeyTab": "true", "storeKey": "true", "keyTab": login.keytab}
    if login.principal:
        options["principal"] = login.principal
    module = "com.sun.security.auth.module.Krb5LoginModule"
    return {"sasl.jaas.config": jaas.written(module, options), "sasl.kerberos.service.name": login.service}


def _tls(config: ClientConfig) -> dict[str, str]:
    known = {"ssl.endpoint.identification.algorithm": "https" if config.checks_host else ""}
    trusted = config.authorities or _of_this_machine()
    if trusted:
        known |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
    if config.identity is not None:
        known |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": config.identity.certificates,
            "ssl.keystore.key": str(config.identity.key),
        }
    return known


def _of_this_machine() -> str:
    """The authorities that the other clients trust: a Java from PyPI knows none that the machine's owner added."""
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    return "".join(ssl.DER_cert_to_PEM_cert(one) for one in found)
