"""Tasks with two applications: content of one goes into the other.

No application is started twice, and an oracle switches windows only with keys.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deskhand.actions import KeyPress, PressKeys, ReleaseKeys
from deskhand.episodes.tasks.browser import Page, received, start_browser
from deskhand.episodes.tasks.suite._acting import press, type_text, wait_for_window, wait_until
from deskhand.episodes.tasks.suite._applications import open_calc, open_mousepad, open_pdf, open_terminal, prepare
from deskhand.episodes.tasks.suite._browsing import SEND, click, compared, document, fill
from deskhand.episodes.tasks.suite._material import CITIES, ITEMS, SURNAMES
from deskhand.episodes.tasks.suite._papers import pdf, sheet
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.tasks.context import TaskContext

_DISHES = ("Barley soup", "Bean stew", "Carrot cake", "Fish pie", "Mushroom rice", "Onion tart", "Potato salad")
_INGREDIENTS = (
    "barley", "beans", "butter", "carrots", "celery", "cream", "dill", "eggs", "flour", "garlic", "haddock", "leeks",
    "lemons", "milk", "mushrooms", "mustard", "nutmeg", "onions", "parsley", "pepper", "potatoes", "rice", "salt",
    "sugar", "thyme", "vinegar", "walnuts", "yeast",
)  # fmt: skip
_LIST = "shopping.txt"


class MultiWebNote(Task):
    """Copy the list on a page into a text file that is open beside it."""

    name: ClassVar[str] = "multi-web-note"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("multi", "browser", "text")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=25, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl", "mousepad")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """Four dishes with their ingredients, the wanted one, and the items that are already on the list."""
        dishes = {dish: random.sample(_INGREDIENTS, random.randrange(4, 7)) for dish in random.sample(_DISHES, 4)}
        return {"dishes": dishes, "dish": random.choice(list(dishes)), "before": random.sample(ITEMS, 2)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            f"The browser shows some recipes, and the text editor the list {_LIST}. Add all ingredients of the recipe "
            f"“{parameters['dish']}” at the end of the list, each on a line of its own and in the order of the recipe, and "
            "save the list."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        recipes = "".join(
            f"<h2>{dish}</h2><ul>{''.join(f'<li>{one}</li>' for one in ingredients)}</ul>"
            for dish, ingredients in context.parameters["dishes"].items()
        )
        style = "h2 { margin: 8px 0 0; } ul { margin: 2px 0; }"
        page = document("Recipes", f"<h1>Recipes</h1>{recipes}", style=style)
        start_browser(context, {"": page}, size=(640, 760))
        context.write(_LIST, _lines(context.parameters["before"]))
        open_mousepad(context, _LIST)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        wanted = [*context.parameters["before"], *context.parameters["dishes"][context.parameters["dish"]]]
        text = context.text(_LIST)
        found = None if text is None else [line.strip() for line in text.rstrip().split("\n")]
        return compared({"lines": found}, {"lines": wanted}, _LIST)

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        wait_for_window(context.desktop, class_name="mousepad")
        press(context.desktop, "ctrl+End")
        type_text(context.desktop, _lines(context.parameters["dishes"][context.parameters["dish"]]))
        press(context.desktop, "ctrl+s")
        wait_until(lambda: self.evaluate(context).success, "the saved list")


def _lines(words: list[str]) -> str:
    return "".join(f"{word}\n" for word in words)


_SCRIPT = """#!/bin/bash
# Reads job.conf and data.csv, and writes the report that job.conf names.
source ./job.conf
{
  echo "Report: $title"
  while IFS=, read -r town amount; do
    if (( amount >= least )); then echo "$town: $amount"; fi
  done < data.csv
} > "$report"
echo "written: $report"
"""


class MultiConfigRun(Task):
    """Change a program's configuration in the editor, then run it in the terminal."""

    name: ClassVar[str] = "multi-config-run"
    level: ClassVar[Literal[1, 2, 3]] = 3
    tags: ClassVar[tuple[str, ...]] = ("multi", "text", "terminal")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("mousepad", "xterm")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The data, and the wanted configuration."""
        towns = random.sample(CITIES, 8)
        amounts = [random.randrange(10, 999) for _ in towns]
        return {
            "data": dict(zip(towns, amounts, strict=True)),
            "title": f"{random.choice(SURNAMES)} {random.randrange(1990, 2030)}",
            "least": random.randrange(200, 800, 5),
            "report": f"report-{random.randrange(100, 999)}.txt",
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            "The text editor shows job.conf, the configuration of the program make-report. Change it so that the title is "
            f"“{parameters['title']}”, least is {parameters['least']}, and the report goes to {parameters['report']}; save it. "
            "Then run ./make-report once in the terminal."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        context.write_all(
            {
                "data.csv": "".join(f"{town},{amount}\n" for town, amount in context.parameters["data"].items()),
                "make-report": _SCRIPT,
                "job.conf": _configuration("Untitled", 0, "report.txt"),
            }
        )
        context.run("chmod +x make-report")
        open_terminal(context)
        open_mousepad(context, "job.conf")

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        wanted = context.parameters
        chosen = [f"{town}: {amount}" for town, amount in wanted["data"].items() if amount >= wanted["least"]]
        report = _lines([f"Report: {wanted['title']}", *chosen])
        found = {
            "job.conf": _values(context.text("job.conf") or ""),
            wanted["report"]: context.text(wanted["report"]),
            "report.txt": context.text("report.txt"),
        }
        configuration = {"title": wanted["title"], "least": str(wanted["least"]), "report": wanted["report"]}
        return compared(found, {"job.conf": configuration, wanted["report"]: report, "report.txt": None}, "the files")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        wanted, desktop = context.parameters, context.desktop
        wait_for_window(desktop, class_name="mousepad")
        press(desktop, "ctrl+a")
        type_text(desktop, _configuration(wanted["title"], wanted["least"], wanted["report"]))
        press(desktop, "ctrl+s")
        wait_until(lambda: wanted["report"] in (context.text("job.conf") or ""), "the saved configuration")
        _switch(desktop)
        wait_for_window(desktop, class_name="xterm")
        type_text(desktop, "./make-report\n")
        wait_until(lambda: self.evaluate(context).success, "the report")


def _switch(desktop: Desktop) -> None:
    """Switch to the other window, holding Alt as a hand would."""
    desktop.perform(PressKeys(["alt"]), KeyPress(["Tab"]), ReleaseKeys(["alt"]))


def _configuration(title: str, least: int, report: str) -> str:
    return f'title="{title}"\nleast={least}\nreport={report}\n'


def _values(text: str) -> dict[str, str] | None:
    """The values that a configuration sets, with any quoting; None if a shell could not read it."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    return dict(word.split("=", 1) for word in words if "=" in word)


