"""vncdotool's own decoders, on a recording: `python -m bench.vnc_decoder` answers with the time that they take.

They are called as its reactor calls them, without the reactor. Our decoders are not used here.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.child import Replies
from deskhand import _native

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["main"]

_FORMAT = bytes([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])


def _handle(message: dict[str, Any]) -> Mapping[str, object]:
    from twisted.internet.testing import StringTransport  # noqa: PLC0415 # loaded only in this process
    from vncdotool import client  # noqa: PLC0415

    parser, pieces = _native.VncParser.replay(Path(message["path"]).read_bytes())
    init = struct.pack(">HH", *parser.screen.size) + _FORMAT + struct.pack(">I", 1) + b"x"
    protocol = client.VNCDoToolFactory().buildProtocol(None)
    protocol.makeConnection(StringTransport())
    for data in (b"RFB 003.008\n", b"\x01\x01", bytes(4), init):
        protocol.dataReceived(data)
    took = 0.0
    for at, data in pieces:
        begun = time.perf_counter()
        protocol.dataReceived(data)
        if at >= message["since"]:
            took += time.perf_counter() - begun
    if protocol.screen is None or protocol.screen.size != parser.screen.size:
        raise RuntimeError("it did not reach the end of the picture")
    return {"ms": took * 1000}


def main() -> None:
    """Be the decoders."""
    Replies(_handle).forever()


if __name__ == "__main__":
    main()
