"""The texts, each of one kind of character or of a mixture in which an order can be lost."""

from __future__ import annotations

CORPUS = {
    "ASCII": "The quick brown fox 0123, jumps; [{(<>)}] `@#$%^&*_+=|\\ over",
    "Latin": "Příliš žluťoučký kůň, zażółć gęślą jaźń ÀÇÊÑÕØßþÿ «»¿¡",
    "German": "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich",
    "Cyrillic": "Съешь же ещё этих мягких французских булок",
    "Greek": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "Hebrew": "איזה כיף לשמוע עטלף",
    "Arabic": "نص حكيم له سر قاطع",
    "CJK": "天地玄黃宇宙洪荒 いろはにほへと ヌルヲワカ",
    "Hangul": "다람쥐 헌 쳇바퀴에 타고파",
    "combining": "e\u0301a\u0308n\u0303 Z\u030c ऋषियों เป็นมนุษย์",
    "emoji": "😀🚀🎉🦊𝄞😀",
    "emoji joined": "👩\u200d💻 👍🏽 🇩🇪 ☕\ufe0f",
    "mixed letters": "a😀b🚀c☕d🎉e",
    "mixed scripts": "äöü😀ßé🚀ж你𝄞αβγ",
    "mixed words": "hello 😀 world 🚀 end",
    "lines": "one\ttwo 😀\nthree\n\tfour🚀\nend",
}
# What is longer than one line: a cell of a spreadsheet takes none of it.
LINES = ("lines",)
