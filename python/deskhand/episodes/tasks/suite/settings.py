"""Settings of the desktop and its programs: the keyboard, the file manager, the editor, the browser.

A setting is read from its file or program, never from the screen.
"""

from __future__ import annotations

import configparser
import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deskhand.actions import KeyPress, LeftClick, Type
from deskhand.episodes.tasks.browser import PROFILE, Page, start_browser
from deskhand.episodes.tasks.suite._acting import press, settled, type_text, wait_until
from deskhand.episodes.tasks.suite._applications import open_mousepad, open_pcmanfm, open_terminal, prepare
from deskhand.episodes.tasks.suite._browsing import choose, compared, document, scroll_to
from deskhand.episodes.tasks.suite._material import sentences
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

_LAYOUTS = {
    "cz": "Czech",
    "de": "German",
    "dk": "Danish",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "se": "Swedish",
}


class SettingsKeyboard(Task):
    """Set the keyboard's layout with a command."""

    name: ClassVar[str] = "settings-keyboard"
    level: ClassVar[Literal[1, 2, 3]] = 1
    tags: ClassVar[tuple[str, ...]] = ("settings", "terminal")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=12, seconds=180)
    programs: ClassVar[tuple[str, ...]] = ("xterm", "setxkbmap")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """Which layout."""
        return {"layout": random.choice(sorted(_LAYOUTS))}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        layout = parameters["layout"]
        return (
            f"Set the keyboard layout of this desktop to {_LAYOUTS[layout]} (“{layout}”), and to no other besides. "
            "The terminal has the command setxkbmap for that."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        open_terminal(context)

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        lines = context.run("setxkbmap -query").stdout.splitlines()
        found = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return compared(found, {"layout": context.parameters["layout"]}, "the keyboard")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        type_text(context.desktop, f"setxkbmap {context.parameters['layout']}")
        press(context.desktop, "Return")
        wait_until(lambda: self.evaluate(context).success, "the layout")


_SORTS = {"name": "name", "mtime": "modification time", "size": "size"}
_MANAGER = ".config/pcmanfm/default/pcmanfm.conf"


class SettingsFiles(Task):
    """Set which files the file manager shows, and in which order."""

    name: ClassVar[str] = "settings-files"
    level: ClassVar[Literal[1, 2, 3]] = 1
    tags: ClassVar[tuple[str, ...]] = ("settings", "files")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=15, seconds=180)
    programs: ClassVar[tuple[str, ...]] = ("pcmanfm",)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The order, and the files to show."""
        names = random.sample(["bills", "drafts", "letters", "maps", "notes", "photos", "recipes", "songs"], 6)
        files = {
            f"{'.' if index < 2 else ''}{name}.txt": [random.randrange(1, 4000), random.randrange(1, 28)]
            for index, name in enumerate(names)
        }
        sort = random.choice(sorted(_SORTS))
        direction = "descending" if sort == "name" else random.choice(("ascending", "descending"))
        return {"files": files, "sort": sort, "direction": direction}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            "Have the file manager show hidden files too, and sort files by "
            f"{_SORTS[parameters['sort']]}, {parameters['direction']}."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        # The bar above the files would show the path of the home directory.
        manager = context.text(_MANAGER) or ""
        context.write(_MANAGER, manager.replace("toolbar=navigation", "toolbar=hidden;navigation"))
        files = context.parameters["files"]
        context.write_all({f"Documents/{name}": "x" * size for name, (size, _) in files.items()})
        context.run(
            "; ".join(f"touch -d '2024-03-{day:02} 12:00' Documents/{name}" for name, (_, day) in files.items())
        )
        open_pcmanfm(context, "Documents")

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        found = _section(context, _MANAGER, "ui")
        wanted = {"show_hidden": "1", "sort": f"{context.parameters['sort']};{context.parameters['direction']};"}
        return compared({name: found.get(name) for name in wanted}, wanted, "the file manager")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        desktop, wanted = context.desktop, context.parameters
        press(desktop, "ctrl+h")
        # By name, by modification time, by size.
        press(desktop, f"ctrl+alt+{['name', 'mtime', 'size'].index(wanted['sort']) + 1}")
        # The menu's third entry, and in its submenu the first or the second.
        press(desktop, "alt+v", "Down", "Down", "Right", *["Down"] * (wanted["direction"] == "descending"), "Return")
        wait_until(lambda: self.evaluate(context).success, "the file manager's settings to be written")


_EDITOR = ".config/glib-2.0/settings/keyfile"
_TABS = (2, 3, 4)


class SettingsEditor(Task):
    """Set three of an editor's settings through its menus or its preferences."""

    name: ClassVar[str] = "settings-editor"
    level: ClassVar[Literal[1, 2, 3]] = 2
    tags: ClassVar[tuple[str, ...]] = ("settings", "text")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=20, seconds=240)
    programs: ClassVar[tuple[str, ...]] = ("mousepad",)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """The width of a tab, and the text that is shown."""
        return {"tab": random.choice(_TABS), "text": "\n".join(f"\t{line}" for line in sentences(random, 12)) + "\n"}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            f"Set the text editor so that it shows line numbers, wraps long lines, and has tabs {parameters['tab']} characters "
            "wide. Leave the text as it is."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        context.write("text.txt", context.parameters["text"])
        open_mousepad(context, "text.txt")

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        view = _section(context, _EDITOR, "org/xfce/mousepad/preferences/view")
        wanted = {"show-line-numbers": "true", "word-wrap": "true", "tab-width": str(context.parameters["tab"])}
        # GVariant may write a number with its type before it.
        found = {name: view.get(name, "").removeprefix("uint32 ").strip() for name in wanted}
        text = context.text("text.txt") == context.parameters["text"]
        return compared({**found, "text": text}, {**wanted, "text": True}, "the editor")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        desktop = context.desktop
        # View: font, colours, line numbers. Document: word wrap, indent, tab size.
        press(desktop, "alt+v", "Down", "Down", "Return")
        press(desktop, "alt+d", "Return")
        press(desktop, "alt+d", "Down", "Down", "Right", *["Down"] * _TABS.index(context.parameters["tab"]), "Return")
        wait_until(lambda: self.evaluate(context).success, "the editor's settings to be written")


