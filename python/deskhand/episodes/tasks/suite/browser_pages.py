"""Several pages, or a page longer than the window: a code to find, a trail of links, a list with pages of its own.

Every page looks the same at every moment, and every result can be read outside of the page.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deskhand.actions import KeyPress, Type
from deskhand.episodes.tasks.browser import Page, received, start_browser
from deskhand.episodes.tasks.suite._applications import prepare
from deskhand.episodes.tasks.suite._browsing import SEND, click, compared, document, fill
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

_OBJECTS = (
    "amber comb", "brass astrolabe", "bronze mirror", "carved flute", "cedar chest", "clay tablet", "coral necklace",
    "copper kettle", "enamel snuffbox", "felt hat", "glass beaker", "gold earring", "granite seal", "horn spoon",
    "iron key", "ivory dice", "jade pendant", "lacquer bowl", "lead token", "leather sandal", "linen cap", "marble foot",
    "oak shield", "painted fan", "paper lantern", "pearl button", "pewter plate", "porcelain cup", "quill case",
    "reed basket", "ruby ring", "silk banner", "silver spur", "slate pencil", "stone axe", "tin whistle", "velvet glove",
    "walnut frame", "wax seal", "woollen rug",
)  # fmt: skip
_ROOMS = ("the east gallery", "the vault", "the attic", "the reading room", "the north stair", "the orangery")
_FATES = ("was cleaned", "was photographed", "was measured", "was repaired", "was lent to a school", "was weighed")


class BrowserFind(Task):
    """Find a line on a page of forty paragraphs, and enter its number."""

    name: ClassVar[str] = "browser-find"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("browser",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The objects in the order of the page, and the one to find: none of the first dozen."""
        names = random.sample(_OBJECTS, len(_OBJECTS))
        numbers = random.sample(range(10000, 99999), len(names))
        years = [random.randrange(1871, 1999) for _ in names]
        lines = [
            f"In {year} the {name} (inventory number {number}) {random.choice(_FATES)} and taken to {random.choice(_ROOMS)}."
            for name, number, year in zip(names, numbers, years, strict=True)
        ]
        wanted = random.randrange(12, len(names))
        return {"lines": lines, "object": names[wanted], "number": str(numbers[wanted])}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            "The browser shows the chronicle of a collection. Find the inventory number of the "
            f"{parameters['object']}, type it into the field at the top of the page, and press “Send”."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        lines = "".join(f"<p>{escape(line)}</p>" for line in context.parameters["lines"])
        body = (
            "<h1>Chronicle of the collection</h1><form id=form autocomplete=off><label for=number>Inventory number</label>"
            f"<input type=text id=number> <button id=send>Send</button></form><p class=note id=note></p>{lines}"
        )
        script = (
            SEND
            + """form.onsubmit = event => {
          event.preventDefault();
          send("number", { number: number.value.trim() }).then(() => { note.textContent = "Received, thank you."; });
        };"""
        )
        start_browser(context, {"": document("Chronicle", body, script, "p { margin: 26px 0; }")})

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        return compared(
            received(context, "number"), {"number": context.parameters["number"]}, "the number that was sent"
        )

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        with Page(context) as page:
            context.desktop.perform(KeyPress(["ctrl", "f"]), Type(context.parameters["object"]), KeyPress(["Return"]))
            page.until("scrollY > 0")
            context.desktop.perform(KeyPress(["Escape"]), KeyPress(["ctrl", "Home"]))
            page.until("scrollY === 0")
            fill(context, page, "#number", context.parameters["number"])
            click(context, page, "#send")
            page.until("note.textContent !== ''")


_PEOPLE = (
    "Adele Marsh", "Boris Quint", "Carla Oduya", "Daniel Fisk", "Edith Lomax", "Felix Arroyo", "Greta Hollis",
    "Hugo Penn", "Irma Castell", "Jonas Wray", "Katia Brun", "Leon Ives", "Mona Tardif", "Nils Ostrom", "Olga Pruett",
    "Pavel Sorn", "Quinn Dalby", "Rosa Medina",
)  # fmt: skip
_DEPARTMENTS = ("Archive", "Gardens", "Harbour", "Kitchens", "Surveying", "Workshops")


