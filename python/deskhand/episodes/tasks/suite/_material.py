"""The material of instances: names, places, things and sentences, in several scripts.

It has no task, and takes all chance from the given random generator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    "Ada Björn Chloé Dmitri Élodie Farah Günther Hanna İpek José Karin Łukasz Márta Noël Olga Paweł Quentin Renée Søren Tomás "
    "Ursula Víctor Wanda Xenia Yara Zoë"
)
# They begin with different ASCII letters, so their order is the same in every locale.
SURNAMES = _words(
    "Almeida Bäcker Chen Dvořák Eriksson Fernández Gómez Hübner Ivanova Jönsson Kowalska Lévy Müller Novák Okonkwo Petrović "
    "Quiñones Rossi Sørensen Tanaka Ueda Vogel Weiß Xu Yılmaz Zhang"
)
CITIES = _words(
    "Ålesund Bergen Córdoba Dakar Évora Fès Gdańsk Hanoi İzmir Jaén København Łódź Málaga Nîmes Oslo Poznań Québec Reykjavík "
    "Sète Tromsø Ústí Vigo Würzburg Xalapa York Zürich"
)
ITEMS = _words(
    "apples bricks candles drums envelopes flasks gloves hammers inkwells jars kettles lamps mirrors needles oars pencils "
    "quilts ropes stamps tiles umbrellas vases wheels yarns zippers"
)
TOPICS = _words(
    "archive budget catalogue delivery exhibition festival garden harbour inventory journey kitchen library meeting network "
    "orchard portrait quarry railway survey theatre voyage workshop"
)
UNICODE = _words("½ € ☕ → λ ñ 你好 привет Ωμέγα ß 日本 å ø ¿ ¡ “„”")

_SUBJECTS = (
    "The courier",
    "Our neighbour",
    "A colleague",
    "The caretaker",
    "Nobody",
    "The second team",
    "The new clerk",
)
_VERBS = ("counted", "painted", "delivered", "forgot", "measured", "returned", "repaired", "sorted")
_TIMES = ("on Monday", "before noon", "last week", "in the rain", "by mistake", "after the concert", "without a word")


def sentence(random: random.Random) -> str:
    """One plain sentence, sometimes with a name or a place beyond ASCII."""
    number, item = random.randint(2, 60), random.choice(ITEMS)
    where = f" in {random.choice(CITIES)}" if random.random() < 0.5 else ""
    return f"{random.choice(_SUBJECTS)} {random.choice(_VERBS)} {number} {item}{where} {random.choice(_TIMES)}."


def sentences(random: random.Random, count: int) -> list[str]:
    """Some sentences, all different."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[sentence(random)] = None
    return list(found)


def people(random: random.Random, count: int) -> list[str]:
    """Some first names with surnames, no surname twice."""
    return [f"{random.choice(FIRST_NAMES)} {surname}" for surname in random.sample(SURNAMES, count)]


def private_addresses(random: random.Random, count: int) -> list[str]:
    """So many IPv4 addresses of a private network, all different."""
    return [
        f"10.{a}.{b}.{random.randint(2, 250)}"
        for a, b in random.sample([(a, b) for a in range(9) for b in range(9)], count)
    ]


def access_log(random: random.Random, addresses: list[str], counts: list[int]) -> str:
    """The log of a web server, with a given number of lines for each address."""
    lines = []
    for address, count in zip(addresses, counts, strict=True):
        for _ in range(count):
            path, code = random.choice(TOPICS), random.choice((200, 200, 200, 304, 404, 500))
            lines.append(f'"GET /{path} HTTP/1.1" {code} {random.randint(100, 9999)} {address}')
    random.shuffle(lines)
    moments = sorted(random.sample(range(86400), len(lines)))
    stamps = [f"{moment // 3600:02}:{moment // 60 % 60:02}:{moment % 60:02}" for moment in moments]
    return "".join(f"{stamp} {line}\n" for stamp, line in zip(stamps, lines, strict=True))
