"""A stage of Qt 5."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from actor import SIZE, Actor
from PyQt5.QtCore import QRect, Qt, QTimer, pyqtSignal
from PyQt5.QtGui import QColor, QPainter, QPaintEvent
from PyQt5.QtWidgets import QApplication, QWidget

if TYPE_CHECKING:
    from collections.abc import Callable


class Stage(QWidget):
    called = pyqtSignal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("zoo")
        self.resize(*SIZE)
        self._painted: dict[tuple[int, int, int, int], int] = {}
        self.called.connect(lambda do: QTimer.singleShot(0, do))
        self.show()
        self.actor = Actor(self)

    def call(self, do: Callable[[], object]) -> None:
        self.called.emit(do)

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        QTimer.singleShot(round(seconds * 1000), do)

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        self._painted[rect] = colour
        self.repaint(*rect)
        self.actor.drawn()

    def point(self, *, busy: bool) -> None:
        self.setCursor(Qt.WaitCursor if busy else Qt.ArrowCursor)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 # Qt's name
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(0x202020))
        for rect, colour in self._painted.items():
            if event.rect().intersects(QRect(*rect)):
                painter.fillRect(*rect, QColor(colour))

    def keyPressEvent(self, _: object) -> None:  # noqa: N802
        self.actor.input()

    def mousePressEvent(self, _: object) -> None:  # noqa: N802
        self.actor.input()


app = QApplication(sys.argv)
stage = Stage()
sys.exit(app.exec())
