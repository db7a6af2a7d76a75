"""Classes of actions, the decisions of a policy, and its context.

This module owns the values that a policy is given and returns, and the policy that decides by class alone. It is pure: times
come from the caller, and there is no desktop, thread or wait. `deskhand.policy.guard` asks, waits and denies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

from deskhand import actions as act
from deskhand._core.arguments import expect_flag, expect_text, expect_texts
from deskhand._core.redaction import Secret
from deskhand.desktop.operations import Operation, SafetyCheck
from deskhand.errors import ActionError, shown


class NoPolicyWarning(UserWarning):
    """A model acts on a desktop without a policy. Silence it with `warnings.filterwarnings` where that is intended."""


Verdict = Literal["allow", "deny", "ask"]
"""What a policy decides; any other value counts as `deny`."""


class ActionClass(StrEnum):
    """What kind of operation it is, as far as that matters for allowing it."""

    OBSERVE = "observe"
    """Looking and waiting, and asking a person for help."""
    INPUT = "input"
    """Pointer and keyboard; writing the clipboard; windows."""
    CREDENTIAL = "credential"
    """Typing a `Secret`."""
    CLIPBOARD_READ = "clipboard_read"
    FILE_READ = "file_read"
    FILE_WRITE = "file_write"
    HOST_FILES = "host_files"
    """Reading or writing files of this machine, outside of the desktop: `copy_in`, `copy_out`."""
    SHELL = "shell"
    """Running a command, starting a program, or opening a shell."""
    NAVIGATE = "navigate"
    """Going to an address that the model names."""
    SAFETY_CHECK = "safety_check"
    """A check that the provider wants a person to confirm; see `CallContext.safety_checks`."""
    OTHER = "other"
    """Anything that this version does not know."""


JudgedAction = act.Action | Operation
"""Whatever is judged."""

_OBSERVING = (*act.LOOKING, act.Wait)
_OPERATIONS = {
    "activate": ActionClass.INPUT,
    "close_window": ActionClass.INPUT,
    "copy_in": ActionClass.HOST_FILES,
    "copy_out": ActionClass.HOST_FILES,
    "drop": ActionClass.INPUT,
    "elements": ActionClass.OBSERVE,
    "get_clipboard": ActionClass.CLIPBOARD_READ,
    "hand_over": ActionClass.OBSERVE,
    "host_shell": ActionClass.SHELL,
    "logs": ActionClass.OBSERVE,
    "navigate": ActionClass.NAVIGATE,
    "open_host_shell": ActionClass.SHELL,
    "open_shell": ActionClass.SHELL,
    "probe": ActionClass.OBSERVE,
    "read_file": ActionClass.FILE_READ,
    "resize": ActionClass.INPUT,
    "safety_check": ActionClass.SAFETY_CHECK,
    "screenshot": ActionClass.OBSERVE,
    "set_clipboard": ActionClass.INPUT,
    "shell": ActionClass.SHELL,
    "start": ActionClass.SHELL,
    "usage": ActionClass.OBSERVE,
    "windows": ActionClass.OBSERVE,
    "write_file": ActionClass.FILE_WRITE,
}


_OPENING = ("open_shell", "open_host_shell")

# Variables that make programs run other code, or read their settings from elsewhere: full names, then prefixes.
_CODE_NAMES = frozenset({
    "BASHOPTS", "BROWSER", "CDPATH", "CLASSPATH", "COMPLUS_PROFILER", "CURL_HOME", "DBUS_SESSION_BUS_ADDRESS", "EDITOR",
    "ENV", "EXINIT", "GCONV_PATH", "GLIBC_TUNABLES", "GLOBIGNORE", "GNUMAKEFLAGS", "GVIMINIT", "HOME", "IFS", "INPUTRC",
    "LESSCLOSE", "LESSOPEN", "LOCPATH", "MAKEFILES", "MAKEFLAGS", "MANPAGER", "NLSPATH", "PAGER", "PATH", "PHPRC",
    "PHP_INI_SCAN_DIR", "PROMPT_COMMAND", "PS4", "RSYNC_RSH", "R_PROFILE", "R_PROFILE_USER", "SHELL", "SHELLOPTS",
    "SUDO_ASKPASS", "SUDO_EDITOR", "SVN_SSH", "TCLLIBPATH", "VIMINIT", "VISUAL", "WGETRC", "ZDOTDIR",
})  # fmt: skip
_CODE_PREFIXES = (
    "BASH_", "BUNDLE_", "CARGO_", "CORECLR_", "DOCKER_", "DOTNET_", "DYLD_", "EMACS", "GDK_", "GEM_", "GIO_", "GIT_",
    "GO", "GTK", "JAVA_", "JDK_", "LD_", "LUA_", "NODE_", "NPM_", "OPENSSL_", "PERL", "PIP_", "PYTHON", "QML", "QT_",
    "RUBY", "RUST", "SSH_", "XDG_", "_JAVA_", "npm_",
)  # fmt: skip


def changes_what_runs(name: str) -> bool:
    """Whether a variable of this name can make a program run other code, or take its settings from elsewhere."""
    return name in _CODE_NAMES or name.startswith(_CODE_PREFIXES)


def classify(action: JudgedAction) -> ActionClass:
    """The class of an action or operation; `OTHER` for an unknown one."""
    if isinstance(action, Operation):
        return _OPERATIONS.get(action.type, ActionClass.OTHER)
    if isinstance(action, _OBSERVING):
        return ActionClass.OBSERVE
    if isinstance(action, act.Type) and isinstance(action.text, Secret):
        return ActionClass.CREDENTIAL
    return ActionClass.INPUT if act.ACTIONS.get(action.type) is type(action) else ActionClass.OTHER


def check_action(action: object, index: int) -> None:
    """Reject anything that is not an action, as `Desktop.perform` does.

    Raises:
        ActionError: It is not an action.
    """
    if not isinstance(action, act.Action | Operation):
        kind = type(action).__name__
        raise ActionError(f"perform takes actions, not {shown(action)}").note_progress(index, kind, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a policy, and `ask`, are given besides the action itself.

    All texts are untrusted: a model, a provider or an application wrote them. Control characters have been removed.

    Attributes:
        action_class: The action's class.
        desktop: The desktop's name, display or address.
        provider: The provider that made the call; see `CallContext`, also for the following three.
        call_id: The provider's id of the call.
        agent: The agent's name.
        turn: The number of the turn.
        index: Which of the call's actions this is, counted from 0.
        count: How many actions the call has.
        window: The title of the window that the action goes to, None if unknown.
        safety_checks: All checks that the provider sent with the call.
        safety_check: The one that this question is about, if any.
    """

    action_class: ActionClass
    desktop: str = ""
    provider: str = ""
    call_id: str = ""
    agent: str = ""
    turn: str = ""
    index: int = 0
    count: int = 1
    window: str | None = None
    safety_checks: tuple[SafetyCheck, ...] = ()
    safety_check: SafetyCheck | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the reason for it."""

    verdict: Verdict
    reason: str = ""


Ruling = Verdict | Decision
"""What a policy returns."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer, for an `ask` that says more than yes or no.

    Attributes:
        allow: Whether it may be done.
        by: Who answered, for the audit log and the error.
        note: What the answer adds; the error of a denied operation has it.
    """

    allow: bool
    by: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Validate."""
        expect_flag("Answer: allow", self.allow)
        expect_text("Answer: by", self.by)
        expect_text("Answer: note", self.note)


