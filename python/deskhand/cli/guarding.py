"""The options of commands that serve a desktop: the policy, its questions, the audit log, and the key of clients."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import secrets
import select
import shlex
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deskhand._core.redaction import one_line
from deskhand.errors import ActionError, shown
from deskhand.policy.audit import AuditLog
from deskhand.policy.guard import ASK_TIMEOUT
from deskhand.policy.questions import question_of
from deskhand.policy.rules import ActionClass, ClassPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.policy.rules import Ask, Context, JudgedAction, Policy

_F = TypeVar("_F", bound="Callable[..., Any]")

_ALL = frozenset(ActionClass) - {ActionClass.SAFETY_CHECK}
_TERMINAL = "/dev/tty"
_KEY_BYTES = 24
_LONGEST = 2000


def guard_options(command: _F) -> _F:
    """Add `--policy`, `--ask` and `--audit` to a command; see `guarded`."""
    for option in (
        click.option("--audit", metavar="FILE", help="Write every decision to FILE; see `deskhand audit verify`."),
        click.option(
            "--ask",
            metavar="terminal|COMMAND",
            help="Who answers about the rest: you, at the terminal, or a program that gets the question as JSON at its "
            "standard input and exits with 0 for yes. Without it the answer is no.",
        ),
        click.option(
            "--policy",
            metavar="CLASSES|all|MODULE:NAME",
            default="observe,input",
            show_default=True,
            help=f"What is allowed without a question: classes ({', '.join(sorted(_ALL))}), `all` of them, or a policy of "
            "your own: a class, or an instance, in a module here or on Python's path.",
        ),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def guarded(policy: str, ask: str | None, audit: str | None) -> Iterator[dict[str, Any]]:
    """The arguments of `deskhand.launch` and `connect` for these options; the audit log is closed at the end.

    Raises:
        ActionError: One of them has no meaning.
        OSError: The audit log cannot be opened.
    """
    with contextlib.ExitStack() as held:
        log = None if audit is None else held.enter_context(AuditLog(audit))
        yield {"policy": _policy(policy), "ask": None if ask is None else _ask(ask), "audit": log}


def served_key() -> str:
    """The key that clients must show: DESKHAND_API_KEY, or a new one, which is printed."""
    if key := os.environ.get("DESKHAND_API_KEY"):
        return key
    key = secrets.token_urlsafe(_KEY_BYTES)
    click.echo(f"Clients must show this key: {key}")
    return key


def _policy(given: str) -> Policy:
    module, colon, name = given.partition(":")
    if not colon:
        return ClassPolicy(allow=_ALL if given == "all" else [word for word in given.split(",") if word])
    # The last place that is looked at: a file there stands in for no package.
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ActionError(f"--policy {given}: {error}") from error
    finally:
        sys.path.remove(here)
    made = found() if isinstance(found, type) else found
    if not callable(getattr(made, "before", None)):
        raise ActionError(
            f"--policy {given}: a policy has a method before(action, context), which {shown(made)} has not"
        )
    policy: Policy = made
    return policy


def _ask(given: str) -> Ask:
    if given == "terminal":
        return _Terminal()
    words = shlex.split(given)
    if not words:
        raise ActionError("--ask: the command is empty; say `terminal` to be asked yourself")
    return lambda action, context: _ask_program(words, action, context)


def _ask_program(words: list[str], action: JudgedAction, context: Context) -> bool:
    question = json.dumps(question_of(action, context))
    done = subprocess.run(words, input=question, text=True, check=False, timeout=ASK_TIMEOUT, stdout=subprocess.DEVNULL)
    return done.returncode == 0


class _Terminal:
    """Asks on the terminal that the command was started from, one question at a time."""

    def __init__(self) -> None:
        """Check that there is a terminal.

        Raises:
            ActionError: There is none.
        """
        self._turn = threading.Lock()
        try:
            os.close(os.open(_TERMINAL, os.O_RDWR))
        except OSError as error:
            raise ActionError(
                f"--ask terminal: this command has no terminal ({error.strerror}); name a program"
            ) from None

    def __call__(self, action: JudgedAction, context: Context) -> bool:
        with self._turn, open(_TERMINAL, "r+b", buffering=0) as terminal:  # noqa: PTH123 # a device
            # Discard what was typed before the question.
            termios.tcflush(terminal, termios.TCIFLUSH)
            terminal.write(_shown_question(action, context).encode())
            ready = select.poll()
            ready.register(terminal, select.POLLIN)
            if not ready.poll(ASK_TIMEOUT * 1000):
                terminal.write(b"\r\nNo answer: no.\r\n")
                return False
            return terminal.readline().strip().lower() in {b"y", b"yes"}


def _shown_question(action: JudgedAction, context: Context) -> str:
    lines = [
        f"\r\n{context.provider or 'A client'} wants, on {context.desktop or 'the desktop'} ({context.action_class}):"
    ]
    asked = question_of(action, context)
    for name, value in asked["action"].items():
        if name == "env":
            lines += [f"  env {_clean(key)}={_clean(each)}" for key, each in value.items()]
        elif value not in (None, "", {}):
            lines.append(f"  {name}: {_clean(value)}")
    if asked["safety_check"] is not None:
        lines.append(f"  the provider says: {_clean(asked['safety_check']['message'])}")
    if context.window is not None:
        lines.append(f"  in the window: {_clean(context.window)}")
    return "\r\n".join([*lines, "Allow it? [y/N] "])


def _clean(value: object) -> str:
    """A text of a model, made safe for a terminal: on one line, without control characters."""
    return one_line(value if isinstance(value, str) else json.dumps(value), _LONGEST)
