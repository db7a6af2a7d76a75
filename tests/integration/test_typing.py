"""Text arrives exactly: typed into real applications, read from outside of them."""

from __future__ import annotations

import random
import sys
import threading
import unicodedata
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import BackendError, KeyPress, Type, Untypable
from deskhand.keys import is_composed
from integration.apps import APPS, Bench, keymap, locks, run, stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.apps import App

PANGRAMS = (
    "The quick brown fox jumps over the lazy dog. 0123456789 !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń. Árvíztűrő tükörfúrógép. ÀÇÊÑÕØßþÿ «»¿¡",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ґ Є Ї ґ є ї",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "איזה כיף לשמוע עטלף קרב חסדגזמנצ",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน",
    "いろはにほへと ちりぬるを ヌルヲワカ 天地玄黄",
    "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏",
    "다람쥐 헌 쳇바퀴에 타고파 키스의 고유조건은",
    "ჰამლეტ ქართული ანბანი ճկուն հայերեն አማርኛ ሰላም",
)
# Every layout lacks some of it, and the text needs more than one page of spare keycodes on each.
MIXED = "Zz Yy 1! qQ; [{ßüéçñ ёжЖ їҐ} ]@€~^`' Привет, мир! αβγ 你好世界 ☕ 😀 Ünïcödé → \\|<>/?\n\tend."
SEVERAL_PAGES = "".join(chr(0x4E00 + 37 * index) for index in range(90))
# The last one has dead keys where quotes and accents are.
LAYOUTS = ("de", "fr", "ru", "us(dvorak)", "us(intl)")


# An old Unicode, because editors drop what theirs does not know (Qt 5: everything after Unicode 13).
def _random_letters(count: int, seed: int = 300) -> str:
    letters = [
        char
        for char in map(chr, range(0xA0, 0xFFFE))
        if not is_composed(char)
        and unicodedata.ucd_3_2_0.category(char) in {"Lu", "Ll", "Lt", "Lo"}
        and not unicodedata.combining(char)
    ]
    return "".join(random.Random(seed).sample(letters, count))


def _code(length: int) -> str:
    rng = random.Random(10_000)
    lines: list[str] = []
    while sum(map(len, lines)) + len(lines) < length:
        name = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz_ABCXYZ", k=rng.randint(2, 12)))
        body = rng.choice(
            ["if ({} != NULL) {{", "\treturn {}[0x{}];", "}}", "{} = \"%s\\n\" + '{}'; /* ~`@#$^&* */", ""]
        )
        lines.append("\t" * rng.randint(0, 4) + body.format(name, rng.randint(0, 999)))
    return "\n".join(lines)[:length]


