"""Ways to the local engine as if it were far: a real sshd, a relay that speaks TLS, an engine that is too old."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import http.server
import ipaddress
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from faults.helpers import need, until
from ports import begin_at_a_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_RELAY = Path(__file__).with_name("tls_relay.py")
_LIMIT = 20.0


# --- ssh ---


@dataclass
class Ssh:
    """An sshd of our own on the loopback, and an `ssh` that knows its key.

    Attributes:
        url: For `DOCKER_HOST`.
        path: To be put before `PATH`: the `ssh` that reads `config` only.
        config: What that `ssh` reads.
        known: Its list of host keys.
    """

    url: str
    path: str
    config: Path
    known: Path
    daemon: Path

    def environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.url, "PATH": f"{self.path}:{os.environ['PATH']}", "DOCKER_CONTEXT": ""}

    def sessions(self) -> list[int]:
        """The processes that serve one connection each."""
        daemon = int((self.daemon / "pid").read_text())
        found = subprocess.run(["pgrep", "-P", str(daemon)], capture_output=True, text=True, check=False).stdout
        return [int(number) for number in found.split()]


@contextlib.contextmanager
def ssh_server(folder: Path, settings: str = "") -> Iterator[Ssh]:
    """Start it; `settings` are added to its configuration."""
    folder.mkdir()
    need("ssh", "openssh-client")
    keygen, sshd = need("ssh-keygen", "openssh-client"), shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(sshd).exists():
        need("sshd", "openssh-server")
    if os.getuid() == 0:
        # Where it locks itself up before somebody has logged in; a package makes it at the first start of its service.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    known, config = folder / "known", folder / "config"
    config.write_text(
        f"Host *\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n"
        "  GlobalKnownHostsFile none\n"
    )
    programs = folder / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
    (programs / "ssh").chmod(0o755)
    process, port = begin_at_a_port(lambda port: (_sshd(sshd, folder, port, settings), port))
    known.write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    try:
        yield Ssh(f"ssh://127.0.0.1:{port}", str(programs), config, known, folder)
    finally:
        process.terminate()
        process.wait()


def ending_with_us(*command: str) -> list[str]:
    """The same command; what it starts is killed when this process ends, however that ends."""
    return [need("setpriv", "util-linux"), "--pdeathsig", "KILL", *command]


def _sshd(program: str, folder: Path, port: int, settings: str) -> subprocess.Popen[bytes]:
    """One that listens: it can neither choose its port nor take over a socket."""
    (folder / "sshd").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/pid\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"PermitRootLogin yes\n{settings}\n"
    )
    said = folder / "sshd.log"
    with said.open("wb") as log:
        command = ending_with_us(program, "-D", "-e", "-f", str(folder / "sshd"))
        process = subprocess.Popen(command, stderr=log, start_new_session=True)
    # Its own word: who answers at the port may be somebody else. The file of its number is written after that.
    until(lambda: process.poll() is not None or (folder / "pid").exists(), _LIMIT, "sshd")
    if process.poll() is None:
        return process
    text = said.read_text()
    raise OSError(errno.EADDRINUSE if "Address already in use" in text else errno.EIO, text)


# --- TLS ---


@dataclass
class Authority:
    """Who signs certificates."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(key, _signed(name, key, name, key, authority=True))

    def write(self, folder: Path, name: str, *, address: str = "127.0.0.1") -> Path:
        """A directory as `DOCKER_CERT_PATH` wants it."""
        folder.mkdir(exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.rfc4514_string().removeprefix("CN=")
        certificate = _signed(name, key, issuer, self.key, address=address)
        pem = serialization.Encoding.PEM
        secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / "key.pem").write_bytes(secret)
        (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
        (folder / "ca.pem").write_bytes(self.certificate.public_bytes(pem))
        return folder


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    by: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
    address: str = "127.0.0.1",
) -> x509.Certificate:
    def called(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(called(name))
        .issuer_name(called(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .sign(by, hashes.SHA256())
    )


@contextlib.contextmanager
def tls_relay(server: Path) -> Iterator[str]:
    """A process that speaks TLS as dockerd does, wants a certificate, and hands all on to the local engine; gives its URL.

    `server` has its certificate, and that of those who may sign a client's.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given = listener.fileno()
        process = subprocess.Popen(
            ending_with_us(sys.executable, str(_RELAY), str(given), str(server)),
            pass_fds=[given],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        url = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield url
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def tls_breaking(server: Path, *, reset: bool, asked: bool) -> Iterator[str]:
    """Agrees on TLS with every client, and breaks each connection off without a word; gives its URL.

    Args:
        server: A directory with its certificate.
        reset: Whether the connection is reset, or just ended.
        asked: Whether that happens after something was asked, or at once.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server / "cert.pem", server / "key.pem")

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with plain, contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as line:
                if asked:
                    line.recv(1 << 16)
                if reset:
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        # A thread that waits in accept() keeps the listener open until it is shut down.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(_LIMIT)


# --- an engine that is too old ---


class _Old(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"OK"
        self.send_response(200)
        self.send_header("Api-Version", "1.40")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextlib.contextmanager
def old_engine() -> Iterator[str]:
    """What Docker 19.03 says of itself, which is all that is asked of it; gives its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Old)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
