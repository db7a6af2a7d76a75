"""Save As in three applications by their elements, without a wait of our own; fifty times each with DESKHAND_EVIDENCE=1."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from conftest import need
from deskhand import KeyPress, Type, expect
from faults.scale import EVIDENCE
from integration.apps import until
from typed.fields import write_office_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop

_TIMES = 50 if EVIDENCE else 1
_PATIENCE = 20.0


def _mousepad(desktop: Desktop, _home: Path) -> None:
    desktop.start(need("mousepad", "mousepad"), timeout=60)


def _featherpad(desktop: Desktop, _home: Path) -> None:
    desktop.start(need("featherpad", "featherpad"), timeout=60)


def _writer(desktop: Desktop, home: Path) -> None:
    write_office_settings(home / "office")
    program = need("soffice", "libreoffice-writer libreoffice-gtk3")
    command = [program, f"-env:UserInstallation=file://{home}/office", "--norestore", "--nologo", "--writer"]
    desktop.start(command, env={"SAL_USE_VCLPLUGIN": "gtk3"}, timeout=60)
    desktop.find("document").wait_for(timeout=60)


def _by_menu(desktop: Desktop) -> None:
    desktop.find("menuitem", "File", exact=True).click(timeout=_PATIENCE)
    desktop.find("menuitem", re.compile(r"^Save As( ?…|\.\.\.)?\s*$")).click(timeout=_PATIENCE)


def _by_keys(desktop: Desktop) -> None:
    desktop.perform(KeyPress(["ctrl", "shift", "s"]))


def _plain(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _odt(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            return re.sub(
                r"<[^>]*>", "", archive.read("content.xml").decode().partition("<office:text")[2].partition(">")[2]
            )
    except (zipfile.BadZipFile, KeyError):
        return "(not written yet)"


@dataclass(frozen=True)
class Application:
    """How it is started, the role of its text, how its dialog is opened and called, and what a file is called and read by."""

    start: Callable[[Desktop, Path], None]
    document: str
    open: Callable[[Desktop], None]
    title: str
    suffix: str
    read: Callable[[Path], str]


APPLICATIONS = {
    "mousepad": Application(_mousepad, "textbox", _by_menu, "Save As", ".txt", _plain),
    "LibreOffice Writer": Application(_writer, "document", _by_keys, "Save", ".odt", _odt),
    "featherpad": Application(_featherpad, "textbox", _by_menu, "Save as", ".txt", _plain),
}


@pytest.mark.parametrize(
    "name", [name if name == "mousepad" else pytest.param(name, marks=pytest.mark.soak) for name in APPLICATIONS]
)
def test_what_was_typed_is_saved(launch: Callable[..., Desktop], home: Path, name: str) -> None:
    desktop = launch(size=(1400, 1000))
    application = APPLICATIONS[name]
    application.start(desktop, home)
    right = 0
    for number in range(_TIMES):
        path, text = home / f"saved{number}{application.suffix}", f"Text number {number} of Ada"
        # The keys go where the window manager puts them once the dialog has gone: the click says where.
        desktop.find(application.document, nth=0).click(timeout=_PATIENCE)
        desktop.perform(KeyPress(["ctrl", "a"]), Type(text))
        application.open(desktop)
        dialog = desktop.find("dialog", application.title)
        dialog.find("textbox", states=["editable"]).fill(str(path), timeout=_PATIENCE)
        dialog.find("button", "Save", exact=True).click(timeout=_PATIENCE)
        expect(dialog).to_be_hidden(timeout=_PATIENCE)
        right += until(lambda path=path, text=text: path.exists() and application.read(path) == text, 10)  # type: ignore[misc]
    assert right == _TIMES
