"""From a VNC target to a connected socket that is past the handshake: TCP or Unix socket, TLS, authentication.

This module owns the way in. `_native.VncHandshake` has the handshake's bytes, the `cryptography` package the ciphers, Python
TLS. What must never appear here: anything after the handshake, and a password in a message.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from deskhand._core.untrusted import PinnedSocket
from deskhand._native import VncHandshake
from deskhand.backends.vnc.relay import PIECE, relay
from deskhand.errors import AuthFailed, ConnectFailed, ProtocolViolation

if TYPE_CHECKING:
    from deskhand.backends.vnc.target import VncTarget

# The numbers of RFB's registries.
_NONE, _VNC, _VENCRYPT, _APPLE = 1, 2, 19, 30
_PLAIN, _TLS_NONE, _TLS_VNC, _TLS_PLAIN, _X509_NONE, _X509_VNC, _X509_PLAIN = range(256, 263)
_X509 = (_X509_NONE, _X509_VNC, _X509_PLAIN)
_WITH_NAME = (_PLAIN, _TLS_PLAIN, _X509_PLAIN, _APPLE)
_WITHOUT_PASSWORD = (_NONE, _TLS_NONE, _X509_NONE)
# The strongest first. A server on this machine needs no TLS.
_LOCAL = (_NONE, _VNC, _APPLE, _VENCRYPT)
_REMOTE = (_VENCRYPT, _APPLE, _VNC, _NONE)
_SUBTYPES = (_X509_PLAIN, _X509_VNC, _X509_NONE, _TLS_PLAIN, _TLS_VNC, _TLS_NONE)
_HINT = "check that a VNC server listens there"
_MAX_KEY_LENGTH = 1024
_NAMES = {1: "None", 2: "VNC password", 5: "RSA-AES", 6: "RSA-AES", 16: "Tight", 18: "TLS", 19: "VeNCrypt", 30: "Apple"}
_NAMES |= {
    256: "Plain",
    257: "TLSNone",
    258: "TLSVnc",
    259: "TLSPlain",
    260: "X509None",
    261: "X509Vnc",
    262: "X509Plain",
}
# Keep-alive distinguishes a machine that is gone from a silent one. A stopped server does not count: its kernel answers.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 4000),
)

Ends: TypeAlias = tuple[int, Any, Any]
"""Address family of a TCP connection, its own address and its peer's, as `socket` has them."""


@dataclass(frozen=True, slots=True)
class Entered:
    """A connection past its handshake.

    Attributes:
        fd: The connected socket; the code that takes this owns it.
        size: Width and height of the screen in pixels.
        rest: What the server sent after the handshake.
        name: The desktop's name: untrusted text.
        local: Whether the bytes stay on this machine.
        ends: The addresses of a TCP connection.
    """

    fd: int
    size: tuple[int, int]
    rest: bytes
    name: str
    local: bool
    ends: Ends | None


def enter(target: VncTarget, timeout: float, ends: Ends | None = None) -> Entered:
    """Connect and log in.

    Args:
        target: The server, and the credentials.
        timeout: Seconds for all of it.
        ends: Use these addresses for the two ends, where this machine allows it.

    Raises:
        ConnectFailed: No server is there, or it did not answer in time.
        AuthFailed: The server wants other credentials, or its certificate is not trusted.
        ProtocolViolation: It does not speak RFB as it should.
    """
    login = _Login(target, time.monotonic() + timeout, ends)
    try:
        return login.run()
    except TimeoutError:
        raise ConnectFailed(str(target), f"no answer within {timeout:g} s", "check host and port") from None
    except ssl.SSLCertVerificationError as error:
        hint = "give the authority that signed it (certificates=), or trust it as it is with verify=False"
        raise AuthFailed(str(target), f"its certificate: {error.verify_message}", hint) from None
    except OSError as error:
        raise ConnectFailed(str(target), error.strerror or str(error) or type(error).__name__, _HINT) from None
    finally:
        login.close()


