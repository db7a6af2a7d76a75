"""The gate of a desktop: every operation goes past its interceptors, whoever makes it, and any of them may refuse it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import AsyncDesktop, CallContext, Desktop, LeftClick, Move, Operation, PolicyDenied, Secret, Type, calling
from deskhand._core.events import ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import keep, pass_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Heard:
    def __init__(self, refused: str = "", name: str = "", log: list[tuple[str, str]] | None = None) -> None:
        self.calls: list[tuple[Operation, Any]] = []
        self.log = [] if log is None else log
        self._refused = refused
        self._name = name

    def before(self, operation: Operation) -> object:
        self.log.append((self._name, "before"))
        if operation.type == self._refused:
            raise PolicyDenied(operation.type, "enough")
        return self

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        assert token is self
        self.log.append((self._name, "after"))
        self.calls.append((operation, outcome))

    @property
    def types(self) -> list[str]:
        return [operation.type for operation, _ in self.calls]


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend((320, 200))


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    with Desktop(backend) as desktop:
        yield desktop


def test_operations_are_seen_with_what_came_of_them(desktop: Desktop) -> None:
    heard = Heard()
    view = desktop.also(heard)
    call = CallContext("openai", "call_1")
    with calling(call):
        seen = view.perform(LeftClick((5, 5)), settle=False)
    picture = view.screenshot()
    assert heard.calls == [
        (Operation("perform", actions=(LeftClick((5, 5)),)), seen),
        (Operation("screenshot"), picture),
    ]
    assert [operation.call.call_id for operation, _ in heard.calls] == ["call_1", ""]
    # Through the object without the interceptor nobody sees anything.
    desktop.screenshot()
    assert len(heard.calls) == 2


def test_what_is_refused_is_not_done(desktop: Desktop, backend: MemoryBackend) -> None:
    heard = Heard("perform")
    with pytest.raises(PolicyDenied, match="enough"):
        desktop.also(heard).perform(LeftClick((5, 5)), settle=False)
    assert not [event for event in backend.events if isinstance(event, ButtonDown)]
    assert heard.calls == []


def test_interceptors_end_in_reverse_and_see_what_a_later_one_refused(desktop: Desktop) -> None:
    log: list[tuple[str, str]] = []
    first, second = Heard(name="a", log=log), Heard("perform", "b", log)
    view = desktop.also(first).also(second)
    view.screenshot()
    assert log == [("a", "before"), ("b", "before"), ("b", "after"), ("a", "after")]
    with pytest.raises(PolicyDenied) as refused:
        view.perform(LeftClick((5, 5)))
    assert first.calls[-1][1] is refused.value
    assert second.types == ["screenshot"]


def test_the_order_holds_for_each_of_several_threads(desktop: Desktop) -> None:
    """`before` in the order of the list, `after` in the reverse, with the operation's own token, whoever else is under way."""
    threads, rounds, names = 6, 20, ("a", "b", "c")
    logs: dict[int, list[tuple[str, str]]] = {}
    begun, together = threading.Barrier(threads), threading.Barrier(threads)

    class Ordered:
        def __init__(self, name: str) -> None:
            self._name = name

        def before(self, operation: Operation) -> object:
            logs[threading.get_ident()].append((self._name, "before"))
            if self._name == "b":
                # Every thread is between its interceptors now: the gate holds no lock there.
                together.wait(30)
            return (self._name, operation, threading.get_ident())

        def after(self, operation: Operation, token: object, outcome: object) -> None:
            assert token == (self._name, operation, threading.get_ident())
            assert not isinstance(outcome, Exception)
            logs[threading.get_ident()].append((self._name, "after"))

    view = desktop.also(*map(Ordered, names))

    def work(number: int) -> list[tuple[str, str]]:
        # One thread each: nobody begins a second number before all have begun their first.
        begun.wait(30)
        logs[threading.get_ident()] = []
        for turn in range(rounds):
            if (number + turn) % 2:
                view.screenshot()
            else:
                view.perform(Move((number, turn)), settle=False)
        return logs[threading.get_ident()]

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(work, range(threads)))
    once = [*((name, "before") for name in names), *((name, "after") for name in reversed(names))]
    assert found == [once * rounds] * threads