class BrowserTrail(Task):
    """Follow links from a department to its head to the head's deputy, and enter the deputy's room."""

    name: ClassVar[str] = "browser-trail"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("browser",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=20, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """Each person's department, room and deputy."""
        people = random.sample(_PEOPLE, len(_PEOPLE))
        rooms = random.sample(range(101, 499), len(people))
        departments = random.sample(_DEPARTMENTS, len(_DEPARTMENTS))
        # A circle through all of them, so that no one is their own deputy.
        circle = random.sample(people, len(people))
        deputies = {name: circle[(index + 1) % len(circle)] for index, name in enumerate(circle)}
        staff = {
            name: {"department": departments[index % len(departments)], "room": rooms[index], "deputy": deputies[name]}
            for index, name in enumerate(people)
        }
        heads = dict(zip(departments, people, strict=False))
        return {"staff": staff, "heads": heads, "department": random.choice(departments)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            f"The browser shows the staff directory. The head of the department {parameters['department']} is away: who stands "
            "in for them, and which room does that person have? Go to the page “Front desk”, type the room number "
            "into the field there, and press “Send”."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        staff, heads = context.parameters["staff"], context.parameters["heads"]
        menu = "<nav><a id=directory href='/'>Directory</a> <a id=desk href='desk.html'>Front desk</a></nav>"
        links = "".join(f'<li><a id="{name}" href="{name.lower()}.html">{name}</a></li>' for name in sorted(heads))
        pages = {"": document("Staff directory", f"{menu}<h1>Staff directory</h1><ul>{links}</ul>")}
        for department, head in heads.items():
            members = sorted(name for name in staff if staff[name]["department"] == department)
            links = "".join(
                f'<li>{"Head: " if name == head else ""}<a id="{_page(name)}" href="{_page(name)}.html">{name}</a></li>'
                for name in members
            )
            pages[f"{department.lower()}.html"] = document(department, f"{menu}<h1>{department}</h1><ul>{links}</ul>")
        for name, person in staff.items():
            deputy = person["deputy"]
            body = (
                f"{menu}<h1>{name}</h1><p>Department: {person['department']}</p><p>Room: {person['room']}</p>"
                f'<p>When away: <a id=deputy href="{_page(deputy)}.html">{deputy}</a></p>'
            )
            pages[f"{_page(name)}.html"] = document(name, body)
        body = (
            f"{menu}<h1>Front desk</h1><form id=form autocomplete=off><label for=room>Room</label><input type=text id=room>"
            "<div><button id=send>Send</button></div></form><p class=note id=note></p>"
        )
        script = (
            SEND
            + """form.onsubmit = event => {
          event.preventDefault();
          send("room", { room: room.value.trim() }).then(() => { note.textContent = "Received, thank you."; });
        };"""
        )
        start_browser(context, {**pages, "desk.html": document("Front desk", body, script)})

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        return compared(received(context, "room"), {"room": str(_room(context.parameters))}, "the room that was sent")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        department = context.parameters["department"]
        head = context.parameters["heads"][department]
        with Page(context) as page:
            for link, title in (
                (f"#{department}", department),
                (f"#{_page(head)}", head),
                ("#deputy", context.parameters["staff"][head]["deputy"]),
                ("#desk", "Front desk"),
            ):
                click(context, page, link)
                page.until(f"document.title === {json.dumps(title)} && document.readyState === 'complete'")
            fill(context, page, "#room", str(_room(context.parameters)))
            click(context, page, "#send")
            page.until("note.textContent !== ''")


def _page(name: str) -> str:
    return name.lower().replace(" ", "-")


def _room(parameters: Mapping[str, Any]) -> int:
    staff = parameters["staff"]
    return int(staff[staff[parameters["heads"][parameters["department"]]]["deputy"]]["room"])


_STATES = ("open", "paid", "returned")
_PAGES, _ROWS = 3, 9


class BrowserRows(Task):
    """Tick all rows that meet a condition, on three pages of a list."""

    name: ClassVar[str] = "browser-rows"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("browser",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The invoices, and which are to be ticked: two to five, on at least two pages."""
        while True:
            numbers = random.sample(range(1000, 9999), _PAGES * _ROWS)
            invoices: list[dict[str, Any]] = [
                {"number": number, "state": random.choice(_STATES), "amount": random.randrange(10, 990)}
                for number in numbers
            ]
            state, least = random.choice(_STATES), random.randrange(200, 900, 50)
            wanted = [index for index, one in enumerate(invoices) if one["state"] == state and one["amount"] > least]
            if 2 <= len(wanted) <= 5 and len({index // _ROWS for index in wanted}) > 1:
                chosen = sorted(invoices[index]["number"] for index in wanted)
                return {"invoices": invoices, "state": state, "least": least, "wanted": chosen}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            f"The browser shows a list of invoices; it has {_PAGES} pages. Tick every invoice, on all pages, that is "
            f"“{parameters['state']}” and whose amount is more than {parameters['least']}. Tick no other, and "
            "press “Archive”."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        body = f"""<h1>Invoices</h1><table><thead><tr><th></th><th>Number</th><th>State</th><th>Amount</th></tr></thead>
        <tbody id=rows></tbody></table><div><button id=before>Previous</button> <span id=where></span>
        <button id=after>Next</button></div><div><button id=archive>Archive</button></div><p class=note id=note></p>
        <script>const invoices = {json.dumps(context.parameters["invoices"])}, pages = {_PAGES}, size = {_ROWS};</script>"""
        script = (
            SEND
            + """
        let shown = 0;
        const ticked = new Set();
        function show() {
          rows.replaceChildren(...invoices.slice(shown * size, (shown + 1) * size).map(invoice => {
            const row = document.createElement("tr"), box = document.createElement("input");
            box.type = "checkbox"; box.id = "n" + invoice.number; box.checked = ticked.has(invoice.number);
            box.onchange = () => box.checked ? ticked.add(invoice.number) : ticked.delete(invoice.number);
            row.insertCell().append(box);
            for (const name of ["number", "state", "amount"]) row.insertCell().textContent = invoice[name];
            return row;
          }));
          where.textContent = `Page ${shown + 1} of ${pages}`;
          before.disabled = shown === 0; after.disabled = shown === pages - 1;
        }
        before.onclick = () => { shown--; show(); };
        after.onclick = () => { shown++; show(); };
        archive.onclick = () => send("archived", { numbers: [...ticked].sort() }).then(() => {
          note.textContent = `${ticked.size} invoices are archived.`;
        });
        show();"""
        )
        start_browser(context, {"": document("Invoices", body, script)})

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        return compared(
            received(context, "archived"), {"numbers": context.parameters["wanted"]}, "the invoices that were archived"
        )

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        numbers = [invoice["number"] for invoice in context.parameters["invoices"]]
        with Page(context) as page:
            for shown in range(_PAGES):
                if shown:
                    click(context, page, "#after")
                    page.until(f"where.textContent.startsWith('Page {shown + 1} ')")
                for number in numbers[shown * _ROWS : (shown + 1) * _ROWS]:
                    if number in context.parameters["wanted"]:
                        click(context, page, f"#n{number}")
                        page.until(f"document.querySelector('#n{number}').checked")
            click(context, page, "#archive")
            page.until("note.textContent !== ''")
