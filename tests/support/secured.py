"""A real broker as a careful owner runs it: TLS, SASL, client certificates, and rights for those who got them only.

One node on the loopback address with Kafka's own authorizer (StandardAuthorizer). Its listeners:

    PLAINTEXT   inner, of the super user: makes users, rights and topics for the tests
    SECURED     SASL_SSL with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER (unsigned tokens, as Kafka ships it)
    MUTUAL      SSL that asks for a certificate of the client
    EXPIRED     SSL whose own certificate is over

Certificates are made here, by `cryptography`; nothing outside the test's folder is trusted or touched.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub does not list them
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from demo.broker import NEWEST, Broker, BrokerSettings
from demo.ports import HOST, free_ports

PLAIN_PASSWORD = 'plain-Secret;"\\ #=1'
SCRAM_PASSWORD = 'scram-Secret;"\\ #=2'
SECRETS = (PLAIN_PASSWORD, SCRAM_PASSWORD, "client-Secret-3")

USER = "kardia"
WAIT_S = 30.0


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> str:
        """As people keep it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """PKCS #8, without a password."""
        return self.key_bytes(serialization.PrivateFormat.PKCS8).decode()

    def key_bytes(self, form: serialization.PrivateFormat, password: str = "") -> bytes:
        """The key in a form of PEM, encrypted if there is a password."""
        hidden: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            hidden = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(serialization.Encoding.PEM, form, hidden)


def authority(name: str = "Test CA") -> Pair:
    """A certificate authority."""
    return _certificate(name, None, days=(-2, 30))


def issued(name: str, by: Pair, *, days: tuple[int, int] = (-1, 30), host: str = HOST) -> Pair:
    """A certificate for a name, valid from and to so many days from now."""
    return _certificate(name, by, days=days, host=host)


def _certificate(name: str, by: Pair | None, *, days: tuple[int, int], host: str = HOST) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Tests, inc.")]
    )
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    if host:
        names.append(x509.IPAddress(ipaddress.ip_address(host)))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if by is None:
        builder = builder.add_extension(_SIGNS, critical=True)
    else:
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), critical=False
        ).add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Pair(builder.sign((by.key if by else key), hashes.SHA256()), key)


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class SecuredBroker:
    """The broker, of a release of Kafka, its certificates and its users. A context manager."""

    def __init__(self, directory: Path, version: str = NEWEST) -> None:
        self.folder = directory / "tls"
        self.folder.mkdir(parents=True)
        self.authority = authority()
        self.stranger = authority("Another CA")
        self.client = issued(USER, self.authority, host="")
        self.expired_client = issued(USER, self.authority, days=(-9, -1), host="")
        self.ca = self._file("ca.pem", self.authority.certificate_pem)
        self.other_ca = self._file("other-ca.pem", self.stranger.certificate_pem)
        self._server = self._store("server.pem", issued("broker", self.authority))
        self._expired = self._store("expired.pem", issued("broker", self.authority, days=(-9, -1)))
        inner, controller, self._secured, self._mutual, self._over = free_ports(5)
        self.broker = Broker(
            directory / "broker",
            BrokerSettings(version=version, ports=(inner, controller), extra=self._properties(inner, controller)),
        )

    def _file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def _store(self, name: str, pair: Pair) -> Path:
        return self._file(name, pair.key_pem + pair.certificate_pem)

    @property
    def secured(self) -> str:
        """SASL_SSL."""
        return f"{HOST}:{self._secured}"

    @property
    def mutual(self) -> str:
        """SSL with client certificates."""
        return f"{HOST}:{self._mutual}"

    @property
    def expired(self) -> str:
        """SSL with a certificate that is over."""
        return f"{HOST}:{self._over}"

    @property
    def inner(self) -> str:
        """PLAINTEXT, of the super user."""
        return self.broker.bootstrap

    def _properties(self, inner: int, controller: int) -> dict[str, str]:
        ports = {
            "PLAINTEXT": inner,
            "SECURED": self._secured,
            "MUTUAL": self._mutual,
            "EXPIRED": self._over,
        }
        spoken = {"PLAINTEXT": "PLAINTEXT", "SECURED": "SASL_SSL", "MUTUAL": "SSL", "EXPIRED": "SSL"}
        own = [f"{name}://{HOST}:{port}" for name, port in ports.items()]
        properties = {
            "listeners": ",".join([*own, f"CONTROLLER://{HOST}:{controller}"]),
            "advertised.listeners": ",".join(own),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in {**spoken, "CONTROLLER": "PLAINTEXT"}.items()
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        }
        for name, store in {"secured": self._server, "mutual": self._server, "expired": self._expired}.items():
            properties |= {
                f"listener.name.{name}.ssl.keystore.type": "PEM",
                f"listener.name.{name}.ssl.keystore.location": str(store),
                f"listener.name.{name}.ssl.truststore.type": "PEM",
                f"listener.name.{name}.ssl.truststore.location": str(self.ca),
            }
        properties["listener.name.mutual.ssl.client.auth"] = "required"
        module = "org.apache.kafka.common.security"
        password = escaped(PLAIN_PASSWORD)
        for mechanism, login in {
            "plain": f'{module}.plain.PlainLoginModule required user_{USER}="{password}";',
            "scram-sha-256": f"{module}.scram.ScramLoginModule required;",
            "scram-sha-512": f"{module}.scram.ScramLoginModule required;",
            "oauthbearer": f"{module}.oauthbearer.OAuthBearerLoginModule required;",
        }.items():
            properties[f"listener.name.secured.{mechanism}.sasl.jaas.config"] = login.replace("\\", "\\\\")
        return properties

    def __enter__(self) -> SecuredBroker:
        self.broker.start()
        self.admin = AdminClient({"bootstrap.servers": self.inner, "log_level": 0})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            made = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), SCRAM_PASSWORD.encode())
            self.admin.alter_user_scram_credentials([made])[USER].result(WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.stop()

    def allow(self, principal: str, rights: Sequence[tuple[str, str, str]]) -> None:
        """Give rights: (`topic`, name, `Read`), (`cluster`, ``, `Describe`)."""
        if rights:
            for one in self.admin.create_acls([_binding(principal, *right) for right in rights]).values():
                one.result(WAIT_S)

    def forbid_all(self) -> None:
        """Take every right away."""
        every = AclBindingFilter(
            ResourceType.ANY,
            None,  # type: ignore[arg-type]  # any; its stub does not say so
            ResourcePatternType.ANY,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        self.admin.delete_acls([every])[every].result(WAIT_S)

    def config(self, name: str, lines: dict[str, str]) -> Path:
        """A file of client settings."""
        return self._file(name, "".join(f"{key}={value}\n" for key, value in lines.items()))

    def scram(self, **more: str) -> dict[str, str]:
        """Settings of the user with SCRAM, as librdkafka names them."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": SCRAM_PASSWORD,
            "ssl.ca.location": str(self.ca),
            **{key.replace("_", "."): value for key, value in more.items()},
        }


def escaped(text: str) -> str:
    """A value within the quotes of JAAS."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _binding(principal: str, kind: str, name: str, operation: str) -> AclBinding:
    return AclBinding(
        {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}[kind],
        name or "kafka-cluster",
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[{"DescribeConfigs": "DESCRIBE_CONFIGS"}.get(operation, operation.upper())],
        AclPermissionType.ALLOW,
    )
