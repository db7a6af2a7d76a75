"""Texts are read from pixels where applications do not say what they show, and only where these have changed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import deskhand
from conformance.servers import serving
from deskhand import ActionError, LeftClick, MissingExtra, UnsupportedAction
from deskhand._core.elements import Elements
from deskhand._core.events import ButtonDown
from deskhand._core.geometry import Rect, Size
from deskhand._core.marks import marks
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop import ocr, ocr_engine
from elements.puppet import Puppet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from deskhand import Desktop
    from deskhand._core.text_lines import Line

SIZE = (480, 160)
TK = """
import tkinter
root = tkinter.Tk()
root.geometry("300x120+20+60")
label = tkinter.Label(root, text="Nothing yet")
label.pack(pady=10)
tkinter.Button(root, text="Save file", command=lambda: label.configure(text="It was saved")).pack()
root.mainloop()
"""


class Counting:
    """The engine, and what it was given."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []
        self._engine = ocr_engine.engine()

    def lines(self, picture: NDArray[np.uint8], goes_on: Callable[[], bool]) -> list[Line] | None:
        self.sizes.append((picture.shape[1], picture.shape[0]))
        return self._engine.lines(picture, goes_on)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(ocr_engine, "engine", lambda: counting)
    return counting


@pytest.fixture
def shown() -> Iterator[tuple[MemoryBackend, Desktop]]:
    backend = MemoryBackend(SIZE)
    with deskhand.Desktop(backend) as desktop:
        yield backend, desktop


