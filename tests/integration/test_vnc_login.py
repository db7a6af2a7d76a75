"""Entering VNC servers: passwords, TLS and certificates, and what is told of a password when it goes wrong (nothing)."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.x509.oid import NameOID

import deskhand
from conformance.fake import FakeServer, exactly, server_init
from conformance.servers import need, wayvnc, xvnc
from deskhand import KeyPress
from deskhand.backends.vnc.recording import record, replay
from deskhand.backends.vnc.target import parse_target
from faults.helpers import crowded
from ports import refusing

if TYPE_CHECKING:
    from collections.abc import Iterator

CANARY = "Kanari7!"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A password file as TigerVNC keeps it, and a certificate of 127.0.0.1 that signs itself."""
    path = tmp_path_factory.mktemp("login")
    tool = need("tigervncpasswd", "tigervnc-tools")
    made = subprocess.run([tool, "-f"], input=CANARY.encode() + b"\n", capture_output=True, check=True)
    (path / "passwd").write_bytes(made.stdout)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a desk")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (path / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (path / "key.pem").write_bytes(pem)
    return path


@contextlib.contextmanager
def guarded(folder: Path, security: str, tmp_path: Path) -> Iterator[str]:
    """An Xvnc of that security on TCP; its URL."""
    files = ["-PasswordFile", f"{folder}/passwd", "-X509Cert", f"{folder}/cert.pem", "-X509Key", f"{folder}/key.pem"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with xvnc(tmp_path, "-SecurityTypes", security, *files, listener=listener):
            yield f"vnc://127.0.0.1::{port}"


def works(desktop: deskhand.Desktop) -> None:
    with desktop:
        seen = desktop.perform(KeyPress(["a"]))
        assert seen.settled
        assert seen.size == (640, 480)


@pytest.mark.parametrize("security", ["None", "VncAuth", "TLSNone", "TLSVnc", "X509None", "X509Vnc"])
def test_every_way_in(folder: Path, tmp_path: Path, security: str) -> None:
    with guarded(folder, security, tmp_path) as url:
        if security.startswith("X509"):
            works(deskhand.connect(url, password=CANARY, certificates=folder / "cert.pem"))
            with pytest.raises(deskhand.AuthFailed, match="certificate"):
                deskhand.connect(url, password=CANARY)
            works(deskhand.connect(url, password=CANARY, verify=False))
            with pytest.raises(deskhand.AuthFailed, match="certificate"):
                # It is that of an address, and not of a name.
                deskhand.connect(
                    url.replace("127.0.0.1", "localhost"), password=CANARY, certificates=folder / "cert.pem"
                )
        else:
            works(deskhand.connect(url, password=CANARY))
            # Whoever stands in between could offer this in place of the server's own certificate.
            with pytest.raises(deskhand.AuthFailed, match="certificates= wants one that shows a certificate"):
                deskhand.connect(url, password=CANARY, certificates=folder / "cert.pem")
        if security.endswith(("VncAuth", "Vnc")):
            for wrong in ({"password": "wrong"}, {}):
                with pytest.raises(deskhand.AuthFailed):
                    deskhand.connect(url, verify=False, **wrong)  # type: ignore[arg-type] # one keyword of several types


def test_tls_in_a_process_with_many_files(folder: Path, tmp_path: Path) -> None:
    with guarded(folder, "X509Vnc", tmp_path) as url, crowded():
        works(deskhand.connect(url, password=CANARY, certificates=folder / "cert.pem"))
        record(parse_target(url, password=CANARY, verify=False), tmp_path / "session.rfb", seconds=0.2)
    assert replay((tmp_path / "session.rfb").read_bytes()).updates > 0


NONE, VNC, VENCRYPT, APPLE = 1, 2, 19, 30
PLAIN, TLS_NONE, TLS_VNC, TLS_PLAIN, X509_PLAIN = 256, 257, 258, 259, 262


@pytest.mark.parametrize(
    ("version", "kinds", "subtypes", "sent"),
    [
        ("003.889", [APPLE], [], b""),
        ("003.008", [NONE, VNC, APPLE], [], b""),
        ("003.003", [VNC], [], b""),
        ("003.003", [NONE], [], b""),
        ("003.008", [VNC, VENCRYPT], [TLS_PLAIN, TLS_VNC, TLS_NONE, PLAIN], bytes([VENCRYPT, 0, 2])),
    ],
)
@pytest.mark.parametrize("verify", [True, False])
def test_with_certificates_nothing_weaker_is_accepted(
    folder: Path, version: str, kinds: list[int], subtypes: list[int], sent: bytes, *, verify: bool
) -> None:
    """What a man in the middle would offer; nothing of a password leaves, and no kind is chosen."""
    got = bytearray()

    def talk(peer: socket.socket) -> None:
        peer.sendall(f"RFB {version}\n".encode())
        exactly(peer, 12)
        if version == "003.003":
            peer.sendall(kinds[0].to_bytes(4, "big") + bytes(16))
        else:
            peer.sendall(bytes([len(kinds), *kinds]))
        if subtypes:
            got.extend(exactly(peer, 1))
            peer.sendall(b"\0\2")
            got.extend(exactly(peer, 2))
            listed = b"".join(kind.to_bytes(4, "big") for kind in subtypes)
            peer.sendall(b"\0" + bytes([len(subtypes)]) + listed)
        while more := peer.recv(4096):
            got.extend(more)

    server = FakeServer(talk)
    with pytest.raises(deskhand.AuthFailed, match="wants one that shows a certificate"):
        deskhand.connect(
            server.url, username="me", password=CANARY, certificates=folder / "cert.pem", verify=verify, timeout=20
        )
    server.join(20)
    assert bytes(got) == sent


def test_bytes_before_tls_are_not_taken_for_those_within(folder: Path) -> None:
    """They would answer for the server, whose certificate was never seen."""

    def talk(peer: socket.socket) -> None:
        peer.sendall(b"RFB 003.008\n")
        exactly(peer, 12)
        peer.sendall(bytes([1, VENCRYPT]))
        exactly(peer, 1)
        peer.sendall(b"\0\2")
        exactly(peer, 2)
        peer.sendall(b"\0\1" + X509_PLAIN.to_bytes(4, "big"))
        exactly(peer, 4)
        peer.sendall(b"\1" + bytes(4) + server_init((4, 4)))
        peer.recv(4096)

    with pytest.raises(deskhand.ProtocolViolation, match="in the clear before TLS"):
        deskhand.connect(
            FakeServer(talk).url, username="me", password=CANARY, certificates=folder / "cert.pem", timeout=20
        )


def test_wayvnc_with_name_and_password(folder: Path) -> None:
    """Its only way to ask for one: TLS with a certificate, here over a Unix socket."""
    settings = (
        "enable_auth=true\naddress=127.0.0.1\nusername=me\npassword={}\nprivate_key_file={}\ncertificate_file={}\n"
    )
    with tempfile.TemporaryDirectory(prefix="deskhand-") as scratch:
        files = [shutil.copy(folder / name, scratch) for name in ("key.pem", "cert.pem")]
        for file in files:
            Path(file).chmod(0o644)
        with wayvnc(Path(scratch), settings.format(CANARY, *files)) as place:
            works(place.connect(username="me", password=CANARY, verify=False))
            with pytest.raises(deskhand.AuthFailed, match="certificate"):
                place.connect(username="me", password=CANARY)
            with pytest.raises(deskhand.AuthFailed):
                place.connect(username="me", password="wrong", verify=False)
            with pytest.raises(deskhand.AuthFailed, match="a user name"):
                place.connect(password=CANARY)


def test_a_password_is_told_nowhere(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    told = []
    with guarded(folder, "VncAuth", tmp_path) as url:
        monkeypatch.setenv("DESKHAND_VNC_PASSWORD", CANARY)
        with deskhand.connect(url) as desktop:
            told += [
                repr(desktop),
                repr(desktop._core.backend),
                str(desktop.name),
                str(desktop.status),
                repr(vars(desktop._core.backend)),
            ]
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    told.append(process.read_bytes().decode(errors="replace"))
        host = url.removeprefix("vnc://")
        for bad in (f"vnc://me:x{CANARY}@{host}", f"vnc://me:{CANARY}@127.0.0.1::1", f"vnc://me:{CANARY}@{host}/x"):
            with pytest.raises(deskhand.DeskhandError) as failed:
                deskhand.connect(bad)
            told += [repr(failed.value), *traceback.format_exception(failed.value), repr(vars(failed.value))]
    told += [caplog.text]
    # The lines of this test itself are in the traceback, but not the value.
    assert all(CANARY not in text for text in told)


# RFC 3526, 1536 bits.
PRIME = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14"
    "374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163"
    "BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA237327FFFFFFFFFF"
    "FFFFFF",
    16,
)


@pytest.mark.parametrize("client", ["ours", "vncdotool"])
def test_apple_servers(client: str) -> None:
    """The fake server is one, for vncdotool gets along with it too."""
    got: list[str] = []
    length = (PRIME.bit_length() + 7) // 8

    def talk(peer: socket.socket) -> None:
        peer.sendall(b"RFB 003.889\n")
        exactly(peer, 12)
        peer.sendall(b"\x01\x1e")
        assert exactly(peer, 1) == b"\x1e"
        secret = int.from_bytes(os.urandom(length), "big") % PRIME
        peer.sendall((2).to_bytes(2, "big") + length.to_bytes(2, "big") + PRIME.to_bytes(length, "big"))
        peer.sendall(pow(2, secret, PRIME).to_bytes(length, "big"))
        sealed, theirs = exactly(peer, 128), int.from_bytes(exactly(peer, length), "big")
        digest = hashes.Hash(hashes.MD5())
        digest.update(pow(theirs, secret, PRIME).to_bytes(length, "big"))
        opened = Cipher(algorithms.AES(digest.finalize()), modes.ECB()).decryptor().update(sealed)
        got.extend(part.split(b"\0")[0].decode() for part in (opened[:64], opened[64:]))
        peer.sendall(b"\0\0\0\x01\0\0\0\x02no")

    server = FakeServer(talk)
    if client == "ours":
        with pytest.raises(deskhand.AuthFailed, match="the server says: no"):
            deskhand.connect(server.url, username="me", password=CANARY)
    else:
        script = (
            "import sys; from vncdotool import api; "
            "api.connect(sys.argv[1], 'Kanari7!', username='me', timeout=5).keyPress('a')"
        )
        where = server.url.removeprefix("vnc://")
        with subprocess.Popen([sys.executable, "-c", script, where], stderr=subprocess.DEVNULL) as process:
            server.join(20)
            process.kill()
    server.join(20)
    assert got == ["me", CANARY]


@pytest.mark.parametrize(
    ("said", "told"), [(f"not {CANARY}!", "it repeats the password"), ("no\x1b[31m\n", "no [31m ")]
)
def test_what_a_server_says_is_quoted_with_care(said: str, told: str) -> None:
    def talk(peer: socket.socket) -> None:
        peer.sendall(b"RFB 003.008\n")
        exactly(peer, 12)
        peer.sendall(b"\x01\x02")
        exactly(peer, 1)
        peer.sendall(bytes(16))
        exactly(peer, 16)
        peer.sendall(b"\0\0\0\x01" + len(said).to_bytes(4, "big") + said.encode())

    with pytest.raises(deskhand.AuthFailed) as failed:
        deskhand.connect(FakeServer(talk).url, password=CANARY)
    assert f"the server says: {told}:" in str(failed.value)
    assert CANARY not in str(failed.value)


def test_who_says_nothing_is_given_up() -> None:
    done = threading.Event()
    server = FakeServer(lambda _peer: done.wait(20) and None)
    with pytest.raises(deskhand.ConnectFailed, match="no answer within"):
        deskhand.connect(server.url, timeout=0.3)
    done.set()
    server.join(20)


def test_who_speaks_something_else_is_told() -> None:
    server = FakeServer(lambda peer: peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"))
    with pytest.raises(deskhand.ProtocolViolation):
        deskhand.connect(server.url)
    server.join(20)


def test_what_is_offered_and_not_spoken_is_named() -> None:
    def talk(peer: socket.socket) -> None:
        peer.sendall(b"RFB 003.008\n")
        exactly(peer, 12)
        peer.sendall(b"\x02\x05\x10")
        peer.recv(1)

    with pytest.raises(deskhand.AuthFailed, match="offers only: RSA-AES, Tight"):
        deskhand.connect(FakeServer(talk).url, password=CANARY)


def test_nobody_is_there() -> None:
    with refusing() as port, pytest.raises(deskhand.ConnectFailed):
        deskhand.connect(f"vnc://127.0.0.1::{port}")
    with pytest.raises(deskhand.ConnectFailed):
        deskhand.connect("vnc+unix:///nowhere/at/all")
