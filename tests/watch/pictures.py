"""Pictures and files, and how a page gets them from its viewer."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    import numpy.typing as npt

# Of a file's content in base64, its name and type, and a text that comes with it.
PASTE = """([data, name, type, text]) => {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const pasted = new DataTransfer();
  pasted.items.add(new File([bytes], name, { type }));
  if (text) pasted.setData('text/plain', text);
  document.querySelector('#keys').dispatchEvent(new ClipboardEvent('paste', { clipboardData: pasted, cancelable: true }));
}"""
# Of pairs: a file's content in base64, and its name. It tells whether the page left the drop to the browser.
DROP = """(files) => {
  const dropped = new DataTransfer();
  for (const [data, name] of files) {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    dropped.items.add(new File([bytes], name));
  }
  const made = (type) => new DragEvent(type, { dataTransfer: dropped, bubbles: true, cancelable: true });
  const canvas = document.querySelector('#picture');
  canvas.dispatchEvent(made('dragover'));
  return canvas.dispatchEvent(made('drop'));
}"""


def picture(width: int = 90, height: int = 60) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8)


def file_of(pixels: npt.NDArray[np.uint8], kind: str = "PNG", **options: object) -> bytes:
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, kind, **options)
    return made.getvalue()


def pixels_of(data: bytes) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()
