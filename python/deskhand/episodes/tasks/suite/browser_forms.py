"""One page in the browser: a form, a table to read, a file to fetch.

Every page looks the same at every moment, and every result can be read outside of the page.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deskhand.episodes.tasks.browser import Page, received, start_browser
from deskhand.episodes.tasks.suite._acting import wait_until
from deskhand.episodes.tasks.suite._applications import prepare
from deskhand.episodes.tasks.suite._browsing import SEND, choose, click, compared, document, fill, table
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

_FIRST_NAMES = (
    "Ana",
    "Bérénice",
    "Chidi",
    "Dorota",
    "Emil",
    "Farah",
    "Göran",
    "Hana",
    "Ivo",
    "Jamila",
    "Kenji",
    "Lúcia",
)
_LAST_NAMES = (
    "Abel",
    "Brandt",
    "Castillo",
    "Dvořák",
    "Eriksen",
    "Fofana",
    "Gruber",
    "Haddad",
    "Ito",
    "Jansen",
    "Kovács",
    "Lind",
)
_WORKSHOPS = (
    "Bookbinding",
    "Bread baking",
    "Clock repair",
    "Glass blowing",
    "Letterpress",
    "Mushroom walks",
    "Weaving",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_REMARKS = (
    "I come by bicycle.",
    "Please keep a seat at the window.",
    "My colleague joins me at noon.",
    "I bring my own tools.",
    "No questions so far; thank you!",
)


class BrowserForm(Task):
    """Sign up with a form of seven fields of five kinds."""

    name: ClassVar[str] = "browser-form"
    level: ClassVar[Literal[1, 2, 3]] = 1
    tags: ClassVar[tuple[str, ...]] = ("browser",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The participant's details, and the workshop."""
        first, last = random.choice(_FIRST_NAMES), random.choice(_LAST_NAMES)
        return {
            "name": f"{first} {last}",
            "phone": f"0{random.randrange(100, 999)} {random.randrange(10000, 99999)}",
            "workshop": random.choice(_WORKSHOPS),
            "day": random.choice(_DAYS),
            "lunch": random.random() < 0.5,
            "newsletter": random.random() < 0.5,
            "remark": random.choice(_REMARKS),
        }

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        yes_no = {True: "yes", False: "no"}
        return (
            "The browser shows the form of a workshop. Sign up there with these details, and send the form: "
            f"name {parameters['name']}; telephone {parameters['phone']}; workshop {parameters['workshop']}; "
            f"day {parameters['day']}; lunch: {yes_no[parameters['lunch']]}; newsletter: {yes_no[parameters['newsletter']]}; "
            f"remark: “{parameters['remark']}”."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        options = "".join(f"<option>{name}</option>" for name in ("choose…", *_WORKSHOPS))
        days = "".join(
            f'<label class=beside><input type=radio name=day value="{day}" id="{day}"> {day}</label>' for day in _DAYS
        )
        body = f"""<h1>Workshops in spring</h1><form id=form autocomplete=off>
        <label for=name>Name</label><input type=text id=name>
        <label for=phone>Telephone</label><input type=text id=phone>
        <label for=workshop>Workshop</label><select id=workshop>{options}</select>
        <label>Day</label>{days}
        <label>Also</label><label class=beside><input type=checkbox id=lunch> lunch</label>
        <label class=beside><input type=checkbox id=newsletter checked> newsletter</label>
        <label for=remark>Remark</label><textarea id=remark rows=3></textarea>
        <div><button id=send>Sign up</button></div></form><p class=note id=note></p>"""
        script = (
            SEND
            + """
        form.onsubmit = event => {
          event.preventDefault();
          const day = form.querySelector("[name=day]:checked"), value = id => document.getElementById(id).value.trim();
          send("form", {
            name: value("name"), phone: value("phone"), workshop: value("workshop"), day: day ? day.value : null,
            lunch: lunch.checked, newsletter: newsletter.checked, remark: value("remark"),
          }).then(() => { note.textContent = "Thank you. We look forward to seeing you."; });
        };"""
        )
        start_browser(context, {"": document("Workshops", body, script)})

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        return compared(received(context, "form"), context.parameters, "the form that was sent")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        wanted = context.parameters
        with Page(context) as page:
            for field in ("name", "phone", "remark"):
                fill(context, page, f"#{field}", wanted[field])
            choose(context, page, "#workshop", wanted["workshop"])
            click(context, page, f"#{wanted['day']}")
            for box in ("lunch", "newsletter"):
                if page.evaluate(f"{box}.checked") != wanted[box]:
                    click(context, page, f"#{box}")
            click(context, page, "#send")
            page.until("note.textContent !== ''")


_STATIONS = (
    "Ahrens Point", "Beacon Hill", "Cold Ridge", "Dunmore", "East Quay", "Fenner Moor", "Gull Rock", "Harrow Dale",
    "Iron Gate", "Jasper Creek", "Kestrel Peak", "Lantern Bay", "Marsh End", "North Weir",
)  # fmt: skip
_COLUMNS = {"wind": "Wind (km/h)", "rain": "Rain (mm)", "temperature": "Temperature (°C)"}
_RANGES = {"wind": (4, 95), "rain": (0, 60), "temperature": (-12, 34)}


class BrowserTable(Task):
    """Find a row of a table, and enter its name."""

    name: ClassVar[str] = "browser-table"
    level: ClassVar[Literal[1, 2, 3]] = 1
    tags: ClassVar[tuple[str, ...]] = ("browser",)
    limits: ClassVar[TaskLimits] = TaskLimits(steps=10, seconds=180)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The table, and the question; no value occurs twice in a column."""
        stations = random.sample(_STATIONS, 12)
        values = {name: random.sample(range(*_RANGES[name]), len(stations)) for name in _COLUMNS}
        column, extreme = random.choice(tuple(_COLUMNS)), random.choice(("highest", "lowest"))
        best = (max if extreme == "highest" else min)(values[column])
        rows = [[station, *(values[name][index] for name in _COLUMNS)] for index, station in enumerate(stations)]
        return {"rows": rows, "column": column, "extreme": extreme, "station": stations[values[column].index(best)]}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            "The browser shows yesterday's readings of some weather stations. Which station has the "
            f"{parameters['extreme']} {parameters['column']}? Type its name into the field below the table, exactly as the "
            "table has it, and press “Send”."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        body = (
            f"<h1>Weather stations</h1>{table(['Station', *_COLUMNS.values()], context.parameters['rows'], 'stations')}"
            "<form id=form autocomplete=off><label for=station>Station</label><input type=text id=station>"
            "<div><button id=send>Send</button></div></form><p class=note id=note></p>"
        )
        script = (
            SEND
            + """form.onsubmit = event => {
          event.preventDefault();
          send("station", { station: station.value.trim() }).then(() => { note.textContent = "Received, thank you."; });
        };"""
        )
        start_browser(context, {"": document("Weather stations", body, script)})

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        return compared(
            received(context, "station"), {"station": context.parameters["station"]}, "the answer that was sent"
        )

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        with Page(context) as page:
            fill(context, page, "#station", context.parameters["station"])
            click(context, page, "#send")
            page.until("note.textContent !== ''")


_REGIONS = ("north", "east", "south", "west")


class BrowserDownload(Task):
    """Download one of several files."""

    name: ClassVar[str] = "browser-download"
    level: ClassVar[Literal[1, 2, 3]] = 1
    tags: ClassVar[tuple[str, ...]] = ("browser", "files")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=10, seconds=180)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The reports, and the one to download."""
        years = sorted(random.sample(range(2005, 2025), 3))
        reports = [
            {"year": year, "region": region, "visitors": random.randrange(1000, 99999)}
            for year in years
            for region in _REGIONS
        ]
        return {"reports": reports, "wanted": random.randrange(len(reports))}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        report = parameters["reports"][parameters["wanted"]]
        return (
            "The browser shows the visitor reports of a museum. Download the report of the year "
            f"{report['year']} for the region {report['region']}, and no other."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        reports = context.parameters["reports"]
        lines = "".join(
            f"<tr><td>{report['year']}</td><td>{report['region']}</td>"
            f'<td><a id="report{number}" download href="{_file_name(report)}">{escape(_file_name(report))}</a></td></tr>'
            for number, report in enumerate(reports)
        )
        body = f"<h1>Visitor reports</h1><table><tr><th>Year</th><th>Region</th><th>File</th></tr>{lines}</table>"
        files = {_file_name(report): _content(report) for report in reports}
        start_browser(context, {"": document("Visitor reports", body), **files})

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        report = context.parameters["reports"][context.parameters["wanted"]]
        names = sorted(context.files("Downloads"))
        content = context.text(f"Downloads/{_file_name(report)}")
        if names == [_file_name(report)] and content == _content(report):
            return Grade(1.0, f"Downloads has {names[0]}, and it is whole", {"files": names})
        return Grade(0.0, f"Downloads has {names or 'nothing'}, wanted {_file_name(report)} alone", {"files": names})

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        with Page(context) as page:
            click(context, page, f"#report{context.parameters['wanted']}")
        wait_until(lambda: self.evaluate(context).success, "the downloaded file")


def _file_name(report: Mapping[str, Any]) -> str:
    return f"visitors-{report['year']}-{report['region']}.csv"


def _content(report: Mapping[str, Any]) -> str:
    return (
        "year,region,visitors\n" + ",".join(json.dumps(report[name]) for name in ("year", "region", "visitors")) + "\n"
    )
