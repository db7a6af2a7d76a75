"""The applications whose trees are read: how each is started, and what is clicked in it.

What must never appear here: a measurement.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench import scenes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["APPLICATIONS", "Application"]

_ROWS, _COLUMNS = 250, 8
_PLACE = (0, 0, 1900, 1040)
_SYSTEM_PYTHON = "/usr/bin/python3"
_ATK_WRAPPER = "/usr/share/java/java-atk-wrapper.jar"
_QT6 = """
from PyQt6.QtWidgets import QApplication, QCheckBox, QPushButton, QTableWidget, QVBoxLayout, QWidget
application, window = QApplication([]), QWidget()
application.setApplicationName("bench")
window.setWindowTitle("Bench")
column = QVBoxLayout(window)
column.addWidget(QCheckBox("Check"))
for number in range(20):
    column.addWidget(QPushButton(f"Button {number}"))
column.addWidget(QTableWidget(20, 5))
window.resize(500, 900)
window.show()
application.exec()
"""
_SWING = """
import javax.swing.*;
public class Bench {
  public static void main(String[] arguments) {
    SwingUtilities.invokeLater(() -> {
      JPanel panel = new JPanel();
      panel.setLayout(new BoxLayout(panel, BoxLayout.Y_AXIS));
      panel.add(new JCheckBox("Check"));
      for (int number = 0; number < 20; number++) panel.add(new JButton("Button " + number));
      panel.add(new JScrollPane(new JTable(20, 5)));
      JFrame frame = new JFrame("Bench");
      frame.add(panel);
      frame.setSize(500, 900);
      frame.setDefaultCloseOperation(JFrame.EXIT_ON_CLOSE);
      frame.setVisible(true);
    });
  }
}
"""
_FIREFOX = """
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("startup.homepage_welcome_url", "");
"""


def page() -> str:
    """A page of 2,000 links in a table, and a check box above."""
    rows = "".join(
        "<tr>" + "".join(f"<td><a href='#{row}-{column}'>link {row}-{column}</a></td>" for column in range(_COLUMNS))
        for row in range(_ROWS)
    )
    return (
        "<!doctype html><meta charset='utf-8'><title>Table</title>"
        f"<label><input type='checkbox'>Check</label><table>{rows}</table>"
    )


@dataclass(frozen=True, slots=True)
class Application:
    """One that is measured.

    Attributes:
        name: As the command line knows it.
        title: As the table says it.
        command: Writes into a directory what it needs, and returns what starts it; raises `Missing`.
        role: Of what is clicked. A second click takes the first one back.
        label: Its name; the first one is clicked.
    """

    name: str
    title: str
    command: Callable[[Path], Sequence[str]]
    role: str
    label: str


def _program(program: str, package: str, *arguments: str) -> Callable[[Path], Sequence[str]]:
    def command(_: Path) -> Sequence[str]:
        scenes.need(program, package)
        return [program, *arguments]

    return command


def _qt6(scratch: Path) -> Sequence[str]:
    there = Path(_SYSTEM_PYTHON).exists()
    if not there or subprocess.run([_SYSTEM_PYTHON, "-c", "import PyQt6"], check=False, capture_output=True).returncode:
        raise scenes.Missing("PyQt6: apt-get install python3-pyqt6")
    (scratch / "qt6.py").write_text(_QT6)
    return [_SYSTEM_PYTHON, str(scratch / "qt6.py")]


def _swing(scratch: Path) -> Sequence[str]:
    scenes.need("javac", "default-jdk-headless")
    if not Path(_ATK_WRAPPER).exists():
        raise scenes.Missing("the bridge of Swing to AT-SPI: apt-get install libatk-wrapper-java")
    (scratch / "Bench.java").write_text(_SWING)
    subprocess.run(["javac", "-d", str(scratch), str(scratch / "Bench.java")], check=True, capture_output=True)
    bridge = "-Djavax.accessibility.assistive_technologies=org.GNOME.Accessibility.AtkWrapper"
    return ["java", bridge, "-cp", f"{scratch}:{_ATK_WRAPPER}", "Bench"]


def _chromium(scratch: Path) -> Sequence[str]:
    (scratch / "table.html").write_text(page())
    return scenes.chromium(scratch / "table.html", scratch / "chromium", _PLACE)


def _firefox(scratch: Path) -> Sequence[str]:
    name = "firefox-esr" if shutil.which("firefox-esr") else "firefox"
    scenes.need(name, "firefox-esr")
    (scratch / "table.html").write_text(page())
    profile = scratch / "firefox"
    profile.mkdir(exist_ok=True)
    (profile / "user.js").write_text(_FIREFOX)
    size = ["--width", str(_PLACE[2]), "--height", str(_PLACE[3])]
    return [name, "--no-remote", "--profile", str(profile), *size, f"file://{scratch / 'table.html'}"]


def _calc(scratch: Path) -> Sequence[str]:
    scenes.need("soffice", "libreoffice-calc libreoffice-gtk3")
    profile = f"-env:UserInstallation=file://{scratch / 'office'}"
    return ["soffice", profile, "--norestore", "--nologo", "--nofirststartwizard", "--calc"]


APPLICATIONS = (
    Application("mousepad", "mousepad (GTK 3)", _program("mousepad", "mousepad"), "menuitem", "Edit"),
    Application("gtk4-demo", "gtk4-demo (GTK 4)", _program("gtk4-demo", "gtk-4-examples"), "button", "Expand"),
    Application("featherpad", "featherpad (Qt 5)", _program("featherpad", "featherpad"), "menuitem", "Edit"),
    Application("qt6", "a window of PyQt6", _qt6, "checkbox", "Check"),
    Application("swing", "a window of Swing", _swing, "checkbox", "Check"),
    Application("chromium", "Chromium, 2,000 links in a table", _chromium, "checkbox", "Check"),
    Application("firefox", "Firefox, the same page", _firefox, "checkbox", "Check"),
    Application("calc", "LibreOffice Calc", _calc, "menuitem", "Edit"),
)