def show(backend: MemoryBackend, **texts: tuple[int, int]) -> None:
    """Paint texts over all of the screen."""
    image = Image.new("RGB", SIZE, "white")
    pen = ImageDraw.Draw(image)
    for text, at in texts.items():
        pen.text(at, text.replace("_", " "), fill="black", font=ImageFont.load_default(16))
    rgb = np.asarray(image)
    old = backend.screen.rgb(None, None, cursor=False)[2]
    before = np.frombuffer(old, np.uint8).reshape(rgb.shape)
    rows, columns = np.nonzero((rgb != before).any(axis=2))
    area = Rect.of_edges(int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
    part = rgb[area.y : area.bottom, area.x : area.right, ::-1]
    bgrx = np.dstack([part, np.zeros(part.shape[:2], np.uint8)])
    backend.screen.update((area.x, area.y, area.width, area.height), bgrx.tobytes(), 0.0)


def names(desktop: Desktop) -> dict[str, str]:
    return {element.name: element.ref for element in desktop.elements(ocr=True)}


def test_texts_have_places_and_a_source(shown: tuple[MemoryBackend, Desktop]) -> None:
    backend, desktop = shown
    show(backend, Save_file=(40, 20), Cancel=(300, 100))
    elements = desktop.elements(ocr=True)
    save, cancel = elements
    assert (save.name, save.text, save.role, save.source) == ("Save file", "Save file", "text", "ocr")
    assert cancel.name == "Cancel"
    assert save.confidence is not None
    assert 0.5 <= save.confidence <= 1
    assert save.box is not None
    assert save.box.within(Rect(36, 18, 90, 26))
    assert save.enabled
    assert elements.text() == f"- {save.line()}\n- {cancel.line()}"
    assert save.line().startswith('text "Save file" [t1] (')
    desktop.perform(LeftClick(element=cancel.ref), settle=False)
    assert backend.screen.pointer == cancel.point
    assert any(isinstance(event, ButtonDown) for event in backend.events)
    desktop.find("text", "save", ocr=True).click()
    assert backend.screen.pointer == save.point


def test_only_what_has_changed_is_read_again(shown: tuple[MemoryBackend, Desktop], reads: Counting) -> None:
    backend, desktop = shown
    show(backend, First_line=(20, 20), Second_line=(20, 110))
    before = desktop.elements(ocr=True)
    reads.sizes.clear()
    assert desktop.elements(ocr=True) is before
    assert reads.sizes == []
    show(backend, First_line=(20, 20), Other_line=(20, 110))
    after = desktop.elements(ocr=True)
    ((width, height),) = reads.sizes
    assert width < SIZE[0] / 2
    assert height < SIZE[1] / 2
    assert after[0] == before[0]
    assert [each.name for each in after] == ["First line", "Other line"]
    # The text that has gone has taken its reference with it.
    assert before[1].ref not in after
    assert after.changes(before).splitlines()[0] == f"- [{before[1].ref}]"
    with pytest.raises(ActionError, match=r"no text .* any more"):
        desktop.perform(LeftClick(element=before[1].ref))


def test_a_reference_means_one_text_at_one_place(shown: tuple[MemoryBackend, Desktop]) -> None:
    backend, desktop = shown
    given: dict[str, tuple[str, int]] = {}
    for step, (word, x) in enumerate([("Apple", 20), ("Pear", 20), ("Apple", 20), ("Apple", 200), ("Apple", 20)]):
        show(backend, **{"Always": (20, 20), word: (x, 100)})
        found = names(desktop)
        assert set(found) == {"Always", word}, step
        assert found["Always"] == "t1"
        assert given.setdefault(found[word], (word, step)) == (word, step)


def test_a_text_that_goes_before_the_click_is_not_clicked(shown: tuple[MemoryBackend, Desktop]) -> None:
    backend, desktop = shown
    show(backend, Delete=(20, 20))
    ref = names(desktop)["Delete"]
    show(backend, Keep=(20, 20))
    with pytest.raises(ActionError, match=f"no text {ref} any more"):
        desktop.perform(LeftClick(element=ref))
    assert not backend.events


def test_what_is_kept_is_what_is_read_anew(shown: tuple[MemoryBackend, Desktop]) -> None:
    backend, desktop = shown
    chance = random.Random(7)
    there: dict[str, tuple[int, int]] = {}
    places = [(x, y) for x in (10, 130, 250, 370) for y in range(4, 140, 22)]
    words = [
        "Save",
        "Open",
        "Close",
        "Cancel",
        "Print",
        "Report",
        "Total",
        "Search",
        "Help",
        "Window",
        "1234",
        "a@host",
    ]
    for _ in range(8):
        for word in chance.sample(words, 3):
            there[word] = chance.choice([place for place in places if place not in there.values()])
        for word in chance.sample(sorted(there), len(there) // 4):
            del there[word]
        show(backend, **there)
        fresh = MemoryBackend(SIZE)
        show(fresh, **there)
        with deskhand.Desktop(fresh) as other:
            anew = [(element.name, element.box) for element in other.elements(ocr=True)]
        kept = [(element.name, element.box) for element in desktop.elements(ocr=True)]
        assert [name for name, _ in kept] == [name for name, _ in anew]
        assert sorted(name for name, _ in kept) == sorted(there)


def test_what_one_reading_cannot_have_is_told_and_read_next(
    shown: tuple[MemoryBackend, Desktop], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, desktop = shown
    monkeypatch.setattr(ocr, "_MOST_READ", 1)
    monkeypatch.setattr(ocr, "_AT_ONCE", 1)
    backend.resize(Size(480, 700))
    image = Image.new("RGB", (480, 700), "white")
    for y in range(20, 700, 110):
        ImageDraw.Draw(image).text((20, y), f"Line {y}", fill="black", font=ImageFont.load_default(16))
    bgrx = np.dstack([np.asarray(image)[:, :, ::-1], np.zeros((700, 480), np.uint8)])
    backend.screen.update((0, 0, 480, 700), bgrx.tobytes(), 0.0)
    first = desktop.elements(ocr=True)
    assert "call again" in first.left_out[0]
    # A text on the border of two parts is recognised for the first, and remembered for the second.
    for _ in range(20):
        found = desktop.elements(ocr=True)
        if not found.left_out:
            break
    assert len(first) < len(found)
    assert [each.name for each in found] == [f"Line {y}" for y in range(20, 700, 110)]


def test_texts_get_their_own_numbers_in_a_picture(shown: tuple[MemoryBackend, Desktop]) -> None:
    backend, desktop = shown
    show(backend, Save_file=(40, 20))
    elements, picture = desktop.elements(ocr=True), desktop.screenshot()
    (mark,) = marks(elements, picture.viewport)
    assert (mark.ref, mark.label, mark.box) == ("t1", "t1", elements[0].box)
    assert picture.with_marks(elements).data != picture.with_marks(Elements()).data


def test_a_missing_library_is_told(shown: tuple[MemoryBackend, Desktop], monkeypatch: pytest.MonkeyPatch) -> None:
    _, desktop = shown
    monkeypatch.setattr(ocr_engine, "_engine", None)
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(UnsupportedAction, match=r"deskhand\[ocr\]"):
        desktop.elements()
    with pytest.raises(MissingExtra, match=r"deskhand\[ocr\]"):
        desktop.elements(ocr=True)


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, deskhand; print([name for name in ('numpy', 'cv2', 'onnxruntime', 'rapidocr') if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "[]\n"


def test_a_forked_process_reads_too(shown: tuple[MemoryBackend, Desktop]) -> None:
    backend, desktop = shown
    show(backend, Save_file=(40, 20))
    names(desktop)
    width, height, rgb = backend.screen.rgb(None, None, cursor=False)
    picture = np.frombuffer(rgb, np.uint8).reshape(height, width, 3)
    # Another picture than the one that is remembered, and a lock that nobody gives back there.
    other = picture[2:]
    with ocr_engine._lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(120)
            found = ocr_engine.engine().lines(other, lambda: True) or []
            os._exit(0 if [line.text for line in found] == ["Save file"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_over_vnc() -> None:
    with serving("xvnc") as place, ExitStack() as stack:
        desktop = stack.enter_context(place.connect())
        assert place.environment is not None
        xterm = subprocess.Popen(
            [
                "xterm",
                "-geometry",
                "40x6+20+20",
                "-fa",
                "DejaVu Sans Mono",
                "-fs",
                "12",
                "-e",
                "echo Hello over VNC; sleep 600",
            ],
            env={**os.environ, **place.environment},
        )
        stack.callback(xterm.wait)
        stack.callback(xterm.kill)
        found = desktop.find("text", "Hello over VNC", ocr=True).element(timeout=30)
        assert found.source == "ocr"


def test_beside_applications_that_tell(launch: Callable[..., Desktop], tmp_path: Path) -> None:
    desktop = launch(size=(1000, 700))
    puppet = Puppet(desktop, tmp_path / "socket")
    puppet.run("button('Tree only'); window.move(500, 300)")
    (tmp_path / "tk.py").write_text(TK)
    desktop.start(["/usr/bin/python3", str(tmp_path / "tk.py")])
    desktop.find("button", "Tree only").element()
    elements = desktop.elements(ocr=True)
    sources = {element.name: element.source for element in elements if element.name in {"Tree only", "Save file"}}
    assert sources == {"Tree only": "accessibility", "Save file": "ocr"}
    assert not any(element.source == "ocr" and element.name == "Tree only" for element in elements)
    assert not any("exposes no accessibility tree" in sentence for sentence in elements.left_out)
    assert any("exposes no accessibility tree" in sentence for sentence in desktop.elements().left_out)
    desktop.find("text", "Save file", exact=True, ocr=True).click()
    assert desktop.find("text", "It was saved", ocr=True).element().source == "ocr"
    puppet.close()
