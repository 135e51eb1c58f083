"""Both kinds of file mean the same to both libraries: what is read of one comes out in the names of the other.

Method: passwords of any characters are written as people write them in a file of librdkafka and in one of Java, and the
text that Java's client would be given is read back by rules of Java that stand here a second time.
"""

from __future__ import annotations

import re
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st

from ingest.clients.settings import client_config
from ingest.errors import SettingsError
from ingest.security import for_java, jaas, keystores, properties
from ingest.security.config import ClientConfig, Identity, Password, Ticket, Token
from ingest.security.rendering import librdkafka
from ingest.security.rights import least
from spark_jobs.jvm import java
from tests.support.secured import Pair, authority, issued

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda text: text == text.strip())
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
URL = "https://id.example/token"
OURS_WITH_TOKEN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=OAUTHBEARER\nsasl.oauthbearer.method=oidc\n"
    f"sasl.oauthbearer.token.endpoint.url={URL}\nsasl.oauthbearer.client.id=c\nsasl.oauthbearer.client.secret=s\n"
)
THEIRS_WITH_TOKEN = (
    f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url={URL}\n"
    "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' clientId="c" clientSecret="s";\n'
)


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(text, encoding="utf-8")
    return path


@given(TEXTS, TEXTS)
def test_any_login_survives_the_way_to_java_and_back(username: str, password: str) -> None:
    text = jaas.written(MODULE, {"username": username, "password": password})
    lines = properties.written({"security.protocol": "SASL_SSL", "sasl.jaas.config": text})
    assert lines.isascii()
    [_, entry] = properties.java(lines)[0]
    assert jaas.parse(entry.value).options == {"username": username, "password": password}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_makes_the_reader_of_logins_fail_otherwise(text: str) -> None:
    with suppress(jaas.JaasError):
        assert jaas.parse(text).module


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_line_of_a_file_is_a_setting_or_named(text: str) -> None:
    for entries, others in (properties.plain(text), properties.java(text)):
        assert all(entry.name for entry in entries)
        assert len(entries) + len(others) <= len(re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text))


def test_lines_of_java_go_on_and_are_escaped() -> None:
    text = "! no\n a\\ b : 1\\\n   2\\u0041\n# c\nd e\\=f\ng\\:h=\\\\\\\n\n"
    assert [(one.line, one.name, one.value) for one in properties.java(text)[0]] == [
        (2, "a b", "12A"),
        (5, "d", "e=f"),
        (6, "g:h", "\\"),
    ]


def test_a_login_is_the_same_in_both_names(tmp_path: Path) -> None:
    password = 'p;"\\ #=x'
    ours = "security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=SCRAM-SHA-256\nsasl.username=u\n"
    one = client_config(file(tmp_path, f"{ours}sasl.password={password}\n"))
    quoted = password.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    theirs = f"sasl.jaas.config={MODULE} required \\\n  username=\"u\" \\\n  password='x' \\\n;"
    theirs = theirs.replace("'x'", f'"{quoted}"')
    other = client_config(
        file(tmp_path, f"security.protocol: SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n{theirs}\n")
    )
    assert one.login == other.login == Password("u", password)
    assert librdkafka(one) == librdkafka(other)
    assert one.principal == "User:u"


