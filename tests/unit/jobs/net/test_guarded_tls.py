"""TLS to a pinned address: the certificate is judged by the URL's host, never by the address that was dialled."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jobs.net.guard import Guard
from jobs.net.guarded import GuardedClient, TlsRefused
from jobs.net.http import Bounds

QUICK = Bounds(connect_s=1.0, read_s=1.0, total_s=3.0, max_bytes=1000)
NOW = datetime.now(UTC)


def certificate(folder: Path, host: str, *, ends_at: datetime) -> Path:
    """A certificate that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW - timedelta(days=9)).not_valid_after(ends_at)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    file = folder / f"{host}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return file


class Says(BaseHTTPRequestHandler):
    """Answers with the Host header it was asked by."""

    def do_GET(self) -> None:
        body = (self.headers["Host"] or "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


class Quiet(HTTPServer):
    def handle_error(self, *_args: object) -> None:
        """A handshake that fails is what these tests are about."""


@contextmanager
def tls_server(file: Path) -> Iterator[tuple[int, list[str | None]]]:
    """A server on 127.0.0.1; gives its port and the names clients asked for (SNI)."""
    asked: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    server = Quiet(("127.0.0.1", 0), Says)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(*, trusting: Path | None) -> GuardedClient:
    def here(_host: str, _port: int, _within_s: float) -> Sequence[str]:
        return ["127.0.0.1"]

    return GuardedClient(Guard(lifted=True, resolve=here), bounds=QUICK, ca_file=str(trusting) if trusting else None)


def test_a_pinned_connection_asks_for_the_urls_own_name(tmp_path: Path) -> None:
    """F45: what is dialled is the address; name, SNI and certificate stay the host's."""
    file = certificate(tmp_path, "files.example", ends_at=NOW + timedelta(days=1))
    with tls_server(file) as (port, asked):
        answer = client(trusting=file).request("GET", f"https://files.example:{port}/x")

    assert answer.body == f"files.example:{port}".encode()
    assert asked == ["files.example"]


@pytest.mark.parametrize("case", ["another name", "nobody knows", "over"])
def test_a_certificate_that_is_not_good_for_the_host_sends_nothing(case: str, tmp_path: Path) -> None:
    """F45: another name; signed by itself; expired."""
    host = "other.example" if case == "another name" else "files.example"
    file = certificate(tmp_path, host, ends_at=NOW + timedelta(days=-1 if case == "over" else 1))

    with tls_server(file) as (port, _asked):
        trusting = None if case == "nobody knows" else file
        with pytest.raises(TlsRefused):
            client(trusting=trusting).request("GET", f"https://files.example:{port}/")
