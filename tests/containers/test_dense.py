"""Several desktops in one container: each has its own, none harms another, and the container goes with the last."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers.helpers import containers, owned_listeners
from deskhand import Limits, PressKeys, Type
from deskhand.launchers.docker.shared import SharedContainers
from deskhand.launchers.docker.spec import ContainerSpec
from faults.helpers import NOTHING, driver, until, xclient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.launchers.docker.engine import Engine

LIMIT = 30


@pytest.fixture
def desktops(image: str) -> Iterator[list[deskhand.Desktop]]:
    """Three in a container with room for three, all started at once."""
    rooms = SharedContainers(
        3, ContainerSpec(image=image, size=(400, 300), limits=Limits(memory=512 << 20, processes=100))
    )
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda _: rooms.launch(), range(3)))
    yield made
    for desktop in made:
        desktop.close()
    assert rooms._containers == []


def host(desktop: deskhand.Desktop) -> str:
    name, _, _ = str(desktop.name).partition(":")
    return name


def test_each_has_its_own(desktops: list[deskhand.Desktop], engine: Engine) -> None:
    before = owned_listeners()
    assert len({host(desktop) for desktop in desktops}) == 1
    state = engine.api.inspect_container(host(desktops[0]))
    assert state["HostConfig"]["Memory"] == 3 * 512 << 20
    assert state["HostConfig"]["PidsLimit"] == 300
    for number, desktop in enumerate(desktops):
        assert desktop.health() == deskhand.Health()
        desktop.start("xterm")
        desktop.perform(Type(f"echo {number} $DISPLAY $PWD >~/said\n"))
        desktop.clipboard.write(f"text {number}")
    desktops[0].perform(PressKeys(["shift"]), settle=False)
    for number, desktop in enumerate(desktops):
        own = desktop._core.inside.slot.number  # type: ignore[union-attr]
        said = f"{number} :{own} /home/user/{own}\n"
        until(
            lambda desktop=desktop, said=said: desktop.machine.run("cat said").stdout == said, LIMIT, "what was typed"
        )  # type: ignore[misc]
        assert desktop.clipboard.read() == f"text {number}"
        assert len(desktop.windows.list()) == 1
        assert desktop.machine.run("echo $DBUS_SESSION_BUS_ADDRESS").stdout == f"unix:path=/run/deskhand/{own}/bus\n"
    with xclient(desktops[1]) as witness:
        assert witness.ask("pressed") == NOTHING
    assert owned_listeners() == before


def test_the_end_of_one_is_not_its_neighbours(desktops: list[deskhand.Desktop], engine: Engine) -> None:
    """Closed, its X server killed, its window manager killed again and again, made as new: the others notice nothing."""
    one, two, three = desktops
    three.start("xterm")
    one.start("xterm")
    one.machine.run("mkdir shut; chmod 500 shut; (trap '' TERM; setsid sleep 9991 &)")
    one.close()
    found = three.machine.run("ps -ef; ls /home/user /run/deskhand /tmp /tmp/.X11-unix").stdout
    gone = one._core.inside.slot  # type: ignore[union-attr]
    for left in (
        "9991",
        f"Xvfb :{gone.number}",
        f"X{gone.number}",
        f"xauthority-{gone.number}",
        f"desktop-{gone.number}",
    ):
        assert left not in found
    assert gone.display is None
    number = two._core.inside.slot.number  # type: ignore[union-attr]
    three.machine.run(f"pkill -KILL -f 'Xvfb :{number} '")
    with pytest.raises(deskhand.DesktopLost, match="the X server ended") as lost:
        two.perform(Type("x"))
    assert lost.value.cause == "x_server"
    assert "the X server ended with status 137" in two.machine.logs()
    found = three.machine.run("/usr/local/lib/deskhand/probe live")
    assert (found.exit_code, found.stdout) == (1, f"display {number} does not answer\n")
    two.close()
    assert three.health() == deskhand.Health()
    assert len(three.windows.list()) == 1
    assert three.perform(Type("x")).changed
    with three.reset() as again:
        assert again.windows.list() == []
        assert again.health() == deskhand.Health()
        assert host(again) in containers(engine)
    assert host(three) not in containers(engine), "the last one has gone"


@pytest.mark.soak
def test_what_was_started_again_is_told_of_its_own_desktop(desktops: list[deskhand.Desktop]) -> None:
    one, two, _ = desktops
    number = one._core.inside.slot.number  # type: ignore[union-attr]
    mark = f"DESKHAND_DESKTOP={number}"
    two.machine.run(f"for p in $(pgrep -x openbox); do if grep -qz {mark} /proc/$p/environ; then kill $p; fi; done")
    until(lambda: "the window manager ended" in "".join(one.status), LIMIT, "the note")
    assert "window manager" not in "".join(two.status)
    with one.reset() as again:
        assert "window manager" not in "".join(again.status)


@pytest.mark.soak
def test_a_room_is_filled_before_another_is_made(image: str, engine: Engine) -> None:
    rooms = SharedContainers(2, ContainerSpec(image=image, window_manager=None, size=(64, 64)))
    made = [rooms.launch() for _ in range(3)]
    try:
        names = [host(desktop) for desktop in made]
        assert names[0] == names[1] != names[2]
        made[0].close()
        made.append(rooms.launch())
        assert host(made[3]) == names[0]
        engine.api.kill(names[0])
        with pytest.raises(deskhand.DesktopLost):
            made[3].perform()
        made[3].close()
        # It could not be ended in order: nobody else moves in there.
        made.append(rooms.launch())
        assert made[-1].health().ok
        assert host(made[-1]) != names[0]
    finally:
        for desktop in made:
            desktop.close()
    assert not {host(desktop) for desktop in made} & set(containers(engine))


def test_what_is_not_possible_is_refused(image: str, engine: Engine) -> None:
    before = set(containers(engine))
    with pytest.raises(deskhand.ActionError, match="1 to 32"):
        deskhand.Pool("docker", displays=33)
    with pytest.raises(deskhand.ActionError, match="is for containers"):
        deskhand.Pool(displays=2)
    with pytest.raises(deskhand.ActionError, match="Pool"):
        deskhand.launch("docker", displays=2)
    with pytest.raises(deskhand.ActionError, match="name"):
        SharedContainers(2, ContainerSpec(name="one"))
    with pytest.raises(deskhand.ActionError, match="another machine"):
        SharedContainers(2, ContainerSpec(image=image, remote=True)).launch()
    with pytest.raises(deskhand.LaunchFailed, match="no-such-image"):
        SharedContainers(2, ContainerSpec(image="no-such-image")).launch()
    # One that was built before this was possible.
    made = engine.api.create_container(image)
    old = f"deskhand-test-{secrets.token_hex(4)}"
    engine.api.commit(made["Id"], old, conf={"Labels": {"org.deskhand.displays": ""}})
    engine.api.remove_container(made["Id"])
    try:
        with pytest.raises(deskhand.LaunchFailed, match="build it again"):
            SharedContainers(2, ContainerSpec(image=old)).launch()
    finally:
        engine.api.remove_image(old)
    assert not {
        name
        for name in set(containers(engine)) - before
        if engine.api.inspect_container(name)["Config"]["Image"] == old
    }


LAUNCHING = """
from deskhand.launchers.docker.shared import SharedContainers
from deskhand.launchers.docker.spec import ContainerSpec
rooms = SharedContainers(2, ContainerSpec(image=os.environ["IMAGE"]))
desktops = [rooms.launch() for _ in range(2)]
say(names=[desktop.name for desktop in desktops])
wait_forever()
"""


@pytest.mark.soak
def test_a_killed_driver_leaves_nothing(engine: Engine, image: str, driver_environment: Mapping[str, str]) -> None:
    with driver(LAUNCHING, {**driver_environment, "IMAGE": image}) as lines:
        name = lines.read()["names"][0].partition(":")[0]
        assert name in containers(engine)
        lines.process.kill()
        until(lambda: name not in containers(engine), LIMIT, "the container's removal")


@pytest.mark.soak
def test_an_end_that_was_interrupted_gives_its_number_back_once(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms, leave = SharedContainers(2, ContainerSpec(image=image, size=(400, 300))), SharedContainers._leave

    def interrupted(rooms: SharedContainers, room: Any, stay: Any) -> None:
        leave(rooms, room, stay)
        raise KeyboardInterrupt

    with rooms.launch() as one, rooms.launch() as two:
        monkeypatch.setattr(SharedContainers, "_leave", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.close()
        monkeypatch.undo()
        with rooms.launch() as third:
            one.close()
            with rooms.launch() as fourth:
                assert host(third) == host(two) != host(fourth)
    assert rooms._containers == []


@pytest.mark.soak
def test_a_pools_policy_holds_where_desktops_share_a_container(image: str) -> None:
    policy = deskhand.ClassPolicy(allow=["observe"])
    with deskhand.Pool("docker", size=1, displays=2, image=image, screen=(320, 240), policy=policy) as pool:
        for _ in range(2):
            # Also after a reset between two users.
            with pool.acquire(timeout=120) as desktop:
                assert desktop.screenshot().size == (320, 240)
                with pytest.raises(deskhand.PolicyDenied):
                    desktop.perform(PressKeys(["a"]))
