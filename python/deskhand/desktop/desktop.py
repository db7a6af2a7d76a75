"""`Desktop`: the public object of a desktop. Every operation goes through its gate to the core.

This module owns the public methods and the name of each in a policy and a log. It has no X request, no rule of
settling and no rule of what is allowed.
"""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from deskhand._core.arguments import (
    expect,
    expect_callable,
    expect_flag,
    expect_region,
    expect_seconds,
    expect_size,
)
from deskhand._core.formats import check_format
from deskhand._core.geometry import Size
from deskhand._core.sizes import picture_size
from deskhand.desktop.clipboard import Clipboard
from deskhand.desktop.connection import NO_MACHINE
from deskhand.desktop.control import Control, ask_for_help
from deskhand.desktop.handle import Handle
from deskhand.desktop.health import examine_desktop
from deskhand.desktop.machine_view import Host, Machine
from deskhand.desktop.operations import Operation
from deskhand.desktop.performed_elements import open_elements
from deskhand.desktop.performing import UNTIL_TIMEOUT, Performance, plain_actions, settings_of
from deskhand.desktop.programs import start_program
from deskhand.desktop.window_list import Windows
from deskhand.errors import UnsupportedAction
from deskhand.machine.program_arguments import check_timeout, program_directory, program_variables, program_words

if TYPE_CHECKING:
    import os
    import re
    from collections.abc import Callable, Mapping, Sequence

    from deskhand._core.elements import Elements
    from deskhand._core.formats import Format
    from deskhand._core.health import Health
    from deskhand._core.observation import Observation, Screenshot
    from deskhand._core.settle import Settle
    from deskhand._core.sizes import PictureSize
    from deskhand.actions import Action, CarriesAction
    from deskhand.desktop.help_requests import HelpRequest
    from deskhand.desktop.locator import Locator
    from deskhand.machine.program import Program

_T = TypeVar("_T")

# The largest that the 16 bits of X11 and RFB allow.
_LONGEST_SIDE = 65_535