def test_what_one_thread_is_refused_ends_its_own_operation_only(desktop: Desktop) -> None:
    """The interceptors that a refused operation has passed hear of it, and of no other thread's."""
    both = threading.Barrier(2)

    class Refusing(Heard):
        def before(self, operation: Operation) -> object:
            both.wait(30)
            return super().before(operation)

    first, second = Heard(), Refusing("perform")
    view = desktop.also(first, second)
    with ThreadPoolExecutor(2) as pool:
        refused = pool.submit(view.perform, LeftClick((5, 5)), settle=False)
        looked = pool.submit(view.screenshot)
        assert looked.result(30).size == (320, 200)
        error = refused.exception(30)
    assert isinstance(error, PolicyDenied)
    assert {operation.type: outcome for operation, outcome in first.calls} == {
        "perform": error,
        "screenshot": looked.result(),
    }
    assert second.types == ["screenshot"]


def test_all_hear_of_the_end_also_when_one_raises(desktop: Desktop) -> None:
    class Raising(Heard):
        def after(self, operation: Operation, token: object, outcome: object) -> None:
            super().after(operation, token, outcome)
            raise ValueError("after")

    heard = Heard()
    with pytest.raises(ValueError, match="after"):
        desktop.also(heard, Raising()).screenshot()
    assert heard.types == ["screenshot"]


def test_an_interceptors_own_looks_are_seen_by_nobody(desktop: Desktop) -> None:
    class Looks(Heard):
        def before(self, operation: Operation) -> object:
            assert operation.desktop is not None
            assert operation.desktop.screenshot().size == (320, 200)
            return super().before(operation)

    heard = Looks()
    view = desktop.also(heard)
    view.perform(LeftClick((5, 5)), settle=False)
    assert heard.types == ["perform"]


def test_a_secret_stays_one(desktop: Desktop) -> None:
    heard = Heard()
    desktop.also(heard).perform(Type(Secret("hunter2")), settle=False)
    assert "hunter2" not in repr(heard.calls)


def test_what_a_view_adds_goes_and_what_the_owner_put_in_stays() -> None:
    """A pool's next user must not be seen by what the last one added."""

    async def main() -> tuple[Heard, Heard]:
        owners, tenants = Heard(), Heard()
        desktop = keep(Desktop(MemoryBackend((320, 200))), owners)
        view = AsyncDesktop(desktop).also(tenants)
        await view.screenshot()
        other = pass_on(desktop)
        other.screenshot()
        other.close()
        await view.close()
        return owners, tenants

    owners, tenants = asyncio.run(main())
    assert owners.types == ["screenshot", "screenshot"]
    assert tenants.types == ["screenshot"]


def test_commands_of_every_shell_are_seen(desktop: Desktop) -> None:
    heard = Heard()
    view = desktop.also(heard)
    once = view.host.run("echo one")
    with view.host.open_shell(env={"A": "1"}) as shell:
        more = shell.run("echo two")
        shell.run("echo $A$B", env={"B": "2"}, cwd="/")
        shell.restart()
    assert (once.stdout, more.stdout) == ("one\n", "two\n")
    opened = Operation("open_host_shell", env=(("A", "1"),))
    assert [operation for operation, _ in heard.calls] == [
        Operation("host_shell", "echo one"),
        opened,
        Operation("host_shell", "echo two", env=(("A", "1"),)),
        Operation("host_shell", "echo $A$B", cwd="/", env=(("A", "1"), ("B", "2"))),
        opened,
    ]


def test_a_refused_command_is_not_run(desktop: Desktop, tmp_path: Path) -> None:
    view = desktop.also(Heard("host_shell"))
    with view.host.open_shell() as shell:
        for run in (view.host.run, shell.run):
            with pytest.raises(PolicyDenied, match="enough"):
                run(f"touch {tmp_path}/made")
    assert list(tmp_path.iterdir()) == []


def test_a_stop_holds_for_every_view(desktop: Desktop, backend: MemoryBackend) -> None:
    view = desktop.also(Heard())
    assert view.stop("enough")
    for act in (view.screenshot, lambda: desktop.perform(LeftClick((5, 5))), lambda: view.host.run("ls")):
        with pytest.raises(PolicyDenied, match="enough"):
            act()
    # Where nobody stands in the gate, the screen may be looked at.
    assert desktop.screenshot().size == (320, 200)
    assert backend.events == []
