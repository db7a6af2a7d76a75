"""Texts to type, and how to tell that they arrived."""

from __future__ import annotations

import random
import unicodedata
from typing import TYPE_CHECKING

from deskhand import Settle, Type
from deskhand._core.keys import is_composed
from faults.scale import EVIDENCE
from integration.apps import PATIENCE

if TYPE_CHECKING:
    from integration.apps import App

__all__ = ["CORPORA", "MIXED", "SEVERAL_PAGES", "check", "random_letters"]

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


# An old Unicode, because editors drop what theirs does not know (Qt 5: everything after Unicode 13).
def random_letters(count: int, seed: int = 300) -> str:
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
    "50 emoji": "".join(chr(0x1F600 + index) for index in range(50)),
    "code": _code(10_000 if EVIDENCE else 3_000),
}


def check(app: App, text: str) -> None:
    """Type a text, and compare what arrived."""
    app.desktop.perform(Type(text), settle=Settle(timeout=PATIENCE))
    assert app.text(text) == text
