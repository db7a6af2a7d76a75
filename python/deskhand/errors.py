"""All errors of this package, as one tree.

::

    DeskhandError
    ├── ActionError                the caller's action is wrong; nothing of it was sent, except for InputBlocked
    │   ├── BadPlan                calls that cannot be carried out as they are; carries their ids
    │   ├── UnsupportedAction      names the provider or backend and the action
    │   ├── OutOfBounds            carries the point and the size
    │   ├── Untypable              carries the characters and their positions
    │   └── InputBlocked           it was sent, and did not reach its window; carries the device and what holds it
    ├── BackendError               the other side is wrong or gone
    │   ├── ConnectFailed          carries the target, the reason and the next step to try
    │   ├── AuthFailed             the server refused the credentials; carries the same
    │   ├── ProtocolViolation      malformed server data; the connection is closed
    │   ├── ServerSilent           it has not answered for as long as the call may take, a DeskhandTimeout; nothing is lost
    │   ├── Closed                 a desktop, shell or pool that was closed, or given back, does nothing any more
    │   ├── DesktopLost            carries the cause (x_server, container, oom, network, ...)
    │   └── Reconnected            the connection broke and was made anew; what was under way may have been done or not
    ├── LaunchFailed               what was awaited, how long, and the tail of the log
    ├── ImagingError               a frame could not be encoded, decoded or scaled
    ├── PolicyDenied               the action is valid, and not allowed here
    ├── DesktopHeld                a person has control of the desktop; carries who, and since when
    ├── DeskhandTimeout            what was waited for did not come in time; a TimeoutError too
    │   └── PoolExhausted          no desktop of a pool was free
    ├── ExpectationFailed          an element is not as a test expects; an AssertionError too
    ├── FileError                  a file could not be opened, read or written; an OSError too
    ├── MissingExtra               an optional package is not installed; an ImportError too
    ├── EpisodeError               a run of episodes cannot be begun, gone on with or read
    │   ├── TaskError              a task is wrong; carries its name
    │   ├── LedgerError            the ledger is wrong, of another version, or gone
    │   │   └── RecordFull         an attempt has recorded more than is allowed
    └── ShellError                 could not start; a non-zero exit is a result

This module owns the classes and the wording of their messages. It imports nothing of the project and does no
I/O, so that every other module may import it. What must never appear here: a retry, a log call, a decision
about what an error means to a provider, or a secret (a password, typed text) in a message.

No other error leaves a public call, except for Python's own: a `TypeError` for a call that Python cannot make, a `KeyError` of
a mapping, and what a function of the caller's raises. A call that `Desktop.interrupt` ends raises `deskhand.Interrupted`, which
like `KeyboardInterrupt` is not an `Exception`. A wait that is over is a `DeskhandTimeout`, except for a connection
(`ConnectFailed`) and a start (`LaunchFailed`), which have then failed for good.

An argument of a wrong type or value is an `ActionError` (`deskhand._core.arguments` has the checks); a `TypeError` says only
that Python could not make the call. A message says what happened, where, and what to do next. Every error pickles and copies
with its attributes, because episodes send errors between processes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SHOWN_CHARACTERS = 10
_SHOWN_LENGTH = 80
_LONGEST_WORD = 60


def shown(value: object) -> str:
    """A caller's value as a message shows it: its repr, cut, since models send values of any length."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out integers of more than 4300 digits.
        return f"a {type(value).__name__} of very many digits"
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def _restore(cls: type[DeskhandError], args: tuple[object, ...], state: dict[str, object]) -> DeskhandError:
    error = cls.__new__(cls, *args)
    # A TimeoutError has OSError's `__new__`, which leaves the attributes to `__init__`.
    error.args = args
    for name, value in state.items():
        setattr(error, name, value)
    return error


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """At most three of the known words that a misspelt one may mean, the nearest first."""
    import difflib  # noqa: PLC0415 # it takes 5 ms to import, and only a mistake needs it

    return difflib.get_close_matches(word[:_LONGEST_WORD], list(known), n=3, cutoff=cutoff)


