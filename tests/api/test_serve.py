"""`kardia serve` as a process: how it starts, what it says when it cannot, and that it stops in order."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme
from pydantic import ValidationError

from api.access.certificates import Certificate, CertificateError
from api.settings import ApiSettings
from tests.api.conftest import WAIT_S, Pair
from tests.api.written import NOW_MS, Tables, member, progress, transition

COMMAND = [sys.executable, "-m", "cli.main", "serve"]


@contextmanager
def served(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the URL that it prints."""
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"https?://[^/]+", line)
        assert found, (line, process.communicate(timeout=WAIT_S))
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def refused(*words: str) -> str:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_on_a_free_port_and_ends_in_order(tables: Tables, told: signal.Signals) -> None:
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable"), member("orders", "a"), progress(NOW_MS))
    with served("--tables", str(tables.root), "--port", "0") as (process, url):
        until = time.monotonic() + WAIT_S
        while httpx.get(f"{url}/readyz", trust_env=False, timeout=60).status_code != 200:
            assert time.monotonic() < until
        groups = httpx.get(f"{url}/api/v1/clusters/demo/groups", trust_env=False, timeout=60).json()
        assert [group["group_id"] for group in groups["groups"]] == ["orders"]
        assert groups["freshness"]["stale"], "the story is years old"
        process.send_signal(told)
        out, err = process.communicate(timeout=WAIT_S)
        assert process.returncode in (0, -told, 128 + told), (out, err)
        assert "Traceback" not in err


def test_an_answer_that_has_begun_is_given_whole_before_the_end(tables: Tables) -> None:
    tables.create()
    with served("--tables", str(tables.root), "--port", "0") as (process, url), socket.socket() as connection:
        host, port = url.removeprefix("http://").split(":")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)  # so that much of it is still on its way
        connection.settimeout(WAIT_S)
        connection.connect((host, int(port)))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        begun = connection.recv(1, socket.MSG_PEEK)
        process.send_signal(signal.SIGTERM)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert begun == b"H"
        assert answer.status == 200
        assert "paths" in json.loads(answer.read())
        process.communicate(timeout=WAIT_S)


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("--tables", str(tmp_path), "--port", str(port))
    assert f"127.0.0.1:{port} cannot be listened on" in said
    assert "--port 0" in said


def test_listening_beyond_loopback_without_a_token_is_refused(tmp_path: Path) -> None:
    said = refused("--tables", str(tmp_path), "--host", "0.0.0.0", "--port", "0")  # noqa: S104  refused is the point
    assert "there is no token" in said
    assert "--serve-everyone-without-a-token" in said
    secret = tmp_path / "token"
    secret.write_text("too short")
    said = refused("--tables", str(tmp_path), "--token-file", str(secret))
    assert "line 1 of token" in said
    assert "too short" not in said


def test_with_a_certificate_it_speaks_tls_alone(tables: Tables, pair: Pair) -> None:
    tables.create()
    given = ("--tls-certificate", str(pair.certificate), "--tls-key", str(pair.key))
    words = ("--tables", str(tables.root), "--port", "0", *given)
    with served(*words) as (_, url):
        assert url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(pair.authority))
        assert httpx.get(f"{url}/livez", verify=trusting, trust_env=False, timeout=60).text == "ok\n"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{url}/livez", verify=ssl.create_default_context(), trust_env=False, timeout=60)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{url.replace('https', 'http')}/livez", trust_env=False, timeout=60)
        for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            outdated = ssl.create_default_context(cafile=str(pair.authority))
            outdated.set_ciphers("DEFAULT:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # that they are deprecated is the point
                outdated.minimum_version = outdated.maximum_version = old
            with pytest.raises(ssl.SSLError):
                shown(url, outdated)


def shown(url: str, trusting: ssl.SSLContext) -> bytes:
    """Certificate that the server shows in a handshake."""
    host, port = url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=WAIT_S) as bare,
        trusting.wrap_socket(bare, server_hostname=host) as connection,
    ):
        found = connection.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_a_renewed_certificate_is_shown_without_a_restart(tables: Tables, pair: Pair) -> None:
    tables.create()
    given = ("--tls-certificate", str(pair.certificate), "--tls-key", str(pair.key))
    with served("--tables", str(tables.root), "--port", "0", *given) as (_, url):
        trusting = ssl.create_default_context(cafile=str(pair.authority))
        first = shown(url, trusting)
        assert shown(url, trusting) == first
        pair.key.write_text("half of a k")
        assert shown(url, trusting) == first, "what cannot be used changes nothing"
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(str(pair.certificate))
        issued.private_key_pem.write_to_path(str(pair.key))
        authority.cert_pem.write_to_path(str(pair.authority))
        renewed = ssl.create_default_context(cafile=str(pair.authority))
        assert shown(url, renewed) != first
        assert httpx.get(f"{url}/livez", verify=renewed, trust_env=False, timeout=60).text == "ok\n"


def test_a_certificate_that_cannot_be_used_is_refused(tables: Tables, pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="expected both for HTTPS"):
        ApiSettings(tables=tables.root, tls_certificate=pair.certificate)
    said = "expected a certificate and its own key"
    for certificate, key in ((pair.key, pair.key), (pair.certificate,) * 2, (tmp_path / "none", pair.key)):
        with pytest.raises(CertificateError, match=said):
            Certificate(certificate, key)
    words = ("--tls-certificate", str(pair.key), "--tls-key", str(pair.key))
    assert said in refused("--tables", str(tables.root), *words)


def test_tables_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """An empty folder is taken: its job may begin later."""
    said = refused("--tables", str(tmp_path / "nowhere"), "--port", "0")
    assert "there is no such directory" in said
    assert "nowhere). Expected: one that `kardia stream` or `kardia replay` has written." in said
    with served("--tables", str(tmp_path), "--port", "0") as (_, url):
        assert httpx.get(f"{url}/livez", trust_env=False, timeout=60).status_code == 200
