"""A part that runs in a thread of its own is ended, and nothing else is."""

from __future__ import annotations

import threading

from deskhand.episodes.play.supervision import Ended, SupervisedThread

LIMIT = 60.0


def test_what_has_ended_meanwhile_takes_nobody_along() -> None:
    """The kernel gives a thread the number of one that has ended: it must not hear what was meant for that one."""
    for _ in range(100):
        thread = SupervisedThread(lambda: None, "short")
        thread._thread.join(LIMIT)
        go_on, heard = threading.Event(), list[BaseException]()
        other = threading.Thread(target=_waits, args=(go_on, heard), daemon=True)
        other.start()
        same = other.ident == thread._thread.ident
        if same:
            thread._raise_inside()
        go_on.set()
        other.join(LIMIT)
        assert heard == []
        if same:
            return
    raise AssertionError("no thread got the number of another")


def _waits(go_on: threading.Event, heard: list[BaseException]) -> None:
    try:
        while not go_on.wait(0.001):
            pass
        for _ in range(100):
            pass
    except Ended as error:
        heard.append(error)


def test_a_part_that_hears_it_at_its_very_end_is_over() -> None:
    """`Ended` may come when all is done but for saying so, and again while that is being said."""

    class Late(SupervisedThread):
        asked = 0

        def _end(self) -> None:
            self.asked += 1
            if self.asked <= 3:
                raise Ended
            super()._end()

    thread = Late(lambda: 7, "late")
    thread._thread.join(LIMIT)
    assert (thread.over, thread.value) == (True, 7)