class DeskhandError(Exception):
    """The root of all errors raised by this package.

    What to do: Read the message: it says what to do next. Catch a class below it where one kind of error is expected.

    Attributes:
        message: What happened, without the progress that ``str()`` adds.
        index: Which action of the performed list failed, counted from 0; None when no list was being performed.
        doing: The ``type`` of that action, None likewise.
        done: How many actions of the list had been carried out before, None likewise. It is less than
            ``index`` when a list is refused as a whole before anything is sent.
    """

    index: int | None = None
    doing: str | None = None
    done: int | None = None

    def __init__(self, message: str, hint: str = "") -> None:
        """Take the message.

        Args:
            message: What happened, and where.
            hint: What to do next, which is added to it.
        """
        self.message: str = f"{message}: {hint}" if hint else message
        super().__init__(self.message)

    def note_progress(self, index: int, action: str, done: int) -> Self:
        """Attach which action of a list failed; the first call wins, because outer layers know less.

        Args:
            index: Position of the failing action in the list, counted from 0.
            action: Its ``type``.
            done: How many actions of the list were carried out before the failure.

        Returns:
            This error, so that ``raise error.note_progress(...)`` reads well.
        """
        if self.index is None:
            self.index, self.doing, self.done = index, action, done
        return self

    def __str__(self) -> str:
        """The message, and the progress where one was noted."""
        if self.index is None:
            return self.message
        before = "nothing was done before it" if not self.done else f"{self.done} done before it"
        return f"{self.message} [in actions[{self.index}] ({self.doing}); {before}]"

    # BaseException's own version calls cls(*args) with the formatted message, which no subclass here accepts.
    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle by attributes."""
        return _restore, (type(self), self.args, dict(self.__dict__))


class ActionError(DeskhandError):
    """The caller's action is wrong; nothing of it was sent, except for `InputBlocked`.

    What to do: Correct the argument that the message names, and call again.
    """


class BadPlan(ActionError):
    """A batch of calls cannot be carried out as it is; none of it was.

    What to do: Correct the calls that `calls` names: ids that repeat, or calls that wait for each other.

    Attributes:
        calls: The ids of the calls concerned; for a circle, in its order.
    """

    def __init__(self, message: str, calls: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint)
        self.calls = calls


class UnsupportedAction(ActionError):
    """The action is well formed, but this provider or backend has no way to do it.

    What to do: Use another action, as the message says; docs/providers.md has a table of what each provider can say.

    Attributes:
        where: The provider or backend that refused.
        action: The ``type`` of the action, or the provider's own name for it.
    """

    def __init__(self, where: str, action: object, hint: str = "") -> None:
        super().__init__(f"{where} does not support the action {shown(action)}", hint)
        self.where = where
        self.action: str = action if isinstance(action, str) else shown(action)


class OutOfBounds(ActionError):
    """A point or region lies outside the space it was given for.

    What to do: Take coordinates from the latest screenshot, and scale them by its `viewport` if the picture was scaled.

    Attributes:
        point: The offending (x, y), as given.
        size: (width, height) of the space; valid are 0...width-1 and 0...height-1.
    """

    def __init__(self, point: tuple[float, float], size: tuple[int, int]) -> None:
        x, y = point
        width, height = size
        super().__init__(
            f"point ({shown(x)}, {shown(y)}) is outside of {width}x{height}: "
            f"x must be 0...{width - 1}, y 0...{height - 1}; take coordinates from the latest screenshot"
        )
        self.point: tuple[float, float] = (x, y)
        self.size: tuple[int, int] = (width, height)


class Untypable(ActionError):
    """Some characters of a text cannot be typed; none of the text was sent.

    What to do: Remove these characters, or use `Type(text, paste=True)`.

    Attributes:
        characters: (position in the text counted from 0, character) pairs, in order.
    """

    def __init__(self, characters: Iterable[tuple[int, str]], hint: str = "remove them, or use paste=True") -> None:
        self.characters: tuple[tuple[int, str], ...] = tuple(
            (position, character) for position, character in characters
        )
        shown = ", ".join(f"U+{ord(c):04X} at {position}" for position, c in self.characters[:_SHOWN_CHARACTERS])
        more = len(self.characters) - _SHOWN_CHARACTERS
        tail = f" and {more} more" if more > 0 else ""
        super().__init__(f"cannot type {shown}{tail}", hint)

    @classmethod
    def hidden(cls, count: int, hint: str = "type it in another way, or change the secret") -> Untypable:
        """The same for a secret: the message gives the number of characters, and neither which they are nor where.

        Args:
            count: How many.
            hint: What to do next.
        """
        error = cls((), hint)
        DeskhandError.__init__(error, f"cannot type {count} of the characters of a secret", hint)
        return error


class InputBlocked(ActionError):
    """Input was sent and did not reach its window; what did receive it has shown no reaction.

    What to do: Close the menu or dialog that has the device (Escape), unlock the screen, or click into a window.

    Attributes:
        device: "keyboard" or "pointer".
        holder: What has grabbed the device, such as "Dmenu (process 123)"; empty where that is not known, and where no
            window has the keyboard focus.
    """

    def __init__(self, device: str, holder: str = "", *, unfocused: bool = False) -> None:
        if unfocused:
            what = "no window has the keyboard focus, so no application received what was typed"
            hint = "click into a window, or activate one, and type again"
        else:
            who = f"another program, {shown(holder)}," if holder else "another program"
            what = f"{who} has grabbed the {device}, so the input did not reach the window that it was for"
            hint = "close its menu or dialog (Escape), unlock the screen, or end that program"
        super().__init__(what, hint)
        self.device = device
        self.holder = holder


class DeskhandTimeout(DeskhandError, TimeoutError):
    """What a call waited for did not come in time.

    What to do: Check that what is waited for can come, and give a longer `timeout`.
    """


class ExpectationFailed(DeskhandError, AssertionError):
    """What a test expects of an element did not come true in time.

    What to do: Compare what the message found with what the test expects.
    """


class FileError(DeskhandError, OSError):
    """A file could not be opened, read or written.

    What to do: Check the path and its permissions.

    Attributes:
        errno: The system's number of what was wrong.
        strerror: The same in words.
        filename: The file.
    """

    def __init__(self, what: str, filename: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(f"{what} {shown(filename)}: {reason}")
        self.errno: int | None = error.errno
        self.strerror: str | None = reason
        self.filename: str = filename

    # Python keeps an OSError's attributes beside its dictionary.
    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle these too."""
        restore, (kind, args, state) = super().__reduce__()
        own = {"errno": self.errno, "strerror": self.strerror, "filename": self.filename}
        return restore, (kind, args, {**vars(self), **own} if state else own)