CORPORA = {
    **{f"pangram {unicodedata.name(text[4]).split()[0].lower()}": text for text in PANGRAMS},
    "300 letters": _random_letters(300),
    "50 emoji": "".join(chr(0x1F600 + index) for index in range(50)),
    "code": _code(10_000),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One desktop and its applications for the whole file."""
    home = tmp_path_factory.mktemp("home")
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    with deskhand.launch(size=(1000, 700), env={"HOME": str(home), **folders}) as desktop:
        bench = Bench(desktop, home)
        yield bench
        bench.close()


@pytest.fixture(params=list(APPS))
def app(request: pytest.FixtureRequest, bench: Bench) -> Iterator[App]:
    """Each application, focused and empty, on a us keyboard that must be as it was afterwards."""
    before = keymap(bench.desktop)
    yield bench.app(request.param)
    assert keymap(bench.desktop) == before
    assert bench.desktop.held == ()


def check(app: App, text: str) -> None:
    """Type a text, and compare what arrived."""
    app.desktop.perform(Type(text))
    assert app.text(text) == text


@pytest.mark.parametrize("corpus", CORPORA)
def test_text_arrives_exactly(app: App, corpus: str) -> None:
    check(app, CORPORA[corpus])


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest, bench: Bench) -> Iterator[str]:
    """Another layout, set by another client while the applications run."""
    name, _, variant = request.param.rstrip(")").partition("(")
    run(bench.desktop, "setxkbmap", "-layout", name, "-variant", variant)
    yield request.param
    run(bench.desktop, "setxkbmap", "-layout", "us", "-variant", "")


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("name", APPS)
def test_layout_does_not_matter(bench: Bench, name: str) -> None:
    """F13: set before the text."""
    check(bench.app(name), MIXED)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("name", ["xterm", "mousepad"])
def test_layout_does_not_matter_for_thousands_of_characters(bench: Bench, name: str) -> None:
    """F13: 2,000 characters of the whole basic plane."""
    check(bench.app(name), _random_letters(2000, seed=13))


def test_second_group_does_not_matter(bench: Bench) -> None:
    run(bench.desktop, "setxkbmap", "-layout", "us,ru", "-variant", ",", "-option", "grp:shifts_toggle")
    try:
        bench.desktop.perform(KeyPress(["ISO_Next_Group"]))
        check(bench.app("mousepad"), MIXED)
    finally:
        run(bench.desktop, "setxkbmap", "-layout", "us", "-variant", "", "-option", "")


# Chromium has moved a paragraph of such a text in 2 of 395 tries when it needed several pages.
@pytest.mark.parametrize(
    ("name", "filler"),
    [*((name, "") for name in APPS), *((name, SEVERAL_PAGES) for name in APPS if name != "chromium")],
)
def test_layout_changed_while_typing(bench: Bench, name: str, filler: str) -> None:
    """F13: set in the middle of the text: it arrives exactly, or the caller is told."""
    text = "".join(f"{number} quick yellow zebras; {filler[number % 80 :][:1]}\n" for number in range(60))
    app = bench.app(name)
    change = threading.Thread(target=run, args=(bench.desktop, "setxkbmap", "-layout", "de"))
    change.start()
    try:
        app.desktop.perform(Type(text))
    except BackendError as error:
        # Many applications translate keys that wait in their queue with the new layout. That cannot be helped, but it is told.
        told = str(error)
    else:
        told = ""
        assert app.text(text) == text
    finally:
        change.join()
    assert not told or "layout was changed" in told
    # Whatever came of that text, the next one is typed with the layout as it is now.
    app = bench.app(name)
    run(bench.desktop, "setxkbmap", "-layout", "us")
    app.desktop.perform(Type("lazy; zebra\n"))
    assert app.text("lazy; zebra\n") == "lazy; zebra\n"


@pytest.mark.parametrize("lock", ["Caps", "Num", "Scroll"])
def test_locks_do_not_matter_and_stay(app: App, lock: str) -> None:
    """F15."""
    before = locks(app.desktop)
    app.desktop.perform(KeyPress([f"{lock}_Lock"]))
    locked = locks(app.desktop)
    try:
        check(app, MIXED)
        assert locks(app.desktop) == locked
    finally:
        app.desktop.perform(KeyPress([f"{lock}_Lock"]))
    assert locks(app.desktop) == before
    if lock != "Scroll":
        assert locked[lock] == "on"


# XkbChangeEnabledControls on the core keyboard, 0x100: XkbStickyKeysMask is 1 << 3 (X Keyboard Extension, §4.1).
_STICKY_KEYS = """
import ctypes, sys
xlib = ctypes.CDLL("libX11.so.6")
xlib.XOpenDisplay.restype = ctypes.c_void_p
display = ctypes.c_void_p(xlib.XOpenDisplay(None))
assert xlib.XkbChangeEnabledControls(display, 0x100, 1 << 3, int(sys.argv[1]) << 3)
xlib.XCloseDisplay(display)
"""


def test_sticky_keys_do_not_matter(app: App) -> None:
    """F15."""
    run(app.desktop, sys.executable, "-c", _STICKY_KEYS, "1")
    try:
        check(app, MIXED)
        check_again = "SHOUTING, and Ünder it: ÀÉ"
        app.clear()
        check(app, check_again)
    finally:
        run(app.desktop, sys.executable, "-c", _STICKY_KEYS, "0")


@pytest.mark.parametrize("after", [0, 0.03])
def test_busy_application_gets_it_all(app: App, after: float) -> None:
    with stopped(app.pid, after=after):
        app.desktop.perform(Type(SEVERAL_PAGES))
    assert app.text(SEVERAL_PAGES) == SEVERAL_PAGES


def test_text_after_text(app: App) -> None:
    parts = ["one ж", "two ё", "three ☕", "four", "жё☕", SEVERAL_PAGES[:30]]
    app.desktop.perform(*map(Type, parts))
    assert app.text("".join(parts)) == "".join(parts)


def test_a_thousand_symbols(app: App) -> None:
    """F14."""
    text = _random_letters(1000, seed=14)
    check(app, text)


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