def java_of(config: ClientConfig, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Options of Spark, and what Kafka's FileConfigProvider makes of them."""
    options = for_java.settings(config, folder)
    path = folder / "client.properties"
    held = {one.name: one.value for one in properties.java(path.read_text())[0]} if path.exists() else {}
    reference = re.compile(r"\$\{file:([^}:]*):([^}]*)\}")
    resolved = {
        name: held[found[2]] if (found := reference.fullmatch(value)) and found[1] == str(path) else value
        for name, value in options.items()
    }
    return options, resolved


def test_java_is_given_no_secret_but_by_reference_to_a_file_of_this_user(tmp_path: Path) -> None:
    text = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=top-secret\n"
    options, resolved = java_of(client_config(file(tmp_path / "..", text)), tmp_path)
    assert "top-secret" not in str(options)
    assert jaas.parse(resolved["sasl.jaas.config"]).options == {"username": "u", "password": "top-secret"}
    assert stat.S_IMODE((tmp_path / "client.properties").stat().st_mode) == 0o600


def test_a_token_endpoint_in_both_names(tmp_path: Path) -> None:
    url = "https://id.example/token"
    ours = client_config(
        file(
            tmp_path,
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=OAUTHBEARER\nsasl.oauthbearer.method=oidc\n"
            f"sasl.oauthbearer.token.endpoint.url={url}\nsasl.oauthbearer.client.id=c\n"
            "sasl.oauthbearer.client.secret=s\nsasl.oauthbearer.scope=k\nsasl.oauthbearer.extensions=a=1,b=2\n",
        )
    )
    assert ours.login == Token(url, "c", "s", "k", {"a": "1", "b": "2"})
    _, java = java_of(ours, tmp_path)
    again = file(tmp_path, properties.written({k: v for k, v in java.items() if not k.startswith("config.")}))
    theirs = client_config(again)
    assert theirs.login == ours.login
    assert librdkafka(ours)["sasl.oauthbearer.extensions"] == "a=1,b=2"
    assert ours.principal == "", "who a token is for, only the broker can tell"


def test_kerberos_in_both_names(tmp_path: Path) -> None:
    ours = client_config(
        file(
            tmp_path,
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.keytab=/k\n"
            "sasl.kerberos.principal=kardia/host@R\nsasl.kerberos.service.name=broker\n",
        )
    )
    assert ours.login == Ticket("broker", "kardia/host@R", "/k")
    assert ours.principal == "User:kardia"
    _, java = java_of(ours, tmp_path)
    again = {name: value for name, value in java.items() if not name.startswith("config.")}
    assert client_config(file(tmp_path, properties.written(again))).login == ours.login
    cached = ClientConfig(tmp_path, "SASL_SSL", "GSSAPI", Ticket())
    assert librdkafka(cached)["sasl.kerberos.min.time.before.relogin"] == "0"


def test_what_a_library_calls_for_a_ticket_is_its_own_and_kept(tmp_path: Path) -> None:
    """`sasl.kerberos.kinit.cmd` is a line of the shell to the one and a program to the other."""
    begin = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
    more = "sasl.kerberos.kinit.cmd=kinit -R\nsasl.kerberos.min.time.before.relogin=5000\n"
    ours = client_config(file(tmp_path, f"{begin}{more}sasl.kerberos.keytab=k\n"))
    assert librdkafka(ours)["sasl.kerberos.kinit.cmd"] == "kinit -R"
    assert librdkafka(ours)["sasl.kerberos.min.time.before.relogin"] == "5000"
    _, java = java_of(ours, tmp_path)
    assert java["sasl.kerberos.min.time.before.relogin"] == "5000"
    assert "sasl.kerberos.kinit.cmd" not in java
    login = f'sasl.jaas.config={KERBEROS} required useTicketCache="true";\n'
    theirs = client_config(file(tmp_path, f"{begin}{more}{login}sasl.kerberos.ticket.renew.jitter=0.1\n"))
    assert "sasl.kerberos.kinit.cmd" not in librdkafka(theirs)
    assert librdkafka(theirs)["sasl.kerberos.min.time.before.relogin"] == "0", "somebody else keeps the cache"
    _, java = java_of(theirs, tmp_path)
    assert java["sasl.kerberos.kinit.cmd"] == "kinit -R"
    assert java["sasl.kerberos.ticket.renew.jitter"] == "0.1"


def test_a_keytab_is_below_the_folder_of_the_file_in_both_names(tmp_path: Path) -> None:
    login = f'{KERBEROS} required useKeyTab="true" keyTab="own/k" principal="kardia@R";'
    theirs = client_config(
        file(tmp_path, f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.jaas.config={login}\n")
    )
    assert theirs.login == Ticket("kafka", "kardia@R", str(tmp_path / "own" / "k"))
    with pytest.raises(SettingsError, match="relative path"):
        for_java.on_a_cluster(theirs)


def test_who_a_token_is_of_may_have_another_name_in_it(tmp_path: Path) -> None:
    name = "sasl.oauthbearer.sub.claim.name"
    ours = client_config(file(tmp_path, f"{OURS_WITH_TOKEN}{name}=azp\n"))
    theirs = client_config(file(tmp_path, f"{THEIRS_WITH_TOKEN}{name}=azp\nsasl.oauthbearer.scope.claim.name=scp\n"))
    for one in (ours, theirs):
        assert librdkafka(one)[name] == "azp"
        assert java_of(one, tmp_path)[1][name] == "azp"
    assert java_of(theirs, tmp_path)[1]["sasl.oauthbearer.scope.claim.name"] == "scp"


def test_credentials_that_only_java_would_encode_are_refused(tmp_path: Path) -> None:
    encodes = "sasl.oauthbearer.header.urlencode=true\n"
    assert client_config(file(tmp_path, THEIRS_WITH_TOKEN + encodes)).login == Token(URL, "c", "s")
    with pytest.raises(SettingsError, match=r"header\.urlencode"):
        client_config(file(tmp_path, THEIRS_WITH_TOKEN.replace('"s"', '"s/1"') + encodes))


def test_executors_elsewhere_get_what_sparks_client_knows(tmp_path: Path) -> None:
    """Spark's client is of Kafka 3.9: it ignores the names of 4.1, and without a handler it makes up tokens."""
    options = for_java.on_a_cluster(client_config(file(tmp_path, THEIRS_WITH_TOKEN)))
    assert options["sasl.login.callback.handler.class"].endswith(".oauthbearer.OAuthBearerLoginCallbackHandler")
    newer = THEIRS_WITH_TOKEN.replace(' clientId="c" clientSecret="s"', "")
    newer += "sasl.oauthbearer.client.credentials.client.id=c\nsasl.oauthbearer.client.credentials.client.secret=s\n"
    assert client_config(file(tmp_path, newer)).login == Token(URL, "c", "s")
    with pytest.raises(SettingsError, match=r"client\.credentials\.client\.id.*Kafka 4\.1"):
        for_java.on_a_cluster(client_config(file(tmp_path, newer)))


def test_what_only_java_can_load_is_named_as_that(tmp_path: Path) -> None:
    """The four lines that every client of Amazon's MSK with IAM has."""
    text = (
        "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n"
        "sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;\n"
        "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler\n"
    )
    for some in (text, text.replace("sasl.jaas.config", "#")):
        with pytest.raises(SettingsError, match=r"line 4 sets .*only Java can load.*SCRAM beside AWS_MSK_IAM"):
            client_config(file(tmp_path, some))


def test_cipher_suites_do_not_tell_whose_file_it_is(tmp_path: Path) -> None:
    suites = "ssl.cipher.suites=TLS_AES_128_GCM_SHA256\n"
    assert client_config(file(tmp_path, f"security.protocol=SSL\n{suites}")).untranslated == ("ssl.cipher.suites",)
    login = f'sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={MODULE} required username="u" password="p";\n'
    with pytest.raises(SettingsError, match=r"line 2 sets ssl\.cipher\.suites, whose suites .* otherwise"):
        client_config(file(tmp_path, f"security.protocol=SASL_SSL\n{suites}{login}"))


def test_what_java_has_no_equal_for_is_refused_for_java_alone(tmp_path: Path) -> None:
    config = client_config(file(tmp_path, "security.protocol=SSL\nssl.sigalgs.list=RSA+SHA256\n"))
    assert librdkafka(config)["ssl.sigalgs.list"] == "RSA+SHA256"
    with pytest.raises(SettingsError, match=r"ssl\.sigalgs\.list has no equal in Java"):
        for_java.settings(config, tmp_path)


def test_executors_elsewhere_refer_to_the_file_itself(tmp_path: Path) -> None:
    login = f'{MODULE} required username="u" password="top-secret";'
    text = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={login}\n"
    config = client_config(file(tmp_path, text))
    options = for_java.on_a_cluster(config)
    assert options["sasl.jaas.config"] == f"${{file:{tmp_path}/client.properties:sasl.jaas.config}}"
    assert "top-secret" not in str(options)
    ours = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p\n"
    with pytest.raises(SettingsError, match="names of Java"):
        for_java.on_a_cluster(client_config(file(tmp_path, ours)))
    assert for_java.on_a_cluster(ClientConfig()) == {}


def test_the_page_has_the_rights_that_doctor_prints() -> None:
    page = (Path(__file__).parents[3] / "docs" / "secured-clusters.md").read_text(encoding="utf-8")
    lines = "\n".join(f"# {one.needed_for}\n{one.line('User:kardia', 'BROKER')}" for one in least("kardia.events"))
    assert f"```\n{lines}\n```" in page


CA = authority()
CLIENT = issued("kardia, the one", CA, host="")
WHOLE = Identity(CLIENT.certificate_pem, CLIENT.key_pem)


def p12(pair: Pair | None, trusted: list[Pair], password: str) -> bytes:
    hidden = form.BestAvailableEncryption(password.encode())
    if pair is None:
        found = [pkcs12.PKCS12Certificate(one.certificate, b"ca") for one in trusted]
        return pkcs12.serialize_java_truststore(found, hidden)
    return pkcs12.serialize_key_and_certificates(
        b"me", pair.key, pair.certificate, [one.certificate for one in trusted], hidden
    )


@pytest.mark.parametrize("kind", [form.PrivateFormat.PKCS8, form.PrivateFormat.TraditionalOpenSSL], ids=str)
@pytest.mark.parametrize("password", ["", "key-secret"])
def test_keys_in_pem_are_opened_whatever_their_form(kind: form.PrivateFormat, password: str) -> None:
    key = CLIENT.key_bytes(kind, password)
    assert keystores.pair(CLIENT.certificate_pem.encode(), key, password or None) == WHOLE
    assert keystores.identity(key + CLIENT.certificate_pem.encode(), None, password or None) == WHOLE
    if password:
        for wrong in ("no", None):
            with pytest.raises(keystores.StoreError, match="password"):
                keystores.identity(key + CLIENT.certificate_pem.encode(), None, wrong)


def test_a_key_of_another_certificate_is_refused() -> None:
    with pytest.raises(keystores.StoreError, match="not of the private key"):
        keystores.pair(CA.certificate_pem.encode(), CLIENT.key_pem.encode(), None)


def test_stores_of_pkcs12() -> None:
    assert keystores.authorities(p12(None, [CA], "s"), "s") == CA.certificate_pem
    found = keystores.identity(p12(CLIENT, [CA], "s"), "s")
    assert found == Identity(CLIENT.certificate_pem + CA.certificate_pem, CLIENT.key_pem)
    with pytest.raises(keystores.StoreError, match="password does not fit"):
        keystores.identity(p12(CLIENT, [CA], "s"), "t")


@pytest.fixture
def keytool() -> str:
    """Of the Java that runs the brokers; every JRE has it."""
    return str(java.find().path.with_name("keytool"))


def test_stores_of_old_java(tmp_path: Path, keytool: str) -> None:
    (tmp_path / "in.p12").write_bytes(p12(CLIENT, [CA], "in-secret"))
    (tmp_path / "ca.pem").write_text(CA.certificate_pem)
    store = ["-keystore", str(tmp_path / "x.jks"), "-storetype", "JKS", "-storepass", "out-secret", "-noprompt"]
    add = [keytool, "-importcert", "-file", str(tmp_path / "ca.pem"), "-alias", "ca", *store]
    subprocess.run(add, check=True, capture_output=True, timeout=120)
    data = (tmp_path / "x.jks").read_bytes()
    assert data.startswith(b"\xfe\xed\xfe\xed")
    assert keystores.authorities(data, "out-secret") == keystores.authorities(data) == CA.certificate_pem
    move = [keytool, "-importkeystore", "-srckeystore", str(tmp_path / "in.p12"), "-srcstorepass", "in-secret"]
    move += ["-destkeystore", str(tmp_path / "y.jks"), "-deststoretype", "JKS", "-deststorepass", "out-secret"]
    move += ["-destkeypass", "key-secret", "-srcalias", "me", "-srckeypass", "in-secret", "-noprompt"]
    subprocess.run(move, check=True, capture_output=True, timeout=120)
    data = (tmp_path / "y.jks").read_bytes()
    found = keystores.identity(data, "out-secret", "key-secret")
    assert found.key == CLIENT.key_pem
    assert found.certificates.startswith(CLIENT.certificate_pem)
    for wrong in (("no", "key-secret"), ("out-secret", "no")):
        with pytest.raises(keystores.StoreError, match="password"):
            keystores.identity(data, *wrong)
    for length in range(0, len(data), 37):
        with pytest.raises(keystores.StoreError):
            keystores.identity(data[:length], None, None)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_of_stores_fail_otherwise(data: bytes) -> None:
    for head in (b"", b"\xfe\xed\xfe\xed\0\0\0\2", b"-----BEGIN CERTIFICATE-----\n", b"\x30\x82"):
        for read in (keystores.authorities, keystores.identity):
            with pytest.raises(keystores.StoreError):
                read(head + data)


@pytest.mark.parametrize("names", ["librdkafka", "java"])
def test_certificates_come_from_files_inline_and_stores(tmp_path: Path, names: str) -> None:
    (tmp_path / "ca.pem").write_text(CA.certificate_pem)
    (tmp_path / "me.pem").write_text(CLIENT.certificate_pem)
    (tmp_path / "me.key").write_text(CLIENT.key_pem)
    (tmp_path / "me.p12").write_bytes(p12(CLIENT, [], "s"))
    (tmp_path / "trust.p12").write_bytes(p12(None, [CA], "s"))
    (tmp_path / "both.pem").write_text(CLIENT.key_pem + CLIENT.certificate_pem)
    one_line = {
        name: text.replace("\n", "\\n")
        for name, text in {"ca": CA.certificate_pem, "me": CLIENT.certificate_pem, "key": CLIENT.key_pem}.items()
    }
    ways = {
        "librdkafka": [
            "ssl.ca.location=ca.pem\nssl.certificate.location=me.pem\nssl.key.location=me.key\n",
            "ssl.ca.location=ca.pem\nssl.keystore.location=me.p12\nssl.keystore.password=s\n",
            f"ssl.ca.pem={one_line['ca']}\nssl.certificate.pem={one_line['me']}\nssl.key.pem={one_line['key']}\n",
        ],
        "java": [
            "ssl.truststore.location=trust.p12\nssl.truststore.password=s\nssl.truststore.type=PKCS12\n"
            "ssl.keystore.location=me.p12\nssl.keystore.password=s\n",
            "ssl.truststore.type=PEM\nssl.truststore.location=ca.pem\n"
            "ssl.keystore.type=PEM\nssl.keystore.location=both.pem\n",
            f"ssl.truststore.type=PEM\nssl.truststore.certificates={one_line['ca']}\nssl.keystore.type=PEM\n"
            f"ssl.keystore.certificate.chain={one_line['me']}\nssl.keystore.key={one_line['key']}\n",
        ],
    }[names]
    for lines in ways:
        found = client_config(file(tmp_path, f"security.protocol=SSL\n{lines}"))
        assert found.authorities == CA.certificate_pem
        assert found.identity == WHOLE
        assert found.principal == "User:O=Tests\\, inc.,CN=kardia\\, the one"
        options, resolved = java_of(found, tmp_path)
        assert "PRIVATE KEY" not in str(options)
        assert resolved["ssl.keystore.key"] == CLIENT.key_pem
        assert resolved["ssl.truststore.certificates"] == CA.certificate_pem
