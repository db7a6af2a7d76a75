"""Text fields of the toolkits, each a program that a desktop starts, and what they hold, learnt without asking the driver."""

from __future__ import annotations

import html
import json
import queue
import re
import subprocess
from importlib import resources
from typing import TYPE_CHECKING, Any

from conftest import need
from deskhand import KeyPress, LeftClick, Settle
from integration.apps import PAGE, PATIENCE, XTerm, chromium_command, environment_of, serve_page, until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import deskhand

# For so long a text that is not the expected one may still become it.
_WRONG_AFTER = 4.0
_START_LIMIT = 180.0

_GTK3 = """
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
def write(buffer):
    open(sys.argv[1], "w", encoding="utf-8").write(buffer.props.text)
window, view = Gtk.Window(), Gtk.TextView()
view.get_buffer().connect("changed", write)
window.add(view)
window.set_default_size(700, 400)
window.show_all()
Gtk.main()
"""
_GTK4 = """
import sys, gi
gi.require_version("Gtk", "4.0")
from gi.repository import Gtk
def write(buffer):
    open(sys.argv[1], "w", encoding="utf-8").write(buffer.props.text)
def activate(app):
    window, view = Gtk.ApplicationWindow(application=app), Gtk.TextView()
    view.get_buffer().connect("changed", write)
    window.set_child(view)
    window.set_default_size(700, 400)
    window.present()
    view.grab_focus()
app = Gtk.Application()
app.connect("activate", activate)
app.run()
"""
_QT = """
import sys
from PyQt{0}.QtWidgets import QApplication, QPlainTextEdit
app = QApplication(sys.argv)
edit = QPlainTextEdit()
edit.textChanged.connect(lambda: open(sys.argv[1], "w", encoding="utf-8").write(edit.toPlainText()))
edit.resize(700, 400)
edit.show()
sys.exit(app.exec())
"""
_TK = """
import sys, tkinter
root = tkinter.Tk()
text = tkinter.Text(root)
text.pack()
text.focus_force()
def write(event):
    open(sys.argv[1], "w", encoding="utf-8").write(text.get("1.0", "end-1c"))
    text.edit_modified(False)
text.bind("<<Modified>>", write)
root.mainloop()
"""
_SWING = """
import java.nio.file.*;
import javax.swing.*;
import javax.swing.event.*;
public class Field {
    public static void main(String[] arguments) {
        SwingUtilities.invokeLater(() -> {
            JFrame frame = new JFrame("field");
            JTextArea area = new JTextArea();
            area.getDocument().addDocumentListener(new DocumentListener() {
                private void write() {
                    try { Files.writeString(Path.of(arguments[0]), area.getText()); }
                    catch (Exception e) { throw new Error(e); }
                }
                public void insertUpdate(DocumentEvent e) { write(); }
                public void removeUpdate(DocumentEvent e) { write(); }
                public void changedUpdate(DocumentEvent e) { write(); }
            });
            frame.add(new JScrollPane(area));
            frame.setSize(700, 400);
            frame.setDefaultCloseOperation(JFrame.EXIT_ON_CLOSE);
            frame.setVisible(true);
        });
    }
}
"""
_JAVAFX = """
import java.nio.file.*;
import javafx.application.Application;
import javafx.scene.Scene;
import javafx.scene.control.TextArea;
import javafx.stage.Stage;
public class Field extends Application {
    public void start(Stage stage) {
        TextArea area = new TextArea();
        String file = getParameters().getRaw().get(0);
        area.textProperty().addListener((o, before, text) -> {
            try { Files.writeString(Path.of(file), text); } catch (Exception e) { throw new Error(e); }
        });
        stage.setScene(new Scene(area, 700, 400));
        stage.show();
    }
    public static void main(String[] arguments) { launch(arguments); }
}
"""
_EMACS = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil create-lockfiles nil)
(electric-indent-mode -1)
(setq coding-system-for-write 'utf-8-unix)
(switch-to-buffer "field")
(fundamental-mode)
(local-set-key (kbd "TAB") (lambda () (interactive) (insert "\\t")))
(local-set-key (kbd "<f2>") (lambda () (interactive) (erase-buffer)))
(setq field-file (getenv "FIELD_FILE"))
(add-hook 'after-change-functions (lambda (&rest _) (write-region nil nil field-file nil 'silent)) nil t)
"""
_VIM = (
    "set encoding=utf-8 noautoindent noexpandtab noswapfile",
    "inoremap <F2> <C-o>:%d<CR>",
    "autocmd TextChangedI * silent! noautocmd write",
    "startinsert",
)


class Field:
    """One program with one text field, which writes what it holds into a file."""

    selects_all = ("ctrl", "a")
    lines = True

    def __init__(
        self, desktop: deskhand.Desktop, home: Path, command: list[str], env: Mapping[str, str] | None = None
    ) -> None:
        self.desktop = desktop
        self.file = home / "text"
        self.file.touch()
        window = desktop.start([*command, str(self.file)], env=env, timeout=_START_LIMIT).window
        assert window is not None
        self.window = window
        desktop.windows.activate(window)
        self.rest()

    def click(self) -> None:
        """Click into its middle."""
        area = next(window.rect for window in self.desktop.windows.list() if window.active)
        self.desktop.perform(LeftClick((area.x + area.width // 2, area.y + area.height // 2)))

    def rest(self) -> None:
        """Wait until it has started."""
        self.desktop.perform(settle=Settle(quiet=0.5, reaction=1.0, timeout=20.0))

    def clear(self) -> None:
        self.desktop.perform(KeyPress(self.selects_all), KeyPress(["Delete"]), settle=False)
        assert until(lambda: self.read() == "", 30)

    def read(self) -> str:
        return self.file.read_bytes().decode(errors="replace")

    def text(self, expected: str) -> str:
        """What it holds, as soon as that is the expected text."""
        until(lambda: self.read() == expected, _WRONG_AFTER)
        return self.read()


def _python(package: str, code: str) -> Callable[[deskhand.Desktop, Path], Field]:
    return lambda desktop, home: Field(desktop, home, [need("/usr/bin/python3", package), "-c", code])


class _Tk(Field):
    selects_all = ("ctrl", "slash")

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        super().__init__(desktop, home, [need("/usr/bin/python3", "python3-tk"), "-c", _TK])


def swing(desktop: deskhand.Desktop, home: Path) -> Field:
    """A text area of Swing's."""
    source = home / "Field.java"
    source.write_text(_SWING)
    return Field(desktop, home, [need("java", "default-jre default-jdk-headless"), str(source)])


