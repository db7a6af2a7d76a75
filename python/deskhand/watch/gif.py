"""Writes a GIF frame by frame: each frame has what changed, and is in the file when the next one comes. Pure but for that file.

Pillow makes whole GIFs only, and keeps all frames until the end; so each part is made by it as a GIF of one frame, whose
table of colours and data are taken over.
"""

from __future__ import annotations

import io
import struct
from typing import IO, TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COLOURS = 256
_FEW = 2048
_HEADER = 13
_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, b";"
_FOREVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_KEEP_BELOW = 1 << 2
# Hundredths of a second. Browsers show shorter ones for ten.
_SHORTEST, _LONGEST = 2, 0xFFFF


class GifWriter:
    """A GIF that is being written."""

    def __init__(self, file: IO[bytes], size: tuple[int, int]) -> None:
        """Begin; `file` is open for writing and stays so."""
        self._file = file
        self._pending: bytes | None = None
        file.write(b"GIF89a" + struct.pack("<HHBBB", *size, 0x70, 0, 0) + _FOREVER)

    def add(self, rgb: NDArray[np.uint8], at: tuple[int, int], before: float) -> None:
        """Add a part of the picture, of shape (height, width, 3); the frame before it was shown for so many seconds."""
        self._flush(before)
        self._pending = _frame(Image.fromarray(rgb), at)

    def end(self, before: float) -> None:
        """Complete the file."""
        self._flush(before)
        self._file.write(_TRAILER)

    def _flush(self, seconds: float) -> None:
        if self._pending is not None:
            delay = min(_LONGEST, max(_SHORTEST, round(100 * seconds)))
            self._file.write(b"\x21\xf9\x04" + struct.pack("<BHBB", _KEEP_BELOW, delay, 0, 0) + self._pending)
        self._pending = None


def _frame(image: Image.Image, at: tuple[int, int]) -> bytes:
    # The fast one is for photos: it changes each colour a little, so that the edges of a frame show on a plain background.
    few = image.getcolors(_FEW) is not None
    method = Image.Quantize.MAXCOVERAGE if few else Image.Quantize.FASTOCTREE
    made = io.BytesIO()
    image.quantize(_COLOURS, method, dither=Image.Dither.NONE).save(made, "GIF", interlace=0)
    data = made.getvalue()
    table, place = _table(data, data[10], _HEADER)
    while data[place] == _EXTENSION:
        place += 2
        while data[place]:
            place += 1 + data[place]
        place += 1
    own, place = _table(data, data[place + 9], place + 10)
    table = own or table
    size_bits = (len(table) // 3).bit_length() - 2
    return struct.pack("<BHHHHB", _IMAGE, *at, *image.size, 0x80 | size_bits) + table + data[place:-1]


def _table(data: bytes, flags: int, place: int) -> tuple[bytes, int]:
    """The table of colours there, if the flags say that there is one, and the place after it."""
    length = 3 << ((flags & 7) + 1) if flags & 0x80 else 0
    return data[place : place + length], place + length