class _Login:
    """One attempt."""

    def __init__(self, target: VncTarget, deadline: float, ends: Ends | None) -> None:
        self._target = target
        self._deadline = deadline
        self._ends = ends
        self._handshake = VncHandshake()
        self._socket: socket.socket | None = None
        self._local = False
        self._subtype = 0
        self._told_name = False

    def close(self) -> None:
        """Close the connection, unless it was handed over."""
        if self._socket is not None:
            self._socket.close()

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _connected(self) -> socket.socket:
        target = self._target
        if target.opener is not None:
            self._socket = target.opener()
            return self._socket
        if target.path:
            self._local = True
            plain = socket.socket(socket.AF_UNIX)
            self._socket = plain
            plain.settimeout(self._left())
            try:
                with PinnedSocket(target.path) as found:
                    plain.connect(found.address)
            except ConnectFailed as error:
                raise ConnectFailed(str(target), error.reason, error.hint or _HINT) from None
            return plain
        plain = self._connected_again() or socket.create_connection((target.host, target.port), self._left())
        self._socket = plain
        for level, option, value in _KEEP_ALIVE:
            plain.setsockopt(level, option, value)
        self._ends = plain.family, plain.getsockname(), plain.getpeername()
        self._local = plain.getpeername()[0] == plain.getsockname()[0]
        return plain

    def _connected_again(self) -> socket.socket | None:
        """Bind to the previous address and connect to the previous peer; None where the port is not free."""
        if self._ends is None:
            return None
        family, source, peer = self._ends
        plain = self._socket = socket.socket(family, socket.SOCK_STREAM)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        plain.settimeout(self._left())
        try:
            plain.bind(source)
        except OSError:
            plain.close()
            return None
        plain.connect(peer)
        return plain

    def run(self) -> Entered:
        """Exchange everything from the first byte to the server's description of itself."""
        self._connected()
        step = self._handshake.feed(b"")
        while step is None or step[0] != "ready":
            if step is None:
                self._send(self._handshake.to_send())
                step = self._fed(self._receive())
                continue
            what, numbers, data, text = step
            self._answer(what, numbers, data, text)
            self._send(self._handshake.to_send())
            step = self._handshake.feed(b"")
        _, numbers, _, name = step
        rest = self._handshake.rest()
        return Entered(self._handed_over(), (numbers[0], numbers[1]), rest, name, self._local, self._ends)

    def _fed(self, data: bytes) -> tuple[str, list[int], bytes, str] | None:
        try:
            return self._handshake.feed(data)
        except ProtocolViolation as violation:
            if not self._told_name:
                raise
            # wayvnc 0.5 refuses with a message that belongs to another stage of the handshake.
            reason = f"its answer to name and password makes no sense ({violation.message})"
            raise AuthFailed(str(self._target), reason, "check name and password") from None

    def _send(self, data: bytes) -> None:
        if data and self._socket is not None:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)

    def _receive(self) -> bytes:
        assert self._socket is not None  # noqa: S101 # it is there from the first line of `run`
        self._socket.settimeout(self._left())
        data = self._socket.recv(PIECE)
        if not data:
            raise ConnectionError("the server closed the connection during the handshake")
        return data

    def _answer(self, what: str, numbers: list[int], data: bytes, text: str) -> None:
        match what:
            case "security":
                order: tuple[int, ...] = _LOCAL if self._local else _REMOTE
                if self._target.certificates is not None:
                    order = (_VENCRYPT,)
                chosen = self._choose(numbers, order)
                self._handshake.choose(chosen)
                if chosen == _APPLE:
                    self._apple()
            case "vencrypt":
                # Name and password in the clear are for this machine only.
                order = (*_SUBTYPES, _PLAIN) if self._local else _SUBTYPES
                if self._target.certificates is not None:
                    order = tuple(kind for kind in order if kind in _X509)
                self._subtype = self._choose(numbers, order)
                self._handshake.choose_vencrypt(self._subtype)
            case "tls":
                self._start_tls()
            case "challenge":
                self._handshake.respond(_encrypted(self._password(), data))
            case "credentials":
                self._told_name = True
                self._handshake.credentials(self._target.username or "", self._password())
            case _:
                raise self._refused(text)

    def _refused(self, reason: str) -> AuthFailed:
        # The server's own words may be anything, even what it was just sent.
        secret = self._password() if self._target.password is not None else ""
        shown = "".join(char if char.isprintable() else " " for char in reason)[:200]
        if secret and secret in shown:
            shown = "it repeats the password"
        return AuthFailed(str(self._target), f"the server says: {shown}", "check name and password")

    def _choose(self, offered: list[int], order: tuple[int, ...]) -> int:
        target = self._target
        asks_too_much = set()
        for kind in order:
            if kind in offered:
                if kind != _VENCRYPT and kind not in _WITHOUT_PASSWORD and target.password is None:
                    asks_too_much.add("a password")
                elif kind in _WITH_NAME and target.username is None:
                    asks_too_much.add("a user name")
                else:
                    return kind
        if asks_too_much:
            wanted = " and ".join(sorted(asks_too_much))
            hint = "pass username= and password=, or password_file=, or set DESKHAND_VNC_PASSWORD"
            raise AuthFailed(str(target), f"the server asks for {wanted}", hint)
        names = ", ".join(_NAMES.get(kind, str(kind)) for kind in offered) or "nothing"
        if target.certificates is not None:
            reason = f"the server offers only: {names}, and certificates= wants one that shows a certificate"
            hint = "have the server offer X509None, X509Vnc or X509Plain, or leave certificates= out"
            raise AuthFailed(str(target), reason, hint)
        hint = "None, VNC password, Apple and VeNCrypt are spoken here"
        raise AuthFailed(str(target), f"the server offers only: {names}", hint)

    def _password(self) -> str:
        if self._target.password is None:
            hint = "pass password= or password_file=, or set DESKHAND_VNC_PASSWORD"
            raise AuthFailed(str(self._target), "the server asks for a password", hint)
        return self._target.password()

    def _start_tls(self) -> None:
        plain = self._socket
        assert plain is not None  # noqa: S101 # it is there from the first line of `run`
        plain.settimeout(self._left())
        if self._handshake.rest():
            # A machine in between may have inserted them, to be taken for what TLS protects.
            raise ProtocolViolation("the server sent bytes in the clear before TLS had begun")
        target = self._target
        if self._subtype in _X509:
            context = ssl.create_default_context(cafile=target.certificates)
            if not target.verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        else:
            # Servers of these kinds have no certificate at all, which TLS 1.3 does not allow.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers("ADH:AECDH:@SECLEVEL=0")
        self._socket = context.wrap_socket(plain, server_hostname=target.host or "localhost")

    def _apple(self) -> None:
        """Exchange Diffie-Hellman keys, then send name and password encrypted with the result, as Apple's servers want it."""
        self._send(self._handshake.to_send())
        received = self._handshake.rest()

        def take(count: int) -> bytes:
            nonlocal received
            while len(received) < count:
                received += self._receive()
            taken, received = received[:count], received[count:]
            return taken

        header = take(4)
        generator, length = int.from_bytes(header[:2], "big"), int.from_bytes(header[2:], "big")
        if not 16 <= length <= _MAX_KEY_LENGTH:
            raise ProtocolViolation(
                f"the server's Diffie-Hellman key has {length} bytes; expected 16 to {_MAX_KEY_LENGTH}"
            )
        modulus, theirs = take(length), take(length)
        self._send(_apple_answer(generator, modulus, theirs, self._target.username or "", self._password()))
        self._handshake.resume()

    def _handed_over(self) -> int:
        connected, self._socket = self._socket, None
        assert connected is not None  # noqa: S101 # it is there from the first line of `run`
        if isinstance(connected, ssl.SSLSocket):
            ours, theirs = socket.socketpair()
            threading.Thread(target=relay, args=(connected, theirs), name="deskhand-tls", daemon=True).start()
            return ours.detach()
        connected.settimeout(None)
        return connected.detach()


