"""Pictures on a clipboard: which type of those offered is taken, and how it becomes a PNG file.

This module is pure. A picture comes from any program on the desktop, and may be broken on purpose or large beyond measure.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

from deskhand.errors import BackendError
from deskhand.watch.transfers import LARGEST

if TYPE_CHECKING:
    from collections.abc import Collection

PNG = "image/png"

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The best first, each with its name in Pillow. Decoders of other formats are never called.
_FORMATS = {
    PNG: "PNG",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
}
_MOST_PIXELS = 40_000_000


def picture_type(types: Collection[str]) -> str | None:
    """Which of a clipboard's types is read as a picture; None if none can be."""
    return next((each for each in _FORMATS if each in types), None)


def is_png(data: bytes) -> bool:
    """Whether these bytes begin as a PNG file does."""
    return data.startswith(_SIGNATURE)


def as_png(data: bytes, type: str) -> bytes:
    """A picture as a PNG file: the same bytes if it is one.

    Args:
        data: The file.
        type: Its type: one that `picture_type` gives.

    Raises:
        BackendError: It is too large, or no picture of this type.
    """
    _check_size(len(data))
    made = io.BytesIO()
    try:
        with Image.open(io.BytesIO(data), formats=[_FORMATS[type]]) as picture:
            # Only the head was read so far.
            pixels = picture.width * picture.height
            if type != PNG and pixels <= _MOST_PIXELS:
                picture.convert("RGBA" if picture.has_transparency_data else "RGB").save(made, "PNG", compress_level=1)
    except Exception as error:  # decoders of broken files raise anything
        raise BackendError(f"the picture on the clipboard is no {type}: copy it anew") from error
    if pixels > _MOST_PIXELS:
        raise BackendError(f"the picture on the clipboard has {pixels:,} pixels: at most {_MOST_PIXELS:,} are copied")
    if type == PNG:
        return data
    _check_size(made.tell())
    return made.getvalue()


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise BackendError(f"the picture on the clipboard has {size:,} bytes: at most {LARGEST >> 20} MiB are copied")
