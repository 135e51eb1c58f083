"""Every part of Kardia against a broker that asks for TLS, a login and rights: one real run with the least rights, what
each right is for, each way to log in, and each refusal as one sentence.

Goal: the lines that `kardia doctor` prints are enough, and none is too many; a password is nowhere but in its file.
Method: the printed lines are given to the broker word by word, by its super user; then everything runs as processes.
"""

from __future__ import annotations

import base64
import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import parse_qs

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.serialization import pkcs12

from demo.broker import NEWEST
from ingest.clients.settings import client_settings
from ingest.errors import AwayError, RefusedError
from ingest.security import properties
from ingest.security.reach import connect
from ingest.security.rights import Right, least
from ingest.wire.batches import decode_batch
from kardia.events import DEFAULT_LANES, Kind
from tests.spark_jobs.support import rows
from tests.support.secured import (
    PLAIN_PASSWORD,
    SCRAM_PASSWORD,
    SECRETS,
    USER,
    SecuredBroker,
    escaped,
    issued,
)

pytestmark = pytest.mark.slow

PATIENCE_S = 240.0
TOPIC = "kardia.events"
GROUP = "orders-processor"
MODULES = "org.apache.kafka.common.security"


RELEASES = {NEWEST: 2, "3.9.2": 1}
"""Releases of the broker, with the members of groups on it: groups with epochs are there from 4.0 on."""


@pytest.fixture(
    scope="module",
    params=[one if one == NEWEST else pytest.param(one, marks=pytest.mark.long) for one in RELEASES],
)
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """The broker, and a group of each kind on it that has a member."""
    with SecuredBroker(tmp_path_factory.mktemp("secured"), request.param) as broker:
        broker.broker.create_topic("orders", 1)
        consumer = Consumer({"bootstrap.servers": broker.inner, "group.id": GROUP, "log_level": 0})
        consumer.subscribe(["orders"])
        until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "the group has a member")
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        with with_epochs(broker) if RELEASES[request.param] > 1 else nullcontext():
            yield broker
        consumer.close()


@contextmanager
def with_epochs(broker: SecuredBroker) -> Iterator[None]:
    """A group of the consumer protocol that has a member."""
    more = {"group.id": "billing", "group.protocol": "consumer", "log_level": 0}
    consumer = Consumer({"bootstrap.servers": broker.inner, **more})
    consumer.subscribe(["orders"])
    until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "the group with epochs has a member")
    yield
    consumer.close()