def _encrypted(password: str, challenge: bytes) -> bytes:
    """Encrypt the challenge with the password, as RFC 6143 says: DES, with a key whose bytes are written backwards."""
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES  # noqa: PLC0415 # 60 ms that few connections need
    from cryptography.hazmat.primitives.ciphers import Cipher, modes  # noqa: PLC0415

    raw = password.encode("latin-1", "replace")[:8].ljust(8, b"\0")
    key = bytes(int(f"{byte:08b}"[::-1], 2) for byte in raw)
    # With three equal keys, triple DES is the single DES that RFB means.
    encryptor = Cipher(TripleDES(key * 3), modes.ECB()).encryptor()  # noqa: S305 # the protocol has no other
    return bytes(encryptor.update(challenge))


def _apple_answer(generator: int, modulus: bytes, theirs: bytes, name: str, password: str) -> bytes:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 # 60 ms that few connections need
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

    length, prime = len(modulus), int.from_bytes(modulus, "big")
    if prime < 5:
        raise ProtocolViolation(f"the server's Diffie-Hellman modulus is {prime}; expected a large prime")
    secret = int.from_bytes(os.urandom(length), "big") % (prime - 2) + 1
    shared = pow(int.from_bytes(theirs, "big"), secret, prime).to_bytes(length, "big")
    digest = hashes.Hash(hashes.MD5())  # noqa: S303 # the protocol has no other
    digest.update(shared)
    fields = []
    for text in (name, password):
        raw = text.encode()[:63] + b"\0"
        fields.append(raw + os.urandom(64 - len(raw)))
    encryptor = Cipher(algorithms.AES(digest.finalize()), modes.ECB()).encryptor()  # noqa: S305 # the protocol has no other
    return (
        encryptor.update(b"".join(fields))
        + encryptor.finalize()
        + pow(generator, secret, prime).to_bytes(length, "big")
    )
