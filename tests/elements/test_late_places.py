"""Places that an application tells late, as promised on a machine that has a processor for it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from deskhand import ActionError, DeskhandTimeout, LeftClick, Scroll
from elements.test_applications import PATIENCE, page, says
from integration.apps import chromium_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop


def test_a_link_is_clicked_where_the_wheel_has_brought_it(launch: Callable[..., Desktop], tmp_path: Path) -> None:
    """Chromium tells the places of before for some time after a turn, and the click comes at once."""
    desktop = launch(size=(1000, 700))
    desktop.start(chromium_command(page(tmp_path / "page.html"), tmp_path / "profile"), timeout=PATIENCE)
    desktop.find("link", "link 0-0", exact=True).wait_for("visible", timeout=PATIENCE)
    choice = random.Random(3)
    told: list[str] = []
    for number in range(200):
        seen = desktop.elements()
        document = next(element for element in seen if element.native_role == "document-web")
        links = [
            element for element in seen if element.role == "link" and element.point and 300 < element.point.y < 400
        ]
        link = choice.choice(links)
        # Two notches are 240 pixels, and what is in the middle stays in sight.
        turn = Scroll(element=document.ref, direction="up" if number % 4 == 3 else "down", magnitude=2)
        try:
            if number % 2:
                desktop.perform(turn, settle=False)
                desktop.perform(LeftClick(element=link.ref))
            else:
                desktop.perform(turn, LeftClick(element=link.ref))
        except (ActionError, DeskhandTimeout) as error:
            told.append(str(error))
            continue
        wanted = f"at #{link.name.removeprefix('link ')}"
        assert says(desktop, wanted), (number, wanted, [window.title for window in desktop.windows.list()])
    print(f"{len(told)} of 200 told: {told[:3]}")
