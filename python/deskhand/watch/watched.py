"""One desktop as its viewers share it: its picture, its operations, who has control, and what waits for a person.

This module owns the state that viewers get, and the hold of the viewer who has control. What a viewer may ask for is decided
in `viewer.py`.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import one_line
from deskhand.desktop.access import core_of, keep, latest, take_out
from deskhand.errors import ActionError, DeskhandError
from deskhand.policy.questions import PERSON
from deskhand.watch.mirror import Mirror, thumbnail
from deskhand.watch.operation_list import Denials, Operations
from deskhand.watch.person_input import PersonInput
from deskhand.watch.pointing import Pointing

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.help_requests import HelpRequest
    from deskhand.desktop.operations import Holder
    from deskhand.policy.questions import Question, Questions
    from deskhand.watch.transfers import Upload

_LONGEST = 2000
# As a policy names desktops.
_LONGEST_NAME = 300
_MOST_WAITING = 16
# An operation begins, and the one before it has ended, just when its input is sent: viewers are told of both a little later, in
# seconds, so that making the messages does not delay it.
_AFTER_INPUT = 0.015


class Watched:
    """A desktop that is served to viewers. Any thread may call its methods; those that act on the desktop take time."""

    def __init__(self, name: str, desktop: Desktop, *, agent: bool, questions: Questions | None = None) -> None:
        """Serve a desktop.

        Args:
            name: How viewers read it.
            desktop: The desktop.
            agent: Whether its agent acts through it in this process, so that it can be paused. If not, only operations of
                viewers are known.
            questions: The pending questions of its policy; None where there are none.
        """
        self.name: str = one_line(name, 100)
        self.desktop: Desktop = desktop
        self.agent: bool = agent
        self.questions: Questions | None = questions
        self.operations: Operations = Operations(lambda: self._notify(_AFTER_INPUT))
        self.mirror: Mirror = Mirror(desktop, self._notify)
        self.pointing: Pointing = Pointing(desktop, self.mirror)
        self.input: PersonInput | None = None
        # Whether it is shown no more, though the server goes on.
        self.ended: bool = False
        # The latest upload. No other is accepted until it has ended, so that only one is in memory.
        self._upload: Upload | None = None
        self._listeners: dict[object, Callable[[float], None]] = {}
        self._lock = threading.Lock()
        # Beginning a hold may take seconds. Viewers who only watch do not wait for it.
        self._turn = threading.Lock()
        self._live = 0
        self._thumbnails = 0
        self._end_questions: Callable[[], None] | None = None
        self._denials = Denials(self.operations)
        keep(desktop, self.operations)
        # A policy comes before that list, which therefore does not get what the policy denies.
        keep(desktop, self._denials, first=True)
        if questions is not None:
            self._end_questions = questions.listen(lambda _: self._notify())

    def last(self, *, pictured: bool) -> tuple[dict[str, Any], bytes]:
        """What a grid shows of it after its end: its state and, if `pictured`, a thumbnail (PNG). Of a private hold neither."""
        hidden = self.hidden_from(None)
        picture = b""
        if pictured and not hidden:
            with contextlib.suppress(DeskhandError):
                # The copy for viewers may be half a second old, or was not kept.
                picture = thumbnail(core_of(latest(self.desktop)).backend.screen)
        return {**self.summary(), "hidden": hidden}, picture

    def end(self) -> None:
        """Show it no more: its viewers are told, and its pages close."""
        with self._lock:
            self.ended = True
        self._notify()
        self.close()

    def close(self) -> None:
        """End what belongs to viewers. The desktop stays."""
        take_out(self.desktop, self.operations, self._denials)
        self.release(None, "")
        if self._end_questions is not None:
            self._end_questions()
        self.pointing.rest()
        self.mirror.stop(wait=True)

    # --- viewers ---

    def enter(self, viewer: object, changed: Callable[[float], None], *, thumbnails: bool = False) -> None:
        """Add a viewer; the picture is kept current from now on, if the desktop has not `ended`.

        Args:
            viewer: Who it is.
            changed: Called in any thread when there is something new, with the seconds after which to tell it.
            thumbnails: The viewer only shows thumbnails.
        """
        with self._lock:
            if self.ended:
                return
            self._listeners[viewer] = changed
            self._live += not thumbnails
            self._thumbnails += thumbnails
            self.mirror.start(thumbnails=not self._live)

    def leave(self, viewer: object, *, thumbnails: bool = False) -> None:
        """Take a viewer out; the last one ends the copying. From now on it gets no control; what it has is not `release`d."""
        with self._lock:
            if self._listeners.pop(viewer, None) is None:
                return
            self._live -= not thumbnails
            self._thumbnails -= thumbnails
            if not self._live:
                self.pointing.rest()
            if not self._live and not self._thumbnails:
                self.mirror.stop()
            elif not self._live:
                self.mirror.start(thumbnails=True)
        self._notify()

    def _notify(self, after: float = 0.0) -> None:
        for changed in tuple(self._listeners.values()):
            changed(after)

    # --- what viewers get ---

    def hidden_from(self, viewer: object) -> bool:
        """Whether someone else has taken control privately."""
        holder = self._holder()
        return holder is not None and holder.private and not self.has_control(viewer)

    def has_control(self, viewer: object) -> bool:
        """Whether this viewer has control."""
        person_input = self.input
        return person_input is not None and person_input.viewer is viewer and person_input.active

    def _holder(self) -> Holder | None:
        try:
            return latest(self.desktop).control.holder
        except DeskhandError:
            return None

    def state(self, viewer: object) -> dict[str, Any]:
        """The state of the desktop for a viewer, beside its picture and its operations."""
        desktop = latest(self.desktop)
        state: dict[str, Any] = {
            "name": self.name,
            "size": list(self.mirror.size),
            "loss": one_line(self.mirror.loss, _LONGEST),
            "agent": self.agent,
            "controllable": not core_of(desktop).view_only,
            "viewers": self._live,
            "stopped": core_of(desktop).stopped is not None,
            "holder": None,
            "paused": None,
            "waiting": [],
            "requests": [],
            "questions": [_question(each) for each in self._pending()],
        }
        if desktop.closed:
            return state
        with contextlib.suppress(DeskhandError):
            control = desktop.control
            if (holder := control.holder) is not None:
                state["holder"] = {
                    "by": holder.by,
                    "since": holder.since,
                    "private": holder.private,
                    "mine": self.has_control(viewer),
                }
            if (pause := control.paused) is not None:
                state["paused"] = {"by": pause.by, "since": pause.since}
                state["waiting"] = [
                    one_line(f"{each.type.replace('_', ' ')} {each.target}".strip(), 200)
                    for each in control.waiting[:_MOST_WAITING]
                ]
            state["requests"] = [_request(request) for request in control.requests]
        return state

    def summary(self) -> dict[str, Any]:
        """The desktop in a grid."""
        row = None if self.hidden_from(None) else self.operations.latest
        state = self.state(None)
        return {
            **{name: state[name] for name in ("name", "size", "loss", "stopped", "holder", "paused")},
            "asks": len(state["requests"]) + len(state["questions"]),
            "latest": None if row is None else {"title": row["title"], "state": row["state"], "at": row["at"]},
        }

    # --- control ---

    def take(
        self,
        viewer: object,
        by: str,
        *,
        failed: Callable[[str], None],
        copied: Callable[[str, bytes], None],
        private: bool,
        force: bool,
    ) -> None:
        """Give a viewer control.

        Args:
            viewer: Who gets it.
            by: The viewer's name.
            failed: Called, in any thread, with what could not be done later.
            copied: Called, in any thread, with the clipboard's text or picture where it was asked for.
            private: The desktop is hidden from all others meanwhile.
            force: Take it from the present holder.

        Raises:
            ActionError: The viewer has left.
            DeskhandError: See `Control.take`.
        """
        with self._turn:
            if self.has_control(viewer):
                return
            if viewer not in self._listeners:
                raise ActionError("the page that was to get control was closed")
            hold = latest(self.desktop).control.take(by, private=private, force=force)
            former, self.input = self.input, PersonInput(viewer, hold, failed, self._notify, copied=copied)
        if former is not None:
            former.end("")
        self.pointing.forget()
        self._notify()

    def release(self, viewer: object | None, note: str, *, whole: bool = False) -> None:
        """Hand the desktop back for a viewer, or (None) for the one who has control; `whole`: see `PersonInput.end`."""
        with self._turn:
            person_input = self.input
            if person_input is None or (viewer is not None and person_input.viewer is not viewer):
                return
            self.input = None
        person_input.end(note, whole=whole)
        self.pointing.forget()
        self._notify()

    def give(self, viewer: object, message: dict[str, Any]) -> None:
        """Pass on input of a viewer who has control.

        Raises:
            ActionError: The viewer has not.
        """
        self._input_of(viewer).put(message)

    def receive(self, viewer: object, upload: Upload) -> None:
        """Let a viewer who has control send a file or a picture; a failure is reported in `upload`."""
        try:
            person_input = self._input_of(viewer)
            if self._upload is not None and not self._upload.over:
                raise ActionError("the last file is not on the desktop yet: wait until it is")
            person_input.receive(upload)
            self._upload = upload
        except DeskhandError as error:
            upload.end(error=one_line(str(error), 500))

    def received(self, viewer: object, upload: Upload, *, whole: bool) -> None:
        """A part of it has come; the `whole` of it is put on the desktop."""
        try:
            person_input = self._input_of(viewer)
            person_input.touch()
            if whole:
                person_input.put_upload(upload)
        except ActionError as error:
            upload.drop(str(error))

    def _input_of(self, viewer: object) -> PersonInput:
        person_input = self.input
        if person_input is None or person_input.viewer is not viewer or not person_input.active:
            raise ActionError("you do not have control of this desktop: take it first")
        return person_input

    def answer(self, number: int, by: str, *, allow: bool, for_session: bool) -> None:
        """Answer a question of the policy.

        Raises:
            ActionError: It does not wait any more, or cannot be answered like this.
        """
        if self.questions is None:
            raise ActionError(
                "this desktop has no questions: give Questions() as ask= to deskhand.launch, and to the server"
            )
        if all(each.id != number for each in self._pending()):
            raise ActionError("this question is no longer open")
        self.questions.answer(number, allow=allow, for_session=for_session, by=by)

    def _pending(self) -> list[Question]:
        """The questions about this desktop: several may share one `Questions`."""
        desktop = latest(self.desktop)
        name = one_line(desktop.name or desktop.display or "", _LONGEST_NAME)
        return [] if self.questions is None else [each for each in self.questions.pending if each.desktop == name]

    def steer(self, kind: str, by: str, message: dict[str, Any]) -> None:
        """Pause, let one step through, resume, stop, or decline a request for help."""
        desktop = latest(self.desktop)
        if not self.agent:
            raise ActionError(
                "the agent of this desktop runs in another process: it cannot be paused or stopped from here"
            )
        match kind:
            case "pause":
                desktop.control.pause(by)
            case "step":
                desktop.control.step()
            case "resume":
                desktop.control.resume()
            case "stop":
                desktop.stop(f"{by} stopped it")
            case _:
                desktop.control.decline(message["id"], by, message["note"])
        self._notify()


def _request(request: HelpRequest) -> dict[str, Any]:
    return {"id": request.id, "reason": request.reason, "since": request.since}


def _question(question: Question) -> dict[str, Any]:
    person = dict(question.details).get(PERSON, "")
    return {
        "id": question.id,
        "class": str(question.action_class),
        "details": [list(detail) for detail in question.details],
        "desktop": one_line(question.desktop, 200),
        "asks": one_line(person or question.agent or question.provider, 200),
        "window": None if question.window is None else one_line(question.window, 300),
        "until": question.until,
        "repeatable": question.repeatable,
    }
