"""Where no key brings a character beyond U+FFFF, it arrives all the same and in its place, or is refused before it is sent.

A sample of what `python -m typed` shows of every toolkit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand import KeyPress, Type, Untypable
from typed.corpus import CORPUS
from typed.fields import Office, swing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import deskhand
    from typed.fields import Field


@pytest.mark.parametrize("start", [Office, swing], ids=["Writer", "Swing"])
def test_characters_beyond_the_basic_plane(
    launch: Callable[..., deskhand.Desktop], tmp_path: Path, start: Callable[[deskhand.Desktop, Path], Field]
) -> None:
    """Writer put them before the letters of the same word, Swing made U+F600 of U+1F600."""
    desktop = launch(size=(1000, 700), env={"HOME": str(tmp_path)})
    field = start(desktop, tmp_path)
    desktop.clipboard.write("old")
    field.clear()
    for refused in (Type("secret 😀", secret=True), KeyPress(["😀"])):
        with pytest.raises(Untypable, match="cannot take them from keys"):
            desktop.perform(refused)
    assert not desktop.perform(Type(CORPUS["Latin"])).pasted
    assert field.text(CORPUS["Latin"]) == CORPUS["Latin"]
    for kind in ("mixed letters", "lines"):
        field.clear()
        assert desktop.perform(Type(CORPUS[kind])).pasted
        assert field.text(CORPUS[kind]) == CORPUS[kind]
    field.clear()
    # Parts of a word, each right behind the one before.
    desktop.perform(*map(Type, ("ab😀", "cd", "🚀", "e")))
    assert field.text("ab😀cd🚀e") == "ab😀cd🚀e"
    assert desktop.clipboard.read() == "old"
