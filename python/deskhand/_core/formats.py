"""The formats of pictures, and the encoding of those that Pillow makes.

This module owns the names of formats. What must never appear here: a desktop. PNG is made in Rust, where only what changed is
encoded again; the others are encoded whole.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from deskhand._native import base64 as base64  # noqa: PLC0414 # for pure files, which may not import the binding
from deskhand.errors import ActionError, files_named, nearest, shown

if TYPE_CHECKING:
    from deskhand._core.geometry import Size

Format: TypeAlias = Literal["png", "indexed", "jpeg", "webp", "raw"]
"""`png`: 24 bit RGB. `indexed`: PNG with a palette where the picture has at most 256 colours, else as `png`. `jpeg` and `webp`:
lossy, by `quality`. `raw`: the RGB bytes alone, row after row."""

StrPath: TypeAlias = str | os.PathLike[str]
"""A file's path."""

MEDIA_TYPES: dict[str, str] = {
    "png": "image/png",
    "indexed": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "raw": "application/octet-stream",
}

_FORMATS: tuple[str, ...] = get_args(Format)
_MOST = 100
_SUFFIXES: dict[str, Literal["png", "jpeg", "webp"]] = {"png": "png", "jpg": "jpeg", "jpeg": "jpeg", "webp": "webp"}


def check_format(name: str, quality: int) -> None:
    """Check that a format exists.

    Args:
        name: The format.
        quality: 1...100, for lossy formats.

    Raises:
        ActionError: The format does not exist, or the quality is out of range.
    """
    if name not in _FORMATS:
        meant = nearest(name.lower(), _FORMATS) if isinstance(name, str) else []
        asked = f"did you mean {meant[0]!r}? " if meant else ""
        raise ActionError(f"there is no format {shown(name)}: {asked}use one of {', '.join(_FORMATS)}")
    if isinstance(quality, bool) or not isinstance(quality, int) or not 1 <= quality <= _MOST:
        raise ActionError(f"a quality is 1 to {_MOST}, not {shown(quality)}")


def data_url(data: bytes, media_type: str) -> str:
    """A `data:` URL."""
    # Encoded again as a whole: measured, 0.19 ms for 221 kB (Python's own 0.35 ms), of which kept parts could save 0.15 ms.
    return f"data:{media_type};base64,{base64(data)}"


def format_of(path: str) -> Literal["png", "jpeg", "webp"]:
    """The format that a file's name says.

    Raises:
        ActionError: It ends with no format's suffix.
    """
    name = _SUFFIXES.get(path.rpartition(".")[2].lower() if "." in path else "")
    if name is None:
        raise ActionError(f"{shown(path)} names no format: let it end with .png, .jpg or .webp")
    return name


def write(path: str, data: bytes) -> None:
    """Write a picture's file.

    Raises:
        FileError: It cannot be written.
    """
    with files_named("cannot write", path):
        Path(path).write_bytes(data)


def encode(rgb: bytes, size: Size, name: Literal["png", "jpeg", "webp"], quality: int) -> bytes:
    """A file of this format.

    Args:
        rgb: The pixels, row after row.
        size: Width and height.
        name: The format.
        quality: 1...100, for lossy formats.
    """
    from PIL import Image  # noqa: PLC0415 # it costs every program's start, and few need it

    file = io.BytesIO()
    image = Image.frombuffer("RGB", size, rgb, "raw", "RGB", 0, 1)
    # Screens show coloured text, whose colours subsampling would smear. More effort for WebP takes seconds.
    options = {"jpeg": {"quality": quality, "subsampling": 0}, "webp": {"quality": quality, "method": 1}}
    image.save(file, name, **options.get(name, {}))
    return file.getvalue()