def _section(context: TaskContext, file: str, name: str) -> Mapping[str, str]:
    """A section of a file of settings; empty if there is none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(context.text(file) or "")
    except configparser.Error:
        return {}
    return dict(parser[name]) if name in parser else {}


_FONTS = {"Very small": 9, "Small": 12, "Large": 20, "Very large": 24}
_STARTUPS = {"Open the New Tab page": 5, "Continue where you left off": 1}
# How long the browser may keep a changed setting in memory before writing it.
_WRITTEN = 15.0


class SettingsBrowser(Task):
    """Set three of the browser's settings, on two of its pages."""

    name: ClassVar[str] = "settings-browser"
    level: ClassVar[Literal[1, 2, 3]] = 3
    tags: ClassVar[tuple[str, ...]] = ("settings", "browser")
    limits: ClassVar[TaskLimits] = TaskLimits(steps=30, seconds=300)
    programs: ClassVar[tuple[str, ...]] = ("chromium", "perl")

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        """A font size and a start page that differ from the present ones."""
        return {"font": random.choice(sorted(_FONTS)), "startup": random.choice(sorted(_STARTUPS))}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        """See `Task`."""
        return (
            f"Change three settings of the browser: it is to show the home button, its font size is to be “{parameters['font']}"
            f"”, and on startup it is to “{parameters['startup']}”."
        )

    def setup(self, context: TaskContext) -> None:
        """See `Task`."""
        prepare(context)
        before = next(value for name, value in _STARTUPS.items() if name != context.parameters["startup"])
        start_browser(
            context,
            {"": document("Start", "<h1>The browser</h1><p>Its settings are in the menu at the top right.</p>")},
            preferences={"session": {"restore_on_startup": before}},
        )

    def evaluate(self, context: TaskContext) -> Grade:
        """See `Task`."""
        try:
            wait_until(lambda: self._graded(context).success, "the browser's settings", timeout=_WRITTEN)
        except EpisodeError:
            # The settings are still not there after the longest delay.
            return self._graded(context)
        return self._graded(context)

    @staticmethod
    def _graded(context: TaskContext) -> Grade:
        try:
            kept = json.loads(context.text(f"{PROFILE}/Default/Preferences") or "{}")
        except json.JSONDecodeError:
            kept = {}
        found = {
            "home button": kept.get("browser", {}).get("show_home_button", False),
            "font size": kept.get("webkit", {}).get("webprefs", {}).get("default_font_size", 16),
            "startup": kept.get("session", {}).get("restore_on_startup", 5),
        }
        wanted = {
            "home button": True,
            "font size": _FONTS[context.parameters["font"]],
            "startup": _STARTUPS[context.parameters["startup"]],
        }
        return compared(found, wanted, "the browser's settings")

    def oracle(self, context: TaskContext) -> None:
        """See `Task`."""
        with Page(context) as page:
            self._visit(context, page, "chrome://settings/appearance", _HOME)
            context.desktop.perform(LeftClick(page.centre(_HOME)))
            page.until(f"{page.element(_HOME)}.checked")
            scroll_to(context, page, _FONT)
            choose(context, page, _FONT, context.parameters["font"])
            start = f'controlled-radio-button[label="{context.parameters["startup"]}"]'
            self._visit(context, page, "chrome://settings/onStartup", start)
            context.desktop.perform(LeftClick(page.centre(start)))
            page.until(f"{page.element(start)}.checked")

    @staticmethod
    def _visit(context: TaskContext, page: Page, address: str, selector: str) -> None:
        """Go to an address, and wait until an element is visible and stays in its place."""
        context.desktop.perform(KeyPress(["ctrl", "l"]), Type(address), KeyPress(["Return"]))
        page.until(
            f"location.href === {json.dumps(address)} && {page.element(selector)}?.getBoundingClientRect().width > 0"
        )
        settled(context.desktop)


_FONT = "settings-dropdown-menu#defaultFontSize >>> select"
_HOME = 'settings-toggle-button[label="Show home button"] >>> cr-toggle'