def _javafx(desktop: deskhand.Desktop, home: Path) -> Field:
    source = home / "Field.java"
    source.write_text(_JAVAFX)
    modules = ["--module-path", "/usr/share/openjfx/lib", "--add-modules", "javafx.controls"]
    subprocess.run([need("javac", "openjfx default-jdk-headless"), *modules, "-d", home, source], check=True)
    field = Field(desktop, home, [need("java", "default-jre"), *modules, "-Dprism.order=sw", "-cp", str(home), "Field"])
    field.click()
    return field


class _ClearedByKey(Field):
    def clear(self) -> None:
        self.desktop.perform(KeyPress(["F2"]), settle=False)
        # vim tells of it with the next change only.
        if not until(lambda: self.read() == "", 0.3):
            self.desktop.perform(KeyPress(["x"]), KeyPress(["BackSpace"]))
            assert until(lambda: self.read() == "", 30)


def _emacs(desktop: deskhand.Desktop, home: Path) -> Field:
    script = home / "field.el"
    script.write_text(_EMACS)
    # The file's name stands behind the command; Emacs would open it.
    command = ["sh", "-c", f'FIELD_FILE="$1" exec {need("emacs", "emacs-gtk")} -Q -l {script}', "emacs"]
    return _ClearedByKey(desktop, home, command)


class _Vim(_ClearedByKey):
    def read(self) -> str:
        # It ends the last line of a file always.
        return super().read().removesuffix("\n")


def _vim(desktop: deskhand.Desktop, home: Path) -> Field:
    settings = home / "vimrc"
    settings.write_text("\n".join((*_VIM, "")))
    command = [need("xterm", "xterm"), "-e", need("vim", "vim"), "-N", "-u", str(settings)]
    return _Vim(desktop, home, command, {"LC_ALL": "C.UTF-8"})