def until(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


def kardia(*words: object) -> list[str]:
    return [sys.executable, "-m", "cli.main", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """A verb to its end; no secret is in what it says."""
    done = subprocess.run(kardia(*words), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    no_secret(done.stdout + done.stderr, str(words))
    return done


def no_secret(text: str, where: str) -> None:
    for secret in (*SECRETS, "PRIVATE KEY"):
        assert secret not in text, where
        assert escaped(secret) not in text, where


class Watched:
    """Looks at a process and all that it starts, while it runs: no secret in a command line or an environment."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._ended = threading.Event()
        self.seen: set[str] = set()
        self.leaks: list[str] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(0.5):
            try:
                root = psutil.Process(self._process.pid)
                for one in [root, *root.children(recursive=True)]:
                    self.seen.add(one.name())
                    text = "\0".join([*one.cmdline(), *one.environ().values()])
                    self.leaks += [one.name() for secret in SECRETS if secret in text or escaped(secret) in text]
            except psutil.Error:
                continue

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def collecting(secured: SecuredBroker, home: Path, *more: object) -> Iterator[subprocess.Popen[str]]:
    words = ("collect", "--request-log", secured.broker.request_log, "--log-timezone", "UTC", "--cluster", "test")
    command = kardia(*words, "--positions", home / "positions", *more)
    with (home / "collect.log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        no_secret((home / "collect.log").read_text(), "collect.log")


def collected(secured: SecuredBroker, home: Path, bootstrap: str, config: Path) -> None:
    """Collect until the group is in the topic, and after that the brokers' time has gone on in each lane."""
    reader = Consumer({"bootstrap.servers": secured.inner, "group.id": "reader", "log_level": 0})
    with collecting(secured, home, "--bootstrap-server", bootstrap, "--client-config", config) as process:
        until(lambda: TOPIC in secured.admin.list_topics(timeout=30).topics or process.poll() is not None, "the topic")
        assert process.poll() is None, (home / "collect.log").read_text()
        reader.assign([TopicPartition(TOPIC, lane, 0) for lane in range(DEFAULT_LANES)])
        is_there, ticked = False, set[int]()

        def has_come() -> bool:
            nonlocal is_there
            for message in reader.consume(1_000, 0.2):
                for event in decode_batch(message.value() or b"") if message.error() is None else ():
                    is_there = is_there or event.group_id == GROUP
                    if is_there and event.kind == Kind.TICK:
                        ticked.add(message.partition() or 0)
            return len(ticked) == DEFAULT_LANES

        until(lambda: has_come() or process.poll() is not None, "the group is in the topic")
        log = (home / "collect.log").read_text()
        assert process.poll() is None, log
        assert "cannot be" not in log
    reader.close()


def stream(bootstrap: str, config: Path, home: Path) -> subprocess.CompletedProcess[str]:
    words = ("--tables", home / "tables", "--checkpoint", home / "checkpoint", "--cluster", "test", "--once")
    command = kardia("stream", "--bootstrap-server", bootstrap, "--client-config", config, *words)
    environ = {**os.environ, "TMPDIR": str(home / "tmp")}
    (home / "tmp").mkdir(exist_ok=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    watched = Watched(process)
    out, err = process.communicate(timeout=PATIENCE_S)
    watched.end()
    assert not watched.leaks
    if process.returncode == 0:
        assert "java" in watched.seen, "Spark was looked at while it ran"
    no_secret(out + err, "stream")
    assert not list((home / "tmp").iterdir()), "what Java was given is removed"
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def printed(text: str) -> list[tuple[str, tuple[str, str, str]]]:
    """The rights of the lines of kafka-acls.sh in a text, each once: principal, (resource, name, operation)."""
    found = []
    for line in dict.fromkeys(re.findall(r"kafka-acls\.sh .*--add .*", text)):
        words = shlex.split(line)
        assert words[3:6] == ["--command-config", "ADMIN", "--add"]
        principal, operation = (words[words.index(f"--{name}") + 1] for name in ("allow-principal", "operation"))
        rest = words[words.index("--operation") + 2 :]
        assert rest[0] in ("--topic", "--group", "--cluster")
        found.append((principal, (rest[0][2:], rest[1] if len(rest) > 1 else "", operation)))
    return found


def known_rights(secured: SecuredBroker) -> list[Right]:
    """Before 4.0 groups have no configurations, and kafka-acls.sh refuses a right to them."""
    has_group_configs = int(secured.broker.settings.version.partition(".")[0]) >= 4
    return [one for one in least(TOPIC) if has_group_configs or (one.resource, one.operation) != GROUP_CONFIGS]


GROUP_CONFIGS = ("group", "DescribeConfigs")


def java_file(secured: SecuredBroker, mechanism: str = "SCRAM-SHA-256", **more: str) -> Path:
    """Client settings in Java's names, as in Kafka's own documentation; trust in a PKCS #12 store."""
    store = secured.folder / "trust.p12"
    trusted = [pkcs12.PKCS12Certificate(secured.authority.certificate, b"ca")]
    store.write_bytes(pkcs12.serialize_java_truststore(trusted, form.BestAvailableEncryption(b"changeit")))
    plain = mechanism == "PLAIN"
    password = escaped(PLAIN_PASSWORD if plain else SCRAM_PASSWORD)
    module = "plain.PlainLoginModule" if plain else "scram.ScramLoginModule"
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{MODULES}.{module} required username="{USER}" password="{password}";',
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": "changeit",
        "ssl.truststore.type": "PKCS12",
        **more,
    }
    path = secured.folder / f"java-{mechanism}.properties"
    path.write_text(properties.written(settings))
    return path


def test_everything_runs_with_the_rights_that_doctor_prints_and_no_secret_is_seen(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    ours, theirs = secured.config("ours.properties", secured.scram()), java_file(secured)
    secured.forbid_all()
    before = run("doctor", "--bootstrap-server", secured.secured, "--client-config", ours)
    assert before.returncode == 1
    assert f"rights of User:{USER}" in before.stdout
    given = printed(before.stdout)
    assert [right for _, right in given] == [(one.resource, one.name, one.operation) for one in known_rights(secured)]
    for principal, right in given:
        secured.allow(principal, [right])

    after = run("doctor", "--bootstrap-server", secured.secured, "--client-config", theirs)
    assert "It has every right that Kardia needs." in after.stdout
    assert printed(after.stdout) == given, "they are shown to who has them as well, to give them to another"
    assert "50 partitions, and they can be read." in after.stdout
    assert "kafka.request.logger is at DEBUG" in after.stdout
    members = RELEASES[secured.broker.settings.version]
    assert f"by the default intervals of {members} member" in after.stdout

    collected(secured, tmp_path, secured.secured, ours)
    done = stream(secured.secured, theirs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row["group_id"] for row in rows(tmp_path / "tables", "transitions")} >= {GROUP}
    for path in (*tmp_path.rglob("*.json"), *tmp_path.rglob("metadata"), *(tmp_path / "checkpoint").rglob("*")):
        if path.is_file():
            no_secret(path.read_bytes().decode("latin-1"), str(path))

    captured = run(
        *("capture", "--bootstrap-server", secured.secured, "--client-config", theirs),
        *("--out", tmp_path / "offsets.jsonl"),
    )
    assert captured.returncode == 0, captured.stderr
    assert GROUP.encode().hex() in (tmp_path / "offsets.jsonl").read_text()


REFUSALS = {
    "wrong password": "the broker refuses the login of user 'kardia' with SCRAM-SHA-512",
    "unknown user": "the broker refuses the login of user 'nobody' with PLAIN",
    "wrong mechanism": "the listener asks nobody to log in",
    "no login": "the listener asks for a login by SASL (",
    "plaintext against TLS": "the listener speaks TLS, but security.protocol does not",
    "TLS against plaintext": "TLS is asked for (security.protocol), but the listener does not speak it",
    "expired certificate of the broker": "the certificate of the broker has expired",
    "unknown authority": "the certificate of the broker is by an authority that is not trusted here",
    "no certificate of the client": "the broker asks for a certificate of the client",
    "a certificate of an authority that the broker does not trust": "the broker refuses the certificate of the client",
    "expired certificate of the client": "the certificate of the client has expired (20",
}


def refusal(secured: SecuredBroker, what: str) -> tuple[str, dict[str, str]]:
    """Address, and settings that are refused there."""
    tls = {"security.protocol": "SSL", "ssl.ca.location": str(secured.ca)}
    identity, strange = (
        {
            "ssl.certificate.pem": pair.certificate_pem.replace("\n", "\\n"),
            "ssl.key.pem": pair.key_pem.replace("\n", "\\n"),
        }
        for pair in (secured.expired_client, issued(USER, secured.stranger, host=""))
    )
    return {
        "wrong password": (secured.secured, secured.scram(sasl_password="another-Secret")),
        "unknown user": (
            secured.secured,
            secured.scram(sasl_mechanisms="PLAIN", sasl_username="nobody"),
        ),
        "wrong mechanism": (secured.inner, secured.scram(security_protocol="SASL_PLAINTEXT") | {"ssl.ca.location": ""}),
        "no login": (secured.secured, tls),
        "plaintext against TLS": (secured.secured, {}),
        "TLS against plaintext": (secured.inner, secured.scram()),
        "expired certificate of the broker": (secured.expired, tls),
        "unknown authority": (secured.secured, secured.scram(ssl_ca_location=str(secured.other_ca))),
        "no certificate of the client": (secured.mutual, tls),
        "a certificate of an authority that the broker does not trust": (secured.mutual, tls | strange),
        "expired certificate of the client": (secured.mutual, tls | identity),
    }[what]


@pytest.mark.parametrize("what", REFUSALS)
def test_what_waiting_does_not_mend_is_one_sentence_at_once(secured: SecuredBroker, what: str) -> None:
    bootstrap, lines = refusal(secured, what)
    lines = {name: value for name, value in lines.items() if value}
    settings = client_settings(secured.config("refused.properties", lines))
    before = secured.broker.server_log_text().count("Failed authentication")
    began_s = time.monotonic()
    with pytest.raises(RefusedError) as refused:
        connect(bootstrap, settings, PATIENCE_S)
    assert time.monotonic() - began_s < 30
    assert str(refused.value).startswith(REFUSALS[what])
    no_secret(str(refused.value), what)
    assert secured.broker.server_log_text().count("Failed authentication") - before <= 6


def test_a_mechanism_that_the_listener_lacks_is_answered_with_those_it_has(secured: SecuredBroker) -> None:
    from ingest.security.diagnosis import reason

    settings = {**client_settings(secured.config("a.properties", secured.scram())), "sasl.mechanisms": "GSSAPI"}
    found = reason(secured.secured, settings, [])
    assert found.is_final
    assert found.what.startswith("the listener does not take the mechanism GSSAPI; it takes ")
    assert {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"} <= set(re.split(r"[ ,]+", found.what))


@pytest.mark.parametrize("verb", ["collect", "capture", "stream", "doctor"])
def test_every_verb_says_a_wrong_password_once_and_ends(secured: SecuredBroker, tmp_path: Path, verb: str) -> None:
    config = secured.config("wrong.properties", secured.scram(sasl_password="another-Secret"))
    words: dict[str, tuple[object, ...]] = {
        "collect": ("--positions", tmp_path / "p"),
        "capture": ("--out", tmp_path / "o"),
        "stream": ("--tables", tmp_path / "t", "--checkpoint", tmp_path / "c"),
        "doctor": (),
    }
    before = secured.broker.server_log_text().count("Failed authentication")
    done = run(verb, "--bootstrap-server", secured.secured, "--client-config", config, *words[verb])
    said = done.stdout + done.stderr
    assert done.returncode == (1 if verb == "doctor" else 2), said
    assert said.lower().count(REFUSALS["wrong password"].lower()) == 1, said
    assert "another-Secret" not in said
    assert "Traceback" not in said
    assert secured.broker.server_log_text().count("Failed authentication") - before <= 6


def rights_but(number: int) -> list[tuple[str, str, str]]:
    return [(one.resource, one.name, one.operation) for at, one in enumerate(least(TOPIC)) if at != number]


WITHOUT = [
    ("collect", "the offsets topic may not be read"),
    ("collect", "the topic may not be written to by this principal"),
    ("collect", "the topic cannot be created"),
    ("stream", f"the topic {TOPIC} may not be read by this principal"),
    ("collect", "ends of partitions may not be read"),
    ("collect", "session timeouts of groups with epochs cannot be read"),
    ("collect", "session timeouts of groups with epochs cannot be read"),
    ("doctor", "It lacks: Describe on Group:* (doctor, to count members; collect --admin, to sample groups)."),
]
"""For each right of `least`: which part fails without it, and with which words."""


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(WITHOUT)))
def test_each_right_that_is_taken_away_is_missed_by_the_part_it_is_for(
    secured: SecuredBroker, tmp_path: Path, number: int
) -> None:
    assert len(WITHOUT) == len(least(TOPIC))
    verb, sentence = WITHOUT[number]
    missing = least(TOPIC)[number]
    config = secured.config("ours.properties", secured.scram())
    secured.forbid_all()
    there = TOPIC in secured.admin.list_topics(timeout=30).topics
    if number == 2 and there:
        secured.admin.delete_topics([TOPIC])[TOPIC].result(30)
        until(lambda: TOPIC not in secured.admin.list_topics(timeout=30).topics, "the topic is gone")
    elif number != 2 and not there:
        secured.broker.create_topic(TOPIC, 6)
    secured.allow(f"User:{USER}", rights_but(number))
    doctor = run("doctor", "--bootstrap-server", secured.secured, "--client-config", config)
    if missing not in known_rights(secured):  # nobody lacks it there, and nobody is told to give it
        assert "It has every right that Kardia needs." in doctor.stdout
        assert (missing.resource, missing.name, missing.operation) not in [right for _, right in printed(doctor.stdout)]
        return
    assert doctor.returncode == 1
    assert f"It lacks: {missing.operation} on {missing.resource.capitalize()}" in doctor.stdout
    assert next(right for _, right in printed(doctor.stdout)) == (missing.resource, missing.name, missing.operation)
    if missing.operation == "DescribeConfigs" or (missing.resource, missing.operation) == ("topic", "Describe"):
        with collecting(secured, tmp_path, "--bootstrap-server", secured.secured, "--client-config", config) as process:
            log = tmp_path / "collect.log"
            until(lambda: sentence in log.read_text() or process.poll() is not None, "it says what it cannot read")
        assert sentence in log.read_text()
        return
    words: dict[str, tuple[object, ...]] = {
        "collect": (
            *("--positions", tmp_path / "p", "--request-log", secured.broker.request_log),
            *("--log-timezone", "UTC"),
        ),
        "stream": ("--tables", tmp_path / "t", "--checkpoint", tmp_path / "c"),
        "doctor": (),
    }
    done = run(verb, "--bootstrap-server", secured.secured, "--client-config", config, *words[verb])
    said = done.stdout + done.stderr
    assert done.returncode == (1 if verb == "doctor" else 2), said
    assert said.count(sentence) == 1, said
    assert "Traceback" not in said
    assert "FATAL" not in said, "the sentence says it, and not the library beside it"
    if number == 0:
        assert "they can be read" not in doctor.stdout, "who may describe partitions is told where they end"
        assert "kardia capture --bootstrap-server" not in doctor.stdout.partition("an answer now")[2]
        out = tmp_path / "o"
        captured = run("capture", "--bootstrap-server", secured.secured, "--client-config", config, "--out", out)
        assert captured.returncode == 2
        assert "the offsets topic cannot be read" in captured.stderr
        assert not out.exists()
    if missing.operation == "Describe":
        assert "How many members the groups have may not be asked" in said, "0 members would be a guess"
        sampling = ("--admin", "--no-offsets", "--bootstrap-server", secured.secured, "--client-config", config)
        with collecting(secured, tmp_path, *sampling) as process:
            log = tmp_path / "collect.log"
            until(
                lambda: "no group is listed" in log.read_text() or process.poll() is not None, "it says what it lacks"
            )
        assert "grant Describe on Group:*" in log.read_text()


class Endpoint(http.server.BaseHTTPRequestHandler):
    """A token endpoint that gives whoever has the client's credentials an unsigned token, as Kafka's default takes."""

    def do_POST(self) -> None:
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        expected = "Basic " + base64.b64encode(f"{USER}:{SECRETS[2]}".encode()).decode()
        is_known = self.headers["Authorization"] == expected and asked["grant_type"] == ["client_credentials"]
        code, answer = self._answer()
        if not is_known:
            code, answer = 401, json.dumps({"error": "invalid_client"}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self) -> tuple[int, bytes]:
        """By the path: a good token, one that is over, a page, an error that tells what it was sent."""
        now = time.time()
        over = self.path == "/over"
        claims = {"sub": USER, "iat": int(now) - 900, "exp": int(now) + (-300 if over else 600), "scope": "kafka"}
        parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in ({"alg": "none"}, claims)]
        token = b".".join([*parts, b""]).decode()
        good = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 600}).encode()
        return {"/page": (200, b"<html>log in"), "/error": (500, SECRETS[2].encode())}.get(self.path, (200, good))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()