_NOTE = "summary.txt"


class MultiSheetNote(Task):
    """Add up some rows of a spreadsheet, and write the sum into a text file."""

    name: ClassVar[str] = "multi-sheet-note"
    level: ClassVar[Literal[1, 2, 3]] = 3
    tags: ClassVar[tuple[str, ...]] = ("multi", "spreadsheet", "text")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=360)
    programs: ClassVar[tuple[str, ...]] = ("libreoffice", "localc", "mousepad")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The sales, and the articles to add up."""
        articles = random.sample(ITEMS, 4)
        towns = random.sample(CITIES, 4)
        rows = [[random.choice(towns), random.choice(articles), random.randrange(1, 99)] for _ in range(22)]
        wanted = random.sample(articles, 2)
        # Each of them is sold at least once.
        rows += [[random.choice(towns), article, random.randrange(1, 99)] for article in wanted]
        random.shuffle(rows)
        return {"rows": rows, "articles": wanted}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        one, other = parameters["articles"]
        return (
            f"The spreadsheet lists sales. How many pieces of {one} were sold altogether, and how many of {other}? Write both "
            f"numbers into the file {_NOTE}, which the text editor shows, after the colons that are there, and save it."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        context.write("sales.fods", sheet([["Town", "Article", "Pieces"], *context.parameters["rows"]]))
        open_calc(context, "sales.fods")
        context.write(_NOTE, _lines([f"{article}:" for article in context.parameters["articles"]]))
        open_mousepad(context, _NOTE)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        lines = (context.text(_NOTE) or "").rstrip().split("\n")
        found = [[part.strip() for part in line.split(":", 1)] for line in lines]
        wanted = [[article, str(_sold(context.parameters, article))] for article in context.parameters["articles"]]
        return compared({"lines": found}, {"lines": wanted}, _NOTE)

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        desktop = context.desktop
        wait_for_window(desktop, class_name="mousepad")
        press(desktop, "ctrl+Home")
        for article in context.parameters["articles"]:
            press(desktop, "End")
            type_text(desktop, f" {_sold(context.parameters, article)}")
            press(desktop, "Down")
        press(desktop, "ctrl+s")
        wait_until(lambda: self.evaluate(context).success, "the saved numbers")


def _sold(parameters: Mapping[str, Any], article: str) -> int:
    return sum(pieces for _, sold, pieces in parameters["rows"] if sold == article)


_MONTHS = ("January", "March", "April", "June", "August", "October", "December")
_FIELDS = {"supplier": "Supplier", "number": "Invoice number", "date": "Date", "total": "Total"}


class MultiPdfForm(Task):
    """Read an invoice in a PDF viewer, and enter it into a form in the browser."""

    name: ClassVar[str] = "multi-pdf-form"
    level: ClassVar[Literal[1, 2, 3]] = 3
    tags: ClassVar[tuple[str, ...]] = ("multi", "browser")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("mupdf", "chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """Three invoices, one a page, and the one to enter."""
        suppliers = [
            f"{name} & {random.choice(('Sons', 'Partners', 'Daughters'))}" for name in random.sample(_FIRMS, 3)
        ]
        invoices = [
            {
                "supplier": supplier,
                "number": f"{random.choice('ABCDEFGH')}-{random.randrange(1000, 9999)}",
                "date": f"{random.randrange(1, 29)} {random.choice(_MONTHS)} {random.randrange(2015, 2026)}",
                "net": random.randrange(100, 900),
                "postage": random.randrange(5, 20),
                "article": random.choice(ITEMS),
            }
            for supplier in suppliers
        ]
        return {"invoices": invoices, "wanted": random.randrange(1, 3)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        supplier = parameters["invoices"][parameters["wanted"]]["supplier"]
        return (
            f"The PDF viewer shows a document with three invoices, one a page. Enter the invoice of {supplier} into the form "
            "in the browser, each value as the document has it, and send the form."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        fields = "".join(
            f"<label for={name}>{label}</label><input type=text id={name}>" for name, label in _FIELDS.items()
        )
        body = (
            f"<h1>Bookkeeping</h1><form id=form autocomplete=off>{fields}<div><button id=enter>Enter</button></div></form>"
            "<p class=note id=note></p>"
        )
        script = (
            SEND
            + """form.onsubmit = event => {
          event.preventDefault();
          const fields = [...form.querySelectorAll("input")].map(field => [field.id, field.value.trim()]);
          send("invoice", Object.fromEntries(fields)).then(() => { note.textContent = "Entered."; });
        };"""
        )
        start_browser(context, {"": document("Bookkeeping", body, script)}, position=(700, 0), size=(580, 760))
        context.write("invoices.pdf", pdf([_paper(invoice) for invoice in context.parameters["invoices"]]))
        open_pdf(context, "invoices.pdf")

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        return compared(received(context, "invoice"), _entry(context.parameters), "the form that was sent")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        wait_for_window(context.desktop, class_name="mupdf")
        # Go to the page as a reader would.
        context.desktop.perform(*[KeyPress(["Next"])] * context.parameters["wanted"])
        _switch(context.desktop)
        wait_for_window(context.desktop, class_name="chromium")
        with Page(context) as page:
            for name, value in _entry(context.parameters).items():
                fill(context, page, f"#{name}", value)
            click(context, page, "#enter")
            page.until("note.textContent !== ''")


_FIRMS = ("Abbott", "Birch", "Collins", "Dorsey", "Ellery", "Farrow", "Gilmore", "Hobbs")


def _entry(parameters: Mapping[str, Any]) -> dict[str, str]:
    invoice = parameters["invoices"][parameters["wanted"]]
    return {
        **{name: invoice[name] for name in ("supplier", "number", "date")},
        "total": f"{invoice['net'] + invoice['postage']}.00",
    }


def _paper(invoice: Mapping[str, Any]) -> list[str]:
    return [
        invoice["supplier"],
        "",
        f"Invoice {invoice['number']}",
        f"Date: {invoice['date']}",
        "",
        f"For a delivery of {invoice['article']}: {invoice['net']}.00",
        f"Postage: {invoice['postage']}.00",
        f"Total: {invoice['net'] + invoice['postage']}.00",
        "",
        "Please pay within thirty days.",
    ]
