"""A policy that denies everything: whatever is called on the desktop has no effect, as seen from outside."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from conftest import need
from containers.helpers import own_name
from deskhand import Desktop, LeftClick, Operation, PolicyDenied, PressKeys, Secret, Type
from deskhand.desktop.access import review
from deskhand.policy.rules import ActionClass, ClassPolicy
from deskhand.providers.editors import TextEditor
from faults.helpers import listen, until
from faults.surface import calls_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DENYING = ClassPolicy(allow=(), deny=ActionClass)
ALLOWING = ClassPolicy(allow=set(ActionClass) - {ActionClass.SAFETY_CHECK})

# What a public method is called with, and whether the world is another one afterwards. `open_shell` leaves a bash that is seen.
CALLS: dict[str, tuple[bool, Callable[[Desktop, Path], object]]] = {
    "perform": (True, lambda d, _: d.perform(LeftClick((33, 44)), Type("a"), PressKeys(["shift"]))),
    "screenshot": (False, lambda d, _: d.screenshot()),
    "elements": (False, lambda d, _: d.elements()),
    "windows.list": (False, lambda d, _: d.windows.list()),
    "windows.wait_for": (False, lambda d, _: d.windows.wait_for("Mousepad")),
    "windows.activate": (False, lambda d, _: d.windows.activate(1)),
    "windows.close": (False, lambda d, _: d.windows.close(1)),
    "windows.drop": (False, lambda d, _: d.windows.drop(["/etc/passwd"], (33, 44))),
    "start": (True, lambda d, _: d.start("xterm -e sleep 600")),
    "machine.run": (True, lambda d, _: d.machine.run("touch /tmp/by-a-shell")),
    "machine.open_shell": (True, lambda d, _: d.machine.open_shell()),
    "machine.read_file": (False, lambda d, _: d.machine.read_file("/etc/passwd")),
    "machine.view_file": (False, lambda d, _: d.machine.view_file("/etc/passwd")),
    "machine.write_file": (True, lambda d, _: d.machine.write_file("/tmp/written", "x")),
    "machine.copy_in": (True, lambda d, here: d.machine.copy_in(here / "given", "/tmp/copied")),
    "machine.copy_out": (True, lambda d, here: d.machine.copy_out("/etc/hostname", here / "taken")),
    "machine.logs": (False, lambda d, _: d.machine.logs()),
    "machine.usage": (False, lambda d, _: d.machine.usage()),
    "host.run": (True, lambda d, here: d.host.run(f"touch {here}/by-the-host")),
    "host.open_shell": (False, lambda d, _: d.host.open_shell()),
    "clipboard.read": (False, lambda d, _: d.clipboard.read()),
    "clipboard.types": (False, lambda d, _: d.clipboard.types()),
    "clipboard.read_data": (False, lambda d, _: d.clipboard.read_data("UTF8_STRING")),
    "clipboard.write": (True, lambda d, _: d.clipboard.write("copied")),
    "clipboard.write_data": (True, lambda d, _: d.clipboard.write_data({"text/plain": b"copied too"})),
    "resize": (True, lambda d, _: d.resize((600, 400))),
    "health": (False, lambda d, _: d.health()),
    "hand_over": (False, lambda d, _: d.hand_over("help")),
    "operate": (True, lambda d, here: d.operate(Operation("navigate", "x"), (here / "operated").touch)),
}
# What is more than one way to the same, each by itself.
MORE: dict[str, tuple[bool, Callable[[Desktop, Path], object]]] = {
    "a safety check": (False, lambda d, _: review(d, deskhand.CallContext(safety_checks=[deskhand.SafetyCheck("a")]))),
    "a secret": (True, lambda d, _: d.perform(Type(Secret("hunter2")))),
    "an observation's elements": (False, lambda d, _: d.perform(LeftClick((33, 44)), elements=True)),
    "a paste": (False, lambda d, _: d.perform(Type("pasted", paste=True))),
    "a new file": (True, lambda d, _: d.machine.write_file("/tmp/new", "x", new=True)),
    "an editor's view": (False, lambda d, _: TextEditor(d).view("/etc/passwd")),
    "an editor's new file": (True, lambda d, _: TextEditor(d).create("/tmp/edited", "x\n")),
    "an editor's replacement": (True, lambda d, _: TextEditor(d).replace("/tmp/written", "x", "another")),
    "an editor's insertion": (True, lambda d, _: TextEditor(d).insert("/tmp/written", 0, "more")),
}
# These end something, tell about the object itself, or belong to those who made the desktop.
NOT_JUDGED = {
    *(
        "also",
        "clipboard",
        "close",
        "closed",
        "control",
        *(
            f"control.{name}"
            for name in ("decline", "holder", "pause", "paused", "release", "requests", "resume", "step")
        ),
        "control.take",
        "control.waiting",
        "display",
        "find",
        "has_machine",
        "host",
        "host.home",
        "interrupt",
        "machine",
    ),
    *(
        "machine.home",
        "monitors",
        "name",
        "pointer",
        "pressed",
        "release",
        "reset",
        "size",
        "status",
        "stop",
        "windows",
        "xauthority",
    ),
}


def test_every_public_name_is_known_here() -> None:
    """A new way to act must not go around the policy: add it to one of the tables."""
    public = {call.name.removeprefix("Desktop.") for call in calls_of(Desktop)}
    assert public == CALLS.keys() | NOT_JUDGED


class Outside:
    """What somebody sees who is not the driver: another connection that only looks, the engine, and this machine's files."""

    def __init__(self, container: str, here: Path) -> None:
        self._container = container
        self._here = here
        self._eyes = deskhand.connect(f"docker://{container}", view_only=True)

    def close(self) -> None:
        self._eyes.close()

    def see(self) -> dict[str, Any]:
        command = "find /home /tmp -xdev -type f -not -path '*/.X*' -printf '%p %s\\n'; ps -eo user,args"
        told = subprocess.run(
            [need("docker", "docker.io"), "exec", self._container, "sh", "-c", command],
            check=True,
            capture_output=True,
            text=True,
        )
        lines = sorted(line for line in told.stdout.splitlines() if "ps -eo" not in line)
        windows = [(window.id, window.title, window.active) for window in self._eyes.windows.list()]
        return {
            "machine": lines,
            "here": sorted(path.name for path in self._here.iterdir()),
            "windows": windows,
            "pointer": self._eyes.pointer,
            "size": self._eyes.size,
            "picture": hashlib.sha256(self._eyes.screenshot(format="raw", cursor=False).data).hexdigest(),
            "pressed": self._eyes._core.backend.pressed(),  # type: ignore[attr-defined] # of X11
            "clipboard": self._eyes.clipboard.read(),
        }


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "given").write_text("given")
    return folder


def test_nothing_that_is_denied_has_an_effect(contained: Callable[..., Desktop], here: Path) -> None:
    name = own_name("denied")
    desktop = contained(name=name, size=(640, 480), policy=DENYING)
    outside = Outside(name, here)
    try:
        before = outside.see()
        for called, (_, call) in {**CALLS, **MORE}.items():
            with pytest.raises(PolicyDenied):
                call(desktop, here)
            # The container's own programs begin and end others now and then.
            until(lambda: outside.see() == before, 5, f"nothing of {called}")
    finally:
        outside.close()


def test_what_is_allowed_is_seen_from_outside(contained: Callable[..., Desktop], here: Path) -> None:
    """The control: the same calls, allowed, are not missed by the same eyes."""
    name = own_name("allowed")
    desktop = contained(name=name, size=(640, 480), policy=ALLOWING)
    listen(desktop)
    outside = Outside(name, here)
    try:
        for called, (has_effect, call) in {**CALLS, **MORE}.items():
            if not has_effect:
                continue
            before = outside.see()
            call(desktop, here)
            assert outside.see() != before, called
    finally:
        outside.close()