Ask = Callable[[JudgedAction, Context], bool | Answer | Awaitable[bool | Answer]]
"""Asks a person: True means yes, an `Answer` says so itself, anything else means no. May be a coroutine function."""


@runtime_checkable
class Policy(Protocol):
    """Decides what is allowed. An exception, or no answer in time, counts as `deny`.

    A command whose environment sets a variable that changes what runs (`PATH`, `LD_PRELOAD`, `BASH_ENV`, `GIT_...`) is denied
    before the policy is called, unless the policy has an attribute `environment` that names the variable.
    """

    def before(self, action: JudgedAction, context: Context) -> Ruling | Awaitable[Ruling]:
        """Judge one action before it is done; may be a coroutine function.

        Args:
            action: The action to judge.
            context: Which provider, agent and desktop it belongs to.

        Returns:
            `"allow"`, `"deny"` or `"ask"`, or a `Decision` with the reason.
        """


class ClassPolicy:
    """Allows, denies or asks, by the class of the action alone.

    By default looking and input are allowed, and everything else is asked about; without `ask` it is denied. A shell may be
    opened if its commands are asked about, since each of them is judged; with variables in its environment, opening it is
    asked about too.

    Attributes:
        environment: Variables that commands may set although they change what runs.
    """

    __slots__ = ("_verdicts", "environment")

    def __init__(
        self,
        *,
        allow: Iterable[ActionClass | str] = (ActionClass.OBSERVE, ActionClass.INPUT),
        deny: Iterable[ActionClass | str] = (),
        environment: Iterable[str] = (),
    ) -> None:
        """Name the classes.

        Args:
            allow: Classes that are allowed without a question.
            deny: Classes that are always denied, even if also allowed. All other classes are asked about.
            environment: Variables, such as `PATH`, that commands may set although they change what runs.

        Raises:
            ActionError: There is no such class, or `safety_check` is among the allowed: only a person may confirm it.
        """
        verdicts: dict[ActionClass, Decision] = {}
        given: tuple[tuple[Iterable[ActionClass | str], Verdict, str], ...] = (
            (allow, "allow", "allowed"),
            (deny, "deny", "denied"),
        )
        for names, verdict, word in given:
            for name in expect_texts(f"ClassPolicy: {verdict}", names):
                if name not in set(ActionClass):
                    raise ActionError(f"there is no class {shown(name)}: use {', '.join(ActionClass)}")
                verdicts[ActionClass(name)] = Decision(verdict, f"all of class {name} is {word}")
        if verdicts.get(ActionClass.SAFETY_CHECK, Decision("ask")).verdict == "allow":
            raise ActionError("safety checks cannot be allowed beforehand: they are asked about each time")
        self._verdicts = verdicts
        self.environment: frozenset[str] = frozenset(expect_texts("ClassPolicy: environment", environment))

    def before(self, action: JudgedAction, context: Context) -> Decision:
        """See `Policy.before`."""
        kind = context.action_class
        if (decision := self._verdicts.get(kind)) is not None:
            return decision
        if isinstance(action, Operation) and action.type in _OPENING and not action.env:
            return Decision("allow", "each of the shell's commands is asked about")
        return Decision("ask", f"{kind} is asked about")