_OFFICE = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.3"
office:mimetype="application/vnd.oasis.opendocument.{}"><office:body>{}</office:body></office:document>"""
_OFFICE_BODIES = {
    "text": "<office:text><text:p/></office:text>",
    "spreadsheet": '<office:spreadsheet><table:table table:name="a"><table:table-row><table:table-cell/></table:table-row>'
    "</table:table></office:spreadsheet>",
}
_CORRECTIONS = (
    "CapitalAtStartSentence TwoCapitalsAtStart ReplaceDoubleQuote ReplaceSingleQuote ChangeDash UseReplacementTable "
    "CorrectAccidentalCapsLock AddNonBreakingSpace SetInetAttribute ChangeOrdinalNumber ChangeUnderlineWeight"
)
_OFFICE_OFF = (
    *(("Office.Common/AutoCorrect", name) for name in _CORRECTIONS.split()),
    ("Office.Linguistic/SpellChecking", "IsSpellAuto"),
    ("Office.Calc/Input", "AutoInput"),
    ("Office.Writer/AutoFunction/Completion", "Enable"),
)
_OFFICE_ITEM = (
    '<item oor:path="/org.openoffice.{}"><prop oor:name="{}" oor:op="fuse"><value>false</value></prop></item>\n'
)
_OFFICE_SETTINGS = ".config/libreoffice/4/user/registrymodifications.xcu"


def write_office_settings(installation: Path) -> None:
    """Let a LibreOffice with this directory of its own ask nothing, and correct nothing that is typed."""
    skeleton = resources.files("deskhand.launchers.docker") / "image" / "desktop-files" / "etc" / "skel"
    off = "".join(_OFFICE_ITEM.format(*item) for item in _OFFICE_OFF)
    target = installation / "user" / "registrymodifications.xcu"
    target.parent.mkdir(parents=True)
    text = (skeleton / _OFFICE_SETTINGS).read_text(encoding="utf-8")
    target.write_text(text.replace("</oor:items>", f"{off}</oor:items>"))


class Office(Field):
    """LibreOffice with a flat file that it saves without a question, and with nothing that corrects what is typed."""

    kind = "text"

    def __init__(self, desktop: deskhand.Desktop, home: Path, plugin: str = "gtk3") -> None:
        write_office_settings(home / "office")
        self.document = home / ("text.fodt" if self.kind == "text" else "text.fods")
        self.document.write_text(_OFFICE.format(self.kind, _OFFICE_BODIES[self.kind]))
        self.desktop = desktop
        office = f"-env:UserInstallation=file://{home}/office"
        program = need("soffice", "libreoffice-writer libreoffice-calc libreoffice-gtk3")
        command = [program, office, "--norestore", "--nologo", str(self.document)]
        desktop.start(command, env={"SAL_USE_VCLPLUGIN": plugin}, timeout=_START_LIMIT)
        assert until(lambda: any(self.document.name in window.title for window in desktop.windows.list()), _START_LIMIT)
        self.window = next(window for window in desktop.windows.list() if self.document.name in window.title)
        desktop.windows.activate(self.window)
        self.rest()

    def clear(self) -> None:
        self.desktop.perform(KeyPress(["ctrl", "a"]), KeyPress(["Delete"]))

    def read(self) -> str:
        found = re.search(
            rf"<office:{self.kind}\b.*</office:{self.kind}>", self.document.read_text(encoding="utf-8"), re.DOTALL
        )
        if found is None:
            return "(not saved yet)"
        paragraphs = re.findall(r"<text:p\b[^>]*?(?:/>|>(.*?)</text:p>)", found[0], re.DOTALL)
        return "\n".join(_plain(paragraph) for paragraph in paragraphs)

    def text(self, expected: str) -> str:
        before = self.document.stat()
        self.desktop.perform(KeyPress(["ctrl", "s"]))

        def is_saved() -> bool:
            now = self.document.stat()
            return (now.st_mtime_ns, now.st_ino) != (before.st_mtime_ns, before.st_ino)

        until(is_saved, 15)
        return super().text(expected)


def _plain(paragraph: str) -> str:
    spaces = re.sub(r'<text:s(?: text:c="(\d+)")?/>', lambda found: " " * int(found[1] or 1), paragraph)
    return html.unescape(re.sub(r"<[^>]*>", "", spaces.replace("<text:tab/>", "\t")))


class _Calc(Office):
    kind = "spreadsheet"
    lines = False

    def clear(self) -> None:
        super().clear()
        self.desktop.perform(KeyPress(["ctrl", "Home"]))

    def text(self, expected: str) -> str:
        self.desktop.perform(KeyPress(["Return"]))
        return super().text(expected)


class _Page(Field):
    """A browser with a page of ours, which answers over HTTP what its text area holds."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self._orders: queue.Queue[dict[str, str]] = queue.Queue()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        _, url = serve_page(
            lambda path: (json.dumps(self._orders.get()) if path == "/order" else PAGE).encode(),
            lambda body: self._answers.put(json.loads(body)),
        )
        self.desktop = desktop
        window = desktop.start(self.command(url, home), timeout=_START_LIMIT).window
        assert window is not None
        desktop.windows.activate(window)
        self._ask("set")
        self.rest()
        self.click()

    def command(self, url: str, home: Path) -> list[str]:
        return chromium_command(url, home / "chromium")

    def _ask(self, order: str = "read") -> str:
        self._orders.put({"do": order, "value": ""})
        value: str = self._answers.get(timeout=PATIENCE)["value"]
        return value

    def clear(self) -> None:
        self._ask("set")

    def read(self) -> str:
        return self._ask()


