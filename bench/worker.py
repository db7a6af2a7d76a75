"""The process of one peer of the benchmark: it looks as it is told to, and measures the time itself.

`python -m bench.worker LOOK WIDTH HEIGHT` is one peer on the display of its environment; it answers `look`, `save`,
`until` and `watch`. It compares nothing.
"""

from __future__ import annotations

import io
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from bench.child import Replies
from bench.eyes import LOOKS, Eye

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_Rect: TypeAlias = tuple[int, int, int, int]
# The shortest time and the least number of looks that a peer gets for showing a change.
_UNTIL, _UNTIL_LOOKS = 0.3, 2
_SHOWN = 0.9
_RAW_ORDER = {"mss_raw", "xlib_raw"}


def _cpu() -> float:
    """The processor time of this process and its ended children, in seconds."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class _Worker:
    def __init__(self, name: str, eye: Eye) -> None:
        self._name = name
        self._eye = eye

    def handle(self, message: dict[str, Any]) -> Mapping[str, object] | None:
        op = message["op"]
        if op == "look":
            return self._look(warm=message["warm"])
        if op == "save":
            return self._save(Path(message["path"]))
        if op == "until":
            return self._until(message["since"], Path(message["path"]), Path(message["old"]), message["rect"])
        if op == "watch":
            return self._watch(message["seconds"], message["rate"])
        (self._eye.wake if op == "wake" else self._eye.after)()
        return None

    def _look(self, *, warm: bool) -> dict[str, object]:
        self._eye.before()
        if self._eye.warms and warm:
            self._eye.look()
        begun = time.perf_counter()
        got = self._eye.look()
        took = time.perf_counter() - begun
        self._eye.after()
        size = len(got) if isinstance(got, bytes) else got.nbytes
        return {"ms": took * 1000, "bytes": size}

    def _save(self, path: Path) -> dict[str, object]:
        self._eye.before()
        if self._eye.warms:
            # Otherwise the next look could return an older picture.
            self._eye.look()
        got = self._eye.look()
        self._eye.after()
        np.save(path, self._pixels(got))
        return {}

    def _pixels(self, got: Any) -> NDArray[np.uint8]:
        if isinstance(got, bytes):
            return np.asarray(Image.open(io.BytesIO(got)).convert("RGB"))
        found: NDArray[np.uint8] = got[..., 2::-1] if self._name in _RAW_ORDER else got[..., :3]
        return found

    def _until(self, since: float, path: Path, old: Path, rect: _Rect) -> dict[str, object]:
        """Collect pictures, and find the first with the change afterwards, because comparing takes longer than looking."""
        seen: list[tuple[float, Any]] = []
        looks = 0
        while looks < _UNTIL_LOOKS or time.perf_counter() - since < _UNTIL:
            got = self._eye.look()
            now = time.perf_counter()
            looks += 1
            if not isinstance(got, bytes):
                seen.append((now, got.copy()))
            elif not seen or got != seen[-1][1]:
                seen.append((now, got))
        x, y, w, h = rect
        after, before = (np.load(file)[y : y + h, x : x + w] for file in (path, old))
        changed = (after != before).any(axis=2)
        for at, got in seen:
            new = (self._pixels(got)[y : y + h, x : x + w] == after).all(axis=2)
            # All pixels except those that the pointer's image may cover.
            if new[changed].mean() > _SHOWN:
                return {"ms": (at - since) * 1000, "bytes": len(got) if isinstance(got, bytes) else got.nbytes}
        raise RuntimeError(f"none of {looks} pictures in {time.perf_counter() - since:.1f} s shows the change")

    def _watch(self, seconds: float, rate: float) -> dict[str, object]:
        self._eye.before()
        used, begun, looks = _cpu(), time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            self._eye.look()
            looks += 1
            # A peer that is too slow looks as often as it can.
            time.sleep(max(0.0, begun + looks / rate - time.perf_counter()))
        took = time.perf_counter() - begun
        self._eye.after()
        return {"cpu_percent": (_cpu() - used) / took * 100, "rate": looks / took}


def main() -> None:
    """Be one peer."""
    name, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with LOOKS[name]((width, height)) as eye:
        Replies(_Worker(name, eye).handle).forever()


if __name__ == "__main__":
    main()
