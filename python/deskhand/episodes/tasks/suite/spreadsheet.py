"""Tasks in a spreadsheet (LibreOffice Calc). The saved file is read, with formulas as their values."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any, ClassVar

from deskhand.actions import KeyPress
from deskhand.episodes.tasks.suite._acting import (
    choose_file,
    press,
    settled,
    type_text,
    wait_for_window,
    wait_until,
    wait_until_gone,
)
from deskhand.episodes.tasks.suite._applications import open_calc, prepare
from deskhand.episodes.tasks.suite._material import CITIES, ITEMS, SURNAMES, TOPICS, UNICODE, people
from deskhand.episodes.tasks.suite._ods import Cells, Value, cell_name, read_sheets, write_sheets
from deskhand.episodes.tasks.task import Grade, Resources, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.task import Level

_CALC = "libreoffice-calc"
# For sums of amounts in cents, however they were rounded.
_CLOSE = 0.005


def _cells(rows: Sequence[Sequence[Value]]) -> Cells:
    return {cell_name(r, c): value for r, row in enumerate(rows) for c, value in enumerate(row) if value != ""}


def _same(found: Value | None, wanted: Value | None) -> bool:
    if isinstance(found, str) or isinstance(wanted, str) or found is None or wanted is None:
        return found == wanted
    return math.isclose(found, wanted, abs_tol=_CLOSE)


def _grade_sheets(context: TaskContext, wanted: Mapping[str, Cells], free: Sequence[str] = ()) -> Grade:
    """Whether each sheet has exactly these cells, except for those that may have any value."""
    found = read_sheets(context.read(context.parameters["file"]))
    if found is None:
        return Grade(0.0, f"{context.parameters['file']} is no spreadsheet", {"found": None})
    wrong = []
    for name, cells in wanted.items():
        have = found.get(name, {})
        wrong += [
            f"{name}.{cell} is {have.get(cell)!r}, wanted is {cells.get(cell)!r}"
            for cell in sorted(have.keys() | cells.keys())
            if cell not in free and not _same(have.get(cell), cells.get(cell))
        ]
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    reason = f"{'; '.join(wrong[:3])}{more}" if wrong else f"all cells of {context.parameters['file']} as wanted"
    return Grade(float(not wrong), reason, {"found": found})


def _to(desktop: Desktop, cell: str) -> None:
    """Move the cursor to a cell, using the field for its name."""
    press(desktop, "ctrl+shift+t")
    type_text(desktop, f"{cell}\n")


def _fill(desktop: Desktop, cell: str, text: str) -> None:
    _to(desktop, cell)
    type_text(desktop, f"{text}\n")


def _save(context: TaskContext) -> None:
    """Save, and wait until the whole file is written."""
    before = context.read(context.parameters["file"])

    def saved() -> bool:
        data = context.read(context.parameters["file"])
        return data != before and read_sheets(data) is not None

    press(context.desktop, "ctrl+s")
    wait_until(saved, f"the saved {context.parameters['file']}")
    settled(context.desktop)


class _InCalc(Task):
    tags: ClassVar[tuple[str, ...]] = ("spreadsheet",)
    programs: ClassVar[tuple[str, ...]] = ("libreoffice",)
    resources: ClassVar[Resources] = Resources(memory=768 << 20, most_memory=2304 << 20)

    def setup(self, context: TaskContext) -> None:
        prepare(context)
        context.write(context.parameters["file"], write_sheets(self._sheets(context.parameters)))
        open_calc(context, context.parameters["file"])

    def _sheets(self, parameters: Mapping[str, Any]) -> Mapping[str, Sequence[Sequence[Value]]]:
        return {"Sheet1": parameters["rows"]}


class EnterValues(_InCalc):
    """Type a small table in below its header."""

    name = "sheet-enter-values"

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        new = [
            [f"{person} {random.choice(UNICODE)}", random.choice(CITIES), random.randint(10, 9999) / 4]
            for person in people(random, random.randint(3, 5))
        ]
        return {"file": f"Documents/{random.choice(TOPICS)}.ods", "rows": [["Name", "City", "Amount"]], "new": new}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        lines = "\n".join(f"    {name} | {city} | {amount:g}" for name, city, amount in parameters["new"])
        return (
            "The open table has the columns Name, City and Amount. Enter these rows below the header, from row 2 on, and save "
            f"the file in its format:\n\n{lines}"
        )

    def evaluate(self, context: TaskContext) -> Grade:
        return _grade_sheets(context, {"Sheet1": _cells([*context.parameters["rows"], *context.parameters["new"]])})

    def oracle(self, context: TaskContext) -> None:
        _to(context.desktop, "A2")
        # Return, after cells that were left with Tab, goes to the beginning of the next row.
        for name, city, amount in context.parameters["new"]:
            type_text(context.desktop, f"{name}\t{city}\t{amount:g}\n")
        _save(context)


class TotalByKind(_InCalc):
    """Add up the rows of a table that are of one kind, and count them."""

    name = "sheet-total-by-kind"
    level: ClassVar[Level] = 2

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        kinds = random.sample(TOPICS, random.randint(3, 4))
        rows: list[list[Value]] = [["Day", "Kind", "Amount"]]
        for index in range(random.randint(14, 24)):
            kind = kinds[index] if index < len(kinds) else random.choice(kinds)
            rows.append([random.randint(1, 28), kind, random.randint(100, 99999) / 100])
        return {"file": f"Documents/{random.choice(ITEMS)}.ods", "rows": rows, "kind": random.choice(kinds)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"In the open table, write into cell E1 the sum of the amounts of all rows of the kind {parameters['kind']}, and "
            "into cell E2 how many rows that are. A formula or the number will do. Save the file in its format."
        )

    def evaluate(self, context: TaskContext) -> Grade:
        amounts = [amount for _, kind, amount in context.parameters["rows"][1:] if kind == context.parameters["kind"]]
        wanted = _cells(context.parameters["rows"]) | {"E1": round(sum(amounts), 2), "E2": float(len(amounts))}
        return _grade_sheets(context, {"Sheet1": wanted})

    def oracle(self, context: TaskContext) -> None:
        kind, last = context.parameters["kind"], len(context.parameters["rows"])
        _fill(context.desktop, "E1", f'=SUMIF(B2:B{last};"{kind}";C2:C{last})')
        _fill(context.desktop, "E2", f'=COUNTIF(B2:B{last};"{kind}")')
        _save(context)


class SortRows(_InCalc):
    """Sort the rows of a table by one of its columns."""

    name = "sheet-sort-rows"
    level: ClassVar[Level] = 2

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        count = random.randint(12, 20)
        surnames = random.sample(SURNAMES, count)
        points, years = random.sample(range(10, 999), count), random.sample(range(1920, 2010), count)
        rows = [list(row) for row in zip(surnames, points, years, strict=True)]
        column = random.choice((1, 2))
        return {
            "file": f"Documents/{random.choice(TOPICS)}-{random.randint(1, 99)}.ods",
            "rows": [["Name", "Points", "Year"], *rows],
            "column": column,
            "falling": random.random() < 0.5,
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        order = "from the largest to the smallest" if parameters["falling"] else "from the smallest to the largest"
        return (
            f"Sort the rows of the open table by the column {parameters['rows'][0][parameters['column']]}, {order}. The "
            "header stays the first row, and what belongs together stays in one row. Save the file in its format."
        )

    def evaluate(self, context: TaskContext) -> Grade:
        header, *rows = context.parameters["rows"]
        column = context.parameters["column"]
        wanted = sorted(rows, key=lambda row: row[column], reverse=context.parameters["falling"])
        return _grade_sheets(context, {"Sheet1": _cells([header, *wanted])})

    def oracle(self, context: TaskContext) -> None:
        _to(context.desktop, cell_name(1, context.parameters["column"]))
        # The second and third entries of the menu "Data".
        press(context.desktop, "alt+d")
        context.desktop.perform(
            KeyPress(("Down",), repeat=2 if context.parameters["falling"] else 1), KeyPress(("Return",))
        )
        settled(context.desktop)
        _save(context)


class ExportCsv(_InCalc):
    """Change one value, and save the table in another format."""

    name = "sheet-export-csv"
    level: ClassVar[Level] = 2

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        rows = [
            [name, random.choice(CITIES), random.randint(10, 999)] for name in people(random, random.randint(6, 12))
        ]
        return {
            "file": f"Documents/{random.choice(TOPICS)}.ods",
            "rows": [["Name", "City", "Points"], *rows],
            "who": random.choice(rows)[0],
            "points": random.randint(1000, 9999),
            "csv": f"Documents/{random.choice(ITEMS)}-{random.randint(1, 99)}.csv",
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            f"In the open table, change the points of {parameters['who']} to {parameters['points']}. Then save the table as "
            f"the text file ~/{parameters['csv']} in the format CSV, with commas between the values and the character set "
            "UTF-8."
        )

    def evaluate(self, context: TaskContext) -> Grade:
        wanted = [[str(value) for value in row] for row in self._changed(context.parameters)]
        text = context.text(context.parameters["csv"])
        found = None if text is None else [row for row in csv.reader(io.StringIO(text)) if row]
        if found is None:
            return Grade(0.0, f"{context.parameters['csv']} is not there, or no UTF-8", {"found": None})
        wrong = [
            f"row {i + 1} is {a}, wanted is {b}" for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b
        ]
        if len(found) != len(wanted):
            wrong.append(f"{len(found)} rows, wanted are {len(wanted)}")
        return Grade(float(not wrong), "; ".join(wrong[:3]) or f"{len(found)} rows as wanted", {"found": found})

    def oracle(self, context: TaskContext) -> None:
        desktop, parameters = context.desktop, context.parameters
        index = next(i for i, row in enumerate(parameters["rows"]) if row[0] == parameters["who"])
        _fill(desktop, cell_name(index, 2), str(parameters["points"]))
        press(desktop, "ctrl+shift+s")
        choose_file(desktop, context.path(parameters["csv"]), title="Save")
        for title in ("Confirm File Format", "Export Text File"):
            dialog = wait_for_window(desktop, title)
            press(desktop, "Return")
            wait_until_gone(desktop, dialog)
        last = ",".join(map(str, self._changed(parameters)[-1]))
        wait_until(lambda: (context.text(parameters["csv"]) or "").rstrip("\n").endswith(last), "the written CSV file")

    def _changed(self, parameters: Mapping[str, Any]) -> list[list[Value]]:
        return [
            [*row[:2], parameters["points"]] if row[0] == parameters["who"] else list(row) for row in parameters["rows"]
        ]


class OrderTotals(_InCalc):
    """Look up prices in another sheet, compute an amount for each row, and the total of one customer."""

    name = "sheet-order-totals"
    level: ClassVar[Level] = 3
    limits: ClassVar[TaskLimits] = TaskLimits(steps=60, seconds=600)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        items = random.sample(ITEMS, random.randint(5, 8))
        customers = people(random, 3)
        prices = [[item, random.randint(50, 5000) / 100] for item in items]
        orders = [
            [customers[i] if i < 3 else random.choice(customers), random.choice(items), random.randint(1, 40)]
            for i in range(random.randint(9, 14))
        ]
        random.shuffle(orders)
        return {
            "file": f"Documents/{random.choice(TOPICS)}-{random.randint(1, 99)}.ods",
            "orders": orders,
            "prices": prices,
            "customer": random.choice(customers),
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return (
            "The open file has the sheets Orders and Prices. In Orders, write for each row into column D the price of the item "
            "(from the sheet Prices), and into column E the amount: count times price. Then write into cell H1 the sum of all "
            f"amounts of {parameters['customer']}. Formulas or numbers will do. The headers of D and E are there already. Save "
            "the file in its format."
        )

    def evaluate(self, context: TaskContext) -> Grade:
        parameters = context.parameters
        price = dict(parameters["prices"])
        header = self._sheets(parameters)["Orders"][0]
        rows = [[who, item, count, price[item], count * price[item]] for who, item, count in parameters["orders"]]
        total = sum(row[4] for row in rows if row[0] == parameters["customer"])
        wanted = {
            "Orders": _cells([header, *rows]) | {"H1": total},
            "Prices": _cells(self._sheets(parameters)["Prices"]),
        }
        # A label beside the total is allowed.
        return _grade_sheets(context, wanted, free=("G1",))

    def oracle(self, context: TaskContext) -> None:
        desktop, parameters = context.desktop, context.parameters
        last, prices = len(parameters["orders"]) + 1, len(parameters["prices"]) + 1
        _to(desktop, f"D2:D{last}")
        # Alt+Return enters into all selected cells.
        type_text(desktop, f"=VLOOKUP(B2;$Prices.$A$2:$B${prices};2;0)")
        press(desktop, "alt+Return")
        _to(desktop, f"E2:E{last}")
        type_text(desktop, "=C2*D2")
        press(desktop, "alt+Return")
        _fill(desktop, "H1", f'=SUMIF(A2:A{last};"{parameters["customer"]}";E2:E{last})')
        _save(context)

    def _sheets(self, parameters: Mapping[str, Any]) -> Mapping[str, Sequence[Sequence[Value]]]:
        header: list[Value] = ["Customer", "Item", "Count", "Price", "Amount"]
        return {"Orders": [header, *parameters["orders"]], "Prices": [["Item", "Price"], *parameters["prices"]]}