_FIREFOX = """
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("termsofuse.bypassNotification", true);
user_pref("trailhead.firstrun.didSeeAboutWelcome", true);
user_pref("browser.translations.automaticallyPopup", false);
"""


class _Firefox(_Page):
    def command(self, url: str, home: Path) -> list[str]:
        profile = home / "firefox"
        profile.mkdir()
        (profile / "user.js").write_text(_FIREFOX)
        return [need("firefox-esr", "firefox-esr"), "--no-remote", "--profile", str(profile), url]


class _Xterm(Field):
    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self._app = XTerm(desktop, home)
        self.desktop = desktop
        self._app.focus()

    def clear(self) -> None:
        self._app.clear()

    def text(self, expected: str) -> str:
        return self._app.text(expected) if until(lambda: self.read() == expected, _WRONG_AFTER) else self.read()

    def read(self) -> str:
        return self._app.file.read_bytes()[self._app.start :].decode(errors="replace")


class _Notepad(Field):
    """WINE's editor; a file that begins with a byte order mark is saved as UTF-8."""

    def __init__(self, desktop: deskhand.Desktop, home: Path) -> None:
        self.desktop = desktop
        self.file = home / "text.txt"
        self.file.write_bytes(b"\xef\xbb\xbf")
        env = {
            **environment_of(desktop),
            "HOME": str(home),
            "WINEPREFIX": str(home / "wine"),
            "WINEDEBUG": "-all",
            "LC_ALL": "C.UTF-8",
        }
        env["WINEDLLOVERRIDES"] = "mscoree,mshtml="
        program = need("wine", "wine wine64")
        # It makes its folders first. What has the window is no child of what is started; it ends with its display.
        subprocess.run(["wineboot", "--init"], env=env, check=True, timeout=600)
        subprocess.Popen([program, "notepad", f"Z:{self.file}"], env=env)
        assert until(lambda: any("text.txt" in window.title for window in desktop.windows.list()), _START_LIMIT)
        self.window = next(window for window in desktop.windows.list() if "text.txt" in window.title)
        desktop.windows.activate(self.window)
        self.rest()

    def clear(self) -> None:
        self.desktop.perform(KeyPress(["ctrl", "a"]), KeyPress(["Delete"]))

    def read(self) -> str:
        return self.file.read_bytes().decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")

    def text(self, expected: str) -> str:
        self.desktop.perform(KeyPress(["ctrl", "s"]))
        return super().text(expected)


FIELDS: Mapping[str, Callable[[deskhand.Desktop, Path], Field]] = {
    "GTK 3": _python("python3-gi gir1.2-gtk-3.0", _GTK3),
    "GTK 4": _python("python3-gi gir1.2-gtk-4.0", _GTK4),
    "Qt 5": _python("python3-pyqt5", _QT.format(5)),
    "Qt 6": _python("python3-pyqt6", _QT.format(6)),
    "Tk": _Tk,
    "Swing": swing,
    "JavaFX": _javafx,
    "LibreOffice Writer": Office,
    "LibreOffice Calc": _Calc,
    "Firefox": _Firefox,
    "Chromium": _Page,
    "xterm": _Xterm,
    "vim in xterm": _vim,
    "Emacs": _emacs,
    "WINE's notepad": _Notepad,
}