class Desktop(Handle):
    """A desktop to act on and look at. Make one with `deskhand.launch` or `deskhand.connect`.

    Calls from several threads take turns. Leaving a `with` block closes it. How it is made, named, stopped and closed is in
    `Handle`.

    Example:
        >>> with deskhand.launch() as desktop:
        ...     desktop.start("mousepad")
        ...     seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))
    """

    # --- its parts ---

    @property
    def clipboard(self) -> Clipboard:
        """The clipboard."""
        return Clipboard(self._view)

    @property
    def windows(self) -> Windows:
        """The windows."""
        return Windows(self._view)

    @property
    def machine(self) -> Machine:
        """The container that the desktop is in: commands, files, logs.

        Raises:
            UnsupportedAction: It has none.
        """
        core = self._core
        if core.inside is None:
            raise UnsupportedAction(core.backend.name, "desktop.machine", NO_MACHINE)
        return Machine(self._view, core.inside)

    @property
    def host(self) -> Host:
        """This machine, as the user who runs this process: commands that are not confined."""
        return Host(self._view)

    @property
    def control(self) -> Control[Self]:
        """Who has control: a person may take it, pause the agent, and let it make one step."""
        return Control(self._view)

    # --- acting and looking ---

    def perform(
        self,
        *actions: Action | CarriesAction,
        settle: Settle | bool = True,
        size: PictureSize | None = None,
        format: Format = "png",
        quality: int = 80,
        elements: bool = False,
        until: Locator | Callable[[Observation], object] | Literal[True] = True,
        timeout: float = UNTIL_TIMEOUT,
    ) -> Observation:
        """Carry out actions in order and return what the screen answered.

        All actions are checked before anything is sent. Between two of them the screen gets the time to answer, so that a
        text goes to the dialog that the click before it opened. Presses and releases of keys and buttons follow one another at
        once. A `Move`, and each part of a drag, is followed when the application has taken it, regardless of `settle`.

        Args:
            actions: What to do, or tool calls with actions (`deskhand.execution.tool_calls`); none at all only waits for the
                screen and looks.
            settle: How to wait for the screen between actions and at the end; False does not wait.
            size: How large the picture is: (width, height) in pixels, a factor, a `Fit`, or the name of a model with
                published limits; by default as large as the screen (or the zoomed region).
            format: What its bytes are: `png`, `indexed`, `jpeg`, `webp` or `raw`; see `deskhand._core.formats.Format`.
            quality: 1...100, for `jpeg` and `webp`.
            elements: Whether the observation has the elements too (`Desktop.elements`), read when the screen has settled. That
                takes 2 s at most where applications do not answer. For a policy it is the operation `elements` before this one.
            until: What has to hold besides when the screen has settled: that an element shows (a locator), or that a function
                of the observation returns something true. It is asked when the screen has changed, and twice a second. Each
                look is a `perform` without actions of its own for a policy and in a record.
            timeout: Seconds to wait for `until` after the actions.

        Returns:
            One observation, taken when the screen had settled, or at the timeout (`settled=False`); with `until`, the one that
            it held for. What changed is counted from before the actions.

        Raises:
            ActionError: An action is wrong (`OutOfBounds`, `Untypable`, `UnsupportedAction`...), or the desktop has no elements
                and they are asked for. Nothing was sent.
            InputBlocked: An action was sent and did not reach its window: no window has the keyboard focus, or
                another program has grabbed the keyboard or the pointer.
            OutOfBounds: Also when the screen became smaller during the call, so that a point is not on it any more: that
                action was not sent, those before it (`error.done`) were.
            ServerSilent: An X server answered nothing for `Settle.timeout` before the input or during it. That action was
                done in part or not at all; those after it were not done.
            DesktopLost: The other side is gone. A VNC server that does not answer is given up after 10 s, which may take
                several calls: each returns at its timeout until then, `settled=False`.
            Reconnected: The connection broke and was made anew. The action under way may have been done or not.
            BackendError: The other side refused something. Whatever was pressed has been released.
            DeskhandTimeout: The application did not take a text to paste. The clipboard has its old content; a note on the
                error names what is missing. Or `until` did not hold in time, after the actions.
        """
        settings = settings_of(settle)
        check_format(format, quality)
        picture_size(size, self.size)
        plain = plain_actions(actions)
        # The hot path has no call more.
        condition = None
        if until is not True or timeout != UNTIL_TIMEOUT:
            from deskhand.desktop.until import Condition  # noqa: PLC0415 # as in `find`

            condition = Condition(self._core, until, timeout)
        if elements is not False and expect_flag("perform: elements", elements):
            self._view.operate_before(lambda: self._view.operation("elements"), partial(open_elements, self._core))
        performance = Performance(
            self._core, plain, settings, size=size, format=format, quality=quality, elements=elements
        )
        seen = self._view.operate(lambda: self._view.operation("perform", actions=plain), performance.carry_out)
        return seen if condition is None else condition.wait(seen, performance, self.release, self._view)

    def screenshot(
        self,
        size: PictureSize | None = None,
        region: tuple[int, int, int, int] | None = None,
        *,
        cursor: bool = True,
        format: Format = "png",
        quality: int = 80,
    ) -> Screenshot:
        """Look, without waiting for anything.

        Args:
            size: How large the picture is: (width, height) in pixels, a factor, a `Fit`, or the name of a model with
                published limits; by default as large as what it shows.
            region: The part of the screen to show: x, y, width, height.
            cursor: Whether the pointer's image is in the picture.
            format: What its bytes are: `png`, `indexed`, `jpeg`, `webp` or `raw`; see `deskhand._core.formats.Format`.
            quality: 1...100, for `jpeg` and `webp`.

        Raises:
            OutOfBounds: The region is not on the screen.
            ActionError: There is no such size, format or quality.
            ImagingError: The size is not possible.
            DesktopLost: The other side is gone.
        """
        check_format(format, quality)
        expect_flag("screenshot: cursor", cursor)
        region = None if region is None else expect_region("screenshot: region", region)
        core = self._core

        def look() -> Screenshot:
            with core.turn():
                core.look()
                return core.watch.picture(size, region, cursor=cursor, format=format, quality=quality)

        return self._view.operate(lambda: self._view.operation("screenshot"), look)

    def elements(self, *, ocr: bool = False, timeout: float = 2.0) -> Elements:
        """The elements that applications show: windows, buttons, texts... as a tree (AT-SPI).

        The tree is kept current by the events of applications, and read again where the screen changed: unchanged it comes at
        once. An application that does not answer is named in `Elements.left_out`, and is not waited for again until it does.

        Args:
            ocr: Also texts that are read from pixels where applications do not say what they show: their windows, or all of the
                screen. Each has the role `text`, the source `ocr` and a reference such as `t12`. Only what has changed since
                the last reading is read again, however long that takes.
            timeout: Seconds to wait for applications.

        Raises:
            UnsupportedAction: There is no bus to ask: over VNC, on another user's display, or because at-spi2-core is not
                installed, here or in a container's image. Not with `ocr`.
            MissingExtra: The library for `ocr` is not installed.
            BackendError: The accessibility bus has gone, or refuses; or the library failed.
        """
        expect_flag("elements: ocr", ocr)
        expect_seconds("elements: timeout", timeout)
        core = self._core

        def read() -> Elements:
            with core.turn():
                return core.elements.read(timeout, ocr=ocr)

        return self._view.operate(lambda: self._view.operation("elements"), read)

    def find(
        self,
        role: str | None = None,
        name: str | re.Pattern[str] | None = None,
        *,
        label: str | re.Pattern[str] | None = None,
        exact: bool = False,
        text: str | re.Pattern[str] | None = None,
        states: Sequence[str] = (),
        nth: int | None = None,
        ocr: bool = False,
    ) -> Locator:
        """An element, by what it is: `desktop.find("button", "Save").click()`. The search begins when it is used.

        Args:
            role: ARIA's word (`button`, `textbox`, `menuitem`, `dialog`...), or AT-SPI's name of the role.
            name: A part of its name, in any case, or a pattern that is found in the name.
            label: The same for the label of a field: its name, or, if no field has that name, the text left of or above it.
            exact: `name`, `label` and `text` are the whole, with its case; the number of spaces makes no difference.
            text: The same for the text in it.
            states: AT-SPI's names of states, all of which are set, such as `checked`.
            nth: Which of those that match, from 0, or from the end below 0. By default there must be only one.
            ocr: Also among texts that are read from pixels, as by `elements(ocr=True)`.

        Raises:
            ActionError: An argument is impossible.
        """
        # A program that only clicks and types need not import it.
        from deskhand.desktop.locator import Locator  # noqa: PLC0415
        from deskhand.desktop.search import Search, make_query  # noqa: PLC0415

        expect_flag("find: ocr", ocr)
        query = make_query(role, name, label=label, exact=exact, text=text, states=states, nth=nth)
        return Locator(Search(self._view, (query,), ocr=ocr), self.perform)

    # --- programs, the screen ---

    def start(
        self,
        command: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
    ) -> Program:
        """Start a program and return when its window is up and drawn.

        Args:
            command: A command line (split as a shell would, but no shell runs), its words, or a program's path.
            env: Added to the desktop's environment.
            cwd: Where it starts.
            timeout: Seconds to wait for its window.

        Raises:
            ShellError: It could not be started.
            LaunchFailed: It ended, or showed no window in time; carries the tail of its output.
            UnsupportedAction: This desktop is on another machine, or opened to look only.
        """
        # The words that were judged are started, even if the caller changes its list meanwhile.
        argv = program_words("start", command)
        line = command if isinstance(command, str) else shlex.join(argv)
        variables, place = program_variables("start", env), program_directory("start", cwd)
        check_timeout("start", timeout)
        core = self._core

        def start() -> Program:
            with core.turn():
                core.refuse_input("start")
                environment = {**core.environment, **variables}
                return start_program(
                    core.backend,
                    core.watch,
                    core.programs.for_programs(),
                    argv,
                    env=environment,
                    cwd=place,
                    timeout=timeout,
                    poll=core.exit_status,
                )

        return self._view.operate(
            lambda: self._view.operation("start", line, cwd=place, env=tuple(variables.items())), start
        )

    def resize(self, size: tuple[int, int]) -> None:
        """Change the size of the screen, where the server can.

        Raises:
            BackendError: It cannot, or not to this size.
            ActionError: A side is not 1 to 65,535 pixels long.
        """
        width, height = expect_size("resize: size", size, _LONGEST_SIDE)
        core = self._core

        def resize() -> None:
            with core.turn():
                core.refuse_input("resize")
                core.backend.resize(Size(width, height))

        self._view.operate(lambda: self._view.operation("resize", f"{width}x{height}"), resize)

    def health(self, *, timeout: float = 1.0) -> Health:
        """Ask whether the desktop is started, live and ready; `health.ok`, or what is wrong.

        Over X11 this takes 0.4 ms, over VNC a round trip or two. To see that input arrives, it moves the pointer by a pixel and
        back (not while something is held). A VNC server does not report the pointer: it is enough that it took a message
        and answered afterwards, and nothing is sent before this driver has moved the pointer for the first time.

        Args:
            timeout: Seconds for all answers together. (A VNC server that hangs up is connected to again, which may
                take longer.)

        Raises:
            Closed: This object is closed.
        """
        check_timeout("probe", timeout)
        core = self._core

        def examine() -> Health:
            with core.turn(shows=False):
                return examine_desktop(core, timeout)

        return self._view.operate(lambda: self._view.operation("probe"), examine)

    # --- for those who act for a model ---

    def operate(self, operation: Operation, work: Callable[[], _T]) -> _T:
        """Do something that is not a method of the desktop, such as `Operation("navigate", url)`, if it is allowed.

        What `work` does on this desktop is a part of it, which a `Guard` does not judge again.

        Args:
            operation: What it is. Its `call` and `desktop` are filled in.
            work: A function that does it.

        Raises:
            PolicyDenied: It is not allowed.
        """
        expect("operate: operation", operation, Operation)
        expect_callable("operate: work", work)
        self._core.refuse_if_closed()
        fields = {name: getattr(operation, name) for name in ("target", "size", "cwd", "env", "actions", "data")}
        return self._view.operate(lambda: self._view.operation(operation.type, **fields), work)

    def hand_over(self, reason: str) -> HelpRequest:
        """Ask a person for help, and go on: the request waits in `control.requests` until a person answers it.

        It ends when a person takes control and hands it back, or declines. The agent's next observation says which, with the
        person's note (`Observation.notes`). A request with the same reason that is still pending is not made twice.

        Args:
            reason: What help is needed for. A person reads it on one line, without control characters, cut at 2,000.

        Raises:
            ActionError: The reason is empty, or 16 requests are pending.
            PolicyDenied: A policy forbids to look, and with that to ask.
        """
        return ask_for_help(self._view, reason)