@contextlib.contextmanager
def files_named(what: str, path: object) -> Iterator[None]:
    """Turn the system's errors about a file into `FileError`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, DeskhandError):
            raise
        raise FileError(what, str(path), error) from error


class MissingExtra(DeskhandError, ImportError):
    """An optional package is not installed; the message has the command that installs it.

    What to do: Run the command in the message.

    Attributes:
        package: What is missing.
        extra: The extra of deskhand that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed", f"pip install 'deskhand[{extra}]'")
        self.package = package
        self.extra = extra


class BackendError(DeskhandError):
    """The other side (an X server, a VNC server, a container) is wrong or gone.

    What to do: Look at `Desktop.health()`, and launch or connect again if it is gone.
    """


class _TargetError(BackendError):
    """The common part of ConnectFailed and AuthFailed."""

    _what = "failed at"

    def __init__(self, target: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{self._what} {target}: {reason}", hint)
        self.target = target
        self.reason = reason
        self.hint = hint


class ConnectFailed(_TargetError):
    """A connection could not be made.

    What to do: Check the target, and that it runs; `hint` has the next step, and `deskhand doctor -d TARGET` checks it.

    Attributes:
        target: The display or URL, without any password.
        reason: The message of the other side or of the system.
        hint: The next step to try; may be empty.
    """

    _what = "cannot connect to"


class AuthFailed(_TargetError):
    """The other side refused the credentials.

    What to do: Give the right credentials: `DESKHAND_VNC_PASSWORD` or `DESKHAND_VNC_PASSWORD_FILE`, or the cookie in
    `XAUTHORITY`.

    Attributes:
        target: The display or URL, without any password.
        reason: The message of the other side.
        hint: The next step to try; may be empty.
    """

    _what = "authentication refused by"


class ProtocolViolation(BackendError):
    """The server sent data that its protocol does not allow; the connection has been closed.

    What to do: Connect again; if it happens again, record it with `deskhand record` and report it.
    """


class ServerSilent(BackendError, DeskhandTimeout):
    """An X server has answered nothing for as long as the call may wait: another program has grabbed it, or it has stopped.

    It is a `DeskhandTimeout`: the same call may succeed when the other program has let go.

    The connection is as it was. Parts of the action under way, and the release of what it pressed, may still arrive later.

    What to do: Call again, or end the program that has grabbed the server.
    """


class Closed(BackendError):
    """This desktop, shell or pool was closed or given back, here or by another thread: this object does nothing any more.

    What to do: Launch, connect or acquire a new one, and check which code closes it.
    """


class DesktopLost(BackendError):
    """A desktop that worked is gone; no input is sent again.

    What to do: Launch or connect again; `cause` says whether memory, the network or the server was the reason.

    Attributes:
        cause: One word for programs: "x_server", "container", "oom", "network", "guard", "driver", ...
        detail: The same for people.
    """

    def __init__(self, cause: str, detail: str, hint: str = "launch or connect again") -> None:
        super().__init__(f"desktop lost ({cause}): {detail}", hint)
        self.cause = cause
        self.detail = detail


class Reconnected(BackendError):
    """The connection broke and was made anew: the desktop may be used, nothing is held any more.

    An action that was under way may have been done or not, and was not sent again; those after it were not sent. Look before
    going on: the size of the screen may be another too.

    What to do: Take a screenshot before going on: the action under way may have been done or not.

    Attributes:
        target: The display or URL, without any password.
        reason: What broke.
        epoch: The screen's epoch now.
    """

    def __init__(self, target: str, reason: str, epoch: int) -> None:
        super().__init__(
            f"the connection to {target} broke ({reason}) and was made anew; whether the action under way was done is unknown: "
            "look before going on"
        )
        self.target = target
        self.reason = reason
        self.epoch = epoch


class LaunchFailed(DeskhandError):
    """A desktop or a program in it did not come up.

    What to do: Read `log_tail`, and install what is missing: `deskhand doctor` names it.

    Attributes:
        awaited: What was waited for ("the X server", "a window of mousepad").
        seconds: How long the wait was; 0 if there was none.
        log_tail: The last lines of its output; may be empty.
    """

    def __init__(self, awaited: str, seconds: float, log_tail: str = "", hint: str = "") -> None:
        log = log_tail.strip()
        if seconds or log:
            waited = f" in {seconds:.3g} s" if seconds else ""
            failed = f"{awaited} did not come up{waited}" + (f": {hint}" if hint else "")
            super().__init__(
                failed + (f"\n--- last output ---\n{log_tail.rstrip()}" if log else " (it wrote no output)")
            )
        else:
            # Nothing was started.
            super().__init__(f"{awaited} is not available", hint)
        self.awaited = awaited
        self.seconds = seconds
        self.log_tail = log_tail


class ImagingError(DeskhandError):
    """A frame could not be encoded, decoded or scaled.

    What to do: Check the size and the format that were asked for.
    """


class PolicyDenied(DeskhandError):
    """The action is valid, and the policy of this desktop does not allow it.

    What to do: Do something else, wait for `retry_after` seconds if it is given, or change the policy.

    Attributes:
        action: What was refused.
        reason: The rule that refused it.
        retry_after: Seconds after which a rate limit will allow it; None where waiting does not help.
    """

    def __init__(self, action: str, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"the policy denies {action}: {reason}")
        self.action = action
        self.reason = reason
        self.retry_after = retry_after


class DesktopHeld(DeskhandError):
    """A person has control of the desktop (`Desktop.control`), and no one else may act meanwhile.

    What to do: Wait until the desktop is handed back, or look meanwhile unless the hold is private.

    Attributes:
        by: Who has it.
        since: The date and time at which the hold began.
        private: Whether others may not look either.
        under_way: Whether a call that was under way was broken off, so that a part of it may have been done.
    """

    def __init__(self, by: str, since: str, *, private: bool = False, under_way: bool = False) -> None:
        broken = "this call was broken off, and " if under_way else ""
        if private:
            what = "others may neither act nor look"
            hint = "wait until it is handed back, or do something without this desktop"
        else:
            what = "others may not act"
            hint = "wait until it is handed back, look at the screen meanwhile, or do something else"
        super().__init__(f"{broken}{by} has had control of this desktop since {since}: {what}", hint)
        self.by = by
        self.since = since
        self.private = private
        self.under_way = under_way


class PoolExhausted(DeskhandTimeout):
    """No desktop of a pool was free in time, or more callers than allowed were waiting already.

    Where launches failed meanwhile, the last failure is the ``__cause__``, and the message has it.

    What to do: Give desktops back sooner, make the pool larger, or wait longer; the `__cause__` says why launches fail.

    Attributes:
        waited: How many seconds the caller waited; 0.0 when it was turned away at once.
        size: How many desktops the pool may have.
        used: How many of them were in use.
        waiting: How many other callers were waiting.
    """

    def __init__(self, waited: float, size: int, used: int, waiting: int, hint: str = "") -> None:
        others = f", {waiting} others waiting" if waiting else ""
        what = f"no desktop became free in {waited:.3g} s" if waited else "too many callers wait for a desktop"
        super().__init__(f"{what} ({used} of {size} in use{others})", hint)
        self.waited = waited
        self.size = size
        self.used = used
        self.waiting = waiting


class EpisodeError(DeskhandError):
    """A run of episodes cannot be begun, gone on with or read: a folder, an agent, a record is wrong.

    What to do: Correct what the message names: the run's directory, the agent or the record.
    """


class TaskError(EpisodeError):
    """A task is wrong: a part is missing or invalid.

    What to do: Correct the task's folder or class; `deskhand tasks check` tries it.

    Attributes:
        task: Its name, or where it was looked for.
        reason: What is wrong with it.
        cannot_run: The desktop lacks what it needs: an episode ends with the cause `cannot_run`, and is not tried again.
    """

    def __init__(self, task: str, reason: str, hint: str = "", *, cannot_run: bool = False) -> None:
        super().__init__(f"task {task}: {reason}", hint)
        self.task = task
        self.reason = reason
        self.cannot_run = cannot_run


class LedgerError(EpisodeError):
    """The ledger of a run is of another version, damaged, or cannot be reached.

    What to do: Check its address and version; a run's own ledger is a file in its directory.
    """


class RecordFull(EpisodeError):
    """An attempt has recorded more than is allowed: its agent floods.

    What to do: Let the agent act less, or look at smaller pictures.

    Attributes:
        what: What there was too much of: `events`, `bytes`, `bytes of pixels`.
        most: The most that is allowed.
    """

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"an attempt may record at most {most} {what}, and this one has more: it is ended")
        self.what = what
        self.most = most


class ShellError(DeskhandError):
    """A command could not be started; a command that ran and failed is a result, not an error.

    What to do: Check that the program is installed where the command runs.

    Attributes:
        command: The program that could not be started, without its arguments.
        reason: The message of the system.
    """

    def __init__(self, command: str, reason: str, hint: str = "") -> None:
        super().__init__(f"cannot start {command!r}: {reason}", hint)
        self.command = command
        self.reason = reason