def with_token(secured: SecuredBroker, endpoint: str, secret: str = SECRETS[2]) -> Path:
    return secured.config(
        "token.properties",
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": endpoint,
            "sasl.oauthbearer.client.id": USER,
            "sasl.oauthbearer.client.secret": secret,
            "sasl.oauthbearer.scope": "kafka",
            "ssl.ca.location": str(secured.ca),
        },
    )


def test_a_token_is_taken_and_wrong_credentials_are_a_sentence(secured: SecuredBroker, endpoint: str) -> None:
    _, answered = connect(secured.secured, client_settings(with_token(secured, endpoint)), PATIENCE_S)
    assert len(answered.brokers) == 1
    with pytest.raises(RefusedError, match="the token endpoint refuses these client credentials"):
        connect(secured.secured, client_settings(with_token(secured, endpoint, "another")), PATIENCE_S)


@pytest.mark.parametrize(
    "path",
    ["error", *(pytest.param(one, marks=pytest.mark.long) for one in ("page", "over", "nobody", "nowhere"))],
)
def test_an_endpoint_without_a_token_is_named_and_no_broker_is_blamed(
    secured: SecuredBroker, endpoint: str, path: str
) -> None:
    elsewhere = {"nobody": "http://127.0.0.1:1/token", "nowhere": "http://nowhere.invalid/token"}
    url = elsewhere.get(path) or endpoint.replace("/token", f"/{path}")
    began_s = time.monotonic()
    with pytest.raises(AwayError, match="the token endpoint gave no token that can be used") as away:
        connect(secured.secured, client_settings(with_token(secured, url)), 3.0)
    assert time.monotonic() - began_s < 30
    no_secret(str(away.value), path)


