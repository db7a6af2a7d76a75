"""What programs in containers tell of themselves, as a driver outside reads it."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import toolkits_image
from deskhand.launchers.docker.engine import connect_engine
from deskhand.launchers.docker.shared import SharedContainers
from deskhand.launchers.docker.spec import ContainerSpec
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.launchers.docker.engine import Engine

LIMIT = 30
PROCESSES = "pgrep -fc '^/usr/libexec/at-spi|accessibility.conf'"


@pytest.fixture(scope="module")
def toolkits(image: str) -> str:
    engine = connect_engine()
    try:
        return toolkits_image(engine, image)
    finally:
        engine.close()


@pytest.fixture(scope="module")
def shown(toolkits: str) -> Iterator[deskhand.Desktop]:
    """A desktop with a program that tells nothing, one of GTK and one of Qt."""
    with deskhand.launch("docker", image=toolkits) as desktop:
        for command in ("xterm", "mousepad", "featherpad"):
            desktop.start(command, timeout=60)
        desktop.perform()
        yield desktop


def applications(desktop: deskhand.Desktop) -> set[str]:
    return {element.application.lower() for element in desktop.elements()}


def accessibility_processes(desktop: deskhand.Desktop) -> int:
    """How many there are of the registry, the launcher and the bus."""
    return int(desktop.machine.run(PROCESSES).stdout)


@pytest.mark.parametrize("application", ["mousepad", "featherpad"])
def test_elements_are_where_their_program_shows_them(shown: deskhand.Desktop, application: str) -> None:
    windows = {window.pid: window for window in shown.windows.list() if window.class_name.lower() == application}
    found = [element for element in shown.elements() if element.application.lower() == application]
    roles = {element.role for element in found}
    assert {"menubar", "menuitem", "textbox"} <= roles
    assert {element.pid for element in found} == set(windows), (
        "processes are numbered as in the container on both sides"
    )
    for element in found:
        if element.point is not None:
            assert windows[element.pid].rect.contains(element.point), element.line()


def test_an_element_is_clicked(shown: deskhand.Desktop) -> None:
    shown.windows.activate(next(window for window in shown.windows.list() if window.class_name == "Mousepad"))
    shown.perform()
    within = [element for element in shown.elements() if element.application == "mousepad"]
    menu = next(element for element in within if (element.role, element.name) == ("menuitem", "File"))
    assert menu.point is not None
    shown.perform(deskhand.LeftClick(menu.point))
    try:
        assert shown.find("menuitem", "Save As").wait_for(timeout=LIMIT) is not None
    finally:
        shown.perform(deskhand.PressKeys(["escape"]))


def test_a_program_that_tells_nothing_is_named(shown: deskhand.Desktop) -> None:
    (xterm,) = (window for window in shown.windows.list() if window.class_name == "XTerm")
    assert any(xterm.title in sentence for sentence in shown.elements().left_out)


def test_whoever_connects_to_the_container_reads_them_too(shown: deskhand.Desktop) -> None:
    with deskhand.connect(f"docker://{shown.name}", view_only=True) as other:
        assert applications(other) == {"mousepad", "featherpad"}
    assert applications(shown) == {"mousepad", "featherpad"}


def test_at_once_after_the_start(contained: Callable[..., deskhand.Desktop]) -> None:
    """Nobody waits for the registry at a start: who reads does."""
    assert len(contained().elements(timeout=LIMIT)) == 0


def test_as_new_it_is_another_bus(contained: Callable[..., deskhand.Desktop], toolkits: str) -> None:
    first = contained(image=toolkits)
    first.start("mousepad", timeout=60)
    until(lambda: applications(first) == {"mousepad"}, LIMIT, "mousepad")
    before = first.machine.run("ls -di /tmp/.X11-unix/bus_0").stdout
    with first.reset() as second:
        assert len(second.elements(timeout=LIMIT)) == 0
        assert second.machine.run("ls -di /tmp/.X11-unix/bus_0").stdout != before
        assert accessibility_processes(second) == 3
        second.start("featherpad", timeout=60)
        until(lambda: applications(second) == {"featherpad"}, LIMIT, "featherpad, which announces itself once")


def test_without_them_it_is_as_it_was(contained: Callable[..., deskhand.Desktop]) -> None:
    desktop = contained(elements=False)
    with pytest.raises(deskhand.UnsupportedAction, match="elements=False"):
        desktop.elements()
    variables = "NO_AT_BRIDGE|ACCESSIBILITY_ENABLED|GNOME_ACCESSIBILITY|QT_LINUX_ACCESSIBILITY_ALWAYS_ON"
    assert desktop.machine.run(f"env | grep -E '^({variables})'").stdout == "NO_AT_BRIDGE=1\n"
    assert accessibility_processes(desktop) == 0
    with desktop.reset() as again:
        with pytest.raises(deskhand.UnsupportedAction, match="elements=False"):
            again.elements()
        assert "bus_" not in again.machine.run("ls /tmp/.X11-unix").stdout


@pytest.mark.parametrize("animations", [False, True])
def test_programs_animate_only_if_asked(contained: Callable[..., deskhand.Desktop], *, animations: bool) -> None:
    # GTK reads these in this order, and the last one that says something counts.
    desktop = contained(animations=animations)
    for version in ("gtk-3.0", "gtk-4.0"):
        command = (
            f"for d in /etc $(printenv XDG_CONFIG_DIRS | tr : ' '); do cat $d/{version}/settings.ini; done 2>/dev/null"
        )
        said = [line for line in desktop.machine.run(command).stdout.splitlines() if "gtk-enable-animations" in line]
        assert said[-1] == f"gtk-enable-animations = {int(animations)}"


def test_an_image_from_before_says_what_to_do(
    contained: Callable[..., deskhand.Desktop], engine: Engine, image: str
) -> None:
    made = engine.api.create_container(image)
    old = f"deskhand-test-{secrets.token_hex(4)}"
    engine.api.commit(made["Id"], old, conf={"Labels": {"org.deskhand.elements": ""}})
    engine.api.remove_container(made["Id"])
    try:
        desktop = contained(image=old)
        with pytest.raises(deskhand.UnsupportedAction, match="build it again, `deskhand image build`"):
            desktop.elements()
        desktop.close()
    finally:
        engine.api.remove_image(old)


def test_without_a_directory_in_common_there_are_none(contained: Callable[..., deskhand.Desktop]) -> None:
    with pytest.raises(deskhand.UnsupportedAction, match="not on this machine"):
        contained(remote=True).elements()


def test_the_desktop_outlives_its_accessibility_bus(contained: Callable[..., deskhand.Desktop]) -> None:
    desktop = contained()
    assert len(desktop.elements(timeout=LIMIT)) == 0
    desktop.machine.run("pkill -KILL -f accessibility.conf; pkill -KILL at-spi2-registr")
    for _ in range(2):
        with pytest.raises(deskhand.BackendError, match="accessibility bus"):
            desktop.elements(timeout=0.2)
    assert desktop.health() == deskhand.Health()
    assert desktop.status == ()
    with desktop.reset() as again:
        assert len(again.elements(timeout=LIMIT)) == 0


def test_when_the_session_bus_is_started_again_so_is_theirs(
    contained: Callable[..., deskhand.Desktop], toolkits: str
) -> None:
    desktop = contained(image=toolkits)
    assert len(desktop.elements(timeout=LIMIT)) == 0
    desktop.machine.run("pkill -KILL -f 'dbus-daemon --session'")
    with pytest.raises(deskhand.BackendError, match="has gone"):
        until(lambda: desktop.elements(), LIMIT, "the end of the bus")  # noqa: PLW0108 # it raises in the end
    assert len(desktop.elements(timeout=LIMIT)) == 0
    until(lambda: accessibility_processes(desktop) == 3, LIMIT, "the registry")
    desktop.start("featherpad", timeout=60)
    until(lambda: applications(desktop) == {"featherpad"}, LIMIT, "featherpad")


def test_each_of_several_sees_its_own(toolkits: str) -> None:
    rooms = SharedContainers(2, ContainerSpec(image=toolkits, size=(800, 600)))
    with rooms.launch() as one, rooms.launch() as two:
        one.start("mousepad", timeout=60)
        two.start("featherpad", timeout=60)
        until(lambda: applications(one) == {"mousepad"}, LIMIT, "mousepad on the first")
        until(lambda: applications(two) == {"featherpad"}, LIMIT, "featherpad on the second")
        assert accessibility_processes(one) == 6
        number = one._core.inside.slot.number  # type: ignore[union-attr]
        one.close()
        assert f"bus_{number}" not in two.machine.run("ls /tmp/.X11-unix").stdout
        assert accessibility_processes(two) == 3
        assert applications(two) == {"featherpad"}
        with two.reset() as again:
            assert len(again.elements(timeout=LIMIT)) == 0
            assert accessibility_processes(again) == 3
            assert re.findall("bus_.*", again.machine.run("ls /tmp/.X11-unix").stdout) != [f"bus_{number}"]
