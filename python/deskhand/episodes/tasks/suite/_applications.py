"""Starts the image's applications for tasks: without questions, without blinking, the same every time.

This module owns the settings in the home directory for that, and each application's command line. It has no task and no
action.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from deskhand.episodes.tasks.suite._acting import settled, wait_for_window
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand._core.window import Window
    from deskhand.episodes.tasks.context import TaskContext

_FILES = {
    # A blinking caret or an animated widget would change the first frame. For Qt only the period can be set: ten days.
    ".config/gtk-3.0/settings.ini": (
        "[Settings]\ngtk-cursor-blink = 0\ngtk-cursor-blink-time = 1000000000\ngtk-enable-animations = 0\n"
    ),
    ".gtkrc-2.0": "gtk-cursor-blink = 0\ngtk-enable-animations = 0\n",
    ".bashrc": "PS1='$ '\nunset HISTFILE PROMPT_COMMAND\n",
    ".config/glib-2.0/settings/keyfile": "[org/xfce/mousepad/preferences/window]\npath-in-title=false\n",
    ".config/featherpad/fp.conf": (
        "[text]\nnoIndent=true\nappendEmptyLine=false\nautoBracket=false\nautoReplace=false\nremoveTrailingSpaces=false\n"
    ),
    # The status bar would show the free space on the disk.
    ".config/pcmanfm/default/pcmanfm.conf": (
        "[config]\nbm_open_method=0\n[ui]\nwin_width=900\nwin_height=600\nmaximized=0\nside_pane_mode=hidden;places\n"
        "view_mode=list\nshow_hidden=0\nsort=name;ascending;\ntoolbar=navigation;home;\nshow_statusbar=0\n"
        "pathbar_mode_buttons=0\n"
    ),
    ".config/libfm/libfm.conf": "[config]\nsingle_click=0\nuse_trash=1\nconfirm_del=1\nconfirm_trash=1\nno_usb_trash=0\n",
}
_LAST_WORDS = 2000
_OFFICE_SETTINGS = ".config/libreoffice/4/user/registrymodifications.xcu"
# Spell checking underlines words some time after typing, and AutoInput completes them while typing.
_OFFICE_OFF = (("Office.Linguistic/SpellChecking", "IsSpellAuto"), ("Office.Calc/Input", "AutoInput"))
# The desktop's own settings, independent of the driver's environment: file dialogs are GTK's, and settings are files.
_ENVIRONMENT = {"GSETTINGS_BACKEND": "keyfile", "QT_QPA_PLATFORMTHEME": "gtk3"}


def prepare(context: TaskContext) -> None:
    """Write the settings of all applications into the home directory, before any of them starts."""
    settings = (
        resources.files("deskhand.launchers.docker") / "image" / "desktop-files" / "etc" / "skel" / _OFFICE_SETTINGS
    )
    own = "".join(
        f'<item oor:path="/org.openoffice.{path}"><prop oor:name="{name}" oor:op="fuse"><value>false</value></prop></item>\n'
        for path, name in _OFFICE_OFF
    )
    office = settings.read_text(encoding="utf-8").replace("</oor:items>", f"{own}</oor:items>")
    context.write_all({**_FILES, _OFFICE_SETTINGS: office})


def _start(
    context: TaskContext, *command: str, class_name: str, title: str = "", env: Mapping[str, str] | None = None
) -> Window:
    program = context.desktop.start(command, env={**_ENVIRONMENT, **(env or {})}, cwd=context.home, timeout=120)

    def check() -> None:
        # A successful end may mean that the program passed its work to a running instance.
        if status := program.poll():
            said = (context.read(str(program.log)) or b"")[-_LAST_WORDS:].decode(errors="replace")
            raise EpisodeError(f"{command[0]} ended with {status} before its window was there: {said.strip()}")

    window = wait_for_window(context.desktop, title, class_name, timeout=120, check=check)
    settled(context.desktop)
    return window


def open_mousepad(context: TaskContext, name: str | None = None) -> Window:
    """A text editor, empty or with a file."""
    return _start(context, "mousepad", *([] if name is None else [context.path(name)]), class_name="mousepad")


def open_featherpad(context: TaskContext) -> Window:
    """Another text editor, empty: it shows a file's whole path, which differs between desktops."""
    return _start(context, "featherpad", "--standalone", class_name="featherpad")


def open_pcmanfm(context: TaskContext, name: str) -> Window:
    """The file manager, with a folder."""
    if context.desktop.has_machine:
        return _start(context, "pcmanfm", context.path(name), class_name="pcmanfm")
    # It shows the whole path, and local desktops have different home directories. The path of its own working directory is
    # the same for all of them.
    return _start(context, "pcmanfm", name, class_name="pcmanfm", env={"PWD": "/proc/self/cwd"})


def open_terminal(context: TaskContext) -> Window:
    """A terminal with a shell in the home directory."""
    font = ("-fa", "DejaVu Sans Mono", "-fs", "11", "-geometry", "90x30")
    return _start(
        context, "xterm", *font, "-T", "Terminal", "-e", "bash", "--rcfile", ".bashrc", "-i", class_name="xterm"
    )


def open_calc(context: TaskContext, name: str) -> Window:
    """The spreadsheet, with a file."""
    command = ("libreoffice", "--nologo", "--norestore", "--calc", context.path(name))
    return _start(context, *command, class_name="libreoffice-calc", title=name.rpartition("/")[2])


def open_drawing(context: TaskContext, name: str) -> Window:
    """The drawing program, with a file."""
    command = ("libreoffice", "--nologo", "--norestore", "--draw", context.path(name))
    return _start(context, *command, class_name="libreoffice-draw", title=name.rpartition("/")[2])


def open_pdf(context: TaskContext, name: str) -> Window:
    """The viewer, with a document."""
    return _start(context, "mupdf", context.path(name), class_name="mupdf")
