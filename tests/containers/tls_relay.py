"""Speaks TLS as dockerd does, wants a certificate, and hands all on to the local engine: `tls_relay.py LISTENER DIRECTORY`.

The listener is the number of a descriptor.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
from pathlib import Path

from deskhand.backends.vnc.relay import relay

ENGINE = "/var/run/docker.sock"
_PIECE = 1000


def main() -> None:
    descriptor, folder = int(sys.argv[1]), Path(sys.argv[2])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            # In pieces, as networks do: the reader often has a part of a record only.
            while data := source.recv(_PIECE):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(plain: socket.socket) -> None:
        with contextlib.suppress(OSError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            inner, outer = socket.socketpair()
            for source, target in ((plain, outer), (outer, plain)):
                threading.Thread(target=carry, args=(source, target), daemon=True).start()
            client = context.wrap_socket(inner, server_side=True)
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(ENGINE)
            relay(client, engine)

    with socket.socket(fileno=descriptor) as listener:
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    main()
