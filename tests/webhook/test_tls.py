"""HTTPS: who gets in, what may go wrong in a handshake, and certificates that are replaced."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from asking import by_names, pod
from commands import Surefoot
from servers import Cache, eventually
from serving import PATIENT, TEN, Serve, fill

from extender import logs

NAME = "surefoot.test"
BODY = json.dumps(by_names(pod(8, gang="sweep"), TEN)).encode()
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Secured:
    """A server that speaks TLS, with the authority behind it and its clients."""

    serve: Serve
    authority: trustme.CA
    folder: Path

    def context(self, client: trustme.CA | None = None) -> ssl.SSLContext:
        """A client that trusts the server; with a certificate where an authority is given."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if client is not None:
            client.issue_cert("kube-scheduler.test").configure_cert(context)
        return context

    def connect(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        """A connection after its handshake."""
        bare = socket.create_connection(("127.0.0.1", self.serve.port), timeout=10)
        try:
            return context.wrap_socket(bare, server_hostname=NAME)
        except BaseException:
            bare.close()
            raise

    def ask(self, context: ssl.SSLContext, method: str, path: str) -> tuple[int, bytes]:
        """Status and body of one request on a connection of its own."""
        with closing(self.connect(context)) as sock:
            return request(sock, method, path)

    def warned(self, event: str) -> bool:
        """Whether the log has such an event."""
        return bool(self.serve.events(event))


def request(sock: socket.socket, method: str, path: str) -> tuple[int, bytes]:
    """One request on a connection that stays open."""
    body = BODY if method == "POST" else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return answer.status, answer.read()


class TlsServe(Serve):
    """`surefoot serve` that answers HTTPS only."""

    def _lives(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5):
            return True


def store(made: trustme.LeafCert, folder: Path) -> None:
    """The server's certificate and key, as a rotation writes them."""
    made.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "cert.pem").write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))


def files(folder: Path) -> dict[str, str]:
    """The settings that name the files of `folder`."""
    names = {"CERT": "cert.pem", "KEY": "key.pem", "CLIENT_CA": "ca.pem"}
    return {f"WEBHOOK__TLS__{part}": str(folder / name) for part, name in names.items()}


@pytest.fixture(scope="module")
def cache() -> Iterator[Cache]:
    """The cache of `secured`."""
    found = Cache()
    fill(found)
    yield found
    found.kill()


@pytest.fixture(scope="module")
def secured(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A server with a certificate, which asks POSTs for one too."""
    authority, folder = trustme.CA(), tmp_path_factory.mktemp("tls")
    store(authority.issue_cert(NAME), folder)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    with TlsServe(cache.settings, folder / "log", **PATIENT, **files(folder)) as serve:
        found = Secured(serve, authority, folder)
        eventually(lambda: found.ask(found.context(), "GET", "/readyz")[0] == 200, "it is ready")
        yield found


def test_a_verdict_needs_a_client_certificate_and_a_probe_does_not(secured: Secured) -> None:
    """kube-scheduler has one, the kubelet has none."""
    known, anybody = secured.context(secured.authority), secured.context()
    status, body = secured.ask(known, "POST", "/filter")
    assert (status, json.loads(body)["NodeNames"]) == (200, sorted(TEN))
    assert secured.ask(anybody, "POST", "/filter") == (403, b"a client certificate is needed\n")
    assert secured.ask(anybody, "GET", "/livez")[0] == 200


def test_a_certificate_of_another_authority_is_refused(secured: Secured) -> None:
    """In the handshake, and the log says so."""
    stranger = secured.context(trustme.CA())
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
        secured.ask(stranger, "POST", "/filter")
    eventually(lambda: secured.warned("handshake_refused"), "a warning")


def test_plain_http_is_told_what_the_port_speaks(secured: Secured) -> None:
    """Instead of a connection that dies without a word."""
    with closing(http.client.HTTPConnection("127.0.0.1", secured.serve.port, timeout=10)) as plain:
        plain.request("GET", "/livez")
        answer = plain.getresponse()
        assert (answer.status, answer.read()) == (400, b"this port speaks HTTPS\n")


def test_silent_and_half_shaken_clients_keep_nobody_out(secured: Secured) -> None:
    """Twenty connections that never end their handshake, and twenty idle after it."""
    context = secured.context(secured.authority)
    with ExitStack() as stack:
        for number in range(20):
            bare = socket.create_connection(("127.0.0.1", secured.serve.port), timeout=10)
            stack.enter_context(bare)
            bare.sendall(b"\x16\x03\x01\x02\x00\x01\x00" if number % 2 else b"")
            stack.enter_context(secured.connect(context))
        assert secured.ask(context, "POST", "/filter")[0] == 200


def test_a_connection_in_reserve_stays_open(secured: Secured) -> None:
    """Go shakes hands first and asks when it has something to ask, more than once."""
    with closing(secured.connect(secured.context(secured.authority))) as sock:
        time.sleep(2.5)  # longer than a head that has begun may take
        assert [request(sock, "POST", "/filter")[0] for _ in range(3)] == [200, 200, 200]


def test_a_head_of_many_pieces_is_put_together(secured: Secured) -> None:
    """Records of one byte, and one record larger than a read."""
    with closing(secured.connect(secured.context(secured.authority))) as sock:
        for byte in b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n":
            sock.sendall(bytes([byte]))
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        assert (answer.status, answer.read()) == (200, b"ok\n")
        filler = b"X-Filler: " + b"y" * 3000 + b"\r\n"
        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + 5 * filler + b"\r\n")
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        assert answer.status == 200
        answer.read()


def test_a_replaced_certificate_counts_from_the_next_connection_on(secured: Secured) -> None:
    """Rotation needs no restart; a broken file leaves the old one in use."""
    context = secured.context(secured.authority)

    def serial() -> str:
        with closing(secured.connect(context)) as sock:
            return str((sock.getpeercert() or {})["serialNumber"])

    first = serial()
    (secured.folder / "cert.pem").write_text("junk")
    assert serial() == first
    assert secured.warned("certificate_not_renewed")
    store(secured.authority.issue_cert(NAME), secured.folder)
    assert serial() != first


@pytest.mark.parametrize("spoiled", ["cert.pem", "key.pem", "ca.pem"])
@pytest.mark.parametrize("how", ["missing", "junk"])
def test_a_file_that_cannot_be_used_ends_the_start_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spoiled: str, how: str
) -> None:
    """Before anything listens."""
    authority = trustme.CA()
    store(authority.issue_cert(NAME), tmp_path)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    if how == "junk":
        (tmp_path / spoiled).write_text("junk")
    else:
        (tmp_path / spoiled).unlink()
    monkeypatch.setattr(logs, "configure", lambda **_: None)  # those of the tests stay
    ended = Surefoot("redis://127.0.0.1:1/0")("serve", "--bind=127.0.0.1:0", **files(tmp_path))
    assert ended.exit_code == 1
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert spoiled in ended.stderr