def with_certificate(secured: SecuredBroker) -> Path:
    """Mutual TLS, from stores as keytool writes them."""
    secured.folder.joinpath("me.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"me",
            secured.client.key,
            secured.client.certificate,
            [secured.authority.certificate],
            form.BestAvailableEncryption(b"changeit"),
        )
    )
    return secured.config(
        "mutual.properties",
        {
            "security.protocol": "SSL",
            "ssl.keystore.location": "me.p12",
            "ssl.keystore.password": "changeit",
            "ssl.keystore.type": "PKCS12",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
        },
    )


@pytest.mark.long
@pytest.mark.parametrize("way", ["plain", "certificate"])
def test_other_ways_to_log_in_end_in_the_tables(secured: SecuredBroker, tmp_path: Path, way: str) -> None:
    config, bootstrap = {
        "plain": lambda: (java_file(secured, "PLAIN"), secured.secured),
        "certificate": lambda: (with_certificate(secured), secured.mutual),
    }[way]()
    secured.forbid_all()
    given = printed(run("doctor", "--bootstrap-server", bootstrap, "--client-config", config).stdout)
    for principal, right in given:
        if way == "certificate":
            assert principal == f"User:O=Tests\\, inc.,CN={USER}"
        secured.allow(principal, [right])
    collected(secured, tmp_path, bootstrap, config)
    done = stream(bootstrap, config, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row["group_id"] for row in rows(tmp_path / "tables", "transitions")} >= {GROUP}
