"""Text arrives exactly: typed into real applications, read from outside of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand import Type, Untypable
from integration.apps import stopped
from integration.texts import CORPORA, SEVERAL_PAGES, check
from soak import soaked

if TYPE_CHECKING:
    from integration.apps import App, Bench


@pytest.mark.parametrize("corpus", soaked(CORPORA, but=list(CORPORA)[::2]))
def test_text_arrives_exactly(app: App, corpus: str) -> None:
    check(app, CORPORA[corpus])


@pytest.mark.parametrize("after", soaked([0, 0.03], but=[0.03]))
def test_busy_application_gets_it_all(app: App, after: float) -> None:
    with stopped(app.pid, after=after):
        app.desktop.perform(Type(SEVERAL_PAGES))
    assert app.text(SEVERAL_PAGES) == SEVERAL_PAGES


def test_text_after_text(app: App) -> None:
    parts = ["one ж", "two ё", "three ☕", "four", "жё☕", SEVERAL_PAGES[:30]]
    app.desktop.perform(*map(Type, parts))
    assert app.text("".join(parts)) == "".join(parts)


def test_what_no_key_types_is_named(app: App) -> None:
    with pytest.raises(Untypable) as caught:
        app.desktop.perform(Type("ab\x00c\ufffe"))
    assert [position for position, _ in caught.value.characters] == [2, 4]
    assert app.text("") == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("xterm", "The quick brown fox, 50 long. It jumps the fence!\n" * 20),
        ("mousepad", "".join(chr(0x4E00 + 7 * index) for index in range(200))),
    ],
)
def test_the_same_text_again_and_again(bench: Bench, name: str, text: str) -> None:
    app = bench.app(name)
    for _ in range(5):
        app.desktop.perform(Type(text))
    assert app.text(text * 5) == text * 5
