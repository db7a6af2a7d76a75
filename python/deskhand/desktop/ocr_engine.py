"""The OCR library: RapidOCR with the models that its wheel brings, which needs no network.

This module owns how it is set up, that a process loads it once, and what is remembered of pictures that it has read. What must
never appear here: a desktop.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from deskhand._core.extras import load
from deskhand._core.geometry import Rect
from deskhand._core.ink import pieces, trim
from deskhand._core.redaction import one_line
from deskhand._core.text_lines import Line, clean_line
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_SETTINGS = {
    "Global.log_level": "critical",
    "Global.use_cls": False,
    "Global.use_preprocess_img": False,
    # A screen is read as it is: by default a region is enlarged to 736 pixels.
    "Det.limit_type": "min",
    "Det.limit_side_len": 32,
    # Short texts are not padded to 320 pixels.
    "Rec.rec_img_shape": [3, 48, 48],
    "Rec.rec_batch_num": 1,
    # The caller's thread alone: a second one takes as much of a processor again for waiting, and is missing after a fork.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}
_LEAST_CONFIDENCE = 0.5
# Pixels around the ink that the recognition is given.
_BESIDE, _ABOVE = 4, 3
# A line that is longer, in heights, is no text.
_LONGEST = 100
# Pictures of lines whose texts are remembered, and the most pixels of one that is.
_REMEMBERED = 4096
_EXTRA = "ocr"


class Engine:
    """The models of one process. Calls from several threads take turns."""

    def __init__(self) -> None:
        """Load them: 31 MB.

        Raises:
            MissingExtra: The library is not installed.
        """
        # It does not name this one of its requirements.
        load("onnxruntime", _EXTRA)
        self._library: Any = load("rapidocr", _EXTRA).RapidOCR(params=_SETTINGS)
        self._lock = threading.Lock()
        self._read: OrderedDict[tuple[tuple[int, ...], bytes], tuple[str, float]] = OrderedDict()

    def lines(self, picture: NDArray[np.uint8], goes_on: Callable[[], bool]) -> list[Line] | None:
        """The texts of a picture, in its pixels; None when it was not read to its end.

        What was recognised until then is remembered, so that another call comes further.

        Args:
            picture: Shape (height, width, 3), RGB.
            goes_on: Asked before each text that is not remembered; may raise.

        Raises:
            BackendError: The library failed.
        """
        with self._lock:
            return self._lines(picture, goes_on)

    def forget(self) -> None:
        """Forget the texts of pictures that were read."""
        with self._lock:
            self._read.clear()

    def _lines(self, picture: NDArray[np.uint8], goes_on: Callable[[], bool]) -> list[Line] | None:
        part = trim(picture)
        if part.empty:
            return []
        # What has text up to its edge is read with a little beside it.
        part = part.inflate(_BESIDE).intersect(Rect(0, 0, picture.shape[1], picture.shape[0]))
        shown = np.ascontiguousarray(picture[part.y : part.bottom, part.x : part.right])
        lines = []
        for box in self._detect(shown):
            for piece in pieces(shown, box):
                found = self._recognize(shown, piece, goes_on)
                if found is None:
                    return None
                text, confidence = found
                if confidence >= _LEAST_CONFIDENCE and (text := clean_line(text)):
                    place = Rect(piece.x + part.x, piece.y + part.y, piece.width, piece.height)
                    lines.append(Line(text, place, confidence))
        return lines

    def _ask(self, picture: NDArray[np.uint8], *, use_det: bool, use_rec: bool) -> Any:
        try:
            return self._library(picture, use_det=use_det, use_rec=use_rec)
        except Exception as error:
            height, width, _ = picture.shape
            raise BackendError(
                f"the OCR library failed on {width}x{height} pixels: {one_line(str(error), 200)}"
            ) from error

    def _detect(self, picture: NDArray[np.uint8]) -> list[Rect]:
        found = self._ask(picture[:, :, ::-1], use_det=True, use_rec=False).boxes
        screen = Rect(0, 0, picture.shape[1], picture.shape[0])
        boxes = []
        for corners in found if found is not None else ():
            (left, top), (right, bottom) = np.floor(corners.min(axis=0)), np.ceil(corners.max(axis=0))
            box = Rect.of_edges(int(left), int(top), int(right), int(bottom)).intersect(screen)
            if not box.empty:
                boxes.append(box)
        return boxes

    def _recognize(
        self, picture: NDArray[np.uint8], piece: Rect, goes_on: Callable[[], bool]
    ) -> tuple[str, float] | None:
        if piece.width > _LONGEST * piece.height:
            return "", 0.0
        top, left = max(0, piece.y - _ABOVE), max(0, piece.x - _BESIDE)
        shown = np.ascontiguousarray(picture[top : piece.bottom + _ABOVE, left : piece.right + _BESIDE, ::-1])
        key = (shown.shape, hashlib.blake2b(shown.tobytes(), digest_size=16).digest())
        if (known := self._read.get(key)) is not None:
            self._read.move_to_end(key)
            return known
        if not goes_on():
            return None
        found = self._ask(shown, use_det=False, use_rec=True)
        text, confidence = (str(found.txts[0]), float(found.scores[0])) if found.txts else ("", 0.0)
        self._read[key] = text, confidence
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return text, confidence


_lock = threading.Lock()
_engine: Engine | None = None


def engine() -> Engine:
    """The engine of this process, loaded when it is first needed.

    Raises:
        MissingExtra: The library is not installed.
    """
    global _engine  # noqa: PLW0603 # the models are large
    with _lock:
        if _engine is None:
            _engine = Engine()
        return _engine


def _forked() -> None:
    """Leave both locks behind, which another thread of the parent may hold. The models are as good here."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    if _engine is not None:
        _engine._lock = threading.Lock()  # noqa: SLF001 # of the same module


os.register_at_fork(after_in_child=_forked)
