"""Java trusts what Python trusts: the store of this machine's authorities, read by keytool and used by Ivy over TLS."""

from __future__ import annotations

import functools
import http.server
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from spark_jobs.jvm import ivy, jars, java, lock, truststore
from spark_jobs.jvm.errors import JvmError


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """A folder over HTTP, without a line per request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def mirror(folder: Path, chain: trustme.LeafCert) -> Iterator[str]:
    """A repository in Maven's layout over TLS; gives its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chain.configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def keytool(store: Path) -> str:
    """What Java's own tool lists of a store."""
    tool = (str(java.find().path), "-m", "java.base/sun.security.tools.keytool.Main")
    asked = [*tool, "-list", "-keystore", str(store), "-storepass", truststore.PASSWORD]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_java_reads_every_authority_of_this_machine_as_trusted(tmp_path: Path) -> None:
    known = ssl.create_default_context().get_ca_certs(binary_form=True)
    assert known, "this Python knows no authorities"
    store = truststore.write(tmp_path / "new" / "authorities.p12")
    assert store is not None
    assert keytool(store).count("trustedCertEntry") == len(known)


def test_what_is_no_certificate_costs_none_of_the_others(tmp_path: Path) -> None:
    authority = ssl.PEM_cert_to_DER_cert(trustme.CA().cert_pem.bytes().decode())
    made = truststore.encode([b"\x30\x03no!", authority])
    assert made is not None
    (tmp_path / "store").write_bytes(made)
    assert keytool(tmp_path / "store").count("trustedCertEntry") == 1
    assert truststore.encode([b"\x30\x03no!"]) is None
    assert truststore.encode([]) is None


@pytest.mark.slow
def test_java_fetches_from_whom_a_known_authority_vouches_for_by_a_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(jars.OFFLINE_VARIABLE, raising=False)
    here = dict(zip(lock.sets()["spark"], jars.ensure("spark"), strict=True))
    wanted = min(here, key=lambda artifact: artifact.size)
    place = tmp_path / "mirror" / wanted.group.replace(".", "/") / wanted.name / wanted.version / wanted.file_name
    place.parent.mkdir(parents=True)
    place.symlink_to(here[wanted])
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    stranger.cert_pem.write_to_path(str(tmp_path / "stranger.pem"))
    chain = authority.create_child_ca().issue_cert("127.0.0.1")
    with mirror(tmp_path / "mirror", chain) as address:
        monkeypatch.setenv(ivy.MIRROR_VARIABLE, address)

        def fetched(trusted: str) -> Path:
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / trusted))
            work, target = tmp_path / f"{trusted}-work", tmp_path / f"{trusted}-arrived"
            ivy.retrieve([wanted], work, target, java.find(), lambda _: None)
            return target / wanted.group / wanted.file_name

        assert jars.verified(fetched("authority.pem"), wanted)
        with pytest.raises(JvmError, match="the certificate was not trusted: set SSL_CERT_FILE"):
            fetched("stranger.pem")
