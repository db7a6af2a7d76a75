"""The copy of a desktop's screen that viewers share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from deskhand.watch.mirror import Mirror
from faults.helpers import until

if TYPE_CHECKING:
    import deskhand


def test_an_earlier_thread_that_ends_late_leaves_the_later_ones_connection(desktop: deskhand.Desktop) -> None:
    reached, goes_on = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def changed() -> None:
        threads.append(threading.current_thread())
        if threads[0] is threads[-1]:
            reached.set()
            goes_on.wait(60)

    mirror = Mirror(desktop, changed)
    mirror.start()
    try:
        assert reached.wait(60)
        mirror.stop()
        mirror.start()
        until(lambda: len(set(threads)) == 2, 20, "the second thread to copy")
        assert mirror.windows() is not None
        goes_on.set()
        threads[0].join(60)
        assert mirror.windows() is not None
    finally:
        goes_on.set()
        mirror.stop(wait=True)
    assert mirror.windows() is None
