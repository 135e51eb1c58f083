"""Names of settings: which library has which, and what both mean alike. Data, and the questions that are asked of it.

Truth: librdkafka 2.16, CONFIGURATION.md; Kafka 3.9 and 4.x, `SaslConfigs`, `SslConfigs`, `CommonClientConfigs`.
"""

from __future__ import annotations

import difflib

OWN = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "compression.type",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "message.timeout.ms",
        "metadata.broker.list",
        "transactional.id",
    }
)
"""Names that Kardia sets itself: its promises rest on them."""

ALIKE = frozenset(
    {
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
    }
)
"""Beside security: one name, one meaning, in both."""

JAVA_ALONE = frozenset(
    {
        "default.api.timeout.ms",
        "receive.buffer.bytes",
        "request.timeout.ms",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.scope.claim.name",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
    }
)
"""Pace and patience of Java's clients, and how they read tokens; others have their own."""

BOTH = frozenset(
    {
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "security.protocol",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)
"""Security, by one name in both."""

PASSED_ON = frozenset({"sasl.kerberos.min.time.before.relogin", "sasl.oauthbearer.sub.claim.name"})
"""Those of `BOTH` that are given on as they are."""

OWN_COMMAND = "sasl.kerberos.kinit.cmd"
"""A line of the shell to librdkafka, a program to Java: each has its own."""

LIBRDKAFKA = frozenset(
    {
        "https.ca.location",
        "https.ca.pem",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.password",
        "sasl.username",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.key.location",
        "ssl.key.pem",
    }
)
"""Security, in librdkafka alone, with an equal in Java."""

UNTRANSLATED = frozenset(
    {
        "enable.ssl.certificate.verification",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.sigalgs.list",
    }
)
"""Security, in librdkafka, without an equal in Java."""

CIPHERS = "ssl.cipher.suites"
"""In both by one name, with suites that each calls otherwise: it does not tell whose file it is."""

JAVA = frozenset(
    {
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "ssl.enabled.protocols",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Security, in Java alone, with an equal in librdkafka."""

JAVA_LOADS = frozenset(
    {
        "sasl.client.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "security.providers",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)
"""Security, in Java alone, which names what only a JVM can load."""

_OF_SECURITY = ("security.", "sasl.", "ssl.", "https.", "enable.ssl.", "enable.sasl.", "oauth_", "config.providers")


def is_of_security(name: str) -> bool:
    """Whether who we are or whom we trust may hang on it."""
    return name.startswith(_OF_SECURITY)


def nearest(name: str) -> str:
    """A hint for a name that nobody has."""
    known = BOTH | LIBRDKAFKA | UNTRANSLATED | JAVA | JAVA_LOADS | ALIKE | JAVA_ALONE
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""
